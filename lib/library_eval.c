/* SPDX-License-Identifier: GPL-3.0-or-later */
/* libprobing: running code in a target. */
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "control/load.h"
#include "control/eval.h"
#include "lib/library_private.h"

/** So often the session is asked whether the code is to be interrupted. */
static const double LOOK_SECONDS = 0.05;
/** How often the code is interrupted before it is left. */
enum { PATIENCE = 3 };
/** Of a traceback, for the error's message. */
enum { MAX_LAST = 400 };

struct follower {
	struct prb_session *session;
	probing_output_handler *handler;
	void *context;
	int interruptions;
	bool ended;		  /* the handler wants no more */
	struct prb_str traceback; /* its end */
};

static void follower_guard(struct follower *follower)
{
	prb_str_deinit(&follower->traceback);
}

static enum probing_stream stream_of(enum prb_wire_type what)
{
	switch (what) {
	case PRB_WIRE_STDERR:
		return PROBING_STDERR;
	case PRB_WIRE_VALUE:
		return PROBING_VALUE;
	case PRB_WIRE_TRACEBACK:
		return PROBING_TRACEBACK;
	default:
		return PROBING_STDOUT;
	}
}

static struct prb_error *put(void *context, enum prb_wire_type what, const void *data,
			     size_t length)
{
	struct follower *f = context;

	if (what == PRB_WIRE_TRACEBACK) {
		size_t last = PRB_MIN(length, (size_t)MAX_LAST);

		prb_str_truncate(&f->traceback, 0);
		prb_str_append(&f->traceback, (const char *)data + length - last, last);
	}
	if (f->handler && !f->ended && f->handler(f->context, stream_of(what), data, length)) {
		f->ended = true;
		f->interruptions++;
	}
	return NULL;
}

static int interruptions(void *context)
{
	struct follower *f = context;
	prb_auto_error struct prb_error *cancelled = prb_session_check(f->session);

	if (cancelled) {
		prb_session_settle(f->session);
		f->interruptions++;
	}
	return f->interruptions > PATIENCE ? -1 : f->interruptions;
}

/** The last line of a traceback is the error of code that raised one. */
static struct prb_error *tell(const struct follower *f, struct prb_error *err)
{
	const char *text = prb_str_text(&f->traceback), *line;
	size_t length = f->traceback.length;

	if (!err || *err->message)
		return err;
	while (length && text[length - 1] == '\n')
		length--;
	line = memrchr(text, '\n', length);
	line = line ? line + 1 : text;
	prb_error_destroy(err);
	return prb_error_create(PRB_ERROR_FAILED, "%.*s", (int)(text + length - line), line);
}

static struct prb_error *run(struct follower *f, struct prb_target *t,
			     const struct probing_eval_options *options, const struct prb_str *code)
{
	__attribute__((cleanup(prb_eval_result_deinit))) struct prb_eval_result result = {};
	const struct prb_eval eval = {
		.flags = options->flags & PROBING_ON_MAIN ? PRB_WIRE_ON_MAIN : 0,
		.timeout = options->timeout,
		.put = put,
		.interruptions = interruptions,
		.look = LOOK_SECONDS,
		.context = f,
	};
	struct prb_agent *agent;

	PRB_TRY(prb_agent_reach(t, !(options->flags & PROBING_NO_AGENT), &agent));
	struct prb_error *err = prb_eval_run(
		agent, &eval, options->name ? options->name : "<probing>", code, &result);
	prb_agent_close(agent);
	if (!err)
		err = tell(f, prb_eval_judge(t, (int)t->pid, &eval, &result));
	if (!err && result.outcome == PRB_WIRE_OK && result.text.length)
		prb_session_warn(f->session, prb_str_text(&result.text));
	return err;
}

static struct prb_error *eval(struct probing *p, const char *text,
			      const struct probing_eval_options *options,
			      probing_output_handler *handler, void *context)
{
	__attribute__((cleanup(follower_guard))) struct follower follower = {
		.session = p->session, .handler = handler, .context = context};
	struct probing_eval_options known = {};
	prb_auto_str struct prb_str code = {};

	if (prb_session_target_count(p->session) != 1)
		return prb_error_create(PRB_ERROR_USAGE, "code is run in one target, not in %zu",
					prb_session_target_count(p->session));
	if (options)
		memcpy(&known, options, PRB_MIN(options->size, sizeof(known)));
	prb_str_puts(&code, text);
	if (code.failed)
		return prb_error_nomem();
	if (code.length > PRB_EVAL_MAX_CODE)
		return prb_error_create(PRB_ERROR_USAGE, "the code has over %d bytes",
					PRB_EVAL_MAX_CODE);
	prb_session_end_instants(p->session);

	struct prb_error *err = run(&follower, prb_session_target(p->session), &known, &code);
	prb_session_settle(p->session);
	return err;
}

struct probing_error *probing_eval(struct probing *p, const char *code,
				   const struct probing_eval_options *options,
				   probing_output_handler *handler, void *context)
{
	return prb_public_error(eval(p, code, options, handler, context));
}

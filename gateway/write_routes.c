/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Requests that change a target: they run code in it, or hold it. */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "command/exit.h"
#include "gateway/gateway_private.h"

/** So many bytes of a parameter are logged. */
enum { AUDITED = 300 };

/** A pause that a client asks for lasts so long, if it does not say how long. */
static const double PAUSE_SECONDS = 60;

/** The user's own session is a client on our unix socket that runs as the same user. */
static bool is_own_session(const struct prb_request *r)
{
	struct ucred cred;
	socklen_t length = sizeof(cred);

	return r->gateway->unix_path &&
	       !getsockopt(r->connection->fd, SOL_SOCKET, SO_PEERCRED, &cred, &length) &&
	       cred.uid == geteuid();
}

bool prb_may_write(const struct prb_request *r)
{
	const struct prb_gateway_options *o = &r->gateway->options;

	return o->allow_write || (!o->read_only && is_own_session(r));
}

void prb_write_audit(const struct prb_request *r)
{
	prb_auto_str struct prb_str text = {};
	struct prb_json json = {&text};

	prb_json_open(&json, NULL, '{');
	for (const struct prb_param *p = r->route->params; p->name; p++) {
		const char *value = prb_param(r, p->name);
		size_t length = value ? strlen(value) : 0;

		if (value)
			prb_json_bytes(&json, p->name, value, PRB_MIN(length, (size_t)AUDITED));
		if (length > AUDITED)
			prb_json_integer(&json, "of_bytes", (long)length);
	}
	prb_json_close(&json, '}');
	fprintf(stderr, "%s: serve: %s %s %s\n", prb_exit_program, r->method, r->path,
		prb_str_text(&text));
}

static struct prb_error *begin(struct prb_request *r, const char *command)
{
	PRB_TRY(prb_served_words(&r->gateway->served, r->id, &r->words));
	PRB_TRY(prb_words_add(&r->words, "%s", command));
	return prb_words_add(&r->words, "--json");
}

/** Nothing is changed in what the command printed; but it is waited for. */
static struct prb_error *take_whole(struct prb_request *r)
{
	(void)r;
	return NULL;
}

struct prb_error *prb_answer_eval(struct prb_request *r)
{
	const char *code = prb_param(r, "code");

	PRB_TRY(begin(r, "eval"));
	PRB_TRY(prb_words_add(&r->words, "--timeout=20s"));
	PRB_TRY(prb_param_word(r, "thread", "thread"));
	PRB_TRY(prb_param_word(r, "frame", "frame"));
	PRB_TRY(prb_param_word(r, "tid", "tid"));
	PRB_TRY(prb_words_add(&r->words, "-"));
	prb_str_puts(&r->input, code);
	r->has_input = true;
	r->finish = take_whole;
	/* An exception of the code is an answer. */
	r->tells_failure = true;
	prb_request_start(r);
	return NULL;
}

struct prb_error *prb_answer_pause(struct prb_request *r)
{
	const char *max = prb_param(r, "max");
	double seconds = max ? atof(max) : PAUSE_SECONDS;

	PRB_TRY(begin(r, "debug"));
	PRB_TRY(prb_words_add(&r->words, "--pause"));
	PRB_TRY(prb_words_add(&r->words, "--max=%.3fs", seconds));
	PRB_TRY(prb_param_flag_word(r, "hard"));
	r->media = "application/x-ndjson";
	r->limit = seconds + 30;
	r->lasts = true;
	prb_request_start(r);
	return NULL;
}

struct prb_error *prb_answer_resume(struct prb_request *r)
{
	PRB_TRY(begin(r, "resume"));
	prb_request_start(r);
	return NULL;
}

struct prb_error *prb_answer_step(struct prb_request *r)
{
	const char *time = prb_param(r, "time");

	PRB_TRY(begin(r, "step"));
	PRB_TRY(prb_param_flag_word(r, "over"));
	PRB_TRY(prb_param_flag_word(r, "out"));
	PRB_TRY(prb_param_word(r, "tid", "tid"));
	if (time)
		PRB_TRY(prb_words_add(&r->words, "--time=%ss", time));
	prb_request_start(r);
	return NULL;
}

struct prb_error *prb_answer_debugpy(struct prb_request *r)
{
	const char *text = prb_param(r, "port");
	long port = text ? atol(text) : 5678;

	PRB_TRY(prb_served_words(&r->gateway->served, r->id, &r->words));
	PRB_TRY(prb_words_add(&r->words, "debug"));
	PRB_TRY(prb_words_add(&r->words, "--dap=127.0.0.1:%ld", port));
	prb_request_start(r);
	return NULL;
}

struct prb_error *prb_answer_config(struct prb_request *r)
{
	const char *key = prb_param(r, "key"), *value = prb_param(r, "value");

	if (strchr(key, '='))
		return prb_error_create(PRB_ERROR_USAGE, "'%.50s' is no key", key);
	PRB_TRY(begin(r, "config"));
	PRB_TRY(prb_words_add(&r->words, "--"));
	PRB_TRY(prb_words_add(&r->words, "%s=%s", key, value));
	prb_request_start(r);
	return NULL;
}

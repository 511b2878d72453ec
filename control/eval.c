/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "control/eval.h"

#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "control/who_blocks.h"

/** Without a timeout code may run for as long as it likes, but has to begin. */
static const double START_SECONDS = 5;
/** How late the end is mostly, on a machine that has time. */
static const double SLACK_SECONDS = 1;
/** Limit of the end of what ends by itself, once it was interrupted. */
static const double END_SECONDS = 10;
/**
 * Once code has run on for so long after its first interruption, the user is told that it is still
 * running.
 */
static const double PATIENCE_SECONDS = 1;
/** Limit of what is collected: the peer is untrusted. */
enum { MAX_KEPT_MIB = 64 };

void prb_eval_result_deinit(struct prb_eval_result *r)
{
	prb_str_deinit(&r->out);
	prb_str_deinit(&r->err);
	prb_str_deinit(&r->value);
	prb_str_deinit(&r->traceback);
	prb_str_deinit(&r->text);
}

static uint32_t milliseconds(double seconds)
{
	return seconds <= 0 ? 0 : seconds > 4e6 ? 4000000000u : (uint32_t)(seconds * 1000 + 0.999);
}

/** How long it may take to begin. */
static double start_seconds(const struct prb_eval *eval)
{
	return eval->timeout > 0 ? eval->timeout : START_SECONDS;
}

/** Seconds from its request until it should have ended; negative: unknown. */
static double lasting(const struct prb_eval *eval)
{
	if (eval->timeout > 0)
		return eval->timeout + SLACK_SECONDS;
	return eval->lasts > 0 ? START_SECONDS + PRB_MAX(eval->lasts, SLACK_SECONDS) : -1;
}

static struct prb_error *ask(struct prb_agent *agent, const struct prb_eval *how, const char *name,
			     const struct prb_str *code)
{
	struct prb_wire_eval eval = {
		.flags = how->flags,
		.start_ms = milliseconds(start_seconds(how)),
		.total_ms = milliseconds(how->timeout),
		.name_length = (uint32_t)strnlen(name, PRB_WIRE_MAX_NAME),
	};
	prb_auto_str struct prb_str head = {};
	uint8_t fixed[PRB_WIRE_EVAL_SIZE];

	prb_wire_put_eval(fixed, &eval);
	prb_str_append(&head, fixed, sizeof(fixed));
	prb_str_append(&head, name, eval.name_length);
	if (head.failed)
		return prb_error_nomem();
	return prb_agent_request(agent, lasting(how), PRB_WIRE_EVAL, head.data, head.length,
				 prb_str_text(code), code->length);
}

static struct prb_error *keep(struct prb_eval_result *r, struct prb_str *kept,
			      const struct prb_wire_frame *frame)
{
	r->kept += frame->length;
	if (r->kept > (uint64_t)MAX_KEPT_MIB << 20)
		return prb_error_hint(prb_error_create(PRB_ERROR_FAILED,
						       "the code printed over %d MiB, which is "
						       "more than is collected",
						       MAX_KEPT_MIB),
				      "without --json everything is printed as it comes; the code "
				      "was interrupted");
	prb_str_append(kept, frame->payload, frame->length);
	return kept->failed ? prb_error_nomem() : NULL;
}

/** Hands on a part of a text as it comes, or keeps it. */
static struct prb_error *put(struct prb_eval_result *r, const struct prb_eval *eval,
			     struct prb_str *kept, const struct prb_wire_frame *frame)
{
	if (!eval->put)
		return keep(r, kept, frame);
	return eval->put(eval->context, frame->type, frame->payload, frame->length);
}

static struct prb_error *take(struct prb_eval_result *r, const struct prb_eval *eval,
			      const struct prb_wire_frame *frame, bool *done)
{
	switch (frame->type) {
	case PRB_WIRE_STDOUT:
		return put(r, eval, &r->out, frame);
	case PRB_WIRE_STDERR:
		return put(r, eval, &r->err, frame);
	case PRB_WIRE_VALUE:
		r->has_value = true;
		return put(r, eval, &r->value, frame);
	case PRB_WIRE_TRACEBACK:
		r->has_traceback = true;
		return put(r, eval, &r->traceback, frame);
	case PRB_WIRE_ERROR:
		r->refused = true;
		return prb_error_create(PRB_ERROR_FAILED, "the agent refused: %.*s",
					(int)PRB_MIN(frame->length, 400u),
					(const char *)frame->payload);
	case PRB_WIRE_DONE:
		*done = true;
		r->outcome = frame->length >= 4 ? prb_wire_get32(frame->payload) : PRB_WIRE_FAILED;
		if (frame->length > 4)
			prb_str_append(&r->text, frame->payload + 4, frame->length - 4);
		return NULL;
	default: /* of a later version */
		return NULL;
	}
}

/** Once interrupted, it ends before its time; we may have been late ourselves. */
static void limit_end(struct prb_agent *agent, const struct prb_eval *eval)
{
	double left = prb_agent_patience(agent);

	if (eval->timeout <= 0 && left >= 0 && (left < SLACK_SECONDS || left > END_SECONDS))
		prb_agent_limit(agent, left < SLACK_SECONDS ? SLACK_SECONDS : END_SECONDS);
}

/** The user wants to interrupt the code, which is handed on, or to leave it. */
static struct prb_error *hand_on(struct prb_agent *agent, const struct prb_eval *eval, int *told)
{
	int count = eval->interruptions ? eval->interruptions(eval->context) : 0;

	if (count < 0)
		return prb_error_create(PRB_ERROR_CANCELLED, "interrupted");
	if (count <= *told)
		return NULL;
	*told = count;
	limit_end(agent, eval);
	return prb_agent_send(agent, PRB_WIRE_INTERRUPT, NULL, 0, NULL, 0);
}

/** The next frame; PRB_ERROR_CANCELLED if the user is to be asked before it. */
static struct prb_error *next(struct prb_agent *agent, const struct prb_eval *eval, double by,
			      int told, bool *said, struct prb_wire_frame *frame)
{
	double left = by < 0 ? prb_agent_patience(agent) : prb_agent_left(by);

	if (told == 1 && eval->goes_on && !*said && (left < 0 || left > PATIENCE_SECONDS)) {
		struct prb_error *err = prb_agent_receive(agent, PATIENCE_SECONDS, frame);

		if (prb_agent_never_answers(agent) || !prb_error_catch(&err, PRB_ERROR_TIMEOUT))
			return err;
		*said = true;
		eval->goes_on(eval->context, prb_agent_target(agent),
			      eval->flags & PRB_WIRE_ON_MAIN);
		left = by < 0 ? prb_agent_patience(agent) : prb_agent_left(by);
	}
	if (!eval->look || (left >= 0 && left <= eval->look))
		return prb_agent_await(agent, left, frame);

	struct prb_error *err = prb_agent_receive(agent, eval->look, frame);
	if (!prb_agent_never_answers(agent) && prb_error_catch(&err, PRB_ERROR_TIMEOUT))
		return prb_error_create(PRB_ERROR_CANCELLED, "%s", "");
	return err;
}

static struct prb_error *goes_on(const struct prb_eval *eval)
{
	return prb_error_hint(
		prb_error_create(PRB_ERROR_TIMEOUT,
				 "the code should have ended after %g s, and is still running",
				 eval->timeout > 0 ? eval->timeout : eval->lasts),
		"the agent goes on sending, and never answers that it has");
}

/** Hands what comes to @p r until the end of it. */
static struct prb_error *follow(struct prb_agent *agent, const struct prb_eval *eval,
				struct prb_eval_result *r)
{
	const uint16_t request = prb_agent_last_request(agent);
	double by = eval->timeout > 0 ? prb_agent_deadline(eval->timeout + SLACK_SECONDS) : -1;
	bool done = false, said = false, begun = false;
	int told = 0;

	while (!done) {
		struct prb_wire_frame frame;
		struct prb_error *err;

		PRB_TRY(hand_on(agent, eval, &told));
		err = next(agent, eval, by, told, &said, &frame);
		if (prb_error_catch(&err, PRB_ERROR_CANCELLED))
			continue;
		if (prb_agent_never_answers(agent)) {
			prb_error_destroy(err);
			return goes_on(eval);
		}
		PRB_TRY(err);
		if (!begun && eval->timeout <= 0 && eval->lasts > 0)
			prb_agent_limit(agent, eval->lasts + SLACK_SECONDS);
		begun = true;
		if (frame.request == request)
			PRB_TRY(take(r, eval, &frame, &done));
	}
	return r->text.failed ? prb_error_nomem() : NULL;
}

struct prb_error *prb_eval_run(struct prb_agent *agent, const struct prb_eval *eval,
			       const char *name, const struct prb_str *code,
			       struct prb_eval_result *ret)
{
	struct prb_error *err = ask(agent, eval, name, code);

	if (!err)
		err = follow(agent, eval, ret);
	return err && err->code == PRB_ERROR_NO_PROCESS ? prb_agent_explain_end(agent, err) : err;
}

struct prb_error *prb_eval_judge(struct prb_target *t, int pid, const struct prb_eval *eval,
				 const struct prb_eval_result *r)
{
	double waited = start_seconds(eval);

	switch (r->outcome) {
	case PRB_WIRE_OK:
	case PRB_WIRE_INCOMPLETE:
	case PRB_WIRE_EXIT:
		return NULL;
	case PRB_WIRE_RAISED: /* its traceback says it all */
		return prb_error_create(PRB_ERROR_FAILED, "%s", "");
	case PRB_WIRE_INTERRUPTED:
		return prb_error_create(PRB_ERROR_CANCELLED, "the code was interrupted%s%.400s",
					r->text.length ? ": " : "", prb_str_text(&r->text));
	case PRB_WIRE_NO_GIL:
		if (r->text.length)
			return prb_error_hint(
				prb_error_create(PRB_ERROR_TIMEOUT,
						 "the code was not run within %g s: %.200s", waited,
						 prb_str_text(&r->text)),
				"while process %d is paused, code of its clients runs one after "
				"the "
				"other",
				pid);
		return prb_agent_blame_gil(t, pid, waited, "the code was not run");
	case PRB_WIRE_MAIN_NOT_REACHED:
		return prb_agent_blame_main(t, waited, eval->flags & PRB_WIRE_ON_MAIN);
	case PRB_WIRE_TIMED_OUT:
		return prb_error_hint(
			prb_error_create(PRB_ERROR_TIMEOUT,
					 "the code ran for over %g s and was interrupted", waited),
			"a call that does not return, such as time.sleep(), ends "
			"first");
	case PRB_WIRE_REFUSED:
		return prb_error_create(PRB_ERROR_UNSUPPORTED,
					"no code can be evaluated in process %d: %.400s", pid,
					prb_str_text(&r->text));
	case PRB_WIRE_FAILED:
		break;
	}
	return prb_error_create(PRB_ERROR_FAILED, "the agent of process %d failed: %.400s", pid,
				prb_str_text(&r->text));
}

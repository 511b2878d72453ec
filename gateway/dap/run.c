/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The client attaches, and lets the process run. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "gateway/dap/private.h"
#include "target/proc/signal_text.h"
#include "target/spec/target_spec.h"

/** Code of the client runs while the process is paused. */
static int while_stopped(struct prb_dap *d)
{
	static const char note[] = "the code is still running. If it waits for a paused thread, it "
				   "never ends: disconnect to abandon it\n";

	if (!d->evaluates)
		return 0;
	if (d->note_at > 0 && prb_clock_seconds() > d->note_at) {
		prb_auto_str struct prb_str text = {};

		d->note_at = 0;
		prb_str_puts(&text, note);
		prb_error_destroy(prb_dap_output(d, "important", &text));
	}
	prb_dap_receive(d);
	if (d->over)
		return -1;
	if (d->input.length == d->looked_at)
		return 0;
	d->looked_at = d->input.length;
	return prb_dap_leaves(d) ? -1 : 0;
}

/** A message that the process has to be paused for, or the end of the client. */
static int interruptions(void *context)
{
	struct prb_dap *d = context;

	if (d->state == PRB_DAP_STOPPED)
		return while_stopped(d);
	prb_dap_receive(d);
	if (!d->pending && prb_dap_take_all(d, true))
		d->over = true;
	return d->pending || d->over;
}

/** Equal, in a time that does not depend on where they differ. */
static bool has_token(const char *given, const char *wanted)
{
	size_t length = strlen(wanted);
	unsigned char differs = !given || strlen(given) != length;

	for (size_t i = 0; !differs && i < length; i++)
		differs |= (unsigned char)(given[i] ^ wanted[i]);
	return !differs;
}

/** The target of the options, or else of the request. */
static struct prb_error *open_target(struct prb_dap *d, const struct prb_dap_request *r)
{
	json_t *pid = json_object_get(r->arguments, "processId");
	const char *given = d->options->target ? d->options->target : prb_dap_word(r, "target");
	prb_auto_free char *number = NULL;

	if (!given && json_is_integer(pid))
		given = number = prb_format("%lld", (long long)json_integer_value(pid));
	if (!given)
		given = json_string_value(pid);
	if (!given)
		return prb_error_hint(prb_error_create(PRB_ERROR_USAGE, "no target given"),
				      "\"processId\" or \"target\" in launch.json names it, or "
				      "'probing dap PID'");
	return prb_spec_open_in(given, d->options->places, &d->target);
}

struct prb_error *prb_dap_attach(struct prb_dap *d, const struct prb_dap_request *r)
{
	const struct prb_drive_how how = {
		.within = d->options->within, .interruptions = interruptions, .context = d};

	if (d->target)
		return prb_error_create(PRB_ERROR_USAGE, "the client has attached already");
	if (d->options->token && !has_token(prb_dap_word(r, "token"), d->options->token))
		return prb_error_hint(
			prb_error_create(PRB_ERROR_PERMISSION, "the token is missing or wrong"),
			"\"token\" in launch.json has it");
	PRB_TRY(open_target(d, r));
	json_decref(d->mappings);
	d->mappings = json_incref(json_object_get(r->arguments, "pathMappings"));
	d->stops_first = json_is_true(json_object_get(r->arguments, "stopOnEntry"));
	if (d->target->loadable) {
		struct prb_error *err = prb_drive_create(d->target, &how, &d->drive);

		if (err) {
			prb_target_destroy(d->target);
			d->target = NULL;
			return err;
		}
	}
	PRB_TRY(prb_dap_answer(d, r, NULL));
	return prb_dap_event(d, "initialized", NULL);
}

void prb_dap_detach(struct prb_dap *d)
{
	prb_drive_destroy(d->drive);
	d->drive = NULL;
	d->state = PRB_DAP_STOPPED;
}

static const struct prb_dap_break *break_of(const struct prb_dap *d, unsigned number)
{
	const struct prb_dap_break *each;

	prb_vec_each (each, &d->breaks)
		if (number && each->number == number)
			return each;
	return NULL;
}

/** Keeps the exception that has stopped the process, or what has ended it. */
static void keep_exception(struct prb_dap *d, pid_t tid, const struct prb_drive_stop *stop)
{
	const struct prb_dap_break *of = break_of(d, stop->breakpoint);
	const struct prb_dump_death *death = &d->dump->death;
	prb_auto_str struct prb_str text = {};

	if (stop->problem.length)
		prb_str_puts(&text, prb_str_text(&stop->problem));
	else if (*death->exception)
		prb_text_escape(&text, death->exception);
	else
		prb_put_signal(&text, death->signal);
	d->exception = strdup(prb_str_text(&text));
	d->exception_tid = tid;
	/* A "with" may end it: that is not known before. */
	d->break_mode = !of ? "unhandled" : of->uncaught ? "userUnhandled" : "always";
}

static struct prb_error *tell_stop(struct prb_dap *d, const char *reason,
				   const struct prb_drive_stop *stop)
{
	json_t *body = json_pack("{s:s, s:b}", "reason", reason, "allThreadsStopped", 1);
	pid_t tid = stop->tid;
	const char *text;

	d->state = PRB_DAP_STOPPED;
	prb_dap_forget(d);
	PRB_TRY(prb_dap_look(d));
	if (!tid)
		tid = d->dump->death.tid ? d->dump->death.tid : d->dump->main_tid;
	json_object_set_new(body, "threadId", json_integer(tid));
	if (stop->breakpoint)
		json_object_set_new(body, "hitBreakpointIds",
				    json_pack("[i]", (int)stop->breakpoint));
	if (!strcmp(reason, "exception"))
		keep_exception(d, tid, stop);
	text = d->exception ? d->exception : prb_str_text(&stop->problem);
	if (*text) {
		json_object_set_new(body, "description", prb_dap_string(text));
		json_object_set_new(body, "text", prb_dap_string(text));
	}
	PRB_TRY(prb_dap_event(d, "stopped", body));
	return prb_dap_tell_breaks(d);
}

struct prb_error *prb_dap_configured(struct prb_dap *d, const struct prb_dap_request *r)
{
	const struct prb_drive_stop stop = {};

	PRB_TRY(prb_dap_answer(d, r, NULL));
	if (d->configured)
		return NULL;
	d->configured = true;
	if (d->drive && !d->stops_first) {
		d->state = PRB_DAP_RUNNING;
		return NULL;
	}
	PRB_TRY(prb_dap_look(d));
	return tell_stop(d,
			 d->drive					      ? "entry"
			 : d->dump->death.signal || *d->dump->death.exception ? "exception"
									      : "pause",
			 &stop);
}

/** What a stop is called: by an exception, or another breakpoint. */
static const char *reason_of(const struct prb_dap *d, const struct prb_drive_stop *stop)
{
	static const char *const reasons[] = {[PRB_DAP_LINES] = "breakpoint",
					      [PRB_DAP_FUNCTIONS] = "function breakpoint",
					      [PRB_DAP_EXCEPTIONS] = "exception"};
	const struct prb_dap_break *of = break_of(d, stop->breakpoint);

	if (!stop->breakpoint)
		return "step";
	return of ? reasons[of->of] : "breakpoint";
}

/** Whether a step is not through where its process has stopped: that is in a deeper call. */
static struct prb_error *is_deeper(struct prb_dap *d, bool *ret)
{
	size_t depth;

	prb_dap_forget(d);
	PRB_TRY(prb_dap_depth(d, &depth));
	*ret = d->stride != PRB_WIRE_STRIDE_INTO &&
	       depth >= d->step_depth + (d->stride != PRB_WIRE_STRIDE_OUT);
	prb_dap_forget(d);
	return NULL;
}

/**
 * Lets the process run. At a logpoint it goes on, and a step does if that was in a call or of
 * another thread: then no breakpoint and *goes_on are returned.
 */
static struct prb_error *run_on(struct prb_dap *d, bool steps, struct prb_drive_stop *stop,
				bool *goes_on)
{
	bool deeper = false;
	const struct prb_dap_break *log;

	if (steps && d->step_logged)
		PRB_TRY(is_deeper(d, &deeper));
	if (steps)
		PRB_TRY(prb_drive_step(d->drive, d->step_tid,
				       deeper ? PRB_WIRE_STRIDE_OUT : d->stride, 0, stop));
	else
		PRB_TRY(prb_drive_continue(d->drive, stop));
	log = prb_dap_logpoint(d, stop->breakpoint);
	if (steps && (log || deeper))
		PRB_TRY(is_deeper(d, &deeper));
	if (log) {
		PRB_TRY(prb_dap_log(d, log, stop->tid));
		stop->breakpoint = 0;
	}
	*goes_on = !stop->breakpoint &&
		   (steps ? deeper || (log && stop->tid != d->step_tid) : log != NULL);
	d->step_logged = *goes_on;
	return NULL;
}

struct prb_error *prb_dap_go_on(struct prb_dap *d)
{
	__attribute__((cleanup(prb_drive_stop_deinit))) struct prb_drive_stop stop = {};
	bool steps = d->state == PRB_DAP_STEPPING;
	bool goes_on = false;
	struct prb_error *err = run_on(d, steps, &stop, &goes_on);

	/* The client wants something that the process is paused for: it goes on behind that. */
	if (goes_on)
		prb_dap_receive(d);
	if (prb_error_catch(&err, PRB_ERROR_CANCELLED) ||
	    (!err && !stop.breakpoint && (!steps || goes_on))) {
		PRB_TRY(prb_dap_take_all(d, false));
		if (!d->wants_pause)
			return NULL;
		d->wants_pause = false;
		stop.tid = 0;
		return tell_stop(d, "pause", &stop);
	}
	/* Its thread has ended, or came to no line: it is paused where it is. */
	if (prb_error_catch(&err, PRB_ERROR_TIMEOUT) ||
	    prb_error_catch(&err, PRB_ERROR_NO_PROCESS) ||
	    prb_error_catch(&err, PRB_ERROR_UNSUPPORTED)) {
		struct prb_error *over = prb_drive_check(d->drive);

		prb_error_destroy(over);
		if (over) {
			prb_dap_detach(d);
			return prb_dap_event(d, "terminated", NULL);
		}
		stop.tid = 0;
	}
	if (err && err->code == PRB_ERROR_OS)
		return err;
	prb_error_destroy(err);
	return tell_stop(d, reason_of(d, &stop), &stop);
}

static struct prb_error *read_only(const struct prb_dap *d)
{
	return prb_error_create(PRB_ERROR_UNSUPPORTED,
				d->target->loadable ? "the process is not paused any more"
						    : "nothing runs in a %s",
				prb_target_kind_name(d->target->kind));
}

static struct prb_error *run(struct prb_dap *d, const struct prb_dap_request *r,
			     enum prb_dap_state state, uint32_t stride)
{
	if (!d->drive)
		return read_only(d);
	d->step_tid = (pid_t)prb_dap_number(r, "threadId");
	d->stride = stride;
	d->step_logged = false;
	if (state == PRB_DAP_STEPPING)
		PRB_TRY(prb_dap_depth(d, &d->step_depth));
	prb_dap_forget(d);
	PRB_TRY(prb_dap_answer(
		d, r,
		state == PRB_DAP_RUNNING ? json_pack("{s:b}", "allThreadsContinued", 1) : NULL));
	d->state = state;
	return NULL;
}

struct prb_error *prb_dap_continue(struct prb_dap *d, const struct prb_dap_request *r)
{
	return run(d, r, PRB_DAP_RUNNING, 0);
}

struct prb_error *prb_dap_next_line(struct prb_dap *d, const struct prb_dap_request *r)
{
	return run(d, r, PRB_DAP_STEPPING, PRB_WIRE_STRIDE_OVER);
}

struct prb_error *prb_dap_step_in(struct prb_dap *d, const struct prb_dap_request *r)
{
	return run(d, r, PRB_DAP_STEPPING, PRB_WIRE_STRIDE_INTO);
}

struct prb_error *prb_dap_step_out(struct prb_dap *d, const struct prb_dap_request *r)
{
	return run(d, r, PRB_DAP_STEPPING, PRB_WIRE_STRIDE_OUT);
}

struct prb_error *prb_dap_pause(struct prb_dap *d, const struct prb_dap_request *r)
{
	if (!d->drive)
		return read_only(d);
	d->wants_pause = d->state != PRB_DAP_STOPPED;
	return prb_dap_answer(d, r, NULL);
}

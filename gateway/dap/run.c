/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The client attaches, sets breakpoints, and lets the process run. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "gateway/dap/private.h"
#include "target/spec/target_spec.h"

enum { MAX_BREAKS = 500 };

/** A message that the process has to be paused for, or the end of the client. */
static int interruptions(void *context)
{
	struct prb_dap *d = context;

	if (d->state == PRB_DAP_STOPPED)
		return 0;
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

static struct prb_error *tell_stop(struct prb_dap *d, const char *reason,
				   const struct prb_drive_stop *stop)
{
	json_t *body = json_pack("{s:s, s:b}", "reason", reason, "allThreadsStopped", 1);
	pid_t tid = stop->tid;

	d->state = PRB_DAP_STOPPED;
	prb_dap_forget(d);
	PRB_TRY(prb_dap_look(d));
	if (!tid)
		tid = d->dump->death.tid ? d->dump->death.tid : d->dump->main_tid;
	json_object_set_new(body, "threadId", json_integer(tid));
	if (stop->breakpoint)
		json_object_set_new(body, "hitBreakpointIds",
				    json_pack("[i]", (int)stop->breakpoint));
	if (stop->problem.length) {
		json_object_set_new(body, "description",
				    prb_dap_string(prb_str_text(&stop->problem)));
		json_object_set_new(body, "text", prb_dap_string(prb_str_text(&stop->problem)));
	}
	return prb_dap_event(d, "stopped", body);
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
			 d->drive				       ? "entry"
			 : d->dump->death.signal || d->dump->exception ? "exception"
								       : "pause",
			 &stop);
}

/** What a stop is called: by an exception, or another breakpoint. */
static const char *reason_of(const struct prb_dap *d, const struct prb_drive_stop *stop)
{
	const struct prb_dap_break *each;

	if (!stop->breakpoint)
		return "step";
	prb_vec_each (each, &d->breaks)
		if (each->number == stop->breakpoint && each->of == PRB_DAP_EXCEPTIONS)
			return "exception";
	return "breakpoint";
}

struct prb_error *prb_dap_go_on(struct prb_dap *d)
{
	__attribute__((cleanup(prb_drive_stop_deinit))) struct prb_drive_stop stop = {};
	bool steps = d->state == PRB_DAP_STEPPING;
	struct prb_error *err = steps ? prb_drive_step(d->drive, d->step_tid, d->stride, 0, &stop)
				      : prb_drive_continue(d->drive, &stop);

	/* The client wants something that the process is paused for: it goes on behind that. */
	if (prb_error_catch(&err, PRB_ERROR_CANCELLED) || (!err && !stop.breakpoint && !steps)) {
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

/** Removes the client's breakpoints of that kind, of that path. */
static struct prb_error *remove_breaks(struct prb_dap *d, int of, const char *path)
{
	size_t kept = 0;

	for (size_t i = 0; i < d->breaks.count; i++) {
		struct prb_dap_break each = d->breaks.items[i];
		struct prb_drive_breaks gone = {};
		struct prb_error *err;

		if ((int)each.of != of || (path && strcmp(path, each.path) != 0)) {
			d->breaks.items[kept++] = each;
			continue;
		}
		/* One that stopped once is gone already. */
		err = prb_drive_delete(d->drive, each.number, &gone);
		prb_drive_breaks_deinit(&gone);
		prb_error_destroy(err);
		free(each.path);
	}
	d->breaks.count = kept;
	return NULL;
}

/** "5", ">= 5" or "% 5", as the client's users write it, as Python. */
static char *hits_of(const char *condition)
{
	const char *at = condition ? condition + strspn(condition, " ") : "";

	if (!*at)
		return NULL;
	if (isdigit((unsigned char)*at))
		return prb_format("hits == (%s)", at);
	if (*at == '%')
		return prb_format("hits %% (%s) == 0", at + 1);
	return prb_format("hits %s", at);
}

/** Sets one; what is told of it. */
static json_t *set(struct prb_dap *d, struct prb_dap_break *kept, struct prb_drive_place *place,
		   const json_t *asked)
{
	prb_auto_free char *hits =
		hits_of(json_string_value(json_object_get(asked, "hitCondition")));
	__attribute__((cleanup(prb_drive_breaks_deinit))) struct prb_drive_breaks made = {};
	struct prb_error *err;
	json_t *told;

	place->condition = json_string_value(json_object_get(asked, "condition"));
	place->hits = hits;
	err = prb_drive_add(d->drive, place, &made);
	if (!err && !made.list.count)
		err = prb_error_create(PRB_ERROR_FAILED, "the agent did not say what it set");
	if (err) {
		told = json_pack("{s:b, s:o}", "verified", 0, "message",
				 prb_dap_string(err->message));
		prb_error_destroy(err);
		free(kept->path);
		return told;
	}
	kept->number = made.list.items[0].number;

	struct prb_dap_break *slot = prb_vec_push(&d->breaks);
	if (slot)
		*slot = *kept;
	told = json_pack("{s:i, s:b, s:o}", "id", (int)kept->number, "verified",
			 made.list.items[0].places || place->catches, "message",
			 prb_dap_string(made.list.items[0].words));
	if (told && made.list.items[0].line)
		json_object_set_new(told, "line", json_integer(made.list.items[0].line));
	return told;
}

/** Nothing stops in what is only read. */
static json_t *cannot(void)
{
	return json_pack("{s:b, s:s}", "verified", 0, "message", "nothing runs here");
}

struct prb_error *prb_dap_set_lines(struct prb_dap *d, const struct prb_dap_request *r)
{
	const char *path =
		json_string_value(json_object_get(json_object_get(r->arguments, "source"), "path"));
	json_t *asked = json_object_get(r->arguments, "breakpoints"), *each, *list = json_array();
	size_t i;

	if (!path)
		path = json_string_value(
			json_object_get(json_object_get(r->arguments, "source"), "name"));
	if (path && d->drive)
		PRB_TRY(remove_breaks(d, PRB_DAP_LINES, path));
	json_array_foreach(asked, i, each)
	{
		json_int_t line = json_integer_value(json_object_get(each, "line"));
		struct prb_dap_break kept = {.of = PRB_DAP_LINES,
					     .path = path ? strdup(path) : NULL};
		struct prb_drive_place place = {
			.file = path, .line = line > 0 && line < INT32_MAX ? (unsigned)line : 0};

		if (i < MAX_BREAKS && d->drive && kept.path && place.line) {
			json_array_append_new(list, set(d, &kept, &place, each));
			continue;
		}
		free(kept.path);
		json_array_append_new(list, cannot());
	}
	return prb_dap_answer(d, r, json_pack("{s:o}", "breakpoints", list));
}

struct prb_error *prb_dap_set_functions(struct prb_dap *d, const struct prb_dap_request *r)
{
	json_t *asked = json_object_get(r->arguments, "breakpoints"), *each, *list = json_array();
	size_t i;

	if (d->drive)
		PRB_TRY(remove_breaks(d, PRB_DAP_FUNCTIONS, NULL));
	json_array_foreach(asked, i, each)
	{
		const char *name = json_string_value(json_object_get(each, "name"));
		struct prb_dap_break kept = {.of = PRB_DAP_FUNCTIONS};
		struct prb_drive_place place = {.name = name};

		json_array_append_new(list, i < MAX_BREAKS && d->drive && name
						    ? set(d, &kept, &place, each)
						    : cannot());
	}
	return prb_dap_answer(d, r, json_pack("{s:o}", "breakpoints", list));
}

struct prb_error *prb_dap_set_exceptions(struct prb_dap *d, const struct prb_dap_request *r)
{
	json_t *asked = json_object_get(r->arguments, "filters"), *each, *list = json_array();
	size_t i;

	if (d->drive)
		PRB_TRY(remove_breaks(d, PRB_DAP_EXCEPTIONS, NULL));
	json_array_foreach(asked, i, each)
	{
		const char *filter = json_string_value(each);
		struct prb_dap_break kept = {.of = PRB_DAP_EXCEPTIONS};
		struct prb_drive_place place = {.catches = true,
						.name = "",
						.uncaught = filter && !strcmp(filter, "uncaught")};

		json_array_append_new(list, i < MAX_BREAKS && d->drive && filter
						    ? set(d, &kept, &place, NULL)
						    : cannot());
	}
	return prb_dap_answer(d, r, json_pack("{s:o}", "breakpoints", list));
}

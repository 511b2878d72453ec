/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The conversation: messages in and out, and which function answers a request. */
#include "gateway/dap/dap.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "dump/dump.h"
#include "gateway/dap/private.h"

enum { MOST_INPUT = 16 << 20, CHUNK = 64 << 10 };

json_t *prb_dap_bytes(const char *text, size_t length)
{
	json_t *made = text ? json_stringn(text, length) : json_null();
	prb_auto_str struct prb_str escaped = {};

	if (made)
		return made;
	/* It is not UTF-8. */
	prb_text_escape_bytes(&escaped, text, length);
	return json_string(prb_str_text(&escaped));
}

json_t *prb_dap_string(const char *text)
{
	return prb_dap_bytes(text, text ? strlen(text) : 0);
}

json_int_t prb_dap_number(const struct prb_dap_request *r, const char *name)
{
	return json_integer_value(json_object_get(r->arguments, name));
}

const char *prb_dap_word(const struct prb_dap_request *r, const char *name)
{
	return json_string_value(json_object_get(r->arguments, name));
}

/** Sends a message, which is taken over. */
static struct prb_error *send(struct prb_dap *d, json_t *message)
{
	prb_auto_free char *text = NULL;
	prb_auto_str struct prb_str whole = {};

	json_object_set_new(message, "seq", json_integer(++d->seq));
	text = json_dumps(message, JSON_COMPACT | JSON_ENSURE_ASCII);
	json_decref(message);
	if (!text)
		return prb_error_nomem();
	prb_str_printf(&whole, "Content-Length: %zu\r\n\r\n%s", strlen(text), text);
	if (whole.failed)
		return prb_error_nomem();
	for (size_t at = 0; at < whole.length;) {
		ssize_t written = write(d->options->out, whole.data + at, whole.length - at);

		if (written < 0 && errno == EAGAIN) {
			struct pollfd wait = {.fd = d->options->out, .events = POLLOUT};

			poll(&wait, 1, -1);
		} else if (written < 0 && errno != EINTR) {
			return prb_error_os(errno, "cannot answer the client");
		}
		at += written > 0 ? (size_t)written : 0;
	}
	return NULL;
}

struct prb_error *prb_dap_event(struct prb_dap *d, const char *name, json_t *body)
{
	json_t *message = json_pack("{s:s, s:s}", "type", "event", "event", name);

	/* The protocol lets it out if it is empty; some clients do not. */
	if (message)
		json_object_set_new(message, "body", body ? body : json_object());
	return message ? send(d, message) : prb_error_nomem();
}

static json_t *response(const struct prb_dap_request *r, bool success)
{
	json_t *seq = json_object_get(r->message, "seq");

	return json_pack("{s:s, s:O, s:b, s:s}", "type", "response", "request_seq",
			 seq ? seq : json_null(), "success", success, "command", r->command);
}

struct prb_error *prb_dap_answer(struct prb_dap *d, const struct prb_dap_request *r, json_t *body)
{
	json_t *message = response(r, true);

	if (message)
		json_object_set_new(message, "body", body ? body : json_object());
	return message ? send(d, message) : prb_error_nomem();
}

struct prb_error *prb_dap_refuse(struct prb_dap *d, const struct prb_dap_request *r,
				 struct prb_error *why)
{
	prb_auto_free char *text = prb_format("%s%s%s", why->message, why->hint ? "\n" : "",
					      why->hint ? why->hint : "");
	json_t *message = response(r, false);

	prb_error_destroy(why);
	if (!message || !text)
		return prb_error_nomem();
	json_object_set_new(message, "message", prb_dap_string(text));
	json_object_set_new(message, "body",
			    json_pack("{s:{s:i, s:o, s:b}}", "error", "id", 1, "format",
				      prb_dap_string(text), "showUser", 1));
	return send(d, message);
}

static struct prb_error *initialize(struct prb_dap *d, const struct prb_dap_request *r)
{
	return prb_dap_answer(
		d, r,
		json_pack(
			"{s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:[{s:s, "
			"s:s, s:b}, {s:s, s:s, s:s, s:b}]}",
			"supportsConfigurationDoneRequest", 1, "supportsFunctionBreakpoints", 1,
			"supportsConditionalBreakpoints", 1, "supportsHitConditionalBreakpoints", 1,
			"supportsEvaluateForHovers", 1, "supportsCompletionsRequest", 1,
			"supportsLogPoints", 1, "supportsExceptionInfoRequest", 1,
			"supportsSetVariable", 1, "supportsSetExpression", 1,
			/* No button of an editor may end a process. */
			"supportsTerminateRequest", 0, "supportTerminateDebuggee", 0,
			"exceptionBreakpointFilters", "filter", "raised", "label",
			"Raised exceptions", "default", 0, "filter", "uncaught", "label",
			"Exceptions without a handler", "description",
			"Where no caller's code has an 'except' for it; a 'with' may still end it",
			"default", 0));
}

static struct prb_error *disconnect(struct prb_dap *d, const struct prb_dap_request *r)
{
	prb_dap_detach(d);
	d->over = true;
	return prb_dap_answer(d, r, NULL);
}

static const struct {
	const char *name;
	struct prb_error *(*run)(struct prb_dap *d, const struct prb_dap_request *r);
	bool pauses; /**< a process that runs is paused for it */
	bool early;  /**< before there is a target */
} requests[] = {
	{"initialize", initialize, false, true},
	{"attach", prb_dap_attach, false, true},
	{"launch", prb_dap_attach, false, true},
	{"disconnect", disconnect, true, true},
	{"configurationDone", prb_dap_configured, true, false},
	{"threads", prb_dap_threads, false, false},
	{"stackTrace", prb_dap_stack, true, false},
	{"scopes", prb_dap_scopes, true, false},
	{"variables", prb_dap_variables, true, false},
	{"source", prb_dap_source, false, false},
	{"exceptionInfo", prb_dap_exception, true, false},
	{"evaluate", prb_dap_evaluate, true, false},
	{"completions", prb_dap_completions, true, false},
	{"setVariable", prb_dap_set_variable, true, false},
	{"setExpression", prb_dap_set_expression, true, false},
	{"setBreakpoints", prb_dap_set_lines, true, false},
	{"setFunctionBreakpoints", prb_dap_set_functions, true, false},
	{"setExceptionBreakpoints", prb_dap_set_exceptions, true, false},
	{"continue", prb_dap_continue, true, false},
	{"next", prb_dap_next_line, true, false},
	{"stepIn", prb_dap_step_in, true, false},
	{"stepOut", prb_dap_step_out, true, false},
	{"pause", prb_dap_pause, true, false},
};

static struct prb_error *answer(struct prb_dap *d, const struct prb_dap_request *r)
{
	for (size_t i = 0; i < PRB_ARRAY_SIZE(requests); i++) {
		if (strcmp(requests[i].name, r->command) != 0)
			continue;
		if (!requests[i].early && !d->target)
			return prb_error_create(PRB_ERROR_USAGE,
						"'%.100s' comes before the client has attached",
						r->command);
		return requests[i].run(d, r);
	}
	return prb_error_create(PRB_ERROR_UNSUPPORTED, "probing does not know '%.100s'",
				r->command);
}

/** Errors after which there is nobody to answer. */
static bool is_fatal(const struct prb_error *err)
{
	return err->code == PRB_ERROR_NOMEM || err->code == PRB_ERROR_OS;
}

static struct prb_error *take(struct prb_dap *d, const json_t *message)
{
	struct prb_dap_request r = {
		.message = message,
		.arguments = json_object_get(message, "arguments"),
		.command = json_string_value(json_object_get(message, "command")),
	};
	struct prb_error *err;

	if (!r.command)
		return NULL; /* an answer to what we never ask */
	err = answer(d, &r);
	return err && !is_fatal(err) ? prb_dap_refuse(d, &r, err) : err;
}

/** Whether the process has to be paused for it. */
static bool pauses(const json_t *message)
{
	const char *command = json_string_value(json_object_get(message, "command"));

	for (size_t i = 0; command && i < PRB_ARRAY_SIZE(requests); i++)
		if (!strcmp(requests[i].name, command))
			return requests[i].pauses;
	return false;
}

/** The next message, NULL: it has not come whole. */
static struct prb_error *next(struct prb_dap *d, json_t **ret)
{
	const char *body;
	size_t length, used;
	int whole = prb_dap_next(d->input.data, d->input.length, &body, &length, &used);

	*ret = NULL;
	if (whole < 0)
		return prb_error_create(PRB_ERROR_BAD_DATA,
					"the client does not speak the Debug Adapter Protocol");
	if (!whole)
		return NULL;
	*ret = json_loadb(body, length, JSON_REJECT_DUPLICATES, NULL);
	prb_str_remove(&d->input, 0, used);
	if (json_is_object(*ret))
		return NULL;
	json_decref(*ret);
	*ret = NULL;
	return prb_error_create(PRB_ERROR_BAD_DATA, "the client sent what is no JSON object");
}

struct prb_error *prb_dap_take_all(struct prb_dap *d, bool running)
{
	while (!d->over) {
		json_t *message = d->pending;
		struct prb_error *err;

		d->pending = NULL;
		if (!message)
			PRB_TRY(next(d, &message));
		if (!message)
			return NULL;
		if (running && pauses(message)) {
			d->pending = message;
			return NULL;
		}
		err = take(d, message);
		json_decref(message);
		PRB_TRY(err);
		if (!running && d->state != PRB_DAP_STOPPED)
			return NULL;
	}
	return NULL;
}

void prb_dap_receive(struct prb_dap *d)
{
	char chunk[CHUNK];
	struct pollfd wait = {.fd = d->options->in, .events = POLLIN};
	ssize_t got;

	if (d->over || d->input.length > MOST_INPUT || poll(&wait, 1, 0) <= 0)
		return;
	got = read(d->options->in, chunk, sizeof(chunk));
	if (got > 0)
		prb_str_append(&d->input, chunk, (size_t)got);
	else if (!got || (errno != EINTR && errno != EAGAIN))
		d->over = true;
}

bool prb_dap_leaves(const struct prb_dap *d)
{
	const char *body;
	size_t length, used;
	bool leaves = d->over || d->input.length > MOST_INPUT;

	for (size_t at = 0; !leaves && at < d->input.length; at += used) {
		json_t *message;
		const char *command;

		if (prb_dap_next(d->input.data + at, d->input.length - at, &body, &length, &used) <=
		    0)
			break;
		message = json_loadb(body, length, JSON_REJECT_DUPLICATES, NULL);
		command = json_string_value(json_object_get(message, "command"));
		leaves = command && !strcmp(command, "disconnect");
		json_decref(message);
	}
	return leaves;
}

static void wait_for_input(struct prb_dap *d)
{
	struct pollfd waits[] = {
		{.fd = d->options->in, .events = POLLIN},
		{.fd = d->drive ? prb_drive_descriptor(d->drive) : -1, .events = POLLIN}};

	if (poll(waits, PRB_ARRAY_SIZE(waits), -1) < 0 && errno != EINTR)
		d->over = true;
}

/** What ended the process, or its pause, ends the session. */
static struct prb_error *check_drive(struct prb_dap *d)
{
	struct prb_error *err = d->drive ? prb_drive_check(d->drive) : NULL;
	prb_auto_free char *text = NULL;

	if (!err)
		return NULL;
	text = prb_format("%s\n", err->message);
	prb_error_destroy(err);
	prb_drive_destroy(d->drive);
	d->drive = NULL;
	d->state = PRB_DAP_STOPPED;
	PRB_TRY(prb_dap_event(
		d, "output",
		json_pack("{s:s, s:o}", "category", "important", "output", prb_dap_string(text))));
	return prb_dap_event(d, "terminated", NULL);
}

static void dap_deinit(struct prb_dap *d)
{
	struct prb_dap_break *each;
	char **source;

	prb_dap_detach(d);
	prb_dap_forget(d);
	if (d->target)
		prb_target_destroy(d->target);
	prb_vec_each (each, &d->breaks) {
		free(each->path);
		free(each->log);
	}
	prb_vec_free(&d->breaks);
	prb_vec_each (source, &d->sources)
		free(*source);
	prb_vec_free(&d->sources);
	json_decref(d->pending);
	json_decref(d->mappings);
	prb_str_deinit(&d->input);
}

struct prb_error *prb_dap_run(const struct prb_dap_options *options)
{
	__attribute__((cleanup(dap_deinit))) struct prb_dap d = {.options = options};

	while (!d.over) {
		PRB_TRY(prb_dap_take_all(&d, false));
		if (!d.over && d.drive && d.state != PRB_DAP_STOPPED)
			PRB_TRY(prb_dap_go_on(&d));
		PRB_TRY(check_drive(&d));
		if (d.pending || d.state != PRB_DAP_STOPPED || d.over)
			continue;
		wait_for_input(&d);
		prb_dap_receive(&d);
		if (d.input.failed)
			return prb_error_nomem();
	}
	return NULL;
}

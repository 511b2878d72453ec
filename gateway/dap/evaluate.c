/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Expressions and assignments of the client: read from outside where that is enough, else by code.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "dump/dump.h"
#include "dump/inspect.h"
#include "gateway/dap/private.h"

enum { MAX_COMPLETIONS = 1000 };

/** The frame that a request names, NULL without one. */
static struct prb_error *frame_of(struct prb_dap *d, const struct prb_dap_request *r,
				  const struct prb_dap_frame **ret)
{
	int index;

	PRB_TRY(prb_dap_frame_index(d, r, &index));
	*ret = index < 0 ? NULL : &d->frames.items[index];
	return NULL;
}

struct prb_error *prb_dap_output(struct prb_dap *d, const char *category,
				 const struct prb_str *text)
{
	if (!text->length)
		return NULL;
	return prb_dap_event(d, "output",
			     json_pack("{s:s, s:o}", "category", category, "output",
				       prb_dap_bytes(prb_str_text(text), text->length)));
}

/** Runs code in the process, whose value is kept in @p ret; an error says what it raised. @p typed:
 * at a prompt. */
static struct prb_error *run_code(struct prb_dap *d, const struct prb_dap_frame *frame,
				  const char *code, bool typed, struct prb_eval_result *ret)
{
	const struct prb_eval how = {.timeout = typed ? 0 : PRB_DAP_SECONDS};
	struct prb_error *err;

	d->evaluates = true;
	d->looked_at = 0;
	d->note_at = typed ? prb_clock_seconds() + PRB_DAP_SECONDS : 0;
	err = prb_drive_eval(d->drive, frame->tid, frame->depth, code, how.timeout, NULL, ret);
	d->evaluates = false;
	d->note_at = 0;
	PRB_TRY(err);
	prb_dap_forget_objects(d);
	if (ret->has_traceback)
		return prb_error_create(PRB_ERROR_FAILED, "%.4000s", prb_str_text(&ret->traceback));
	return prb_eval_judge(d->target, (int)d->target->pid, &how, ret);
}

/** Shows what code printed, also where it failed by @p err, which is passed on. */
static struct prb_error *show_printed(struct prb_dap *d, const struct prb_eval_result *result,
				      struct prb_error *err)
{
	struct prb_error *unshown = prb_dap_output(d, "stdout", &result->out);

	if (!unshown)
		unshown = prb_dap_output(d, "stderr", &result->err);
	if (!err)
		return unshown;
	prb_error_destroy(unshown);
	return err;
}

/** Shows what it printed, and answers with its value. */
static struct prb_error *evaluate_by_code(struct prb_dap *d, const struct prb_dap_request *r,
					  const struct prb_dap_frame *frame, const char *expression,
					  bool typed)
{
	__attribute__((cleanup(prb_eval_result_deinit))) struct prb_eval_result result = {};

	/* An expression binds names by ":=" alone. */
	d->binds |= typed || strstr(expression, ":=");
	PRB_TRY(show_printed(d, &result, run_code(d, frame, expression, typed, &result)));
	return prb_dap_answer(
		d, r,
		json_pack("{s:o, s:i}", "result",
			  prb_dap_bytes(prb_str_text(&result.value), result.value.length),
			  "variablesReference", 0));
}

/** Whether a word is in a text, not as an attribute's name. */
static bool has_word(const char *text, const char *word)
{
	size_t length = strlen(word);

	for (const char *at = text; (at = strstr(at, word)); at += length) {
		unsigned char before = at > text ? (unsigned char)at[-1] : ' ';
		unsigned char behind = (unsigned char)at[length];

		if (!isalnum(before) && !isalnum(behind) && before != '_' && behind != '_' &&
		    before != '.' && before < 0x80 && behind < 0x80)
			return true;
	}
	return false;
}

static bool is_variable(const struct prb_dump *dump, const struct prb_dap_frame *of,
			const char *name)
{
	const struct prb_dump_thread *thread;
	const struct prb_dump_frame *frame;
	const struct prb_dump_local *local;
	unsigned depth = 0;

	prb_vec_each (thread, &dump->threads) {
		prb_vec_each (frame, &thread->frames) {
			if (thread->tid != of->tid || frame->kind != PRB_FRAME_PYTHON ||
			    depth++ != of->depth)
				continue;
			prb_vec_each (local, &frame->locals)
				if (local->name && !strcmp(local->name, name))
					return true;
		}
	}
	return false;
}

/**
 * Whether an expression has a name that code of the client's has bound in that function. The agent
 * keeps these names: from outside, one of the module would be seen in their place.
 */
static struct prb_error *is_bound(struct prb_dap *d, const struct prb_dap_frame *frame,
				  const char *expression, bool *ret)
{
	static const char names[] = "' '.join(__import__('builtins').dir())";
	__attribute__((cleanup(prb_eval_result_deinit))) struct prb_eval_result result = {};
	const struct prb_dump_options options = {
		.tid = frame->tid, .locals = true, .no_waits = true, .no_command = true};
	prb_auto_dump struct prb_dump *dump = NULL;
	char *rest = NULL;

	*ret = false;
	if (!d->binds)
		return NULL;
	PRB_TRY(run_code(d, frame, names, false, &result));
	PRB_TRY(prb_dump_create(d->target, &options, &dump));
	for (char *name = result.value.length ? strtok_r(result.value.data, "' ", &rest) : NULL;
	     name && !*ret; name = strtok_r(NULL, "' ", &rest))
		*ret = has_word(expression, name) && !is_variable(dump, frame, name);
	return NULL;
}

/** Reads the value from outside; an error: it cannot be. */
static struct prb_error *answer_from_outside(struct prb_dap *d, const struct prb_dap_request *r,
					     const struct prb_dap_frame *frame,
					     const char *expression, struct prb_inspected *found)
{
	prb_auto_free char *whole = NULL;
	int index;

	PRB_TRY(prb_dap_frame_index(d, r, &index));
	PRB_TRY(prb_dap_inspect(d, frame, expression, found));
	/* What its parts are asked for by. */
	whole = prb_format(prb_dap_is_identifier(expression) ? "%s" : "(%s)", expression);
	return prb_dap_answer(
		d, r,
		json_pack("{s:o, s:o, s:i}", "result", prb_dap_string(prb_str_text(&found->value)),
			  "type", prb_dap_string(prb_str_text(&found->type)), "variablesReference",
			  prb_dap_refer_to(d, index, found->address, prb_str_text(&found->type),
					   whole)));
}

struct prb_error *prb_dap_evaluate(struct prb_dap *d, const struct prb_dap_request *r)
{
	const char *expression = prb_dap_word(r, "expression");
	const char *how = prb_dap_word(r, "context");
	bool hovers = how && !strcmp(how, "hover"), bound = false;
	const struct prb_dap_frame *frame;
	struct prb_inspected found = {};
	struct prb_error *err = NULL;

	PRB_TRY(frame_of(d, r, &frame));
	if (!expression)
		return prb_error_create(PRB_ERROR_USAGE, "there is no expression");
	if (d->drive && frame)
		PRB_TRY(is_bound(d, frame, expression, &bound));
	if (bound && hovers)
		return prb_error_create(PRB_ERROR_UNSUPPORTED,
					"a name of it was bound at the prompt, which shows it");
	if (!bound)
		err = answer_from_outside(d, r, frame, expression, &found);
	/* What the mouse points at runs no code. */
	if (bound || (err && d->drive && frame && err->code != PRB_ERROR_NOMEM && !hovers)) {
		prb_error_destroy(err);
		err = evaluate_by_code(d, r, frame, expression, how && !strcmp(how, "repl"));
	}
	prb_inspected_deinit(&found);
	return err;
}

/** Assigns, and answers with the new value. @p global: to a name of the module. */
static struct prb_error *assign(struct prb_dap *d, const struct prb_dap_request *r, int index,
				const char *to, bool global)
{
	/* What the agent says then (agent/eval/frame.py). */
	static const char refused[] = "before Python 3.13 its variables cannot be set";
	__attribute__((cleanup(prb_eval_result_deinit))) struct prb_eval_result result = {};
	const char *value = prb_dap_word(r, "value");
	struct prb_inspected found = {};
	prb_auto_free char *code = NULL;
	struct prb_error *err;
	int reference = 0;

	if (!d->drive)
		return prb_error_create(PRB_ERROR_UNSUPPORTED, "nothing can be set in a %s",
					prb_target_kind_name(d->target->kind));
	if (!to || index < 0 || !value)
		return prb_error_create(PRB_ERROR_UNSUPPORTED,
					"it is known by no expression that could be assigned to");
	code = prb_format("%s%s%s%s = (%s\n)\n%s", global ? "global " : "", global ? to : "",
			  global ? "\n" : "", to, value, to);
	if (!code)
		return prb_error_nomem();
	err = run_code(d, &d->frames.items[index], code, false, &result);
	if (!err && strstr(prb_str_text(&result.err), refused))
		return prb_error_create(PRB_ERROR_UNSUPPORTED, "%s is not set: %s", to, refused);
	PRB_TRY(show_printed(d, &result, err));
	err = global ? NULL : prb_dap_inspect(d, &d->frames.items[index], to, &found);
	if (!err)
		reference =
			prb_dap_refer_to(d, index, found.address, prb_str_text(&found.type), to);
	prb_error_destroy(err);
	prb_inspected_deinit(&found);
	return prb_dap_answer(
		d, r,
		json_pack("{s:o, s:i}", "value",
			  result.value.length
				  ? prb_dap_bytes(prb_str_text(&result.value), result.value.length)
				  : json_string("None"),
			  "variablesReference", reference));
}

struct prb_error *prb_dap_set_variable(struct prb_dap *d, const struct prb_dap_request *r)
{
	json_int_t number = prb_dap_number(r, "variablesReference");
	const char *name = prb_dap_word(r, "name");
	const struct prb_dap_scope *scope;
	prb_auto_free char *to = NULL;

	if (number < 1 || number > (json_int_t)d->scopes.count)
		return prb_error_create(PRB_ERROR_USAGE, "that belongs to a stop that has ended");
	scope = &d->scopes.items[number - 1];
	to = name ? prb_dap_expression_of(scope, name) : NULL;
	return assign(d, r, scope->frame, to, scope->kind == PRB_DAP_GLOBALS);
}

struct prb_error *prb_dap_set_expression(struct prb_dap *d, const struct prb_dap_request *r)
{
	int index;

	PRB_TRY(prb_dap_frame_index(d, r, &index));
	return assign(d, r, index, prb_dap_word(r, "expression"), false);
}

struct prb_error *prb_dap_completions(struct prb_dap *d, const struct prb_dap_request *r)
{
	const struct prb_dap_frame *frame;
	const char *text = prb_dap_word(r, "text");
	json_int_t column = prb_dap_number(r, "column");
	struct prb_inspected found = {};
	prb_auto_free char *before = NULL;
	json_t *list;
	size_t start;
	char *rest = NULL;

	PRB_TRY(frame_of(d, r, &frame));
	list = json_array();
	before = text ? strndup(text, column > 0 ? (size_t)column - 1 : 0) : NULL;
	if (!before)
		return prb_dap_answer(d, r, json_pack("{s:o}", "targets", list));
	/* The expression that the cursor is behind. */
	for (start = strlen(before); start && !strchr(" ()[]{},=+-*/<>!:;", before[start - 1]);)
		start--;
	prb_error_destroy(prb_inspect_names(d->target, frame ? frame->tid : 0,
					    frame ? frame->depth : 0, before + start, &found));
	for (char *name = found.value.length ? strtok_r(found.value.data, "\n", &rest) : NULL;
	     name && json_array_size(list) < MAX_COMPLETIONS; name = strtok_r(NULL, "\n", &rest))
		json_array_append_new(list, json_pack("{s:o, s:i, s:i}", "label",
						      prb_dap_string(name), "start", (int)start,
						      "length", (int)(strlen(before) - start)));
	prb_inspected_deinit(&found);
	return prb_dap_answer(d, r, json_pack("{s:o}", "targets", list));
}

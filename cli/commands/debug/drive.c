/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Commands of the prompt that let the process run, run code in it, or say where it stops. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "cli/commands/debug/session.h"
#include "command/exit.h"
#include "command/interrupt.h"
#include "command/output.h"
#include "control/eval.h"

/** Ctrl-C during the process's run comes to us, and is over with that. */
static void begin_to_run(void)
{
	prb_interrupt_forget();
	prb_interrupt_hold(true);
}

static void end_to_run(void)
{
	prb_interrupt_hold(false);
	prb_interrupt_forget();
}

static struct prb_error *step(struct prb_debug *d, uint32_t stride, uint32_t line)
{
	__attribute__((cleanup(prb_drive_stop_deinit))) struct prb_drive_stop stop = {};
	struct prb_error *err;

	PRB_TRY(prb_debug_look(d));
	PRB_TRY(prb_debug_runs(d));
	begin_to_run();
	err = prb_drive_step(d->drive, d->tid, stride, line, &stop);
	end_to_run();
	/* The process is paused where it is. */
	if (prb_error_catch(&err, PRB_ERROR_CANCELLED))
		err = prb_drive_check(d->drive);
	if (err) {
		prb_exit_report(err);
		PRB_TRY(prb_drive_check(d->drive));
	}
	return prb_debug_stopped(d, &stop);
}

struct prb_error *prb_debug_step(struct prb_debug *d, const char *rest)
{
	(void)rest;
	return step(d, PRB_WIRE_STRIDE_INTO, 0);
}

struct prb_error *prb_debug_next(struct prb_debug *d, const char *rest)
{
	(void)rest;
	return step(d, PRB_WIRE_STRIDE_OVER, 0);
}

struct prb_error *prb_debug_raise(struct prb_debug *d, const char *rest)
{
	if (!*rest)
		return prb_error_hint(prb_error_create(PRB_ERROR_USAGE, "no exception given"),
				      "for example 'raise ValueError(\"none\")'");
	PRB_TRY(prb_debug_look(d));
	return prb_drive_raise(d->drive, d->tid, rest);
}

struct prb_error *prb_debug_return(struct prb_debug *d, const char *rest)
{
	if (*rest)
		return prb_error_hint(
			prb_error_create(PRB_ERROR_UNSUPPORTED,
					 "CPython has no way to make a running function return "
					 "another value"),
			"'raise' ends it by an exception, 'return' runs until it has returned");
	return step(d, PRB_WIRE_STRIDE_OUT, 0);
}

struct prb_error *prb_debug_until(struct prb_debug *d, const char *rest)
{
	const struct prb_dump_thread *thread;
	char *end;
	long line = *rest ? strtol(rest, &end, 10) : 0;

	PRB_TRY(prb_debug_thread(d, &thread));
	if (!*rest && thread->frames.count)
		line = thread->frames.items[0].line + 1;
	else if (*rest && (*end || line <= 0 || line > INT32_MAX))
		return prb_error_create(PRB_ERROR_USAGE, "'%.100s' is no line", rest);
	return step(d, PRB_WIRE_STRIDE_OVER, (uint32_t)line);
}

struct prb_error *prb_debug_continue(struct prb_debug *d, const char *rest)
{
	__attribute__((cleanup(prb_drive_stop_deinit))) struct prb_drive_stop stop = {};
	struct prb_error *err;

	(void)rest;
	PRB_TRY(prb_debug_runs(d));
	begin_to_run();
	err = prb_drive_continue(d->drive, &stop);
	end_to_run();
	PRB_TRY(err);
	return prb_debug_stopped(d, &stop);
}

struct prb_error *prb_debug_python(struct prb_debug *d, const char *code)
{
	__attribute__((cleanup(prb_eval_result_deinit))) struct prb_eval_result result = {};
	struct prb_eval how = {};
	struct prb_error *err;

	PRB_TRY(prb_debug_look(d));
	prb_eval_console_use(&d->console, false, &how);
	begin_to_run();
	err = prb_drive_eval(d->drive, d->tid, d->frame, code, 0, how.put, &result);
	end_to_run();
	PRB_TRY(err);
	if (result.has_value) {
		fputc('\n', stdout);
		PRB_TRY(prb_output_flush());
	}
	if (result.text.length)
		prb_warn(prb_str_text(&result.text));
	err = prb_eval_judge(d->target, (int)d->target->pid, &how, &result);
	/* The traceback was printed. */
	if (err && !*err->message)
		prb_error_catch(&err, err->code);
	return err;
}

struct prb_error *prb_debug_show_breaks(const struct prb_drive_breaks *breaks)
{
	const struct prb_drive_break *each;
	prb_auto_str struct prb_str s = {};

	prb_vec_each (each, &breaks->list) {
		prb_str_printf(&s, "breakpoint %u at %s", each->number, each->words);
		if (!each->enabled)
			prb_str_puts(&s, "; disabled");
		if (each->ignore)
			prb_str_printf(&s, "; ignored %u more times", each->ignore);
		if (each->hits)
			prb_str_printf(&s, "; reached %u time%s", each->hits,
				       each->hits == 1 ? "" : "s");
		prb_str_putc(&s, '\n');
	}
	return prb_output(&s);
}

/** A condition behind the place: " if COND", or ", COND" as pdb has it. Cuts the place. */
static const char *take_condition(char *words)
{
	char *at = strstr(words, " if "), *comma = strchr(words, ',');
	size_t skipped = 4;

	if (comma && (!at || comma < at)) {
		at = comma;
		skipped = 1;
	}
	if (!at)
		return NULL;
	*at = '\0';
	at += skipped;
	return at + strspn(at, " ");
}

static void trim(char *words)
{
	size_t length = strlen(words);

	while (length && isspace((unsigned char)words[length - 1]))
		words[--length] = '\0';
}

struct prb_error *prb_debug_read_place(char *words, struct prb_drive_place *ret)
{
	char *colon, *end;
	long line;

	ret->condition = take_condition(words);
	trim(words);
	colon = strrchr(words, ':');
	line = strtol(colon ? colon + 1 : words, &end, 10);
	if (line > 0 && line <= INT32_MAX && !*end) {
		ret->line = (unsigned)line;
		ret->file = colon ? words : NULL;
	} else {
		ret->name = colon ? colon + 1 : words;
		ret->file = colon ? words : "";
	}
	if (colon)
		*colon = '\0';
	if (ret->line || (*ret->name && (isalpha((unsigned char)*ret->name) || *ret->name == '_')))
		return NULL;
	return prb_error_hint(prb_error_create(PRB_ERROR_USAGE, "'%.100s' is no place", words),
			      "for example train.py:22, Trainer.step or json.decoder:JSONDecoder."
			      "decode; 'if' and a condition may follow");
}

static struct prb_error *add(struct prb_debug *d, const char *rest, bool once)
{
	__attribute__((cleanup(prb_drive_breaks_deinit))) struct prb_drive_breaks made = {};
	prb_auto_free char *words = strdup(rest);
	struct prb_drive_place place = {.once = once};
	const struct prb_dump_frame *frame;

	if (!words)
		return prb_error_nomem();
	if (!*rest) {
		PRB_TRY(prb_drive_list(d->drive, &made));
		return prb_debug_show_breaks(&made);
	}
	PRB_TRY(prb_debug_read_place(words, &place));
	if (!place.file) {
		PRB_TRY(prb_debug_frame(d, &frame));
		place.file = frame->file;
	}
	PRB_TRY(prb_drive_add(d->drive, &place, &made));
	return prb_debug_show_breaks(&made);
}

struct prb_error *prb_debug_break(struct prb_debug *d, const char *rest)
{
	return add(d, rest, false);
}

struct prb_error *prb_debug_tbreak(struct prb_debug *d, const char *rest)
{
	return add(d, rest, true);
}

struct prb_error *prb_debug_catch(struct prb_debug *d, const char *rest)
{
	static const char uncaught[] = "uncaught";
	__attribute__((cleanup(prb_drive_breaks_deinit))) struct prb_drive_breaks made = {};
	struct prb_drive_place place = {.catches = true};
	prb_auto_free char *words = strdup(rest);
	char *name = words;

	if (!words)
		return prb_error_nomem();
	place.condition = take_condition(words);
	trim(words);
	place.uncaught = !strncmp(name, uncaught, strlen(uncaught));
	if (place.uncaught)
		name += strlen(uncaught);
	name += strspn(name, " ");
	place.name = name;
	PRB_TRY(prb_drive_add(d->drive, &place, &made));
	return prb_debug_show_breaks(&made);
}

/** The number in front, and what follows it. */
static struct prb_error *take_breakpoint(const char **rest, unsigned *ret)
{
	char *end;
	unsigned long number = strtoul(*rest, &end, 10);

	if (end == *rest || number == 0 || number > INT32_MAX || (*end && *end != ' '))
		return prb_error_hint(
			prb_error_create(PRB_ERROR_USAGE, "'%.100s' is no breakpoint", *rest),
			"'break' lists them with their numbers");
	*ret = (unsigned)number;
	*rest = end + strspn(end, " ");
	return NULL;
}

struct prb_error *prb_debug_clear(struct prb_debug *d, const char *rest)
{
	__attribute__((cleanup(prb_drive_breaks_deinit))) struct prb_drive_breaks gone = {};
	prb_auto_str struct prb_str s = {};
	unsigned number;

	if (!*rest)
		PRB_TRY(prb_drive_delete(d->drive, 0, &gone));
	while (*rest) {
		PRB_TRY(take_breakpoint(&rest, &number));
		PRB_TRY(prb_drive_delete(d->drive, number, &gone));
	}
	for (size_t i = 0; i < gone.list.count; i++)
		prb_str_printf(&s, "breakpoint %u deleted\n", gone.list.items[i].number);
	return prb_output(&s);
}

static struct prb_error *change(struct prb_debug *d, const char *rest, const char *what,
				const char *otherwise)
{
	__attribute__((cleanup(prb_drive_breaks_deinit))) struct prb_drive_breaks changed = {};
	unsigned number;

	PRB_TRY(take_breakpoint(&rest, &number));
	if (!strcmp(what, "ignore") && rest[strspn(rest, "0123456789")])
		return prb_error_create(PRB_ERROR_USAGE, "'%.100s' is no number", rest);
	PRB_TRY(prb_drive_change(d->drive, number, what, *rest ? rest : otherwise, &changed));
	return prb_debug_show_breaks(&changed);
}

struct prb_error *prb_debug_condition(struct prb_debug *d, const char *rest)
{
	return change(d, rest, "condition", "");
}

struct prb_error *prb_debug_ignore(struct prb_debug *d, const char *rest)
{
	return change(d, rest, "ignore", "0");
}

struct prb_error *prb_debug_enable(struct prb_debug *d, const char *rest)
{
	return change(d, rest, "enable", "");
}

struct prb_error *prb_debug_disable(struct prb_debug *d, const char *rest)
{
	return change(d, rest, "disable", "");
}

struct prb_error *prb_debug_commands(struct prb_debug *d, const char *rest)
{
	__attribute__((cleanup(prb_drive_breaks_deinit))) struct prb_drive_breaks all = {};
	struct prb_debug_commands *each, *found = NULL;
	unsigned number = 0;

	PRB_TRY(prb_drive_list(d->drive, &all));
	if (*rest)
		PRB_TRY(take_breakpoint(&rest, &number));
	else if (all.list.count)
		number = all.list.items[all.list.count - 1].number;
	for (size_t i = 0; i < all.list.count; i++)
		d->mode = all.list.items[i].number == number ? PRB_DEBUG_COLLECTS : d->mode;
	if (d->mode != PRB_DEBUG_COLLECTS)
		return prb_error_create(PRB_ERROR_NOT_FOUND, "there is no breakpoint %u", number);
	/* What is collected belongs to the last one of the list. */
	prb_vec_each (each, &d->commands)
		if (each->number == number)
			each->number = 0;
	found = prb_vec_push(&d->commands);
	if (!found)
		return prb_error_nomem();
	found->number = number;
	return NULL;
}

struct prb_error *prb_debug_interact(struct prb_debug *d, const char *rest)
{
	prb_auto_str struct prb_str s = {};

	(void)rest;
	d->mode = PRB_DEBUG_INTERACTS;
	prb_str_puts(&s, "Python in the selected frame; 'exit' goes back to the commands\n");
	return prb_output(&s);
}

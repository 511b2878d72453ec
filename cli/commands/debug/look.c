/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Commands of the prompt that only read: stacks, frames, threads, variables, source. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "cli/commands/debug/session.h"
#include "command/output.h"
#include "dump/dump.h"
#include "dump/inspect.h"
#include "dump/read/source_text.h"
#include "dump/text/paths.h"

enum { AROUND = 11, ITEMS = 100, TEXT = 2000, TOTAL = 20000, PRETTY_DEPTH = 3 };

static void put_frame(struct prb_str *s, const struct prb_debug *d, unsigned number,
		      const struct prb_dump_frame *frame)
{
	const char *name = frame->qualname ? frame->qualname : frame->func;

	prb_str_printf(s, "%s #%-3u ", number == d->frame ? ">" : " ", number);
	prb_text_escape(s, name ? name : "?");
	prb_str_puts(s, "  ");
	prb_text_escape(s, frame->file ? frame->file : "?");
	prb_str_printf(s, ":%d\n", frame->line);
}

struct prb_error *prb_debug_where(struct prb_debug *d, const char *rest)
{
	const struct prb_dump_thread *thread;
	const struct prb_dump_frame *frame;
	prb_auto_str struct prb_str s = {};
	unsigned number = 0;

	(void)rest;
	PRB_TRY(prb_debug_thread(d, &thread));
	prb_vec_each (frame, &thread->frames)
		if (frame->kind == PRB_FRAME_PYTHON)
			put_frame(&s, d, number++, frame);
	if (thread->error) {
		prb_str_puts(&s, "  ");
		prb_text_escape(&s, thread->error);
		prb_str_putc(&s, '\n');
	}
	return prb_output(&s);
}

/** A count behind a command, @p otherwise without one. */
static struct prb_error *take_number(const char *rest, long otherwise, long *ret)
{
	char *end;

	errno = 0;
	*ret = *rest ? strtol(rest, &end, 10) : otherwise;
	if (*rest && (*end || errno || *ret < 0 || *ret > INT32_MAX))
		return prb_error_create(PRB_ERROR_USAGE, "'%.100s' is no number", rest);
	return NULL;
}

static unsigned count_frames(const struct prb_dump_thread *thread)
{
	const struct prb_dump_frame *frame;
	unsigned count = 0;

	prb_vec_each (frame, &thread->frames)
		count += frame->kind == PRB_FRAME_PYTHON;
	return count;
}

static struct prb_error *go_to(struct prb_debug *d, long frame)
{
	const struct prb_dump_thread *thread;

	PRB_TRY(prb_debug_thread(d, &thread));
	if (frame < 0)
		return prb_error_create(PRB_ERROR_NOT_FOUND, "this is the innermost frame");
	if ((unsigned)frame >= count_frames(thread))
		return prb_error_create(PRB_ERROR_NOT_FOUND, "the outermost frame is #%u",
					count_frames(thread) ? count_frames(thread) - 1 : 0);
	d->frame = (unsigned)frame;
	return prb_debug_place(d);
}

struct prb_error *prb_debug_up(struct prb_debug *d, const char *rest)
{
	long count;

	PRB_TRY(take_number(rest, 1, &count));
	return go_to(d, (long)d->frame + count);
}

struct prb_error *prb_debug_down(struct prb_debug *d, const char *rest)
{
	long count;

	PRB_TRY(take_number(rest, 1, &count));
	return go_to(d, (long)d->frame - count);
}

struct prb_error *prb_debug_select(struct prb_debug *d, const char *rest)
{
	long frame;

	PRB_TRY(take_number(rest, d->frame, &frame));
	return go_to(d, frame);
}

/** A thread of the agent, which runs no code of the program. */
static bool is_ours(const struct prb_dump_thread *thread)
{
	static const char ours[] = "probing-";

	return thread->os_name && !strncmp(thread->os_name, ours, strlen(ours));
}

struct prb_error *prb_debug_threads(struct prb_debug *d, const char *rest)
{
	const struct prb_dump_thread *thread;
	prb_auto_str struct prb_str s = {};

	(void)rest;
	PRB_TRY(prb_debug_look(d));
	prb_vec_each (thread, &d->dump->threads) {
		const struct prb_dump_frame *top =
			thread->frames.count ? &thread->frames.items[0] : NULL;

		if (!top && is_ours(thread))
			continue;
		prb_str_printf(&s, "%s %-7d ", thread->tid == d->tid ? ">" : " ", (int)thread->tid);
		prb_text_escape(&s, thread->name      ? thread->name
				    : thread->os_name ? thread->os_name
						      : "?");
		if (top) {
			prb_str_puts(&s, "  ");
			prb_text_escape(&s, top->qualname ? top->qualname
					    : top->func	  ? top->func
							  : "?");
			prb_str_puts(&s, "  ");
			prb_text_escape(&s, top->file ? prb_path_last(top->file) : "?");
			prb_str_printf(&s, ":%d", top->line);
		}
		prb_str_putc(&s, '\n');
	}
	return prb_output(&s);
}

struct prb_error *prb_debug_thread_command(struct prb_debug *d, const char *rest)
{
	const struct prb_dump_thread *thread;
	long tid;

	PRB_TRY(take_number(rest, d->tid, &tid));
	PRB_TRY(prb_debug_look(d));
	prb_vec_each (thread, &d->dump->threads) {
		if (thread->tid != (pid_t)tid)
			continue;
		d->frame = 0;
		d->tid = (pid_t)tid;
		return prb_debug_place(d);
	}
	return prb_error_hint(prb_error_create(PRB_ERROR_NOT_FOUND, "there is no thread %ld", tid),
			      "'threads' lists them");
}

static struct prb_error *show_locals(struct prb_debug *d, bool arguments)
{
	const struct prb_dump_options options = {
		.tid = d->tid, .locals = true, .no_waits = true, .no_command = true};
	prb_auto_dump struct prb_dump *dump = NULL;
	prb_auto_str struct prb_str s = {};
	const struct prb_dump_thread *thread;
	const struct prb_dump_frame *frame;
	const struct prb_dump_local *local;
	unsigned number = 0;

	PRB_TRY(prb_debug_look(d));
	PRB_TRY(prb_dump_create(d->target, &options, &dump));
	prb_vec_each (thread, &dump->threads) {
		prb_vec_each (frame, &thread->frames) {
			if (thread->tid != d->tid || frame->kind != PRB_FRAME_PYTHON ||
			    number++ != d->frame)
				continue;
			prb_vec_each (local, &frame->locals) {
				if (arguments && local->kind != PRB_LOCAL_ARGUMENT)
					continue;
				prb_text_escape(&s, local->name ? local->name : "?");
				prb_str_puts(&s, " = ");
				prb_text_escape(&s, local->value ? local->value : "(unbound)");
				prb_str_putc(&s, '\n');
			}
		}
	}
	return prb_output(&s);
}

struct prb_error *prb_debug_locals(struct prb_debug *d, const char *rest)
{
	(void)rest;
	return show_locals(d, false);
}

struct prb_error *prb_debug_arguments(struct prb_debug *d, const char *rest)
{
	(void)rest;
	return show_locals(d, true);
}

/** The value as it is read from outside, without running code. */
static struct prb_error *inspect(struct prb_debug *d, const char *expression, bool pretty)
{
	const struct prb_inspect_place place = {.tid = d->tid, .depth = d->frame};
	const struct prb_repr_options options = {.max_depth = pretty ? PRETTY_DEPTH : 0,
						 .max_objects = pretty ? PRETTY_DEPTH : 1,
						 .objects_alone = true,
						 .max_attributes = ITEMS,
						 .max_items = ITEMS,
						 .max_text = TEXT,
						 .max_total = TOTAL};
	struct prb_inspected found = {};
	prb_auto_str struct prb_str s = {};
	struct prb_error *err = prb_inspect(d->target, &place, expression, &options, &found);

	if (!err) {
		prb_text_escape(&s, prb_str_text(&found.value));
		prb_str_putc(&s, '\n');
		err = prb_output(&s);
	}
	prb_inspected_deinit(&found);
	return err;
}

/** Behind the frames of the last exception: its text, which may have several lines. */
static const char *text_of(const char *traceback)
{
	static const char header[] = "Traceback (most recent call last):\n";
	const char *at = traceback, *next, *text;

	while ((next = strstr(at, header)))
		at = next + strlen(header);
	for (text = at; text && *text == ' ';) {
		text = strchr(text, '\n');
		text += text != NULL;
	}
	return text && *text ? text : at;
}

/** "*** NameError: name 'x' is not defined", as pdb has it. */
static struct prb_error *put_exception(const struct prb_str *traceback)
{
	prb_auto_str struct prb_str s = {}, plain = {};
	char *rest = NULL;

	prb_str_puts(&plain, text_of(prb_str_text(traceback)));
	if (plain.failed)
		return prb_error_nomem();
	prb_str_puts(&s, "*** ");
	for (char *line = plain.length ? strtok_r(plain.data, "\n", &rest) : NULL; line;
	     line = strtok_r(NULL, "\n", &rest)) {
		prb_text_escape(&s, line);
		prb_str_putc(&s, '\n');
	}
	return prb_output(&s);
}

/** The value as the process itself shows it. */
static struct prb_error *evaluate(struct prb_debug *d, const char *expression, bool pretty)
{
	__attribute__((cleanup(prb_eval_result_deinit))) struct prb_eval_result result = {};
	const struct prb_eval how = {};
	prb_auto_free char *code =
		prb_format(pretty ? "__import__('pprint').pprint((%s))"
				  : "__import__('sys').stdout.write(repr((%s)) + '\\n') and None",
			   expression);

	if (!code)
		return prb_error_nomem();
	PRB_TRY(prb_drive_eval(d->drive, d->tid, d->frame, code, 0, NULL, &result));
	PRB_TRY(prb_output_bytes(prb_str_text(&result.out), result.out.length));
	if (result.has_traceback)
		return put_exception(&result.traceback);
	return prb_eval_judge(d->target, (int)d->target->pid, &how, &result);
}

struct prb_error *prb_debug_value(struct prb_debug *d, const char *expression, bool pretty)
{
	struct prb_error *err;

	if (!*expression)
		return prb_error_create(PRB_ERROR_USAGE, "no expression given");
	PRB_TRY(prb_debug_look(d));
	if (!d->drive)
		return inspect(d, expression, pretty);
	err = evaluate(d, expression, pretty);
	/* As of a free-threaded build, or of a thread without frames. */
	if (err && err->code == PRB_ERROR_UNSUPPORTED) {
		struct prb_error *other = inspect(d, expression, pretty);

		if (!other) {
			prb_error_destroy(err);
			return NULL;
		}
		prb_error_destroy(other);
	}
	return err;
}

struct prb_error *prb_debug_print(struct prb_debug *d, const char *rest)
{
	return prb_debug_value(d, rest, false);
}

struct prb_error *prb_debug_pretty(struct prb_debug *d, const char *rest)
{
	return prb_debug_value(d, rest, true);
}

/** Where to list: FIRST, FIRST,LAST, or without numbers around the line, or what follows. */
static struct prb_error *choose_lines(const struct prb_debug *d, const char *rest, int32_t line,
				      int32_t *first, int32_t *last)
{
	*first = d->listed ? d->listed + 1 : PRB_MAX(line - AROUND / 2, 1);
	*last = *first + AROUND - 1;
	if (!*rest)
		return NULL;
	switch (sscanf(rest, "%d , %d", first, last)) {
	case 1:
		*first = PRB_MAX(*first - AROUND / 2, 1);
		*last = *first + AROUND - 1;
		return NULL;
	case 2: /* "10,5" is five lines more, as pdb has it */
		*last = *last < *first ? *first + PRB_MIN(*last, INT32_MAX / 2) : *last;
		return NULL;
	default:
		return strcmp(rest, ".") != 0
			       ? prb_error_create(PRB_ERROR_USAGE, "'%.100s' are no lines", rest)
			       : (*first = PRB_MAX(line - AROUND / 2, 1),
				  *last = *first + AROUND - 1, NULL);
	}
}

static void put_lines(struct prb_str *s, const struct prb_str *text, int32_t first, int32_t last,
		      int32_t current)
{
	const char *at = prb_str_text(text), *end = at + text->length;

	for (int32_t line = 1; at < end && line <= last; line++) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		size_t length = (size_t)((newline ? newline : end) - at);

		if (line >= first) {
			prb_str_printf(s, "%s%5d  ", line == current ? "->" : "  ", line);
			for (size_t i = 0, start = 0; i <= length; i++) {
				if (i < length && at[i] != '\t')
					continue;
				prb_text_escape_bytes(s, at + start, i - start);
				if (i < length)
					prb_str_puts(s, "        ");
				start = i + 1;
			}
			prb_str_putc(s, '\n');
		}
		at = newline ? newline + 1 : end;
	}
}

struct prb_error *prb_debug_list(struct prb_debug *d, const char *rest)
{
	const struct prb_dump_frame *frame;
	prb_auto_str struct prb_str text = {}, s = {};
	int32_t first, last;

	PRB_TRY(prb_debug_frame(d, &frame));
	PRB_TRY(choose_lines(d, rest, frame->line, &first, &last));
	if (!frame->file)
		return prb_error_create(PRB_ERROR_NOT_FOUND, "the file of the frame is unknown");
	PRB_TRY(prb_source_read(d->target, frame->file, &text));
	if (!text.length && frame->source) {
		PRB_TRY(prb_debug_place(d));
		prb_str_puts(&s, "other lines of the source cannot be read\n");
		return prb_output(&s);
	}
	put_lines(&s, &text, first, last, frame->line);
	if (!s.length)
		prb_str_puts(&s, text.length ? "[EOF]\n" : "the source cannot be read\n");
	d->listed = last;
	return prb_output(&s);
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dump/text/render.h"

#include <inttypes.h>
#include <string.h>

#include "dump/text/fold.h"
#include "dump/text/paths.h"
#include "dump/text/source_lines.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "base/text.h"
#include "target/proc/signal_text.h"

/* Columns. Names wider than their column push the rest of their line to the right. */
enum {
	MAX_LABEL = 32,
	MIN_FUNC = 16,
	MAX_FUNC = 40,
	FRAME_INDENT = 4,
	DETAIL_INDENT = 8,
	MAX_LOCAL_NAME = 24,
	TIDS_COLUMN = 72,
};

/* Colour marks only what matters. */
#define COLOUR_RUNNING "\033[32m"
#define COLOUR_FUNC "\033[36m"
#define COLOUR_GIL "\033[1;33m"
#define COLOUR_UNREADABLE "\033[31m"
#define COLOUR_OFF "\033[0m"

struct renderer {
	const struct prb_dump *dump;
	const struct prb_render_options *options;
	FILE *out;
	struct prb_str text; /**< not written yet */
	struct prb_paths paths;
	struct prb_fold_groups groups;
	size_t number; /**< of the next Python frame of the thread */
	size_t indent; /**< of frames, beyond that of a thread's */
	size_t label_width, func_width;
};

static void renderer_deinit(struct renderer *r)
{
	prb_str_deinit(&r->text);
	prb_paths_deinit(&r->paths);
	prb_fold_groups_deinit(&r->groups);
}

static struct prb_error *write_out(struct renderer *r)
{
	if (r->text.failed)
		return prb_error_nomem();
	fwrite(prb_str_text(&r->text), 1, r->text.length, r->out);
	prb_str_truncate(&r->text, 0);
	return NULL;
}

static void coloured(struct renderer *r, const char *colour, const char *text)
{
	if (r->options->colour)
		prb_str_puts(&r->text, colour);
	prb_text_escape(&r->text, text);
	if (r->options->colour)
		prb_str_puts(&r->text, COLOUR_OFF);
}

/* The two lines about the process. */

/* Appends the cause of death of a core's process. */
static void put_death(struct renderer *r)
{
	const struct prb_dump_death *death = &r->dump->death;
	const char *opening = " (";

	if (*death->exception) {
		prb_str_puts(&r->text, " · not caught: ");
		prb_text_escape(&r->text, death->exception);
	}
	if (!death->signal)
		return;
	prb_str_puts(&r->text, " · killed by ");
	prb_put_signal(&r->text, death->signal);
	if (death->has_address)
		prb_str_printf(&r->text, " at address %#" PRIx64, death->address);
	if (death->sender)
		prb_str_printf(&r->text, " sent by %s%d",
			       death->sender == r->dump->pid ? "itself, " : "", (int)death->sender);
	if (death->why) {
		prb_str_printf(&r->text, "%s%s", opening, death->why);
		opening = "; ";
	}
	if (death->tid && death->tid != r->dump->pid) {
		prb_str_printf(&r->text, "%sthread %d", opening, (int)death->tid);
		opening = "; ";
	}
	prb_str_puts(&r->text, *opening == ';' ? ")" : "");
}

static void put_command_line(struct renderer *r)
{
	char **argument;

	if (r->dump->pid)
		prb_str_printf(&r->text, "%d  ", (int)r->dump->pid);
	prb_vec_each (argument, &r->dump->argv) {
		if (argument != r->dump->argv.items)
			prb_str_putc(&r->text, ' ');
		prb_text_argument_start(&r->text, *argument);
	}
	if (!r->dump->argv.count)
		prb_text_escape(&r->text, r->dump->exe ? r->dump->exe : "(no command line)");
	put_death(r);
	prb_str_putc(&r->text, '\n');
}

static void put_python(struct renderer *r)
{
	if (!r->dump->python_version) {
		prb_str_puts(&r->text, "no Python");
		return;
	}
	prb_str_puts(&r->text, "Python ");
	prb_text_escape(&r->text, r->dump->python_version);
	if (r->dump->free_threaded)
		prb_str_puts(&r->text, " free-threaded");
	if (r->dump->debug_build)
		prb_str_puts(&r->text, " debug build");
}

static void put_gil(struct renderer *r)
{
	const struct prb_dump_thread *t;
	unsigned holders = 0;

	prb_vec_each (t, &r->dump->threads) {
		if (!t->gil || strcmp(t->gil, "holds") != 0)
			continue;
		prb_str_puts(&r->text, holders++ ? ", " : " · GIL held by ");
		if (t->tid)
			prb_str_printf(&r->text, "%d", (int)t->tid);
		else
			prb_str_puts(&r->text, "a thread that is not known");
		if (t->interpreter > 0)
			prb_str_printf(&r->text, " (interpreter %" PRId64 ")", t->interpreter);
	}
	if (!holders && r->dump->gil_known && !r->options->partial)
		prb_str_puts(&r->text, " · GIL free");
}

static void put_summary(struct renderer *r)
{
	size_t count = r->dump->threads.count;
	unsigned paused = r->dump->paused_threads;

	put_python(r);
	prb_str_printf(&r->text, " · %zu thread%s%s", count, count == 1 ? "" : "s",
		       r->options->partial ? " shown" : "");
	put_gil(r);
	if (paused) {
		prb_str_printf(&r->text, " · %u thread%s paused ", paused, paused == 1 ? "" : "s");
		prb_text_duration(&r->text, r->dump->pause_us / 1e6);
	} else if (!r->dump->partial && !(r->options->paused && *r->options->paused)) {
		prb_str_puts(&r->text, " · no thread paused");
	}
	if (r->dump->own_frames)
		prb_str_printf(&r->text, " · %zu C frame%s of the interpreter left out",
			       r->dump->own_frames, r->dump->own_frames == 1 ? "" : "s");
	prb_str_putc(&r->text, '\n');
	if (r->options->paused && *r->options->paused) {
		coloured(r, COLOUR_GIL, r->options->paused);
		prb_str_putc(&r->text, '\n');
	}
}

/* Appends the traceback of an uncaught exception, whose stack is gone. */
static void put_exception(struct renderer *r)
{
	for (const char *at = r->dump->exception; at && *at;) {
		size_t length = strcspn(at, "\n");

		prb_str_puts(&r->text, "    ");
		prb_text_escape_bytes(&r->text, at, length);
		prb_str_putc(&r->text, '\n');
		at += length + (at[length] == '\n');
	}
}

/* The line about a thread. */

/** True if the kernel's name differs from the Python name in a useful way. */
static bool os_name_tells(const struct renderer *r, const struct prb_dump_thread *t)
{
	const struct prb_dump_thread *first = r->dump->threads.items;

	if (!t->os_name || !t->name || t == first)
		return false;
	/* Threads inherit the name of their creator; newer versions set it, cut. */
	return strncmp(t->os_name, t->name, strlen(t->os_name)) != 0 &&
	       (!first->os_name || strcmp(t->os_name, first->os_name) != 0);
}

static void put_label(struct prb_str *s, const struct renderer *r,
		      const struct prb_fold_group *group)
{
	const struct prb_dump_thread *t = group->threads.items[0];

	if (group->threads.count > 1) {
		prb_str_printf(s, "%zu threads", group->threads.count);
		return;
	}
	if (t->tid)
		prb_str_printf(s, "%d", (int)t->tid);
	else
		prb_str_puts(s, "(no thread)");
	if (t->name || t->os_name) {
		prb_str_putc(s, ' ');
		prb_text_escape(s, t->name ? t->name : t->os_name);
	}
	if (os_name_tells(r, t)) {
		prb_str_puts(s, " (");
		prb_text_escape(s, t->os_name);
		prb_str_putc(s, ')');
	}
}

static void put_state(struct renderer *r, const struct prb_fold_group *group)
{
	const struct prb_dump_thread *t = group->threads.items[0];
	const char *state = t->state ? t->state : "unknown";

	if (!strcmp(state, "running"))
		coloured(r, COLOUR_RUNNING, state);
	else
		prb_str_puts(&r->text, state);
	if (t->in_c) {
		prb_str_puts(&r->text, " in C: ");
		prb_text_escape(&r->text, t->in_c);
	}
	if (group->threads.count == 1 && t->idle_seconds >= 0.001 && strcmp(state, "running")) {
		prb_str_putc(&r->text, ' ');
		prb_text_duration(&r->text, t->idle_seconds);
	}
	if (t->waits_for) {
		prb_str_puts(&r->text, " in ");
		prb_text_escape(&r->text, t->waits_for);
	}
	if (t->gil && !strcmp(t->gil, "holds")) {
		prb_str_puts(&r->text, ", ");
		coloured(r, COLOUR_GIL, "holds the GIL");
	} else if (t->gil && (!t->waits_for || !strstr(t->waits_for, "GIL"))) {
		prb_str_puts(&r->text, ", waiting for the GIL");
	}
	if (t->gc)
		prb_str_puts(&r->text, ", collecting garbage");
	if (t->interpreter > 0)
		prb_str_printf(&r->text, ", interpreter %" PRId64, t->interpreter);
	if (t->read == PRB_READ_UNSTABLE)
		prb_str_puts(&r->text, ", unstable");
	if (t->note)
		prb_str_printf(&r->text, ": %s", t->note);
}

/** "4251–4257, 4260". */
static void put_tids(struct prb_str *s, const struct prb_fold_group *group)
{
	size_t count = group->threads.count;

	for (size_t i = 0; i < count;) {
		size_t last = i;

		while (last + 1 < count &&
		       group->threads.items[last + 1]->tid == group->threads.items[last]->tid + 1)
			last++;
		prb_str_printf(s, "%s%d", i ? ", " : "", (int)group->threads.items[i]->tid);
		if (last > i)
			prb_str_printf(s, last > i + 1 ? "–%d" : ", %d",
				       (int)group->threads.items[last]->tid);
		i = last + 1;
	}
}

static void put_thread_line(struct renderer *r, const struct prb_fold_group *group)
{
	prb_auto_str struct prb_str label = {};
	size_t start = r->text.length;

	put_label(&label, r, group);
	prb_text_column(&r->text, prb_str_text(&label), r->label_width);
	prb_str_puts(&r->text, "  ");
	put_state(r, group);
	if (group->threads.count > 1) {
		/* No colours here: only sleeping threads are folded. */
		size_t width = r->text.failed ? 0 : prb_text_width(r->text.data + start);

		prb_text_spaces(&r->text, width + 2 < TIDS_COLUMN ? TIDS_COLUMN - width : 2);
		put_tids(&r->text, group);
	}
	prb_str_putc(&r->text, '\n');
}

/* Frames. */

/* Code without a symbol: its address in its module. */
static void put_address(struct prb_str *s, const struct prb_dump_frame *frame)
{
	const char *path = frame->module ? frame->module : "", *slash = strrchr(path, '/');

	if (!*path || !frame->offset) {
		prb_str_printf(s, "0x%" PRIx64, frame->ip);
		return;
	}
	prb_text_escape(s, slash ? slash + 1 : path);
	prb_str_printf(s, "+0x%" PRIx64, frame->offset);
}

static void put_func(const struct renderer *r, struct prb_str *s,
		     const struct prb_dump_frame *frame)
{
	const char *name = frame->qualname ? frame->qualname : frame->func;

	if (frame->full_func && r->options->full_names)
		name = frame->full_func;
	if (name)
		prb_text_escape(s, name);
	else if (frame->kind == PRB_FRAME_PYTHON)
		prb_str_puts(s, "?");
	else
		put_address(s, frame);
}

static void put_place(struct renderer *r, const struct prb_dump_frame *frame)
{
	const char *path = frame->file ? frame->file : frame->module;

	prb_text_escape(&r->text, path ? prb_paths_short(&r->paths, path) : "?");
	if (frame->file && frame->line > 0)
		prb_str_printf(&r->text, ":%d", frame->line);
}

static const char *const local_kinds[] = {
	[PRB_LOCAL_ARGUMENT] = "argument", [PRB_LOCAL_LOCAL] = "local", [PRB_LOCAL_CELL] = "cell",
	[PRB_LOCAL_FREE] = "free",	   [PRB_LOCAL_NAME] = "name",
};

/* Imports and definitions of a module are not shown among its variables. */
static bool is_definition(const struct prb_dump_local *local)
{
	static const char *const begins[] = {"<module ", "<class ", "<function ", "<built-in ",
					     "<enum "};

	for (size_t i = 0; local->value && i < PRB_ARRAY_SIZE(begins); i++)
		if (!strncmp(local->value, begins[i], strlen(begins[i])))
			return local->kind == PRB_LOCAL_NAME;
	return false;
}

static void put_locals(struct renderer *r, const struct prb_dump_frame *frame)
{
	const struct prb_dump_local *local;
	unsigned left_out = 0;
	size_t column = 0;

	prb_vec_each (local, &frame->locals) {
		prb_auto_str struct prb_str name = {};

		if (!r->options->all_names && is_definition(local))
			continue;
		prb_text_escape(&name, local->name ? local->name : "?");
		size_t width = prb_text_width(prb_str_text(&name));
		if (width > column && width <= MAX_LOCAL_NAME)
			column = width;
	}
	prb_vec_each (local, &frame->locals) {
		if (!r->options->all_names && is_definition(local)) {
			left_out++;
			continue;
		}
		prb_text_spaces(&r->text, DETAIL_INDENT);
		prb_text_column(&r->text, local_kinds[local->kind], strlen("argument") + 1);
		prb_text_column(&r->text, local->name ? local->name : "?", column);
		prb_str_puts(&r->text, " = ");
		prb_text_escape(&r->text, local->value ? local->value : "(unbound)");
		prb_str_putc(&r->text, '\n');
	}
	if (!left_out)
		return;
	prb_text_spaces(&r->text, DETAIL_INDENT);
	prb_str_printf(&r->text, "%u name%s of modules, functions and classes (--all-names)\n",
		       left_out, left_out == 1 ? "" : "s");
}

/** "(46 calls deep)", "(20 times this and the next 2)". */
static void put_run(struct renderer *r, const struct prb_fold_run *run)
{
	if (run->period > 1)
		prb_str_printf(&r->text, "   (%zu times this and the next %zu)", run->times,
			       run->period - 1);
	else if (run->times > 1)
		prb_str_printf(&r->text, "   (%zu calls deep)", run->times);
}

static void put_indent(struct renderer *r, const struct prb_dump_frame *frame)
{
	prb_auto_str struct prb_str number = {};

	if (r->options->numbers && frame->kind == PRB_FRAME_PYTHON && !r->indent)
		prb_str_printf(&number, "#%zu ", r->number);
	prb_text_spaces(&r->text, r->indent);
	prb_text_column(&r->text, prb_str_text(&number), FRAME_INDENT);
}

/* Python functions stand out among C and C++ functions. */
static void put_func_column(struct renderer *r, const struct prb_dump_frame *frame)
{
	bool coloured = r->options->colour && frame->kind == PRB_FRAME_PYTHON;
	prb_auto_str struct prb_str func = {};

	put_func(r, &func, frame);
	put_indent(r, frame);
	if (coloured)
		prb_str_puts(&r->text, COLOUR_FUNC);
	prb_text_column(&r->text, prb_str_text(&func), r->func_width);
	if (coloured)
		prb_str_puts(&r->text, COLOUR_OFF);
	prb_str_puts(&r->text, "  ");
}

/**
 * @p run: of the recursion that begins here, or NULL. @p started: number of frames after this one
 * that are not shown, since every thread has them.
 */
static void put_frame(struct renderer *r, const struct prb_dump_frame *frame,
		      const struct prb_fold_run *run, size_t started)
{
	put_func_column(r, frame);
	put_place(r, frame);
	if (frame->kind == PRB_FRAME_INLINE)
		prb_str_puts(&r->text, "   (inlined)");
	if (run)
		put_run(r, run);
	if (started)
		prb_str_printf(&r->text, "   (and %zu call%s that start%s the thread)", started,
			       started == 1 ? "" : "s", started == 1 ? "s" : "");
	if (frame->error) {
		prb_str_puts(&r->text, "   ");
		coloured(r, COLOUR_UNREADABLE, "unreadable: ");
		coloured(r, COLOUR_UNREADABLE, frame->error);
	}
	prb_str_putc(&r->text, '\n');
	if (frame->source)
		prb_render_source(&r->text, frame, DETAIL_INDENT);
	put_locals(r, frame);
}

static void put_thread_error(struct renderer *r, const char *what, const char *error)
{
	prb_text_spaces(&r->text, FRAME_INDENT + r->indent);
	coloured(r, COLOUR_UNREADABLE, what);
	coloured(r, COLOUR_UNREADABLE, error);
	prb_str_putc(&r->text, '\n');
}

/**
 * Shows the error at the end where frames are missing: an unstable stack lacks its inner frames.
 */
static void put_frames(struct renderer *r, const struct prb_dump_thread *t)
{
	size_t count = t->frames.count;
	bool inner = t->read == PRB_READ_UNSTABLE;

	r->number = 0;
	if (t->error && (inner || !count))
		put_thread_error(r, count ? "incomplete: " : "unreadable: ", t->error);
	for (size_t i = 0; i < count;) {
		const struct prb_dump_frame *frame = &t->frames.items[i];
		size_t start = r->options->fold ? prb_fold_start(frame, count - i) : 0;
		struct prb_fold_run run = {1, 1};

		if (r->options->fold && !start)
			run = prb_fold_recursion(frame, count - i);
		size_t end = i + (start ? start : run.period * run.times);
		for (size_t n = 0; n < run.period; n++) {
			put_frame(r, frame + n, n ? NULL : &run, start ? start - 1 : 0);
			r->number += frame[n].kind == PRB_FRAME_PYTHON;
		}
		for (i += run.period; i < end; i++)
			r->number += t->frames.items[i].kind == PRB_FRAME_PYTHON;
	}
	if (t->error && count && !inner)
		put_thread_error(r, "incomplete: ", t->error);
	if (!t->error && !count) {
		prb_text_spaces(&r->text, FRAME_INDENT);
		prb_str_puts(&r->text, "(no Python frames)\n");
	}
}

/* Tasks and greenlets. */

/* "task worker-3", or "12 tasks". */
static void put_task_label(struct renderer *r, const struct prb_fold_tasks *group)
{
	const struct prb_dump_task *task = group->tasks.items[0];

	if (group->tasks.count > 1)
		prb_str_printf(&r->text, "%zu %ss", group->tasks.count, task->kind);
	else
		prb_str_puts(&r->text, task->kind);
	if (group->tasks.count == 1 && task->name) {
		prb_str_putc(&r->text, ' ');
		prb_text_escape(&r->text, task->name);
	}
}

/* "  worker-0, worker-1, … and 10 more". */
static void put_task_names(struct renderer *r, const struct prb_fold_tasks *group)
{
	enum { NAMES = 3 };
	size_t count = group->tasks.count, shown = count > NAMES + 1 ? NAMES : count;
	const char *first = group->tasks.items[0]->name;
	const char *last = group->tasks.items[count - 1]->name;

	/* They are sorted; trio's have the name of their function. */
	if (first && last && !strcmp(first, last))
		count = shown = 1;
	for (size_t i = 0; i < shown; i++) {
		if (!group->tasks.items[i]->name)
			return;
		prb_str_puts(&r->text, i ? ", " : "  (");
		prb_text_escape(&r->text, group->tasks.items[i]->name);
	}
	if (shown < count)
		prb_str_printf(&r->text, " and %zu more", count - shown);
	prb_str_putc(&r->text, ')');
}

static void put_task_line(struct renderer *r, const struct prb_fold_tasks *group)
{
	const struct prb_dump_task *task = group->tasks.items[0];

	prb_text_spaces(&r->text, FRAME_INDENT);
	put_task_label(r, group);
	if (task->current) {
		prb_str_puts(&r->text, "  ");
		coloured(r, COLOUR_RUNNING, "current");
	} else if (task->waits_for) {
		prb_str_puts(&r->text, "  in ");
		prb_text_escape(&r->text, task->waits_for);
		prb_str_puts(&r->text, group->same_wait ? "" : " and other waits");
	}
	if (group->tasks.count > 1)
		put_task_names(r, group);
	prb_str_putc(&r->text, '\n');
}

/** "awaited by task worker-0", for some that differ "awaited by task worker-0 and others". */
static void put_awaiter(struct renderer *r, const struct prb_fold_tasks *group, size_t number)
{
	const char *name = group->tasks.items[0]->awaiters.items[number].name;
	bool differ = false;

	for (size_t i = 1; name && i < group->tasks.count && !differ; i++) {
		const char *other = group->tasks.items[i]->awaiters.items[number].name;

		differ = !other || strcmp(name, other) != 0;
	}
	prb_text_spaces(&r->text, FRAME_INDENT + r->indent);
	prb_str_puts(&r->text, "awaited by task");
	if (name) {
		prb_str_putc(&r->text, ' ');
		prb_text_escape(&r->text, name);
	}
	prb_str_puts(&r->text, differ ? " and others\n" : "\n");
}

static void put_task(struct renderer *r, const struct prb_fold_tasks *group)
{
	const struct prb_dump_task *task = group->tasks.items[0];
	size_t next = 0;

	put_task_line(r, group);
	for (size_t i = 0; i < task->frames.count; i++) {
		for (; next < task->awaiters.count && task->awaiters.items[next].at == i; next++)
			put_awaiter(r, group, next);
		put_frame(r, &task->frames.items[i], NULL, 0);
	}
	for (; next < task->awaiters.count; next++)
		put_awaiter(r, group, next);
	if (task->error)
		put_thread_error(r, "incomplete: ", task->error);
}

/* Below a thread, what its loop or hub will go on with. */
static struct prb_error *put_tasks(struct renderer *r, const struct prb_dump_thread *thread)
{
	enum { SHOWN = 30 };
	__attribute__((cleanup(prb_fold_tasks_deinit))) struct prb_fold_task_groups groups = {};
	size_t left = 0;

	PRB_TRY(prb_fold_tasks(r->dump, thread->tid, r->options->fold, &groups));
	r->indent = FRAME_INDENT;
	for (size_t i = 0; i < groups.list.count; i++) {
		if (i < SHOWN || !r->options->fold)
			put_task(r, &groups.list.items[i]);
		else
			left += groups.list.items[i].tasks.count;
	}
	r->indent = 0;
	if (left) {
		prb_text_spaces(&r->text, FRAME_INDENT);
		prb_str_printf(&r->text, "%zu more in %zu other places (--no-fold)\n", left,
			       groups.list.count - SHOWN);
	}
	return NULL;
}

/* Widths of the columns, over the whole dump so that they do not jump. */

static void widen(size_t *column, const struct prb_str *text, size_t limit)
{
	size_t width = prb_text_width(prb_str_text(text));

	if (width > *column && width <= limit)
		*column = width;
}

static struct prb_error *measure(struct renderer *r)
{
	prb_auto_str struct prb_str text = {};
	const struct prb_fold_group *group;
	const struct prb_dump_frame *frame;
	const struct prb_dump_task *task;

	r->func_width = MIN_FUNC;
	prb_vec_each (group, &r->groups.list) {
		put_label(&text, r, group);
		widen(&r->label_width, &text, MAX_LABEL);
		prb_str_truncate(&text, 0);
		prb_vec_each (frame, &group->threads.items[0]->frames) {
			put_func(r, &text, frame);
			widen(&r->func_width, &text, MAX_FUNC);
			prb_str_truncate(&text, 0);
		}
	}
	prb_vec_each (task, &r->dump->tasks)
		prb_vec_each (frame, &task->frames) {
			put_func(r, &text, frame);
			widen(&r->func_width, &text, MAX_FUNC);
			prb_str_truncate(&text, 0);
		}
	return text.failed ? prb_error_nomem() : NULL;
}

struct prb_error *prb_render_text(const struct prb_dump *dump,
				  const struct prb_render_options *options, FILE *out)
{
	__attribute__((cleanup(renderer_deinit))) struct renderer r = {
		.dump = dump, .options = options, .out = out};
	const struct prb_fold_group *group;

	PRB_TRY(prb_paths_init(&r.paths, dump, options->full_paths));
	PRB_TRY(prb_fold_threads(dump, options->fold, &r.groups));
	PRB_TRY(measure(&r));
	put_command_line(&r);
	put_summary(&r);
	put_exception(&r);
	prb_vec_each (group, &r.groups.list) {
		prb_str_putc(&r.text, '\n');
		put_thread_line(&r, group);
		put_frames(&r, group->threads.items[0]);
		PRB_TRY(put_tasks(&r, group->threads.items[0]));
		PRB_TRY(write_out(&r));
	}
	return write_out(&r);
}

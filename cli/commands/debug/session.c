/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/commands/debug/session.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "cli/commands/pause/pause.h"
#include "cli/commands/pause/warn.h"
#include "command/exit.h"
#include "command/interrupt.h"
#include "command/output.h"
#include "dump/dump.h"
#include "dump/text/paths.h"
#include "dump/text/source_lines.h"

enum { CLOCK, ANY, INDENT = 4, PATIENCE = 3 };

/** Readable when the pause has lasted long enough; 0: never. */
static struct prb_error *set_clock(struct prb_debug *d, double seconds)
{
	struct itimerspec when = {
		.it_value = {.tv_sec = (time_t)seconds,
			     .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)}};

	if (timerfd_settime(d->ends[CLOCK], 0, &when, NULL))
		return prb_error_os(errno, "cannot set a limit for the pause");
	return prb_pause_limit_own_life(seconds);
}

static struct prb_error *watch(struct prb_debug *d)
{
	struct epoll_event event = {.events = EPOLLIN};

	d->ends[CLOCK] = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	d->ends[ANY] = epoll_create1(EPOLL_CLOEXEC);
	if (d->ends[CLOCK] < 0 || d->ends[ANY] < 0 ||
	    epoll_ctl(d->ends[ANY], EPOLL_CTL_ADD, d->ends[CLOCK], &event) ||
	    epoll_ctl(d->ends[ANY], EPOLL_CTL_ADD, prb_drive_descriptor(d->drive), &event))
		return prb_error_os(errno, "cannot watch the pause");
	return set_clock(d, d->max);
}

static struct prb_error *pause_target(struct prb_debug *d, double within)
{
	struct prb_gil_locks gil;
	const struct prb_drive_how how = {
		.within = within,
		.interruptions = d->console.patience ? prb_eval_console_interruptions : NULL,
		.context = &d->console};

	prb_pause_look(d->target, d->max, false, &gil);
	/* Ctrl-Z would leave it paused. */
	signal(SIGTSTP, SIG_IGN);
	prb_interrupt_hold(true);

	struct prb_error *err = prb_drive_create(d->target, &how, &d->drive);
	prb_interrupt_hold(false);
	PRB_TRY(err);
	return watch(d);
}

struct prb_error *prb_debug_begin(struct prb_target *t, double within, double max,
				  struct prb_debug *ret)
{
	*ret = (struct prb_debug){
		.target = t, .max = max, .ends = {-1, -1}, .console = {.patience = PATIENCE}};
	if (t->loadable)
		PRB_TRY(pause_target(ret, within));
	return prb_debug_look(ret);
}

void prb_debug_end(struct prb_debug *d)
{
	struct prb_debug_commands *each;

	prb_drive_destroy(d->drive);
	for (size_t i = 0; i < PRB_ARRAY_SIZE(d->ends); i++)
		if (d->ends[i] >= 0)
			close(d->ends[i]);
	prb_dump_destroy(d->dump);
	prb_target_destroy(d->target);
	prb_vec_each (each, &d->commands)
		prb_str_deinit(&each->lines);
	prb_vec_free(&d->commands);
	prb_str_deinit(&d->text);
	prb_str_deinit(&d->last);
}

bool prb_debug_happened(struct prb_debug *d)
{
	uint64_t expired;
	struct prb_error *err = prb_drive_check(d->drive);

	if (!err && read(d->ends[CLOCK], &expired, sizeof(expired)) > 0)
		err = prb_error_hint(
			prb_error_create(PRB_ERROR_TIMEOUT,
					 "process %d was paused for as long as --max says, and "
					 "runs again",
					 (int)d->target->pid),
			"--max sets the limit");
	if (!err)
		return false;
	prb_exit_report(err);
	d->over = true;
	return true;
}

/** The dump's threads have changed: another one is selected if the selected one is gone. */
static void settle(struct prb_debug *d)
{
	const struct prb_dump_thread *thread, *first = NULL;

	prb_vec_each (thread, &d->dump->threads) {
		if (thread->tid == d->tid)
			return;
		if (!first || (!first->frames.count && thread->frames.count))
			first = thread;
	}
	d->tid = first ? first->tid : 0;
	d->frame = 0;
}

struct prb_error *prb_debug_look(struct prb_debug *d)
{
	const struct prb_dump_options options = {.source = true};

	if (d->dump)
		return NULL;
	PRB_TRY(prb_dump_create(d->target, &options, &d->dump));
	settle(d);
	return NULL;
}

struct prb_error *prb_debug_thread(struct prb_debug *d, const struct prb_dump_thread **ret)
{
	const struct prb_dump_thread *thread;

	PRB_TRY(prb_debug_look(d));
	prb_vec_each (thread, &d->dump->threads) {
		if (thread->tid != d->tid)
			continue;
		*ret = thread;
		return NULL;
	}
	return prb_error_create(PRB_ERROR_NOT_FOUND, "there is no thread with Python frames");
}

struct prb_error *prb_debug_frame(struct prb_debug *d, const struct prb_dump_frame **ret)
{
	const struct prb_dump_thread *thread;
	const struct prb_dump_frame *frame;
	unsigned left = d->frame;

	PRB_TRY(prb_debug_thread(d, &thread));
	prb_vec_each (frame, &thread->frames) {
		if (frame->kind != PRB_FRAME_PYTHON || left--)
			continue;
		*ret = frame;
		return NULL;
	}
	if (thread->error)
		return prb_error_create(PRB_ERROR_NOT_FOUND, "thread %d: %.300s", (int)d->tid,
					thread->error);
	return prb_error_create(PRB_ERROR_NOT_FOUND, "thread %d has no Python frame %u",
				(int)d->tid, d->frame);
}

struct prb_error *prb_debug_runs(struct prb_debug *d)
{
	prb_dump_destroy(d->dump);
	d->dump = NULL;
	d->frame = 0;
	d->listed = 0;
	return set_clock(d, 0);
}

void prb_debug_put_place(struct prb_str *s, const struct prb_dump_thread *thread,
			 const struct prb_dump_frame *frame)
{
	const char *name = frame->qualname ? frame->qualname : frame->func;

	if (thread->name)
		prb_text_escape(s, thread->name);
	prb_str_printf(s, thread->name ? " (%d) in " : "thread %d in ", (int)thread->tid);
	prb_text_escape(s, name ? name : "?");
	prb_str_puts(s, " at ");
	prb_text_escape(s, frame->file ? prb_path_last(frame->file) : "?");
	prb_str_printf(s, ":%d\n", frame->line);
}

struct prb_error *prb_debug_place(struct prb_debug *d)
{
	const struct prb_dump_thread *thread;
	const struct prb_dump_frame *frame;
	prb_auto_str struct prb_str s = {};

	PRB_TRY(prb_debug_thread(d, &thread));
	PRB_TRY(prb_debug_frame(d, &frame));
	if (d->frame)
		prb_str_printf(&s, "#%u  ", d->frame);
	prb_debug_put_place(&s, thread, frame);

	struct prb_dump_frame plain = *frame;
	prb_auto_free char *line = NULL;
	/* All of the innermost line is to run, so nothing of it is marked; nor is its block shown.
	 */
	if (!d->frame && frame->source) {
		line = strndup(frame->source, strcspn(frame->source, "\n"));
		plain.source = line;
		plain.col = plain.end_col = -1;
	}
	prb_render_source(&s, &plain, INDENT);
	d->listed = 0;
	return prb_output(&s);
}

/** The lines that belong to a breakpoint. */
static struct prb_error *run_commands(struct prb_debug *d, unsigned number)
{
	struct prb_debug_commands *each;
	prb_auto_free char *lines = NULL;
	char *rest = NULL;

	prb_vec_each (each, &d->commands)
		if (each->number == number && !lines)
			lines = strdup(prb_str_text(&each->lines));
	for (char *line = lines ? strtok_r(lines, "\n", &rest) : NULL; line && !d->over;
	     line = strtok_r(NULL, "\n", &rest)) {
		bool runs = d->dump == NULL;

		PRB_TRY(prb_debug_line(d, line));
		/* A command that lets the program run ends them, as the stop has lines of its own.
		 */
		if (runs != (d->dump == NULL))
			break;
	}
	return NULL;
}

struct prb_error *prb_debug_stopped(struct prb_debug *d, const struct prb_drive_stop *stop)
{
	prb_auto_str struct prb_str s = {};

	PRB_TRY(set_clock(d, d->max));
	if (stop->tid)
		d->tid = stop->tid;
	PRB_TRY(prb_debug_look(d));
	if (stop->breakpoint)
		prb_str_printf(&s, "breakpoint %u: ", stop->breakpoint);
	if (stop->problem.length)
		prb_str_printf(&s, "%s\n", prb_str_text(&stop->problem));
	PRB_TRY(prb_output(&s));
	prb_error_destroy(prb_debug_place(d));
	return stop->breakpoint ? run_commands(d, stop->breakpoint) : NULL;
}

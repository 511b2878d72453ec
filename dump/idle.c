/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dump/idle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "target/proc/process.h"
#include "target/proc/text.h"
#include "dump/tasks/cpu_clock.h"

enum {
	AGE_SLACK_MS = 100,  /* the kernel reports a thread's start in ticks */
	TOLERATED_LOSS = 10, /* a tenth */
	CLOCK_TRIES = 3,
};

/* The time at which a thread last ran, and the CPU whose clock has it. */
struct last_run {
	struct prb_target *target;
	struct prb_dump_thread *thread;
	double last; /* ms */
	double age;  /* ms */
	int cpu;
};

struct prb_idle {
	PRB_VEC(struct last_run) runs;
	PRB_VEC(struct prb_cpu_clock) clocks; /* each CPU once */
};

struct prb_error *prb_idle_create(struct prb_idle **ret)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? NULL : prb_error_nomem();
}

static double recall(struct prb_target *t, pid_t tid)
{
	prb_auto_str struct prb_str text = {}, key = {};

	prb_str_printf(&key, "idle:%d", tid);
	return prb_target_recall(t, prb_str_text(&key), &text) ? strtod(prb_str_text(&text), NULL)
							       : -1;
}

static void remember(struct prb_target *t, pid_t tid, double seconds)
{
	prb_auto_str struct prb_str text = {}, key = {};

	if (seconds < 0)
		return;
	prb_str_printf(&key, "idle:%d", tid);
	prb_str_printf(&text, "%.6f", seconds);
	prb_target_remember(t, prb_str_text(&key), prb_str_text(&text), text.length);
}

static double clock_ms(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* Opens the file without recording it: a snapshot has the thread as of the reading of its stack. */
static int open_fact(struct prb_target *t, pid_t tid, const char *name)
{
	int fd = -1;
	prb_auto_error struct prb_error *err =
		prb_target_open_fact(t, &fd, "task/%d/%s", tid, name);

	return err ? -1 : fd;
}

static bool read_text(int fd, char *text, size_t size)
{
	ssize_t n = fd < 0 ? -1 : pread(fd, text, size - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	return n > 0;
}

static bool read_last(int fd, double *ret)
{
	char text[4096];

	return read_text(fd, text, sizeof(text)) && prb_cpu_clock_parse(text, ret);
}

/*
 * False if unknown. The CPU is the right one if the thread did not run between the two reads of
 * `sched`.
 */
static bool read_last_run(struct prb_target *t, pid_t tid, struct last_run *ret)
{
	prb_auto_close int sched = open_fact(t, tid, "sched"), stat = open_fact(t, tid, "stat");
	int64_t numbers[PRB_STAT_NUMBERS];
	char text[1024];
	double again;

	if (!read_last(sched, &ret->last) || !read_text(stat, text, sizeof(text)) ||
	    !prb_stat_numbers(text, numbers) || !read_last(sched, &again) || again != ret->last)
		return false;
	ret->cpu = (int)numbers[PRB_STAT_PROCESSOR];
	ret->age = prb_proc_age((uint64_t)numbers[PRB_STAT_START]) * 1e3;
	return true;
}

static struct prb_cpu_clock *find_clock(struct prb_idle *idle, int cpu)
{
	struct prb_cpu_clock *clock;

	prb_vec_each (clock, &idle->clocks)
		if (clock->cpu == cpu)
			return clock;
	return NULL;
}

static struct prb_error *note(struct prb_idle *idle, struct prb_target *t,
			      struct prb_dump_thread *thread)
{
	struct last_run *run, found = {.target = t, .thread = thread};

	if (!read_last_run(t, thread->tid, &found))
		return NULL;
	/* Each CPU of a run has its clock in the list. */
	if (!find_clock(idle, found.cpu)) {
		struct prb_cpu_clock *clock = prb_vec_push(&idle->clocks);

		if (!clock)
			return prb_error_nomem();
		clock->cpu = found.cpu;
	}
	run = prb_vec_push(&idle->runs);
	if (!run)
		return prb_error_nomem();
	*run = found;
	return NULL;
}

/*
 * The time that the clock lost while the thread slept is missing in the difference. That loss is
 * unknown: at most all since boot, most likely the usual share.
 */
double prb_idle_credible(double last, double now, double lost, double age, double uptime)
{
	double idle = now - last;

	if (now <= 0 || last <= 0 || idle < 0 || idle > age + AGE_SLACK_MS)
		return -1;
	if (lost * TOLERATED_LOSS > idle && lost * TOLERATED_LOSS > uptime)
		return -1;
	return idle / 1e3;
}

static bool may_be_idle(const struct prb_dump_thread *thread)
{
	return thread->tid && strcmp(thread->state, "running") != 0 &&
	       strcmp(thread->state, "unknown") != 0;
}

struct prb_error *prb_idle_note(struct prb_idle *idle, struct prb_target *t, struct prb_dump *dump,
				const bool *wanted)
{
	for (size_t i = 0; i < dump->threads.count; i++) {
		struct prb_dump_thread *thread = &dump->threads.items[i];

		if ((wanted && !wanted[i]) || !may_be_idle(thread))
			continue;
		if (t->local)
			PRB_TRY(note(idle, t, thread));
		else
			thread->idle_seconds = recall(t, thread->tid);
	}
	return NULL;
}

/**
 * On an overloaded machine a clock may not be had in time. Without it a thread that has slept for
 * long is one that may have run just now: it is tried again.
 */
static void read_clocks(struct prb_idle *idle)
{
	for (int tries = 0; tries < CLOCK_TRIES; tries++) {
		struct prb_cpu_clock *clock;
		bool missing = false;

		prb_cpu_clocks_read(idle->clocks.items, idle->clocks.count);
		prb_vec_each (clock, &idle->clocks)
			missing |= clock->late && !clock->now;
		if (!missing)
			break;
	}
}

void prb_idle_finish(struct prb_idle *idle)
{
	struct last_run *run;

	if (idle->runs.count)
		read_clocks(idle);
	prb_vec_each (run, &idle->runs) {
		const struct prb_cpu_clock *clock = find_clock(idle, run->cpu);

		run->thread->idle_seconds = prb_idle_credible(run->last, clock->now, clock->lost,
							      run->age, clock_ms(CLOCK_MONOTONIC));
		remember(run->target, run->thread->tid, run->thread->idle_seconds);
	}
	prb_vec_free(&idle->runs);
	prb_vec_free(&idle->clocks);
	free(idle);
}

struct prb_error *prb_idle_fill(struct prb_target *t, struct prb_dump *dump, const bool *wanted)
{
	struct prb_idle *idle;
	struct prb_error *err;
	bool any;

	PRB_TRY(prb_idle_create(&idle));
	err = prb_idle_note(idle, t, dump, wanted);
	any = idle->runs.count;
	prb_idle_finish(idle);
	return err || !any ? err : prb_target_same_program(t, NULL);
}

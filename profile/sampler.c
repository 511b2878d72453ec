/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile/sampler.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#include "base/clock.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/urgent.h"
#include "profile/account.h"
#include "profile/schedule.h"
#include "profile/stack.h"

enum {
	REFRESH_NS = 1000000000, /* threads and states are listed at least so often */
	LATE_NS = 1000000,	 /* at such intervals late threads are looked after */
	REFRESH_SHARE = 10,	 /* and at most so that it takes one part of so many */
};

struct sampler {
	struct prb_target *target;
	const struct prb_profile_options *options;
	struct prb_recording *recording;
	struct prb_subjects subjects;
	struct prb_codes *codes;
	struct prb_natives *natives; /* NULL: Python frames alone */
	struct prb_stack_reader reader;
	struct prb_schedule schedule;
	int64_t end;
	int64_t refresh_from, refresh_until; /* when the next listing may be, and must be */
	bool ended_any, stateless_ran;	     /* in this round */
	clockid_t process_clock;
	int64_t process_begin, process_now, own_before;
};

static int64_t read_clock(clockid_t clock)
{
	struct timespec t;

	return clock_gettime(clock, &t) ? -1 : (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static bool cancelled(const struct sampler *s)
{
	return s->options->cancelled && s->options->cancelled(s->options->context);
}

static struct prb_error *sample_one(struct sampler *s, size_t index)
{
	struct prb_subject *subject = &s->subjects.list.items[index];
	struct prb_task_watch *task = &s->subjects.tasks.list.items[index];
	struct prb_stack_sample sample;

	if (subject->ended || (s->options->tid && subject->tid != s->options->tid))
		return NULL;
	if (subject->asleep && prb_task_slept(&s->subjects.tasks, task, true))
		return prb_account_same(s->recording, subject, prb_clock_ns());
	prb_task_note(&s->subjects.tasks, task);
	if (!prb_task_has_ended(task))
		PRB_TRY(prb_stack_read(&s->reader, index, &sample));
	if (prb_task_has_ended(task) || sample.gone) {
		subject->ended = s->ended_any = true;
		return NULL;
	}
	/* C frames tell by themselves. */
	s->stateless_ran |=
		!s->natives && !subject->states.count && sample.times.turns != subject->times.turns;
	return prb_account_sample(s->recording, subject, &sample, prb_clock_ns());
}

static struct prb_error *sample_all(struct sampler *s)
{
	s->ended_any = s->stateless_ran = s->reader.stale = false;
	for (size_t i = 0; i < s->subjects.list.count; i++)
		PRB_TRY(sample_one(s, i));
	s->recording->cost.times++;
	return NULL;
}

static struct prb_error *check_tid(struct sampler *s)
{
	const struct prb_subject *subject;

	prb_vec_each (subject, &s->subjects.list)
		if (subject->tid == s->options->tid)
			return NULL;
	return prb_error_create(PRB_ERROR_NO_PROCESS, "process %d has no thread %d", s->target->pid,
				s->options->tid);
}

/* Before a round: what is new must be known, or it would be told wrongly. */
static struct prb_error *refresh(struct sampler *s, int64_t now)
{
	bool wanted = s->ended_any || s->stateless_ran || s->reader.stale ||
		      now >= s->refresh_until || prb_subjects_changed(&s->subjects);
	int64_t cost;

	if (!wanted || now < s->refresh_from)
		return NULL;
	PRB_TRY(prb_subjects_refresh(&s->subjects, now));
	cost = prb_clock_ns() - now;
	s->refresh_from = now + cost * REFRESH_SHARE;
	s->refresh_until = now + REFRESH_NS;
	return NULL;
}

/* All that are sampled. */
static bool all_ended(const struct sampler *s)
{
	const struct prb_subject *subject;
	pid_t tid = s->options->tid;

	prb_vec_each (subject, &s->subjects.list)
		if (!subject->ended && (!tid || subject->tid == tid))
			return false;
	return true;
}

/* Waits for the next time; false if the recording is to end first. */
static bool wait_for_time(struct sampler *s)
{
	struct prb_profile_cost *cost = &s->recording->cost;
	int64_t next = prb_schedule_next(&s->schedule, prb_clock_ns(), &cost->missed);
	int64_t now;

	next = PRB_MIN(next, s->end);
	for (now = prb_clock_ns(); now < next && !cancelled(s); now = prb_clock_ns()) {
		int64_t until = s->reader.late.count ? PRB_MIN(next, now + LATE_NS) : next;

		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME,
				&(struct timespec){.tv_sec = until / 1000000000,
						   .tv_nsec = until % 1000000000},
				NULL);
		prb_stack_let_go(&s->reader, false);
	}
	if (cancelled(s)) {
		s->recording->end = PRB_PROFILE_INTERRUPTED;
		return false;
	}
	cost->late += (double)(now - next) > s->schedule.mean / 2;
	s->reader.woke = now;
	return true;
}

static struct prb_error *ended(struct sampler *s, enum prb_profile_end end)
{
	s->recording->end = end;
	return NULL;
}

/* One round; *ret_more is false if it was the last one. */
static struct prb_error *run_round(struct sampler *s, bool *ret_more)
{
	struct prb_error *err;
	size_t runs = s->recording->runs.count;
	int64_t process;

	*ret_more = false;
	err = refresh(s, s->reader.woke);
	if (!err && s->natives)
		err = prb_natives_refresh(s->natives, s->reader.woke);
	if (!err)
		err = sample_all(s);
	if (prb_error_catch(&err, PRB_ERROR_NO_PROCESS))
		return ended(s, PRB_PROFILE_TARGET_ENDED);
	PRB_TRY(err);
	process = read_clock(s->process_clock);
	s->process_now = PRB_MAX(process, s->process_now);
	/* What was read meanwhile of another program is worth nothing. */
	err = prb_target_same_program(s->target, NULL);
	if (err) {
		prb_error_destroy(err);
		prb_account_undo(s->recording, &s->subjects, runs);
		return ended(s, PRB_PROFILE_TARGET_EXEC);
	}
	if (all_ended(s))
		return ended(s,
			     s->options->tid ? PRB_PROFILE_THREAD_ENDED : PRB_PROFILE_TARGET_ENDED);
	*ret_more = s->reader.woke < s->end;
	return NULL;
}

/* What it cost so far, and how long it has taken. */
static void sum_up(struct sampler *s, int64_t now)
{
	struct prb_recording *recording = s->recording;

	recording->duration = now - recording->begun;
	recording->cost.again = s->reader.again;
	recording->cost.own_cpu = read_clock(CLOCK_PROCESS_CPUTIME_ID) - s->own_before;
	prb_pauses_sum_up(&s->reader.pauses, &recording->cost);
	if (s->process_begin >= 0)
		recording->process_cpu = s->process_now - s->process_begin;
}

static struct prb_error *store(struct sampler *s)
{
	struct prb_store *store = s->options->store;
	int64_t now = prb_clock_ns();
	bool cut;

	if (!store || !prb_store_is_due(store, s->recording, now))
		return NULL;
	sum_up(s, now);
	PRB_TRY(prb_store_put(store, s->recording, now, &cut));
	if (cut)
		prb_account_cut(s->recording, &s->subjects, 0);
	return NULL;
}

static struct prb_error *show(struct sampler *s)
{
	struct prb_live *live = s->options->live;
	int64_t now = prb_clock_ns();

	if (!live || !prb_live_is_due(live, now))
		return NULL;
	sum_up(s, now);
	PRB_TRY(prb_live_put(live, s->recording, now));
	prb_account_cut(s->recording, &s->subjects, 0);
	return NULL;
}

static struct prb_error *run_all(struct sampler *s)
{
	bool more = true;

	while (more && wait_for_time(s)) {
		PRB_TRY(run_round(s, &more));
		PRB_TRY(store(s));
		PRB_TRY(show(s));
	}
	return NULL;
}

static struct prb_error *begin(struct sampler *s)
{
	uint64_t key[2] = {};
	struct timespec now;

	if (getrandom(key, sizeof(key), 0) < 0)
		return prb_error_os(errno, "cannot draw random numbers");
	PRB_TRY(prb_codes_create(s->recording->tree, &s->codes));
	PRB_TRY(prb_subjects_begin(&s->subjects, s->target, s->recording));
	if (s->options->native)
		PRB_TRY(prb_natives_create(s->target, s->recording, &s->natives));
	s->reader = (struct prb_stack_reader){
		.subjects = &s->subjects, .codes = s->codes, .natives = s->natives};
	if (s->options->tid)
		PRB_TRY(check_tid(s));
	if (clock_getcpuclockid(s->target->pid, &s->process_clock))
		return prb_error_os(ESRCH, "process %d is gone", s->target->pid);
	clock_gettime(CLOCK_REALTIME, &now);
	s->recording->started = (double)now.tv_sec + (double)now.tv_nsec / 1e9;
	s->recording->begun = prb_clock_ns();
	s->end = s->recording->begun + (int64_t)(s->options->seconds * 1e9);
	s->process_begin = s->process_now = read_clock(s->process_clock);
	for (size_t i = 0; i < s->subjects.list.count; i++)
		s->subjects.list.items[i].seen = s->recording->begun;
	prb_schedule_begin(&s->schedule, key, s->options->rate, s->recording->begun);
	return NULL;
}

/* What is stored has the stacks' old numbers, and is to get the new ones. */
static struct prb_error *name_natives(struct sampler *s)
{
	struct prb_store *store = s->options->store;
	size_t count = s->recording->tree->stacks.count;
	prb_auto_free uint32_t *renamed = NULL;

	if (store) {
		PRB_TRY(prb_store_put_rest(store, s->recording));
		s->recording->runs.count = 0;
	}
	PRB_TRY(prb_natives_name(s->natives, &renamed));
	if (store)
		prb_store_rename(store, prb_steal(&renamed), count);
	return NULL;
}

static struct prb_error *finish(struct sampler *s)
{
	struct prb_subject *subject;

	prb_vec_each (subject, &s->subjects.list)
		PRB_TRY(prb_account_rest(s->recording, subject));
	sum_up(s, prb_clock_ns());
	if (s->natives)
		PRB_TRY(name_natives(s));
	return s->options->store ? prb_store_finish(s->options->store, s->recording) : NULL;
}

/* On a busy machine that is what keeps pauses short. */
static struct prb_error *run_first(struct sampler *s)
{
	prb_auto_urgent struct prb_urgent urgent = {};

	prb_urgent_begin(&urgent);
	return run_all(s);
}

static struct prb_error *record(struct sampler *s)
{
	PRB_TRY(begin(s));
	if (s->options->store)
		PRB_TRY(prb_store_begin(s->options->store, s->recording));
	s->own_before = read_clock(CLOCK_PROCESS_CPUTIME_ID);
	PRB_TRY(run_first(s));
	return finish(s);
}

struct prb_error *prb_profile_record(struct prb_target *target,
				     const struct prb_profile_options *options,
				     struct prb_recording **ret)
{
	struct sampler s = {.target = target, .options = options, .subjects.folder = -1};
	struct prb_error *err;

	if (!target->moves)
		return prb_error_hint(prb_error_create(PRB_ERROR_UNSUPPORTED,
						       "a %s does not run: there is nothing to "
						       "sample",
						       prb_target_kind_name(target->kind)),
				      "'probing FILE dump' shows its stacks");
	PRB_TRY(prb_recording_create(&s.recording));
	s.recording->pid = target->pid;
	s.recording->rate = options->rate;
	s.recording->tid = options->tid;
	s.recording->native = options->native;
	err = prb_str_copy(options->command, &s.recording->command);
	if (!err)
		err = record(&s);
	prb_stack_let_go(&s.reader, true);
	prb_stack_end(&s.reader);
	prb_subjects_end(&s.subjects);
	prb_codes_destroy(s.codes);
	prb_natives_destroy(s.natives);
	prb_store_stop(options->store);
	if (err && !options->live)
		prb_recording_destroy(s.recording);
	else
		*ret = s.recording;
	return err;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile/sampler.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#include "base/clock.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/urgent.h"
#include "profile/account.h"
#include "profile/schedule.h"
#include "profile/source.h"
#include "profile/stack.h"
#include "proc/process.h"
#include "ptrace/stop.h"
#include "target/spec/command_line.h"

enum {
	REFRESH_NS = 1000000000, /* threads and states are listed at least so often */
	LATE_NS = 1000000,	 /* at such intervals late threads are looked after */
	REFRESH_SHARE = 10,	 /* and at most so that it takes one part of so many */
	WATCH_NS = 50000000,	 /* after which the end of a child is looked for */
};

/* What the process ran before it ran another program, for the names of its functions. */
struct past {
	struct prb_target *target;
	struct prb_natives *natives;
};

struct sampler {
	struct prb_target *target;
	const struct prb_profile_program *program; /* that was started for this, or NULL */
	PRB_VEC(struct past) past;
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
	bool nothing;			     /* it ended before it was looked at */
	clockid_t process_clock;
	int64_t process_begin, process_now, own_before;
	bool gate_open; /* options->gate is not ours */
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
		prb_account_last(&s->subjects.tasks, subject, task);
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
		      prb_subjects_search_is_due(&s->subjects, now) || now >= s->refresh_until ||
		      prb_subjects_changed(&s->subjects);
	int64_t used = prb_clock_thread_ns();

	if (!wanted || now < s->refresh_from)
		return NULL;
	PRB_TRY(prb_subjects_refresh(&s->subjects, now));
	s->refresh_from = now + (prb_clock_thread_ns() - used) * REFRESH_SHARE;
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

static bool program_ended(const struct sampler *s)
{
	return s->program && s->program->has_ended(s->program->context);
}

/* While the sampler sleeps and no thread is about to stop, others may read the process. */
static void open_gate(struct sampler *s)
{
	if (s->options->gate && !s->gate_open)
		pthread_mutex_unlock(s->options->gate);
	s->gate_open = true;
}

static void close_gate(struct sampler *s)
{
	if (s->options->gate && s->gate_open)
		pthread_mutex_lock(s->options->gate);
	s->gate_open = false;
}

/* Waits for the next time, which is now and the last one if the recording is to end first. */
static void wait_for_time(struct sampler *s)
{
	struct prb_profile_cost *cost = &s->recording->cost;
	int64_t next = prb_schedule_next(&s->schedule, prb_clock_ns(), &cost->missed);
	int64_t now;

	next = PRB_MIN(next, s->end);
	for (now = prb_clock_ns(); now < next && !cancelled(s); now = prb_clock_ns()) {
		int64_t until = s->reader.late.count ? PRB_MIN(next, now + LATE_NS) : next;

		if (program_ended(s))
			break;
		if (s->program)
			until = PRB_MIN(until, now + WATCH_NS);
		if (!s->reader.late.count)
			open_gate(s);
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME,
				&(struct timespec){.tv_sec = until / 1000000000,
						   .tv_nsec = until % 1000000000},
				NULL);
		prb_stack_let_go(&s->reader, false);
	}
	close_gate(s);
	if (cancelled(s)) {
		s->recording->end = PRB_PROFILE_INTERRUPTED;
		s->end = now;
	}
	cost->late += (double)(now - next) > s->schedule.mean / 2;
	s->reader.woke = now;
}

static struct prb_error *ended(struct sampler *s, enum prb_profile_end end)
{
	s->recording->end = end;
	return NULL;
}

static int64_t read_clock_of(pid_t pid, clockid_t *clock)
{
	return clock_getcpuclockid(pid, clock) ? -1 : read_clock(*clock);
}

static void stop_looking(struct sampler *s)
{
	prb_stack_let_go(&s->reader, true);
	prb_stack_end(&s->reader);
	prb_subjects_end(&s->subjects);
	prb_codes_destroy(prb_steal(&s->codes));
	s->subjects.folder = -1;
}

/* The process as the program that it runs now. */
static struct prb_error *look_at(struct sampler *s)
{
	struct prb_target *target = s->target;

	PRB_TRY(prb_codes_create(s->recording->tree, &s->codes));
	if (s->options->modules)
		prb_codes_watch_modules(s->codes);
	PRB_TRY((s->program ? prb_subjects_begin_started : prb_subjects_begin)(&s->subjects, target,
									       s->recording));
	if (s->options->native)
		PRB_TRY(prb_natives_create(target, s->recording, (unsigned)s->past.count,
					   &s->natives));
	s->reader.subjects = s->reader.causes.subjects = &s->subjects;
	s->reader.codes = s->codes;
	s->reader.natives = s->natives;
	return NULL;
}

/* Its first thread goes on, with what it has counted so far. */
struct carried {
	struct prb_task_times times;
	int64_t unplaced, seen;
};

static struct prb_error *part(struct sampler *s, struct carried *ret)
{
	struct prb_subject *subject;
	struct past *past = prb_vec_push(&s->past);

	if (!past)
		return prb_error_nomem();
	*past = (struct past){prb_steal(&s->target), prb_steal(&s->natives)};
	ret->seen = s->reader.woke;
	prb_vec_each (subject, &s->subjects.list) {
		PRB_TRY(prb_account_rest(s->recording, subject));
		s->recording->threads.items[subject->number].ended = true;
		if (subject->tid == s->program->pid)
			*ret = (struct carried){subject->times, subject->unplaced, subject->seen};
	}
	stop_looking(s);
	return NULL;
}

/* One that has ended has none any more; then it is what it was. */
static struct prb_error *name_command(struct sampler *s)
{
	prb_auto_str struct prb_str text = {};
	struct prb_process process;

	PRB_TRY(prb_process_describe(s->target->pid, &process));
	if (process.argv.count)
		prb_command_line_text(&text, &process);
	prb_process_deinit(&process);
	if (text.failed)
		return prb_error_nomem();
	if (!text.length)
		return NULL;
	free(prb_steal(&s->recording->command));
	return prb_str_copy(prb_str_text(&text), &s->recording->command);
}

static struct prb_error *open_program(struct sampler *s)
{
	PRB_TRY(prb_target_open_process(s->program->pid, &s->target));
	PRB_TRY(name_command(s));
	return look_at(s);
}

/* The process runs another program: that is recorded from now on. */
static struct prb_error *go_on_with_next(struct sampler *s)
{
	struct carried carried = {};
	struct prb_subject *subject;

	free(prb_steal(&s->recording->python));
	PRB_TRY(part(s, &carried));
	PRB_TRY(open_program(s));
	prb_vec_each (subject, &s->subjects.list) {
		subject->seen = carried.seen;
		if (subject->tid != s->program->pid)
			continue;
		subject->times = carried.times;
		subject->unplaced = carried.unplaced;
	}
	return NULL;
}

static struct prb_error *ran_another(struct sampler *s, bool *ret_more)
{
	struct prb_error *err;

	if (!s->program)
		return ended(s, PRB_PROFILE_TARGET_EXEC);
	err = go_on_with_next(s);
	*ret_more = !err;
	if (!err || err->code == PRB_ERROR_NOMEM)
		return err;
	prb_log("profile", 1, "%s", err->message);
	prb_error_destroy(err);
	return ended(s, program_ended(s) ? PRB_PROFILE_TARGET_ENDED : PRB_PROFILE_TARGET_EXEC);
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
		return ran_another(s, ret_more);
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
	bool more = !s->nothing;

	while (more) {
		wait_for_time(s);
		PRB_TRY(run_round(s, &more));
		PRB_TRY(store(s));
		PRB_TRY(show(s));
	}
	return NULL;
}

/* It may have ended already, and then there is nothing to look at; the end is met in a round. */
static struct prb_error *begin_program(struct sampler *s)
{
	struct prb_error *err = open_program(s);

	if (!err || err->code == PRB_ERROR_NOMEM || !program_ended(s))
		return err;
	prb_error_destroy(err);
	s->recording->end = PRB_PROFILE_TARGET_ENDED;
	s->nothing = true;
	return NULL;
}

static struct prb_error *begin(struct sampler *s)
{
	uint64_t key[2] = {};
	struct timespec now;

	if (getrandom(key, sizeof(key), 0) < 0)
		return prb_error_os(errno, "cannot draw random numbers");
	if (s->program)
		PRB_TRY(begin_program(s));
	else
		PRB_TRY(look_at(s));
	if (s->options->tid)
		PRB_TRY(check_tid(s));
	s->process_begin = read_clock_of(s->recording->pid, &s->process_clock);
	if (s->process_begin < 0 && !s->program)
		return prb_error_os(ESRCH, "process %d is gone", s->target->pid);
	s->process_now = s->process_begin;
	if (s->program)
		s->process_begin = 0;
	if (s->program)
		s->program->release(s->program->context);
	clock_gettime(CLOCK_REALTIME, &now);
	s->recording->started = (double)now.tv_sec + (double)now.tv_nsec / 1e9;
	s->recording->begun = prb_clock_ns();
	s->end = s->options->seconds > 0
			 ? s->recording->begun + (int64_t)(s->options->seconds * 1e9)
			 : INT64_MAX;
	for (size_t i = 0; i < s->subjects.list.count; i++)
		s->subjects.list.items[i].seen = s->recording->begun;
	prb_schedule_begin(&s->schedule, key, s->options->rate, s->recording->begun);
	return NULL;
}

/* Those of each program that it ran. */
static struct prb_error *name_all(struct sampler *s, uint32_t **ret_renamed)
{
	prb_auto_free struct prb_natives **all = calloc(s->past.count + 1, sizeof(*all));
	const struct past *past;
	size_t count = 0;

	if (!all)
		return prb_error_nomem();
	prb_vec_each (past, &s->past)
		if (past->natives)
			all[count++] = past->natives;
	if (s->natives)
		all[count++] = s->natives;
	return prb_natives_name(all, count, ret_renamed);
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
	PRB_TRY(name_all(s, &renamed));
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
	if (s->natives || (s->options->native && s->past.count))
		PRB_TRY(name_natives(s));
	if (s->options->source)
		PRB_TRY(prb_profile_add_source(s->recording, s->target, s->program));
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

static void end_past(struct sampler *s)
{
	struct past *past;

	prb_vec_each (past, &s->past) {
		prb_natives_destroy(past->natives);
		prb_target_destroy(past->target);
	}
	prb_vec_free(&s->past);
}

static struct prb_error *record_all(struct sampler *s, pid_t pid, struct prb_recording **ret)
{
	const struct prb_profile_options *options = s->options;
	struct prb_error *err;

	PRB_TRY(prb_recording_create(&s->recording));
	s->recording->pid = pid;
	s->recording->rate = options->rate;
	s->recording->tid = options->tid;
	s->recording->native = options->native;
	err = prb_str_copy(options->command, &s->recording->command);
	if (options->gate)
		pthread_mutex_lock(options->gate);
	if (!err)
		err = record(s);
	stop_looking(s);
	open_gate(s);
	prb_natives_destroy(s->natives);
	prb_store_stop(options->store);
	end_past(s);
	if (err && !options->live)
		prb_recording_destroy(s->recording);
	else
		*ret = s->recording;
	return err;
}

struct prb_error *prb_profile_record(struct prb_target *target,
				     const struct prb_profile_options *options,
				     struct prb_recording **ret)
{
	struct sampler s = {.target = target, .options = options, .subjects.folder = -1};

	if (!target->moves)
		return prb_error_hint(prb_error_create(PRB_ERROR_UNSUPPORTED,
						       "a %s does not run: there is nothing to "
						       "sample",
						       prb_target_kind_name(target->kind)),
				      "'probing FILE dump' shows its stacks");
	return record_all(&s, target->pid, ret);
}

struct prb_error *prb_profile_record_program(const struct prb_profile_program *program,
					     const struct prb_profile_options *options,
					     struct prb_recording **ret)
{
	struct sampler s = {.program = program, .options = options, .subjects.folder = -1};
	struct prb_error *err;

	prb_stop_keep_status(program->pid);
	err = record_all(&s, program->pid, ret);
	prb_stop_keep_status(0);
	prb_target_destroy(s.target);
	return err;
}

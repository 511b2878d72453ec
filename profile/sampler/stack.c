/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile/sampler/stack.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "target/proc/process.h"
#include "target/task.h"
#include "target/ptrace/stop.h"

enum {
	STOP_TIMEOUT_MS = 1000,
	ATTEMPTS = 16,	      /* while it is caught between two frames each time */
	ASLEEP_ATTEMPTS = 3,  /* without a stop, while it wakes up each time */
	DOUBTS = 4,	      /* how often it is doubted that a thread has no frames */
	VIEW_READS = 4096,    /* then a new view forgets which pages were ever needed */
	EARLY_NS = 25 * 1000, /* how far from our waking up a thread begins to wait that we */
	LATE_NS = 60 * 1000,  /* took the processor from, as its counters show later */
};

/* One reading of a thread. */
struct reading {
	struct prb_stack_reader *reader;
	struct prb_subject *subject;
	struct prb_task_watch *task;
	struct prb_view *view;
	struct prb_mem *mem; /* of that */
	size_t frames;
	struct prb_cause_frame innermost;
	uint64_t holder; /* the state that holds the GIL for which it competes; 0: none */
	bool gil;	 /* that is its own */
	bool broken;	 /* what was read is no stack */
	bool traced;	 /* another tracer has it, so it is not read */
	bool incomplete; /* more of the C stack is needed */
	bool certain;	 /* without Python frames it is what it looks like, by its C frames */
};

static void look_through(struct reading *r, struct prb_view *view)
{
	r->view = view;
	r->mem = prb_view_mem(view);
}

/* A view of its own, which knows which pages it needs; *ret_new: not yet. */
static struct prb_error *use_own_view(struct reading *r, bool *ret_new)
{
	struct prb_subject *subject = r->subject;

	if (subject->view && subject->reads >= VIEW_READS) {
		prb_view_destroy(prb_steal(&subject->view));
		subject->reads = 0;
	}
	*ret_new = !subject->view;
	if (!subject->view)
		PRB_TRY(prb_view_create(r->reader->subjects->target->mem, &subject->view));
	subject->reads++;
	look_through(r, subject->view);
	return NULL;
}

/*
 * A thread that has slept since before this round of samples needs no view of its own: it can share
 * the pages that were read in this round for other threads.
 */
static struct prb_error *use_view_for_sleep(struct reading *r, const struct prb_task_times *times)
{
	struct prb_stack_reader *reader = r->reader;
	bool new;

	if (!prb_task_times_equal(times, &r->subject->times)) {
		PRB_TRY(use_own_view(r, &new));
		prb_view_new_epoch(r->view);
		return NULL;
	}
	if (!reader->shared)
		PRB_TRY(prb_view_create(reader->subjects->target->mem, &reader->shared));
	look_through(r, reader->shared);
	return NULL;
}

/* The state may have been freed and used again since it was listed, or the thread put it away. */
static struct prb_error *check_owner(struct reading *r, const struct prb_subject_state *state,
				     bool *ret)
{
	const struct prb_layout *l = &state->py->layout;
	uint64_t pthread, kept = state->thread.address;

	PRB_TRY(prb_mem_read_u64(r->mem, state->thread.address + (uint64_t)l->thread_id, &pthread));
	if (state->kept_at)
		PRB_TRY(prb_mem_read_u64(r->mem, state->kept_at, &kept));
	*ret = pthread == state->thread.pthread && kept == state->thread.address;
	return NULL;
}

static struct prb_error *keep_for_merge(struct prb_stack_reader *reader,
					const struct prb_py_frames *frames)
{
	const struct prb_py_frame *frame;

	prb_vec_each (frame, &frames->list) {
		struct prb_py_frame *slot = prb_vec_push(&reader->frames.list);

		if (!slot)
			return prb_error_nomem();
		*slot = *frame;
	}
	return NULL;
}

/* The GIL holder when the thread is looked at; none if unknown. */
static struct prb_error *read_gil(struct reading *r, const struct prb_subject_state *state)
{
	struct prb_error *err =
		prb_python_gil_holder(state->py, r->mem, state->thread.gil, &r->holder);

	r->gil |= !err && r->holder && r->holder == state->thread.address;
	if (err && err->code != PRB_ERROR_NOMEM && err->code != PRB_ERROR_NO_PROCESS) {
		prb_error_destroy(prb_steal(&err));
		r->holder = 0;
	}
	return err;
}

/* Hidden frames are no Python function's. */
static void note_innermost(struct reading *r, const struct prb_subject_state *state,
			   const struct prb_py_frames *frames)
{
	for (size_t i = 0; !r->innermost.py && i < frames->list.count; i++)
		if (!frames->list.items[i].hidden)
			r->innermost = (struct prb_cause_frame){state->py, frames->list.items[i]};
}

static struct prb_error *walk_state(struct reading *r, const struct prb_subject_state *state)
{
	struct prb_py_frames frames = {};
	bool owned;
	struct prb_error *err = check_owner(r, state, &owned);

	if (!err && !owned) {
		r->reader->stale = true;
		return NULL;
	}
	if (!err)
		err = read_gil(r, state);
	if (!err)
		err = prb_python_frames(state->py, r->mem, state->thread.address, &frames);
	r->frames += frames.list.count;
	note_innermost(r, state, &frames);
	if (!err)
		err = prb_codes_note(r->reader->codes, state->py, r->mem, &frames);
	if (!err && r->reader->natives)
		err = keep_for_merge(r->reader, &frames);
	prb_py_frames_deinit(&frames);
	if (!err || err->code == PRB_ERROR_NOMEM || err->code == PRB_ERROR_NO_PROCESS)
		return err;
	prb_log("profile", 2, "thread %d: %s", r->subject->tid, err->message);
	prb_error_destroy(err);
	r->broken = true;
	return NULL;
}

/* Reads the stack as if nothing moved; that it did not is for the caller to prove. */
static struct prb_error *walk(struct reading *r)
{
	const struct prb_subject_state *state;

	r->frames = 0;
	r->broken = r->incomplete = r->certain = r->gil = false;
	r->innermost.py = NULL;
	r->holder = 0;
	r->reader->frames.list.count = 0;
	prb_codes_begin(r->reader->codes);
	PRB_TRY(prb_view_prefetch(r->view));
	prb_vec_each (state, &r->subject->states)
		PRB_TRY(walk_state(r, state));
	if (r->reader->awaits && !r->broken)
		return prb_awaits_note(r->reader->awaits, r->reader->codes, r->mem, r->subject);
	return NULL;
}

static struct prb_error *take_note(const struct reading *r, const char *text,
				   struct prb_stack_sample *ret)
{
	struct prb_tree *tree = r->reader->subjects->recording->tree;
	uint32_t alone;

	PRB_TRY(prb_tree_note(tree, text, &alone));
	return prb_tree_call(tree, r->reader->root, tree->stacks.items[alone].frame, &ret->stack);
}

static struct prb_error *take(struct reading *r, struct prb_stack_sample *ret)
{
	if (r->broken) {
		ret->unreadable = true;
		return take_note(r, r->traced ? PRB_NOTE_TRACED : "<unreadable>", ret);
	}
	if (r->reader->natives) {
		const uint32_t *frames;

		PRB_TRY(prb_codes_keep_frames(r->reader->codes, &frames));
		PRB_TRY(prb_natives_keep(r->reader->natives, frames, &ret->stack));
	} else {
		PRB_TRY(prb_codes_keep(r->reader->codes, &ret->stack));
	}
	if (ret->stack == r->reader->root)
		return take_note(r, "<not in Python>", ret);
	return r->reader->awaits
		       ? prb_awaits_insert(r->reader->awaits, r->reader->codes, &ret->stack)
		       : NULL;
}

static enum prb_run_state state_of(char letter)
{
	switch (letter) {
	case 'R':
		return PRB_RUN_ON_CPU;
	case 'D':
		return PRB_RUN_IN_KERNEL;
	case 'T':
	case 't':
		return PRB_RUN_HELD;
	default:
		return PRB_RUN_ASLEEP;
	}
}

/* Of what was copied. */
static struct prb_error *unwind(struct reading *r)
{
	struct prb_stack_reader *reader = r->reader;
	const struct prb_subject_state *states = r->subject->states.items;
	enum prb_native_result result;

	PRB_TRY(prb_natives_unwind(reader->natives, &reader->subjects->pythons,
				   r->subject->states.count ? states->py : NULL, &reader->frames,
				   &r->subject->native, &result));
	r->incomplete = result == PRB_NATIVE_SHORT;
	r->certain = result == PRB_NATIVE_UNWOUND;
	r->broken |= result == PRB_NATIVE_BETWEEN;
	reader->stale |= result == PRB_NATIVE_STALE && !r->subject->states.count;
	return NULL;
}

/* No thread is stopped, so this can be retried until enough of the stack was copied. */
static struct prb_error *unwind_asleep(struct reading *r, const struct prb_task *call)
{
	enum { GROWTHS = 4 };
	struct prb_regs regs = {.machine = r->reader->subjects->target->machine, .pc = call->pc};

	prb_regs_set(&regs, prb_regs_sp(regs.machine), call->sp);
	r->incomplete = true;
	for (int i = 0; i < GROWTHS && r->incomplete; i++) {
		PRB_TRY(prb_natives_copy(r->reader->natives, &r->subject->native, &regs));
		PRB_TRY(unwind(r));
	}
	return NULL;
}

/* Without a stop. *ret_done is false if it did not sleep all the time. */
static struct prb_error *read_asleep(struct reading *r, struct prb_stack_sample *ret,
				     bool *ret_done)
{
	struct prb_subjects *s = r->reader->subjects;
	struct prb_task call = {.tid = r->task->tid, .state = r->task->state, .syscall = -1};

	*ret_done = false;
	if (!prb_task_times(&s->tasks, r->task, &ret->times))
		return NULL;
	PRB_TRY(prb_task_read_call(s->target, &call));
	PRB_TRY(use_view_for_sleep(r, &ret->times));
	PRB_TRY(walk(r));
	if (r->reader->natives && !call.sp)
		return NULL;
	if (r->reader->natives)
		PRB_TRY(unwind_asleep(r, &call));
	PRB_TRY(prb_causes_find(&r->reader->causes, r->subject, &call, r->mem, &r->innermost,
				r->holder, &ret->wait));
	*ret_done = prb_task_slept(&s->tasks, r->task, call.sp != 0) && !r->incomplete;
	if (!*ret_done)
		return NULL;
	ret->state = state_of(r->task->state);
	ret->asleep = call.sp != 0;
	ret->gil = r->gil;
	return take(r, ret);
}

/*
 * Whether a thread that could run when it was asked to stop had its processor: it has had no other
 * turn since; or it has lost it only to us, when we woke up.
 */
static bool had_processor(const struct prb_stack_reader *reader,
			  const struct prb_task_times *before, const struct prb_task_times *after,
			  int64_t stopped_at)
{
	int64_t queued = stopped_at - (after->waited - before->waited);

	return after->turns == before->turns ||
	       (queued >= reader->woke - EARLY_NS && queued <= reader->woke + LATE_NS);
}

/* The work while it is stopped: copy, follow the frames, and read its counters. */
static struct prb_error *read_held(struct reading *r, struct prb_stop *stop,
				   struct prb_stack_sample *ret)
{
	struct prb_tasks *tasks = &r->reader->subjects->tasks;
	struct prb_regs regs;

	if (r->reader->natives) {
		PRB_TRY(prb_stop_registers(stop, &regs));
		PRB_TRY(prb_natives_copy(r->reader->natives, &r->subject->native, &regs));
	}
	PRB_TRY(walk(r));
	prb_task_note_counters(tasks, r->task);
	if (!prb_task_times(tasks, r->task, &ret->times))
		return prb_error_os(ESRCH, "thread %d is gone", r->task->tid);
	return NULL;
}

/*
 * One timer interrupt may have woken both us and a thread that slept for a time: then it did not
 * wait because of us.
 */
static struct prb_error *woke_with_us(struct reading *r, bool *ret)
{
	static const char *const timed[] = {"nanosleep", "clock_nanosleep", "futex",
					    "select",	 "pselect6",	    "poll",
					    "ppoll",	 "epoll_wait",	    "epoll_pwait"};
	struct prb_target *target = r->reader->subjects->target;
	struct prb_task call = {.tid = r->task->tid, .state = 't', .syscall = -1};
	const char *name;

	*ret = false;
	PRB_TRY(prb_task_read_call(target, &call));
	name = call.in_syscall ? prb_syscall_name(target->machine, call.syscall) : NULL;
	for (size_t i = 0; name && i < PRB_ARRAY_SIZE(timed); i++)
		*ret |= !strcmp(name, timed[i]);
	return NULL;
}

/* Stops the seized thread and reads it. */
static struct prb_error *hold(struct reading *r, struct prb_stop *stop,
			      struct prb_stack_sample *ret)
{
	const struct prb_task_times before = ret->times;
	int64_t stopped_at;
	bool ran, woke = false;

	prb_view_new_epoch(r->view);
	PRB_TRY(prb_stop_ask(stop));
	PRB_TRY(prb_stop_wait(stop, STOP_TIMEOUT_MS));
	stopped_at = prb_clock_ns();
	PRB_TRY(read_held(r, stop, ret));
	ret->gil = r->gil;
	ret->wait = 0;
	ran = had_processor(r->reader, &before, &ret->times, stopped_at);
	if (ran && ret->times.turns != before.turns)
		PRB_TRY(woke_with_us(r, &woke));
	ret->state = ran && !woke ? PRB_RUN_ON_CPU : PRB_RUN_QUEUED;
	return NULL;
}

/*
 * A thread that went to sleep in the kernel, where nothing can stop it, stops when it comes back:
 * it must not have to wait for us then.
 */
static struct prb_error *let_go_later(struct prb_stack_reader *reader, const struct prb_stop *stop)
{
	struct prb_stop *slot = prb_vec_push(&reader->late);

	if (!slot)
		return prb_error_nomem();
	*slot = *stop;
	return NULL;
}

void prb_stack_let_go(struct prb_stack_reader *reader, bool all)
{
	size_t kept = 0;
	double pause;

	for (size_t i = 0; i < reader->late.count; i++) {
		struct prb_stop *stop = &reader->late.items[i];
		struct prb_error *err = prb_stop_wait(stop, 0);

		if (err && err->code == PRB_ERROR_TIMEOUT && !all)
			reader->late.items[kept++] = *stop;
		else
			prb_stop_end(stop, &pause);
		prb_error_destroy(err);
	}
	reader->late.count = kept;
}

static bool is_late(const struct prb_stack_reader *reader, pid_t tid)
{
	const struct prb_stop *stop;

	prb_vec_each (stop, &reader->late)
		if (stop->tid == tid)
			return true;
	return false;
}

static void note_tracer(struct prb_stack_reader *reader, pid_t tracer)
{
	reader->tracers |= tracer && reader->tracer && tracer != reader->tracer;
	reader->tracer = tracer ? tracer : reader->tracer;
}

/*
 * Another recording or dump may trace it for an instant, and be gone before its name is known; a
 * debugger traces it for longer.
 */
static struct prb_error *seize(struct reading *r, struct prb_stop *ret)
{
	enum { SEIZE_ATTEMPTS = 20, SEIZE_NAP_NS = 50 * 1000 };
	int attempts = r->subject->refused ? 1 : SEIZE_ATTEMPTS;
	bool traced = false;

	for (int attempt = 1;; attempt++) {
		struct prb_error *err = prb_stop_seize(r->task->tid, ret);

		r->subject->refused = err && err->code == PRB_ERROR_PERMISSION;
		note_tracer(r->reader, ret->tracer);
		traced |= ret->tracer != 0;
		r->traced = r->subject->refused && traced;
		if (!r->subject->refused || attempt >= attempts)
			return err;
		prb_error_destroy(err);
		nanosleep(&(struct timespec){.tv_nsec = SEIZE_NAP_NS}, NULL);
	}
}

/*
 * Seized, it has to be stopped, also if it has gone to sleep meanwhile: only so it can be let go.
 * *ret_done is false if it was caught between two frames.
 */
static struct prb_error *read_stopped(struct reading *r, bool doubt, struct prb_stack_sample *ret,
				      bool *ret_done)
{
	struct prb_tasks *tasks = &r->reader->subjects->tasks;
	struct prb_task_times now;
	struct prb_error *err;
	struct prb_stop stop;
	double pause;
	char state;
	bool new;

	*ret_done = false;
	PRB_TRY(use_own_view(r, &new));
	/* Data read from a running thread is not used, but its addresses are known then. */
	if (new)
		PRB_TRY(walk(r));
	PRB_TRY(seize(r, &stop));
	if (!prb_task_times_now(tasks, r->task, &now) ||
	    !prb_task_times(tasks, r->task, &ret->times) ||
	    !prb_task_times_equal(&now, &ret->times))
		prb_task_note(tasks, r->task);
	state = r->task->state;
	prb_task_times(tasks, r->task, &ret->times);
	err = hold(r, &stop, ret);
	if (err && err->code == PRB_ERROR_TIMEOUT && !let_go_later(r->reader, &stop))
		return err;

	bool stopped = stop.stopped;
	ret->held = stopped && !err;
	prb_stop_end(&stop, &pause);
	if (stopped && !err)
		prb_pauses_add(r->reader->pauses, pause);
	PRB_TRY(err);
	if (state != 'R')
		ret->state = state_of(state);
	if (r->reader->natives && !r->broken)
		PRB_TRY(unwind(r));
	*ret_done = !r->broken && !r->incomplete && (r->frames || r->certain || !doubt);
	return *ret_done ? take(r, ret) : NULL;
}

/* It needs a processor to leave its place: its counters show that it had one. */
static void let_run(struct reading *r)
{
	enum { LOOKS = 20, LOOK_NS = 50 * 1000 };
	struct prb_task_watch now = *r->task;

	r->reader->again++;
	for (int i = 0; i < LOOKS && !strcmp(now.counters, r->task->counters); i++) {
		nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
		prb_task_note(&r->reader->subjects->tasks, &now);
	}
}

/* Each attempt looks at it anew. */
static struct prb_error *read_somehow(struct reading *r, struct prb_stack_sample *ret)
{
	struct prb_tasks *tasks = &r->reader->subjects->tasks;
	bool ran_first = r->task->state == 'R', done = false;
	int asleep = 0;

	for (int attempt = 1; attempt <= ATTEMPTS && !done; attempt++) {
		if (attempt > 1)
			prb_task_note(tasks, r->task);
		if (prb_task_has_ended(r->task))
			return prb_error_os(ESRCH, "thread %d is gone", r->task->tid);
		if (r->task->state != 'R' && asleep++ < ASLEEP_ATTEMPTS) {
			PRB_TRY(read_asleep(r, ret, &done));
			continue;
		}
		ret->none = r->reader->never_stops;
		if (ret->none)
			return NULL;
		if (is_late(r->reader, r->task->tid))
			break;
		PRB_TRY(read_stopped(r, attempt <= DOUBTS, ret, &done));
		if (!done && r->incomplete)
			r->reader->again++;
		else if (!done)
			let_run(r);
	}
	if (!done) {
		r->broken = true;
		PRB_TRY(take(r, ret));
	}
	/* A thread that began to run only during the look did not run at the time of the sample. */
	if (!ran_first && ret->state == PRB_RUN_ON_CPU)
		ret->state = PRB_RUN_QUEUED;
	return NULL;
}

/* Another recording lets go of a thread soon, which may take its time on a busy machine. */
static bool is_recorder(pid_t tracer)
{
	struct prb_process other, own;
	prb_auto_error struct prb_error *err = prb_process_describe(tracer, &other);
	bool same;

	if (err)
		return err->code == PRB_ERROR_NO_PROCESS;
	err = prb_process_describe(getpid(), &own);
	same = !err && other.comm && own.comm && !strcmp(other.comm, own.comm);
	if (!err)
		prb_process_deinit(&own);
	prb_process_deinit(&other);
	return same;
}

/*
 * Stops may fail because other tracers are busy right now, but no single one for all of the time.
 */
static bool is_in_turn(const struct prb_stack_reader *reader)
{
	enum { PATIENCE_NS = 300 * 1000 * 1000 };

	return reader->tracers ||
	       (reader->tracer &&
		(reader->woke - reader->subjects->recording->begun < PATIENCE_NS ||
		 is_recorder(reader->tracer)));
}

/*
 * Another tracer may have it for now. If no thread at all can be stopped, the recording ends,
 * unless it is of a child, or one of many.
 */
static struct prb_error *refused(struct reading *r, struct prb_error *err,
				 struct prb_stack_sample *ret)
{
	if (err->code == PRB_ERROR_NOMEM)
		return err;
	if (err->code == PRB_ERROR_PERMISSION && !r->reader->pauses->count &&
	    !r->reader->subjects->process && !is_in_turn(r->reader))
		return prb_error_hint(err, "a thread that runs is stopped for some 40 µs to be "
					   "read: end the other tracer, or allow ptrace "
					   "('probing PID dump --nonblocking' does without)");
	prb_log("profile", 1, "%s", err->message);
	ret->gone = err->code == PRB_ERROR_NO_PROCESS;
	prb_error_destroy(err);
	r->broken = true;
	return take(r, ret);
}

/*
 * A thread whose stack is not read. A thread that still has not run is examined, so that it need
 * not be the next time.
 */
static struct prb_error *tell_state(const struct reading *r, struct prb_stack_sample *ret)
{
	struct prb_task call = {.tid = r->task->tid, .state = r->task->state, .syscall = -1};

	if (ret->times.turns == r->subject->times.turns && ret->state != PRB_RUN_ON_CPU)
		PRB_TRY(prb_task_read_call(r->reader->subjects->target, &call));
	ret->asleep = call.sp != 0;
	return take_note(r, "<not in Python>", ret);
}

struct prb_error *prb_stack_read(struct prb_stack_reader *reader, size_t index,
				 struct prb_stack_sample *ret)
{
	struct reading r = {
		.reader = reader,
		.subject = &reader->subjects->list.items[index],
		.task = &reader->subjects->tasks.list.items[index],
	};
	struct prb_error *err;

	*ret = (struct prb_stack_sample){.state = state_of(r.task->state)};
	prb_task_times(&reader->subjects->tasks, r.task, &ret->times);
	if (!r.subject->states.count && !reader->natives)
		return tell_state(&r, ret);
	err = read_somehow(&r, ret);
	return err ? refused(&r, err, ret) : NULL;
}

void prb_stack_begin_round(struct prb_stack_reader *reader)
{
	reader->stale = false;
	prb_view_destroy(prb_steal(&reader->shared));
}

void prb_stack_end(struct prb_stack_reader *reader)
{
	prb_view_destroy(prb_steal(&reader->shared));
	prb_vec_free(&reader->late);
	prb_causes_deinit(&reader->causes);
	reader->causes = (struct prb_causes){};
	prb_py_frames_deinit(&reader->frames);
}

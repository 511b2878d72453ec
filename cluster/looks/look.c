/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cluster/looks/look.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/pool.h"
#include "base/str.h"
#include "cluster/looks/call.h"
#include "cluster/looks/flight.h"
#include "cluster/looks/operation.h"
#include "cluster/looks/pace_spots.h"
#include "cluster/looks/progress.h"
#include "cluster/looks/thread_text.h"
#include "dump/model/program_frame.h"
#include "cluster/looks/training_thread.h"
#include "cluster/looks/worker.h"
#include "dump/idle.h"
#include "dump/tasks/tasks.h"
#include "target/proc/process.h"
#include "target/proc/text.h"
#include "target/target.h"

enum { MOST_TRIES = 20 /* to see a thread wait for the GIL */ };

void prb_seen_deinit(struct prb_seen *seen)
{
	prb_dump_destroy(seen->dump);
	free(seen->error);
	free(seen->worker);
	free(seen->cycle);
	free(seen->holder);
	free(seen->chain);
	free(seen->end);
	free(seen->end_log);
	prb_pace_destroy(seen->pace);
	prb_call_destroy(seen->call);
	prb_flight_destroy(seen->flight);
	free(seen->no_flight);
}

void prb_watch_deinit(struct prb_watch *watch)
{
	prb_dump_found_deinit(&watch->found);
	prb_target_destroy(watch->target);
	*watch = (struct prb_watch){};
}

void prb_round_deinit(struct prb_round *round)
{
	struct prb_seen *seen;

	prb_vec_each (seen, &round->list)
		prb_seen_deinit(seen);
	prb_vec_free(&round->list);
	prb_pool_destroy(round->pool);
}

/** Decorators of the module are named like this; the function that they wrap is what was called. */
static bool is_wrapper(const struct prb_dump_frame *frame)
{
	return frame->func &&
	       (!strcmp(frame->func, "wrapper") || !strcmp(frame->func, "func_wrapper"));
}

/**
 * The collective that the thread is in: the outermost function of torch.distributed at the inner
 * end of the stack, or else the C++ function nearest to the Python code that waits in one.
 */
static void find_collective(struct prb_seen *seen)
{
	const struct prb_dump_frame *frame, *native = NULL, *gpu = NULL;
	bool python = false;

	prb_vec_each (frame, &seen->main->frames) {
		if (frame->kind != PRB_FRAME_PYTHON) {
			if (!python && prb_operation_is_function(frame->func))
				native = frame;
			else if (!python && prb_operation_is_gpu(frame->func))
				gpu = frame;
			continue;
		}
		python = true;
		if (prb_operation_is_module(frame->module)) {
			if (is_wrapper(frame))
				continue;
			seen->collective = prb_frame_name(frame);
			seen->called = frame;
			continue;
		}
		seen->caller = seen->collective || native || gpu ? frame : NULL;
		break;
	}
	if (seen->collective || (!native && !gpu))
		return;
	seen->in_c = native ? native : gpu;
	seen->collective = prb_operation_of_mpi(seen->in_c->func);
	seen->unnamed = !seen->collective;
	if (!seen->collective)
		seen->collective = seen->in_c->func;
	seen->gpu = !native;
}

static void find_main(struct prb_seen *seen)
{
	pid_t wanted = seen->trains ? seen->trains : seen->dump->main_tid;
	const struct prb_dump_thread *thread;

	prb_vec_each (thread, &seen->dump->threads)
		if (thread->tid == wanted || !seen->main)
			seen->main = thread;
}

void prb_seen_find(struct prb_seen *seen)
{
	find_main(seen);
	find_collective(seen);
}

static struct prb_error *read_counters(struct prb_target *target, struct prb_seen *seen)
{
	struct prb_tasks tasks = {};
	const struct prb_task_watch *task;
	struct prb_error *err = prb_tasks_create(target, &tasks);

	prb_vec_each (task, &tasks.list) {
		struct prb_task_times times;

		if (task->tid != seen->main->tid)
			continue;
		seen->state = task->state;
		if (prb_task_times(&tasks, task, &times))
			seen->ran_ns = times.ran;
	}
	prb_tasks_deinit(&tasks);
	return err;
}

static void forget(struct prb_seen *seen)
{
	prb_dump_destroy(seen->dump);
	seen->dump = NULL;
	seen->main = NULL;
	seen->collective = NULL;
	seen->caller = NULL;
	seen->called = NULL;
	seen->in_c = NULL;
	seen->unnamed = false;
	seen->gpu = false;
}

static struct prb_error *make_dump(struct prb_watch *watch, const struct prb_dump_options *options,
				   struct prb_seen *seen)
{
	forget(seen);
	/* Python stays where it is; libraries come. */
	if (options->native)
		PRB_TRY(prb_dump_create(watch->target, options, &seen->dump));
	else
		PRB_TRY(prb_dump_create_with(watch->target, options, &watch->found, &seen->dump));
	if (!seen->dump->threads.count)
		return NULL;
	prb_seen_find(seen);
	return NULL;
}

/**
 * True if only the C stack shows whether the thread is in a collective: it waits in C. MPI and
 * CUDA wait by computing.
 */
static bool needs_native(const struct prb_seen *seen, bool idle, bool running)
{
	const struct prb_dump_frame *frame = seen->main ? prb_dump_innermost(seen->main) : NULL;

	/* A program may wait by itself for what it began without waiting: work.wait(). */
	return frame && !seen->collective &&
	       ((idle && !strcmp(seen->main->state, "idle")) ||
		(running && !strcmp(seen->main->state, "running")) ||
		(frame->module &&
		 (!strncmp(frame->module, "torch.", 6) || !strncmp(frame->module, "horovod.", 8))));
}

struct prb_error *prb_look_brief(struct prb_watch *watch, struct prb_seen *seen)
{
	struct prb_dump_options options = {.no_waits = true, .no_command = true};
	const struct prb_dump_frame *frame;
	bool stays;

	prb_training_thread_only(seen, &options);
	PRB_TRY(make_dump(watch, &options, seen));
	frame = seen->main ? prb_dump_innermost(seen->main) : NULL;
	stays = frame && watch->ip == frame->ip && watch->line == frame->line;
	watch->ip = frame ? frame->ip : 0;
	watch->line = frame ? frame->line : 0;
	/* Only its wait shows that it wants the GIL, to return from the collective. */
	if (seen->collective)
		options.no_waits = false;
	else if (!needs_native(seen, false, stays))
		return NULL;
	else
		options.native = true;
	return make_dump(watch, &options, seen);
}

/** True if the C stack of the main thread shows that it is in a collective. */
static struct prb_error *waits_in_c(struct prb_watch *watch, pid_t trains, bool *ret)
{
	struct prb_dump_options options = {.native = true, .no_waits = true, .no_command = true};
	__attribute__((cleanup(prb_seen_deinit))) struct prb_seen seen = {.trains = trains};

	prb_training_thread_only(&seen, &options);
	PRB_TRY(make_dump(watch, &options, &seen));
	*ret = seen.collective;
	return NULL;
}

/**
 * True if the main thread may wait for the GIL, and was awake just then: a GIL waiter wakes every 5
 * ms.
 */
static bool may_want_gil(const struct prb_seen *seen)
{
	const struct prb_dump_thread *thread;

	if (!seen->main || seen->main->gil || strcmp(seen->main->state, "running") != 0)
		return false;
	prb_vec_each (thread, &seen->dump->threads)
		if (thread != seen->main && thread->gil && !strcmp(thread->gil, "holds"))
			return true;
	return false;
}

/** Looks again until the thread is seen asleep, or does not want the GIL. */
static struct prb_error *see_it_wait(struct prb_watch *watch,
				     const struct prb_dump_options *options, struct prb_seen *seen)
{
	const struct timespec pause = {.tv_nsec = 3000000};

	for (unsigned n = 0; n < MOST_TRIES && may_want_gil(seen); n++) {
		nanosleep(&pause, NULL);
		PRB_TRY(make_dump(watch, options, seen));
	}
	return NULL;
}

/** A main thread that waits for another thread of the rank: that one's collective is the rank's. */
static bool waits_for_thread(const struct prb_seen *seen)
{
	static const char *const modules[] = {"threading", "queue", "concurrent.futures._base",
					      "concurrent.futures.thread"};
	const struct prb_dump_frame *frame = seen->main ? prb_dump_innermost(seen->main) : NULL;

	for (size_t i = 0; frame && frame->module && i < PRB_ARRAY_SIZE(modules); i++)
		if (!strcmp(frame->module, modules[i]))
			return !seen->collective && !seen->trains;
	return false;
}

/** Looks for the only other thread that is in a collective of torch.distributed. */
static struct prb_error *find_other(struct prb_watch *watch, struct prb_seen *seen)
{
	const struct prb_dump_options options = {.no_waits = true, .no_command = true};
	__attribute__((cleanup(prb_seen_deinit))) struct prb_seen other = {};
	const struct prb_dump_thread *thread;
	pid_t found = 0;

	if (!waits_for_thread(seen))
		return NULL;
	PRB_TRY(prb_dump_create_with(watch->target, &options, &watch->found, &other.dump));
	prb_vec_each (thread, &other.dump->threads) {
		if (thread->tid == other.dump->main_tid)
			continue;
		other.main = thread;
		other.collective = NULL;
		find_collective(&other);
		if (!other.collective)
			continue;
		seen->trains = found ? 0 : thread->tid;
		if (found)
			return NULL;
		found = thread->tid;
	}
	return NULL;
}

/** True if the control group of the process is frozen: then its main thread sleeps in there. */
static bool is_frozen(pid_t pid)
{
	prb_auto_str struct prb_str where = {};

	return prb_proc_read(pid, "wchan", &where) &&
	       (!strcmp(prb_str_text(&where), "__refrigerator") ||
		!strcmp(prb_str_text(&where), "do_freezer_trap"));
}

static struct prb_error *look(struct prb_watch *watch, struct prb_seen *seen, bool native,
			      bool last)
{
	const struct prb_dump_options whole = {.native = native};
	struct prb_dump_options brief = {.native = native, .no_waits = true, .no_command = true};
	bool in_c = false, first = !watch->target;

	if (!watch->target)
		PRB_TRY(prb_target_open_process(seen->rank->pid, &watch->target));
	PRB_TRY(prb_training_thread_find(watch, seen));
	prb_training_thread_only(seen, &brief);
	PRB_TRY(make_dump(watch, last ? &whole : &brief, seen));
	PRB_TRY(find_other(watch, seen));
	if (seen->trains && brief.main_only) {
		prb_training_thread_only(seen, &brief);
		PRB_TRY(make_dump(watch, last ? &whole : &brief, seen));
	}
	if (last)
		PRB_TRY(see_it_wait(watch, &whole, seen));
	if (!native && needs_native(seen, last, true)) {
		brief.native = true;
		if (last)
			PRB_TRY(waits_in_c(watch, seen->trains, &in_c));
		else
			PRB_TRY(make_dump(watch, &brief, seen));
	}
	if (in_c)
		PRB_TRY(make_dump(watch, &(struct prb_dump_options){.native = true}, seen));
	if (!seen->main)
		return NULL;
	PRB_TRY(read_counters(watch->target, seen));
	if (is_frozen(seen->rank->pid))
		seen->state = PRB_SEEN_FROZEN;
	if (first || last)
		PRB_TRY(prb_progress_read(watch, seen));
	if (!last)
		return NULL;
	PRB_TRY(prb_idle_fill(watch->target, seen->dump, NULL));
	PRB_TRY(prb_call_read(watch, seen));
	return prb_worker_describe(seen->rank->pid, seen->main, &seen->worker);
}

/** True if the process has ended, and only its parent does not know yet. */
static bool is_zombie(pid_t pid)
{
	struct prb_process process = {};
	prb_auto_error struct prb_error *err = prb_process_describe(pid, &process);
	bool zombie = !err && process.state == 'Z';

	prb_process_deinit(&process);
	return zombie;
}

/** Looks at a rank, and keeps nothing of one that cannot be read. */
static struct prb_error *look_at(struct prb_watch *watches, size_t i, struct prb_seen *seen,
				 bool native, bool last)
{
	struct prb_watch once = {}, *watch = watches ? &watches[i] : &once;
	struct prb_error *err = look(watch, seen, native, last);

	if (err || !watches)
		prb_watch_deinit(watch);
	return err;
}

struct prb_error *prb_round_make(const struct prb_job *job, bool native, bool last,
				 struct prb_watch *watches, struct prb_round *ret)
{
	const struct prb_rank *rank;

	ret->seconds = prb_clock_seconds();
	prb_vec_each (rank, &job->ranks) {
		struct prb_seen *seen = prb_vec_push(&ret->list);

		if (!seen)
			return prb_error_nomem();
		seen->rank = rank;
		seen->ran_ns = -1;
		seen->gone = !rank->pid;
		if (seen->gone)
			continue;

		prb_auto_error struct prb_error *err =
			look_at(watches, ret->list.count - 1, seen, native, last);
		if (!err)
			continue;
		if (err->code == PRB_ERROR_NOMEM)
			return prb_steal(&err);
		forget(seen);
		seen->gone = err->code == PRB_ERROR_NO_PROCESS || is_zombie(rank->pid);
		PRB_TRY(prb_str_copy(err->message, &seen->error));
	}
	return NULL;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "control/stop_threads.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "agent/threads.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "dump/tasks/tasks.h"
#include "target/target.h"

enum {
	STOP_MS = 2000,	      /* for one thread; it takes microseconds */
	ROUNDS = 40,	      /* rounds of waiting for threads to reach a safe system call */
	ROUNDS_COMING = 2000, /* likewise for threads that only lack a processor */
	NAP_NS = 500000,
	WORK_NS =
		ROUNDS * NAP_NS, /* a thread with this much CPU time is busy, not about to block */
	MAX_ROUNDS_ALL = 1000,
	MOST_OURS = 1024, /* threads of an agent */
};

/* Calls that wait and are made by no code that holds a lock of malloc() or the loader. */
static const long waiting[] = {
	SYS_futex,	   SYS_nanosleep, SYS_clock_nanosleep, SYS_read,     SYS_write,
	SYS_recvfrom,	   SYS_recvmsg,	  SYS_sendto,	       SYS_sendmsg,  SYS_accept,
	SYS_accept4,	   SYS_connect,	  SYS_ppoll,	       SYS_pselect6, SYS_epoll_pwait,
	SYS_wait4,	   SYS_waitid,	  SYS_rt_sigtimedwait, SYS_semop,    SYS_semtimedop,
	SYS_rt_sigsuspend, SYS_flock,	  SYS_io_getevents,    SYS_msgrcv,   SYS_mq_timedreceive,
#ifdef SYS_poll
	SYS_poll,	   SYS_select,	  SYS_epoll_wait,      SYS_pause,
#endif
};

/** The system call that a thread waits in: number and first argument. */
struct call {
	long number; /**< -1: it runs, or the call is unknown */
	uint64_t first;
};

static struct call call_of(pid_t pid, pid_t tid)
{
	char path[64], line[64] = "";
	struct call call;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", (int)pid, (int)tid);
	prb_auto_fclose FILE *file = fopen(path, "re");
	if (!file || !fgets(line, sizeof(line), file) || *line < '0' || *line > '9' ||
	    sscanf(line, "%ld %" SCNx64, &call.number, &call.first) != 2)
		return (struct call){-1, 0};
	return call;
}

/** As above, for a stopped thread: the call that it restarts when it is resumed. */
static struct call call_of_stopped(const struct prb_stop *stop)
{
	struct prb_task task = {};

	return prb_stop_call(stop, &task) ? (struct call){task.syscall, task.args[0]}
					  : (struct call){-1, 0};
}

/** With a timeout it has another number once it was stopped. */
static bool is_futex(struct call call)
{
	return call.number == SYS_futex || call.number == SYS_restart_syscall;
}

static bool is_within(uint64_t address, uint64_t start, size_t size)
{
	return start && address >= start && address < start + size;
}

/**
 * True in the middle of dropping or acquiring the GIL: stopped there, a thread would block all
 * others.
 */
static bool handles_gil(struct call call, const struct prb_gil_locks *gil)
{
	return gil->mutex && is_futex(call) &&
	       (is_within(call.first, gil->condition, sizeof(pthread_cond_t)) ||
		is_within(call.first, gil->switch_condition, sizeof(pthread_cond_t)) ||
		is_within(call.first, gil->switch_mutex, sizeof(pthread_mutex_t)));
}

static bool can_stand_in(struct call call, const struct prb_gil_locks *gil)
{
	/* Calls with a timeout become this one after a stop. */
	bool waits = call.number == SYS_restart_syscall;

	for (size_t i = 0; !waits && i < PRB_ARRAY_SIZE(waiting); i++)
		waits = waiting[i] == call.number;
	return waits && !handles_gil(call, gil);
}

/**
 * True for the agent's threads and threads that a client's code has started, which inherit the
 * name.
 */
static bool has_our_name(pid_t pid, pid_t tid)
{
	char path[64], name[64] = "";

	snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", (int)pid, (int)tid);
	prb_auto_fclose FILE *file = fopen(path, "re");
	return file && fgets(name, sizeof(name), file) && prb_is_agent_thread(name);
}

/** True if the agent lists the thread as its own, or lists none. */
static bool is_listed(struct prb_stopped_threads *s, pid_t tid)
{
	int32_t ids[MOST_OURS];
	size_t count = PRB_MIN((size_t)s->ours_count, PRB_ARRAY_SIZE(ids));
	pid_t inner = prb_task_inner_tid(s->target, tid);

	if (!s->ours || !count)
		return true;

	prb_auto_error struct prb_error *err =
		prb_mem_read(s->target->mem, s->ours, ids, count * sizeof(*ids));
	for (size_t i = 0; !err && i < count; i++)
		if (ids[i] == inner)
			return true;
	return err != NULL;
}

static struct prb_stop *find(struct prb_stopped_threads *s, pid_t tid)
{
	struct prb_stop *stop;

	prb_vec_each (stop, &s->stops)
		if (stop->tid == tid)
			return stop;
	return NULL;
}

static bool has_ended(const struct prb_error *err)
{
	return err && err->code == PRB_ERROR_NO_PROCESS;
}

/** Calls @p each for all threads that are not in the list, until one gives an error. */
static struct prb_error *for_new(struct prb_stopped_threads *s, unsigned *count,
				 struct prb_error *(*each)(struct prb_stopped_threads *, pid_t))
{
	char path[32];

	*count = 0;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)s->pid);

	DIR *folder = opendir(path);
	struct prb_error *err = NULL;
	struct dirent *entry;

	if (!folder)
		return prb_error_os(errno == ENOENT ? ESRCH : errno,
				    "cannot list the threads of process %d", (int)s->pid);
	while (!err && (entry = readdir(folder))) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (tid <= 0 || find(s, tid))
			continue;
		*count += 1;
		err = each(s, tid);
		if (has_ended(err)) {
			prb_error_destroy(err);
			err = NULL;
			*count -= 1;
		}
	}
	closedir(folder);
	return err;
}

/** Becomes the tracer of one more. */
static struct prb_error *seize(struct prb_stopped_threads *s, pid_t tid)
{
	struct prb_stop *stop = prb_vec_push(&s->stops);

	if (!stop)
		return prb_error_nomem();

	struct prb_error *err = prb_stop_seize_in_turn(tid, stop);
	if (err)
		s->stops.count--;
	return err;
}

static struct prb_error *ask(struct prb_stopped_threads *s, pid_t tid)
{
	PRB_TRY(seize(s, tid));
	return prb_stop_ask(&s->stops.items[s->stops.count - 1]);
}

struct prb_error *prb_stop_threads_all(struct prb_stopped_threads *s, pid_t pid)
{
	struct prb_error *err = NULL;
	struct prb_stop *stop;
	unsigned found = 1;

	*s = (struct prb_stopped_threads){.pid = pid};
	/* A thread still running may have made another one before it stopped. */
	for (int round = 0; !err && found && round < MAX_ROUNDS_ALL; round++) {
		err = for_new(s, &found, ask);
		prb_vec_each (stop, &s->stops) {
			if (err || !stop->seized || stop->stopped)
				continue;
			struct prb_error *late = prb_stop_wait(stop, STOP_MS);

			if (!has_ended(late) && late && late->code != PRB_ERROR_TIMEOUT)
				err = late;
			else
				prb_error_destroy(late);
		}
	}
	if (!err && !s->stops.count)
		err = prb_error_create(PRB_ERROR_NO_PROCESS, "process %d has ended", (int)pid);
	if (err)
		prb_stop_threads_end(s);
	return err;
}

/** How long a thread has run; 0 if the kernel does not report it. */
static uint64_t ran_ns(pid_t pid, pid_t tid)
{
	char path[64];
	uint64_t ran;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", (int)pid, (int)tid);
	prb_auto_fclose FILE *file = fopen(path, "re");
	return file && fscanf(file, "%" SCNu64, &ran) == 1 ? ran : 0;
}

/** True if a thread that runs has been at it for long, since it was first seen to. */
static bool is_at_work(struct prb_stopped_threads *s, pid_t tid)
{
	uint64_t ran = ran_ns(s->pid, tid);
	struct prb_thread_run *run;

	prb_vec_each (run, &s->runs)
		if (run->tid == tid)
			return ran - run->begin_ns > WORK_NS;
	run = prb_vec_push(&s->runs);
	if (run)
		*run = (struct prb_thread_run){tid, ran};
	return !run;
}

/** Counts a thread that is expected to reach a safe system call. */
static void count_coming(struct prb_stopped_threads *s, pid_t tid, struct call call)
{
	bool at_gil = handles_gil(call, s->gil);

	s->at_gil |= at_gil;
	s->coming += at_gil || (call.number == -1 && !is_at_work(s, tid));
}

/** Stops a waiting thread; other threads are left alone, or resumed at once. */
static struct prb_error *stop_waiting(struct prb_stopped_threads *s, pid_t tid)
{
	struct call call = call_of(s->pid, tid);
	double pause;

	if (!can_stand_in(call, s->gil)) {
		count_coming(s, tid, call);
		return NULL;
	}
	PRB_TRY(seize(s, tid));

	struct prb_stop *stop = &s->stops.items[s->stops.count - 1];
	struct prb_error *err = prb_stop_ask(stop);
	if (!err)
		err = prb_stop_wait(stop, STOP_MS);
	/* It may have been woken before it stopped. */
	if (!err && can_stand_in(call_of_stopped(stop), s->gil))
		return NULL;
	prb_stop_end(stop, &pause);
	s->stops.count--;
	s->coming++;
	return err;
}

static struct prb_error *stop_other(struct prb_stopped_threads *s, pid_t tid)
{
	return has_our_name(s->pid, tid) && is_listed(s, tid)
		       ? prb_error_os(ESRCH, "thread %d", (int)tid)
		       : stop_waiting(s, tid);
}

static struct prb_error *end_search(void)
{
	return prb_error_create(PRB_ERROR_CANCELLED, "found");
}

static struct prb_error *find_waiting(struct prb_stopped_threads *s, pid_t tid)
{
	return handles_gil(call_of(s->pid, tid), s->gil) ? end_search() : NULL;
}

bool prb_stop_threads_waits_for_gil(pid_t pid, const struct prb_gil_locks *gil)
{
	struct prb_stopped_threads looks = {.pid = pid, .gil = gil};
	unsigned found;
	prb_auto_error struct prb_error *err = for_new(&looks, &found, find_waiting);

	return err && err->code == PRB_ERROR_CANCELLED;
}

/**
 * True if those are to be looked for again that could not be stopped. A thread that waits for the
 * GIL comes only while its mutex is held. Others may have to wait for a processor first.
 */
static bool may_stand_soon(const struct prb_stopped_threads *s, bool mutex_is_held, int round)
{
	return (mutex_is_held || !s->at_gil) &&
	       (round < ROUNDS || (s->coming && round < ROUNDS_COMING)) &&
	       !(s->is_over && s->is_over(s->context));
}

/** 0: all are stopped that are to be. */
static uint32_t stop_in_rounds(struct prb_stopped_threads *s, bool mutex_is_held)
{
	for (int round = 1;; round++) {
		size_t before = s->stops.count;
		unsigned found;

		s->coming = 0;
		s->at_gil = false;

		struct prb_error *err = for_new(s, &found, stop_other);
		bool forbidden = err != NULL;

		prb_error_destroy(err);
		if (forbidden)
			return PRB_MAX(found, 1u);
		if (found == s->stops.count - before)
			return 0;
		if (!may_stand_soon(s, mutex_is_held, round))
			return found;
		nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
	}
}

uint32_t prb_stop_threads_waiting(struct prb_stopped_threads *s, struct prb_target *target,
				  const struct prb_gil_locks *gil, bool mutex_is_held)
{
	uint32_t running;

	s->pid = target->pid;
	s->target = target;
	s->gil = gil;
	if (!gil->known)
		return 1;
	running = stop_in_rounds(s, mutex_is_held);
	prb_vec_free(&s->runs);
	return running;
}

void prb_stop_threads_end(struct prb_stopped_threads *s)
{
	struct prb_stop *stop;
	double pause;

	prb_vec_each (stop, &s->stops)
		prb_stop_end(stop, &pause);
	prb_vec_free(&s->stops);
}

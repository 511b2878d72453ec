/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file What the rules ask about threads of a dump: their locks' owners, how long they have slept,
 * and their description in a line of evidence.
 *
 * Threading: that of the target. Strings are the dump's.
 */
#ifndef PRB_JUDGE_THREADS_H
#define PRB_JUDGE_THREADS_H

#include <stdbool.h>

#include "base/str.h"
#include "judge/judge.h"

/** True if the thread is in the state @p state ("running", "stopped", …). */
bool prb_thread_is(const struct prb_dump_thread *thread, const char *state);
bool prb_thread_holds_gil(const struct prb_dump_thread *thread);
/** True if it is the thread of our agent that evaluates code, or pauses the process. */
bool prb_thread_is_agents(const struct prb_dump_thread *thread);
bool prb_thread_waits_for_gil(const struct prb_dump_thread *thread);

/** True if the thread waits for another thread of its process: a futex, but not for the GIL. */
bool prb_thread_waits_inside(const struct prb_dump_thread *thread);

/** True if the thread sleeps for a time, and for nothing else. */
bool prb_thread_sleeps(const struct prb_dump_thread *thread);

/** True if a process can end the thread's wait, which has no limit of time: a pipe, a child, … */
bool prb_thread_waits_outside(const struct prb_dump_thread *thread);

/** True if the thread waits for a lock whose holder is named; also a lock on a file. */
bool prb_thread_waits_for_held_lock(const struct prb_dump_thread *thread);

/** The thread that holds the lock that @p thread waits for; 0: none, or not known. */
pid_t prb_thread_owner(const struct prb_dump_thread *thread);

/** The same, or the thread for whose end it waits. */
pid_t prb_thread_awaited(const struct prb_dump_thread *thread);

/**
 * True if nobody but the awaited thread can end the wait: by its end, or by the release of an
 * RLock, or of a mutex of the C library that names its owner.
 */
bool prb_thread_awaits_alone(const struct prb_dump_thread *thread);

/** True if the frame is of that Python function, in a file whose path ends so: "/queue.py". */
bool prb_frame_is(const struct prb_dump_frame *frame, const char *function, const char *file_end);

/** The innermost such frame of the thread; NULL: none. */
const struct prb_dump_frame *prb_thread_frame(const struct prb_dump_thread *thread,
					      const char *function, const char *file_end);

/** The thread @p tid of the case's dump; NULL if it has none. */
const struct prb_dump_thread *prb_case_thread(const struct prb_case *c, pid_t tid);

/** Seconds that the thread has slept by now; negative: not known. */
double prb_case_idle(const struct prb_case *c, const struct prb_dump_thread *thread);

/** True if the thread is known to have slept for less than @p seconds. */
bool prb_case_moved(const struct prb_case *c, const struct prb_dump_thread *thread, double seconds);

/** What the kernel says of a thread's futex() call. All false if it is not known, or in no such. */
struct prb_futex_call {
	bool endless; /**< it has no limit of time */
	bool limited; /**< it has one */
	bool own;     /**< only threads of this process can wake it: the word is not shared */
	uint64_t address;
};
struct prb_futex_call prb_case_futex_call(const struct prb_case *c,
					  const struct prb_dump_thread *thread);

/** True if the thread is known to wait in futex() without a limit of time. */
bool prb_case_waits_without_limit(const struct prb_case *c, const struct prb_dump_thread *thread);

/** Appends "4250 worker-0"; a name of several words is quoted, and cut at 60 columns. */
void prb_case_put_thread(struct prb_str *s, const struct prb_dump_thread *thread);
/**
 * Appends "`Bank.transfer` bank.py:31" or, of a library, "`Queue.get` queue.py:171 called by `main`
 * job.py:9"; nothing, and false, if the thread has no Python frame.
 */
bool prb_case_put_place(struct prb_str *s, const struct prb_dump_thread *thread);
/** Appends "`Bank.transfer` bank.py:31". */
void prb_case_put_frame(struct prb_str *s, const struct prb_dump_frame *frame);
/** Appends "in `transfer` bank.py:31, idle 12 s in futex: …". */
void prb_case_put_doing(struct prb_str *s, const struct prb_case *c,
			const struct prb_dump_thread *thread);

/** Appends "the stacks of 12 threads". */
void prb_case_put_reading(struct prb_str *s, const struct prb_case *c);
/** Appends a command about the case: "probing -t 4250 dump"; nothing if no words are known. */
void prb_case_put_command(struct prb_str *s, const struct prb_case *c, const char *command);

/** Adds a line of evidence: the thread and its activity. */
struct prb_error *prb_finding_thread(struct prb_finding *finding, const struct prb_case *c,
				     const struct prb_dump_thread *thread) PRB_MUST_CHECK;

#endif

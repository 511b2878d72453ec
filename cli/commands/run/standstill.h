/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Reads the processes of a tree of which none has run for a while, and decides whether they
 * are hung or idle: waiting for clients, input, a signal, or the end of a time.
 *
 * The first process is followed: to the thread that holds its lock, to the child or to the other
 * end of the pipe that it waits for. Where that leads to a wait that only the program itself can
 * end, and no thread of the process on the way waits for anything else, the tree is hung.
 *
 * Some libraries' threads, and launchers, only look now and then whether others are done. What they
 * do is no progress: polling.h lists them.
 *
 * Threading: one thread at a time. No thread that sleeps is stopped.
 */
#ifndef PRB_CLI_COMMANDS_RUN_STANDSTILL_H
#define PRB_CLI_COMMANDS_RUN_STANDSTILL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"
#include "cli/commands/run/tree.h"
#include "cli/commands/why/why.h"
#include "judge/rest.h"

struct prb_still_thread {
	pid_t tid;
	struct prb_rest rest;
	bool polls;	  /**< it only looks whether others are done */
	int64_t switches; /**< while that stays the same it has not run; < 0: not known */
};

/** What the threads of one process wait for; the first thread comes first. */
struct prb_still_process {
	pid_t pid;
	const struct prb_why_one *one; /**< NULL: gone */
	PRB_VEC(struct prb_still_thread) threads;
	/** Of a program other than Python: what its first thread waits for, or NULL. */
	char *words;
	bool polls;   /**< a launcher */
	uint64_t ran; /**< processor time, ns */
	bool followed;
	bool searched; /**< all who can end the waits of its threads were looked for */
};

/** Starts as {}. */
struct prb_standstill {
	struct prb_why why; /**< of all processes, with their dumps */
	PRB_VEC(struct prb_still_process) list;
	bool hung;
	bool searches;	      /**< each process that is followed is searched before */
	PRB_VEC(pid_t) chain; /**< the first process, the one that it waits for, and so on */
};

/**
 * Reads the processes of the tree's last look, and follows @p first, which is one of them. Only a
 * tree that has not moved can be hung.
 */
struct prb_error *prb_standstill_read(const struct prb_tree *tree, pid_t first,
				      struct prb_standstill *ret) PRB_MUST_CHECK;
/**
 * If it seems hung, searches all processes for those that can end the waits on the way, also by the
 * other ends of sockets. If one of them is outside the tree, it is not hung. Each process on the
 * way takes some 20 µs for each process of the machine.
 */
struct prb_error *prb_standstill_search(const struct prb_tree *tree, pid_t first,
					struct prb_standstill *s) PRB_MUST_CHECK;
/** Closes the processes, and keeps what prb_standstill_is_quiet() needs. */
void prb_standstill_forget(struct prb_standstill *s);
void prb_standstill_deinit(struct prb_standstill *s);
#define prb_auto_standstill __attribute__((cleanup(prb_standstill_deinit)))

/** True if between the two readings nothing has run but threads that poll. */
bool prb_standstill_is_quiet(const struct prb_standstill *before, const struct prb_standstill *now);

/**
 * A finding that proves that the first process, or one that it waits for, cannot go on: its main
 * thread is part of a deadlock or waits for a lock that nobody can release, for @p seconds at
 * least. NULL if there is none.
 */
const struct prb_finding *prb_standstill_proof(const struct prb_standstill *s, double seconds);

/** Notes how long each thread of the Python processes has slept. */
struct prb_error *prb_standstill_fill_idle(const struct prb_standstill *s) PRB_MUST_CHECK;

/**
 * A finding about threads of the process @p pid, all of which have slept for @p seconds: they are
 * surely in a deadlock, wait for a lock that nobody can release, or hold the GIL. NULL if there is
 * none. Needs the idle times.
 */
const struct prb_finding *prb_standstill_fatal(const struct prb_standstill *s, pid_t pid,
					       double seconds);

/** A finding that requests of an inference server have not moved for @p seconds; NULL: none. */
const struct prb_finding *prb_standstill_server(const struct prb_standstill *s, double seconds);

/** Appends where the last of the processes is that wait for each other: "4250 is at f x.py:3, …".
 */
void prb_standstill_put_end(struct prb_str *s, const struct prb_standstill *still);

/** The main thread of a process as it was read; NULL if it was not. */
const struct prb_dump_thread *prb_why_main(const struct prb_why_one *one);

#endif

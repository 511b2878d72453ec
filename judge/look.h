/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Looks at a process for a while, again and again: for the rules about what it does with its
 * time. It ends early if the threads that run do something else at each look, and have processors.
 *
 * Threading: that of the target. Each look stops a running thread for one copy of its stack.
 */
#ifndef PRB_JUDGE_LOOK_H
#define PRB_JUDGE_LOOK_H

#include "dump/dump.h"
#include "judge/judge.h"

enum { PRB_LOOK_THREADS = 4, PRB_LOOK_MEMORY = 32 };

/** A thread that ran when the process was first read. */
struct prb_look_thread {
	pid_t tid;
	double ran, waited; /**< seconds that it had a processor, and was ready without one */
	/** In all looks: the innermost frame with the same values in its variables. */
	bool same;
	bool in_library;	       /**< a look found it in code of a library */
	unsigned looks;		       /**< before each it has run */
	uint64_t code;		       /**< of that frame */
	int64_t first, last;	       /**< positions in its bytecode */
	int32_t first_line, last_line; /**< -1: not known */
	size_t variables;	       /**< their number */
	/* Internal to look.c. */
	char *values;
	double ran_before, waited_before, ran_at_look;
};

struct prb_look {
	double seconds; /**< 0: there was none */
	struct prb_look_thread threads[PRB_LOOK_THREADS];
	size_t count;
	/** The thread that held the GIL at one place all the time; 0: none. In `waited` of `looks`
	 * another thread waited for it. */
	pid_t holder;
	const char *holder_in; /**< the C function or library that it ran in, or NULL */
	unsigned looks, waited, most_waiters;
	/** Resident bytes, evenly spread over the time; only if the look lasts for long. */
	double memory[PRB_LOOK_MEMORY];
	size_t memories;
	struct prb_dump_found found; /**< the Python runtimes */
	/* Internal to look.c. */
	uint64_t holder_code, holder_ip, switches;
	char *holder_text;
};

/** The look at the case, for its `patience`. Once; later calls give the same. */
struct prb_error *prb_case_look(struct prb_case *c, const struct prb_look **ret) PRB_MUST_CHECK;

/** NULL is allowed. */
void prb_look_destroy(struct prb_look *look);

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Facts about a case beside its threads, read when a rule asks for the first time. Those of
 * control groups and children are known only of a live process of this machine.
 *
 * Threading: that of the target.
 */
#ifndef PRB_JUDGE_FACTS_H
#define PRB_JUDGE_FACTS_H

#include "judge/judge.h"
#include "target/proc/pids.h"

/** True if our kernel can be asked about the process. */
bool prb_case_is_here(const struct prb_case *c);

/** The limit of its control groups, what they use, and what is swapped out of the process. */
const struct prb_case_memory *prb_case_memory(struct prb_case *c);

/** What is resident of a live process; 0: not known. */
double prb_resident_bytes(struct prb_target *target);

/** A number of /proc/PID/status ("TracerPid"); -1 if it is not there. */
int64_t prb_case_status(struct prb_case *c, const char *field);

/**
 * True if the program has a handler for a signal that others may send at any time. Of SIGCHLD, sent
 * when a child ends, only with @p children.
 */
bool prb_status_handles_signals(const char *status, bool children);
/** The same for the case, with the ends of children; true if it is not known. */
bool prb_case_handles_signals(struct prb_case *c);
/** True if the program has a handler for a timer's signal, as of a watchdog; false: not known. */
bool prb_case_handles_alarms(struct prb_case *c);

/**
 * How often a thread that sleeps now has got a processor, or left one: while that stays the same,
 * it has not run. -1: not known. -2: it does not sleep.
 */
int64_t prb_case_switches(const struct prb_case *c, pid_t tid);

/**
 * Appends a file of the process's own control group: @p two of version 2, or @p one of the version
 * 1 hierarchy of @p controller. False if there is none.
 */
bool prb_case_group(struct prb_case *c, const char *controller, const char *two, const char *one,
		    struct prb_str *ret);

/** The number after the word @p name at the start of a line of @p text; -1 if it is not there. */
int64_t prb_group_number(const char *text, const char *name);

/** Appends the children that have ended and were not waited for. */
struct prb_error *prb_case_zombies(struct prb_case *c, struct prb_pids *ret) PRB_MUST_CHECK;

/**
 * True if many more threads of this machine want to run than it has processors: then what does not
 * move may only wait for one.
 */
bool prb_machine_is_overloaded(void);
/** Appends "the machine is overloaded: 31 threads want its 2 processors". */
void prb_machine_put_load(struct prb_str *s);

/** True if its control group is frozen. */
bool prb_case_is_frozen(struct prb_case *c);

/** The runtimes for a rule's own dump: those of the case, or else @p own. */
static inline struct prb_dump_found *prb_case_found(const struct prb_case *c,
						    struct prb_dump_found *own)
{
	return c->found ? c->found : own;
}

#endif

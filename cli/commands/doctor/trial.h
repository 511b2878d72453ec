/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Trying what the kernel lets us do, on a process of our own.
 *
 * Two children: a patient that only waits, and for each attempt a reader, which does to the patient
 * what we want to know of. The reader is the patient's sibling, not an ancestor, so Yama's rule
 * applies to it as to any two processes of a user. A seccomp filter that kills the caller kills the
 * reader, and not us.
 *
 * Threading: one thread. The patient ends with its struct, and when we are killed.
 */
#ifndef PRB_CLI_COMMANDS_DOCTOR_TRIAL_H
#define PRB_CLI_COMMANDS_DOCTOR_TRIAL_H

#include <sys/types.h>

#include "base/error.h"

struct prb_trial {
	pid_t pid; /**< of the patient */
	int hold;  /**< the patient waits until this is closed */
};

struct prb_error *prb_trial_start(struct prb_trial *ret) PRB_MUST_CHECK;
void prb_trial_end(struct prb_trial *trial);

/** How an attempt ended, other than with 0 or an errno. */
enum { PRB_TRIAL_KILLED = -1, PRB_TRIAL_HUNG = -2, PRB_TRIAL_NOT_STARTED = -3 };

/** Calls @p attempt, which returns 0 or an errno, in a reader. */
int prb_trial_run(const struct prb_trial *trial, int (*attempt)(pid_t pid, const char *name),
		  const char *name);

/** The words for what it returned. Static, or strerror()'s. */
const char *prb_trial_text(int result);

#endif

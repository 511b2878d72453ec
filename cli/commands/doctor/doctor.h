/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The checks of `probing doctor`: const tables of rows, one check each.
 *
 * Checks look and never change anything. Trials are made on a process of our own, started for them
 * (see trial.h), never on another process.
 *
 * To add a check: one row in the table of its section. To add a section: one file with its table,
 * and its name in doctor.c.
 */
#ifndef PRB_CLI_COMMANDS_DOCTOR_DOCTOR_H
#define PRB_CLI_COMMANDS_DOCTOR_DOCTOR_H

#include <stdbool.h>
#include <sys/types.h>

#include "cli/commands/doctor/report.h"
#include "base/str.h"
#include "target/proc/process.h"
#include "target/target.h"

struct prb_trial;

/** The input of all checks. */
struct prb_doctor {
	struct prb_remarks report;
	struct prb_str own_status; /**< the text of our own /proc/PID/status */
	bool readable; /**< the process that is looked at; without one, processes of our own */

	/* Of the machine; not set for a process. */
	struct prb_trial *trial; /**< NULL: it could not be started */
	bool killed;		 /**< a filter kills the caller of one of the tried calls */
	const struct prb_python_processes *pythons; /**< NULL: they could not be listed */

	/* Of a process. */
	const struct prb_process *process;
	struct prb_str status;	   /**< the text of its /proc/PID/status */
	struct prb_target *target; /**< NULL: it may not be read */
};

struct prb_check {
	const char *name;
	void (*run)(struct prb_doctor *d, const struct prb_check *check);

	/* Parameters of checks that share a function. */
	int (*attempt)(pid_t pid, const char *name); /**< see prb_trial_run() */
	unsigned number;
	const char *with, *without; /**< what works; what does not work otherwise */
	const char *todo;
};

struct prb_section {
	const char *title;
	const struct prb_check *checks; /**< ends with one whose name is NULL */
};

/** The number in a field of a status text ("Seccomp:\t2"); -1 if there is none. */
long prb_doctor_field(const struct prb_str *status, const char *name);

/** The set of capabilities in such a field; 0 if there is none. */
uint64_t prb_doctor_capabilities(const struct prb_str *status, const char *name);

/** True if this program has the capability. */
bool prb_doctor_has(const struct prb_doctor *d, unsigned capability);

/** Lets check->attempt be made (see trial.h) and notes it if that is deadly. */
int prb_doctor_try(struct prb_doctor *d, int (*attempt)(pid_t pid, const char *name),
		   const char *name);

/** Adds what @p p offers to debuggers at ports. @p target is NULL if it may not be read. */
void prb_doctor_ports(struct prb_doctor *d, const struct prb_process *p, struct prb_target *target);

/** Adds whether there is what layout and lines of the interpreters of @p target come from. */
void prb_doctor_interpreters(struct prb_doctor *d, struct prb_target *target);

/** Adds what is installed of the older tool that is named as ours. */
void prb_doctor_namesake(struct prb_doctor *d, const struct prb_check *check);

/* Of the machine. */
extern const struct prb_section prb_section_rights, prb_section_reading, prb_section_kernel,
	prb_section_proc, prb_section_tools, prb_section_interpreters, prb_section_ports;
/* Of a process. */
extern const struct prb_section prb_section_process, prb_section_python;

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The findings of `probing doctor`: a list, printed as text or JSON.
 *
 * A finding is one line: a verdict, what it means, and a command that changes it, if there is one.
 * Its texts may hold names that other users chose: printing escapes them.
 *
 * Threading: one thread. Running out of memory sets `failed` and is reported when printing.
 */
#ifndef PRB_CLI_COMMANDS_DOCTOR_REPORT_H
#define PRB_CLI_COMMANDS_DOCTOR_REPORT_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"

enum prb_verdict {
	PRB_VERDICT_OK,
	PRB_VERDICT_LIMITED, /**< some things do not work, or other users may do too much */
	PRB_VERDICT_NO,	     /**< it does not work, or is open to all users */
	PRB_VERDICT_UNKNOWN, /**< it could not be found out */
};

struct prb_remark {
	const char *section, *name; /**< static */
	enum prb_verdict verdict;
	struct prb_str means, todo;
};

struct prb_remarks {
	PRB_VEC(struct prb_remark) list;
	const char *section; /**< of the checks that run now */
	bool failed;	     /**< memory ran out */
};

void prb_remarks_deinit(struct prb_remarks *report);

/** Appends a finding of the present section; @p name is static. */
void prb_remarks_add(struct prb_remarks *report, const char *name, enum prb_verdict verdict,
		     const char *format, ...) PRB_PRINTF(4, 5);

/** Says what to do about the last finding: a command, mostly. */
void prb_remarks_advise(struct prb_remarks *report, const char *format, ...) PRB_PRINTF(2, 3);

/** The subject of the report, for its heading. */
struct prb_remarks_subject {
	pid_t pid;	     /**< 0: this machine */
	const char *command; /**< of that process; not escaped */
	bool readable;	     /**< that process, or processes of our own */
};

struct prb_error *prb_remarks_print(const struct prb_remarks *report,
				    const struct prb_remarks_subject *subject,
				    bool json) PRB_MUST_CHECK;

#endif

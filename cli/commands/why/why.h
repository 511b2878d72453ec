/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file `probing why`: what is wrong with processes, or that nothing is.
 *
 * Threading: one thread at a time.
 */
#ifndef PRB_CLI_COMMANDS_WHY_WHY_H
#define PRB_CLI_COMMANDS_WHY_WHY_H

#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"
#include "command/command.h"
#include "dump/dump.h"
#include "judge/judge.h"
#include "target/proc/process.h"

/** A process or a file, and what the rules say of it. */
struct prb_why_one {
	char *words;		    /**< as a command line names it */
	char *file;		    /**< NULL: a process */
	struct prb_process process; /**< pid 0: not known */
	bool named;
	bool gone;	  /**< it has ended meanwhile */
	char *unreadable; /**< why there is no dump, or NULL */
	struct prb_target *target;
	struct prb_dump *dump;
	struct prb_case judged;
	struct prb_findings findings;
	pid_t child; /**< that the main thread waits for; 0: none */
	char *doing; /**< the main thread's activity, or NULL */
	char *chain; /**< what it waits for in the end, if that is another process; or NULL */
};

struct prb_why {
	PRB_VEC(struct prb_why_one *) list;
	bool keeps; /**< targets and dumps stay until prb_why_deinit() */
};

/**
 * Judges @p targets; none: all Python processes of this machine. A single one is judged by the
 * rules of @p scripts, too.
 */
struct prb_error *prb_why_create(const struct prb_cli *cli, const struct prb_texts *targets,
				 const struct prb_texts *scripts,
				 struct prb_why *ret) PRB_MUST_CHECK;
/** Judges these processes of this machine, of any program, and keeps their targets and dumps. */
struct prb_error *prb_why_of(const pid_t *pids, size_t count, struct prb_why *ret) PRB_MUST_CHECK;
void prb_why_deinit(struct prb_why *why);

/** The kind of the worst finding; unknown counts less than all others. */
enum prb_finding_kind prb_why_kind(const struct prb_why_one *one);

/** True if it was not named, and may not be read: nothing is said of it. */
bool prb_why_is_strange(const struct prb_why_one *one);

/* show.c */
struct prb_error *prb_why_text(const struct prb_why *why, struct prb_str *ret) PRB_MUST_CHECK;
void prb_why_json(const struct prb_why *why, struct prb_str *ret);
void prb_why_rules(bool json, struct prb_str *ret);

#endif

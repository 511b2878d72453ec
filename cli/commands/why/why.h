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
#include "cluster/reach/reach.h"
#include "command/command.h"
#include "dump/dump.h"
#include "judge/judge.h"
#include "target/proc/process.h"

/** A process or a file, and what the rules say of it. */
struct prb_why_one {
	char *words;		    /**< as a command line names it */
	char *file;		    /**< NULL: a process */
	char *host;		    /**< where it is judged; NULL: here */
	char *command;		    /**< there, its command line */
	struct prb_process process; /**< pid 0: not known */
	bool named;
	bool gone;	  /**< it has ended meanwhile */
	bool closed;	  /**< as prb_case_waits_for_itself() says, if nothing is found */
	bool apart;	  /**< it waits for another process, which its file does not have */
	bool once;	  /**< it is read at one instant, and closed */
	bool looked;	  /**< rules that look for a while were asked, too */
	char *unreadable; /**< why there is no dump, or NULL */
	struct prb_target *target;
	struct prb_dump *dump;
	struct prb_dump_found found;
	struct prb_case judged;
	struct prb_findings findings;
	pid_t child;  /**< that the main thread waits for; 0: none */
	double agent; /**< seconds ago its main thread was interrupted to load the agent; or -1 */
	char *doing;  /**< the main thread's activity, or NULL */
	char *chain;  /**< what it waits for in the end, if that is another process; or NULL */
};

/** A host or pod that said nothing, and why. Both are escaped. */
struct prb_why_silent {
	char *host, *why;
};

struct prb_why {
	PRB_VEC(struct prb_why_one *) list;
	PRB_VEC(struct prb_why_silent) silent;
	bool far;    /**< other machines were asked */
	double look; /**< seconds to look at each process; 0: a moment, if they are few */
	bool keeps;  /**< targets and dumps stay until prb_why_deinit() */
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
/**
 * Asks other machines, which judge @p targets, or all their Python processes. Those that do not
 * answer in @p timeout seconds, and pods that do not run, are `silent`.
 */
struct prb_error *prb_why_far(struct prb_reach *reach, const struct prb_texts *targets,
			      double timeout, struct prb_why *ret) PRB_MUST_CHECK;
/** True if ranks of that Slurm job run here. */
bool prb_why_has_slurm(const char *number);
void prb_why_deinit(struct prb_why *why);
/** Appends a place in the list. Takes over @p words, also after an error; NULL: out of memory. */
struct prb_error *prb_why_add(struct prb_why *why, char *words,
			      struct prb_why_one **ret) PRB_MUST_CHECK;

/** The kind of the worst finding; unknown counts less than all others. */
enum prb_finding_kind prb_why_kind(const struct prb_why_one *one);

/** True if it was not named, and may not be read: nothing is said of it. */
bool prb_why_is_strange(const struct prb_why_one *one);

/* show.c */
struct prb_error *prb_why_text(const struct prb_why *why, struct prb_str *ret) PRB_MUST_CHECK;
void prb_why_json(const struct prb_why *why, struct prb_str *ret);
void prb_why_rules(bool json, struct prb_str *ret);

#endif

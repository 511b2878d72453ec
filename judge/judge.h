/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Judges a process: one set of rules for all faces, each in a file of judge/rules/, in
 * libraries/ if it knows the code of certain libraries.
 *
 * A case is what is known of one process. Its dump is given; all else is read when the first rule
 * asks for it, and once. A rule that finds nothing says nothing. docs/howto/add-rule.md shows how
 * to add one; the build finds it.
 *
 * Threading: that of the target.
 */
#ifndef PRB_JUDGE_JUDGE_H
#define PRB_JUDGE_JUDGE_H

#include "base/error.h"
#include "dump/idle.h"
#include "dump/model/dump.h"
#include "judge/finding.h"
#include "target/target.h"

/** What a rule needs. A rule runs only if the caller offers all of it. */
enum prb_rule_need {
	PRB_RULE_THREADS = 1, /**< a dump; its frames may be cut to one for each thread */
	PRB_RULE_MEMORY = 2,  /**< limits, use and swap: prb_case_memory() */
	PRB_RULE_PROC = 4,    /**< other files of /proc and of control groups */
};

struct prb_case_memory {
	bool read;
	int64_t limit, limit_used, swap; /**< bytes; -1: not known, or none */
};

struct prb_dump_found;
struct prb_gil_history;
struct prb_glances;
struct prb_holder;
struct prb_look;
struct prb_memory_row;

struct prb_case_sleeper {
	pid_t tid;
	int64_t switches;
};

/** The time that a caller who looks often grants for walks of all objects (judge/holder.h). */
struct prb_walks {
	double left; /**< processor seconds */
	double took; /**< seconds of the clock, added by each walk */
};

/** Starts as {}, with the first part filled by the caller, who ends it by prb_case_deinit(). */
struct prb_case {
	struct prb_target *target;    /**< borrowed; NULL: could not be opened */
	const struct prb_dump *dump;  /**< borrowed; NULL: threads could not be read */
	struct prb_dump_found *found; /**< borrowed, or NULL: of that dump; rules fill it, too */
	const char *unreadable;	      /**< borrowed: why there is no dump, or NULL */
	pid_t pid;		      /**< 0: a file */
	const char *words;	      /**< borrowed: the target as a command line takes it */
	/** How long the dump and its idle times took to read. 0: an instant; negative: unknown. */
	double read_seconds;
	double patience; /**< seconds that a rule may wait for a second reading; 0: none */
	double spent;	 /**< seconds that rules have taken for second readings */
	bool at_once;	 /**< but not for judge/look.h: the caller looks often by itself */
	/** Set by a rule that would say more if the threads were read once more, a little later. */
	bool again;
	/** Borrowed: resident memory by the monotonic clock, noted by a caller that looks often, or
	 * NULL. */
	const struct prb_memory_row *memories;
	size_t memory_count;
	struct prb_glances *glances; /**< borrowed: shared by the cases of one moment; or NULL */
	/** The caller has looked: the process has no rings, is none of an inference server. */
	bool no_rings, no_server;
	double since; /**< seconds since then: threads that slept have slept so much longer */
	struct prb_case_memory memory; /**< filled by the caller, or by prb_case_memory() */

	/** Threads and their context switches at an earlier look, of rules that set `again`. */
	PRB_VEC(struct prb_case_sleeper) sleepers;
	struct prb_look *look;	     /**< judge/look.h; NULL: nobody has asked for it */
	struct prb_walks *walks;     /**< borrowed; NULL: no walks of all objects are made */
	struct prb_gil_history *gil; /**< judge/gil.h; NULL: nothing was noted */
	struct prb_holder *holder;   /**< judge/holder.h; NULL: nobody has asked for it */

	/* Internal to facts.c. */
	struct prb_str status, groups, mounts;
	bool status_read, groups_read, mounts_read;
};

void prb_case_deinit(struct prb_case *c);
/** Before another look: what was read is read again; the sleepers stay. */
void prb_case_renew(struct prb_case *c);

struct prb_rule {
	unsigned rank; /**< the worst has the lowest */
	const char *name;
	enum prb_finding_kind kind;
	unsigned needs;	    /**< of enum prb_rule_need */
	bool waits;	    /**< it reads again after a moment: without patience it finds nothing */
	const char *proves; /**< one line: what a finding says */
	/** Adds findings by prb_finding_add(). */
	struct prb_error *(*find)(const struct prb_rule *rule, struct prb_case *c,
				  struct prb_findings *ret);
};

/** All rules, the worst first; ends with NULL. */
extern const struct prb_rule *const prb_rules[];

/** Runs the rules whose needs are among @p offered; the worst finding comes first. */
struct prb_error *prb_judge(struct prb_case *c, unsigned offered,
			    struct prb_findings *ret) PRB_MUST_CHECK;

/** Runs one rule; what it needs is there. */
struct prb_error *prb_judge_by(const struct prb_rule *rule, struct prb_case *c,
			       struct prb_findings *ret) PRB_MUST_CHECK;

/** Adds the seconds since @p began (prb_clock_seconds()) to `spent`. */
void prb_case_spent(struct prb_case *c, double began);

/** Adds an empty finding of @p rule, for the caller to fill. */
struct prb_error *prb_finding_add(const struct prb_rule *rule, struct prb_findings *findings,
				  struct prb_finding **ret) PRB_MUST_CHECK;

/** As prb_idle_note(), for the threads whose idle times the rules with these needs ask for. */
struct prb_error *prb_judge_note_idle(struct prb_idle *idle, struct prb_target *t,
				      struct prb_dump *dump, unsigned offered) PRB_MUST_CHECK;

/** `read_seconds` of a case whose reading began at @p began (prb_clock_seconds()) and is over. */
double prb_judge_read_seconds(const struct prb_target *t, double began);

#endif

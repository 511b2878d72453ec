/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file A finding: what is wrong with a process, in one sentence, with its evidence and what would
 * refute it.
 *
 * Threading: none of its own. Texts are the finding's, and escaped. Memory that runs out is noted
 * in the texts (`failed`), as for all of struct prb_str.
 */
#ifndef PRB_JUDGE_FINDING_H
#define PRB_JUDGE_FINDING_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"

/** The kind of a finding. The exit code of `probing why` is 9 plus this number. */
enum prb_finding_kind {
	PRB_FINDING_NOTHING,   /**< no finding */
	PRB_FINDING_DEADLOCK,  /**< 10: threads wait for each other */
	PRB_FINDING_ORPHAN,    /**< 11: the lock's owner is no thread of the process */
	PRB_FINDING_STOPPED,   /**< 12: stopped, traced or frozen */
	PRB_FINDING_LOCKS,     /**< 13: threads wait for a lock that another thread holds */
	PRB_FINDING_GIL,       /**< 14: its holder sleeps, or many threads wait for it */
	PRB_FINDING_DEVICE,    /**< 15: a wait in the kernel for a disk or a device */
	PRB_FINDING_MEMORY,    /**< 16: memory near its limit, swapped out, or the OOM killer */
	PRB_FINDING_PROCESSOR, /**< 17: throttled by its control group */
	PRB_FINDING_CHILDREN,  /**< 18: ended children that it does not reap */
	PRB_FINDING_ENDED,     /**< 19: killed by a signal, as a core file says */
	PRB_FINDING_UNKNOWN,   /**< 20: a sign of trouble, and no proof of its cause */
	PRB_FINDING_STILL,     /**< 21: nothing runs, and nothing outside ends its waits */
	PRB_FINDING_CUSTOM,    /**< 22: a rule of the user's says so */
	PRB_FINDING_NAN,       /**< 23: a watched value is NaN */
	PRB_FINDING_SERVER,    /**< 24: requests of an inference server do not move */
	PRB_FINDING_ROOM,      /**< 25: a file system that it writes to is full */
	PRB_FINDING_LOOP,      /**< 26: a thread computes, and nothing changes */
	PRB_FINDING_LEAK,      /**< 27: memory that grows and grows */
	PRB_FINDING_JOB,       /**< 28: ranks of a distributed job wait for one of them */
	PRB_FINDING_PEER,      /**< 29: a server does not answer, or a pipe does not end */
	PRB_FINDING_STEPS,     /**< 30: something else than the model takes a training step */
	PRB_FINDING_KINDS,     /**< number of kinds */
};
enum { PRB_FINDING_EXIT = 9 };

enum prb_confidence { PRB_CONFIDENCE_LOW, PRB_CONFIDENCE_MEDIUM, PRB_CONFIDENCE_HIGH };

/** One line of evidence. */
struct prb_finding_line {
	pid_t tid; /**< the thread that it is about; 0: none */
	struct prb_str text;
};

struct prb_finding {
	const char *rule; /**< its name; static */
	unsigned rank;	  /**< of the rule: the worst has the lowest */
	enum prb_finding_kind kind;
	enum prb_confidence confidence;
	double lasted;		 /**< seconds that it has been so; 0: not said */
	bool proof;		 /**< no thread that exists can end this state */
	struct prb_str brief;	 /**< a few words for tables: "deadlock of 2 threads" */
	struct prb_str sentence; /**< one sentence, without a full stop */
	PRB_VEC(struct prb_finding_line) evidence;
	struct prb_str rests_on; /**< what was read, and what was not */
	struct prb_str wrong_if; /**< what would refute it */
	struct prb_str next;	 /**< a command, or "" */
	PRB_VEC(pid_t) tids;	 /**< the threads that it is about */
	PRB_VEC(pid_t) pids;	 /**< other processes that it is about */
};

struct prb_findings {
	PRB_VEC(struct prb_finding *) list;
};

void prb_findings_deinit(struct prb_findings *findings);
#define prb_auto_findings __attribute__((cleanup(prb_findings_deinit)))

/** Adds a line of evidence about the thread @p tid (0: none), for the caller to fill. */
struct prb_error *prb_finding_line(struct prb_finding *finding, pid_t tid,
				   struct prb_str **ret) PRB_MUST_CHECK;
/** Notes that the finding is about the thread @p tid; 0 is no thread. */
struct prb_error *prb_finding_tid(struct prb_finding *finding, pid_t tid) PRB_MUST_CHECK;
/** Notes that the finding is about another process. */
struct prb_error *prb_finding_pid(struct prb_finding *finding, pid_t pid) PRB_MUST_CHECK;

/** True if one of them, of a rule of a low rank, says why threads do not move. */
bool prb_findings_explain(const struct prb_findings *findings);

/** True if the rule @p rule has found something. */
bool prb_findings_have(const struct prb_findings *findings, const char *rule);

/** True if they have the same rule and confidence: about one process, monitoring has them once. */
bool prb_finding_is_alike(const struct prb_finding *a, const struct prb_finding *b);

/** True if an earlier one is alike. */
bool prb_findings_is_repeated(const struct prb_findings *findings, size_t number);

/** The metric of findings, in words. */
#define PRB_FINDING_HELP "1 for each rule that finds something wrong"

/** "high", "medium", "low"; static. */
const char *prb_confidence_name(enum prb_confidence confidence);
/** "deadlock", "orphan", …: one word for each kind; static. */
const char *prb_finding_kind_name(enum prb_finding_kind kind);

#endif

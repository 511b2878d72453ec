/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file What the Python processes of this machine do now, and what is wrong with them: read again
 * and again, at little cost.
 *
 * A process whose threads had no processor since it was last read (prb_pulse.ran) has not changed,
 * and is not read again but every thirty seconds. Data that cannot change while a program runs
 * (modules, layouts, the ranks of a job) is read once.
 *
 * Threading: one thread at a time.
 */
#ifndef PRB_CLI_COMMANDS_OVERVIEW_OVERVIEW_H
#define PRB_CLI_COMMANDS_OVERVIEW_OVERVIEW_H

#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"
#include "cluster/jobs/job.h"
#include "command/command.h"
#include "dump/dump.h"
#include "judge/glance.h"
#include "judge/judge.h"
#include "rings/memory_rows.h"
#include "target/proc/process.h"
#include "target/target.h"

/** The activity of its main thread. Texts are NULL where nothing is known. */
struct prb_overview_main {
	pid_t tid;
	const char *state;   /**< static */
	double idle_seconds; /**< when it was read; negative: not known */
	char *waits_for, *func, *qualname, *file;
	int line;
};

/** A process, or a file that was named. */
struct prb_overview_row {
	char *file;	 /**< as it was named; NULL: a process */
	unsigned number; /**< of the file, counted from 1 */
	struct prb_python_process info;
	bool named; /**< it stays in the list when it ends */
	bool ended;
	char *error; /**< why there is nothing of its threads, or NULL */
	char *version;
	struct prb_pulse pulse;
	double cpu_percent; /**< of one processor, since it was last looked at; negative: unknown */
	int64_t swap, limit, limit_used; /**< bytes; -1: not known, or none */
	int64_t step;			 /**< the last recorded step; -1: none */
	double read;			 /**< when its threads were read, monotonic; 0: never */
	struct prb_overview_main main;
	pid_t gil_holder;		      /**< 0: none, or unknown */
	unsigned gil_waiters;		      /**< threads */
	PRB_VEC(char *) troubles;	      /**< what is wrong, the worst first */
	bool judged;			      /**< by the rules */
	bool hangs;			      /**< its job does */
	PRB_VEC(struct prb_memory_row) trend; /**< by monotonic time; see trend.c */
	struct prb_findings findings;

	/* The rest belongs to pass.c. */
	struct prb_target *target;
	struct prb_dump_found found;
	struct prb_dump *dump;	/**< of its threads, as it was last read; NULL: none */
	struct prb_case rules;	/**< what the rules know of it */
	bool is_new;		/**< the dump was made in this pass */
	unsigned looks;		/**< that were had since it was opened */
	char *groups;		/**< its control groups */
	char *words;		/**< as a command line names it */
	char *user;		/**< name, or number, of its user */
	struct prb_str command; /**< its command line as it was when it was described */
};

struct prb_overview;

/** Of @p targets; none: all Python processes. */
struct prb_error *prb_overview_create(const struct prb_texts *targets,
				      const struct prb_core_places *places,
				      struct prb_overview **ret) PRB_MUST_CHECK;
void prb_overview_destroy(struct prb_overview *overview);

/** Looks at all. Only what ends the whole is an error; rows have their own. */
struct prb_error *prb_overview_pass(struct prb_overview *overview) PRB_MUST_CHECK;

/** When the last pass was made (monotonic), and the seconds that it took. */
double prb_overview_time(const struct prb_overview *overview);
double prb_overview_seconds(const struct prb_overview *overview);

/** The rows of the last pass: in the order in which they were named, or by pid. */
size_t prb_overview_count(const struct prb_overview *overview);
const struct prb_overview_row *prb_overview_row(const struct prb_overview *overview, size_t index);
/** The row of a process that runs; NULL if there is none. */
struct prb_overview_row *prb_overview_row_of(const struct prb_overview *overview, pid_t pid);

/* judge.c */

/** What it offers to rules. */
enum { PRB_OVERVIEW_OFFERS = PRB_RULE_THREADS | PRB_RULE_MEMORY | PRB_RULE_PROC };

/** Fills the row from its new dump of threads. */
struct prb_error *prb_overview_judge(struct prb_overview_row *row) PRB_MUST_CHECK;
/** Makes the findings and the troubles anew, at the time @p now. */
struct prb_error *prb_overview_trouble(struct prb_overview_row *row, double now,
				       struct prb_glances *glances) PRB_MUST_CHECK;
/** Forgets what is known of its threads, and the troubles. */
void prb_overview_row_clear(struct prb_overview_row *row);

/* trend.c */

/** Notes the memory that the pulse has; to be called at each look. */
void prb_overview_trend_note(struct prb_overview_row *row, double now);

/* jobs.c */

/** A rank that was there once, and is not any more. */
struct prb_overview_gone {
	long rank;
	double when; /**< that it was missed first, since the epoch */
};

/** A distributed job that has ranks among the rows. */
struct prb_overview_job {
	struct prb_job *job;	      /**< of the list of jobs */
	bool whole;		      /**< all of its ranks here are rows */
	bool hangs;		      /**< as the finding says */
	double judged;		      /**< monotonic; 0: never */
	struct prb_findings findings; /**< that it hangs or lacks ranks, or none */
	long blamed;		      /**< rank that the finding is about; -1: none */
	PRB_VEC(struct prb_overview_gone) gone;
};

/** Starts as {}. */
struct prb_overview_jobs {
	struct prb_jobs found;
	PRB_VEC(struct prb_overview_job) list;
	double looked;	/**< when they were found; 0: never */
	uint64_t state; /**< of the rows then: which processes they were */
};
void prb_overview_jobs_deinit(struct prb_overview_jobs *jobs);

/** Finds the jobs anew if processes have started or ended, but at most every ten seconds. */
struct prb_error *prb_overview_jobs_find(struct prb_overview_jobs *jobs,
					 const struct prb_overview *overview) PRB_MUST_CHECK;
/**
 * Has `cluster hang` judge the jobs of which a rank has waited for long; each takes it a second or
 * two. Notes the rows whose job hangs.
 */
struct prb_error *prb_overview_jobs_judge(struct prb_overview_jobs *jobs,
					  const struct prb_overview *overview) PRB_MUST_CHECK;
/** The job of a row, or NULL. */
const struct prb_overview_job *prb_overview_job_of(const struct prb_overview_jobs *jobs,
						   const struct prb_overview_row *row);
/** The row that a finding about the job belongs to: of the blamed rank, or another one's. */
const struct prb_overview_row *prb_overview_job_row(const struct prb_overview_job *job,
						    const struct prb_overview *overview);

/* show.c */
struct prb_error *prb_overview_json(const struct prb_overview *overview,
				    const struct prb_overview_jobs *jobs,
				    struct prb_str *ret) PRB_MUST_CHECK;
/** For a terminal of @p columns: within them, and with what to type next. 0: for no terminal. */
struct prb_error *prb_overview_text(const struct prb_overview *overview,
				    const struct prb_overview_jobs *jobs, size_t columns,
				    struct prb_str *ret) PRB_MUST_CHECK;

#endif

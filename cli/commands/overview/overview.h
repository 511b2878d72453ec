/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file What the Python processes of this machine do now, and what is wrong with them: read again
 * and again, at little cost.
 *
 * A process whose threads had no processor since it was last read (prb_pulse.ran) has not changed,
 * and is neither read nor judged again until its sleep passes a limit of a rule, or after up to a
 * minute and a half, the more seldom the more there are. Data that cannot change while a program
 * runs (modules, layouts, the ranks of a job) is read once.
 *
 * Threading: one thread at a time.
 */
#ifndef PRB_CLI_COMMANDS_OVERVIEW_OVERVIEW_H
#define PRB_CLI_COMMANDS_OVERVIEW_OVERVIEW_H

#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"
#include "cluster/jobs/job.h"
#include "cluster/watch/incident.h"
#include "command/command.h"
#include "dump/dump.h"
#include "inference/engine.h"
#include "judge/glance.h"
#include "judge/judge.h"
#include "judge/ranking.h"
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

/** Since when (monotonic seconds) a thread waits at a place, which is a hash. */
struct prb_overview_wait {
	pid_t tid;
	uint64_t place;
	double since;
};

/** A process, or a file that was named. */
struct prb_overview_row {
	char *file;	 /**< as it was named; NULL: a process */
	unsigned number; /**< of the file, counted from 1 */
	struct prb_python_process info;
	bool named; /**< it stays in the list when it ends */
	bool ended;
	struct prb_str end; /**< how, "killed by SIGKILL", if its parent has not asked yet */
	char *error;	    /**< why there is nothing of its threads, or NULL */
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
	/** Loading the agent has interrupted its main thread: how long it had waited is not known.
	 */
	bool interrupted;

	/* The rest belongs to pass.c. */
	struct prb_target *target;
	struct prb_dump_found found;
	struct prb_dump *dump; /**< of its threads, as it was last read; NULL: none */
	struct prb_case rules; /**< what the rules know of it */
	PRB_VEC(struct prb_overview_wait) waits; /**< of the latest dump; see waits.c */
	bool waited;				 /**< they were noted */
	bool is_new;				 /**< the dump was made in this pass */
	double judged_at;			 /**< monotonic; 0: never */
	double patient_at;			 /**< the same, with rules that wait */
	double ran_at;		      /**< monotonic; when it was last seen to have run */
	double read_cost, judge_cost; /**< seconds of processor, the last time */
	/** It had rings, or was a process of an inference server, when that was looked for. */
	bool rings, server;
	double searched;	/**< monotonic: when that was; 0: never */
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
static inline void prb_overview_destroyp(struct prb_overview **overview)
{
	prb_overview_destroy(*overview);
}
#define prb_auto_overview __attribute__((cleanup(prb_overview_destroyp)))

/** Finds the processes, before the first pass: nothing is known of their threads. */
struct prb_error *prb_overview_list(struct prb_overview *overview) PRB_MUST_CHECK;
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
/** Makes the findings and the troubles anew, at the time @p now; @p walks as that of a case. */
struct prb_error *prb_overview_trouble(struct prb_overview_row *row, double now,
				       struct prb_walks *walks,
				       struct prb_glances *glances) PRB_MUST_CHECK;
/** Forgets what is known of its threads, and the troubles. */
void prb_overview_row_clear(struct prb_overview_row *row);

/* waits.c */

/**
 * Notes the waits of a new dump, whose idle times were read, and corrects these: a wait that was
 * interrupted to load the agent lasts for as long as it was seen before.
 */
struct prb_error *prb_overview_waits_note(struct prb_overview_row *row) PRB_MUST_CHECK;
void prb_overview_waits_forget(struct prb_overview_row *row);

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
	struct prb_incident_ends ends; /**< of ranks without a process, gone or never seen */
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
/** True if there are jobs that prb_overview_jobs_judge() would have judged, and were not yet. */
bool prb_overview_jobs_wait(const struct prb_overview_jobs *jobs,
			    const struct prb_overview *overview);
/** How a rank without a process has ended, "killed by SIGKILL"; NULL: nobody told. */
const char *prb_overview_job_end(const struct prb_overview_job *job, long rank);
/** The job of a row, or NULL. */
const struct prb_overview_job *prb_overview_job_of(const struct prb_overview_jobs *jobs,
						   const struct prb_overview_row *row);
/** The row that a finding about the job belongs to: of the blamed rank, or another one's. */
const struct prb_overview_row *prb_overview_job_row(const struct prb_overview_job *job,
						    const struct prb_overview *overview);

/* facts.c */
/** Takes over what the new dump of threads says of its Python. */
struct prb_error *prb_overview_read_texts(struct prb_overview_row *row) PRB_MUST_CHECK;
/**
 * Reads its last step and command line and, with @p engines, its control groups, and looks for
 * rings and a server; NULL: that was done a moment ago.
 */
struct prb_error *prb_overview_read_facts(struct prb_overview_row *row,
					  const struct prb_engines *engines) PRB_MUST_CHECK;

/* show.c */
/** Appends the findings of jobs and rows, the worst first; their owners are rows. */
struct prb_error *prb_overview_rank(const struct prb_overview *overview,
				    const struct prb_overview_jobs *jobs,
				    struct prb_ranking *ret) PRB_MUST_CHECK;
/** @p pending: some are still to be judged, so that no finding does not mean that all is well. */
struct prb_error *prb_overview_json(const struct prb_overview *overview,
				    const struct prb_overview_jobs *jobs, bool pending,
				    struct prb_str *ret) PRB_MUST_CHECK;
/** For a terminal of @p columns: within them, and with what to type next. 0: for no terminal. */
struct prb_error *prb_overview_text(const struct prb_overview *overview,
				    const struct prb_overview_jobs *jobs, bool pending,
				    size_t columns, struct prb_str *ret) PRB_MUST_CHECK;

#endif

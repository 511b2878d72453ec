/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The ranks of a distributed job on this machine, found from outside.
 *
 * A launcher (torchrun, mpirun, srun) gives each rank its number in the environment. Processes of
 * the same user whose environments name the same job belong together. Of a rank and its children,
 * which inherit the environment, the outermost process is the rank; a launcher that is itself a
 * rank of an outer job is left out. A process without such variables is asked for what it has
 * itself (rank_inside.h).
 *
 * Environments are the words of their processes: a process can claim any rank of its own user's
 * jobs, and no rank of another user's. Texts are escaped when they are printed.
 *
 * Threading: any thread. A job owns all that it points to.
 */
#ifndef PRB_CLUSTER_JOBS_JOB_H
#define PRB_CLUSTER_JOBS_JOB_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"

struct prb_rank {
	long rank;
	long local_rank; /**< -1: unknown */
	pid_t other;	 /**< another process that claims the rank, and was left out; 0: none */
	const char *other_host; /**< where that runs, as `host` */
	pid_t pid;	  /**< 0: no process has this rank, although this machine should have it */
	char *command;	  /**< the command line, for people; NULL without a process */
	char *cut;	  /**< the same where secrets are left out */
	char *role;	  /**< what its environment calls its role; NULL: nothing */
	const char *host; /**< where it runs, borrowed; NULL: this machine */
};

struct prb_job {
	char *name; /**< "torch 127.0.0.1:29500", "slurm 4711.0", … */
	uid_t uid;
	ino_t network;			/**< namespace of the loopback address in the name, or 0 */
	char *slurm;			/**< number of the Slurm job that it runs in, or NULL */
	long world_size;		/**< -1: unknown */
	bool complete;			/**< all ranks of the job are on this machine */
	PRB_VEC(struct prb_rank) ranks; /**< by rank */
};

struct prb_jobs {
	PRB_VEC(struct prb_job) list; /**< in the order of their lowest pid */
};

/**
 * The name of the job of process @p pid, whose environment has a rank, among the jobs of all
 * machines; for the caller to free. Where its address is a machine's own loopback interface, the
 * boot of this machine and the number of the network namespace follow:
 * "torch 127.0.0.1:29500@3f2c9a1b7d40.4026531840".
 */
char *prb_job_name_of_all(const struct prb_str *environment, pid_t pid);

/** True if a job of that name has the address of a machine's own loopback interface. */
bool prb_job_is_of_one_machine(const char *name);

/** Finds all jobs of which we may read at least one process. */
struct prb_error *prb_jobs_find(struct prb_jobs *ret) PRB_MUST_CHECK;
void prb_jobs_deinit(struct prb_jobs *jobs);
void prb_job_deinit(struct prb_job *job);
#define prb_auto_jobs __attribute__((cleanup(prb_jobs_deinit)))

/** The first process that has a rank; 0: none is here. */
static inline pid_t prb_job_first_pid(const struct prb_job *job)
{
	const struct prb_rank *rank;

	prb_vec_each (rank, &job->ranks)
		if (rank->pid)
			return rank->pid;
	return 0;
}

/** The number of ranks that have a process on this machine. */
static inline long prb_job_count_here(const struct prb_job *job)
{
	const struct prb_rank *rank;
	long count = 0;

	prb_vec_each (rank, &job->ranks)
		count += rank->pid != 0;
	return count;
}

/** Leaves out all ranks but those of the processes @p pids, and jobs without any. */
void prb_jobs_keep(struct prb_jobs *jobs, const pid_t *pids, size_t count);

/**
 * Chooses the job that @p text means: the pid of one of its ranks, of an ancestor of all of them or
 * of a launcher that lists them (launcher.h), "slurm:4711" for the ranks of that Slurm job, or a
 * part of its name; a number that is no process may be a whole number in its name, or that of its
 * Slurm job. NULL means the only job. *ret is borrowed from @p jobs. PRB_ERROR_NOT_FOUND if there
 * is none, PRB_ERROR_USAGE with a list if there are several.
 */
struct prb_error *prb_jobs_choose(struct prb_jobs *jobs, const char *text,
				  struct prb_job **ret) PRB_MUST_CHECK;

#endif

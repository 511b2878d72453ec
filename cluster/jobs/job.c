/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cluster/jobs/job.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "base/text.h"
#include "cluster/jobs/launcher.h"
#include "cluster/jobs/rank_inside.h"
#include "target/proc/process.h"
#include "target/spec/command_line.h"
#include "target/target.h"
#include "values/environment.h"

enum {
	MAX_ANCESTORS = 64,
	MOST_TOLD = 5,	     /* jobs in a message */
	MAX_WORLD = 1 << 20, /* a world size beyond this is no number of processes */
	MAX_LOCAL = 4096,    /* ranks on one machine that are listed although they are missing */
};

/** A process that says that it is a rank. */
struct candidate {
	const struct prb_python_process *process;
	char *name, *slurm, *role;
	struct prb_process_job job;
	long local_size, group; /**< ranks on its host, and the number of the host; -1: unknown */
	bool loopback;		/**< the job's address is this machine's own */
	ino_t network;		/**< the network namespace that such an address is of; 0: any */
	bool launched;		/**< its launcher has set RANK, as torchrun does */
	bool dropped;
	pid_t task;    /**< the process that Slurm has started for the rank, or 0 */
	bool led;      /**< its leader runs */
	pid_t other;   /**< another process that claims the same rank, or 0 */
	bool asked;    /**< the next three were looked for */
	char *claimed; /**< the job that its own os.environ names */
	long claims;   /**< rank in that, or in its process group; -1: none */
	struct prb_process_job claimed_job;
	bool own; /**< it has its place from there: a program has started its ranks itself */
};

struct candidates {
	PRB_VEC(struct candidate) list;
};

static void candidates_deinit(struct candidates *candidates)
{
	struct candidate *c;

	prb_vec_each (c, &candidates->list) {
		free(c->name);
		free(c->slurm);
		free(c->role);
		free(c->claimed);
	}
	prb_vec_free(&candidates->list);
}

static void rank_deinit(struct prb_rank *rank)
{
	free(rank->command);
	free(rank->cut);
	free(rank->role);
}

static void keep_ranks(struct prb_job *job, const pid_t *pids, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < job->ranks.count; i++) {
		struct prb_rank *rank = &job->ranks.items[i];
		bool keep = false;

		for (size_t j = 0; j < count; j++)
			keep |= rank->pid && rank->pid == pids[j];
		if (keep)
			job->ranks.items[kept++] = *rank;
		else
			rank_deinit(rank);
	}
	job->ranks.count = kept;
}

void prb_jobs_keep(struct prb_jobs *jobs, const pid_t *pids, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < jobs->list.count; i++) {
		keep_ranks(&jobs->list.items[i], pids, count);
		if (jobs->list.items[i].ranks.count)
			jobs->list.items[kept++] = jobs->list.items[i];
		else
			prb_job_deinit(&jobs->list.items[i]);
	}
	jobs->list.count = kept;
}

void prb_job_deinit(struct prb_job *job)
{
	struct prb_rank *rank;

	prb_vec_each (rank, &job->ranks)
		rank_deinit(rank);
	prb_vec_free(&job->ranks);
	free(job->name);
	free(job->slurm);
}

void prb_jobs_deinit(struct prb_jobs *jobs)
{
	struct prb_job *job;

	prb_vec_each (job, &jobs->list)
		prb_job_deinit(job);
	prb_vec_free(&jobs->list);
}

/** The value of a variable in /proc's form of an environment; NULL if it is not set or empty. */
static const char *variable(const struct prb_str *environment, const char *name)
{
	size_t length = strlen(name);

	for (size_t at = 0; at < environment->length;) {
		const char *here = environment->data + at;

		if (!strncmp(here, name, length) && here[length] == '=' && here[length + 1])
			return here + length + 1;
		at += strlen(here) + 1;
	}
	return NULL;
}

static long number(const struct prb_str *environment, const char *name)
{
	const char *text = variable(environment, name);
	char *end;
	long value = text ? strtol(text, &end, 10) : -1;

	return text && !*end && value >= 0 && value <= MAX_WORLD ? value : -1;
}

static pid_t task_of(const struct prb_str *environment)
{
	const char *text = variable(environment, "SLURM_TASK_PID");
	char *end;
	long value = text ? strtol(text, &end, 10) : 0;

	return text && !*end && value > 0 && value <= INT_MAX ? (pid_t)value : 0;
}

static const char UNNAMED[] = "unnamed";

/** Names the job of an environment with a rank; NULL if nothing identifies the job. */
static char *name_job(const struct prb_str *environment)
{
	static const char *const others[][2] = {{"SLURM_JOB_ID", "slurm"},
						{"PMIX_NAMESPACE", "mpi"},
						{"OMPI_MCA_ess_base_jobid", "mpi"},
						{"PMI_JOBID", "mpi"}};
	const char *address = variable(environment, "MASTER_ADDR");
	const char *port = variable(environment, "MASTER_PORT");

	if (variable(environment, "RANK") && address)
		return prb_format("torch %.200s:%.20s", address, port ? port : "?");
	for (size_t i = 0; i < PRB_ARRAY_SIZE(others); i++) {
		const char *id = variable(environment, others[i][0]);
		const char *step = variable(environment, "SLURM_STEP_ID");

		if (id && !i && step)
			return prb_format("slurm %.100s.%.20s", id, step);
		if (id)
			return prb_format("%s %.100s", others[i][1], id);
	}
	return address ? prb_format("torch %.200s:%.20s", address, port ? port : "?")
		       : strdup(UNNAMED);
}

static bool is_loopback(const char *address)
{
	return address && (!strcmp(address, "localhost") || !strncmp(address, "127.", 4) ||
			   !strcmp(address, "::1"));
}

bool prb_job_is_of_one_machine(const char *name)
{
	static const char torch[] = "torch ";
	const char *colon = name ? strrchr(name, ':') : NULL;
	prb_auto_free char *address =
		colon && !strncmp(name, torch, strlen(torch))
			? strndup(name + strlen(torch), (size_t)(colon - name) - strlen(torch))
			: NULL;

	return is_loopback(address);
}

/** Containers have loopback addresses of their own: the same one is another job in each. 0:
 * unknown. */
static ino_t network_of(pid_t pid)
{
	char path[40];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)pid);
	return stat(path, &st) ? 0 : st.st_ino;
}

/** Appends an identity of the running kernel, unique among machines: "3f2c9a1b7d40". */
static void put_boot(struct prb_str *s)
{
	prb_auto_fclose FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
	char id[40]; /* a random number: "3f2c9a1b-7d40-…" */

	if (file && fgets(id, sizeof(id), file) && strlen(id) > 13)
		prb_str_printf(s, "%.8s%.4s", id, id + 9);
	else
		prb_str_putc(s, '?');
}

char *prb_job_name_of_all(const struct prb_str *environment, pid_t pid)
{
	prb_auto_free char *name = name_job(environment);
	prb_auto_str struct prb_str s = {};

	if (!name)
		return NULL;
	prb_str_puts(&s, name);
	if (prb_job_is_of_one_machine(name)) {
		prb_str_putc(&s, '@');
		put_boot(&s);
		prb_str_printf(&s, ".%lu", (unsigned long)network_of(pid));
	}
	return prb_str_take(&s);
}

/** "default" is torchrun's name for all ranks unless another is set. */
static const char *role(const struct prb_str *environment)
{
	const char *name = variable(environment, "ROLE_NAME");

	return name && strcmp(name, "default") != 0 ? name : NULL;
}

/** The variables of its launcher, or of its own; none if it is no rank, or gone. */
static struct prb_error *read_environment(const struct prb_python_process *p, struct prb_str *ret)
{
	prb_auto_target struct prb_target *target = NULL;

	prb_auto_error struct prb_error *gone = prb_target_open_process(p->process.pid, &target);
	if (gone)
		return NULL;
	gone = prb_target_read_file(target, ret, "environ");
	if (p->rank >= 0)
		return NULL;
	bool blank = prb_environment_is_blank(ret);

	prb_str_truncate(ret, 0);
	if (!blank && !prb_rank_inside_is_likely(&p->process, target))
		return NULL;
	return prb_rank_inside_read(target, ret);
}

/** The job's name; processes for which nothing names one have their parent in common. */
static char *name_candidate(const struct prb_python_process *p, const struct prb_str *environment)
{
	char *name = name_job(environment);

	if (!name || p->rank >= 0 || strcmp(name, UNNAMED) != 0)
		return name;
	free(name);
	return prb_format("torch started by %d", (int)p->process.ppid);
}

static struct prb_error *add_candidate(struct candidates *candidates,
				       const struct prb_python_process *p)
{
	prb_auto_str struct prb_str environment = {};
	struct candidate *c;

	PRB_TRY(read_environment(p, &environment));

	struct prb_process_job job = prb_process_job(&environment);
	if (job.rank < 0 || job.rank > MAX_WORLD)
		return NULL;
	c = prb_vec_push(&candidates->list);
	if (!c)
		return prb_error_nomem();
	*c = (struct candidate){.process = p,
				.name = name_candidate(p, &environment),
				.job = job,
				.local_size = number(&environment, "LOCAL_WORLD_SIZE"),
				.group = number(&environment, "GROUP_RANK"),
				.task = task_of(&environment),
				.loopback = is_loopback(variable(&environment, "MASTER_ADDR")),
				.launched = variable(&environment, "RANK") != NULL};
	if (c->loopback)
		c->network = network_of(p->process.pid);
	PRB_TRY(prb_str_copy(variable(&environment, "SLURM_JOB_ID"), &c->slurm));
	PRB_TRY(prb_str_copy(role(&environment), &c->role));
	return c->name ? NULL : prb_error_nomem();
}

static bool same_job(const struct candidate *a, const struct candidate *b)
{
	return a->process->process.uid == b->process->process.uid && a->network == b->network &&
	       !strcmp(a->name, b->name);
}

static struct candidate *find(struct candidates *candidates, pid_t pid)
{
	struct candidate *c;

	prb_vec_each (c, &candidates->list)
		if (c->process->process.pid == pid)
			return c;
	return NULL;
}

/** Reads the place that the program has taken itself, or its process group has given it. */
static struct prb_error *ask_inside(struct candidate *c)
{
	prb_auto_target struct prb_target *target = NULL;
	prb_auto_str struct prb_str environment = {};

	if (c->asked)
		return NULL;
	prb_auto_error struct prb_error *gone =
		prb_target_open_process(c->process->process.pid, &target);
	if (!gone)
		PRB_TRY(prb_rank_inside_read(target, &environment));
	c->asked = true;
	c->claims = number(&environment, "RANK");
	c->claimed_job = prb_process_job(&environment);
	c->claimed = name_job(&environment);
	return c->claimed ? NULL : prb_error_nomem();
}

/**
 * @p c has the variables of @p above, which has started it: it is its child, unless that is no rank
 * itself, but a program that starts ranks inside a Slurm or MPI job.
 */
static struct prb_error *drop_child(struct candidate *above, struct candidate *c)
{
	c->dropped = true;
	if (c->launched)
		return NULL;
	PRB_TRY(ask_inside(above));
	if (above->claims >= 0)
		return NULL;
	PRB_TRY(ask_inside(c));
	if (c->claims < 0 ||
	    (c->claims == c->job.rank && c->claimed_job.world_size == c->job.world_size))
		return NULL;
	above->dropped = true;
	c->dropped = false;
	c->own = true;
	c->job = c->claimed_job;
	return NULL;
}

/**
 * @p above and @p c are of different jobs: @p above is a launcher; or it has taken its place in its
 * own os.environ, as programs do that Slurm or MPI starts, and what it starts inherits that.
 */
static struct prb_error *drop_launcher(struct candidate *above, struct candidate *c)
{
	PRB_TRY(ask_inside(above));
	if (above->claims == c->job.rank && !strcmp(above->claimed, c->name))
		c->dropped = true;
	else
		above->dropped = true;
	return NULL;
}

/** Walks up from each candidate to find launchers and children of ranks, which are no ranks. */
static struct prb_error *drop_relatives(struct candidates *candidates)
{
	struct candidate *c;

	prb_vec_each (c, &candidates->list) {
		pid_t pid = c->process->process.ppid;

		for (unsigned n = 0; pid > 1 && n < MAX_ANCESTORS && !c->dropped; n++) {
			struct candidate *above = find(candidates, pid);
			struct prb_process between = {};

			if (above && same_job(above, c) && above->own)
				c->dropped = true;
			else if (above && same_job(above, c) && above->job.rank == c->job.rank)
				PRB_TRY(drop_child(above, c));
			else if (above && !same_job(above, c))
				PRB_TRY(drop_launcher(above, c));
			prb_auto_error struct prb_error *err = prb_process_describe(pid, &between);
			pid = err ? 0 : between.ppid;
			prb_process_deinit(&between);
		}
	}
	return NULL;
}

static struct prb_rank *find_rank(struct prb_job *job, long number)
{
	struct prb_rank *rank;

	prb_vec_each (rank, &job->ranks)
		if (rank->rank == number)
			return rank;
	return NULL;
}

static struct prb_error *job_of(struct prb_jobs *jobs, const struct candidate *c,
				struct prb_job **ret)
{
	struct prb_job *job;

	prb_vec_each (job, &jobs->list) {
		*ret = job;
		if (job->uid == c->process->process.uid && job->network == c->network &&
		    !strcmp(job->name, c->name))
			return NULL;
	}
	*ret = job = prb_vec_push(&jobs->list);
	if (!job)
		return prb_error_nomem();
	job->uid = c->process->process.uid;
	job->network = c->network;
	job->world_size = c->job.world_size;
	job->name = strdup(c->name);
	PRB_TRY(prb_str_copy(c->slurm, &job->slurm));
	return job->name ? NULL : prb_error_nomem();
}

static bool same_rank(const struct candidate *a, const struct candidate *b)
{
	return same_job(a, b) && a->job.rank == b->job.rank;
}

/** Ranks of its job that have the same parent, which is their launcher mostly; itself counts. */
static size_t count_siblings(const struct candidates *candidates, const struct candidate *c)
{
	const struct candidate *other;
	size_t count = 0;

	prb_vec_each (other, &candidates->list)
		count += !other->dropped &&
			 other->process->process.ppid == c->process->process.ppid &&
			 same_job(other, c);
	return count;
}

/**
 * Chooses between two processes that claim the same rank: one of an earlier run of the job that did
 * not end, or a daemon that a rank has started, has another parent than the ranks have.
 */
static bool is_rather(const struct candidates *candidates, const struct candidate *a,
		      const struct candidate *b)
{
	size_t like_a = count_siblings(candidates, a), like_b = count_siblings(candidates, b);

	return like_a != like_b ? like_a > like_b
				: a->process->process.start_time <= b->process->process.start_time;
}

/** Leaves one process for each rank, and notes another that claims it. */
static void drop_doubles(struct candidates *candidates)
{
	for (size_t i = 0; i < candidates->list.count; i++) {
		struct candidate *kept = &candidates->list.items[i];

		for (size_t k = i + 1; k < candidates->list.count && !kept->dropped; k++) {
			struct candidate *c = &candidates->list.items[k];

			if (c->dropped || !same_rank(kept, c))
				continue;
			if (is_rather(candidates, kept, c)) {
				c->dropped = true;
				kept->other = c->process->process.pid;
			} else {
				kept->dropped = true;
				c->other = kept->process->process.pid;
			}
		}
	}
}

static bool is_running(pid_t pid)
{
	struct prb_process process = {};
	prb_auto_error struct prb_error *err = prb_process_describe(pid, &process);
	bool running = !err && process.kind == PRB_PROCESS_PROGRAM;

	prb_process_deinit(&process);
	return running;
}

/** The process that Slurm has started for the rank, or the leader of its process group, which is
 * the rank or its launcher mostly. */
static pid_t leader_of(const struct candidate *c)
{
	return c->task > 0 ? c->task : getpgid(c->process->process.pid);
}

/** Launchers execute a program for each rank. Only what a rank has forked has its variables, too.
 */
static bool is_fork(const struct candidate *c)
{
	return c->process->process.forked && c->process->rank >= 0 && !c->own;
}

/** True if @p c, whose leader has ended or which is a fork, is no rank because @p other is one. */
static bool is_left(const struct candidate *c, const struct candidate *other)
{
	if (other->dropped || !other->led || !same_job(c, other))
		return false;
	return is_fork(c) ||
	       (!other->task == !c->task &&
		(c->task || c->process->process.ppid != other->process->process.ppid));
}

/**
 * Drops leftovers of ended ranks, such as workers of a data loader: they have the rank's variables.
 * Where the leaders of all have ended, it tells nothing, nor where the launcher of the others is
 * their parent, too, unless they are forks.
 */
static void drop_left(struct candidates *candidates)
{
	struct candidate *c, *other;

	prb_vec_each (c, &candidates->list)
		if (!c->dropped) {
			pid_t leader = leader_of(c);

			c->led = !is_fork(c) && (leader <= 0 || leader == c->process->process.pid ||
						 is_running(leader));
		}
	prb_vec_each (c, &candidates->list)
		if (!c->dropped && !c->led)
			prb_vec_each (other, &candidates->list)
				c->dropped |= is_left(c, other);
}

static struct prb_error *add_rank(struct prb_jobs *jobs, struct candidate *c)
{
	prb_auto_str struct prb_str command = {}, cut = {};
	struct prb_rank *rank;
	struct prb_job *job;

	PRB_TRY(job_of(jobs, c, &job));
	rank = prb_vec_push(&job->ranks);
	if (!rank)
		return prb_error_nomem();
	prb_command_line_text(&command, &c->process->process);
	prb_command_line_cut(&cut, &c->process->process);
	*rank = (struct prb_rank){.rank = c->job.rank,
				  .local_rank = c->job.local_rank,
				  .pid = c->process->process.pid,
				  .other = c->other,
				  .command = prb_str_take(&command),
				  .cut = prb_str_take(&cut),
				  .role = prb_steal(&c->role)};
	return rank->command && rank->cut ? NULL : prb_error_nomem();
}

static struct prb_error *add_missing(struct prb_job *job, long first, long count)
{
	for (long n = first; n < first + count; n++) {
		struct prb_rank *rank = find_rank(job, n);

		if (rank)
			continue;
		rank = prb_vec_push(&job->ranks);
		if (!rank)
			return prb_error_nomem();
		*rank = (struct prb_rank){.rank = n, .local_rank = -1};
	}
	return NULL;
}

/** Adds the ranks that must be here and are not. If enough are here, others may be elsewhere. */
static struct prb_error *complete_job(struct prb_job *job, const struct candidate *c)
{
	long world = job->world_size, local = c->local_size;
	/* Rank 0 may call its own machine so, and be alone there: a PyTorchJob of Kubernetes. */
	bool together = local > 0 ? local == world : c->loopback && c->job.rank > 0;

	if (world > 0 && world <= MAX_LOCAL && together)
		PRB_TRY(add_missing(job, 0, world));
	else if (local > prb_job_count_here(job) && local <= MAX_LOCAL && c->job.local_rank >= 0 &&
		 c->job.local_rank <= c->job.rank)
		PRB_TRY(add_missing(job, c->job.rank - c->job.local_rank, local));
	job->complete = world > 0 && job->ranks.count == (size_t)world;
	return NULL;
}

static int by_rank(const void *a, const void *b)
{
	const struct prb_rank *x = a, *y = b;

	return (x->rank > y->rank) - (x->rank < y->rank);
}

static struct prb_error *make_jobs(struct candidates *candidates, struct prb_jobs *ret)
{
	struct candidate *c;
	struct prb_job *job;

	PRB_TRY(drop_relatives(candidates));
	drop_left(candidates);
	drop_doubles(candidates);
	prb_vec_each (c, &candidates->list)
		if (!c->dropped)
			PRB_TRY(add_rank(ret, c));
	prb_vec_each (c, &candidates->list) {
		if (c->dropped)
			continue;
		PRB_TRY(job_of(ret, c, &job));
		PRB_TRY(complete_job(job, c));
	}
	prb_vec_each (job, &ret->list)
		qsort(job->ranks.items, job->ranks.count, sizeof(*job->ranks.items), by_rank);
	return NULL;
}

struct prb_error *prb_jobs_find(struct prb_jobs *ret)
{
	__attribute__((cleanup(prb_python_processes_deinit))) struct prb_python_processes all = {};
	__attribute__((cleanup(candidates_deinit))) struct candidates candidates = {};
	const struct prb_python_process *p;

	PRB_TRY(prb_process_list(&all));
	prb_vec_each (p, &all.list)
		if (!p->refusal)
			PRB_TRY(add_candidate(&candidates, p));
	return make_jobs(&candidates, ret);
}

/** True if @p pid is the rank's process or an ancestor of it. */
static bool is_above(pid_t pid, const struct prb_rank *rank)
{
	pid_t here = rank->pid;

	for (unsigned n = 0; here > 0 && n < MAX_ANCESTORS; n++) {
		struct prb_process between = {};

		if (here == pid)
			return true;
		prb_auto_error struct prb_error *err = prb_process_describe(here, &between);
		here = err ? 0 : between.ppid;
		prb_process_deinit(&between);
	}
	return false;
}

static bool is_listed(const struct prb_launched *launched, const struct prb_rank *rank)
{
	const pid_t *pid;

	prb_vec_each (pid, &launched->list)
		if (rank->pid && *pid == rank->pid)
			return true;
	return false;
}

/** The pid that @p text is, or 0. */
static pid_t pid_of(const char *text)
{
	char *end;
	long pid = strtol(text, &end, 10);

	return !*end && pid > 0 && pid <= INT_MAX ? (pid_t)pid : 0;
}

/** True if the number is a whole one in the name: of a port, or of the Slurm job. */
static bool has_number(const char *name, const char *number)
{
	size_t length = strlen(number);

	for (const char *at = name; (at = strstr(at, number)); at++)
		if ((at == name || !isdigit((unsigned char)at[-1])) &&
		    !isdigit((unsigned char)at[length]))
			return true;
	return false;
}

/** @p process: what @p text is, or 0. A number that is no process may be part of the job's name. */
static bool is_meant(const struct prb_job *job, const char *text, pid_t process,
		     const struct prb_launched *launched)
{
	const struct prb_rank *rank;

	if (!strncmp(text, "slurm:", 6))
		return job->slurm && !strcmp(job->slurm, text + 6);
	if (!process && pid_of(text))
		return has_number(job->name, text) || (job->slurm && !strcmp(job->slurm, text));
	if (!process)
		return strstr(job->name, text) != NULL;
	prb_vec_each (rank, &job->ranks)
		if (is_above(process, rank) || is_listed(launched, rank))
			return true;
	return false;
}

/** The pid of the first rank that has a process: names the job on a command line. */
static pid_t any_pid(const struct prb_job *job)
{
	const struct prb_rank *rank;

	prb_vec_each (rank, &job->ranks)
		if (rank->pid)
			return rank->pid;
	return 0;
}

/** Appends a job as people name one: "4242 (torch 127.0.0.1:29500, 8 ranks)". */
static void put_choice(struct prb_str *s, const struct prb_job *job)
{
	prb_str_printf(s, "%s%d (", s->length ? ", " : "", (int)any_pid(job));
	prb_text_escape(s, job->name);
	prb_str_printf(s, ", %zu rank%s)", job->ranks.count, job->ranks.count == 1 ? "" : "s");
}

/** The process that @p text is the number of, or 0. */
static pid_t process_of(const char *text)
{
	struct prb_process process = {};
	pid_t pid = pid_of(text);
	prb_auto_error struct prb_error *err = pid ? prb_process_describe(pid, &process) : NULL;

	prb_process_deinit(&process);
	return err ? 0 : pid;
}

/** No job is @p text, the number of @p process or 0: which jobs there are. */
static struct prb_error *no_such_job(const struct prb_jobs *jobs, const char *text, pid_t process)
{
	const pid_t pid = pid_of(text);
	struct prb_error *err =
		prb_error_create(PRB_ERROR_NOT_FOUND, "no job on this machine is '%.100s'%s", text,
				 !pid	   ? ""
				 : process ? ": that process is no rank, nor above one"
					   : ": there is no such process");
	prb_auto_str struct prb_str hint = {}, list = {};
	const struct prb_job *job;

	prb_vec_each (job, &jobs->list)
		if (job < jobs->list.items + MOST_TOLD)
			put_choice(&list, job);
	if (list.length)
		prb_str_printf(&hint, "there %s %s%s", jobs->list.count == 1 ? "is" : "are",
			       prb_str_text(&list),
			       jobs->list.count > MOST_TOLD ? ", …: 'probing cluster nodes'" : "");
	else
		prb_str_puts(&hint, "no distributed job runs here; --hosts asks other machines");
	/* A number copied from squeue is meant as this. */
	if (pid)
		prb_str_printf(&hint, "; --slurm %d asks for the Slurm job of that number",
			       (int)pid);
	return prb_error_hint(err, "%s", prb_str_text(&hint));
}

struct prb_error *prb_jobs_choose(struct prb_jobs *jobs, const char *text, struct prb_job **ret)
{
	__attribute__((cleanup(prb_launched_deinit))) struct prb_launched launched = {};
	prb_auto_str struct prb_str list = {};
	struct prb_job *job;
	size_t found = 0;
	pid_t process = text ? process_of(text) : 0;

	if (process)
		PRB_TRY(prb_launched_read(process, &launched));

	prb_vec_each (job, &jobs->list) {
		if (text && !is_meant(job, text, process, &launched))
			continue;
		*ret = job;
		found++;
		put_choice(&list, job);
	}
	if (found == 1)
		return NULL;
	if (found)
		return prb_error_hint(
			prb_error_create(PRB_ERROR_USAGE, "%zu jobs run on this machine", found),
			"name one by the pid of a rank or launcher: %s", prb_str_text(&list));
	if (text)
		return no_such_job(jobs, text, process);
	return prb_error_hint(
		prb_error_create(PRB_ERROR_NOT_FOUND, "no distributed job runs on this machine"),
		"ranks are found by RANK, SLURM_PROCID, OMPI_COMM_WORLD_RANK or PMI_RANK in "
		"their environment; 'probing list' shows all Python processes");
}

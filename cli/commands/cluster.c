/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "command/command.h"
#include "command/commands.h"
#include "command/exit.h"
#include "command/output.h"
#include "cluster/gather.h"
#include "cluster/hosts.h"
#include "cluster/job.h"
#include "cluster/look.h"
#include "cluster/stacks.h"
#include "cluster/verdict.h"
#include "cluster/wire.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/str.h"
#include "base/text.h"

/* A longer time tells a slow rank from a stuck one more surely. Looks in between see ranks that run
 * in a loop and come to the same place again. */
static const double INTERVAL = 1.0;

/* Seconds that each host has for its answer, besides the time of looking. */
static const double TIMEOUT = 20;

enum { LOOKS = 5, HOST_WIDTH = 12 };
enum { EXIT_VERDICT = 10 }; /* and the number of its kind; 0 if the job moves */

struct cluster_settings {
	bool json, all, native;
	double interval, timeout;
	const char *hosts;
};

/** One run of the command: a job of this machine. */
struct run {
	const struct cluster_settings *settings;
	const struct prb_cli *cli;
	struct prb_jobs jobs;
	struct prb_job *job; /**< of `jobs`, or `merged` */
	struct prb_job merged;
	struct prb_hosts hosts;
	struct prb_answers answers;
	struct prb_round rounds[LOOKS];
};

/** "torch 127.0.0.1:29500 · 8 ranks · all on this machine". */
static void put_job(struct prb_str *s, const struct run *r, const struct prb_job *job)
{
	prb_text_escape(s, job->name);
	prb_str_printf(s, " · %zu rank%s", job->ranks.count, job->ranks.count == 1 ? "" : "s");
	if (job == &r->merged)
		prb_str_printf(s, " on %zu host%s\n", r->hosts.list.count,
			       r->hosts.list.count == 1 ? "" : "s");
	else if (job->complete)
		prb_str_puts(s, ", all on this machine\n");
	else if (job->world_size > 0)
		prb_str_printf(s, " of %ld on this machine\n", job->world_size);
	else
		prb_str_puts(s, " on this machine\n");
}

static void put_node(struct prb_str *s, const struct prb_rank *rank)
{
	prb_str_printf(s, "%6ld  ", rank->rank);
	if (rank->host) {
		prb_text_column(s, rank->host, HOST_WIDTH);
		prb_str_puts(s, "  ");
	}
	if (rank->pid)
		prb_str_printf(s, "%7d  %s\n", (int)rank->pid, rank->command);
	else
		prb_str_puts(s, "      -  no process has this rank\n");
}

static struct prb_error *show_nodes_json(const struct prb_job *jobs, size_t count)
{
	prb_auto_str struct prb_str text = {};
	struct prb_json json = {&text};
	const struct prb_rank *rank;

	prb_json_open(&json, NULL, '[');
	for (const struct prb_job *job = jobs; job < jobs + count; job++) {
		prb_json_open(&json, NULL, '{');
		prb_json_text(&json, "job", job->name);
		prb_json_integer(&json, "uid", job->uid);
		prb_json_natural(&json, "world_size", job->world_size);
		prb_json_bool(&json, "complete", job->complete);
		prb_json_open(&json, "ranks", '[');
		prb_vec_each (rank, &job->ranks) {
			prb_json_open(&json, NULL, '{');
			prb_json_integer(&json, "rank", rank->rank);
			prb_json_text(&json, "host", rank->host);
			prb_json_natural(&json, "local_rank", rank->local_rank);
			prb_json_natural(&json, "pid", rank->pid ? rank->pid : -1);
			prb_json_text(&json, "command", rank->command);
			prb_json_close(&json, '}');
		}
		prb_json_close(&json, ']');
		prb_json_close(&json, '}');
	}
	prb_json_close(&json, ']');
	prb_str_putc(&text, '\n');
	return prb_output(&text);
}

static struct prb_error *run_nodes(struct run *r)
{
	const struct prb_job *jobs = r->job ? r->job : r->jobs.list.items;
	size_t count = r->job ? 1 : r->jobs.list.count;
	prb_auto_str struct prb_str text = {};
	const struct prb_rank *rank;

	if (!count)
		return prb_jobs_choose(&r->jobs, NULL, &r->job);
	if (r->settings->json)
		return show_nodes_json(jobs, count);
	for (const struct prb_job *job = jobs; job < jobs + count; job++) {
		put_job(&text, r, job);
		prb_str_puts(&text, "  RANK  ");
		if (r->job)
			prb_text_column(&text, "HOST", HOST_WIDTH + 2);
		prb_str_puts(&text, "    PID  COMMAND\n");
		prb_vec_each (rank, &job->ranks)
			put_node(&text, rank);
	}
	return prb_output(&text);
}

/** A line for each rank that is not in the tree, with the reason. */
static void put_unread(struct prb_str *s, const struct prb_round *round)
{
	const struct prb_seen *seen;

	prb_vec_each (seen, &round->list) {
		if (seen->main)
			continue;
		prb_str_printf(s, "rank %ld: ", seen->rank->rank);
		prb_text_escape(s, seen->error	      ? seen->error
				   : !seen->rank->pid ? "no process has this rank"
						      : "it has no thread that could be read");
		prb_str_putc(s, '\n');
	}
}

static struct prb_error *run_dump(struct run *r)
{
	const struct prb_round *round = &r->rounds[LOOKS - 1];
	prb_auto_str struct prb_str text = {};
	struct prb_json json = {&text};
	struct prb_merged *merged;

	PRB_TRY(prb_merged_create(round, r->settings->all, &merged));
	if (r->settings->json) {
		prb_json_open(&json, NULL, '{');
		prb_json_text(&json, "job", r->job->name);
		prb_json_natural(&json, "world_size", r->job->world_size);
		prb_merged_json(merged, &json, "stacks");
		prb_json_open(&json, "unread", '[');
		for (size_t i = 0; i < round->list.count; i++)
			if (!round->list.items[i].main)
				prb_json_integer(&json, NULL, round->list.items[i].rank->rank);
		prb_json_close(&json, ']');
		prb_json_close(&json, '}');
		prb_str_putc(&text, '\n');
	} else {
		put_job(&text, r, r->job);
		prb_str_putc(&text, '\n');
		prb_merged_text(merged, &text);
		put_unread(&text, round);
	}
	prb_merged_destroy(merged);
	return prb_output(&text);
}

static void put_lines(struct prb_str *s, const char *name, const char *lines)
{
	for (const char *at = lines, *end; *at; at = end + 1) {
		end = strchrnul(at, '\n');
		prb_str_printf(s, "  %-11s %.*s\n", at == lines ? name : "", (int)(end - at), at);
		if (!*end)
			break;
	}
}

static void put_verdict(struct prb_str *s, const struct prb_verdict *v)
{
	prb_str_printf(s, "%s: %s\n", prb_verdict_name(v->kind), prb_str_text(&v->sentence));
	put_lines(s, "evidence", prb_str_text(&v->evidence));
	put_lines(s, "confidence", v->confidence);
	put_lines(s, "wrong if", prb_str_text(&v->refuted_by));
	put_lines(s, "next", prb_str_text(&v->next));
}

static void put_verdict_json(struct prb_str *s, const struct run *r, const struct prb_verdict *v)
{
	struct prb_json json = {s};
	const long *rank;

	prb_json_open(&json, NULL, '{');
	prb_json_text(&json, "job", r->job->name);
	prb_json_text(&json, "verdict", prb_verdict_name(v->kind));
	prb_json_open(&json, "ranks", '[');
	prb_vec_each (rank, &v->ranks.list)
		prb_json_integer(&json, NULL, *rank);
	prb_json_close(&json, ']');
	prb_json_text(&json, "sentence", prb_str_text(&v->sentence));
	prb_json_text(&json, "evidence", prb_str_text(&v->evidence));
	prb_json_text(&json, "confidence", v->confidence);
	prb_json_text(&json, "wrong_if", prb_str_text(&v->refuted_by));
	prb_json_text(&json, "next", prb_str_text(&v->next));
	prb_json_close(&json, '}');
	prb_str_putc(s, '\n');
}

static struct prb_error *run_hang(struct run *r)
{
	prb_auto_verdict struct prb_verdict verdict = {};
	prb_auto_str struct prb_str text = {};
	PRB_TRY(prb_verdict_find(r->job, r->rounds, LOOKS, &verdict));
	if (r->settings->json)
		put_verdict_json(&text, r, &verdict);
	else
		put_verdict(&text, &verdict);
	PRB_TRY(prb_output(&text));
	if (verdict.kind != PRB_VERDICT_MOVES)
		prb_exit_pass((EXIT_VERDICT + (int)verdict.kind) << 8);
	return NULL;
}

/** `probing query` over the processes of the ranks: its rows have _rank. */
static struct prb_error *run_query(struct run *r)
{
	const struct prb_command *query = prb_command_find("query");
	char names[PRB_MAX_TEXTS][16], *arguments[] = {r->cli->arguments[1], NULL};
	struct prb_cli cli = *r->cli;
	const struct prb_rank *rank;

	prb_auto_free void *settings = calloc(1, query->settings_size);
	if (!settings)
		return prb_error_nomem();
	cli.targets.count = 0;
	prb_vec_each (rank, &r->job->ranks) {
		if (!rank->pid)
			continue;
		if (cli.targets.count == PRB_MAX_TEXTS)
			return prb_error_create(PRB_ERROR_UNSUPPORTED,
						"a query reads at most %d ranks", PRB_MAX_TEXTS);
		snprintf(names[cli.targets.count], sizeof(*names), "%d", (int)rank->pid);
		cli.targets.items[cli.targets.count] = names[cli.targets.count];
		cli.targets.count++;
	}
	cli.target = cli.targets.count ? cli.targets.items[0] : NULL;
	cli.command = query;
	cli.arguments = arguments;
	cli.argument_count = 1;
	return query->run(&cli, settings);
}

/** Looks at the ranks of this machine @p count times, which end in the last of the rounds. */
static struct prb_error *look(struct run *r, size_t count)
{
	double interval = r->settings->interval > 0 ? r->settings->interval : INTERVAL;
	double rest_s = interval / (LOOKS - 1);
	const struct timespec rest = {(time_t)rest_s,
				      (long)((rest_s - (double)(time_t)rest_s) * 1e9)};

	for (size_t i = LOOKS - count; i < LOOKS; i++) {
		if (i > LOOKS - count && nanosleep(&rest, NULL))
			return prb_error_create(PRB_ERROR_CANCELLED, "interrupted");
		PRB_TRY(prb_round_make(r->job, r->settings->native, i == LOOKS - 1, &r->rounds[i]));
	}
	return NULL;
}

/** Has each host look at its ranks, and makes one job of them. Hosts without answer are named. */
static struct prb_error *gather(struct run *r, const char *job)
{
	double interval = r->settings->interval > 0 ? r->settings->interval : INTERVAL;
	double timeout = r->settings->timeout > 0 ? r->settings->timeout : TIMEOUT;
	prb_auto_free char *every = prb_format("--interval=%.0fms", interval * 1000);
	const char *words[] = {"cluster", "look", every, r->settings->native ? "--native" : NULL,
			       NULL,	  NULL};
	size_t count = r->settings->native ? 4 : 3;
	const struct prb_answer *answer;

	if (!every)
		return prb_error_nomem();
	words[count] = job;
	PRB_TRY(prb_hosts_parse(r->settings->hosts, &r->hosts));
	PRB_TRY(prb_gather(&r->hosts, words, interval + timeout, &r->answers));
	struct prb_error *err = prb_looks_merge(&r->answers, &r->merged, r->rounds, LOOKS);
	r->job = &r->merged;
	prb_vec_each (answer, &r->answers.list) {
		prb_auto_str struct prb_str text = {};

		if (!answer->error)
			continue;
		prb_str_printf(&text, "%s: %s", answer->host, answer->error);
		prb_warn(prb_str_text(&text));
	}
	return err;
}

static struct prb_error *run_look(struct run *r)
{
	prb_auto_str struct prb_str text = {};
	const struct prb_job none = {.name = "", .world_size = -1};

	prb_looks_write(r->job ? r->job : &none, r->rounds, LOOKS, &text);
	return prb_output(&text);
}

static const struct action {
	const char *name;
	struct prb_error *(*run)(struct run *r);
	size_t words; /* that it takes before JOB */
	size_t looks; /* at the ranks, before it runs */
	bool any_job, this_machine;
} actions[] = {{"nodes", run_nodes, 0, 0, true, false},	   {"ranks", run_nodes, 0, 0, true, false},
	       {"attach", run_nodes, 0, 0, true, false},   {"dump", run_dump, 0, 1, false, false},
	       {"hang", run_hang, 0, LOOKS, false, false}, {"query", run_query, 1, 0, false, true},
	       {"look", run_look, 0, LOOKS, true, true}};

static const struct action *find_action(const char *name)
{
	for (size_t i = 0; i < PRB_ARRAY_SIZE(actions); i++)
		if (!strcmp(actions[i].name, name))
			return &actions[i];
	return NULL;
}

/** Chooses the job and looks at its ranks, as far as the action needs it. */
static struct prb_error *prepare(const struct action *action, struct run *r, const char *job)
{
	if (r->settings->hosts && !action->this_machine)
		return gather(r, job);
	if (r->settings->hosts)
		return prb_error_create(PRB_ERROR_USAGE, "'%s' is of this machine: no --hosts",
					action->name);
	PRB_TRY(prb_jobs_find(&r->jobs));
	if (!action->any_job || action->looks) {
		struct prb_error *err = prb_jobs_choose(&r->jobs, job, &r->job);

		/* That this machine has no rank is an answer, too. */
		if (action->run != run_look || !prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
			PRB_TRY(err);
	}
	return r->job ? look(r, action->looks) : NULL;
}

static struct prb_error *run_action(const struct action *action, struct run *r)
{
	size_t place = action->words + 1;
	const char *job =
		r->cli->argument_count > place ? r->cli->arguments[place] : r->cli->target;

	if (r->cli->argument_count < place)
		return prb_error_hint(prb_error_create(PRB_ERROR_USAGE, "no statement given"),
				      "probing cluster query \"SELECT …\" [JOB]");
	PRB_TRY(prepare(action, r, job));
	return action->run(r);
}

static struct prb_error *run(const struct prb_cli *cli, const void *settings)
{
	struct run r = {.settings = settings, .cli = cli};
	const struct action *action = cli->argument_count ? find_action(cli->arguments[0]) : NULL;

	if (!action)
		return prb_error_hint(
			prb_error_create(PRB_ERROR_USAGE, "what to do with the job is not given"),
			"one of: nodes, dump, hang, query");

	struct prb_error *err = run_action(action, &r);
	for (size_t i = 0; i < LOOKS; i++)
		prb_round_deinit(&r.rounds[i]);
	prb_job_deinit(&r.merged);
	prb_answers_deinit(&r.answers);
	prb_hosts_deinit(&r.hosts);
	prb_jobs_deinit(&r.jobs);
	return err;
}

const struct prb_command prb_command_cluster = {
	.rank = 69,
	.name = "cluster",
	.summary = "Look at all ranks of a distributed job: their stacks, and why it hangs",
	.description =
		"ACTION is one of: 'nodes' (or 'ranks', 'attach') lists the jobs of this machine "
		"with "
		"their ranks. 'dump' merges the stacks of all ranks into one tree, rare ones "
		"first. "
		"'hang' looks five times and says in one sentence which rank keeps the job, and "
		"why. "
		"'query SQL' runs a statement over all ranks, with the columns _pid and _rank.\n\n"
		"Ranks are found by the variables that launchers set (RANK, SLURM_PROCID, "
		"OMPI_COMM_WORLD_RANK, PMI_RANK). JOB is the pid of any rank or of the launcher, "
		"or a "
		"part of the job's name; it is needed only if several jobs run. Nothing is loaded "
		"into the ranks. Ranks of this machine are read; with --hosts those of other "
		"machines, "
		"where probing is run through ssh.\n\n"
		"'hang' exits with 0 if the job moves; 11 if a rank is gone or stopped, 12 if "
		"ranks "
		"are in different collectives, 13 if a rank never entered the collective of the "
		"others, 14 for a deadlock of threads, 15 if all are in the same collective, and "
		"16 "
		"if nothing tells.",
	.options =
		(const struct prb_option[]){
			{"json", 0, PRB_OPTION_FLAG, NULL, "Print JSON", PRB_COMPLETE_NOTHING,
			 offsetof(struct cluster_settings, json)},
			{"all", 'a', PRB_OPTION_FLAG, NULL,
			 "Merge all threads, not only main threads", PRB_COMPLETE_NOTHING,
			 offsetof(struct cluster_settings, all)},
			{"native", 'n', PRB_OPTION_FLAG, NULL, "Add C and C++ frames",
			 PRB_COMPLETE_NOTHING, offsetof(struct cluster_settings, native)},
			{"hosts", 0, PRB_OPTION_TEXT, "HOSTS",
			 "Ranks of these hosts, through ssh: node[01-16],login",
			 PRB_COMPLETE_NOTHING, offsetof(struct cluster_settings, hosts)},
			{"timeout", 0, PRB_OPTION_SECONDS, "TIME",
			 "How long each host has for its answer (default: 20s)",
			 PRB_COMPLETE_NOTHING, offsetof(struct cluster_settings, timeout)},
			{"interval", 0, PRB_OPTION_SECONDS, "TIME",
			 "How long 'hang' looks at the ranks (default: 1s)", PRB_COMPLETE_NOTHING,
			 offsetof(struct cluster_settings, interval)},
			{}},
	.settings_size = sizeof(struct cluster_settings),
	.target_use = PRB_TARGET_ANY,
	.argument = "ACTION [SQL] [JOB]",
	.max_arguments = 3,
	.examples =
		(const struct prb_example[]){
			{"probing cluster nodes", "Jobs of this machine and their ranks"},
			{"probing cluster hang", "Which rank keeps the job, and why"},
			{"probing cluster dump --all", "All threads of all ranks as one tree"},
			{"probing cluster hang --hosts node[01-16]", "A job on sixteen machines"},
			{"probing cluster query \"SELECT * FROM python.threads\"",
			 "SQL over all ranks"},
			{}},
	.run = run,
};

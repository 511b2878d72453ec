/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands/cluster/cluster.h"
#include "command/command.h"
#include "command/output.h"
#include "cluster/jobs/process_tree.h"
#include "cluster/reach/relay.h"
#include "cluster/looks/json.h"
#include "cluster/looks/look.h"
#include "target/spec/target_spec.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/str.h"

enum { LOOKS = PRB_CLUSTER_LOOKS };

/** Prints the look at this machine, for the machine that asked. */
static struct prb_error *run_look(struct prb_cluster *c)
{
	const struct prb_job none = {.name = (char[]){""}, .world_size = -1};
	prb_auto_str struct prb_str text = {};

	/* The bundle has it, if it is printed. */
	if (c->settings->save && !strcmp(c->settings->save, "-"))
		return c->job ? NULL : prb_cluster_save_nothing(&none, c->last);
	prb_looks_write(c->job ? c->job : &none, c->last, c->settings->all, false, &text);
	return prb_output(&text);
}

/** The words after the action: how to ask, and what each host runs. */
static struct prb_error *run_relay(struct prb_cluster *c)
{
	prb_auto_words struct prb_words words = {};
	char **list;

	if (c->cli->argument_count < 2 || !c->settings->hosts)
		return prb_error_create(PRB_ERROR_USAGE, "no hosts to ask, or no words for them");
	for (size_t i = 1; i < c->cli->argument_count; i++)
		PRB_TRY(prb_words_add_ours(&words,
					   (const char *const[]){c->cli->arguments[i], NULL}));
	PRB_TRY(prb_words_end(&words, &list));
	PRB_TRY(prb_reach_find(&c->reach, &c->hosts));
	return prb_relay_serve(&c->reach, &c->hosts, list, prb_cluster_timeout(c));
}

static const struct action {
	const char *name;
	struct prb_error *(*run)(struct prb_cluster *c);
	size_t words; /* that it takes before JOB */
	size_t looks; /* at the ranks, before it runs */
	bool any_job, this_machine, paces;
	bool own; /* of the targets alone: what clients of these may learn */
} actions[] = {{"nodes", prb_cluster_nodes, 0, 0, true, false},
	       {"ranks", prb_cluster_nodes, 0, 0, true, false},
	       {"attach", prb_cluster_nodes, 0, 0, true, false},
	       {"dump", prb_cluster_dump, 0, 1, false, false},
	       {"hang", prb_cluster_hang, 0, LOOKS, false, false},
	       {"watch", prb_cluster_watch, 0, 0, false, true},
	       {"slow", prb_cluster_slow, 0, 0, false, false, true},
	       {"perf", prb_cluster_perf, 0, 0, false, false, false},
	       {"sample", prb_cluster_sample, 0, 0, false, true, false},
	       {"query", prb_cluster_query, 1, 0, false, true},
	       {"rows", prb_cluster_rows, 1, 0, false, true},
	       {"ship", prb_cluster_ship, 0, 0, true, true},
	       {"look", run_look, 0, LOOKS, true, true},
	       {"own", run_look, 0, LOOKS, true, true, .own = true},
	       {"served", prb_cluster_dump, 0, 1, false, true, .own = true},
	       {"relay", run_relay, 0, 0, true, false}};

static const struct action *find_action(const char *name)
{
	for (size_t i = 0; i < PRB_ARRAY_SIZE(actions); i++)
		if (!strcmp(actions[i].name, name))
			return &actions[i];
	return NULL;
}

/** Refuses hosts where only this machine can be meant. */
static struct prb_error *check_hosts(const struct action *action, const struct prb_cluster *c)
{
	if (!prb_reach_is_far(&c->reach) || !action->this_machine)
		return NULL;
	return prb_error_hint(
		prb_error_create(PRB_ERROR_USAGE, "'%s' is of this machine: no --hosts",
				 action->name),
		"tables of all hosts are named global.SCHEMA.TABLE: global.python.threads");
}

static struct prb_error *check(const struct action *action, const struct prb_cluster *c)
{
	const struct prb_cluster_settings *s = c->settings;

	PRB_TRY(prb_reach_check(&c->reach));
	if (s->save && !strcmp(s->save, "-") && action->run != run_look)
		return prb_error_create(PRB_ERROR_USAGE, "the verdict is for stdout: --save FILE");
	if (s->output && action->run != prb_cluster_perf)
		return prb_error_create(PRB_ERROR_USAGE, "--output is for 'perf'");
	if ((s->to || s->state || s->password_file || s->once || s->every > 0 || s->metrics > 0) &&
	    action->run != prb_cluster_ship)
		return prb_error_create(PRB_ERROR_USAGE, "--to, --password-file, --state, "
							 "--every, --metrics and --once are "
							 "for 'ship'");
	if (s->tree && !s->hosts && !s->host_file && !s->ras)
		return prb_error_create(PRB_ERROR_USAGE,
					"--tree is for --hosts, --host-file and --ras");
	if (s->redact && !s->save)
		return prb_error_create(PRB_ERROR_USAGE, "--redact is for --save");
	if (s->hang > 0 && action->run != prb_cluster_watch)
		return prb_error_create(PRB_ERROR_USAGE, "--hang is for 'watch'");
	if (s->save && action->looks != LOOKS && action->run != prb_cluster_watch)
		return prb_error_create(PRB_ERROR_USAGE, "'%s' saves nothing: no --save",
					action->name);
	return NULL;
}

/** True for what another host asks this one for. */
static bool is_asked(const struct action *action)
{
	return action->run == run_look || action->run == prb_cluster_rows ||
	       action->run == prb_cluster_sample;
}

/** Leaves out all jobs and ranks but the targets, before anything is said of them. */
static struct prb_error *keep_own(const struct action *action, struct prb_cluster *c)
{
	const struct prb_texts *targets = &c->cli->targets;
	pid_t pids[PRB_MAX_TEXTS];

	for (size_t i = 0; i < targets->count; i++)
		pids[i] = (pid_t)atoi(targets->items[i]);
	prb_jobs_keep(&c->jobs, pids, targets->count);
	if (c->jobs.list.count || is_asked(action))
		return NULL;
	return prb_error_create(PRB_ERROR_NOT_FOUND, "no target is a rank of a distributed job");
}

static void warn_of_doubles(const struct prb_cluster *c)
{
	const struct prb_job *job;

	if (c->job)
		prb_cluster_warn_of_doubles(c->job);
	else
		prb_vec_each (job, &c->jobs.list)
			prb_cluster_warn_of_doubles(job);
}

/** Takes a process that is no rank, with its workers, for the job. */
static struct prb_error *choose_processes(const struct action *action, struct prb_cluster *c,
					  const char *job)
{
	char *end;
	long pid = job ? strtol(job, &end, 10) : 0;

	if (action->run != prb_cluster_hang || pid <= 0 || pid > INT_MAX || *end)
		return NULL;
	PRB_TRY(prb_error_tolerate(prb_job_of_processes((pid_t)pid, &c->merged), NULL));
	if (!c->merged.ranks.count) {
		prb_job_deinit(&c->merged);
		c->merged = (struct prb_job){};
		return NULL;
	}
	if (c->settings->save)
		return prb_error_create(PRB_ERROR_USAGE,
					"--save is for ranks, and process %ld is none", pid);
	c->job = &c->merged;
	c->processes = true;
	return NULL;
}

/** Chooses the job and looks at its ranks, as far as the action needs it. */
static struct prb_error *prepare(const struct action *action, struct prb_cluster *c,
				 const char *job)
{
	PRB_TRY(check_hosts(action, c));
	if (action->own && !c->cli->target)
		return prb_error_create(PRB_ERROR_USAGE, "no target given");
	c->paces = action->paces || (action->run == run_look && c->settings->duration > 0);
	if (job && !action->own && prb_spec_kind(job) == PRB_SPEC_BUNDLE)
		return prb_cluster_load(c, job);
	if (prb_reach_is_far(&c->reach))
		return prb_cluster_gather(c, job);
	PRB_TRY(prb_jobs_find(&c->jobs));
	if (action->own)
		PRB_TRY(keep_own(action, c));
	if (!action->any_job || action->looks || job) {
		struct prb_error *err = prb_jobs_choose(&c->jobs, job, &c->job), *other = NULL;

		if (err && err->code == PRB_ERROR_NOT_FOUND)
			other = choose_processes(action, c, job);
		if (other || c->processes) {
			prb_error_destroy(err);
			err = other;
		}
		/* A machine without a rank answers, too. */
		if (!is_asked(action) || !prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
			PRB_TRY(err);
	}
	if (!action->own)
		warn_of_doubles(c);
	if (!c->job || action->run == prb_cluster_watch)
		return NULL;
	return c->paces ? prb_cluster_pace(c) : prb_cluster_look(c, action->looks);
}

static struct prb_error *run_action(const struct action *action, struct prb_cluster *c)
{
	size_t place = action->words + 1;
	const char *job = c->cli->argument_count > place ? c->cli->arguments[place]
			  : action->own			 ? NULL
							 : c->cli->target;

	PRB_TRY(check(action, c));
	if (action->run == run_relay)
		return run_relay(c);
	if (action->run != prb_cluster_ship && c->cli->argument_count > action->words + 2)
		return prb_error_create(PRB_ERROR_USAGE, "unexpected word '%s'",
					c->cli->arguments[action->words + 2]);
	if (c->cli->argument_count < action->words + 1)
		return prb_error_hint(prb_error_create(PRB_ERROR_USAGE, "no statement given"),
				      "probing cluster query \"SELECT …\" [JOB]");
	if (action->run == prb_cluster_query) {
		bool global;

		PRB_TRY(prb_cluster_query_global(c, job, &global));
		if (global)
			return NULL;
	}
	if (action->run == prb_cluster_ship) {
		PRB_TRY(check_hosts(action, c));
		return prb_cluster_ship(c);
	}
	if (action->run == prb_cluster_perf && prb_reach_is_far(&c->reach) &&
	    !(job && prb_spec_kind(job) == PRB_SPEC_BUNDLE))
		return prb_cluster_perf_far(c, job);
	PRB_TRY(prepare(action, c, job));
	return action->run(c);
}

static struct prb_error *run(const struct prb_cli *cli, const void *settings)
{
	struct prb_cluster c = {.settings = settings, .cli = cli};
	const struct action *action = cli->argument_count ? find_action(cli->arguments[0]) : NULL;

	if (!action)
		return prb_error_hint(
			prb_error_create(PRB_ERROR_USAGE, "what to do with the job is not given"),
			"one of: nodes, dump, hang, watch, slow, perf, query, ship");
	c.last = &c.rounds[LOOKS - 1];
	c.reach = PRB_REACH_OF(c.settings);

	struct prb_error *err = run_action(action, &c);
	for (size_t i = 0; i < LOOKS; i++)
		prb_round_deinit(&c.rounds[i]);
	prb_job_deinit(&c.merged);
	for (size_t i = 0; i < c.unanswered.count; i++) {
		free(c.unanswered.items[i].host);
		free(c.unanswered.items[i].error);
	}
	prb_vec_free(&c.unanswered);
	prb_hosts_deinit(&c.hosts);
	prb_reach_close(&c.reach);
	prb_jobs_deinit(&c.jobs);
	return err;
}

struct prb_error *prb_cluster_dump_bundle(const struct prb_cli *cli, bool all, bool json)
{
	const struct prb_cluster_settings settings = {.all = all, .json = json};
	char *words[] = {(char[]){"dump"}, NULL};
	struct prb_cli as = *cli;

	as.arguments = words;
	as.argument_count = 1;
	return run(&as, &settings);
}

const struct prb_command prb_command_cluster = {
	.rank = 69,
	.for_clients = true,
	.client_word = "own",
	.name = "cluster",
	.summary = "Look at all ranks of a distributed job: their stacks, and why it hangs",
	.description =
		"ACTION is one of: 'nodes' (or 'ranks', 'attach') lists the jobs with their ranks. "
		"'dump' merges the stacks of all ranks into one tree, rare ones first. 'hang' "
		"looks "
		"five times and says in one sentence which rank keeps the job, and why. 'watch' "
		"waits until a job of this machine makes no progress, then does the same. 'slow' "
		"looks "
		"for some seconds and says which rank the others wait for. 'perf' samples all "
		"ranks "
		"for one profile. 'query SQL' runs a statement over all ranks. 'ship' sends the "
		"rows "
		"that processes of this machine keep in rings to a ClickHouse database, until it "
		"is told to end.\n\n"
		"Ranks are found by the variables that launchers set (RANK, SLURM_PROCID, "
		"OMPI_COMM_WORLD_RANK, PMI_RANK). JOB is the pid of any rank or of the launcher, "
		"slurm:JOBID, a part of the job's name, or a file that --save has made; it is "
		"needed "
		"only if several jobs run. Nothing is loaded into the ranks. Ranks of this machine "
		"are read; with --hosts, --host-file, --slurm, --kubernetes or --ras those of "
		"other "
		"machines, where probing is run.\n\n"
		"'hang' exits with 0 if the job moves; 11 if a rank is gone or stopped, 12 if "
		"ranks "
		"are in different collectives, 13 if a rank never entered the collective of the "
		"others, 14 for a deadlock of threads, 15 if all are in the same collective, and "
		"16 "
		"if nothing tells, 17 if other ranks have ended, 18 if the rest is on hosts that "
		"gave no answer.",
	.options =
		(const struct prb_option[]){
			{"json", 0, PRB_OPTION_FLAG, NULL, "Print JSON", PRB_COMPLETE_NOTHING,
			 offsetof(struct prb_cluster_settings, json)},
			{"all", 'a', PRB_OPTION_FLAG, NULL,
			 "Merge all threads, not only main threads", PRB_COMPLETE_NOTHING,
			 offsetof(struct prb_cluster_settings, all), .for_clients = true},
			{"native", 'n', PRB_OPTION_FLAG, NULL, "Add C and C++ frames",
			 PRB_COMPLETE_NOTHING, offsetof(struct prb_cluster_settings, native),
			 .for_clients = true},
			PRB_REACH_OPTIONS(struct prb_cluster_settings),
			{"save", 0, PRB_OPTION_TEXT, "FILE",
			 "'hang': keep a snapshot of every rank in one file, first",
			 PRB_COMPLETE_FILE, offsetof(struct prb_cluster_settings, save)},
			{"redact", 0, PRB_OPTION_FLAG, NULL, "'--save': omit values of variables",
			 PRB_COMPLETE_NOTHING, offsetof(struct prb_cluster_settings, redact)},
			{"strict", 0, PRB_OPTION_FLAG, NULL,
			 "'query': fail if a rank does not answer", PRB_COMPLETE_NOTHING,
			 offsetof(struct prb_cluster_settings, strict)},
			{"timeout", 0, PRB_OPTION_SECONDS, "TIME",
			 "How long each host has for its answer (default: 20s)",
			 PRB_COMPLETE_NOTHING, offsetof(struct prb_cluster_settings, timeout)},
			{"duration", 'd', PRB_OPTION_SECONDS, "TIME",
			 "How long 'slow' and 'perf' look at the ranks (default: 10s)",
			 PRB_COMPLETE_NOTHING, offsetof(struct prb_cluster_settings, duration),
			 .for_clients = true},
			{"output", 'o', PRB_OPTION_TEXT, "FILE",
			 "'perf': write the profile to this file", PRB_COMPLETE_FILE,
			 offsetof(struct prb_cluster_settings, output)},
			{"to", 0, PRB_OPTION_TEXT, "URL",
			 "'ship': clickhouse://[USER@]HOST[:PORT]/DATABASE", PRB_COMPLETE_NOTHING,
			 offsetof(struct prb_cluster_settings, to)},
			{"password-file", 0, PRB_OPTION_TEXT, "FILE",
			 "'ship': its password [$PROBING_CLICKHOUSE_PASSWORD]", PRB_COMPLETE_FILE,
			 offsetof(struct prb_cluster_settings, password_file)},
			{"state", 0, PRB_OPTION_TEXT, "FOLDER",
			 "'ship': what was sent, and rows that wait [~/.local/state/probing]",
			 PRB_COMPLETE_FILE, offsetof(struct prb_cluster_settings, state)},
			{"every", 0, PRB_OPTION_SECONDS,
			 "TIME", "'ship': send each table's new rows every TIME (default: 2s)",
			 PRB_COMPLETE_NOTHING, offsetof(struct prb_cluster_settings, every)},
			{"metrics", 0, PRB_OPTION_SECONDS,
			 "TIME", "'ship': read and send the metrics of 'export' every TIME [never]",
			 PRB_COMPLETE_NOTHING, offsetof(struct prb_cluster_settings, metrics)},
			{"once", 0, PRB_OPTION_FLAG, NULL, "'ship': end when all there is was sent",
			 PRB_COMPLETE_NOTHING, offsetof(struct prb_cluster_settings, once)},
			{"hang", 0, PRB_OPTION_SECONDS,
			 "TIME", "'watch': how long ranks may wait, at least (default: 60s)",
			 PRB_COMPLETE_NOTHING, offsetof(struct prb_cluster_settings, hang)},
			{"interval", 0, PRB_OPTION_SECONDS,
			 "TIME", "How long 'hang' looks at the ranks (default: 1s)",
			 PRB_COMPLETE_NOTHING, offsetof(struct prb_cluster_settings, interval),
			 .for_clients = true},
			{}},
	.settings_size = sizeof(struct prb_cluster_settings),
	.target_use = PRB_TARGET_ANY,
	.argument = "ACTION [SQL] [JOB]",
	.max_arguments = PRB_MAX_TEXTS,
	.examples =
		(const struct prb_example[]){
			{"probing cluster nodes", "Jobs of this machine and their ranks"},
			{"probing cluster hang", "Which rank keeps the job, and why"},
			{"probing cluster dump --all", "All threads of all ranks as one tree"},
			{"probing cluster hang --hosts node[01-16]", "A job on sixteen machines"},
			{"probing cluster hang --save hang.probing", "Keep all ranks, first"},
			{"probing cluster query \"SELECT * FROM python.threads\"",
			 "SQL over all ranks"},
			{}},
	.run = run,
};

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `probing why`: what is wrong, in one sentence. */
#include "cli/commands/why/why.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/commands/cluster/reach_options.h"
#include "cli/commands/script/extensions.h"
#include "command/exit.h"
#include "command/output.h"
#include "judge/limits.h"
#include "target/spec/target_spec.h"

/** Seconds that a machine has for its answer, beside the time of looking. */
static const double TIMEOUT = 20;

struct settings {
	bool json, rules;
	double look, timeout;
	struct prb_texts scripts;
	PRB_REACH_MEMBERS;
};

/** The kind of the finding with the lowest rank of all targets. */
static enum prb_finding_kind worst(const struct prb_why *why)
{
	const struct prb_finding *found = NULL;

	for (size_t i = 0; i < why->list.count; i++) {
		const struct prb_findings *findings = &why->list.items[i]->findings;

		if (findings->list.count && (!found || findings->list.items[0]->rank < found->rank))
			found = findings->list.items[0];
	}
	return found ? found->kind : why->silent.count ? PRB_FINDING_UNKNOWN : PRB_FINDING_NOTHING;
}

static struct prb_error *show(const struct prb_why *why, bool json)
{
	prb_auto_str struct prb_str text = {};

	if (json)
		prb_why_json(why, &text);
	else if (why->list.count || why->silent.count)
		PRB_TRY(prb_why_text(why, &text));
	else
		fprintf(stderr, "probing: there are no Python processes %s\n",
			why->far ? "there" : "here");
	PRB_TRY(prb_output_lines(&text, json));
	return prb_output_flush();
}

/** True if that is a file, or a part of a command line here. */
static bool is_here(const struct prb_cli *cli, const char *name)
{
	prb_auto_target struct prb_target *target = NULL;
	struct prb_error *err =
		access(name, F_OK) ? prb_spec_open_in(name, &cli->places, &target) : NULL;
	bool found = !err || err->code == PRB_ERROR_USAGE; /* one, or several */

	prb_error_destroy(err);
	return found;
}

/** A single target may be a job on other machines; *ret: it is. */
static void take_job(const struct prb_cli *cli, const struct prb_texts *targets,
		     struct prb_reach *reach, bool *ret)
{
	static const char slurm[] = "slurm:";
	const char *name = targets->count == 1 ? targets->items[0] : NULL;

	*ret = false;
	if (!name || prb_reach_is_far(reach))
		return;
	if (prb_pods_is_name(name) && !is_here(cli, name))
		reach->kubernetes = name;
	else if (!strncmp(name, slurm, strlen(slurm)) && !prb_why_has_slurm(name + strlen(slurm)))
		reach->slurm = name + strlen(slurm);
	*ret = prb_reach_is_far(reach);
}

static struct prb_error *ask(const struct prb_cli *cli, const struct settings *s,
			     struct prb_texts *targets, struct prb_why *why)
{
	struct prb_reach reach = PRB_REACH_OF(s);
	struct prb_error *err;
	bool is_job;

	take_job(cli, targets, &reach, &is_job);
	why->look = s->look;
	if (!prb_reach_is_far(&reach)) {
		PRB_TRY(prb_reach_check(&reach));
		return prb_why_create(cli, targets, &s->scripts, why);
	}
	if (s->tree)
		return prb_error_create(PRB_ERROR_USAGE, "--tree is for 'cluster'");
	if (is_job)
		targets->count = 0;
	err = prb_reach_check(&reach);
	if (!err)
		err = prb_why_far(&reach, targets, s->timeout > 0 ? s->timeout : TIMEOUT, why);
	prb_reach_close(&reach);
	return err;
}

static struct prb_error *run(const struct prb_cli *cli, const void *settings)
{
	__attribute__((cleanup(prb_why_deinit))) struct prb_why why = {};
	const struct settings *s = settings;
	struct prb_texts targets = cli->targets;
	prb_auto_str struct prb_str rules = {};

	for (size_t i = 0; i < cli->argument_count && targets.count < PRB_MAX_TEXTS; i++)
		targets.items[targets.count++] = cli->arguments[i];
	if (s->rules) {
		prb_why_rules(s->json, &rules);
		return prb_output_lines(&rules, s->json);
	}
	PRB_TRY(prb_limits_check());
	PRB_TRY(ask(cli, s, &targets, &why));
	PRB_TRY(show(&why, s->json));
	if (worst(&why) != PRB_FINDING_NOTHING)
		prb_exit_pass((PRB_FINDING_EXIT + (int)worst(&why)) << 8);
	return NULL;
}

const struct prb_command prb_command_why = {
	.rank = 42,
	.name = "why",
	.summary = "Say in one sentence what is wrong with a process, or that nothing is",
	.description =
		"Judges each TARGET, or all Python processes of this machine, by a set of rules: "
		"threads that wait for each other, a stopped process, the GIL held by a thread "
		"that sleeps, a wait for a disk, memory near its limit, and others, which --rules "
		"lists. The worst comes first. Each finding has its evidence, what it rests on, "
		"what would refute it, and the next command. Where the cause cannot be proven it "
		"says \"unknown\" and what is missing. A single TARGET may be a job: slurm:JOBID, "
		"pod/NAME, job/NAME, pytorchjob/NAME and the like; with --hosts, --slurm or "
		"--kubernetes, other machines judge their own processes.\n\n"
		"The exit code is 0 if nothing is wrong, and otherwise the number of the worst "
		"finding's kind, from 10 on, as --rules prints it. Nothing is stopped but threads "
		"that run, for the time of one copy.",
	.options =
		(const struct prb_option[]){
			{"json", 0, PRB_OPTION_FLAG, NULL, "Print JSON", PRB_COMPLETE_NOTHING,
			 offsetof(struct settings, json)},
			PRB_EXTENSION_OPTION(struct settings, scripts),
			{"look", 0, PRB_OPTION_SECONDS, "TIME",
			 "Look at each process for so long (default 250ms, of up to four)",
			 PRB_COMPLETE_NOTHING, offsetof(struct settings, look)},
			{"timeout", 0, PRB_OPTION_SECONDS, "TIME",
			 "That each other machine has for its answer (default 20s)",
			 PRB_COMPLETE_NOTHING, offsetof(struct settings, timeout)},
			PRB_REACH_OPTIONS(struct settings),
			{"rules", 0, PRB_OPTION_FLAG, NULL, "List the rules, with their exit codes",
			 PRB_COMPLETE_NOTHING, offsetof(struct settings, rules)},
			{}},
	.settings_size = sizeof(struct settings),
	.target_use = PRB_TARGET_ANY,
	.argument = "TARGET…",
	.max_arguments = PRB_MAX_TEXTS,
	.complete = PRB_COMPLETE_TARGET,
	.examples =
		(const struct prb_example[]){
			{"probing why 4242", "Of one process"},
			{"probing why", "Of all Python processes here"},
			{"probing why core.4242", "Of a core file"},
			{"probing why pytorchjob/llama", "Of the processes in the pods of a job"},
			{"probing why slurm:4711", "Of the ranks of a Slurm job"},
			{}},
	.run = run,
};

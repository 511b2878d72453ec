/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `probing why`: what is wrong, in one sentence. */
#include "cli/commands/why/why.h"

#include <stdio.h>

#include "base/cleanup.h"
#include "cli/commands/script/extensions.h"
#include "command/exit.h"
#include "command/output.h"
#include "judge/limits.h"

struct settings {
	bool json, rules;
	struct prb_texts scripts;
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
	return found ? found->kind : PRB_FINDING_NOTHING;
}

static struct prb_error *show(const struct prb_why *why, bool json)
{
	prb_auto_str struct prb_str text = {};

	if (json)
		prb_why_json(why, &text);
	else if (why->list.count)
		PRB_TRY(prb_why_text(why, &text));
	else
		fputs("probing: there are no Python processes here\n", stderr);
	PRB_TRY(prb_output(&text));
	return prb_output_flush();
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
		return prb_output(&rules);
	}
	PRB_TRY(prb_limits_check());
	PRB_TRY(prb_why_create(cli, &targets, &s->scripts, &why));
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
		"says \"unknown\" and what is missing.\n\n"
		"The exit code is 0 if nothing is wrong, and otherwise the number of the worst "
		"finding's kind, from 10 on, as --rules prints it. Nothing is stopped but threads "
		"that run, for the time of one copy.",
	.options =
		(const struct prb_option[]){
			{"json", 0, PRB_OPTION_FLAG, NULL, "Print JSON", PRB_COMPLETE_NOTHING,
			 offsetof(struct settings, json)},
			PRB_EXTENSION_OPTION(struct settings, scripts),
			{"rules", 0, PRB_OPTION_FLAG, NULL, "List the rules, with their exit codes",
			 PRB_COMPLETE_NOTHING, offsetof(struct settings, rules)},
			{}},
	.settings_size = sizeof(struct settings),
	.target_use = PRB_TARGET_ANY,
	.argument = "TARGET…",
	.max_arguments = PRB_MAX_TEXTS,
	.complete = PRB_COMPLETE_TARGET,
	.examples = (const struct prb_example[]){{"probing why 4242", "Of one process"},
						 {"probing why", "Of all Python processes here"},
						 {"probing why core.4242", "Of a core file"},
						 {}},
	.run = run,
};

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `probing skill`: named diagnoses. */
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "cli/commands/perf/torch/torch.h"
#include "cli/commands/why/why.h"
#include "command/command.h"
#include "command/exit.h"
#include "command/output.h"
#include "command/term.h"
#include "gateway/skills/skills.h"
#include "judge/text.h"
#include "lib/probing.h"

struct skill_settings {
	bool json;
};

struct run {
	struct probing *session;
	const struct prb_why *why;		/* the verdict comes first */
	const struct prb_torch_verdicts *steps; /* before it, of a process that trains */
	bool json;
	size_t width;
};

static void destroy_session(struct probing **session)
{
	probing_destroy(*session);
}

static void warn(void *context, const char *text)
{
	(void)context;
	prb_warn(text);
}

static int put_text(void *context, const char *text, size_t length)
{
	prb_str_append(context, text, length);
	return 0;
}

/** The library's error as one of ours. */
static struct prb_error *convert(struct probing_error *from)
{
	static const enum prb_error_code CODES[] = {
		[PROBING_FAILED] = PRB_ERROR_FAILED,
		[PROBING_USAGE] = PRB_ERROR_USAGE,
		[PROBING_UNSUPPORTED] = PRB_ERROR_UNSUPPORTED,
		[PROBING_PERMISSION] = PRB_ERROR_PERMISSION,
		[PROBING_TIMEOUT] = PRB_ERROR_TIMEOUT,
		[PROBING_NO_PROCESS] = PRB_ERROR_NO_PROCESS,
		[PROBING_CANCELLED] = PRB_ERROR_CANCELLED,
		[PROBING_NO_MEMORY] = PRB_ERROR_NOMEM,
	};
	struct prb_error *err;

	if (!from)
		return NULL;
	err = prb_error_create(CODES[probing_error_code(from)], "%s", probing_error_message(from));
	if (probing_error_hint(from))
		err = prb_error_hint(err, "%s", probing_error_hint(from));
	probing_error_destroy(from);
	return err;
}

/** What the rules find in the target. */
static void put_verdict(struct prb_json *json, const struct prb_why *why)
{
	prb_json_open(json, "findings", '[');
	for (size_t i = 0; i < why->list.count; i++) {
		const struct prb_why_one *one = why->list.items[i];

		for (size_t k = 0; k < one->findings.list.count; k++) {
			prb_json_open(json, NULL, '{');
			prb_finding_members(json, one->findings.list.items[k], one->process.pid);
			prb_json_close(json, '}');
		}
	}
	prb_json_close(json, ']');
}

static struct prb_error *print_verdict(const struct run *run)
{
	prb_auto_str struct prb_str text = {};

	prb_torch_verdicts_text(run->steps, &text);
	PRB_TRY(prb_why_text(run->why, &text));
	prb_str_putc(&text, '\n');
	return prb_output_lines(&text, false);
}

/** One section: what it says, and the rows. A query that fails says why in its place. */
static struct prb_error *show(const struct run *run, const struct prb_skill_part *part, bool first,
			      struct prb_json *json)
{
	prb_auto_str struct prb_str rows = {}, text = {};
	struct probing_error *failed = NULL;
	unsigned look = run->width && prb_term_colour(stdout) ? PROBING_COLOUR : 0;

	if (part->sql.length)
		failed = probing_print(run->session, prb_str_text(&part->sql),
				       run->json ? "json" : "table", look | PROBING_TERMINAL,
				       (unsigned)run->width, put_text, &rows);

	prb_auto_error struct prb_error *err = convert(failed);

	if (run->json) {
		prb_json_open(json, NULL, '{');
		prb_json_text(json, "title", prb_str_text(&part->title));
		prb_json_text(json, "text", prb_str_text(&part->text));
		prb_json_text(json, "sql", part->sql.length ? prb_str_text(&part->sql) : NULL);
		prb_json_text(json, "error", err ? err->message : NULL);
		if (part->sql.length && !err)
			prb_str_printf(json->out, ",\"rows\":%s", prb_str_text(&rows));
		else
			prb_json_null(json, "rows");
		if (first) {
			put_verdict(json, run->why);
			prb_torch_verdicts_json(run->steps, json);
		}
		prb_json_close(json, '}');
		return NULL;
	}
	prb_str_printf(&text, "%s\n\n%s%s", prb_str_text(&part->title), prb_str_text(&part->text),
		       part->text.length && part->sql.length ? "\n" : "");
	if (err)
		prb_str_printf(&text, "cannot be told: %s\n", err->message);
	else if (part->sql.length)
		prb_str_printf(&text, "%s", rows.length ? prb_str_text(&rows) : "(no rows)\n");
	prb_str_putc(&text, '\n');
	return prb_output_lines(&text, false);
}

static struct prb_error *run_all(const struct run *run, const struct prb_skill *skill)
{
	prb_auto_str struct prb_str text = {};
	struct prb_json json = {&text};
	const char *at = skill->text;
	bool more = true, first = true;

	if (!run->json)
		PRB_TRY(print_verdict(run));
	prb_json_open(&json, NULL, '[');
	while (more) {
		__attribute__((cleanup(prb_skill_part_deinit))) struct prb_skill_part part = {};

		more = prb_skill_next(&at, &part);
		if (more)
			PRB_TRY(show(run, &part, first, &json));
		first = false;
	}
	prb_json_close(&json, ']');
	prb_str_putc(&text, '\n');
	return run->json ? prb_output(&text) : NULL;
}

static struct prb_error *list(bool as_json)
{
	prb_auto_str struct prb_str text = {};
	struct prb_json json = {&text};

	if (as_json)
		prb_json_open(&json, NULL, '[');
	for (const struct prb_skill *skill = prb_skills; skill->name; skill++) {
		prb_auto_str struct prb_str title = {};

		prb_skill_title(skill, &title);
		if (as_json) {
			prb_json_open(&json, NULL, '{');
			prb_json_text(&json, "name", skill->name);
			prb_json_text(&json, "title", prb_str_text(&title));
			prb_json_close(&json, '}');
		} else {
			prb_str_printf(&text, "%-10s  %s\n", skill->name, prb_str_text(&title));
		}
	}
	if (as_json) {
		prb_json_close(&json, ']');
		prb_str_putc(&text, '\n');
	}
	return prb_output_lines(&text, as_json);
}

/** What training steps wait for: the skill about time samples the process for that. */
static struct prb_error *judge_steps(const struct prb_cli *cli, const struct prb_skill *skill,
				     const char *target, struct prb_torch_verdicts *ret)
{
	static const double seconds = 3;
	prb_auto_error struct prb_error *err = NULL;

	if (strcmp(skill->name, "slow") != 0)
		return NULL;
	err = prb_torch_verdicts_take(cli, target, seconds, ret);
	if (err && err->code == PRB_ERROR_NOMEM)
		return prb_steal(&err);
	if (err)
		prb_warn(err->message);
	return NULL;
}

static struct prb_error *run_skill(const struct prb_cli *cli, bool json, const char *name,
				   const char *target)
{
	__attribute__((cleanup(destroy_session))) struct probing *session = NULL;
	const struct prb_skill *skill = name ? prb_skill_find(name) : NULL;
	__attribute__((cleanup(prb_why_deinit))) struct prb_why why = {};
	__attribute__((cleanup(prb_torch_verdicts_deinit))) struct prb_torch_verdicts steps = {};
	const struct prb_texts none = {}, targets = {.items = {target}, .count = 1};
	struct run run = {.json = json, .why = &why, .steps = &steps};
	size_t rows;

	if (!skill)
		return prb_error_hint(prb_error_create(PRB_ERROR_USAGE, "there is no skill '%.50s'",
						       name ? name : ""),
				      "'probing skill list' lists them");
	if (!target)
		return prb_error_hint(prb_error_create(PRB_ERROR_USAGE, "no target given"),
				      "for example 'probing 4242 skill run %s'", name);
	PRB_TRY(convert(probing_create(&session)));
	probing_on_warning(session, warn, NULL);
	PRB_TRY(convert(probing_open(session, target, cli->places.exe)));
	PRB_TRY(convert(probing_set(session, "probing.query.timeout", "30")));
	PRB_TRY(judge_steps(cli, skill, target, &steps));
	PRB_TRY(prb_why_create(cli, &targets, &none, &why));
	run.session = session;
	prb_term_size(stdout, &run.width, &rows);
	return run_all(&run, skill);
}

static struct prb_error *run(const struct prb_cli *cli, const void *settings)
{
	const struct skill_settings *s = settings;
	const char *what = cli->argument_count ? cli->arguments[0] : "list";
	const char *name = cli->argument_count > 1 ? cli->arguments[1] : NULL;

	if (!strcmp(what, "list") && !name && !cli->target)
		return list(s->json);
	if (!strcmp(what, "run") && cli->targets.count + (cli->argument_count > 2) < 2)
		return run_skill(cli, s->json, name,
				 cli->argument_count > 2 ? cli->arguments[2] : cli->target);
	return prb_error_hint(
		prb_error_create(PRB_ERROR_USAGE,
				 "a skill is for 'list' or 'run NAME', and one target"),
		"for example 'probing 4242 skill run hang'");
}

const struct prb_command prb_command_skill = {
	.rank = 86,
	.name = "skill",
	.summary = "Answer a question about a process: does it hang, leak, wait for itself?",
	.description = "A skill is a named diagnosis: a few questions, each with a query and what "
		       "its rows mean, below what the rules of 'why' find. 'list' lists the "
		       "skills, 'run NAME' runs one over TARGET: a "
		       "process, which is only read, or a file.",
	.options =
		(const struct prb_option[]){
			{"json", 0, PRB_OPTION_FLAG, NULL, "Print JSON", PRB_COMPLETE_NOTHING,
			 offsetof(struct skill_settings, json)},
			{},
		},
	.settings_size = sizeof(struct skill_settings),
	.target_use = PRB_TARGET_ANY,
	.argument = "list|run NAME [TARGET]",
	.max_arguments = 3,
	.complete = PRB_COMPLETE_NOTHING,
	.examples =
		(const struct prb_example[]){
			{"probing skill list", "What there is"},
			{"probing 4242 skill run hang", "Does it hang, and where?"},
			{"probing skill run deadlock core.4242", "Of a core file"},
			{},
		},
	.run = run,
};

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file From words to a command: which words belong to the program, which to the command, and
 * what the target is. Nothing is initialised before a command runs, so that help is instant.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command/command.h"
#include "command/descriptors.h"
#include "command/exit.h"
#include "command/exit_kind.h"
#include "cli/help.h"
#include "command/log.h"
#include "cli/commands/script/start_python.h"
#include "cli/manual.h"
#include "command/options.h"
#include "command/output.h"
#include "cli/pids.h"
#include "cli/version.h"
#include "remote/remote.h"
#include "command/rights.h"
#include "command/term.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "base/text.h"
#include "target/spec/target_spec.h"
#include "command/words.h"

/** The parsed command line: [TARGET] COMMAND [WORD…], options anywhere. */
struct invocation {
	struct prb_global_settings global;
	const struct prb_command *command; /**< NULL if none was named */
	void *settings;			   /**< of the command */
	char **words;			   /**< positional words after the command, borrowed */
	size_t word_count;
	char **program;		   /**< words after "--", where these are a program; or NULL */
	char parent[PRB_PID_TEXT]; /**< of several pids that are one program */
	const char *word_target;   /**< positional target in front of the command, or NULL */
};

static void free_invocation(struct invocation **inv)
{
	if (*inv)
		free((*inv)->settings);
	free(*inv);
}

/** A positional word in front that can only be meant as a target. */
static bool looks_like_target(const char *word)
{
	return isdigit((unsigned char)word[0]) || strpbrk(word, "/.:");
}

static struct prb_error *no_command(const char *target)
{
	if (target)
		return prb_command_unknown(target);
	return prb_error_hint(prb_error_create(PRB_ERROR_USAGE, "no command given"),
			      "for example 'probing 4242 backtrace'; 'probing --help' lists the "
			      "commands");
}

/** Finds the command among the first two positional words; *at is its index. */
static struct prb_error *find_command(const struct prb_option_scopes *scopes, char **words,
				      size_t count, struct invocation *inv, size_t *at)
{
	size_t first = prb_options_skip(scopes, words, count, 0);
	size_t second;

	*at = first;
	if (first >= count)
		return NULL;
	inv->command = prb_command_find(words[first]);
	if (inv->command)
		return NULL;
	PRB_TRY(prb_script_external(words, count, first));
	second = prb_options_skip(scopes, words, count, first + 1);
	*at = second;
	if (second >= count)
		return NULL;
	inv->command = prb_command_find(words[second]);
	if (inv->command)
		return NULL;
	PRB_TRY(prb_script_external(words, count, second));
	/* "probing stack 4242", "probing record -o FILE": the command is what comes first. */
	if (prb_command_is_foreign(words[first]) ||
	    (looks_like_target(words[second]) && !looks_like_target(words[first])))
		return prb_command_unknown(words[first]);
	return prb_command_unknown(words[second]);
}

static struct prb_error *parse_around_command(char **words, size_t count, size_t at,
					      struct invocation *inv);

/** Words without a command: they are those of the command @p name. */
static struct prb_error *parse_as(char *name, char **words, size_t count, struct invocation *inv)
{
	prb_auto_free char **more = calloc(count + 1, sizeof(*more));

	inv->command = prb_command_find(name);
	inv->settings = calloc(1, inv->command->settings_size + 1);
	if (!more || !inv->settings)
		return prb_error_nomem();
	if (count)
		memcpy(more, words, count * sizeof(*more));
	inv->global = (struct prb_global_settings){};
	more[count] = name;
	PRB_TRY(parse_around_command(more, count + 1, count, inv));
	inv->words = words + count;
	return NULL;
}

/** There is no command: either none is needed, or what is wrong is said. */
static struct prb_error *parse_without_command(const struct prb_option_scopes *program,
					       char **words, size_t count, struct invocation *inv)
{
	static char dump[] = "dump", overview[] = "overview";
	size_t first = prb_options_skip(program, words, count, 0), positional;
	const char *target = first < count ? words[first] : NULL;

	/* On a terminal, the answer comes before the question: what is wrong here. */
	if (!count && prb_term_is(stdout))
		return parse_as(overview, words, count, inv);

	/* "probing dump --json": the wrong command is what matters, not its option. */
	if (target && !looks_like_target(target))
		return prb_command_unknown(target);
	PRB_TRY(prb_options_parse(program, words, count, &positional));
	if (inv->global.help || inv->global.version || inv->global.manual)
		return NULL;
	if (target ? looks_like_target(target) : inv->global.pid || inv->global.targets.count)
		return parse_as(dump, words, count, inv); /* its stacks are wanted */
	return no_command(target);
}

/**
 * Options may be given on both sides of the command. A letter belongs to the nearer part on each
 * side, but names the target while there is none.
 */
static struct prb_error *parse_around_command(char **words, size_t count, size_t at,
					      struct invocation *inv)
{
	const struct prb_option_scope global = {prb_global_options, &inv->global};
	const struct prb_option_scope own = {inv->command->options, inv->settings};
	bool wants_target = inv->command->target_use == PRB_TARGET_ONE;
	char name[64];
	size_t positional;

	snprintf(name, sizeof(name), "probing %s", inv->command->name);
	PRB_TRY(prb_options_parse(
		&(struct prb_option_scopes){(const struct prb_option_scope[]){global, own, {}},
					    name},
		words, at, &positional));
	if (positional)
		inv->word_target = words[0];
	for (size_t i = at + 1; inv->command->takes_program && i < count; i++)
		if (!strcmp(words[i], "--")) {
			inv->program = words + i + 1;
			count = i;
		}
	inv->words = words + at + 1;
	/* While the target is not known, a letter that could name it does: "debug -p 4242". */
	wants_target &= !inv->program && !inv->word_target && !inv->global.pid &&
			!inv->global.targets.count;
	return prb_options_parse(
		&(struct prb_option_scopes){
			(const struct prb_option_scope[]){
				wants_target ? global : own, wants_target ? own : global, {}},
			name},
		inv->words, count - at - 1, &inv->word_count);
}

static struct prb_error *parse(char **words, size_t count, struct invocation *inv)
{
	const struct prb_option_scopes program = {
		(const struct prb_option_scope[]){
			{prb_global_options, &inv->global}, {prb_hidden_options, &inv->global}, {}},
		"probing"};
	size_t at;

	PRB_TRY(find_command(&program, words, count, inv, &at));
	if (!inv->command)
		return parse_without_command(&program, words, count, inv);
	inv->settings = calloc(1, inv->command->settings_size + 1);
	if (!inv->settings)
		return prb_error_nomem();
	return parse_around_command(words, count, at, inv);
}

/** The targets: said by options or a positional word, else by the environment. */
static struct prb_error *choose_targets(struct invocation *inv, char pid[16], struct prb_texts *ret)
{
	const char *said = inv->program ? NULL : getenv("PROBING_TARGET");

	*ret = inv->global.targets;
	if (inv->global.pid)
		snprintf(pid, 16, "%d", inv->global.pid);
	bool word = inv->command->target_use == PRB_TARGET_ONE && inv->word_count;
	const char *more[] = {inv->global.pid ? pid : NULL, inv->word_target,
			      word ? *inv->words : NULL};
	inv->words += word;
	inv->word_count -= word;
	for (size_t i = 0; i < PRB_ARRAY_SIZE(more); i++)
		if (more[i] && ret->count < PRB_MAX_TEXTS)
			ret->items[ret->count++] = more[i];
	if (ret->count && !inv->command->target_use && !prb_remote_is(ret->items[0]))
		return prb_error_create(PRB_ERROR_USAGE,
					"'%s' takes no target, but '%.100s' is given",
					inv->command->name, ret->items[0]);
	if (ret->count > 1 && inv->command->target_use == PRB_TARGET_ONE)
		return prb_error_hint(prb_error_create(PRB_ERROR_USAGE,
						       "two targets given: '%.100s' and "
						       "'%.100s'",
						       ret->items[0], ret->items[1]),
				      "give one, with -t, -p or as a word");
	if (!ret->count && said && *said && inv->command->target_use)
		ret->items[ret->count++] = said;
	return NULL;
}

static struct prb_error *refuse_options(const struct invocation *inv)
{
	for (const struct prb_option *o = prb_global_options; o->name; o++)
		if (prb_option_is_set(o, &inv->global) && !prb_command_takes(inv->command, o))
			return prb_error_create(PRB_ERROR_USAGE, "'%s' takes no '--%s'",
						inv->command->name, o->name);
	return NULL;
}

static struct prb_error *no_target(const struct prb_command *command)
{
	return prb_error_hint(prb_error_create(PRB_ERROR_USAGE, "no target given"),
			      "for example '%s'; 'probing list' shows which Python processes there "
			      "are",
			      command->examples[0].command);
}

static bool is_remote(const struct prb_texts *targets)
{
	for (size_t i = 0; i < targets->count; i++)
		if (prb_remote_is(targets->items[i]))
			return true;
	return false;
}

static struct prb_error *run_elsewhere(const struct prb_cli *cli, const void *settings)
{
	if (cli->targets.count > 1)
		return prb_error_hint(prb_error_create(PRB_ERROR_UNSUPPORTED,
						       "a target like '%.200s' is read alone, and "
						       "%zu are given",
						       cli->target, cli->targets.count),
				      "the command runs where its target is; run it once for each");
	PRB_TRY(prb_spec_refuse_places(cli->target, &cli->places));
	return prb_remote_command(cli, settings);
}

static struct prb_error *check_program(const struct prb_cli *cli)
{
	if (cli->program && !*cli->program)
		return prb_error_hint(prb_error_create(PRB_ERROR_USAGE, "no program after '--'"),
				      "for example 'probing %s -- python3 train.py'",
				      cli->command->aliases[0] ? cli->command->aliases[0]
							       : cli->command->name);
	if (cli->program && cli->target)
		return prb_error_create(PRB_ERROR_USAGE,
					"a target, '%.100s', and a program, '%.100s', are given",
					cli->target, *cli->program);
	return NULL;
}

static struct prb_error *run_command(struct invocation *inv)
{
	struct prb_cli cli = {.command = inv->command,
			      .places = inv->global.places,
			      .token_file = inv->global.token_file,
			      .verbose = inv->global.verbose};
	char pid[16];

	PRB_TRY(prb_log_start(inv->global.verbose));
	PRB_TRY(choose_targets(inv, pid, &cli.targets));
	PRB_TRY(refuse_options(inv));
	cli.target = cli.targets.count ? cli.targets.items[0] : NULL;
	/* For a target "--" may end the options, as it does when they come from another machine. */
	if (!cli.target || (inv->program && *inv->program))
		cli.program = inv->program;
	PRB_TRY(check_program(&cli));
	cli.arguments = inv->words;
	cli.argument_count = inv->word_count;
	if (inv->word_count > inv->command->max_arguments)
		return prb_error_hint(prb_error_create(PRB_ERROR_USAGE, "unexpected word '%.100s'",
						       inv->words[inv->command->max_arguments]),
				      "'probing %s --help' describes it", inv->command->name);
	if (inv->command->target_use == PRB_TARGET_ONE && !cli.target && !cli.program)
		return no_target(inv->command);
	if (is_remote(&cli.targets))
		return run_elsewhere(&cli, inv->settings);
	return inv->command->run(&cli, inv->settings);
}

static struct prb_error *run(char **words, size_t count)
{
	/* It has room for many targets, which a small stack has not. */
	__attribute__((cleanup(free_invocation))) struct invocation *inv = calloc(1, sizeof(*inv));
	prb_auto_str struct prb_str text = {};

	if (!inv)
		return prb_error_nomem();
	PRB_TRY(prb_rights_check());
	PRB_TRY(prb_pids_join(words, &count, inv->parent));
	PRB_TRY(parse(words, count, inv));
	if (inv->global.help)
		prb_help_text(inv->command, &text);
	else if (inv->global.version)
		prb_version_text(&text);
	else if (inv->global.manual)
		prb_manual_page(&text);
	else
		return run_command(inv);
	return prb_output_lines(&text, inv->global.manual);
}

/** Fails if memory ran out for any text, even if the command did not notice: output may lack parts.
 */
static struct prb_error *run_whole(char **words, size_t count)
{
	PRB_TRY(run(words, count));
	return prb_str_ran_out()
		       ? prb_error_hint(prb_error_nomem(), "what was printed may lack parts")
		       : NULL;
}

int main(int argc, char **argv)
{
	prb_descriptors_begin();
	prb_exit_kinds_begin();
	if (argc < 2 && !prb_term_is(stdout)) {
		prb_auto_str struct prb_str text = {};

		prb_help_text(NULL, &text);
		fputs(prb_str_text(&text), stderr);
		return PRB_EXIT_USAGE;
	}
	enum prb_exit code = prb_exit_report(run_whole(argv + 1, (size_t)argc - 1));

	prb_exit_as_passed();
	return (int)code;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file `probing completion SHELL`: the templates of cli/commands/completion, filled from the
 * tables of commands and options.
 */
#include <string.h>

#include "command/command.h"
#include "command/options.h"
#include "command/output.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "sql/render/renderer.h"
#include "sql/spec/table.h"

/* A template without its first line, which has its licence. */
#define EMBED(name, file)                            \
	__asm__(".pushsection .rodata\n"             \
		".global prb_completion_" #name "\n" \
		".hidden prb_completion_" #name "\n" \
		"prb_completion_" #name ":\n"        \
		".incbin \"" file "\"\n"             \
		".byte 0\n"                          \
		".popsection\n");                    \
	extern const char prb_completion_##name[]

EMBED(bash, "cli/commands/completion/bash.in");
EMBED(zsh, "cli/commands/completion/zsh.in");
EMBED(fish, "cli/commands/completion/fish.in");

static const char *const shells[] = {"bash", "zsh", "fish", NULL};

/** Names of commands, divided by @p between; with aliases if asked for. */
static void put_names(struct prb_str *s, const struct prb_command *command, const char *between,
		      bool aliases)
{
	prb_str_puts(s, command->name);
	for (const char *const *alias = command->aliases; aliases && *alias; alias++)
		prb_str_printf(s, "%s%s", between, *alias);
}

static void put_all_commands(struct prb_str *s)
{
	for (const struct prb_command *const *c = prb_commands; *c; c++)
		prb_str_printf(s, "%s%s", c == prb_commands ? "" : " ", (*c)->name);
}

static void put_all_shells(struct prb_str *s)
{
	for (const char *const *shell = shells; *shell; shell++)
		prb_str_printf(s, "%s%s", shell == shells ? "" : " ", *shell);
}

static void put_all_formats(struct prb_str *s)
{
	for (const struct prb_renderer_format *f = prb_renderer_formats; f->name; f++)
		prb_str_printf(s, "%s%s", f == prb_renderer_formats ? "" : " ", f->name);
}

static void put_all_tables(struct prb_str *s)
{
	for (const struct prb_table *const *t = prb_tables; *t; t++)
		prb_str_printf(s, "%s%s.%s", t == prb_tables ? "" : " ", (*t)->schema, (*t)->name);
}

/** The words of a list that is the same everywhere. */
static void put_list(struct prb_str *s, enum prb_completion what)
{
	switch (what) {
	case PRB_COMPLETE_COMMAND:
		put_all_commands(s);
		break;
	case PRB_COMPLETE_SHELL:
		put_all_shells(s);
		break;
	case PRB_COMPLETE_FORMAT:
		put_all_formats(s);
		break;
	case PRB_COMPLETE_TABLE:
		put_all_tables(s);
		break;
	case PRB_COMPLETE_THREAD:
		prb_str_puts(s, "agent main");
		break;
	case PRB_COMPLETE_REQUEST:
		prb_str_puts(s, "status stop relay");
		break;
	case PRB_COMPLETE_NOTHING:
	case PRB_COMPLETE_VALUE:
	case PRB_COMPLETE_FILE:
	case PRB_COMPLETE_PROCESS:
	case PRB_COMPLETE_TARGET:
		break;
	}
}

/** @p command: NULL for the program, which takes all of them. */
static void put_option_words(struct prb_str *s, const struct prb_command *command,
			     const struct prb_option *options)
{
	for (const struct prb_option *o = options; o->name; o++) {
		if (options == prb_global_options && command && !prb_command_takes(command, o))
			continue;
		if (o->letter)
			prb_str_printf(s, " -%c", o->letter);
		prb_str_printf(s, " --%s", o->name);
	}
}

/* bash */

static void put_bash_values(struct prb_str *s, enum prb_completion what)
{
	switch (what) {
	case PRB_COMPLETE_NOTHING:
		prb_str_puts(s, "return");
		break;
	case PRB_COMPLETE_VALUE:
		prb_str_puts(s, "_probing_values; return");
		break;
	case PRB_COMPLETE_FILE:
		prb_str_puts(s, "_probing_files; return");
		break;
	case PRB_COMPLETE_PROCESS:
		prb_str_puts(s, "_probing_words \"$(_probing_pids)\"; return");
		break;
	case PRB_COMPLETE_TARGET:
		prb_str_puts(s, "_probing_files; _probing_words \"$(_probing_pids)\"; return");
		break;
	case PRB_COMPLETE_COMMAND:
	case PRB_COMPLETE_SHELL:
	case PRB_COMPLETE_FORMAT:
	case PRB_COMPLETE_TABLE:
	case PRB_COMPLETE_THREAD:
	case PRB_COMPLETE_REQUEST:
		prb_str_puts(s, "_probing_words '");
		put_list(s, what);
		prb_str_puts(s, "'; return");
		break;
	}
}

/**
 * True if the letter means another thing, with a value, in front of the command, and never that
 * behind it.
 */
static bool hides_global(const struct prb_command *command, const struct prb_option *option)
{
	if (command->target_use == PRB_TARGET_ONE)
		return false;
	for (const struct prb_option *o = prb_global_options; o->name; o++)
		if (o->letter && o->letter == option->letter)
			return o->value != NULL;
	return false;
}

/** A line of the case that completes the value of the option in front: "snapshot:-o". */
static void put_bash_value_case(struct prb_str *s, const struct prb_command *command,
				const struct prb_option *option)
{
	const char *scope = command ? command->name : "*";

	if (!prb_option_takes_word(option) && !(command && hides_global(command, option)))
		return;
	prb_str_printf(s, "\t%s:--%s", scope, option->name);
	if (option->letter)
		prb_str_printf(s, " | %s:-%c", scope, option->letter);
	prb_str_puts(s, ")");
	if (prb_option_takes_word(option)) {
		prb_str_putc(s, ' ');
		put_bash_values(s, option->complete);
	}
	prb_str_puts(s, " ;;\n");
}

/** Options of commands first: a letter means on their side what they say. */
static void put_bash_value_cases(struct prb_str *s)
{
	for (const struct prb_command *const *c = prb_commands; *c; c++)
		for (const struct prb_option *o = (*c)->options; o->name; o++)
			put_bash_value_case(s, *c, o);
	for (const struct prb_option *o = prb_global_options; o->name; o++)
		put_bash_value_case(s, NULL, o);
}

/** Global options with a value, which is no command. */
static void put_bash_global_values(struct prb_str *s)
{
	for (const struct prb_option *o = prb_global_options; o->name; o++) {
		if (!o->value)
			continue;
		prb_str_puts(s, "\t\t");
		if (o->letter)
			prb_str_printf(s, "-%c | ", o->letter);
		prb_str_printf(s, "--%s) [[ $command ]] || ((i++)) ;;\n", o->name);
	}
}

static void put_bash_commands(struct prb_str *s)
{
	for (const struct prb_command *const *c = prb_commands; *c; c++) {
		prb_str_puts(s, "\t\t");
		put_names(s, *c, " | ", true);
		prb_str_printf(s, ") [[ $command ]] || command=%s ;;\n", (*c)->name);
	}
}

static void put_bash_words(struct prb_str *s)
{
	for (const struct prb_command *const *c = prb_commands; *c; c++) {
		prb_str_printf(s, "\t%s)\n", (*c)->name);
		if ((*c)->argument) {
			prb_str_puts(s, "\t\t[[ ${COMP_WORDS[COMP_CWORD]} == -* ]] || { ");
			put_bash_values(s, (*c)->complete);
			prb_str_puts(s, "; }\n");
		}
		/* All of them begin with a dash, which is not to be inserted for nothing. */
		prb_str_puts(s, "\t\t[[ ${COMP_WORDS[COMP_CWORD]} ]] && _probing_words '");
		put_option_words(s, *c, (*c)->options);
		put_option_words(s, *c, prb_global_options);
		prb_str_puts(s, "' ;;\n");
	}
}

static void put_global_option_words(struct prb_str *s)
{
	put_option_words(s, NULL, prb_global_options);
}

/* zsh */

/** Text inside a single-quoted zsh option description. */
static void put_quoted(struct prb_str *s, const char *text, const char *special)
{
	for (; *text; text++) {
		if (*text == '\'')
			prb_str_puts(s, "'\\'");
		else if (strchr(special, *text))
			prb_str_putc(s, '\\');
		prb_str_putc(s, *text);
	}
}

static void put_zsh_action(struct prb_str *s, enum prb_completion what)
{
	switch (what) {
	case PRB_COMPLETE_NOTHING:
		prb_str_puts(s, " ");
		break;
	case PRB_COMPLETE_VALUE:
		prb_str_puts(s, "_probing_values");
		break;
	case PRB_COMPLETE_FILE:
		prb_str_puts(s, "_files");
		break;
	case PRB_COMPLETE_PROCESS:
		prb_str_puts(s, "_pids");
		break;
	case PRB_COMPLETE_TARGET:
		prb_str_puts(s, "{_pids; _files}");
		break;
	case PRB_COMPLETE_COMMAND:
	case PRB_COMPLETE_SHELL:
	case PRB_COMPLETE_FORMAT:
	case PRB_COMPLETE_TABLE:
	case PRB_COMPLETE_THREAD:
	case PRB_COMPLETE_REQUEST:
		prb_str_puts(s, "(");
		put_list(s, what);
		prb_str_puts(s, ")");
		break;
	}
}

static bool letter_taken(const struct prb_option *own, char letter)
{
	for (; own && own->name; own++)
		if (own->letter == letter)
			return true;
	return false;
}

static void put_zsh_options(struct prb_str *s, const struct prb_option *options,
			    const struct prb_command *command)
{
	const struct prb_option *own = command ? command->options : NULL;

	for (const struct prb_option *o = options; o->name; o++) {
		if (command && !prb_command_takes(command, o))
			continue;
		bool letter = o->letter && !letter_taken(own, o->letter);

		prb_str_puts(s, " \\\n\t\t\t");
		if (letter)
			prb_str_printf(s, "'(-%c --%s)'{-%c,--%s}", o->letter, o->name, o->letter,
				       o->name);
		else
			prb_str_printf(s, "--%s", o->name);
		prb_str_puts(s, "'[");
		put_quoted(s, o->help, "[]:\\");
		prb_str_puts(s, "]");
		if (prb_option_takes_word(o)) {
			prb_str_printf(s, ":%s:", o->value);
			put_zsh_action(s, o->complete);
		}
		prb_str_puts(s, "'");
	}
}

static void put_zsh_global_options(struct prb_str *s)
{
	put_zsh_options(s, prb_global_options, NULL);
}

static void put_zsh_summaries(struct prb_str *s)
{
	for (const struct prb_command *const *c = prb_commands; *c; c++) {
		prb_str_printf(s, "\n\t\t\t'%s:", (*c)->name);
		put_quoted(s, (*c)->summary, ":\\");
		prb_str_puts(s, "'");
	}
}

static void put_zsh_commands(struct prb_str *s)
{
	for (const struct prb_command *const *c = prb_commands; *c; c++) {
		const struct prb_command *command = *c;

		prb_str_puts(s, "\t\t");
		put_names(s, command, "|", true);
		prb_str_puts(s, ") _arguments");
		put_zsh_options(s, command->options, NULL);
		put_zsh_options(s, prb_global_options, command);
		if (command->argument) {
			prb_str_puts(s, " \\\n\t\t\t'1::argument:");
			put_zsh_action(s, command->complete);
			prb_str_puts(s, "'");
		}
		prb_str_puts(s, " && ret=0 ;;\n");
	}
}

/* fish */

static void put_fish_values(struct prb_str *s, enum prb_completion what)
{
	switch (what) {
	case PRB_COMPLETE_NOTHING:
		prb_str_puts(s, " -x");
		break;
	case PRB_COMPLETE_VALUE:
		prb_str_puts(s, " -x -a '(__probing_values)'");
		break;
	case PRB_COMPLETE_FILE:
		prb_str_puts(s, " -r -F");
		break;
	case PRB_COMPLETE_PROCESS:
		prb_str_puts(s, " -x -a '(__fish_complete_pids)'");
		break;
	case PRB_COMPLETE_TARGET:
		prb_str_puts(s, " -r -F -a '(__fish_complete_pids)'");
		break;
	case PRB_COMPLETE_COMMAND:
	case PRB_COMPLETE_SHELL:
	case PRB_COMPLETE_FORMAT:
	case PRB_COMPLETE_TABLE:
	case PRB_COMPLETE_THREAD:
	case PRB_COMPLETE_REQUEST:
		prb_str_puts(s, " -x -a '");
		put_list(s, what);
		prb_str_puts(s, "'");
		break;
	}
}

static void put_fish_condition(struct prb_str *s, const struct prb_command *command)
{
	prb_str_puts(s, " -n '__fish_seen_subcommand_from ");
	put_names(s, command, " ", true);
	prb_str_puts(s, "'");
}

static void put_fish_option(struct prb_str *s, const struct prb_command *command,
			    const struct prb_option *option)
{
	prb_str_puts(s, "complete -c probing");
	if (command)
		put_fish_condition(s, command);
	if (option->letter)
		prb_str_printf(s, " -s %c", option->letter);
	prb_str_printf(s, " -l %s", option->name);
	if (prb_option_takes_word(option))
		put_fish_values(s, option->complete);
	prb_str_puts(s, " -d '");
	put_quoted(s, option->help, "\\");
	prb_str_puts(s, "'\n");
}

static void put_fish_commands(struct prb_str *s)
{
	for (const struct prb_command *const *c = prb_commands; *c; c++) {
		prb_str_puts(s, "complete -c probing -n '__fish_use_subcommand' -a ");
		prb_str_printf(s, "%s -d '", (*c)->name);
		put_quoted(s, (*c)->summary, "\\");
		prb_str_puts(s, "'\n");
		if ((*c)->argument) {
			prb_str_puts(s, "complete -c probing");
			put_fish_condition(s, *c);
			put_fish_values(s, (*c)->complete);
			prb_str_putc(s, '\n');
		}
	}
}

static void put_fish_global_options(struct prb_str *s)
{
	for (const struct prb_option *o = prb_global_options; o->name; o++)
		put_fish_option(s, NULL, o);
}

static void put_fish_options(struct prb_str *s)
{
	for (const struct prb_command *const *c = prb_commands; *c; c++)
		for (const struct prb_option *o = (*c)->options; o->name; o++)
			put_fish_option(s, *c, o);
}

/** The replacement of a word between two @ in a template. */
struct filling {
	const char *name;
	void (*put)(struct prb_str *s);
};

enum { FILLINGS = 6 };

static const struct template
{
	const char *shell, *text;
	struct filling fillings[FILLINGS + 1];
}
templates[] = {
	{"bash",
	 prb_completion_bash,
	 {{"GLOBAL_VALUES", put_bash_global_values},
	  {"COMMANDS", put_bash_commands},
	  {"VALUES", put_bash_value_cases},
	  {"WORDS_OF_COMMANDS", put_bash_words},
	  {"COMMAND_NAMES", put_all_commands},
	  {"GLOBAL_OPTIONS", put_global_option_words}}},
	{"zsh",
	 prb_completion_zsh,
	 {{"GLOBAL_OPTIONS", put_zsh_global_options},
	  {"SUMMARIES", put_zsh_summaries},
	  {"COMMANDS", put_zsh_commands}}},
	{"fish",
	 prb_completion_fish,
	 {{"COMMANDS", put_fish_commands},
	  {"GLOBAL_OPTIONS", put_fish_global_options},
	  {"OPTIONS", put_fish_options}}},
};

/** The filling whose name between two @ begins the text; NULL: there is none. */
static const struct filling *find_filling(const struct template *template, const char *at)
{
	for (const struct filling *f = template->fillings; f->name; f++) {
		size_t length = strlen(f->name);

		if (*at == '@' && !strncmp(at + 1, f->name, length) && at[length + 1] == '@')
			return f;
	}
	return NULL;
}

/** Fillings that have a line for themselves end their last line. */
static void fill(const struct template *template, struct prb_str *ret)
{
	const char *at = strchr(template->text, '\n') + 1;

	while (*at) {
		const struct filling *filling = find_filling(template, at);
		bool begins_line = at[-1] == '\n';

		if (!filling) {
			prb_str_putc(ret, *at++);
			continue;
		}
		filling->put(ret);
		at += strlen(filling->name) + 2;
		at += begins_line && *at == '\n';
	}
}

static struct prb_error *run(const struct prb_cli *cli, const void *settings)
{
	prb_auto_str struct prb_str text = {};
	const char *shell = cli->argument_count ? cli->arguments[0] : "";

	(void)settings;
	for (size_t i = 0; i < PRB_ARRAY_SIZE(templates); i++)
		if (!strcmp(shell, templates[i].shell))
			fill(&templates[i], &text);
	if (text.length)
		return prb_output(&text);
	return prb_error_hint(prb_error_create(PRB_ERROR_USAGE,
					       *shell ? "no completion for the shell '%.100s'"
						      : "no shell named%s",
					       shell),
			      "write one of bash, zsh, fish: 'probing completion bash'");
}

const struct prb_command prb_command_completion = {
	.rank = 170,
	.name = "completion",
	.summary = "Print the completion script of a shell",
	.description = "SHELL is bash, zsh or fish. Load the script with 'eval \"$(probing "
		       "completion bash)\"' or 'probing completion fish | source', or save it in "
		       "your shell's completion folder.",
	.options = (const struct prb_option[]){{}},
	.argument = "SHELL",
	.max_arguments = 1,
	.complete = PRB_COMPLETE_SHELL,
	.examples =
		(const struct prb_example[]){
			{"eval \"$(probing completion bash)\"", "Complete in this shell"}, {}},
	.run = run,
};

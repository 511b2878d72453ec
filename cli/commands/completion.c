/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file `probing completion SHELL`: completion scripts made from the option tables.
 */
#include <string.h>

#include "cli/common/command.h"
#include "cli/common/output.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "sql/render/renderer.h"
#include "sql/spec/table.h"

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

	if (!option->value && !(command && hides_global(command, option)))
		return;
	prb_str_printf(s, "\t%s:--%s", scope, option->name);
	if (option->letter)
		prb_str_printf(s, " | %s:-%c", scope, option->letter);
	prb_str_puts(s, ")");
	if (option->value) {
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

static void put_bash_find_command(struct prb_str *s)
{
	prb_str_puts(s, "\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
			"\t\tcase ${COMP_WORDS[i]} in\n");
	for (const struct prb_option *o = prb_global_options; o->name; o++) {
		if (!o->value)
			continue;
		prb_str_puts(s, "\t\t");
		if (o->letter)
			prb_str_printf(s, "-%c | ", o->letter);
		prb_str_printf(s, "--%s) [[ $command ]] || ((i++)) ;;\n", o->name);
	}
	for (const struct prb_command *const *c = prb_commands; *c; c++) {
		prb_str_puts(s, "\t\t");
		put_names(s, *c, " | ", true);
		prb_str_printf(s, ") [[ $command ]] || command=%s ;;\n", (*c)->name);
	}
	prb_str_puts(s, "\t\tesac\n\tdone\n");
}

static void put_bash(struct prb_str *s)
{
	prb_str_puts(s, "# bash completion for probing; load it with: eval \"$(probing completion "
			"bash)\"\n"
			"# shellcheck shell=bash\n"
			"_probing_pids()\n{\n"
			"\tlocal comm name\n"
			"\tfor comm in /proc/[0-9]*/comm; do\n"
			"\t\tread -r name 2>/dev/null <\"$comm\" || continue\n"
			"\t\t[[ $name == [pP]ython* ]] && comm=${comm#/proc/} && "
			"echo \"${comm%/comm}\"\n"
			"\tdone\n}\n"
			"_probing_words()\n{\n"
			"\tlocal word\n"
			"\twhile read -r word; do COMPREPLY+=(\"$word\"); done < \\\n"
			"\t\t<(compgen -W \"$1\" -- \"${COMP_WORDS[COMP_CWORD]}\")\n}\n"
			"_probing_files()\n{\n"
			"\tlocal word\n"
			"\tcompopt -o filenames 2>/dev/null\n"
			"\twhile read -r word; do COMPREPLY+=(\"$word\"); done < \\\n"
			"\t\t<(compgen -f -- \"${COMP_WORDS[COMP_CWORD]}\")\n}\n"
			"_probing()\n{\n"
			"\tlocal i command=\n"
			"\tCOMPREPLY=()\n");
	put_bash_find_command(s);
	prb_str_puts(s, "\tcase $command:${COMP_WORDS[COMP_CWORD - 1]} in\n");
	put_bash_value_cases(s);
	prb_str_puts(s, "\tesac\n\tcase $command in\n");
	for (const struct prb_command *const *c = prb_commands; *c; c++) {
		prb_str_printf(s, "\t%s)\n", (*c)->name);
		if ((*c)->argument) {
			prb_str_puts(s, "\t\t[[ ${COMP_WORDS[COMP_CWORD]} == -* ]] || { ");
			put_bash_values(s, (*c)->complete);
			prb_str_puts(s, "; }\n");
		}
		prb_str_puts(s, "\t\t_probing_words '");
		put_option_words(s, *c, (*c)->options);
		put_option_words(s, *c, prb_global_options);
		prb_str_puts(s, "' ;;\n");
	}
	prb_str_puts(s, "\t*) _probing_words '");
	put_all_commands(s);
	put_option_words(s, NULL, prb_global_options);
	prb_str_puts(s, "' ;;\n\tesac\n}\ncomplete -F _probing probing\n");
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
		if (o->value) {
			prb_str_printf(s, ":%s:", o->value);
			put_zsh_action(s, o->complete);
		}
		prb_str_puts(s, "'");
	}
}

static void put_zsh(struct prb_str *s)
{
	prb_str_puts(s, "#compdef probing\n"
			"_probing()\n{\n"
			"\tlocal context state state_descr line ret=1\n"
			"\ttypeset -A opt_args\n"
			"\t_arguments -C");
	put_zsh_options(s, prb_global_options, NULL);
	prb_str_puts(s, " \\\n\t\t\t'1: :->command' '*:: :->rest' && ret=0\n"
			"\tcase $state in\n"
			"\tcommand)\n"
			"\t\tlocal -a commands=(");
	for (const struct prb_command *const *c = prb_commands; *c; c++) {
		prb_str_printf(s, "\n\t\t\t'%s:", (*c)->name);
		put_quoted(s, (*c)->summary, ":\\");
		prb_str_puts(s, "'");
	}
	prb_str_puts(s, ")\n\t\t_describe -t commands command commands && ret=0 ;;\n"
			"\trest)\n"
			"\t\tcase $line[1] in\n");
	for (const struct prb_command *const *c = prb_commands; *c; c++) {
		prb_str_puts(s, "\t\t");
		put_names(s, *c, "|", true);
		prb_str_puts(s, ") _arguments");
		put_zsh_options(s, (*c)->options, NULL);
		put_zsh_options(s, prb_global_options, *c);
		if ((*c)->argument) {
			prb_str_puts(s, " \\\n\t\t\t'1::argument:");
			put_zsh_action(s, (*c)->complete);
			prb_str_puts(s, "'");
		}
		prb_str_puts(s, " && ret=0 ;;\n");
	}
	prb_str_puts(s, "\t\tesac ;;\n\tesac\n\treturn ret\n}\n"
			"if [[ $funcstack[1] == _probing ]]; then _probing \"$@\"; "
			"else compdef _probing probing; fi\n");
}

/* fish */

static void put_fish_values(struct prb_str *s, enum prb_completion what)
{
	switch (what) {
	case PRB_COMPLETE_NOTHING:
		prb_str_puts(s, " -x");
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
	if (option->value)
		put_fish_values(s, option->complete);
	prb_str_puts(s, " -d '");
	put_quoted(s, option->help, "\\");
	prb_str_puts(s, "'\n");
}

static void put_fish(struct prb_str *s)
{
	prb_str_puts(s, "# fish completion for probing\ncomplete -c probing -f\n");
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
	for (const struct prb_option *o = prb_global_options; o->name; o++)
		put_fish_option(s, NULL, o);
	for (const struct prb_command *const *c = prb_commands; *c; c++)
		for (const struct prb_option *o = (*c)->options; o->name; o++)
			put_fish_option(s, *c, o);
}

static struct prb_error *run(const struct prb_cli *cli, const void *settings)
{
	prb_auto_str struct prb_str text = {};
	const char *shell = cli->argument_count ? cli->arguments[0] : "";

	(void)settings;
	if (!strcmp(shell, "bash"))
		put_bash(&text);
	else if (!strcmp(shell, "zsh"))
		put_zsh(&text);
	else if (!strcmp(shell, "fish"))
		put_fish(&text);
	else
		return prb_error_hint(
			prb_error_create(PRB_ERROR_USAGE,
					 *shell ? "no completion for the shell '%.100s'"
						: "no shell named%s",
					 shell),
			"write one of bash, zsh, fish: 'probing completion bash'");
	return prb_output(&text);
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

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/help.h"

#include "command/command.h"
#include "command/help_parts.h"
#include "command/output.h"
#include "base/cleanup.h"
#include "base/text.h"

const char prb_help_summary[] = "Show what a running Python program is doing, from outside";

const char prb_help_description[] =
	"probing reads the memory of a Python process from outside. By default it "
	"loads nothing into the process and runs no code there; only running "
	"threads are stopped, and only while their stacks are copied. The "
	"commands that do run code in the process are inject, eval, repl, trace, step, "
	"break, dap, and debug without --dump.";

const struct prb_example prb_help_targets[] = {
	{"PID", "A running process"},
	{"CORE", "A core file from the kernel or gcore (--exe if its program moved)"},
	{"SNAPSHOT", "A file from 'probing snapshot'"},
	{"NAME", "The one Python process whose command line contains NAME"},
	{"/REGEX/", "The one Python process whose command line matches REGEX"},
	{"HOST:PORT", "A process served by 'probing inject --listen'"},
	{"ssh://HOST/TARGET", "A target on another machine, through ssh"},
	{"SOCKET", "The process that listens on this unix socket"},
	{},
};

const struct prb_example prb_help_environment[] = {
	{"PROBING_TARGET", "Default target"},
	{"PROBING_AGENT", "Path of the agent's library, if it is not beside probing"},
	{"PROBING_LOG", "Log level for stderr, 1 to 3, or DOMAIN=LEVEL,…"},
	{"NO_COLOR", "Disables colours if not empty"},
	{"COLUMNS", "Width, if the terminal does not report it"},
	{"XDG_STATE_HOME", "Folder for command history (subfolder probing)"},
	{"XDG_CACHE_HOME", "Folder for the cache (subfolder probing)"},
	{},
};

void prb_help_names(const struct prb_command *command, struct prb_str *ret)
{
	prb_str_puts(ret, command->name);
	for (const char *const *alias = command->aliases; *alias; alias++)
		prb_str_printf(ret, ", %s", *alias);
}

void prb_help_usage(const struct prb_command *command, struct prb_str *ret)
{
	prb_str_puts(ret, "probing ");
	if (command->target_use)
		prb_str_puts(ret, "[TARGET] ");
	prb_str_printf(ret, "%s [OPTIONS]", command->name);
	if (command->argument)
		prb_str_printf(ret, " %s", command->argument);
	if (command->takes_program)
		prb_str_puts(ret, " [-- PROGRAM ARGUMENT…]");
}

static void program_help(struct prb_str *s)
{
	static const struct prb_example examples[] = {
		{"probing list", "List the Python processes"},
		{"probing 4242 backtrace", "Stack of the main thread"},
		{"probing -t train.py debug --dump", "Stacks of all threads"},
		{},
	};

	prb_str_printf(s, "%s.\n\n", prb_help_summary);
	prb_str_puts(s, "Usage: probing [-t TARGET | -p PID] COMMAND [OPTIONS]\n"
			"       probing TARGET COMMAND [OPTIONS]\n\nCommands:\n");
	for (const struct prb_command *const *c = prb_commands; *c; c++) {
		prb_auto_str struct prb_str names = {};

		prb_help_names(*c, &names);
		prb_help_row(s, prb_str_text(&names), (*c)->summary, PRB_HELP_COLUMN);
	}
	prb_help_examples(s, "A target is", prb_help_targets);
	prb_help_options(s, "Options", prb_global_options);
	prb_help_examples(s, "Environment", prb_help_environment);
	prb_help_exit_codes(s);
	prb_help_examples(s, "Examples", examples);
	prb_str_puts(s, "\n'probing help COMMAND' describes a command.\n");
}

static void put_global_options(struct prb_str *ret, const struct prb_command *command)
{
	prb_str_puts(ret, "\nOptions of all commands:\n");
	for (const struct prb_option *o = prb_global_options; o->name; o++)
		if (prb_command_takes(command, o))
			prb_help_option(ret, o);
}

void prb_help_text(const struct prb_command *command, struct prb_str *ret)
{
	if (!command) {
		program_help(ret);
		return;
	}
	prb_str_printf(ret, "%s.\n\nUsage: ", command->summary);
	prb_help_usage(command, ret);
	prb_str_putc(ret, '\n');
	if (command->aliases[0]) {
		prb_str_puts(ret, "Names: ");
		prb_help_names(command, ret);
		prb_str_putc(ret, '\n');
	}
	if (command->description) {
		prb_str_putc(ret, '\n');
		prb_text_wrap(ret, command->description, 0);
	}
	prb_help_options(ret, "Options", command->options);
	put_global_options(ret, command);
	prb_help_examples(ret, "Examples", command->examples);
}

static struct prb_error *run(const struct prb_cli *cli, const void *settings)
{
	prb_auto_str struct prb_str text = {};
	const struct prb_command *command = NULL;

	(void)settings;
	if (cli->argument_count) {
		command = prb_command_find(cli->arguments[0]);
		if (!command)
			return prb_command_unknown(cli->arguments[0]);
	}
	prb_help_text(command, &text);
	return prb_output_lines(&text, false);
}

const struct prb_command prb_command_help = {
	.rank = 180,
	.name = "help",
	.summary = "Show help about a command",
	.description =
		"The same text as 'probing COMMAND --help' prints; without a COMMAND, the same "
		"as 'probing --help'.",
	.options = (const struct prb_option[]){{}},
	.argument = "[COMMAND]",
	.max_arguments = 1,
	.complete = PRB_COMPLETE_COMMAND,
	.run = run,
};

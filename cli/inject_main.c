/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file probing-inject: `probing inject --library` as a small program of its own, which can be
 * linked statically and carried to where probing is not.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command/descriptors.h"
#include "command/exit.h"
#include "command/help_parts.h"
#include "cli/commands/inject/library.h"
#include "command/log.h"
#include "command/manual_parts.h"
#include "command/options.h"
#include "command/output.h"
#include "command/rights.h"
#include "base/cleanup.h"
#include "base/text.h"

struct program_settings {
	const char *target;
	int pid;
	unsigned verbose;
	bool help, version, manual;
};

static const struct prb_option options[] = {
	{"target", 't', PRB_OPTION_TEXT, "PID", "The process, instead of the first argument",
	 PRB_COMPLETE_PROCESS, offsetof(struct program_settings, target)},
	{"pid", 'p', PRB_OPTION_NUMBER, "PID", "Same as --target", PRB_COMPLETE_PROCESS,
	 offsetof(struct program_settings, pid)},
	{"verbose", 'v', PRB_OPTION_COUNT, NULL, "Log to stderr; -vv and -vvv log more",
	 PRB_COMPLETE_NOTHING, offsetof(struct program_settings, verbose)},
	{"help", 'h', PRB_OPTION_FLAG, NULL, "Show help and exit", PRB_COMPLETE_NOTHING,
	 offsetof(struct program_settings, help)},
	{"version", 'V', PRB_OPTION_FLAG, NULL, "Show the version and exit", PRB_COMPLETE_NOTHING,
	 offsetof(struct program_settings, version)},
	{},
};

static const struct prb_option inject_options[] = {PRB_INJECT_OPTIONS, {}};

/* Known, but in no help or page. */
static const struct prb_option hidden_options[] = {
	{"man", 0, PRB_OPTION_FLAG, NULL, "Print the man page and exit", PRB_COMPLETE_NOTHING,
	 offsetof(struct program_settings, manual)},
	{},
};

static const struct prb_example examples[] = {
	{"probing-inject 4242 ./libhook.so", "Load a library"},
	{"probing-inject -t 4242 ./libhook.so start verbose",
	 "Load it and call start(\"verbose\")"},
	{},
};

static const struct prb_example environment[] = {
	{"PROBING_LOG", "Log level for stderr, 1 to 3, or DOMAIN=LEVEL,…"},
	{},
};

static const char summary[] = "Load a shared library into a running process";
static const char usage[] = "probing-inject [-t] PID LIBRARY [SYMBOL [ARG]] [OPTIONS]";

static const char description[] =
	"Loads LIBRARY into process PID and calls its function SYMBOL with the "
	"text ARG. The program keeps running: one thread is hijacked for a "
	"fraction of a millisecond, at a point where it holds no lock of the C "
	"library, and a new thread does the rest. If that cannot be done safely, "
	"the command fails with the reason and changes nothing.\n\n"
	"It does the same as 'probing inject --library', with the same messages "
	"and exit codes. Linked statically ('make probing-inject-static'), it "
	"needs no other files.";

static void put_help(struct prb_str *s)
{
	prb_str_printf(s, "%s.\n\nUsage: %s\n\n", summary, usage);
	prb_text_wrap(s, description, 0);
	prb_help_options(s, "Options", inject_options);
	prb_help_options(s, "Options of all programs", options);
	prb_help_examples(s, "Environment", environment);
	prb_help_exit_codes(s);
	prb_help_examples(s, "Examples", examples);
}

static void put_manual(struct prb_str *s)
{
	prb_str_puts(s, ".\\\" Made by 'make man' from the option tables; do not edit.\n"
			".TH PROBING-INJECT 1 \"\" \"probing " PRB_VERSION "\" \"User Commands\"\n"
			".SH NAME\nprobing-inject \\- ");
	prb_manual_text(s, summary);
	prb_str_puts(s, ".SH SYNOPSIS\n.B probing-inject\n[\\fB\\-t\\fR] \\fIPID LIBRARY\\fR "
			"[\\fISYMBOL\\fR [\\fIARG\\fR]] [\\fIOPTIONS\\fR]\n.SH DESCRIPTION\n");
	prb_manual_text(s, description);
	prb_str_puts(s, ".SH OPTIONS\n");
	prb_manual_options(s, inject_options);
	prb_manual_options(s, options);
	prb_manual_items(s, "ENVIRONMENT", environment);
	prb_manual_items(s, "EXAMPLES", examples);
	prb_manual_exit_codes(s);
	prb_str_puts(s, ".SH SEE ALSO\n.BR probing (1)\n");
}

static struct prb_error *parse_pid(const char *word, pid_t *ret)
{
	char *end;
	long value = isdigit((unsigned char)*word) ? strtol(word, &end, 10) : 0;

	if (value < 1 || value > INT32_MAX || *end)
		return prb_error_hint(
			prb_error_create(PRB_ERROR_USAGE, "'%.100s' is not a process id", word),
			"usage: %s", usage);
	*ret = (pid_t)value;
	return NULL;
}

/* Words stand for what no option has said, in this order. */
static struct prb_error *take_words(char **words, size_t count, struct program_settings *program,
				    struct prb_inject_settings *inject, pid_t *pid)
{
	const char *target = program->target;
	const char **const places[] = {&target, &inject->library, &inject->symbol,
				       &inject->argument};
	size_t taken = 0;

	for (size_t i = program->pid != 0; i < sizeof(places) / sizeof(*places); i++)
		if (!*places[i] && taken < count)
			*places[i] = words[taken++];
	if (taken < count)
		return prb_error_hint(
			prb_error_create(PRB_ERROR_USAGE, "unexpected word '%.100s'", words[taken]),
			"usage: %s", usage);
	if ((!target && !program->pid) || !inject->library)
		return prb_error_hint(prb_error_create(PRB_ERROR_USAGE, "no %s given",
						       inject->library ? "process" : "library"),
				      "usage: %s", usage);
	*pid = program->pid;
	return target ? parse_pid(target, pid) : NULL;
}

static struct prb_error *run(char **words, size_t count)
{
	struct program_settings program = {};
	struct prb_inject_settings inject = {};
	struct prb_inject_result result = {};
	const struct prb_option_scopes scopes = {
		(const struct prb_option_scope[]){{inject_options, &inject},
						  {options, &program},
						  {hidden_options, &program},
						  {}},
		"probing-inject"};
	prb_auto_str struct prb_str text = {};
	prb_auto_target struct prb_target *t = NULL;
	size_t positional;
	pid_t pid;

	PRB_TRY(prb_rights_check());
	PRB_TRY(prb_options_parse(&scopes, words, count, &positional));
	if (program.help)
		put_help(&text);
	else if (program.version)
		prb_str_puts(&text, "probing-inject " PRB_VERSION "\n");
	else if (program.manual)
		put_manual(&text);
	if (text.length)
		return prb_output(&text);
	PRB_TRY(prb_log_start(program.verbose));
	PRB_TRY(take_words(words, positional, &program, &inject, &pid));
	PRB_TRY(prb_inject_check(&inject));
	PRB_TRY(prb_target_open_process(pid, &t));
	PRB_TRY(prb_inject_library(t, &inject, &result));
	return prb_inject_print(t, &inject, &result);
}

int main(int argc, char **argv)
{
	prb_exit_program = "probing-inject";
	prb_descriptors_begin();
	if (argc < 2) {
		prb_auto_str struct prb_str text = {};

		put_help(&text);
		fputs(prb_str_text(&text), stderr);
		return PRB_EXIT_USAGE;
	}
	return prb_exit_report(run(argv + 1, (size_t)argc - 1));
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/manual.h"

#include "command/command.h"
#include "cli/help.h"
#include "command/manual_parts.h"

static void put_command(struct prb_str *s, const struct prb_command *command)
{
	prb_auto_str struct prb_str names = {}, usage = {};

	prb_help_names(command, &names);
	prb_str_puts(s, ".SS ");
	prb_manual_text(s, prb_str_text(&names));
	prb_help_usage(command, &usage);
	prb_str_puts(s, ".B ");
	prb_manual_text(s, prb_str_text(&usage));
	prb_str_puts(s, ".PP\n");
	prb_str_printf(s, "%s.\n", command->summary);
	if (command->description) {
		prb_str_puts(s, ".PP\n");
		prb_manual_text(s, command->description);
	}
	prb_manual_options(s, command->options);
	for (const struct prb_example *e = command->examples; e && e->command; e++) {
		prb_str_puts(s, e == command->examples ? ".PP\nExamples:\n" : "");
		prb_manual_item(s, e->command, e->does);
	}
}

void prb_manual_page(struct prb_str *ret)
{
	prb_str_puts(ret, ".\\\" Made by 'make man' from the option tables; do not edit.\n");
	prb_str_puts(ret, ".TH PROBING 1 \"\" \"probing " PRB_VERSION "\" \"User Commands\"\n");
	prb_str_puts(ret, ".SH NAME\nprobing \\- ");
	prb_manual_text(ret, prb_help_summary);
	prb_str_puts(ret, ".SH SYNOPSIS\n"
			  ".B probing\n[\\fB\\-t\\fR \\fITARGET\\fR | \\fB\\-p\\fR \\fIPID\\fR]\n"
			  "\\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n.br\n"
			  ".B probing\n\\fITARGET\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n"
			  ".SH DESCRIPTION\n");
	prb_manual_text(ret, prb_help_description);
	prb_manual_items(ret, "TARGETS", prb_help_targets);
	prb_str_puts(ret, ".SH OPTIONS\n");
	prb_manual_options(ret, prb_global_options);
	prb_str_puts(ret, ".SH COMMANDS\n");
	for (const struct prb_command *const *c = prb_commands; *c; c++)
		put_command(ret, *c);
	prb_manual_items(ret, "ENVIRONMENT", prb_help_environment);
	prb_manual_exit_codes(ret);
}

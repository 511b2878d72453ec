/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/manual.h"

#include "cli/command.h"
#include "cli/exit.h"
#include "cli/help.h"

/** Appends text so that roff shows it as it is. */
static void put_text(struct prb_str *s, const char *text)
{
	for (const char *p = text; *p; p++) {
		bool line_start = p == text || p[-1] == '\n';

		if (line_start && (*p == '.' || *p == '\''))
			prb_str_puts(s, "\\&");
		if (*p == '\\')
			prb_str_puts(s, "\\e");
		else if (*p == '-')
			prb_str_puts(s, "\\-");
		else if (*p == '\'')
			prb_str_puts(s, "\\(aq");
		else if (*p == '\n' && p[1] == '\n')
			prb_str_puts(s, "\n.PP");
		else
			prb_str_putc(s, *p);
	}
	prb_str_putc(s, '\n');
}

static void put_item(struct prb_str *s, const char *term, const char *meaning)
{
	prb_str_puts(s, ".TP\n.B ");
	put_text(s, term);
	put_text(s, meaning);
}

static void put_items(struct prb_str *s, const char *title, const struct prb_example *list)
{
	prb_str_printf(s, ".SH %s\n", title);
	for (const struct prb_example *e = list; e->command; e++)
		put_item(s, e->command, e->does);
}

static void put_options(struct prb_str *s, const struct prb_option *options)
{
	for (const struct prb_option *o = options; o->name; o++) {
		prb_auto_str struct prb_str name = {};

		prb_str_puts(s, ".TP\n");
		if (o->letter)
			prb_str_printf(s, "\\fB\\-%c\\fR, ", o->letter);
		put_text(&name, o->name);
		prb_str_truncate(&name, name.length - 1);
		prb_str_printf(s, "\\fB\\-\\-%s\\fR", prb_str_text(&name));
		if (o->value)
			prb_str_printf(s, " \\fI%s\\fR", o->value);
		prb_str_putc(s, '\n');
		put_text(s, o->help);
	}
}

static void put_command(struct prb_str *s, const struct prb_command *command)
{
	prb_auto_str struct prb_str names = {}, usage = {};

	prb_help_names(command, &names);
	prb_str_puts(s, ".SS ");
	put_text(s, prb_str_text(&names));
	prb_help_usage(command, &usage);
	prb_str_puts(s, ".B ");
	put_text(s, prb_str_text(&usage));
	prb_str_puts(s, ".PP\n");
	prb_str_printf(s, "%s.\n", command->summary);
	if (command->description) {
		prb_str_puts(s, ".PP\n");
		put_text(s, command->description);
	}
	put_options(s, command->options);
	for (const struct prb_example *e = command->examples; e && e->command; e++) {
		prb_str_puts(s, e == command->examples ? ".PP\nExamples:\n" : "");
		put_item(s, e->command, e->does);
	}
}

void prb_manual_text(struct prb_str *ret)
{
	const char *meaning;

	prb_str_puts(ret, ".\\\" Made by 'make man' from the option tables; do not edit.\n");
	prb_str_puts(ret, ".TH PROBING 1 \"\" \"probing " PRB_VERSION "\" \"User Commands\"\n");
	prb_str_puts(ret, ".SH NAME\nprobing \\- ");
	put_text(ret, prb_help_summary);
	prb_str_puts(ret, ".SH SYNOPSIS\n"
			  ".B probing\n[\\fB\\-t\\fR \\fITARGET\\fR | \\fB\\-p\\fR \\fIPID\\fR]\n"
			  "\\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n.br\n"
			  ".B probing\n\\fITARGET\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n"
			  ".SH DESCRIPTION\n");
	put_text(ret, prb_help_description);
	put_items(ret, "TARGETS", prb_help_targets);
	prb_str_puts(ret, ".SH OPTIONS\n");
	put_options(ret, prb_global_options);
	prb_str_puts(ret, ".SH COMMANDS\n");
	for (const struct prb_command *const *c = prb_commands; *c; c++)
		put_command(ret, *c);
	put_items(ret, "ENVIRONMENT", prb_help_environment);
	prb_str_puts(ret, ".SH EXIT STATUS\n");
	for (int code = 0; (meaning = prb_exit_meaning(code)); code++)
		put_item(ret, (char[]){(char)('0' + code), '\0'}, meaning);
}

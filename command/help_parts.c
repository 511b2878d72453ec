/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "command/help_parts.h"

#include <string.h>

#include "command/exit.h"
#include "command/options.h"
#include "base/cleanup.h"
#include "base/text.h"

enum { INDENT = 2, GAP = 2 };

void prb_help_row(struct prb_str *s, const char *left, const char *right, size_t column)
{
	prb_text_spaces(s, INDENT);
	prb_text_column(s, left, column - GAP);
	prb_text_spaces(s, GAP);
	prb_str_puts(s, right);
	prb_str_putc(s, '\n');
}

void prb_help_examples(struct prb_str *s, const char *title, const struct prb_example *list)
{
	size_t column = PRB_HELP_COLUMN;

	if (!list)
		return;
	for (const struct prb_example *e = list; e->command; e++)
		if (strlen(e->command) + GAP > column)
			column = strlen(e->command) + GAP;
	prb_str_printf(s, "\n%s:\n", title);
	for (const struct prb_example *e = list; e->command; e++)
		prb_help_row(s, e->command, e->does, column);
}

/** "-p, --pid PID". */
static void put_option(struct prb_str *s, const struct prb_option *option)
{
	if (option->letter)
		prb_str_printf(s, "-%c, ", option->letter);
	else
		prb_text_spaces(s, 4);
	prb_str_printf(s, "--%s", option->name);
	if (option->value)
		prb_str_printf(s, "%s%s", prb_option_takes_word(option) ? " " : "", option->value);
}

void prb_help_option(struct prb_str *s, const struct prb_option *option)
{
	prb_auto_str struct prb_str left = {};

	put_option(&left, option);
	prb_help_row(s, prb_str_text(&left), option->help, PRB_HELP_COLUMN);
}

void prb_help_options(struct prb_str *s, const char *title, const struct prb_option *options)
{
	if (!options->name)
		return;
	prb_str_printf(s, "\n%s:\n", title);
	for (const struct prb_option *o = options; o->name; o++)
		prb_help_option(s, o);
}

void prb_help_exit_codes(struct prb_str *s)
{
	const char *meaning;

	prb_str_puts(s, "\nExit codes:\n");
	for (int code = 0; (meaning = prb_exit_meaning(code)); code++)
		prb_help_row(s, (char[]){(char)('0' + code), '\0'}, meaning, 2 * GAP + 1);
}

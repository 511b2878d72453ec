/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "command/manual_parts.h"

#include "command/exit.h"
#include "command/options.h"

void prb_manual_text(struct prb_str *s, const char *text)
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

void prb_manual_item(struct prb_str *s, const char *term, const char *meaning)
{
	prb_str_puts(s, ".TP\n.B ");
	prb_manual_text(s, term);
	prb_manual_text(s, meaning);
}

void prb_manual_items(struct prb_str *s, const char *title, const struct prb_example *list)
{
	prb_str_printf(s, ".SH %s\n", title);
	for (const struct prb_example *e = list; e->command; e++)
		prb_manual_item(s, e->command, e->does);
}

void prb_manual_options(struct prb_str *s, const struct prb_option *options)
{
	for (const struct prb_option *o = options; o->name; o++) {
		prb_auto_str struct prb_str name = {};

		prb_str_puts(s, ".TP\n");
		if (o->letter)
			prb_str_printf(s, "\\fB\\-%c\\fR, ", o->letter);
		prb_manual_text(&name, o->name);
		prb_str_truncate(&name, name.length - 1);
		prb_str_printf(s, "\\fB\\-\\-%s\\fR", prb_str_text(&name));
		if (o->value)
			prb_str_printf(s, "%s\\fI%s\\fR", prb_option_takes_word(o) ? " " : "",
				       o->value);
		prb_str_putc(s, '\n');
		prb_manual_text(s, o->help);
	}
}

void prb_manual_exit_codes(struct prb_str *s)
{
	const char *meaning;

	prb_str_puts(s, ".SH EXIT STATUS\n");
	for (int code = 0; (meaning = prb_exit_meaning(code)); code++)
		prb_manual_item(s, (char[]){(char)('0' + code), '\0'}, meaning);
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The commands of the prompt as a table, and what a line of the user does. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/commands/debug/session.h"
#include "command/output.h"

static struct prb_error *help(struct prb_debug *d, const char *rest);
static struct prb_error *quit(struct prb_debug *d, const char *rest);

const struct prb_debug_command prb_debug_all[] = {
	{"where", "w bt backtrace", NULL, "The stack of the selected thread", false,
	 prb_debug_where},
	{"up", "u", "[N]", "Select the caller", false, prb_debug_up},
	{"down", "d", "[N]", "Select what the frame calls", false, prb_debug_down},
	{"frame", "f", "N", "Select a frame by its number", false, prb_debug_select},
	{"threads", NULL, NULL, "All threads", false, prb_debug_threads},
	{"thread", NULL, "TID", "Select a thread", false, prb_debug_thread_command},
	{"locals", NULL, NULL, "Variables of the frame", false, prb_debug_locals},
	{"args", "a", NULL, "Arguments of the function", false, prb_debug_arguments},
	{"p", "print", "EXPR", "The value of an expression", false, prb_debug_print},
	{"pp", NULL, "EXPR", "The same, over several lines", false, prb_debug_pretty},
	{"list", "l", "[FIRST[,LAST]]", "Source lines; '.' begins anew", false, prb_debug_list},
	{"step", "s", NULL, "Run to the next line, also of a called function", true,
	 prb_debug_step},
	{"next", "n", NULL, "Run to the next line of this function", true, prb_debug_next},
	{"until", "unt", "[LINE]", "Run to a line behind this one, or to LINE", true,
	 prb_debug_until},
	{"return", "r finish", NULL, "Run until the function has returned", true, prb_debug_return},
	{"raise", NULL, "EXPR", "Raise an exception at this line when the thread goes on", true,
	 prb_debug_raise},
	{"continue", "c cont", NULL, "Run until a breakpoint is reached", true, prb_debug_continue},
	{"break", "b", "[PLACE[, COND]]", "Stop at a line or function; or list breakpoints", true,
	 prb_debug_break},
	{"tbreak", NULL, "PLACE[, COND]", "The same, once", true, prb_debug_tbreak},
	{"catch", NULL, "[uncaught] [CLASS]", "Stop where exceptions are raised", true,
	 prb_debug_catch},
	{"clear", "cl delete", "[N]…", "Delete breakpoints", true, prb_debug_clear},
	{"condition", NULL, "N [COND]", "Change the condition of a breakpoint", true,
	 prb_debug_condition},
	{"ignore", NULL, "N COUNT", "Do not stop for that many times", true, prb_debug_ignore},
	{"enable", NULL, "N", "Let a breakpoint stop again", true, prb_debug_enable},
	{"disable", NULL, "N", "Keep a breakpoint from stopping", true, prb_debug_disable},
	{"commands", NULL, "[N]", "Lines to run at a breakpoint, up to 'end'", true,
	 prb_debug_commands},
	{"interact", NULL, NULL, "Read Python for the selected frame", true, prb_debug_interact},
	{"help", "h ?", NULL, "This list", false, help},
	{"quit", "q exit", NULL, "End; the process runs on without breakpoints", false, quit},
	{},
};

static struct prb_error *help(struct prb_debug *d, const char *rest)
{
	prb_auto_str struct prb_str s = {};

	(void)rest;
	for (const struct prb_debug_command *c = prb_debug_all; c->name; c++) {
		prb_auto_free char *usage =
			prb_format("%s %s", c->name, c->argument ? c->argument : "");

		if (!c->drives || d->drive)
			prb_str_printf(&s, "%-26s %-16s %s\n", usage ? usage : c->name,
				       c->aliases ? c->aliases : "", c->does);
	}
	prb_str_puts(&s, d->drive ? "Anything else is run as Python in the selected frame.\n" : "");
	return prb_output(&s);
}

static struct prb_error *quit(struct prb_debug *d, const char *rest)
{
	(void)rest;
	d->over = true;
	return NULL;
}

/** Whether @p word, of @p length bytes, is among the words of @p list. */
static bool has_word(const char *list, const char *word, size_t length)
{
	while (list && *list) {
		size_t next = strcspn(list, " ");

		if (next == length && !memcmp(list, word, length))
			return true;
		list += next + (list[next] == ' ');
	}
	return false;
}

static const struct prb_debug_command *find(const char *line, size_t length)
{
	for (const struct prb_debug_command *c = prb_debug_all; c->name; c++)
		if (has_word(c->name, line, length) || has_word(c->aliases, line, length))
			return c;
	return NULL;
}

/** "c = 3" and "list(x)" are Python, as far as they look like that; '!' says so. */
static bool is_statement(const char *line, size_t length)
{
	const char *rest = line + length + strspn(line + length, " ");

	return *line == '!' || line[length] == '(' || line[length] == '.' || line[length] == '[' ||
	       (*rest == '=' && rest[1] != '=');
}

static struct prb_error *run_python(struct prb_debug *d, const char *code)
{
	if (d->drive)
		return prb_debug_python(d, code);
	return prb_debug_value(d, code, false);
}

static struct prb_error *run_command(struct prb_debug *d, const char *line)
{
	size_t length = line[0] == '?' ? 1 : strspn(line, "abcdefghijklmnopqrstuvwxyz");
	const struct prb_debug_command *c = is_statement(line, length) ? NULL : find(line, length);
	const char *rest = line + length + strspn(line + length, " ");

	/* "b12" is a word that is none of ours. */
	if (c && line[length] && line[length] != ' ')
		c = NULL;
	if (!c)
		return run_python(d, *line == '!' ? line + 1 + strspn(line + 1, " ") : line);
	if (c->drives && !d->drive)
		return prb_error_create(PRB_ERROR_UNSUPPORTED,
					"'%s' needs a process, and this is a %s: it can only be "
					"read",
					c->name, prb_target_kind_name(d->target->kind));
	return c->run(d, rest);
}

/** Python, of several lines if the first begins a block: these end with an empty one. */
static struct prb_error *interact(struct prb_debug *d, const char *line)
{
	size_t length = strlen(line);

	if (!d->text.length &&
	    (!strcmp(line, "exit") || !strcmp(line, "exit()") || !strcmp(line, "quit"))) {
		d->mode = PRB_DEBUG_COMMANDS;
		return NULL;
	}
	if (d->text.length && *line) {
		prb_str_puts(&d->text, line);
		prb_str_putc(&d->text, '\n');
		return NULL;
	}
	if (!d->text.length && length && line[length - 1] == ':') {
		prb_str_puts(&d->text, line);
		prb_str_putc(&d->text, '\n');
		return NULL;
	}
	if (!d->text.length)
		return *line ? prb_debug_python(d, line) : NULL;

	prb_auto_str struct prb_str text = d->text;
	d->text = (struct prb_str){};
	return text.failed ? prb_error_nomem() : prb_debug_python(d, prb_str_text(&text));
}

static void collect(struct prb_debug *d, const char *line)
{
	struct prb_debug_commands *last = &d->commands.items[d->commands.count - 1];

	if (!strcmp(line, "end")) {
		d->mode = PRB_DEBUG_COMMANDS;
		return;
	}
	prb_str_puts(&last->lines, line);
	prb_str_putc(&last->lines, '\n');
}

struct prb_error *prb_debug_line(struct prb_debug *d, const char *line)
{
	prb_auto_free char *plain = NULL;
	size_t length;

	/* What is indented belongs to a block of Python. */
	plain = strdup(d->mode == PRB_DEBUG_INTERACTS ? line : line + strspn(line, " \t\r\n"));
	if (!plain)
		return prb_error_nomem();
	length = strlen(plain);
	while (length && isspace((unsigned char)plain[length - 1]))
		plain[--length] = '\0';
	if (d->mode == PRB_DEBUG_INTERACTS)
		return interact(d, plain);
	if (d->mode == PRB_DEBUG_COLLECTS) {
		collect(d, plain);
		return NULL;
	}
	if (!*plain && !d->last.length)
		return NULL;
	if (*plain) {
		prb_str_truncate(&d->last, 0);
		prb_str_puts(&d->last, plain);
	}

	prb_auto_free char *command = strdup(prb_str_text(&d->last));
	return command ? run_command(d, command) : prb_error_nomem();
}

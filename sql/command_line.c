/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sql/command_line.h"

#include <string.h>
#include <unistd.h>

#include "dwarf/base/cleanup.h"
#include "dwarf/base/text.h"
#include "dwarf/base/vec.h"
#include "sql/regex.h"

void prb_command_line_text(struct prb_str *s, const struct prb_process *process)
{
	char *const *argument;

	prb_vec_each (argument, &process->argv) {
		if (argument != process->argv.items)
			prb_str_putc(s, ' ');
		prb_text_argument(s, *argument);
	}
	if (!process->argv.count) {
		prb_str_putc(s, '[');
		prb_text_escape(s, process->comm ? process->comm : "?");
		prb_str_putc(s, ']');
	}
}

struct matcher {
	const char *text;
	struct prb_regex *regex; /**< NULL: `text` is to be contained */
};

static void matcher_deinit(struct matcher *m)
{
	prb_regex_destroy(m->regex);
}

static struct prb_error *matcher_init(struct matcher *m, const char *pattern, bool regex)
{
	*m = (struct matcher){.text = pattern};
	return regex ? prb_regex_compile(pattern, strlen(pattern), 0, &m->regex) : NULL;
}

static struct prb_error *matches(struct matcher *m, const struct prb_str *line, bool *ret)
{
	if (m->regex)
		return prb_regex_match(m->regex, prb_str_text(line), line->length, 0, ret);
	*ret = strstr(prb_str_text(line), m->text) != NULL;
	return NULL;
}

/** Appends the arguments as they are, divided by spaces: what patterns are about. */
static void put_plain(struct prb_str *s, const struct prb_process *process)
{
	char *const *argument;

	prb_vec_each (argument, &process->argv) {
		if (argument != process->argv.items)
			prb_str_putc(s, ' ');
		prb_str_puts(s, *argument);
	}
}

static struct prb_error *none_found(const char *pattern, bool regex)
{
	const char *form = regex ? "no Python process has a command line that matches /%.200s/"
				 : "no Python process has a command line that contains '%.200s'";

	return prb_error_hint(prb_error_create(PRB_ERROR_NO_PROCESS, form, pattern),
			      "'probing list' shows which Python processes there are");
}

struct prb_error *prb_command_line_find(const char *pattern, bool regex, pid_t *ret)
{
	__attribute__((cleanup(matcher_deinit))) struct matcher matcher;
	__attribute__((cleanup(prb_python_processes_deinit))) struct prb_python_processes all = {};
	prb_auto_str struct prb_str line = {}, found = {};
	const struct prb_python_process *p;
	size_t count = 0;

	PRB_TRY(matcher_init(&matcher, pattern, regex));
	PRB_TRY(prb_process_list(&all));
	prb_vec_each (p, &all.list) {
		bool hit;

		if (p->process.pid == getpid())
			continue;
		prb_str_truncate(&line, 0);
		put_plain(&line, &p->process);
		PRB_TRY(matches(&matcher, &line, &hit));
		if (!hit)
			continue;
		*ret = p->process.pid;
		prb_str_printf(&found, "%s%7d  ", count++ ? "\n" : "", (int)p->process.pid);
		prb_command_line_text(&found, &p->process);
	}
	if (line.failed || found.failed)
		return prb_error_nomem();
	if (!count)
		return none_found(pattern, regex);
	if (count == 1)
		return NULL;
	return prb_error_hint(prb_error_create(PRB_ERROR_USAGE,
					       "'%.200s' is ambiguous: %zu Python processes match",
					       pattern, count),
			      "%s", prb_str_text(&found));
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "target/spec/command_line.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/text.h"
#include "base/vec.h"
#include "base/regex.h"

void prb_command_line_text(struct prb_str *s, const struct prb_process *process)
{
	char *const *argument;

	prb_vec_each (argument, &process->argv) {
		if (argument != process->argv.items)
			prb_str_putc(s, ' ');
		prb_text_argument_start(s, *argument);
	}
	if (!process->argv.count) {
		prb_str_putc(s, '[');
		prb_text_escape(s, process->comm ? process->comm : "?");
		prb_str_putc(s, ']');
	}
}

enum { MOST_WORDS = 64 };

/** Without the folders of a path. A title that a program has given itself is no path. */
static const char *without_folders(const char *path)
{
	const char *slash = strchr(path, ' ') ? NULL : strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/** The place of the script among the arguments; 0 if there is none. */
static size_t find_script(const struct prb_process *process)
{
	for (size_t i = 1; i < process->argv.count; i++) {
		const char *word = process->argv.items[i], *letter;

		if (*word != '-')
			return *word && strlen(word) < PATH_MAX ? i : 0;
		if (!word[1])
			return 0; /* it is read from stdin */
		if (word[1] == '-') {
			i += !strcmp(word, "--check-hash-based-pycs");
			continue;
		}
		letter = strpbrk(word + 1, "cmWX");
		if (letter && (*letter == 'c' || *letter == 'm'))
			return 0;
		i += letter && !letter[1]; /* the next word is its value */
	}
	return 0;
}

/** The command line without the interpreter's folders, and the script as "…" and @p tail. */
static void put_short(struct prb_str *s, const struct prb_process *process, size_t script,
		      const char *tail)
{
	prb_text_argument_start(s, without_folders(process->argv.items[0]));
	for (size_t i = 1; i < process->argv.count; i++) {
		prb_auto_str struct prb_str cut = {};

		prb_str_putc(s, ' ');
		if (i == script && tail != process->argv.items[i])
			prb_str_printf(&cut, "…%s", tail);
		s->failed |= cut.failed;
		prb_text_argument_start(s, cut.length ? cut.data : process->argv.items[i]);
	}
}

/**
 * Leaves out one more folder of the script until the line fits, or its name alone is left; of a
 * long line, which is put together anew for each, all at once.
 */
static void put_fitting(struct prb_str *s, const struct prb_process *process, size_t room)
{
	size_t script = find_script(process), begin = s->length;
	const char *tail = script ? process->argv.items[script] : NULL, *slash;

	const char *last = tail ? strrchr(tail, '/') : NULL;
	if (process->argv.count > MOST_WORDS && last && last > tail && last[1])
		tail = last;
	put_short(s, process, script, tail);
	while (tail && process->argv.count <= MOST_WORDS && !s->failed &&
	       prb_text_width(prb_str_text(s) + begin) > room && (slash = strchr(tail + 1, '/')) &&
	       slash[1]) {
		tail = slash;
		prb_str_truncate(s, begin);
		put_short(s, process, script, tail);
	}
}

void prb_command_line_cell(struct prb_str *s, size_t start, const char *prefix,
			   const struct prb_process *process, size_t columns)
{
	prb_auto_str struct prb_str line = {};
	size_t room = prb_text_last_room(s, start, columns), begin = strlen(prefix);

	prb_str_puts(&line, prefix);
	prb_command_line_text(&line, process);
	if (!line.failed && process->argv.count && prb_text_width(prb_str_text(&line)) > room) {
		size_t taken = prb_text_width(prefix);

		prb_str_truncate(&line, begin);
		put_fitting(&line, process, room > taken ? room - taken : 0);
	}
	s->failed |= line.failed;
	prb_text_last_cell(s, start, prb_str_text(&line), columns);
}

void prb_command_line_cut(struct prb_str *s, const struct prb_process *process)
{
	prb_auto_str struct prb_str words = {}, cut = {};
	char *const *argument;

	prb_vec_each (argument, &process->argv)
		prb_str_append(&words, *argument, strlen(*argument) + 1);
	prb_text_cut_command(&cut, prb_str_text(&words), words.length);
	s->failed |= words.failed || cut.failed;
	for (size_t at = 0; at < cut.length; at += strlen(cut.data + at) + 1) {
		if (at)
			prb_str_putc(s, ' ');
		prb_text_argument(s, cut.data + at);
	}
	if (!process->argv.count)
		prb_command_line_text(s, process);
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

/**
 * As matches(), of process @p pid. A line may be too long for the expression: it does not match,
 * which is logged, and sets *left_out.
 */
static struct prb_error *matches_or_left_out(struct matcher *m, const struct prb_str *line,
					     pid_t pid, bool *ret, bool *left_out)
{
	prb_auto_error struct prb_error *err = matches(m, line, ret);

	if (!err || err->code == PRB_ERROR_NOMEM)
		return prb_steal(&err);
	prb_log("process", 0, "process %d, with a command line of %zu bytes, is left out: %s",
		(int)pid, line->length, err->message);
	*ret = false;
	*left_out = true;
	return NULL;
}

static struct prb_error *none_found(const char *pattern, bool regex, bool left_out)
{
	if (left_out)
		return prb_error_hint(
			prb_error_create(PRB_ERROR_NO_PROCESS,
					 "no Python process has a command line that /%.200s/ is "
					 "known to match",
					 pattern),
			"a simpler expression, with fewer '*', can be matched with long lines too");
	const char *form = regex ? "no Python process has a command line that matches /%.200s/"
				 : "no Python process has a command line that contains '%.200s'";

	return prb_error_hint(prb_error_create(PRB_ERROR_NO_PROCESS, form, pattern),
			      "'probing list' shows which Python processes there are");
}

/** Appends the pids of all that match to @p ret, and a line for each to @p lines. */
static struct prb_error *search(const char *pattern, bool regex, struct prb_pids *ret,
				struct prb_str *lines)
{
	__attribute__((cleanup(matcher_deinit))) struct matcher matcher;
	__attribute__((cleanup(prb_python_processes_deinit))) struct prb_python_processes all = {};
	prb_auto_str struct prb_str line = {};
	const struct prb_python_process *p;
	size_t before = ret->list.count;
	bool left_out = false;

	PRB_TRY(matcher_init(&matcher, pattern, regex));
	PRB_TRY(prb_process_list(&all));
	prb_vec_each (p, &all.list) {
		bool hit;

		if (p->process.pid == getpid())
			continue;
		prb_str_truncate(&line, 0);
		put_plain(&line, &p->process);
		PRB_TRY(matches_or_left_out(&matcher, &line, p->process.pid, &hit, &left_out));
		if (!hit)
			continue;
		prb_str_printf(lines, "%s%7d  ", ret->list.count > before ? "\n" : "",
			       (int)p->process.pid);
		prb_command_line_text(lines, &p->process);

		pid_t *pid = prb_vec_push(&ret->list);
		if (!pid)
			return prb_error_nomem();
		*pid = p->process.pid;
	}
	if (line.failed || lines->failed)
		return prb_error_nomem();
	return ret->list.count > before ? NULL : none_found(pattern, regex, left_out);
}

struct prb_error *prb_command_line_find(const char *pattern, bool regex, pid_t *ret)
{
	__attribute__((cleanup(prb_pids_deinit))) struct prb_pids found = {};
	prb_auto_str struct prb_str lines = {};

	PRB_TRY(search(pattern, regex, &found, &lines));
	*ret = found.list.items[0];
	if (found.list.count == 1)
		return NULL;
	return prb_error_hint(prb_error_create(PRB_ERROR_USAGE,
					       "'%.200s' is ambiguous: %zu Python processes match",
					       pattern, found.list.count),
			      "%s", prb_str_text(&lines));
}

struct prb_error *prb_command_line_find_all(const char *pattern, bool regex, struct prb_pids *ret)
{
	prb_auto_str struct prb_str lines = {};

	return search(pattern, regex, ret, &lines);
}

struct prb_error *prb_command_line_name(const struct prb_target *target, struct prb_error *err)
{
	prb_auto_str struct prb_str command = {};
	struct prb_process process;

	if (!target->local || !err || err->code != PRB_ERROR_UNSUPPORTED)
		return err;
	prb_auto_error struct prb_error *gone = prb_process_describe(target->pid, &process);
	if (gone)
		return err;
	prb_command_line_text(&command, &process);
	prb_process_deinit(&process);
	return prb_error_prefix(err, "process %d (%s)", (int)target->pid, prb_str_text(&command));
}

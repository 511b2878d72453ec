/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The source of a file, with the time that each line took. */
#include <stdlib.h>
#include <string.h>

#include "cli/commands/perf/show/performance.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/text.h"

/* A line with a time, a text, or both. */
struct line {
	const char *file; /* the tree's */
	int32_t number;
	const char *text;     /* NULL: unknown */
	const char *function; /* function that ran here; NULL: none */
	int64_t self, total;
	uint64_t samples;
};

struct lines {
	PRB_VEC(struct line) list;
};

static void lines_deinit(struct lines *lines)
{
	prb_vec_free(&lines->list);
}

/* The user's argument: "train.py", "models/net.py:Net.forward". */
struct place {
	char *file;
	const char *function; /* NULL: all */
};

static void place_deinit(struct place *place)
{
	free(place->file);
}

static struct prb_error *parse(const char *text, struct place *ret)
{
	char *colon;

	PRB_TRY(prb_str_copy(text, &ret->file));
	colon = strrchr(ret->file, ':');
	if (!colon)
		return NULL;
	*colon = 0;
	ret->function = colon[1] ? colon + 1 : NULL;
	return NULL;
}

/* True for the path itself, or its end after a slash. */
static bool is_file(const struct place *place, const char *file)
{
	size_t length = file ? strlen(file) : 0, wanted = strlen(place->file);

	return length >= wanted && wanted && !strcmp(file + length - wanted, place->file) &&
	       (length == wanted || place->file[0] == '/' || file[length - wanted - 1] == '/');
}

static bool is_wanted(const struct place *place, const struct prb_tree_function *f)
{
	const char *dot = strrchr(f->name, '.');

	if (!is_file(place, f->file))
		return false;
	return !place->function || !strcmp(f->name, place->function) ||
	       (dot && !strcmp(dot + 1, place->function));
}

static int compare_lines(const void *x, const void *y)
{
	const struct line *a = x, *b = y;
	int order = strcmp(a->file, b->file);

	return order ? order : (a->number > b->number) - (a->number < b->number);
}

/* Adds lines with a time; a line of several functions, such as a lambda's, is added once. */
static struct prb_error *add_times(const struct prb_recording *r, const struct place *place,
				   const struct prb_report *report, struct lines *lines)
{
	const struct prb_report_row *row;
	size_t kept = 0;

	prb_vec_each (row, &report->rows) {
		const struct prb_tree_function *f = &r->tree->functions.items[row->function];
		struct line *line;

		if (row->line <= 0 || !is_wanted(place, f))
			continue;
		line = prb_vec_push(&lines->list);
		if (!line)
			return prb_error_nomem();
		*line = (struct line){f->file,	 row->line,  NULL,	  f->name,
				      row->self, row->total, row->samples};
	}
	if (lines->list.count)
		qsort(lines->list.items, lines->list.count, sizeof(*lines->list.items),
		      compare_lines);
	for (size_t i = 0; i < lines->list.count; i++) {
		struct line *last = kept ? &lines->list.items[kept - 1] : NULL;
		const struct line *line = &lines->list.items[i];

		if (!last || compare_lines(last, line) != 0) {
			lines->list.items[kept++] = *line;
			continue;
		}
		last->self += line->self;
		last->samples += line->samples;
		last->total = PRB_MAX(last->total, line->total);
	}
	lines->list.count = kept;
	return NULL;
}

/* True from the first line of the wanted functions to a few after the last line that ran. */
static bool is_shown(const struct prb_recording *r, const struct place *place,
		     const struct lines *timed, const struct prb_profile_line *line)
{
	enum { BEHIND = 2 };
	int32_t first = INT32_MAX, last = 0;

	for (size_t i = 0; i < timed->list.count; i++)
		if (timed->list.items[i].file == line->file) {
			first = PRB_MIN(first, timed->list.items[i].number);
			last = PRB_MAX(last, timed->list.items[i].number);
		}
	if (!place->function)
		return last > 0;
	for (size_t i = 0; i < r->tree->functions.count; i++) {
		const struct prb_tree_function *f = &r->tree->functions.items[i];

		if (f->file == line->file && f->first_line > 0 && is_wanted(place, f))
			first = PRB_MIN(first, f->first_line);
	}
	return line->line >= first && line->line <= (int64_t)last + BEHIND;
}

static struct prb_error *add_texts(const struct prb_recording *r, const struct place *place,
				   struct lines *lines)
{
	const struct lines timed = *lines;
	const struct prb_profile_line *text;
	struct lines all = {};
	size_t next = 0;

	prb_vec_each (text, &r->lines) {
		const struct line key = {.file = text->file, .number = text->line};
		struct line *slot;

		if (!is_file(place, text->file) || !is_shown(r, place, &timed, text))
			continue;
		slot = bsearch(&key, timed.list.items, timed.list.count, sizeof(key),
			       compare_lines);
		if (slot) {
			slot->text = text->text;
			continue;
		}
		slot = prb_vec_push(&all.list);
		if (!slot) {
			prb_vec_free(&all.list);
			return prb_error_nomem();
		}
		*slot = key;
		slot->text = text->text;
	}
	for (; next < timed.list.count; next++) {
		struct line *slot = prb_vec_push(&all.list);

		if (!slot) {
			prb_vec_free(&all.list);
			return prb_error_nomem();
		}
		*slot = timed.list.items[next];
	}
	lines_deinit(lines);
	*lines = all;
	qsort(all.list.items, all.list.count, sizeof(*all.list.items), compare_lines);
	return NULL;
}

static struct prb_error *nothing(const struct prb_recording *r, const struct prb_report *report,
				 const struct place *place)
{
	enum { MOST = 6 };
	prb_auto_str struct prb_str files = {};
	const char *seen[MOST];
	size_t count = 0;
	const struct prb_report_row *row;

	prb_vec_each (row, &report->rows) {
		const char *file = r->tree->functions.items[row->function].file;
		bool known = !file || count == MOST;

		for (size_t i = 0; i < count; i++)
			known |= seen[i] == file;
		if (known)
			continue;
		prb_str_puts(&files, count ? ", " : "");
		prb_text_escape(&files, file);
		seen[count++] = file;
	}
	return prb_error_hint(
		prb_error_create(PRB_ERROR_NOT_FOUND, "no samples are in %s%.200s%s%.200s",
				 place->function ? "function " : "",
				 place->function ? place->function : "",
				 place->function ? " of " : "", place->file),
		count ? "most are in %s" : "no function has a file%s", prb_str_text(&files));
}

static void put_share(struct prb_str *s, int64_t weight, const struct prb_report *report)
{
	if (weight)
		prb_str_printf(s, " %6.1f %%", 100 * prb_report_share(report, weight).share);
	else
		prb_text_spaces(s, 9);
}

static void put_text(struct prb_str *s, const struct lines *lines, const struct prb_report *report)
{
	bool missing = false;

	for (size_t i = 0; i < lines->list.count; i++) {
		const struct line *line = &lines->list.items[i];
		const struct line *before = i ? line - 1 : NULL;

		if (!before || before->file != line->file) {
			prb_str_puts(s, i ? "\n" : "");
			prb_text_escape(s, line->file);
			prb_str_puts(s, "\n     self     total    line\n");
		} else if (line->number > before->number + 1) {
			prb_str_puts(s, "                         …\n");
		}
		put_share(s, line->self, report);
		put_share(s, line->total, report);
		prb_str_printf(s, "  %6d", (int)line->number);
		if (line->text && *line->text) {
			prb_auto_str struct prb_str plain = {};

			for (const char *c = line->text; *c; c++)
				if (*c == '\t')
					prb_text_spaces(&plain, 8 - plain.length % 8);
				else
					prb_str_putc(&plain, *c);
			prb_str_puts(s, "  ");
			prb_text_escape(s, prb_str_text(&plain));
		}
		prb_str_putc(s, '\n');
		missing |= !line->text;
	}
	if (missing)
		prb_str_puts(s, "\nLines without text: the recording has no source of them. It is "
				"left out if the file\ncould not be read, was changed since, does "
				"not end with .py, or may hold a secret.\n");
}

static void put_json(struct prb_str *s, const struct lines *lines, const struct prb_report *report)
{
	struct prb_json json = {s};

	prb_json_open(&json, NULL, '{');
	prb_json_integer(&json, "weight_ns", report->weight);
	prb_json_open(&json, "lines", '[');
	for (size_t i = 0; i < lines->list.count; i++) {
		const struct line *line = &lines->list.items[i];
		struct prb_share self = prb_report_share(report, line->self);

		prb_json_open(&json, NULL, '{');
		prb_json_text(&json, "file", line->file);
		prb_json_integer(&json, "line", line->number);
		prb_json_text(&json, "text", line->text);
		prb_json_text(&json, "func", line->function);
		prb_json_integer(&json, "self_ns", line->self);
		prb_json_integer(&json, "total_ns", line->total);
		prb_json_integer(&json, "samples", (int64_t)line->samples);
		prb_json_real(&json, "share", self.share, 6);
		prb_json_real(&json, "share_low", self.low, 6);
		prb_json_real(&json, "share_high", self.high, 6);
		prb_json_close(&json, '}');
	}
	prb_json_close(&json, ']');
	prb_json_close(&json, '}');
	prb_str_putc(s, '\n');
}

static struct prb_error *annotate(const struct prb_recording *r, const struct prb_report *report,
				  const char *what, bool as_json, struct prb_str *s)
{
	__attribute__((cleanup(place_deinit))) struct place place = {};
	__attribute__((cleanup(lines_deinit))) struct lines lines = {};

	PRB_TRY(parse(what, &place));
	PRB_TRY(add_times(r, &place, report, &lines));
	if (!lines.list.count)
		return nothing(r, report, &place);
	PRB_TRY(add_texts(r, &place, &lines));
	(as_json ? put_json : put_text)(s, &lines, report);
	return s->failed ? prb_error_nomem() : NULL;
}

struct prb_error *prb_performance_annotate(const struct prb_recording *recording,
					   const struct prb_profile_choice *choice,
					   const char *what, bool as_json, struct prb_str *s)
{
	struct prb_profile_choice lines = *choice;
	struct prb_report report;
	struct prb_error *err;

	lines.lines = true;
	PRB_TRY(prb_report_make(recording, &lines, &report));
	err = annotate(recording, &report, what, as_json, s);
	prb_report_deinit(&report);
	return err;
}

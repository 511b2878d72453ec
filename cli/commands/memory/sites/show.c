/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sampled allocations as text and as JSON. */
#include <math.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/commands/memory/sites/sites.h"
#include "profile/recording/report.h"

enum { WIDTH = 11, MOST_CALLERS = 6, MOST_LEAKS = 10 };

static void put_right(struct prb_str *s, double value, void (*put)(struct prb_str *, double))
{
	prb_auto_str struct prb_str text = {};
	size_t has;

	put(&text, value);
	has = prb_text_width(prb_str_text(&text));
	prb_text_spaces(s, WIDTH > has ? WIDTH - has : 0);
	prb_str_puts(s, prb_str_text(&text));
}

static void put_count(struct prb_str *s, double count)
{
	prb_memory_put_count(s, llround(count));
}

static double seconds_of(const struct prb_sites_facts *f)
{
	return f->ended > f->began ? (double)(f->ended - f->began) / 1e9 : 0;
}

/** "Loader.decode (loader.py:88)" */
static void put_frame(const struct prb_tree *tree, uint32_t stack, struct prb_str *s)
{
	const struct prb_tree_function *f = prb_tree_function_of(tree, stack);
	int32_t line = tree->frames.items[tree->stacks.items[stack].frame].line;
	prb_auto_str struct prb_str place = {};

	prb_text_escape(s, f->name);
	if (!prb_function_file(f))
		return;
	prb_function_put_place(&place, f, line);
	prb_str_puts(s, f->file ? " (" : " ");
	prb_text_escape(s, prb_str_text(&place));
	prb_str_puts(s, f->file ? ")" : "");
	s->failed |= place.failed;
}

static void put_callers(const struct prb_tree *tree, uint32_t stack, struct prb_str *s)
{
	uint32_t at = tree->stacks.items[stack].parent;

	for (int i = 0; at && i < MOST_CALLERS; i++, at = tree->stacks.items[at].parent) {
		prb_text_spaces(s, 2 * WIDTH + 4);
		put_frame(tree, at, s);
		prb_str_putc(s, '\n');
	}
	if (!at)
		return;
	prb_text_spaces(s, 2 * WIDTH + 4);
	prb_str_printf(s, "and %u more callers\n", tree->stacks.items[at].depth);
}

static void put_head(const struct prb_memory *m, const struct prb_memory_sites *sites,
		     struct prb_str *s)
{
	const struct prb_sites_facts *f = &sites->facts;
	double seconds = seconds_of(f);

	prb_memory_put_head(m, s);
	prb_text_bytes(s, (double)f->bytes);
	prb_str_puts(s, " allocated for Python in ");
	prb_text_duration(s, seconds);
	if (seconds > 0) {
		prb_str_puts(s, ", ");
		prb_text_bytes(s, (double)f->bytes / seconds);
		prb_str_puts(s, " a second");
	}
	prb_str_puts(s, "; ");
	prb_memory_put_count(s, (int64_t)sites->samples.count);
	prb_str_puts(s, sites->samples.count == 1 ? " sample, one for each "
						  : " samples, one for each ");
	prb_text_bytes(s, (double)sites->mean);
	prb_str_putc(s, '\n');
}

static void put_note(struct prb_str *s, double amount, bool bytes, const char *text)
{
	if (amount <= 0)
		return;
	prb_str_puts(s, "  ");
	(bytes ? prb_text_bytes : put_count)(s, amount);
	prb_str_printf(s, " %s\n", text);
}

static void put_notes(const struct prb_memory_sites *sites, struct prb_str *s)
{
	const struct prb_sites_facts *f = &sites->facts;

	put_note(s, (double)f->other_bytes, true,
		 "of it by other interpreters or without the GIL: not sampled");
	put_note(s, (double)f->lost, true,
		 "of samples were lost: a larger --every, or a machine that is less busy");
	put_note(s, (double)f->untracked, false,
		 "samples may have been freed without notice: too many were alive");
	put_note(s, (double)f->codes_dropped, false,
		 "frames have no name: too many functions were seen");
	if (f->gone)
		prb_str_puts(s, "  the process ended meanwhile: its last samples are missing\n");
	if (sites->full)
		prb_str_puts(s, "  there were more samples than are kept: a larger --every\n");
	if (f->stays)
		prb_str_puts(s, "  another allocator (tracemalloc?) was installed meanwhile, and "
				"calls that of the sampling,\n  which stays there and does "
				"nothing\n");
}

static struct prb_error *put_lines(const struct prb_memory_sites *sites, int rows,
				   struct prb_str *s)
{
	const struct prb_tree *tree = sites->recording->tree;
	struct prb_memory_site_list lines;
	const struct prb_memory_site *line;
	double whole = 0;

	PRB_TRY(prb_memory_sites_lines(sites, &lines));
	prb_vec_each (line, &lines.list)
		whole += line->bytes;
	prb_str_puts(s, lines.list.count ? "\n  allocated   share  (95 %)      alive  where\n"
					 : "\nno allocation was sampled\n");
	for (size_t i = 0; i < PRB_MIN(lines.list.count, (size_t)rows); i++) {
		struct prb_share share;
		uint32_t caller;

		line = &lines.list.items[i];
		share = prb_share_of(line->bytes, whole, (double)sites->samples.count);
		put_right(s, line->bytes, prb_text_bytes);
		prb_str_printf(s, " %5.1f %% %3.0f–%-3.0f", 100 * share.share, 100 * share.low,
			       100 * share.high);
		put_right(s, line->alive_bytes, prb_text_bytes);
		prb_str_puts(s, "  ");
		put_frame(tree, line->stack, s);
		caller = prb_memory_python_caller(tree, line->stack);
		if (caller) {
			prb_str_puts(s, " ← ");
			put_frame(tree, caller, s);
		}
		prb_str_putc(s, '\n');
	}
	if (lines.list.count > (size_t)rows)
		prb_str_printf(s, "  and %zu other places\n", lines.list.count - (size_t)rows);
	prb_vec_free(&lines.list);
	return NULL;
}

static struct prb_error *put_leaks(const struct prb_memory_sites *sites, int rows,
				   struct prb_str *s)
{
	const struct prb_tree *tree = sites->recording->tree;
	struct prb_memory_site_list leaks;
	const struct prb_memory_site *leak;
	size_t shown;

	PRB_TRY(prb_memory_sites_stacks(sites, true, &leaks));
	prb_str_puts(s, leaks.list.count
				? "\nAlive at the end, and allocated before the last "
				: "\nnothing is alive that was allocated before the last ");
	prb_text_duration(s, PRB_MEMORY_TAIL * seconds_of(&sites->facts));
	prb_str_puts(s, leaks.list.count ? "\n      alive     blocks  where\n" : "\n");
	shown = PRB_MIN(leaks.list.count, (size_t)PRB_MIN(rows, (int)MOST_LEAKS));
	for (size_t i = 0; i < shown; i++) {
		leak = &leaks.list.items[i];
		put_right(s, leak->alive_bytes, prb_text_bytes);
		put_right(s, leak->alive_blocks, put_count);
		prb_str_puts(s, "  ");
		put_frame(tree, leak->stack, s);
		prb_str_putc(s, '\n');
		put_callers(tree, leak->stack, s);
	}
	if (leaks.list.count > shown)
		prb_str_printf(s, "  and %zu other stacks\n", leaks.list.count - shown);
	prb_vec_free(&leaks.list);
	return NULL;
}

struct prb_error *prb_memory_sites_text(const struct prb_memory *m,
					const struct prb_memory_sites *sites, int rows,
					struct prb_str *s)
{
	put_head(m, sites, s);
	put_notes(sites, s);
	PRB_TRY(put_lines(sites, rows, s));
	PRB_TRY(put_leaks(sites, rows, s));
	return s->failed ? prb_error_nomem() : NULL;
}

static void put_json_frame(const struct prb_tree *tree, uint32_t stack, struct prb_json *json)
{
	const struct prb_tree_function *f = prb_tree_function_of(tree, stack);
	int32_t line = tree->frames.items[tree->stacks.items[stack].frame].line;

	prb_json_text(json, "function", f->name);
	prb_json_text(json, "file", f->file);
	prb_json_text(json, "module", f->module);
	if (line > 0)
		prb_json_integer(json, "line", line);
	else
		prb_json_null(json, "line");
}

static void put_json_site(const struct prb_tree *tree, const struct prb_memory_site *site,
			  bool whole, struct prb_json *json)
{
	uint32_t caller = prb_memory_python_caller(tree, site->stack);

	prb_json_open(json, NULL, '{');
	put_json_frame(tree, site->stack, json);
	prb_json_integer(json, "bytes", llround(site->bytes));
	prb_json_integer(json, "blocks", llround(site->blocks));
	prb_json_integer(json, "alive_bytes", llround(site->alive_bytes));
	prb_json_integer(json, "alive_blocks", llround(site->alive_blocks));
	prb_json_integer(json, "samples", (int64_t)site->samples);
	if (!whole && caller) {
		prb_json_open(json, "python", '{');
		put_json_frame(tree, caller, json);
		prb_json_close(json, '}');
	}
	if (whole) {
		prb_json_open(json, "callers", '[');
		for (uint32_t at = tree->stacks.items[site->stack].parent; at;
		     at = tree->stacks.items[at].parent) {
			prb_json_open(json, NULL, '{');
			put_json_frame(tree, at, json);
			prb_json_close(json, '}');
		}
		prb_json_close(json, ']');
	}
	prb_json_close(json, '}');
}

static void put_json_list(const struct prb_memory_sites *sites, const char *name,
			  const struct prb_memory_site_list *list, int rows, bool whole,
			  struct prb_json *json)
{
	prb_json_open(json, name, '[');
	for (size_t i = 0; i < PRB_MIN(list->list.count, (size_t)rows); i++)
		put_json_site(sites->recording->tree, &list->list.items[i], whole, json);
	prb_json_close(json, ']');
}

struct prb_error *prb_memory_sites_json(const struct prb_memory *m,
					const struct prb_memory_sites *sites, int rows,
					struct prb_str *s)
{
	const struct prb_sites_facts *f = &sites->facts;
	struct prb_memory_site_list lines, leaks;
	struct prb_json json = {.out = s};

	PRB_TRY(prb_memory_sites_lines(sites, &lines));
	struct prb_error *err = prb_memory_sites_stacks(sites, true, &leaks);
	if (err) {
		prb_vec_free(&lines.list);
		return err;
	}
	prb_json_open(&json, NULL, '{');
	prb_json_integer(&json, "pid", m->target->pid);
	prb_json_real(&json, "seconds", seconds_of(f), 3);
	prb_json_integer(&json, "every", (int64_t)sites->mean);
	prb_json_integer(&json, "samples", (int64_t)sites->samples.count);
	prb_json_bool(&json, "native", sites->native);
	prb_json_integer(&json, "bytes", (int64_t)f->bytes);
	prb_json_integer(&json, "other_bytes", (int64_t)f->other_bytes);
	prb_json_integer(&json, "lost_bytes", (int64_t)f->lost);
	prb_json_integer(&json, "untracked", (int64_t)f->untracked);
	prb_json_integer(&json, "nameless_frames", (int64_t)f->codes_dropped);
	prb_json_bool(&json, "full", sites->full);
	prb_json_bool(&json, "stays", f->stays);
	prb_json_bool(&json, "gone", f->gone);
	prb_json_integer(&json, "places", (int64_t)lines.list.count);
	put_json_list(sites, "sites", &lines, rows, false, &json);
	prb_json_integer(&json, "leaking_stacks", (int64_t)leaks.list.count);
	put_json_list(sites, "leaks", &leaks, rows, true, &json);
	prb_json_close(&json, '}');
	prb_str_putc(s, '\n');
	prb_vec_free(&lines.list);
	prb_vec_free(&leaks.list);
	return s->failed ? prb_error_nomem() : NULL;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Two recordings beside each other: which functions take more or less of the run. */
#include <math.h>
#include <string.h>

#include "cli/commands/perf/show/performance.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/text.h"

enum { MOST_ROWS = 30, MOST_UNCERTAIN = 10, WIDEST_NAME = 40 };

static void put_side(struct prb_str *s, const char *title, const struct prb_recording *r,
		     const struct prb_report *report, const struct prb_profile_choice *choice,
		     size_t threads)
{
	prb_str_printf(s, "%-6s  %d  ", title, (int)r->pid);
	prb_text_escape(s, r->command ? r->command : "");
	prb_str_puts(s, "\n        ");
	prb_performance_put_amounts(r, report, choice, threads, s);
	prb_str_putc(s, '\n');
}

static void put_percent(struct prb_str *s, double share)
{
	prb_str_printf(s, "%6.1f %%", 100 * share);
}

static void put_points(struct prb_str *s, double change, const char *format)
{
	double points = 100 * change;

	/* Avoids "-0.0". */
	prb_str_printf(s, format, fabs(points) < 0.05 ? 0.0 : points);
}

static void put_row(struct prb_str *s, const struct prb_recording *r,
		    const struct prb_diff_row *row, bool lines)
{
	const struct prb_tree_function *f = &r->tree->functions.items[row->function];
	prb_auto_str struct prb_str bounds = {};

	put_percent(s, row->self.before);
	put_percent(s, row->self.after);
	put_points(s, row->self.after - row->self.before, "  %+6.1f");
	put_points(&bounds, row->self.low, "%+.1f…");
	put_points(&bounds, row->self.high, "%+.1f");
	prb_text_spaces(s, 2 + (bounds.length < 15 ? 15 - bounds.length : 0));
	prb_str_puts(s, prb_str_text(&bounds));
	put_points(s, row->total.after - row->total.before, "  %+6.1f");
	prb_str_puts(s, row->total.certain ? "  " : "? ");
	prb_text_column(s, f->name, WIDEST_NAME);
	prb_str_puts(s, "  ");
	prb_function_put_place(s, f, lines ? row->line : f->first_line);
	prb_str_putc(s, '\n');
}

static bool is_certain(const struct prb_diff_row *row)
{
	return row->self.certain || row->total.certain;
}

/*
 * Appends at most @p most changes, either the certain or the uncertain ones, and the number of the
 * rest.
 */
static void put_rows(struct prb_str *s, const struct prb_recording *r, const struct prb_diff *diff,
		     bool lines, bool certain, size_t most)
{
	const struct prb_diff_row *row;
	size_t count = 0;

	prb_vec_each (row, &diff->rows)
		if (is_certain(row) == certain && count++ < most)
			put_row(s, r, row, lines);
	if (count > most)
		prb_str_printf(s, "  … %zu more; --json has them all\n", count - most);
}

static size_t count_certain(const struct prb_diff *diff)
{
	const struct prb_diff_row *row;
	size_t count = 0;

	prb_vec_each (row, &diff->rows)
		count += is_certain(row);
	return count;
}

static void put_text(struct prb_str *s, const struct prb_recording *r, const struct prb_diff *diff,
		     const struct prb_profile_choice *choice)
{
	static const char columns[] =
		"\n  before    after  change             95 %    total  function\n";
	size_t certain = count_certain(diff);

	put_side(s, "before", r->before, &diff->before, choice, r->before_threads);
	put_side(s, "after", r, &diff->after, choice, r->threads.count - r->before_threads);
	if (certain) {
		prb_str_puts(s, "\nMore than chance, in percent of the run:");
		prb_str_puts(s, columns);
		put_rows(s, r, diff, choice->lines, true, MOST_ROWS);
	} else {
		prb_str_puts(s, "\nNo function changed by more than chance explains.\n");
	}
	if (certain == diff->rows.count)
		return;
	prb_str_printf(s, "\nMay be chance, as %zu are compared%s:", diff->rows.count,
		       certain ? "" : ", in percent of the run");
	prb_str_puts(s, columns);
	put_rows(s, r, diff, choice->lines, false, MOST_UNCERTAIN);
}

static void json_side(struct prb_json *json, const char *key, const struct prb_recording *r,
		      const struct prb_report *report)
{
	prb_json_open(json, key, '{');
	prb_json_integer(json, "pid", r->pid);
	prb_json_text(json, "command", r->command);
	prb_json_text(json, "python", r->python);
	prb_json_real(json, "timestamp", r->started, 6);
	prb_json_integer(json, "duration_ns", r->duration);
	prb_json_integer(json, "weight_ns", report->weight);
	prb_json_integer(json, "samples", (int64_t)report->taken);
	prb_json_real(json, "independent_samples", report->samples, 1);
	prb_performance_json_windows(json, r);
	prb_json_close(json, '}');
}

static void json_row_side(struct prb_json *json, const char *key, const struct prb_report_row *row)
{
	prb_json_open(json, key, '{');
	prb_json_integer(json, "self_ns", row->self);
	prb_json_integer(json, "total_ns", row->total);
	prb_json_integer(json, "samples", (int64_t)row->samples);
	prb_json_close(json, '}');
}

static void json_change(struct prb_json *json, const char *key, const struct prb_change *change)
{
	prb_json_open(json, key, '{');
	prb_json_real(json, "before", change->before, 6);
	prb_json_real(json, "after", change->after, 6);
	prb_json_signed(json, "change", change->after - change->before, 6);
	prb_json_signed(json, "change_low", change->low, 6);
	prb_json_signed(json, "change_high", change->high, 6);
	prb_json_real(json, "chance", change->chance, 6);
	prb_json_bool(json, "certain", change->certain);
	prb_json_close(json, '}');
}

static void put_json(struct prb_str *s, const struct prb_recording *r, const struct prb_diff *diff,
		     const struct prb_profile_choice *choice)
{
	struct prb_json json = {s};
	const struct prb_diff_row *row;

	prb_json_open(&json, NULL, '{');
	prb_json_text(&json, "mode", prb_weight_words[choice->weight].mode);
	json_side(&json, "before", r->before, &diff->before);
	json_side(&json, "after", r, &diff->after);
	prb_json_open(&json, "functions", '[');
	prb_vec_each (row, &diff->rows) {
		prb_json_open(&json, NULL, '{');
		prb_performance_json_function(&json, &r->tree->functions.items[row->function],
					      choice->lines, row->line);
		json_row_side(&json, "before", &row->before);
		json_row_side(&json, "after", &row->after);
		json_change(&json, "self", &row->self);
		json_change(&json, "total", &row->total);
		prb_json_close(&json, '}');
	}
	prb_json_close(&json, ']');
	prb_json_close(&json, '}');
	prb_str_putc(s, '\n');
}

struct prb_error *prb_performance_diff(const struct prb_recording *joined,
				       const struct prb_profile_choice *choice, bool as_json,
				       struct prb_str *s)
{
	struct prb_diff diff;

	PRB_TRY(prb_diff_make(joined, choice, &diff));
	(as_json ? put_json : put_text)(s, joined, &diff, choice);
	prb_diff_deinit(&diff);
	return s->failed ? prb_error_nomem() : NULL;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The table of functions, for spreadsheets and data frames: RFC 4180, lines end in a line feed. */
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "profile/formats/format.h"

/* In quotes. What spreadsheets would take for a formula begins with an apostrophe. */
static void put_text(struct prb_str *s, const char *text)
{
	prb_auto_str struct prb_str plain = {};

	prb_text_escape(&plain, text);
	s->failed |= plain.failed;
	prb_str_puts(s, *text && strchr("=+-@", *text) ? "\"'" : "\"");
	for (const char *c = prb_str_text(&plain); *c; c++) {
		if (*c == '"')
			prb_str_putc(s, '"');
		prb_str_putc(s, *c);
	}
	prb_str_putc(s, '"');
}

static void put_row(struct prb_str *s, const struct prb_recording *recording,
		    const struct prb_report *report, const struct prb_report_row *row, bool lines)
{
	const struct prb_tree_function *f = &recording->tree->functions.items[row->function];
	struct prb_share self = prb_report_share(report, row->self);
	struct prb_share total = prb_report_share(report, row->total);
	int32_t line = lines ? row->line : f->first_line;

	put_text(s, f->name);
	prb_str_putc(s, ',');
	put_text(s, prb_function_file(f) ? prb_function_file(f) : "");
	prb_str_putc(s, ',');
	if (f->file && line > 0)
		prb_str_printf(s, "%d", line);
	prb_str_printf(s, ",%.6f,%.6f,%.3f,%.3f,%.3f,%.3f,%llu\n", (double)row->self / 1e6,
		       (double)row->total / 1e6, 100 * self.share, 100 * self.low, 100 * self.high,
		       100 * total.share, (unsigned long long)row->samples);
}

static struct prb_error *write_csv(const struct prb_recording *recording,
				   const struct prb_profile_choice *choice, struct prb_sink *sink)
{
	struct prb_report report;
	const struct prb_report_row *row;

	PRB_TRY(prb_report_make(recording, choice, &report));
	prb_str_puts(&sink->text, "function,file,line,self_ms,total_ms,self_percent,"
				  "self_percent_low,self_percent_high,total_percent,samples\n");
	prb_vec_each (row, &report.rows)
		put_row(&sink->text, recording, &report, row, choice->lines);
	prb_report_deinit(&report);
	return prb_sink_flush(sink, true);
}

const struct prb_profile_format prb_format_csv = {
	.name = "csv",
	.extensions = {".csv"},
	.any_order = true,
	.does = "the table of functions, for spreadsheets",
	.write = write_csv,
};

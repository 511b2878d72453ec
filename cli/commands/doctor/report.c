/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/commands/doctor/report.h"

#include <string.h>
#include <sys/utsname.h>

#include "command/output.h"
#include "command/term.h"
#include "base/checked.h"
#include "base/json.h"
#include "base/text.h"

enum { VERDICT_WIDTH = 9 };

static const struct {
	const char *word, *colour;
} verdicts[] = {
	[PRB_VERDICT_OK] = {"ok", "\033[32m"},
	[PRB_VERDICT_LIMITED] = {"limited", "\033[33m"},
	[PRB_VERDICT_NO] = {"no", "\033[1;31m"},
	[PRB_VERDICT_UNKNOWN] = {"unknown", "\033[2m"},
};

void prb_remarks_deinit(struct prb_remarks *report)
{
	struct prb_remark *finding;

	prb_vec_each (finding, &report->list) {
		prb_str_deinit(&finding->means);
		prb_str_deinit(&finding->todo);
	}
	prb_vec_free(&report->list);
}

void prb_remarks_add(struct prb_remarks *report, const char *name, enum prb_verdict verdict,
		     const char *format, ...)
{
	struct prb_remark *finding = prb_vec_push(&report->list);
	va_list args;

	if (!finding) {
		report->failed = true;
		return;
	}
	*finding = (struct prb_remark){report->section, name, verdict, {}, {}};
	va_start(args, format);
	prb_str_vprintf(&finding->means, format, args);
	va_end(args);
	report->failed |= finding->means.failed;
}

void prb_remarks_advise(struct prb_remarks *report, const char *format, ...)
{
	struct prb_remark *last = report->list.items + report->list.count - 1;
	va_list args;

	if (report->failed || !report->list.count)
		return;
	va_start(args, format);
	prb_str_vprintf(&last->todo, format, args);
	va_end(args);
	report->failed |= last->todo.failed;
}

static void put_verdict(struct prb_str *s, enum prb_verdict verdict, bool colour)
{
	const char *word = verdicts[verdict].word;

	if (colour)
		prb_str_puts(s, verdicts[verdict].colour);
	prb_str_puts(s, word);
	if (colour)
		prb_str_puts(s, "\033[0m");
	prb_text_spaces(s, VERDICT_WIDTH - strlen(word));
}

static void put_text(struct prb_str *s, const struct prb_remarks *report)
{
	bool colour = prb_term_colour(stdout);
	const struct prb_remark *finding;
	const char *section = NULL;
	size_t width = 0;

	prb_vec_each (finding, &report->list)
		width = PRB_MAX(width, strlen(finding->name));
	prb_vec_each (finding, &report->list) {
		if (finding->section != section)
			prb_str_printf(s, "\n%s\n", finding->section);
		section = finding->section;
		prb_str_puts(s, "  ");
		put_verdict(s, finding->verdict, colour);
		prb_text_column(s, finding->name, width + 2);
		prb_text_escape(s, prb_str_text(&finding->means));
		prb_str_putc(s, '\n');
		if (!finding->todo.length)
			continue;
		prb_text_spaces(s, 2 + VERDICT_WIDTH + width + 2);
		prb_str_puts(s, "→ ");
		prb_text_escape(s, prb_str_text(&finding->todo));
		prb_str_putc(s, '\n');
	}
}

static void put_json(struct prb_str *s, const struct prb_remarks *report,
		     const struct prb_remarks_subject *subject, const struct utsname *kernel)
{
	const struct prb_remark *finding;
	struct prb_json json = {s};

	prb_json_open(&json, NULL, '{');
	prb_json_text(&json, "version", PRB_VERSION);
	prb_json_text(&json, "kernel", kernel->release);
	prb_json_text(&json, "machine", kernel->machine);
	prb_json_natural(&json, "pid", subject->pid ? subject->pid : -1);
	prb_json_bool(&json, "readable", subject->readable);
	prb_json_open(&json, "findings", '[');
	prb_vec_each (finding, &report->list) {
		prb_json_open(&json, NULL, '{');
		prb_json_text(&json, "section", finding->section);
		prb_json_text(&json, "name", finding->name);
		prb_json_text(&json, "verdict", verdicts[finding->verdict].word);
		prb_json_text(&json, "means", prb_str_text(&finding->means));
		prb_json_text(&json, "todo",
			      finding->todo.length ? prb_str_text(&finding->todo) : NULL);
		prb_json_close(&json, '}');
	}
	prb_json_close(&json, ']');
	prb_json_close(&json, '}');
	prb_str_putc(s, '\n');
}

struct prb_error *prb_remarks_print(const struct prb_remarks *report,
				    const struct prb_remarks_subject *subject, bool json)
{
	prb_auto_str struct prb_str text = {};
	struct utsname kernel = {};

	if (report->failed)
		return prb_error_nomem();
	uname(&kernel);
	if (json) {
		put_json(&text, report, subject, &kernel);
		return prb_output(&text);
	}
	if (subject->pid) {
		prb_str_printf(&text, "%d  ", (int)subject->pid);
		prb_text_escape(&text, subject->command);
	} else {
		prb_str_printf(&text, "probing " PRB_VERSION ", %s %s, %s", kernel.sysname,
			       kernel.release, kernel.machine);
	}
	prb_str_putc(&text, '\n');
	put_text(&text, report);
	return prb_output_lines(&text, false);
}

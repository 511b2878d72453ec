/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `probing ring FILE`: what a ring holds. */
#include <fcntl.h>
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "command/command.h"
#include "command/exit.h"
#include "command/output.h"
#include "rings/ring.h"

struct ring_settings {
	bool json;
};

enum { FLUSH = 1 << 16 };

static double seconds(int64_t ns)
{
	return (double)ns / 1e9;
}

static double real_of(uint64_t bits)
{
	double value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static void put_cell(struct prb_str *s, const struct prb_ring *ring,
		     const struct prb_ring_item *row, uint32_t i)
{
	if (row->nulls >> i & 1)
		prb_str_puts(s, "NULL");
	else if (ring->columns[i].type == PRB_RING_TEXT)
		prb_text_escape_bytes(s, row->texts[i], row->lengths[i]);
	else if (ring->columns[i].type == PRB_RING_REAL)
		prb_str_printf(s, "%.15g", real_of(row->cells[i]));
	else
		prb_str_printf(s, "%lld", (long long)row->cells[i]);
}

static void put_row(struct prb_str *s, const struct prb_ring *ring, const struct prb_ring_item *row)
{
	prb_str_printf(s, "%.6f\t%u\t%u", seconds(row->time), row->pid, row->tid);
	for (uint32_t i = 0; i < ring->header.column_count; i++) {
		prb_str_putc(s, '\t');
		put_cell(s, ring, row, i);
	}
	prb_str_putc(s, '\n');
}

static void put_json_text(struct prb_json *json, const char *key, const char *text, size_t length)
{
	/* Text read from a file has no NUL at its end. */
	prb_auto_str struct prb_str copy = {};

	prb_str_append(&copy, text, length);
	prb_json_bytes(json, key, prb_str_text(&copy), length);
}

static void put_json_row(struct prb_json *json, const struct prb_ring *ring,
			 const struct prb_ring_item *row)
{
	prb_json_open(json, NULL, '{');
	prb_json_real(json, "timestamp", seconds(row->time), 6);
	prb_json_integer(json, "pid", row->pid);
	prb_json_integer(json, "tid", row->tid);
	for (uint32_t i = 0; i < ring->header.column_count; i++) {
		const struct prb_ring_column *c = &ring->columns[i];
		double value = real_of(row->cells[i]);

		if (row->nulls >> i & 1 || (c->type == PRB_RING_REAL && !isfinite(value)))
			prb_json_null(json, c->name);
		else if (c->type == PRB_RING_TEXT)
			put_json_text(json, c->name, row->texts[i], row->lengths[i]);
		else if (c->type == PRB_RING_INTEGER)
			prb_json_integer(json, c->name, (int64_t)row->cells[i]);
		else if (value >= 0)
			prb_json_real(json, c->name, value, 9);
		else
			prb_str_printf(json->out, ",\"%s\":%.17g", c->name, value);
	}
	prb_json_close(json, '}');
}

static void put_head(struct prb_str *s, const struct prb_ring *ring)
{
	prb_str_printf(s, "timestamp\tpid\ttid");
	for (uint32_t i = 0; i < ring->header.column_count; i++) {
		prb_str_putc(s, '\t');
		prb_text_escape(s, ring->columns[i].name);
	}
	prb_str_putc(s, '\n');
}

/** Warns of missing rows, and why they are missing. */
static void warn_of_rest(const struct prb_ring *ring)
{
	prb_auto_str struct prb_str s = {};

	const struct {
		uint64_t count;
		const char *before, *after;
	} reasons[] = {
		{ring->dropped, "the oldest ", " slots were dropped"},
		{ring->overtaken, "", " chunks were dropped while they were read"},
		{ring->missing, "the file was cut: ", " slots are missing"},
		{ring->damaged, "", " rows are damaged and left out"},
		{ring->header.lost, "", " rows could not be written"},
	};

	for (size_t i = 0; i < PRB_ARRAY_SIZE(reasons); i++)
		if (reasons[i].count)
			prb_str_printf(&s, "; %s%llu%s", reasons[i].before,
				       (unsigned long long)reasons[i].count, reasons[i].after);
	if (s.length)
		prb_warn(prb_str_text(&s) + 2);
}

static struct prb_error *print_rows(struct prb_ring *ring, bool as_json)
{
	const struct prb_ring_range always = PRB_RING_ALWAYS;
	prb_auto_str struct prb_str text = {};
	struct prb_json json = {&text};
	struct prb_ring_item row;
	bool more;

	if (as_json)
		prb_json_open(&json, NULL, '[');
	else
		put_head(&text, ring);
	for (;;) {
		PRB_TRY(prb_ring_next_chunk(ring, &always, &more));
		if (!more)
			break;
		while (prb_ring_next_row(ring, &row)) {
			if (as_json)
				put_json_row(&json, ring, &row);
			else
				put_row(&text, ring, &row);
			if (text.length < FLUSH)
				continue;
			PRB_TRY(prb_output_lines(&text, as_json));
			prb_str_truncate(&text, 0);
		}
	}
	if (as_json)
		prb_json_close(&json, ']');
	prb_str_puts(&text, as_json ? "\n" : "");
	warn_of_rest(ring);
	return prb_output_lines(&text, as_json);
}

static struct prb_error *run(const struct prb_cli *cli, const void *settings)
{
	const struct ring_settings *s = settings;
	prb_auto_ring struct prb_ring *ring = NULL;
	int fd;

	if (!cli->argument_count)
		return prb_error_hint(prb_error_create(PRB_ERROR_USAGE, "no ring is given"),
				      "'probing ring FILE.ring' prints the rows of one");
	PRB_TRY(prb_file_open(-1, cli->arguments[0], &fd));
	PRB_TRY(prb_ring_open(fd, cli->arguments[0], &ring));
	return print_rows(ring, s->json);
}

const struct prb_command prb_command_ring = {
	.rank = 61,
	.name = "ring",
	.summary = "Print the rows that a process has kept in a ring",
	.description =
		"A ring is a file of fixed size in which a process keeps its newest rows of one "
		"table. FILE can be read while the process writes, and after it has died. Rows "
		"come oldest first, with tabs between the columns.",
	.options =
		(const struct prb_option[]){
			{"json", 0, PRB_OPTION_FLAG, NULL, "Print JSON", PRB_COMPLETE_NOTHING,
			 offsetof(struct ring_settings, json)},
			{},
		},
	.settings_size = sizeof(struct ring_settings),
	.target_use = PRB_TARGET_NONE,
	.argument = "FILE",
	.max_arguments = 1,
	.complete = PRB_COMPLETE_FILE,
	.examples =
		(const struct prb_example[]){
			{"probing ring user.losses.ring --json", "All rows as JSON"},
			{},
		},
	.run = run,
};

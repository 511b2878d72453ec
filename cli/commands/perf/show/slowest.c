/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/commands/perf/show/slowest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "profile/recording/pieces.h"
#include "rings/call_rows.h"

static void rows_guard(struct prb_call_rows *rows)
{
	prb_call_rows_deinit(rows);
}

/* The part of all calls, and the function. */
static bool parse(const char *text, double *part, const char **name)
{
	static const char of[] = "% of ";
	char *end;

	*part = strtod(text, &end) / 100;
	while (*end == ' ')
		end++;
	if (end == text || strncmp(end, of, strlen(of)) || !(*part > 0 && *part < 1))
		return false;
	*name = end + strlen(of);
	return **name;
}

struct prb_error *prb_slowest_check(const char *text)
{
	const char *name;
	double part;

	if (parse(text, &part, &name))
		return NULL;
	return prb_error_hint(
		prb_error_create(PRB_ERROR_USAGE, "--slowest '%.100s' is no part of calls", text),
		"for example --slowest '1%% of handle'");
}

/* Calls that ended in the time of the recording. */
static void keep_recorded(struct prb_call_rows *calls, const struct prb_recording *recording)
{
	int64_t from = (int64_t)(recording->started * 1e9), to = from + recording->duration;
	size_t kept = 0;

	for (size_t i = 0; i < calls->list.count; i++)
		if (calls->list.items[i].end > from && calls->list.items[i].begin < to)
			calls->list.items[kept++] = calls->list.items[i];
	calls->list.count = kept;
}

static struct prb_error *keep(struct prb_recording *recording, const struct prb_call_row *calls,
			      size_t count)
{
	prb_auto_free struct prb_profile_piece *pieces = calloc(count + 1, sizeof(*pieces));
	int64_t from = (int64_t)(recording->started * 1e9);

	if (!pieces)
		return prb_error_nomem();
	for (size_t i = 0; i < count; i++)
		pieces[i] = (struct prb_profile_piece){calls[i].tid, calls[i].begin - from,
						       calls[i].end - from};
	return prb_recording_keep_pieces(recording, pieces, count);
}

struct prb_error *prb_slowest_split(struct prb_target *target, const char *text,
				    struct prb_recording *others, struct prb_recording *slowest,
				    struct prb_str *ret_told)
{
	__attribute__((cleanup(rows_guard))) struct prb_call_rows calls = {};
	const struct prb_call_row *last;
	const char *name = "";
	size_t count;
	double part;

	PRB_TRY(prb_slowest_check(text));
	parse(text, &part, &name);
	PRB_TRY(prb_call_rows_read(target, name, &calls));
	keep_recorded(&calls, slowest);
	if (calls.list.count < 2)
		return prb_error_hint(
			prb_error_create(PRB_ERROR_NOT_FOUND,
					 "%zu calls of '%.100s' were recorded in that time",
					 calls.list.count, name),
			"'probing %d trace --calls %.100s --keep' records them", (int)slowest->pid,
			name);
	count = (size_t)PRB_MAX(ceil((double)calls.list.count * part), 1.0);
	last = &calls.list.items[count - 1];
	prb_str_printf(ret_told, "before: the other %zu of %zu recorded calls of ",
		       calls.list.count - count, calls.list.count);
	prb_text_escape(ret_told, name);
	prb_str_printf(ret_told, "; after: the slowest %zu, of %.3g ms or more\n", count,
		       (double)(last->end - last->begin) / 1e6);
	PRB_TRY(keep(slowest, calls.list.items, count));
	return keep(others, calls.list.items + count, calls.list.count - count);
}

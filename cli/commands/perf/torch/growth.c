/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/commands/perf/torch/growth.h"

#include <stdlib.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "judge/facts.h"

/* Some 50 bytes are kept of each object, and they are walked again. */
enum { MOST_OBJECTS = 4000000 };

/* Seconds: between two looks; of sampling, less of which shows nothing. */
static const double APART = 0.1, LEAST_SPAN = 1.5;

void prb_torch_growth_deinit(struct prb_torch_growth *growth)
{
	prb_census_destroy(growth->before);
	prb_memory_rows_deinit(&growth->rows);
	free(growth->held.name);
}

void prb_torch_growth_begin(struct prb_torch_growth *growth, struct prb_target *target,
			    struct prb_census **census)
{
	if (prb_census_totals(*census).objects > MOST_OBJECTS || prb_census_doubt(*census))
		return;
	growth->before = prb_steal(census);
	growth->read = prb_clock_seconds();
	prb_torch_growth_look(growth, target);
}

void prb_torch_growth_look(struct prb_torch_growth *growth, struct prb_target *target)
{
	const struct prb_memory_rows *rows = &growth->rows;
	double now = prb_clock_seconds();
	struct prb_memory_row *row;

	if (!growth->before ||
	    (rows->list.count && now < rows->list.items[rows->list.count - 1].time + APART))
		return;
	row = prb_vec_push(&growth->rows.list);
	if (row)
		*row = (struct prb_memory_row){now, prb_resident_bytes(target), -1};
}

struct prb_error *prb_torch_growth_find(struct prb_torch_growth *growth, struct prb_target *target,
					struct prb_python *py, uint64_t interp)
{
	const struct prb_census_limits limits = {.max_objects = 2 * MOST_OBJECTS};
	prb_auto_census struct prb_census *after = NULL;
	struct prb_error *err;
	bool failed = false;

	growth->series =
		(struct prb_memory_series){growth->rows.list.items, growth->rows.list.count};
	if (!growth->before || !prb_memory_rises(&growth->series, LEAST_SPAN))
		return NULL;
	err = prb_error_tolerate(prb_census_create(py, target->mem, interp, &limits, &after),
				 &failed);
	/* The process may have ended. */
	if (err || failed)
		return err;
	growth->held.grown = prb_resident_bytes(target) - growth->rows.list.items->bytes;
	return prb_holding_find(growth->before, after, prb_clock_seconds() - growth->read,
				&growth->held);
}

void prb_torch_growth_text(const struct prb_torch_growth *growth, double step, struct prb_str *s)
{
	double rate = growth->held.bytes / growth->held.seconds;

	prb_str_puts(s, "memory grows ");
	prb_text_bytes(s, step > 0 ? rate * step : rate);
	prb_str_printf(s, " a %s, held by `", step > 0 ? "step" : "second");
	prb_str_puts(s, growth->held.name);
	prb_str_puts(s, "`");
}

void prb_torch_growth_evidence(const struct prb_torch_growth *growth, struct prb_str *s)
{
	prb_str_puts(s, "it holds ");
	prb_text_bytes(s, growth->held.bytes);
	prb_str_puts(s, " more than ");
	prb_text_duration(s, growth->held.seconds);
	prb_str_puts(s, " before; ");
	prb_memory_series_put(s, &growth->series);
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/commands/perf/record/progress.h"

#include <math.h>
#include <stdio.h>

#include "base/str.h"
#include "base/text.h"
#include "command/term.h"
#include "command/waiting.h"

enum { WIDE = 80, /**< columns of a terminal that shows all numbers */ };

void prb_recording_progress(const struct prb_recording *recording)
{
	const struct prb_profile_cost *cost = &recording->cost;
	const double seconds = (double)recording->duration / 1e9;
	prb_auto_str struct prb_str text = {};
	size_t columns = 0, rows = 0;

	if (!prb_waiting_shows() || recording->duration <= 0)
		return;
	if (!prb_waiting_left(&text))
		prb_text_duration(&text, floor(seconds));
	prb_str_printf(&text, " · %llu samples · %.0f/s · %llu missed",
		       (unsigned long long)cost->times, (double)cost->times / seconds,
		       (unsigned long long)cost->missed);
	if (prb_term_size(stderr, &columns, &rows) && columns >= WIDE)
		prb_str_printf(&text, " · stopped %.1f %% · own CPU %.1f %%",
			       cost->pause_total / seconds / 1e4,
			       100 * (double)cost->own_cpu / (double)recording->duration);
	prb_waiting_say(prb_str_text(&text));
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What threads waited for, and the owner. */
#include "cli/commands/perf/show/performance.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "profile/recording/wait_sums.h"

enum { MOST_ROWS = 30 };

static bool is_about_waits(const struct prb_profile_choice *choice)
{
	return choice->weight == PRB_WEIGHT_GIL || choice->weight == PRB_WEIGHT_BLOCKED;
}

static void put_thread(const struct prb_recording *r, uint32_t number, struct prb_str *s)
{
	const struct prb_profile_thread *thread = &r->threads.items[number];

	prb_str_printf(s, "%d ", (int)thread->tid);
	prb_text_escape(s, prb_profile_thread_name(thread));
}

/* "  61.2 %   6.12 s  4250 worker-0: the GIL, held by 4242 MainThread". */
static void put_row(const struct prb_recording *r, const struct prb_wait_sums *sums,
		    const struct prb_wait_sum *sum, struct prb_str *s)
{
	prb_auto_str struct prb_str time = {};

	prb_text_duration(&time, (double)sum->wall / 1e9);
	prb_str_printf(s, " %5.1f %%  ",
		       sums->wall ? 100 * (double)sum->wall / (double)sums->wall : 0);
	prb_text_spaces(s, time.length < 8 ? 8 - time.length : 0);
	prb_str_printf(s, "%s  ", prb_str_text(&time));
	if (sum->threads == 1)
		put_thread(r, sum->thread, s);
	else
		prb_str_printf(s, "%zu threads", sum->threads);
	prb_str_puts(s, ": ");
	prb_wait_text(r, sum->wait, s);
	prb_str_putc(s, '\n');
}

struct prb_error *prb_performance_waits_text(const struct prb_recording *r,
					     const struct prb_profile_choice *choice,
					     struct prb_str *s)
{
	bool gil = choice->weight == PRB_WEIGHT_GIL;
	struct prb_wait_sums sums;
	size_t shown;

	if (!is_about_waits(choice))
		return NULL;
	PRB_TRY(prb_wait_sums_make(r, choice, gil, &sums));
	shown = PRB_MIN(sums.list.count, (size_t)MOST_ROWS);
	prb_str_puts(s, gil ? "\nwaiting for the GIL: " : "\nwaiting for: ");
	prb_text_duration(s, (double)sums.wall / 1e9);
	prb_str_putc(s, '\n');
	for (size_t i = 0; i < shown; i++)
		put_row(r, &sums, &sums.list.items[i], s);
	if (shown < sums.list.count)
		prb_str_printf(s, "  … %zu more; --json has them all\n", sums.list.count - shown);
	prb_wait_sums_deinit(&sums);
	return s->failed ? prb_error_nomem() : NULL;
}

void prb_performance_json_wait(struct prb_json *json, const struct prb_recording *r,
			       const struct prb_profile_wait *wait)
{
	prb_json_text(json, "for", prb_wait_kind_name(wait->kind));
	prb_json_text(json, "what", wait->what);
	prb_json_natural(json, "owner", wait->owner ? r->threads.items[wait->owner - 1].tid : -1);
}

struct prb_error *prb_performance_waits_json(const struct prb_recording *r,
					     const struct prb_profile_choice *choice,
					     struct prb_json *json)
{
	const struct prb_wait_sum *sum;
	struct prb_wait_sums sums;

	if (!is_about_waits(choice))
		return NULL;
	PRB_TRY(prb_wait_sums_make(r, choice, choice->weight == PRB_WEIGHT_GIL, &sums));
	prb_json_open(json, "waits", '[');
	prb_vec_each (sum, &sums.list) {
		const struct prb_profile_wait *wait = &r->waits.items[sum->wait];

		prb_json_open(json, NULL, '{');
		prb_performance_json_wait(json, r, wait);
		prb_json_natural(json, "tid",
				 sum->threads == 1 ? r->threads.items[sum->thread].tid : -1);
		prb_json_integer(json, "threads", (int64_t)sum->threads);
		prb_json_integer(json, "wall_ns", sum->wall);
		prb_json_close(json, '}');
	}
	prb_json_close(json, ']');
	prb_wait_sums_deinit(&sums);
	return NULL;
}

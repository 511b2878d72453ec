/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dump/steady.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "dump/stops.h"

/* What is torn can be shown, and marked; what was freed while it was read can not. */
enum { ATTEMPTS = 6, AFTER_ERRORS = 60 };

struct comparison {
	struct prb_mem *mem;
	bool same;
};

static void compare_page(void *context, uint64_t address, const void *data,
			 const struct prb_page_marks *read)
{
	struct comparison *c = context;
	uint64_t now[PRB_PAGE_WORDS];
	struct prb_error *err;

	if (!c->same)
		return;
	err = prb_mem_read(c->mem, address, now, sizeof(now));
	c->same = !err;
	prb_error_destroy(err);
	for (unsigned i = 0; i < PRB_PAGE_WORDS && c->same; i++)
		if (read->bits[i / 64] >> (i % 64) & 1)
			c->same = !memcmp(&now[i], (const uint64_t *)data + i, sizeof(*now));
}

/* Whether all words that were read are still what they were. */
static bool is_unchanged(struct prb_target *t, const struct prb_view *view)
{
	struct comparison c = {.mem = t->mem, .same = true};

	prb_view_each_page(view, compare_page, &c);
	return c.same;
}

/* Copies what the last attempt has read while nobody runs. */
static struct prb_error *copy(struct prb_stops *stops, struct prb_view *view, bool *held)
{
	struct prb_error *err = prb_stops_begin(stops, false);
	double pause_us;

	if (!err)
		err = prb_view_prefetch(view);
	*held = !err && prb_stops_held(stops);
	prb_stops_end(stops, &pause_us);
	prb_log("steady", 1, "stopped for %.0f µs, held: %d", pause_us, *held);
	return err;
}

static struct prb_error *read_stopped(struct prb_target *t, struct prb_stops *stops,
				      struct prb_view *view, prb_steady_attempt *attempt,
				      void *context, bool *steady)
{
	struct prb_error *err = NULL;

	for (int i = 0; !*steady && i < (err ? AFTER_ERRORS : ATTEMPTS); i++) {
		bool held;

		prb_error_destroy(err);
		prb_view_new_epoch(view);
		PRB_TRY(copy(stops, view, &held));
		prb_view_seal(view, &t->maps);
		err = attempt(context);
		*steady = held && !prb_view_misses(view);
	}
	return err;
}

struct prb_error *prb_steady_read(struct prb_target *t, struct prb_tasks *tasks,
				  struct prb_view *view, prb_steady_attempt *attempt, void *context,
				  bool *steady)
{
	struct prb_stops stops = {.tasks = tasks};
	struct prb_error *err, *stopped;

	prb_view_new_epoch(view);
	err = attempt(context);
	*steady = !t->moves || is_unchanged(t, view);
	if (*steady)
		return err;
	stopped = read_stopped(t, &stops, view, attempt, context, steady);
	prb_stops_deinit(&stops);
	/* Without the right to stop it, what was read while it ran is all there is. */
	if (prb_error_catch(&stopped, PRB_ERROR_PERMISSION))
		return err;
	prb_error_destroy(err);
	return stopped;
}

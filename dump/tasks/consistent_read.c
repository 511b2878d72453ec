/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dump/tasks/consistent_read.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "dump/tasks/stop_all.h"

/*
 * Limits of attempts. A torn value can be shown, and marked; memory freed during the read cannot,
 * so errors get more attempts.
 */
enum { ATTEMPTS = 6, AFTER_ERRORS = 60, HALF_MADE = 20, BATCH = 32, LOOKS = 3 };

struct comparison {
	struct prb_mem *mem;
	bool same;
	size_t count;
	const char *read[BATCH]; /* the words read earlier, and marks of which were read */
	const struct prb_page_marks *marks[BATCH];
	struct prb_block blocks[BATCH];
	uint64_t pages[BATCH][PRB_PAGE_WORDS];
};

static bool is_same_page(const uint64_t *now, const char *then, const struct prb_page_marks *marks)
{
	for (unsigned i = 0; i < PRB_PAGE_WORDS; i++)
		if (marks->bits[i / 64] >> (i % 64) & 1 &&
		    memcmp(&now[i], then + i * PRB_WORD_SIZE, PRB_WORD_SIZE) != 0)
			return false;
	return true;
}

static void compare_batch(struct comparison *c)
{
	struct prb_error *err = prb_mem_read_many(c->mem, c->blocks, c->count);

	c->same &= !err;
	prb_error_destroy(err);
	for (size_t i = 0; i < c->count && c->same; i++)
		c->same = c->blocks[i].ok && is_same_page(c->pages[i], c->read[i], c->marks[i]);
	c->count = 0;
}

static void compare_page(void *context, uint64_t address, const void *data,
			 const struct prb_page_marks *read)
{
	struct comparison *c = context;
	size_t i = c->count;
	bool any = false;

	for (size_t word = 0; word < PRB_PAGE_WORDS / 64; word++)
		any |= read->bits[word];
	if (!c->same || !any)
		return;
	c->read[i] = data;
	c->marks[i] = read;
	c->blocks[i] = (struct prb_block){
		.address = address, .length = PRB_PAGE_SIZE, .buffer = c->pages[i]};
	if (++c->count == BATCH)
		compare_batch(c);
}

/*
 * True if all words that were read are unchanged. Pages are not compared at the same instant, so a
 * word that alternates may look unchanged; several comparisons in a row make that unlikely.
 */
static bool is_unchanged(struct prb_target *t, const struct prb_view *view)
{
	struct comparison c;

	c.mem = t->mem;
	c.same = true;
	c.count = 0;
	for (int i = 0; i < LOOKS && c.same; i++) {
		prb_view_each_page(view, compare_page, &c);
		compare_batch(&c);
	}
	return c.same;
}

/*
 * A thread may be stopped while it makes a frame or an object, which is valid only after it has run
 * on.
 */
static bool is_half_made(const struct prb_error *err)
{
	return err && (err->code == PRB_ERROR_BAD_DATA || err->code == PRB_ERROR_FAULT);
}

static bool any_stopped(const struct prb_stop_all *stops)
{
	const struct prb_stop *stop;

	prb_vec_each (stop, &stops->list)
		if (stop->stopped)
			return true;
	return false;
}

/* Copies the pages of the last attempt while no thread runs. *runs: a thread had to be stopped. */
static struct prb_error *copy(struct prb_stop_all *stops, struct prb_view *view, bool *held,
			      bool *runs)
{
	struct prb_error *err = prb_stop_all_begin(stops, false);
	double pause_us;

	if (!err)
		err = prb_view_prefetch(view);
	*held = !err && prb_stop_all_held(stops);
	*runs = any_stopped(stops);
	prb_stop_all_end(stops, &pause_us);
	prb_log("stop", 1, "stopped for %.0f µs, held: %d", pause_us, *held);
	return err;
}

/*
 * Reads while no thread runs. The last resort: a program that makes its objects anew all the time
 * has them in other pages by the next stop.
 */
static struct prb_error *read_while_stopped(struct prb_stop_all *stops, prb_read_attempt *attempt,
					    void *context, bool *held, bool *runs,
					    struct prb_error **ret_read)
{
	struct prb_error *err = prb_stop_all_begin(stops, false);
	double pause_us;

	*ret_read = err ? NULL : attempt(context);
	*held = !err && prb_stop_all_held(stops);
	*runs = any_stopped(stops);
	prb_stop_all_end(stops, &pause_us);
	prb_log("stop", 1, "stopped for %.0f µs while all was read, held: %d", pause_us, *held);
	return err;
}

static struct prb_error *read_stopped(struct prb_target *t, struct prb_stop_all *stops,
				      struct prb_view *view, prb_read_attempt *attempt,
				      void *context, bool *consistent)
{
	struct prb_error *err = NULL;
	int half_made = 0;
	bool done = false;

	for (int i = 0; !done && i < (err ? AFTER_ERRORS : ATTEMPTS); i++) {
		bool held, runs;

		prb_error_destroy(err);
		prb_view_new_epoch(view);
		if (i + 1 == ATTEMPTS) {
			PRB_TRY(read_while_stopped(stops, attempt, context, &held, &runs, &err));
		} else {
			PRB_TRY(copy(stops, view, &held, &runs));
			prb_view_seal(view, &t->maps);
			err = attempt(context);
		}
		*consistent = held && !prb_view_misses(view);
		half_made += *consistent && runs && is_half_made(err);
		done = *consistent && (!runs || !is_half_made(err) || half_made == HALF_MADE);
	}
	return err;
}

struct prb_error *prb_read_consistent(struct prb_target *t, struct prb_tasks *tasks,
				      struct prb_view *view, prb_read_attempt *attempt,
				      void *context, bool *consistent)
{
	struct prb_stop_all stops = {.tasks = tasks, .patience = PRB_STOP_PATIENCE};
	struct prb_error *err, *stopped;

	prb_view_new_epoch(view);
	err = attempt(context);
	*consistent = !t->moves || is_unchanged(t, view);
	if (*consistent && !(t->moves && is_half_made(err)))
		return err;
	stopped = read_stopped(t, &stops, view, attempt, context, consistent);
	prb_stop_all_deinit(&stops);
	/* Without the right to stop threads, the result of the unstopped read is all there is. */
	if (prb_error_catch(&stopped, PRB_ERROR_PERMISSION))
		return err;
	prb_error_destroy(err);
	return stopped;
}

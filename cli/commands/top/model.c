/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The data of `top`: parts of a recording, of which old ones are dropped. */
#include "cli/commands/top/top.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/local_time.h"
#include "base/text.h"
#include "profile/store/write/store.h"

/* So much memory is used at most: some 40 MB. */
enum { MOST_RUNS = 400000 };

static void forget(struct prb_top *top, size_t count)
{
	struct prb_recording *r = prb_live_recording(top->live);
	size_t runs = count < top->parts.count ? top->parts.items[count].first_run : r->runs.count;

	if (!count)
		return;
	memmove(r->runs.items, r->runs.items + runs,
		(r->runs.count - runs) * sizeof(*r->runs.items));
	r->runs.count -= runs;
	top->parts.count -= count;
	memmove(top->parts.items, top->parts.items + count,
		top->parts.count * sizeof(*top->parts.items));
	if (top->held)
		top->held = top->held > count ? top->held - count : 1;
	for (size_t i = 0; i < top->parts.count; i++)
		top->parts.items[i].first_run -= runs;
}

struct prb_error *prb_top_take(struct prb_top *top, bool *ret_new)
{
	struct prb_recording *r = prb_live_recording(top->live);
	size_t runs = r->runs.count;
	int64_t before = r->duration;
	struct prb_top_part *part;

	PRB_TRY(prb_live_take(top->live, ret_new));
	if (!*ret_new)
		return NULL;
	part = prb_vec_push(&top->parts);
	if (!part)
		return prb_error_nomem();
	*part = (struct prb_top_part){.first_run = runs,
				      .begin = before,
				      .end = r->duration,
				      .process_cpu = r->process_cpu,
				      .cost = r->cost};
	if (r->runs.count > MOST_RUNS && top->parts.count > 1)
		forget(top, top->parts.count / 2);
	return NULL;
}

void prb_top_reset(struct prb_top *top)
{
	/* The last part stays, so that there is something to show. */
	if (top->parts.count)
		forget(top, top->parts.count - 1);
}

struct prb_error *prb_top_set_filter(struct prb_top *top, const char *pattern)
{
	struct prb_regex *regex = NULL;
	char *copy = NULL;

	if (*pattern) {
		PRB_TRY(prb_regex_compile(pattern, strlen(pattern), PRB_REGEX_CASELESS, &regex));
		copy = strdup(pattern);
	}
	if (top->regex)
		prb_regex_destroy(top->regex);
	free(top->filter);
	top->regex = regex;
	top->filter = copy;
	return NULL;
}

bool prb_top_matches(const struct prb_top *top, const char *name)
{
	struct prb_error *err;
	bool found = false;

	if (!top->regex)
		return true;
	if (!name)
		return false;
	err = prb_regex_match(top->regex, name, strlen(name), 0, &found);
	prb_error_destroy(err);
	return found;
}

size_t prb_top_first_part(const struct prb_top *top)
{
	size_t last = prb_top_end(top) - 1, first = last;
	int64_t from = top->parts.items[last].end - (int64_t)(top->window * 1e9);

	if (top->window <= 0)
		return 0;
	while (first && top->parts.items[first - 1].begin >= from)
		first--;
	return first;
}

struct prb_recording prb_top_slice(const struct prb_top *top, size_t part, size_t end)
{
	struct prb_recording slice = *prb_live_recording(top->live);
	size_t first = top->parts.items[part].first_run;
	size_t after = end < top->parts.count ? top->parts.items[end].first_run : slice.runs.count;

	slice.runs.items += first;
	slice.runs.count = after - first;
	return slice;
}

/* The costs of what is left of the recording. */
static void subtract_cost(struct prb_profile_cost *cost, const struct prb_profile_cost *before)
{
	cost->stops -= before->stops;
	cost->pause_total -= before->pause_total;
	cost->own_cpu -= before->own_cpu;
	cost->times -= before->times;
	cost->late -= before->late;
	cost->missed -= before->missed;
	cost->unreadable -= before->unreadable;
	cost->again -= before->again;
}

static struct prb_error *write_runs(struct prb_store *store, struct prb_recording *r, int64_t shift)
{
	const __typeof__(r->runs) runs = r->runs;
	const struct prb_run *run;
	prb_auto_free struct prb_run *copy = calloc(runs.count + 1, sizeof(*copy));
	prb_auto_free struct prb_profile_thread *threads =
		calloc(r->threads.count + 1, sizeof(*threads));

	if (!copy || !threads)
		return prb_error_nomem();
	memcpy(threads, r->threads.items, r->threads.count * sizeof(*threads));
	for (size_t i = 0; i < r->threads.count; i++)
		threads[i].cpu = 0;
	r->threads.items = threads;
	memcpy(copy, runs.items, runs.count * sizeof(*copy));
	r->runs.items = copy;
	for (size_t i = 0; i < runs.count; i++)
		copy[i].begin = copy[i].begin > shift ? copy[i].begin - shift : 0;
	for (run = copy; run < copy + runs.count; run++)
		threads[run->thread].cpu += run->cpu;
	PRB_TRY(prb_store_begin(store, r));
	return prb_store_finish(store, r);
}

static char *file_name(const struct prb_recording *r)
{
	return prb_format("probing-%d-%s" PRB_STORE_EXTENSION, (int)r->pid,
			  prb_local_time(time(NULL), PRB_LOCAL_STAMP).text);
}

struct prb_error *prb_top_save(struct prb_top *top)
{
	prb_auto_store struct prb_store *store = NULL;
	prb_auto_free char *path = NULL;
	struct prb_recording r;
	const struct prb_top_part *first = top->parts.items;

	if (!top->parts.count)
		return NULL;
	r = prb_top_slice(top, 0, top->parts.count);
	path = file_name(&r);
	if (!path)
		return prb_error_nomem();
	r.started += (double)first->begin / 1e9;
	r.duration -= first->begin;
	if (first->begin) {
		subtract_cost(&r.cost, &first->cost);
		r.process_cpu = -1; /* unknown for the first part */
	}
	PRB_TRY(prb_store_create(path, &store));
	PRB_TRY(write_runs(store, &r, first->begin));
	prb_str_truncate(&top->message, 0);
	prb_str_printf(&top->message, "%s: ", path);
	prb_text_duration(&top->message, (double)r.duration / 1e9);
	return NULL;
}

void prb_top_deinit(struct prb_top *top)
{
	prb_vec_free(&top->parts);
	prb_str_deinit(&top->message);
	prb_str_deinit(&top->stack);
	free(top->filter);
	if (top->regex)
		prb_regex_destroy(top->regex);
}

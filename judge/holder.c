/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "judge/holder.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "dwarf/elf/module.h"
#include "judge/facts.h"
#include "judge/limits.h"
#include "python/python.h"
#include "target/mem/view.h"
#include "values/census/growth.h"

/* The time between the two censuses, as a part of that in which the growth was seen; seconds that
 * one may take, and until the next search. */
static const double APART = 1.0 / 6, MOST_WALK = 8, AGAIN = 600;

/* Both censuses take at most this part of the machine's free memory: it may be the last. */
enum { OBJECT_BYTES = 2 * 60, FREE_PART = 10, MOST_OBJECTS = 4000000, LEAST_OBJECTS = 100000 };

/* What holds less than this part of the growth explains nothing. */
static const double LEAST_PART = 0.25, LEAST_BYTES = 64 << 10;

struct prb_holder {
	struct prb_holding found;
	double began; /* monotonic; 0: never */
	double resident;
	/* While a search runs; all NULL otherwise. */
	struct prb_target *target;
	struct prb_view *view;
	struct prb_modules *modules;
	struct prb_pythons pythons;
	struct prb_python *py;
	uint64_t interp;
	struct prb_census *before;
};

static void close_search(struct prb_holder *h)
{
	prb_census_destroy(prb_steal(&h->before));
	prb_pythons_deinit(&h->pythons);
	h->pythons = (struct prb_pythons){};
	prb_view_destroy(prb_steal(&h->view));
	prb_modules_destroy(prb_steal(&h->modules));
	prb_target_destroy(prb_steal(&h->target));
}

void prb_holder_destroy(struct prb_holder *h)
{
	if (!h)
		return;
	close_search(h);
	free(h->found.name);
	free(h);
}

/* Memory that grows by steps may not seem to for a moment. */
void prb_case_end_search(struct prb_case *c)
{
	struct prb_holder *h = c->holder;

	if (!h || !h->before || prb_clock_seconds() < h->began + prb_limit(PRB_LIMIT_LEAK_FOR))
		return;
	close_search(h);
	h->began = 0;
}

/* As many objects as there is room for; 0: there is none. */
static uint64_t most_objects(void)
{
	prb_auto_fclose FILE *file = fopen("/proc/meminfo", "re");
	unsigned long long number = 0;

	/* Behind the lines of MemTotal and MemFree. */
	if (!file || fscanf(file, "%*[^\n] %*[^\n] MemAvailable: %llu", &number) != 1)
		return 0;
	number = number * 1024 / FREE_PART / OBJECT_BYTES;
	return number < LEAST_OBJECTS ? 0 : PRB_MIN(number, (unsigned long long)MOST_OBJECTS);
}

static struct prb_error *walk(struct prb_holder *h, struct prb_census **ret)
{
	const struct prb_census_limits limits = {most_objects(), MOST_WALK};

	if (!limits.max_objects)
		return prb_error_create(PRB_ERROR_FAILED, "too little memory is free");
	return prb_census_create(h->py, h->target->mem, h->interp, &limits, ret);
}

/* The process with a single interpreter: which one's objects grow is not known otherwise. */
static struct prb_error *open_python(struct prb_holder *h, pid_t pid)
{
	struct prb_py_threads threads;

	PRB_TRY(prb_target_open_process(pid, &h->target));
	PRB_TRY(prb_view_create(h->target->mem, &h->view));
	PRB_TRY(prb_pythons_open(h->target, h->view, true, &h->modules, &h->pythons));
	if (h->pythons.list.count != 1)
		return prb_error_create(PRB_ERROR_UNSUPPORTED, "it has several Pythons");
	h->py = h->pythons.list.items[0];
	PRB_TRY(prb_python_threads(h->py, prb_view_mem(h->view), &threads));
	h->interp = threads.interps.count == 1 ? threads.interps.items[0].address : 0;
	prb_py_threads_deinit(&threads);
	return h->interp ? NULL
			 : prb_error_create(PRB_ERROR_UNSUPPORTED, "it has several interpreters");
}

static struct prb_error *begin(struct prb_holder *h, pid_t pid)
{
	PRB_TRY(open_python(h, pid));
	h->resident = prb_resident_bytes(h->target);
	return walk(h, &h->before);
}

static struct prb_error *take_name(struct prb_census *after, const struct prb_growth_holder *held,
				   struct prb_holding *ret)
{
	prb_auto_str struct prb_str name = {};

	if (held->count > 1 && held->pattern)
		prb_str_puts(&name, held->pattern);
	else if (held->object != PRB_CENSUS_NONE)
		PRB_TRY(prb_census_path(after, held->object, &name));
	else if (held->root)
		prb_text_escape(&name, held->root);
	if (!name.length)
		return NULL;
	ret->name = prb_str_take(&name);
	return ret->name ? NULL : prb_error_nomem();
}

/* What was missed by either census might be what grows: then nothing is known. */
struct prb_error *prb_holding_find(struct prb_census *before, struct prb_census *after,
				   double seconds, struct prb_holding *ret)
{
	struct prb_growth growth = {};
	struct prb_error *err = NULL;

	if (prb_census_doubt(before) || prb_census_doubt(after))
		return NULL;
	PRB_TRY(prb_growth_create(before, after, 1, &growth));
	ret->seconds = seconds;
	ret->in_objects = (double)growth.bytes;
	if (growth.holders.count) {
		const struct prb_growth_holder *held = &growth.holders.items[0];

		ret->bytes = (double)held->bytes;
		if (ret->bytes >= PRB_MAX(LEAST_PART * ret->grown, LEAST_BYTES))
			err = take_name(after, held, ret);
	}
	prb_growth_deinit(&growth);
	return err;
}

static struct prb_error *end(struct prb_holder *h, double seconds)
{
	prb_auto_census struct prb_census *after = NULL;

	PRB_TRY(walk(h, &after));
	free(prb_steal(&h->found.name));
	h->found = (struct prb_holding){.grown = prb_resident_bytes(h->target) - h->resident};
	return prb_holding_find(h->before, after, seconds, &h->found);
}

/* One step, if it is time for it. */
static struct prb_error *search(struct prb_case *c, struct prb_holder *h)
{
	const double now = prb_clock_seconds();
	const int64_t used = prb_clock_thread_ns();
	struct prb_error *err;

	if (h->before ? now < h->began + APART * prb_limit(PRB_LIMIT_LEAK_FOR)
		      : h->began > 0 && now < h->began + AGAIN)
		return NULL;
	if (h->before) {
		err = end(h, now - h->began);
		close_search(h);
	} else {
		h->began = now;
		err = begin(h, c->pid);
		if (err)
			close_search(h);
	}
	c->walks->left -= (double)(prb_clock_thread_ns() - used) / 1e9;
	c->walks->took += prb_clock_seconds() - now;
	return prb_error_tolerate(err, NULL);
}

struct prb_error *prb_case_holder(struct prb_case *c, const struct prb_holding **ret)
{
	static const struct prb_holding nothing = {};

	*ret = &nothing;
	if (!c->walks || !c->pid || !prb_case_is_here(c))
		return NULL;
	if (!c->holder)
		c->holder = calloc(1, sizeof(*c->holder));
	if (!c->holder)
		return prb_error_nomem();
	*ret = &c->holder->found;
	return c->walks->left > 0 ? search(c, c->holder) : NULL;
}

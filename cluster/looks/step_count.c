/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cluster/looks/step_count.h"

#include "base/cleanup.h"
#include "values/census/torch_steps.h"
#include "values/interpreters.h"

/* A rank with more objects than can be read in this time is not counted. */
static const double MOST_SECONDS = 5;

struct reading {
	struct prb_mem *mem; /* no view: the census is too large to be kept */
	uint64_t optimizer, step;
	bool found, search;
};

static struct prb_error *read_step(void *context, const struct prb_inside *inside)
{
	const struct prb_census_limits limits = {.max_seconds = MOST_SECONDS};
	struct reading *reading = context;
	prb_auto_census struct prb_census *census = NULL;
	prb_auto_error struct prb_error *err = NULL;
	uint64_t modules = 0;

	if (reading->found)
		return NULL;
	if (reading->search) {
		err = prb_inside_find(inside, "torch.optim.Optimizer", &modules);
		if (err || !modules)
			return NULL;
		err = prb_census_create(inside->py, reading->mem, inside->interp, &limits, &census);
		if (!err)
			err = prb_torch_counter(census, inside->py, reading->mem,
						&reading->optimizer);
	}
	if (!err && reading->optimizer) {
		err = prb_torch_steps(inside->py, reading->mem, reading->optimizer, &reading->step);
		reading->found = !err;
	}
	return err && err->code == PRB_ERROR_NOMEM ? prb_steal(&err) : NULL;
}

struct prb_error *prb_step_count_begin(struct prb_target *target, struct prb_step_count *count)
{
	struct reading reading = {.search = true};

	if (!target)
		return NULL;
	reading.mem = target->mem;
	PRB_TRY(prb_inside_each(target, NULL, read_step, &reading));
	if (!reading.found)
		return NULL;
	/* The search took its time. */
	reading = (struct reading){.mem = target->mem, .optimizer = reading.optimizer};
	PRB_TRY(prb_inside_each(target, NULL, read_step, &reading));
	if (reading.found)
		*count = (struct prb_step_count){reading.optimizer, reading.step};
	return NULL;
}

struct prb_error *prb_step_count_end(struct prb_target *target, const struct prb_step_count *count,
				     long *ret)
{
	struct reading reading = {.mem = target->mem, .optimizer = count->optimizer};

	*ret = -1;
	PRB_TRY(prb_inside_each(target, NULL, read_step, &reading));
	if (reading.found && reading.step >= count->first)
		*ret = (long)(reading.step - count->first);
	return NULL;
}

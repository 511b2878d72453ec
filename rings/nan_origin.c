/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "rings/nan_origin.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "rings/last_step.h"
#include "rings/rows.h"

/* Positions of the columns; -1: there is none. */
struct search {
	struct prb_nan_origin *found;
	int step, kind, module, class, nan, infinite, elements, inputs, parameters;
};

static int64_t number(const struct prb_ring_item *row, int column)
{
	return prb_ring_has(row, column) ? (int64_t)row->cells[column] : 0;
}

static void note_output(const struct search *at, const struct prb_ring_item *row,
			struct prb_nan_origin *ret)
{
	ret->step = number(row, at->step);
	prb_ring_copy_text(row, at->module, ret->module, sizeof(ret->module));
	prb_ring_copy_text(row, at->class, ret->class, sizeof(ret->class));
	ret->nan = number(row, at->nan);
	ret->infinite = number(row, at->infinite);
	ret->elements = number(row, at->elements);
	ret->inputs = number(row, at->inputs);
	prb_ring_copy_text(row, at->parameters, ret->parameters, sizeof(ret->parameters));
}

/** Rows come in the order in which they were written: outputs of a step before its loss. */
static struct prb_error *note(void *context, const struct prb_ring_item *row)
{
	const struct search *at = context;
	struct prb_nan_origin *ret = at->found;
	char kind[16];
	const int64_t step = number(row, at->step);

	prb_ring_copy_text(row, at->kind, kind, sizeof(kind));
	if (!strcmp(kind, "output")) {
		/* Of an earlier step whose loss was a number it says nothing. */
		if (ret->step < 0 || (ret->loss_step < 0 && ret->step != step))
			note_output(at, row, ret);
		return NULL;
	}
	if (strcmp(kind, "loss") != 0)
		return NULL;
	if (!number(row, at->nan) && !number(row, at->infinite)) {
		ret->loss_step = ret->step = -1;
		return NULL;
	}
	ret->loss_step = step;
	if (ret->step != step)
		ret->step = -1;
	return NULL;
}

static struct prb_error *begin(void *context, struct prb_ring *ring, bool *wanted)
{
	struct search *at = context;

	if (!prb_ring_is(ring, "python", "torch_nan"))
		return NULL;
	*at = (struct search){at->found,
			      prb_ring_column(ring, "step", PRB_RING_INTEGER),
			      prb_ring_column(ring, "kind", PRB_RING_TEXT),
			      prb_ring_column(ring, "module", PRB_RING_TEXT),
			      prb_ring_column(ring, "class", PRB_RING_TEXT),
			      prb_ring_column(ring, "nan", PRB_RING_INTEGER),
			      prb_ring_column(ring, "inf", PRB_RING_INTEGER),
			      prb_ring_column(ring, "elements", PRB_RING_INTEGER),
			      prb_ring_column(ring, "inputs_odd", PRB_RING_INTEGER),
			      prb_ring_column(ring, "parameters", PRB_RING_TEXT)};
	*wanted = at->step >= 0 && at->kind >= 0;
	return NULL;
}

struct prb_error *prb_nan_origin_find(struct prb_target *target, struct prb_nan_origin *ret)
{
	struct search search = {.found = ret};
	struct prb_last_step last = {};

	*ret = (struct prb_nan_origin){.loss_step = -1, .step = -1};
	PRB_TRY(prb_ring_visit(target, &(struct prb_ring_visit){begin, note, &search}));
	if (ret->loss_step < 0)
		return NULL;
	PRB_TRY(prb_last_step(target, INT64_MAX, &last));
	if (last.number >= ret->loss_step)
		ret->steps = (double)last.number - (double)ret->loss_step + 1;
	return NULL;
}

static const char *what(const struct prb_nan_origin *origin)
{
	return origin->nan || !origin->infinite ? "NaN" : "infinity";
}

void prb_nan_origin_text(const struct prb_nan_origin *origin, struct prb_str *s)
{
	prb_str_printf(s, "the loss is no finite number since step %lld",
		       (long long)origin->loss_step);
	if (origin->step < 0)
		return;
	/* What a step with such a loss has done to the parameters hides where it came from. */
	if (origin->step > origin->loss_step && *origin->parameters) {
		prb_str_printf(s, "; parameters were none at step %lld, when modules were checked",
			       (long long)origin->step);
		return;
	}
	prb_str_printf(s, "; the first module with %s in its output was `", what(origin));
	prb_text_escape(s, origin->module);
	prb_str_puts(s, "`");
	if (origin->inputs)
		prb_str_puts(s, ", which got it with its input");
}

void prb_nan_origin_evidence(const struct prb_nan_origin *origin, struct prb_str *s)
{
	if (origin->step < 0) {
		prb_str_puts(s, "no output of a module was checked since; it is in timed steps "
				"(probing.torch.profiling)");
		return;
	}
	prb_text_escape(s, origin->module);
	prb_str_puts(s, ": ");
	prb_text_escape(s, origin->class);
	prb_str_printf(
		s, " at step %lld: %lld of %lld elements of its output were NaN, %lld infinite; ",
		(long long)origin->step, (long long)origin->nan, (long long)origin->elements,
		(long long)origin->infinite);
	if (origin->inputs)
		prb_str_printf(s, "so were elements of %lld inputs", (long long)origin->inputs);
	else
		prb_str_puts(s, "its inputs were finite");
	prb_str_puts(s, *origin->parameters ? "; of its parameters these were not finite: "
					    : "; its own parameters were finite");
	prb_text_escape(s, origin->parameters);
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "rings/nan_origin.h"

#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "rings/files.h"
#include "rings/last_step.h"
#include "rings/ring_private.h"

/* Positions of the columns; -1: there is none. */
struct columns {
	int step, kind, module, class, nan, infinite, elements, inputs, parameters;
};

static int find_column(const struct prb_ring *ring, const char *name, uint32_t type)
{
	for (uint32_t i = 0; i < ring->header.column_count; i++)
		if (!strcmp(ring->columns[i].name, name) && ring->columns[i].type == type)
			return (int)i;
	return -1;
}

static int64_t number(const struct prb_ring_item *row, int column)
{
	return column < 0 || row->nulls >> column & 1 ? 0 : (int64_t)row->cells[column];
}

/* What fits; the text of a row does not end with a NUL. */
static void copy_text(const struct prb_ring_item *row, int column, char *ret, size_t size)
{
	size_t length = 0;

	if (column >= 0 && row->texts[column])
		length = PRB_MIN((size_t)row->lengths[column], size - 1);
	if (length)
		memcpy(ret, row->texts[column], length);
	ret[length] = '\0';
}

static void note_output(const struct columns *at, const struct prb_ring_item *row,
			struct prb_nan_origin *ret)
{
	ret->step = number(row, at->step);
	copy_text(row, at->module, ret->module, sizeof(ret->module));
	copy_text(row, at->class, ret->class, sizeof(ret->class));
	ret->nan = number(row, at->nan);
	ret->infinite = number(row, at->infinite);
	ret->elements = number(row, at->elements);
	ret->inputs = number(row, at->inputs);
	copy_text(row, at->parameters, ret->parameters, sizeof(ret->parameters));
}

/** Rows come in the order in which they were written: outputs of a step before its loss. */
static void note(const struct columns *at, const struct prb_ring_item *row,
		 struct prb_nan_origin *ret)
{
	char kind[16];
	const int64_t step = number(row, at->step);

	copy_text(row, at->kind, kind, sizeof(kind));
	if (!strcmp(kind, "output")) {
		/* Of an earlier step whose loss was a number it says nothing. */
		if (ret->step < 0 || (ret->loss_step < 0 && ret->step != step))
			note_output(at, row, ret);
		return;
	}
	if (strcmp(kind, "loss") != 0)
		return;
	if (!number(row, at->nan) && !number(row, at->infinite)) {
		ret->loss_step = ret->step = -1;
		return;
	}
	ret->loss_step = step;
	if (ret->step != step)
		ret->step = -1;
}

static struct prb_error *read_ring(struct prb_ring_files *files, size_t index,
				   struct prb_nan_origin *ret)
{
	const struct prb_ring_range always = PRB_RING_ALWAYS;
	prb_auto_ring struct prb_ring *ring = NULL;
	struct prb_ring_item row;
	struct columns at;
	bool more = true;

	PRB_TRY(prb_ring_files_open(files, index, &ring));
	if (ring->cold || strcmp(ring->header.schema, "python") != 0 ||
	    strcmp(ring->header.name, "torch_nan") != 0)
		return NULL;
	at = (struct columns){find_column(ring, "step", PRB_RING_INTEGER),
			      find_column(ring, "kind", PRB_RING_TEXT),
			      find_column(ring, "module", PRB_RING_TEXT),
			      find_column(ring, "class", PRB_RING_TEXT),
			      find_column(ring, "nan", PRB_RING_INTEGER),
			      find_column(ring, "inf", PRB_RING_INTEGER),
			      find_column(ring, "elements", PRB_RING_INTEGER),
			      find_column(ring, "inputs_odd", PRB_RING_INTEGER),
			      find_column(ring, "parameters", PRB_RING_TEXT)};
	if (at.step < 0 || at.kind < 0)
		return NULL;
	for (;;) {
		PRB_TRY(prb_ring_next_chunk(ring, &always, &more));
		if (!more)
			return NULL;
		while (prb_ring_next_row(ring, &row))
			if (!files->pid || row.pid == files->pid)
				note(&at, &row, ret);
	}
}

struct prb_error *prb_nan_origin_find(struct prb_target *target, struct prb_nan_origin *ret)
{
	struct prb_ring_files files = {};
	struct prb_last_step last = {};
	struct prb_error *err = prb_ring_files_find(target, &files);

	*ret = (struct prb_nan_origin){.loss_step = -1, .step = -1};
	for (size_t i = 0; !err && i < files.list.count; i++) {
		err = read_ring(&files, i, ret);
		if (err && err->code != PRB_ERROR_NOMEM)
			prb_error_destroy(prb_steal(&err));
	}
	prb_ring_files_deinit(&files);
	PRB_TRY(err);
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

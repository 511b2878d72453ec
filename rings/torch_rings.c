/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "rings/torch_rings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/map.h"
#include "rings/files.h"

enum { NAME = 1024 };
/** No count of a real process is higher, and sums of such numbers do not overflow. */
static const int64_t highest = (int64_t)1 << 53;

/** A column by its name, of a type that it must have; < 0: there is none. */
static int find(const struct prb_ring *ring, const char *name, enum prb_ring_type type)
{
	for (uint32_t i = 0; i < ring->header.column_count; i++)
		if (!strcmp(ring->columns[i].name, name) && ring->columns[i].type == type)
			return (int)i;
	return -1;
}

static bool has(const struct prb_ring_item *row, int column)
{
	return column >= 0 && !(row->nulls >> column & 1);
}

static int64_t integer(const struct prb_ring_item *row, int column)
{
	int64_t value = has(row, column) ? (int64_t)row->cells[column] : -1;

	return value > highest ? -1 : value;
}

static double real(const struct prb_ring_item *row, int column)
{
	double value;

	if (!has(row, column))
		return NAN;
	memcpy(&value, &row->cells[column], sizeof(value));
	return value >= 0 && value < 1e12 ? value : NAN;
}

/** A difference of bytes; NaN: not known. */
static double change(const struct prb_ring_item *row, int column)
{
	int64_t value = has(row, column) ? (int64_t)row->cells[column] : INT64_MAX;

	return value > highest || value < -highest ? NAN : (double)value;
}

static struct prb_error *text(const struct prb_ring_item *row, int column, struct prb_pool *pool,
			      const char **ret)
{
	char buffer[NAME];
	size_t length;

	*ret = NULL;
	if (!has(row, column) || !row->texts[column])
		return NULL;
	length = PRB_MIN((size_t)row->lengths[column], sizeof(buffer) - 1);
	memcpy(buffer, row->texts[column], length);
	buffer[length] = 0;
	return prb_pool_share(pool, buffer, ret);
}

static enum prb_torch_call_stage stage_named(const char *name)
{
	static const char *const names[PRB_TORCH_CALL_STAGES] = {
		[PRB_TORCH_CALL_FORWARD] = "forward",	[PRB_TORCH_CALL_RECOMPUTE] = "recompute",
		[PRB_TORCH_CALL_BACKWARD] = "backward", [PRB_TORCH_CALL_OPTIMIZER] = "optimizer",
		[PRB_TORCH_CALL_DATA] = "data",		[PRB_TORCH_CALL_EVALUATION] = "evaluation",
	};
	unsigned i = 0;

	while (i < PRB_TORCH_CALL_STAGES && (!name || strcmp(name, names[i]) != 0))
		i++;
	return (enum prb_torch_call_stage)i;
}

static struct prb_error *add_step(const struct prb_ring *ring, const struct prb_ring_item *row,
				  struct prb_torch_rings *ret)
{
	const char *kind;
	struct prb_torch_step_row step = {
		.step = integer(row, find(ring, "step", PRB_RING_INTEGER)),
		.local = integer(row, find(ring, "local_step", PRB_RING_INTEGER)),
		.micro = integer(row, find(ring, "micro_steps", PRB_RING_INTEGER)),
		.calls = integer(row, find(ring, "calls", PRB_RING_INTEGER)),
		.duration = real(row, find(ring, "duration", PRB_RING_REAL)),
		.data = real(row, find(ring, "data", PRB_RING_REAL)),
		.forward = real(row, find(ring, "forward", PRB_RING_REAL)),
		.evaluation = real(row, find(ring, "evaluation", PRB_RING_REAL)),
		.backward = real(row, find(ring, "backward", PRB_RING_REAL)),
		.optimizer = real(row, find(ring, "optimizer", PRB_RING_REAL)),
		.communication = real(row, find(ring, "communication", PRB_RING_REAL)),
		.own = real(row, find(ring, "own", PRB_RING_REAL)),
		.ended = row->time,
	};
	struct prb_torch_step_row *place;

	PRB_TRY(text(row, find(ring, "kind", PRB_RING_TEXT), ret->pool, &kind));
	if (!kind || !isfinite(step.duration) || step.local < 0)
		return NULL;
	step.kind = *kind;
	place = prb_vec_push(&ret->steps);
	if (!place)
		return prb_error_nomem();
	*place = step;
	return NULL;
}

static struct prb_error *add_call(const struct prb_ring *ring, const struct prb_ring_item *row,
				  struct prb_torch_rings *ret)
{
	const char *stage;
	struct prb_torch_call_row call = {
		.local = integer(row, find(ring, "local_step", PRB_RING_INTEGER)),
		.seq = integer(row, find(ring, "seq", PRB_RING_INTEGER)),
		.parent = integer(row, find(ring, "parent", PRB_RING_INTEGER)),
		.duration = real(row, find(ring, "duration", PRB_RING_REAL)),
		.offset = real(row, find(ring, "time_offset", PRB_RING_REAL)),
		.memory = NAN,
		.tid = row->tid,
	};
	struct prb_torch_call_row *place;

	PRB_TRY(text(row, find(ring, "stage", PRB_RING_TEXT), ret->pool, &stage));
	PRB_TRY(text(row, find(ring, "module", PRB_RING_TEXT), ret->pool, &call.module));
	PRB_TRY(text(row, find(ring, "class", PRB_RING_TEXT), ret->pool, &call.class));
	call.stage = stage_named(stage);
	if (call.stage == PRB_TORCH_CALL_STAGES || !isfinite(call.duration) ||
	    !isfinite(call.offset) || call.local < 0 || call.seq < 0 || call.parent >= call.seq)
		return NULL;
	if (!call.module)
		PRB_TRY(prb_pool_share(ret->pool, "?", &call.module));
	if (has(row, find(ring, "cached", PRB_RING_INTEGER)))
		call.memory = change(row, find(ring, "allocated_delta", PRB_RING_INTEGER));
	place = prb_vec_push(&ret->calls);
	if (!place)
		return prb_error_nomem();
	*place = call;
	return NULL;
}

static struct prb_error *add_gpu(const struct prb_ring *ring, const struct prb_ring_item *row,
				 struct prb_torch_rings *ret)
{
	const char *stage;
	struct prb_torch_gpu_row gpu = {
		.local = integer(row, find(ring, "local_step", PRB_RING_INTEGER)),
		.seq = integer(row, find(ring, "seq", PRB_RING_INTEGER)),
		.duration = real(row, find(ring, "duration", PRB_RING_REAL)),
	};
	struct prb_torch_gpu_row *place;

	PRB_TRY(text(row, find(ring, "stage", PRB_RING_TEXT), ret->pool, &stage));
	gpu.stage = stage_named(stage);
	if (gpu.local < 0 || gpu.seq < 0 || !isfinite(gpu.duration) ||
	    (gpu.stage == PRB_TORCH_CALL_STAGES && (!stage || strcmp(stage, "step") != 0)))
		return NULL;
	place = prb_vec_push(&ret->gpu);
	if (!place)
		return prb_error_nomem();
	*place = gpu;
	return NULL;
}

typedef struct prb_error *add_row(const struct prb_ring *ring, const struct prb_ring_item *row,
				  struct prb_torch_rings *ret);

static const struct {
	const char *name;
	add_row *add;
} rings_of_torch[] = {
	{"torch_step_timing", add_step},
	{"torch_calls", add_call},
	{"torch_gpu", add_gpu},
};

/** Of the kind that @p add adds. */
static size_t count_rows(const struct prb_torch_rings *rings, add_row *add)
{
	return add == add_step	 ? rings->steps.count
	       : add == add_call ? rings->calls.count
				 : rings->gpu.count;
}

static struct prb_error *read_ring(struct prb_ring *ring, add_row *add, uint32_t pid, int64_t since,
				   struct prb_torch_rings *ret)
{
	const struct prb_ring_range range = {since, INT64_MAX};
	struct prb_ring_item row;
	bool more;

	for (;;) {
		PRB_TRY(prb_ring_next_chunk(ring, &range, &more));
		if (!more)
			return NULL;
		while (prb_ring_next_row(ring, &row)) {
			if (row.time < since || (pid && row.pid != pid))
				continue;
			if (count_rows(ret, add) == PRB_TORCH_MOST_ROWS)
				return NULL;
			PRB_TRY(add(ring, &row, ret));
		}
	}
}

static struct prb_error *read_file(struct prb_ring_files *files, size_t index, int64_t since,
				   struct prb_torch_rings *ret)
{
	prb_auto_ring struct prb_ring *ring = NULL;

	PRB_TRY(prb_ring_files_open(files, index, &ring));
	for (size_t i = 0; i < PRB_ARRAY_SIZE(rings_of_torch); i++) {
		if (strcmp(ring->header.schema, "python") != 0 ||
		    strcmp(ring->header.name, rings_of_torch[i].name) != 0)
			continue;
		size_t before = ret->calls.count;

		ret->found = true;
		PRB_TRY(read_ring(ring, rings_of_torch[i].add, files->pid, since, ret));
		if (!ring->cold && ret->calls.count > before)
			ret->first_call = PRB_MAX(ret->first_call, ret->calls.items[before].local);
		return prb_ring_files_ended(files, ring);
	}
	return NULL;
}

static bool is_of_a_module(const struct prb_torch_call_row *call)
{
	return call->stage == PRB_TORCH_CALL_FORWARD || call->stage == PRB_TORCH_CALL_RECOMPUTE ||
	       call->stage == PRB_TORCH_CALL_EVALUATION;
}

/** How many calls of modules there are of each step, by its local number. */
static struct prb_error *count_calls(const struct prb_torch_rings *rings,
				     struct prb_number_map *ret)
{
	const struct prb_torch_call_row *call;

	prb_vec_each (call, &rings->calls) {
		size_t count = 0;

		if (!is_of_a_module(call))
			continue;
		(void)prb_number_map_get(ret, (uint64_t)call->local, &count);
		if (!prb_number_map_put(ret, (uint64_t)call->local, count + 1))
			return prb_error_nomem();
	}
	return NULL;
}

/** A call that an exception has left has no row either, so newer steps are taken for whole. */
static struct prb_error *mark_cut(struct prb_torch_rings *rings)
{
	struct prb_number_map counts = {};
	struct prb_error *err = count_calls(rings, &counts);
	struct prb_torch_step_row *step;

	prb_vec_each (step, &rings->steps) {
		size_t count = 0;

		(void)prb_number_map_get(&counts, (uint64_t)step->local, &count);
		step->cut = step->kind != 'u' && (int64_t)count < step->calls &&
			    (!count || step->local <= rings->first_call);
	}
	prb_number_map_deinit(&counts);
	return err;
}

static int compare(const void *a, const void *b)
{
	const struct prb_torch_gpu_row *one = a, *other = b;

	if (one->local != other->local)
		return one->local < other->local ? -1 : 1;
	if (one->seq != other->seq)
		return one->seq < other->seq ? -1 : 1;
	return one->stage < other->stage ? -1 : one->stage > other->stage;
}

double prb_torch_rings_gpu(const struct prb_torch_rings *rings, int64_t local, int64_t seq,
			   enum prb_torch_call_stage stage)
{
	const struct prb_torch_gpu_row key = {local, seq, stage, 0}, *found;

	if (!rings->gpu.count)
		return NAN;
	found = bsearch(&key, rings->gpu.items, rings->gpu.count, sizeof(key), compare);
	return found ? found->duration : NAN;
}

struct prb_error *prb_torch_rings_read(struct prb_target *target, int64_t since,
				       struct prb_torch_rings *ret)
{
	struct prb_ring_files files = {};
	struct prb_error *err;

	*ret = (struct prb_torch_rings){};
	PRB_TRY(prb_pool_create(&ret->pool));
	err = prb_ring_files_find(target, &files);
	for (size_t i = 0; !err && i < files.list.count; i++) {
		err = read_file(&files, i, since, ret);
		/* Another ring of the process may be damaged. */
		if (err && err->code != PRB_ERROR_NOMEM)
			prb_error_destroy(prb_steal(&err));
	}
	prb_ring_files_deinit(&files);
	if (!err)
		err = mark_cut(ret);
	if (!err && ret->gpu.count)
		qsort(ret->gpu.items, ret->gpu.count, sizeof(*ret->gpu.items), compare);
	return err;
}

void prb_torch_rings_deinit(struct prb_torch_rings *rings)
{
	prb_vec_free(&rings->steps);
	prb_vec_free(&rings->calls);
	prb_vec_free(&rings->gpu);
	prb_pool_destroy(rings->pool);
	*rings = (struct prb_torch_rings){};
}

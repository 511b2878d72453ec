/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The tree of calls of modules, summed up over the steps that were sampled. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/map.h"
#include "cli/commands/perf/torch/exact/exact.h"

enum { NONE = PRB_EXACT_NONE };
/** Limits: the rings are the process's, so untrusted. */
enum { DEEPEST = 200, MOST_NODES = 1 << 17 };

struct maker {
	const struct prb_torch_rings *rings;
	struct prb_exact *exact;
	/** Of the rows of a step: index of its call by seq. */
	struct prb_number_map forward;
	struct prb_number_map nodes;	/* by index of the row: the node */
	struct prb_number_map sampled;	/* steps, by local number */
	struct prb_number_map on_gpu;	/* steps with known GPU times, the same */
	struct prb_number_map children; /* nodes, by a hash of module and parent */
	struct prb_number_map trained;	/* the first node of a module, by the address of its name */
};

static struct prb_error *add_node(struct maker *m, uint32_t parent,
				  const struct prb_torch_call_row *row, uint32_t *ret)
{
	struct prb_exact *e = m->exact;
	struct prb_exact_node *node = prb_vec_push(&e->nodes);
	uint32_t *first, *last;

	if (!node)
		return prb_error_nomem();
	*ret = (uint32_t)e->nodes.count - 1;
	first = parent == NONE ? &e->first : &e->nodes.items[parent].first;
	last = parent == NONE ? &e->last : &e->nodes.items[parent].last;
	*node = (struct prb_exact_node){
		.parent = parent,
		.first = NONE,
		.last = NONE,
		.next = NONE,
		.path = row->module,
		.class = row->class,
		.depth = parent == NONE ? 0 : e->nodes.items[parent].depth + 1,
		.evaluation = row->stage == PRB_TORCH_CALL_EVALUATION,
	};
	if (*last == NONE)
		*first = *ret;
	else
		e->nodes.items[*last].next = *ret;
	*last = *ret;
	return NULL;
}

/** The child of @p parent (NONE: an outermost node) for that module; created if missing. */
static struct prb_error *child_of(struct maker *m, uint32_t parent,
				  const struct prb_torch_call_row *row, uint32_t *ret)
{
	const bool evaluates = row->stage == PRB_TORCH_CALL_EVALUATION;
	/* Names are shared, so equal names have the same address. */
	uint64_t key = ((uint64_t)(uintptr_t)row->module * 0x9e3779b97f4a7c15u ^
			(uint64_t)(uintptr_t)row->class) *
			       0xbf58476d1ce4e5b9u ^
		       parent ^ (uint64_t)evaluates << 40;
	size_t number;

	for (; prb_number_map_get(&m->children, key, &number); key++) {
		const struct prb_exact_node *node = &m->exact->nodes.items[number];

		*ret = (uint32_t)number;
		if (node->parent == parent && node->path == row->module &&
		    node->class == row->class && node->evaluation == evaluates)
			return NULL;
	}
	*ret = NONE;
	if (m->exact->nodes.count >= MOST_NODES)
		return NULL;
	PRB_TRY(add_node(m, parent, row, ret));
	if (row->stage == PRB_TORCH_CALL_FORWARD &&
	    !prb_number_map_get(&m->trained, (uintptr_t)row->module, &number) &&
	    !prb_number_map_put(&m->trained, (uintptr_t)row->module, *ret))
		return prb_error_nomem();
	return prb_number_map_put(&m->children, key, *ret) ? NULL : prb_error_nomem();
}

/** No call with a row has called it: backward did, or a call that an exception has left. */
static bool is_outer(const struct maker *m, const struct prb_torch_call_row *row)
{
	size_t above;

	return row->parent < 0 || !prb_number_map_get(&m->forward, (uint64_t)row->parent, &above);
}

/** Checkpointing calls it again, from backward, and may leave it early by an exception. */
static bool is_outer_recompute(const struct maker *m, const struct prb_torch_call_row *row)
{
	return row->stage == PRB_TORCH_CALL_RECOMPUTE && is_outer(m, row);
}

/**
 * Rows are in the order of their numbers, so the node of the parent, whose number is lower, exists.
 * NONE: too many nodes.
 */
static struct prb_error *node_of(struct maker *m, size_t index, uint32_t *ret)
{
	const struct prb_torch_call_row *row = &m->rings->calls.items[index];
	size_t above, node;
	uint32_t parent = NONE;

	if (row->parent >= 0 && prb_number_map_get(&m->forward, (uint64_t)row->parent, &above) &&
	    prb_number_map_get(&m->nodes, above, &node) &&
	    m->exact->nodes.items[node].depth < DEEPEST)
		parent = (uint32_t)node;
	if (is_outer_recompute(m, row) &&
	    prb_number_map_get(&m->trained, (uintptr_t)row->module, &node))
		*ret = (uint32_t)node;
	else
		PRB_TRY(child_of(m, parent, row, ret));
	if (*ret == NONE)
		return NULL;
	return prb_number_map_put(&m->nodes, index, *ret) ? NULL : prb_error_nomem();
}

static bool is_module(const struct prb_torch_call_row *row)
{
	return row->class &&
	       (row->stage <= PRB_TORCH_CALL_BACKWARD || row->stage == PRB_TORCH_CALL_EVALUATION);
}

/** The agent gives no names to modules and calls beyond its limits. */
static bool is_unnamed(const struct prb_torch_call_row *row)
{
	return !row->class &&
	       (row->stage <= PRB_TORCH_CALL_RECOMPUTE || row->stage == PRB_TORCH_CALL_EVALUATION);
}

static double known(double value)
{
	return isfinite(value) ? value : 0;
}

static bool is_on_gpu(const struct maker *m, int64_t local)
{
	size_t index;

	return prb_number_map_get(&m->on_gpu, (uint64_t)local, &index);
}

static void count(const struct maker *m, uint32_t index, const struct prb_torch_call_row *row)
{
	struct prb_exact *e = m->exact;
	struct prb_exact_node *node = &e->nodes.items[index];
	struct prb_exact_node *above = node->parent == NONE ? NULL : &e->nodes.items[node->parent];
	double gpu = 0;

	if (is_on_gpu(m, row->local))
		gpu = known(prb_torch_rings_gpu(m->rings, row->local, row->seq, row->stage));

	*(row->stage == PRB_TORCH_CALL_BACKWARD ? &node->gpu_backward : &node->gpu_forward) += gpu;
	if (row->stage == PRB_TORCH_CALL_BACKWARD) {
		node->backward += row->duration;
		node->self_backward += row->duration;
		if (above)
			above->self_backward -= row->duration;
		return;
	}
	node->calls += row->stage != PRB_TORCH_CALL_RECOMPUTE;
	node->memory += known(row->memory);
	e->gpu_memory |= isfinite(row->memory);
	*(row->stage == PRB_TORCH_CALL_RECOMPUTE ? &node->recompute : &node->forward) +=
		row->duration;
	node->self_forward += row->duration;
	if (above)
		*(is_outer_recompute(m, row) ? &above->self_backward : &above->self_forward) -=
			row->duration;
}

double prb_exact_total(const struct prb_exact_node *node)
{
	return node->forward + node->backward + node->recompute - node->overlap;
}

/**
 * Rows come in the order of their ends. What is called again before its backward ends, and after
 * that began, is a part of it.
 */
static void match_recompute(struct prb_exact *e, uint32_t index,
			    const struct prb_torch_call_row *row)
{
	struct prb_exact_node *node = &e->nodes.items[index];
	struct prb_exact_node *above = node->parent == NONE ? NULL : &e->nodes.items[node->parent];

	if (node->pending_step != row->local)
		node->pending = 0;
	node->pending_step = row->local;
	if (row->stage == PRB_TORCH_CALL_RECOMPUTE) {
		if (!(node->pending > 0))
			node->pending_from = row->offset;
		node->pending += row->duration;
	}
	if (row->stage != PRB_TORCH_CALL_BACKWARD || !(node->pending > 0))
		return;
	if (row->offset <= node->pending_from) {
		node->overlap += node->pending;
		node->self_backward -= node->pending;
		if (above)
			above->self_backward += node->pending;
	}
	node->pending = 0;
}

/** Calls are in the order of their ends; nodes must be in the order of their beginnings. */
struct place {
	int64_t seq;
	size_t index;
};

static int compare(const void *a, const void *b)
{
	const struct place *one = a, *other = b;

	if (one->seq != other->seq)
		return one->seq < other->seq ? -1 : 1;
	return one->index < other->index ? -1 : one->index > other->index;
}

/** Adds the rows from @p begin to @p end, all of one step. */
static struct prb_error *add_step(struct maker *m, size_t begin, size_t end)
{
	prb_auto_free struct place *places = calloc(end - begin + 1, sizeof(*places));
	size_t count_of = 0;

	if (!places)
		return prb_error_nomem();
	prb_number_map_deinit(&m->forward);
	m->forward = (struct prb_number_map){};
	for (size_t i = begin; i < end; i++) {
		const struct prb_torch_call_row *row = &m->rings->calls.items[i];

		m->exact->unnamed += is_unnamed(row);
		m->exact->loader |=
			row->stage == PRB_TORCH_CALL_DATA && !strcmp(row->module, "data loading");
		if (!is_module(row))
			continue;
		places[count_of++] = (struct place){row->seq, i};
		if (row->stage != PRB_TORCH_CALL_BACKWARD &&
		    !prb_number_map_put(&m->forward, (uint64_t)row->seq, i))
			return prb_error_nomem();
	}
	qsort(places, count_of, sizeof(*places), compare);
	for (size_t i = 0; i < count_of; i++) {
		const struct prb_torch_call_row *row = &m->rings->calls.items[places[i].index];
		uint32_t node;

		PRB_TRY(node_of(m, places[i].index, &node));
		if (node != NONE)
			count(m, node, row);
		else
			m->exact->unnamed += row->stage != PRB_TORCH_CALL_BACKWARD;
	}
	for (size_t i = begin; i < end; i++) {
		size_t node;

		if (prb_number_map_get(&m->nodes, i, &node))
			match_recompute(m->exact, (uint32_t)node, &m->rings->calls.items[i]);
	}
	return NULL;
}

static struct prb_error *add_calls(struct maker *m)
{
	size_t begin = 0, index;

	for (size_t i = 0; i <= m->rings->calls.count; i++) {
		const struct prb_torch_call_row *first = &m->rings->calls.items[begin];

		if (i < m->rings->calls.count && m->rings->calls.items[i].local == first->local)
			continue;
		if (i > begin && prb_number_map_get(&m->sampled, (uint64_t)first->local, &index))
			PRB_TRY(add_step(m, begin, i));
		begin = i;
	}
	return NULL;
}

static int compare_numbers(const void *a, const void *b)
{
	double one = *(const double *)a, other = *(const double *)b;

	return one < other ? -1 : one > other;
}

/** The quantile @p at of the values; NaN if there are none. */
static double quantile(double *values, size_t count_of, double at)
{
	if (!count_of)
		return NAN;
	qsort(values, count_of, sizeof(*values), compare_numbers);
	return values[PRB_MIN(count_of - 1, (size_t)(at * (double)count_of))];
}

static struct prb_error *add_medians(const struct prb_torch_rings *rings, struct prb_exact *e)
{
	size_t most = rings->steps.count, sampled = 0, others = 0;
	prb_auto_free double *values = calloc(4 * most + 4, sizeof(*values));
	double *one = values, *other = values + most, *all = other + most, *own = all + most;
	const struct prb_torch_step_row *step;
	size_t any = 0;

	if (!values)
		return prb_error_nomem();
	prb_vec_each (step, &rings->steps) {
		if (step->kind == 's') {
			own[sampled] = known(step->own) / 1e3;
			one[sampled++] = step->duration;
		} else if (step->kind == 'u') {
			other[others++] = step->duration;
		}
		all[any++] = step->duration;
	}
	e->others = others;
	e->sampled = quantile(one, sampled, 0.5);
	e->own = quantile(own, sampled, 0.5);
	e->unsampled = quantile(other, others, 0.5);
	e->p50 = quantile(all, any, 0.5);
	e->p99 = quantile(all, any, 0.99);
	return NULL;
}

/**
 * A step's own row is its last one: without it the agent had no room, and rows of calls are missing
 * too.
 */
static struct prb_error *find_gpu_steps(struct maker *m)
{
	const struct prb_torch_gpu_row *row;
	size_t index;

	prb_vec_each (row, &m->rings->gpu) {
		if (!prb_number_map_get(&m->sampled, (uint64_t)row->local, &index))
			continue;
		m->exact->gpu_seen = true;
		if (row->stage != PRB_TORCH_CALL_STAGES)
			continue;
		m->exact->gpu_steps++;
		m->exact->gpu += row->duration;
		if (!prb_number_map_put(&m->on_gpu, (uint64_t)row->local, 1))
			return prb_error_nomem();
	}
	return NULL;
}

static struct prb_error *add_gpu(struct maker *m)
{
	const struct prb_torch_gpu_row *row;

	PRB_TRY(find_gpu_steps(m));
	prb_vec_each (row, &m->rings->gpu)
		if (row->stage == PRB_TORCH_CALL_OPTIMIZER && is_on_gpu(m, row->local))
			m->exact->gpu_optimizer += row->duration;
	return NULL;
}

static struct prb_error *all_cut(const struct prb_torch_rings *rings, const struct prb_exact *e)
{
	const struct prb_torch_step_row *step;
	int64_t calls = 0;

	prb_vec_each (step, &rings->steps)
		calls = step->kind == 's' ? PRB_MAX(calls, step->calls) : calls;
	return prb_error_hint(
		prb_error_create(PRB_ERROR_NOT_FOUND,
				 "none of %llu timed steps is complete: a step has up to %lld "
				 "calls, and the ring of the process drops the oldest",
				 (unsigned long long)e->cut, (long long)calls),
		"'--steps 1' needs the least room; 'probing record PID', started before, stores "
		"what the ring drops");
}

static struct prb_error *add_steps(struct maker *m)
{
	struct prb_exact *e = m->exact;
	const struct prb_torch_step_row *step;

	prb_vec_each (step, &m->rings->steps) {
		if (step->kind != 's')
			continue;
		e->cut += step->cut;
		if (step->cut)
			continue;
		if (!prb_number_map_put(&m->sampled, (uint64_t)step->local, 1))
			return prb_error_nomem();
		e->steps++;
		e->micro += step->micro > 0 ? (uint64_t)step->micro : 0;
		/* The hooks' own time belongs to no part of the step. */
		e->duration += fmax(step->duration - known(step->own) / 1e3, 0);
		e->data += known(step->data);
		e->forward += known(step->forward);
		e->evaluation += known(step->evaluation);
		e->backward += known(step->backward);
		e->optimizer += known(step->optimizer);
		e->communication += known(step->communication);
	}
	PRB_TRY(add_gpu(m));
	if (!e->steps && e->cut)
		return all_cut(m->rings, e);
	if (!e->steps)
		return prb_error_create(PRB_ERROR_NOT_FOUND, "no training step ended meanwhile");
	return add_medians(m->rings, e);
}

struct prb_error *prb_exact_make(const struct prb_torch_rings *rings, struct prb_exact *ret)
{
	struct maker m = {.rings = rings, .exact = ret};
	struct prb_error *err;

	*ret = (struct prb_exact){.first = NONE, .last = NONE};
	err = add_steps(&m);
	if (!err)
		err = add_calls(&m);
	prb_number_map_deinit(&m.forward);
	prb_number_map_deinit(&m.nodes);
	prb_number_map_deinit(&m.sampled);
	prb_number_map_deinit(&m.on_gpu);
	prb_number_map_deinit(&m.children);
	prb_number_map_deinit(&m.trained);
	if (err)
		prb_exact_deinit(ret);
	return err;
}

void prb_exact_deinit(struct prb_exact *exact)
{
	prb_vec_free(&exact->nodes);
}

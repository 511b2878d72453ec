/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The timed steps as a recording by module, for the same file formats as a sampled recording
 * (profile/recording/by_module.h). Between two edges (a call begins or ends), the step is in the
 * innermost open call.
 *
 * Times exclude the agent's own time, so that calls of forward nest. In backward a module that
 * waits for another gradient is open beside others; the deepest one counts.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/map.h"
#include "cli/commands/perf/torch/exact/exact.h"
#include "profile/recording/by_module.h"

/** Limits: the rings are the process's, so untrusted. */
enum { DEEPEST = 200, MOST_OPEN = 1000, MOST_CALLS = 1 << 19 };
static const int64_t latest = (int64_t)1 << 60; /* ns since the first step */

/** A call begins or ends. */
struct edge {
	int64_t at; /* ns since the step began */
	uint32_t call;
	bool begins;
};

struct maker {
	const struct prb_torch_rings *rings;
	struct prb_recording *to;
	const struct prb_torch_call_row *calls; /* of the step */
	size_t count;
	struct prb_number_map by_seq; /* indices of `calls` */
	PRB_VEC(struct edge) edges;
	PRB_VEC(uint32_t) open;
	int64_t end; /* end of the last run */
};

static void maker_deinit(struct maker *m)
{
	prb_number_map_deinit(&m->by_seq);
	prb_vec_free(&m->edges);
	prb_vec_free(&m->open);
}

static int64_t nanoseconds(double milliseconds)
{
	/* Bounds the time, so that sums cannot overflow. */
	return (int64_t)(fmin(milliseconds, 1e9) * 1e6);
}

static int compare(const void *a, const void *b)
{
	const struct edge *one = a, *other = b;

	if (one->at != other->at)
		return one->at < other->at ? -1 : 1;
	if (one->begins != other->begins)
		return one->begins ? 1 : -1;
	return one->call < other->call ? -1 : one->call > other->call;
}

static struct prb_error *push(struct maker *m, enum prb_function_kind kind, const char *name,
			      uint32_t *stack)
{
	const struct prb_tree_function function = {.kind = kind, .name = name};
	uint32_t number, frame;

	PRB_TRY(prb_tree_function(m->to->tree, &function, &number));
	PRB_TRY(prb_tree_frame(m->to->tree, number, 0, &frame));
	return prb_tree_call(m->to->tree, *stack, frame, stack);
}

static struct prb_error *push_module(struct maker *m, const struct prb_torch_call_row *call,
				     uint32_t *stack)
{
	prb_auto_str struct prb_str text = {};

	prb_str_printf(&text, "%s: %s", call->module, call->class);
	if (text.failed)
		return prb_error_nomem();
	return push(m, PRB_FUNCTION_PYTHON, prb_str_text(&text), stack);
}

static enum prb_step_part part_of(const struct prb_torch_call_row *call)
{
	static const enum prb_step_part parts[PRB_TORCH_CALL_STAGES] = {
		[PRB_TORCH_CALL_FORWARD] = PRB_STEP_FORWARD,
		[PRB_TORCH_CALL_RECOMPUTE] = PRB_STEP_BACKWARD,
		[PRB_TORCH_CALL_BACKWARD] = PRB_STEP_BACKWARD,
		[PRB_TORCH_CALL_OPTIMIZER] = PRB_STEP_OPTIMIZER,
		[PRB_TORCH_CALL_DATA] = PRB_STEP_DATA,
		[PRB_TORCH_CALL_EVALUATION] = PRB_STEP_EVALUATION,
	};

	return call ? parts[call->stage] : PRB_STEP_OTHER;
}

/**
 * The stack of a call: the part of the step, and the modules from the outermost to the call's. @p
 * call NULL: no module.
 */
static struct prb_error *stack_of(struct maker *m, const struct prb_torch_call_row *call,
				  uint32_t *stack)
{
	const struct prb_torch_call_row *chain[DEEPEST];
	size_t depth = 0, above;

	*stack = 0;
	PRB_TRY(push(m, PRB_FUNCTION_NOTE, prb_step_part_name(part_of(call)), stack));
	/* Terminates, since a parent's number is lower. */
	while (call && call->class && depth < DEEPEST) {
		chain[depth++] = call;
		call = call->parent >= 0 && prb_number_map_get(&m->by_seq, (uint64_t)call->parent,
							       &above)
			       ? &m->calls[above]
			       : NULL;
	}
	while (depth--)
		PRB_TRY(push_module(m, chain[depth], stack));
	return NULL;
}

static size_t depth_of(const struct maker *m, const struct prb_torch_call_row *call)
{
	size_t depth = 0, above;

	while (call->parent >= 0 && depth < DEEPEST &&
	       prb_number_map_get(&m->by_seq, (uint64_t)call->parent, &above)) {
		call = &m->calls[above];
		depth++;
	}
	return depth;
}

/** The innermost open call, or NULL. Recomputed forward calls win over open backward calls. */
static const struct prb_torch_call_row *innermost(const struct maker *m)
{
	const struct prb_torch_call_row *found = NULL;
	size_t deepest = 0;
	const uint32_t *index;

	prb_vec_each (index, &m->open) {
		const struct prb_torch_call_row *call = &m->calls[*index];
		size_t depth = depth_of(m, call) +
			       (call->stage == PRB_TORCH_CALL_BACKWARD ? 0 : DEEPEST + 1);

		if (found &&
		    (depth < deepest || (depth == deepest && call->offset <= found->offset)))
			continue;
		found = call;
		deepest = depth;
	}
	return found;
}

static struct prb_error *put_run(struct maker *m, int64_t begin, int64_t end)
{
	struct prb_run *run;
	uint32_t stack;

	if (end <= begin)
		return NULL;
	PRB_TRY(stack_of(m, innermost(m), &stack));
	run = prb_vec_push(&m->to->runs);
	if (!run)
		return prb_error_nomem();
	*run = (struct prb_run){
		.stack = stack, .samples = 1, .reads = 1, .begin = begin, .wall = end - begin};
	m->end = end;
	return NULL;
}

static struct prb_error *pass_edge(struct maker *m, const struct edge *edge)
{
	uint32_t *added;

	if (edge->begins && m->open.count < MOST_OPEN) {
		added = prb_vec_push(&m->open);
		if (!added)
			return prb_error_nomem();
		*added = edge->call;
	}
	for (size_t i = 0; !edge->begins && i < m->open.count; i++) {
		if (m->open.items[i] != edge->call)
			continue;
		m->open.items[i] = m->open.items[--m->open.count];
		break;
	}
	return NULL;
}

static struct prb_error *add_edge(struct maker *m, int64_t at, size_t call, bool begins)
{
	struct edge *edge = prb_vec_push(&m->edges);

	if (!edge)
		return prb_error_nomem();
	*edge = (struct edge){at, (uint32_t)call, begins};
	return NULL;
}

static struct prb_error *list_edges(struct maker *m)
{
	m->edges.count = m->open.count = 0;
	prb_number_map_deinit(&m->by_seq);
	m->by_seq = (struct prb_number_map){};
	for (size_t i = 0; i < m->count; i++) {
		const struct prb_torch_call_row *call = &m->calls[i];
		int64_t begin = nanoseconds(call->offset);

		/* The first row of a module's call is forward's; either row has the caller. */
		if (call->class && !prb_number_map_put(&m->by_seq, (uint64_t)call->seq, i))
			return prb_error_nomem();
		PRB_TRY(add_edge(m, begin, i, true));
		PRB_TRY(add_edge(m, begin + nanoseconds(call->duration), i, false));
	}
	if (m->edges.count)
		qsort(m->edges.items, m->edges.count, sizeof(*m->edges.items), compare);
	return NULL;
}

/** Finds the calls of a step, which are consecutive in the list. */
static void find_calls(struct maker *m, int64_t local, size_t *next)
{
	const size_t all = m->rings->calls.count;

	while (*next < all && m->rings->calls.items[*next].local < local)
		(*next)++;
	m->calls = m->rings->calls.items + *next;
	for (m->count = 0; *next < all && m->rings->calls.items[*next].local == local; (*next)++)
		m->count++;
	m->count = PRB_MIN(m->count, (size_t)MOST_CALLS);
}

static struct prb_error *add_step(struct maker *m, const struct prb_torch_step_row *step,
				  int64_t begin)
{
	const double own = isfinite(step->own) ? step->own / 1e3 : 0;
	const int64_t duration = nanoseconds(fmax(step->duration - own, 0));
	int64_t at = 0;
	const struct edge *edge;

	PRB_TRY(list_edges(m));
	prb_vec_each (edge, &m->edges) {
		int64_t to = PRB_MIN(edge->at, duration);

		PRB_TRY(put_run(m, begin + at, begin + to));
		at = PRB_MAX(at, to);
		PRB_TRY(pass_edge(m, edge));
	}
	m->open.count = 0;
	return put_run(m, begin + at, begin + duration);
}

static struct prb_error *add_steps(struct maker *m)
{
	const struct prb_torch_step_row *step;
	int64_t first = -1;
	size_t next = 0;

	prb_vec_each (step, &m->rings->steps) {
		int64_t begin = step->ended - nanoseconds(step->duration);

		if (step->kind != 's' || step->cut)
			continue;
		if (first < 0)
			first = PRB_MAX(begin, 0);
		if (m->end > latest || begin - first > latest)
			continue;
		find_calls(m, step->local, &next);
		/* Steps may seem to overlap, as their clocks are not read at the same point. */
		PRB_TRY(add_step(m, step, PRB_MAX(begin - first, m->end)));
	}
	m->to->started = (double)first / 1e9;
	m->to->duration = m->end;
	return NULL;
}

static struct prb_error *add_about(struct maker *m, const struct prb_exact_about *about)
{
	struct prb_profile_thread *thread = prb_vec_push(&m->to->threads);

	if (!thread)
		return prb_error_nomem();
	thread->tid = about->pid;
	m->to->pid = about->pid;
	m->to->process_cpu = -1;
	PRB_TRY(prb_str_copy("timed steps", &thread->name));
	PRB_TRY(prb_str_copy(about->command, &m->to->command));
	return prb_str_copy(about->python, &m->to->python);
}

struct prb_error *prb_exact_recording(const struct prb_torch_rings *rings,
				      const struct prb_exact_about *about,
				      struct prb_recording **ret)
{
	prb_auto_recording struct prb_recording *to = NULL;
	__attribute__((cleanup(maker_deinit))) struct maker m = {.rings = rings};

	PRB_TRY(prb_recording_create(&to));
	m.to = to;
	PRB_TRY(add_about(&m, about));
	PRB_TRY(add_steps(&m));
	*ret = prb_steal(&to);
	return NULL;
}

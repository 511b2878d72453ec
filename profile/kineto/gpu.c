/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile/kineto/gpu.h"

#include <stdlib.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/map.h"

enum { MOST_DEVICES = 64 };
/** As the verdicts of `perf --torch`: of a smaller part nobody gains much. */
static const double LEAST_IDLE = 0.15;

/** Something begins or ends on a GPU. */
struct edge {
	int64_t at, launched; /* launched: when the call that launched it began; < 0: unknown */
	enum prb_kineto_kind kind;
	bool begins;
};

struct edges {
	PRB_VEC(struct edge) list;
};

static int compare(const void *a, const void *b)
{
	const struct edge *one = a, *other = b;

	if (one->at != other->at)
		return one->at < other->at ? -1 : 1;
	return (one->begins > other->begins) - (one->begins < other->begins);
}

/** Nothing runs. Until the next one was launched the host was late; then that waited for a stream.
 */
static void pass_idle(struct prb_kineto_gpu *gpu, int64_t from, int64_t to, const struct edge *next)
{
	int64_t late = to - from;

	if (next && next->launched >= 0)
		late = PRB_MIN(PRB_MAX(next->launched - from, 0), late);
	gpu->for_host += late;
	gpu->for_other += to - from - late;
}

/** Time passes while so many of each kind run, and `next` begins next. */
static void pass(struct prb_kineto_gpu *gpu, const unsigned *running, int64_t from, int64_t to,
		 const struct edge *next)
{
	const bool computes = running[PRB_KINETO_KERNEL], collects = running[PRB_KINETO_COLLECTIVE];
	const int64_t time = to - from;

	gpu->computes += computes ? time : 0;
	gpu->collectives += collects ? time : 0;
	gpu->overlap += computes && collects ? time : 0;
	if (computes)
		return;
	if (collects)
		gpu->for_collective += time;
	else if (running[PRB_KINETO_COPY] || running[PRB_KINETO_SET])
		gpu->for_copy += time;
	else
		pass_idle(gpu, from, to, next);
}

static void sum(const struct prb_kineto *trace, const struct edges *edges,
		struct prb_kineto_gpu *gpu)
{
	unsigned running[PRB_KINETO_KINDS] = {};
	int64_t at = trace->first_step;
	const struct edge *edge;

	gpu->total = trace->last_step - trace->first_step;
	prb_vec_each (edge, &edges->list) {
		const int64_t to = PRB_MAX(PRB_MIN(edge->at, trace->last_step), at);

		pass(gpu, running, at, to, edge);
		at = to;
		if (edge->begins)
			running[edge->kind]++;
		else if (running[edge->kind])
			running[edge->kind]--;
	}
	pass(gpu, running, at, PRB_MAX(trace->last_step, at), NULL);
}

static struct prb_error *add(struct edges *edges, const struct prb_kineto_event *e,
			     int64_t launched)
{
	struct edge *edge = prb_vec_push(&edges->list);

	if (!edge)
		return prb_error_nomem();
	*edge = (struct edge){e->begin, launched, e->kind, true};
	edge = prb_vec_push(&edges->list);
	if (!edge)
		return prb_error_nomem();
	*edge = (struct edge){e->begin + e->duration, -1, e->kind, false};
	return NULL;
}

static struct prb_error *note_launches(const struct prb_kineto *trace, struct prb_number_map *ret)
{
	for (size_t i = 0; i < trace->events.count; i++) {
		const struct prb_kineto_event *e = &trace->events.items[i];

		if (e->kind == PRB_KINETO_LAUNCH && e->correlation >= 0 &&
		    !prb_number_map_put(ret, (uint64_t)e->correlation, i))
			return prb_error_nomem();
	}
	return NULL;
}

static struct prb_error *list_edges(const struct prb_kineto *trace,
				    const struct prb_number_map *launches, int64_t device,
				    struct edges *ret)
{
	const struct prb_kineto_event *e;

	prb_vec_each (e, &trace->events) {
		size_t launch;
		bool known = prb_kineto_on_gpu(e->kind) && e->correlation >= 0 &&
			     prb_number_map_get(launches, (uint64_t)e->correlation, &launch);

		if (prb_kineto_on_gpu(e->kind) && e->device == device)
			PRB_TRY(add(ret, e, known ? trace->events.items[launch].begin : -1));
	}
	if (ret->list.count)
		qsort(ret->list.items, ret->list.count, sizeof(*ret->list.items), compare);
	return NULL;
}

static struct prb_error *find_devices(const struct prb_kineto *trace, struct prb_kineto_gpus *ret)
{
	const struct prb_kineto_event *e;
	struct prb_kineto_gpu *gpu, *added;

	prb_vec_each (e, &trace->events) {
		bool known = !prb_kineto_on_gpu(e->kind) || e->device < 0;

		prb_vec_each (gpu, &ret->list)
			known |= gpu->device == e->device;
		if (known || ret->list.count >= MOST_DEVICES)
			continue;
		added = prb_vec_push(&ret->list);
		if (!added)
			return prb_error_nomem();
		added->device = e->device;
	}
	return NULL;
}

struct prb_error *prb_kineto_gpus(const struct prb_kineto *trace, struct prb_kineto_gpus *ret)
{
	struct prb_number_map launches = {};
	struct prb_error *err;
	struct prb_kineto_gpu *gpu;

	*ret = (struct prb_kineto_gpus){};
	err = find_devices(trace, ret);
	if (!err && ret->list.count)
		err = note_launches(trace, &launches);
	prb_vec_each (gpu, &ret->list) {
		struct edges edges = {};

		if (!err)
			err = list_edges(trace, &launches, gpu->device, &edges);
		if (!err)
			sum(trace, &edges, gpu);
		prb_vec_free(&edges.list);
	}
	prb_number_map_deinit(&launches);
	return err;
}

void prb_kineto_gpu_verdict(const struct prb_kineto_gpu *gpu, struct prb_str *s)
{
	const struct {
		int64_t time;
		const char *because, *evidence, *refuted_by;
	} causes[] = {
		{gpu->for_host, "Python launches too slowly",
		 "nothing ran and the next kernel was not launched yet",
		 "a larger batch, or CUDA graphs, with which steps are not faster"},
		{gpu->for_copy, "it waits for copies of memory", "only copies ran",
		 "pinned memory and copies in a stream of their own, with which steps are not "
		 "faster"},
		{gpu->for_collective, "it waits for other ranks, or the network",
		 "only collectives ran", "a run on one rank with the same idle time"},
		{gpu->for_other, "kernels wait for another stream",
		 "nothing ran though a kernel was launched",
		 "a profile of another tool without such gaps"},
	};
	const double whole = (double)PRB_MAX(gpu->total, 1),
		     share = 1 - (double)gpu->computes / whole;
	size_t most = 0;

	for (size_t i = 1; i < PRB_ARRAY_SIZE(causes); i++)
		if (causes[i].time > causes[most].time)
			most = i;
	if (share < LEAST_IDLE || gpu->total <= 0)
		return;
	prb_str_printf(s,
		       "GPU %lld is idle %.0f %% of a step: %s\n  evidence: for %.0f %% of the "
		       "time %s\n  refuted by: %s\n",
		       (long long)gpu->device, 100 * share, causes[most].because,
		       100 * (double)causes[most].time / whole, causes[most].evidence,
		       causes[most].refuted_by);
}

void prb_kineto_gpus_deinit(struct prb_kineto_gpus *gpus)
{
	prb_vec_free(&gpus->list);
}

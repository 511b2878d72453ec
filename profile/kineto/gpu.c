/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile/kineto/gpu.h"

#include <stdlib.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/map.h"

enum { MOST_DEVICES = 64 };

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

void prb_kineto_gpus_deinit(struct prb_kineto_gpus *gpus)
{
	prb_vec_free(&gpus->list);
}

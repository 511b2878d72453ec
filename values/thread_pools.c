/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "values/thread_pools.h"

#include <stdlib.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "python/repr/core/items.h"
#include "values/interpreters.h"
#include "values/part.h"

enum { MOST_TASKS = 4096 };

struct reading {
	const struct prb_inside *inside;
	struct prb_parts *parts;
	struct prb_thread_pool *pool;
	PRB_VEC(uint64_t) tasks; /* the objects in the queue */
	bool failed;
};

void prb_thread_pool_deinit(struct prb_thread_pool *pool)
{
	prb_vec_free(&pool->candidates);
	prb_vec_free(&pool->running);
	prb_vec_free(&pool->awaited);
}

static struct prb_error *part(struct reading *r, uint64_t object, enum prb_part part,
			      const char *name, const struct prb_part_answer **ret)
{
	const struct prb_part_wanted wanted = {.object = object, .part = part, .name = name};
	bool needs_code;

	return prb_parts_read(r->parts, &wanted, ret, &needs_code);
}

static struct prb_error *attribute(struct reading *r, uint64_t object, const char *name,
				   uint64_t *ret)
{
	const struct prb_part_answer *answer;

	PRB_TRY(part(r, object, PRB_PART_ATTRIBUTE, name, &answer));
	*ret = answer->object;
	return NULL;
}

static struct prb_error *take_number(const struct prb_part_answer *answer, int64_t *ret)
{
	*ret = answer->integer;
	return answer->kind == PRB_PART_INT
		       ? NULL
		       : prb_error_create(PRB_ERROR_BAD_DATA, "no number is there");
}

static struct prb_error *number(struct reading *r, uint64_t object, const char *name, int64_t *ret)
{
	const struct prb_part_answer *answer;

	PRB_TRY(part(r, object, PRB_PART_ATTRIBUTE, name, &answer));
	return take_number(answer, ret);
}

static bool note_task(void *context, uint64_t key __attribute__((unused)), uint64_t task)
{
	struct reading *r = context;
	uint64_t *place = r->tasks.count < MOST_TASKS ? prb_vec_push(&r->tasks) : NULL;

	r->failed = !place;
	if (place)
		*place = task;
	return place;
}

static bool note_first(void *context, uint64_t key __attribute__((unused)), uint64_t item)
{
	*(uint64_t *)context = item;
	return false;
}

static struct prb_error *items(struct reading *r, uint64_t object, prb_item_visit *visit,
			       void *context)
{
	bool torn;

	PRB_TRY(prb_object_items(r->inside->py, r->inside->mem, object, true, visit, context,
				 &torn));
	return torn ? prb_error_create(PRB_ERROR_BAD_DATA, "it is being changed") : NULL;
}

/* The number of a job: of a ThreadPool's task (a tuple), or of a result. */
static struct prb_error *job_of_task(struct reading *r, uint64_t task, int64_t *ret)
{
	const struct prb_part_answer *answer;
	uint64_t job = 0;

	*ret = -1;
	PRB_TRY(items(r, task, note_first, &job));
	if (!job)
		return NULL;
	PRB_TRY(part(r, job, PRB_PART_SELF, NULL, &answer));
	return take_number(answer, ret);
}

static struct prb_error *note_job(struct reading *r, struct prb_awaited *awaited)
{
	int64_t job, other;
	const uint64_t *task;

	PRB_TRY(number(r, awaited->object, "_job", &job));
	prb_vec_each (task, &r->tasks) {
		PRB_TRY(job_of_task(r, *task, &other));
		awaited->queued = awaited->queued || other == job;
	}
	prb_vec_each (task, &r->pool->running) {
		const struct prb_part_answer *answer;

		PRB_TRY(part(r, *task, PRB_PART_SELF, NULL, &answer));
		PRB_TRY(take_number(answer, &other));
		awaited->running = awaited->running || other == job;
	}
	return NULL;
}

static struct prb_error *note_future(struct reading *r, struct prb_awaited *awaited)
{
	const uint64_t *task;
	uint64_t future;

	prb_vec_each (task, &r->tasks) {
		PRB_TRY(attribute(r, *task, "future", &future));
		awaited->queued = awaited->queued || future == awaited->object;
	}
	prb_vec_each (task, &r->pool->running) {
		PRB_TRY(attribute(r, *task, "future", &future));
		awaited->running = awaited->running || future == awaited->object;
	}
	return NULL;
}

/* An executor, by the weak reference that its threads have. */
static struct prb_error *read_executor(struct reading *r)
{
	struct prb_thread_pool *pool = r->pool;
	const struct prb_layout *layout = &r->inside->py->layout;
	const struct prb_part_answer *answer;
	struct prb_awaited *awaited;
	uint64_t executor, queue, threads;

	PRB_TRY(prb_mem_read_u64(r->inside->mem, pool->reference + (uint64_t)layout->object_size,
				 &executor));
	PRB_TRY(attribute(r, executor, "_work_queue", &queue));
	if (queue != pool->queue)
		return prb_error_create(PRB_ERROR_BAD_DATA, "it has another queue");
	PRB_TRY(number(r, executor, "_max_workers", &pool->most));
	PRB_TRY(attribute(r, executor, "_threads", &threads));
	PRB_TRY(part(r, threads, PRB_PART_LENGTH, NULL, &answer));
	pool->threads = strtoll(prb_str_text(&answer->text), NULL, 10);
	prb_vec_each (awaited, &pool->awaited)
		PRB_TRY(note_future(r, awaited));
	return NULL;
}

/* The pool that has to give a result: before Python 3.8, the one whose cache has it; 0: unknown. */
static struct prb_error *pool_of_result(struct reading *r, uint64_t result, uint64_t *ret)
{
	const uint64_t *candidate;
	uint64_t cache, other;
	bool failed = false;

	*ret = 0;
	PRB_TRY(prb_error_tolerate(attribute(r, result, "_pool", ret), &failed));
	if (!failed)
		return NULL;
	PRB_TRY(attribute(r, result, "_cache", &cache));
	prb_vec_each (candidate, &r->pool->candidates) {
		PRB_TRY(attribute(r, *candidate, "_cache", &other));
		if (other != cache)
			continue;
		*ret = *candidate;
		break;
	}
	return NULL;
}

/* A ThreadPool, by a result of it. Another thread moves its tasks from one queue to the other. */
static struct prb_error *read_pool(struct reading *r)
{
	struct prb_thread_pool *pool = r->pool;
	const struct prb_part_answer *answer;
	struct prb_awaited *awaited;

	prb_vec_each (awaited, &pool->awaited) {
		uint64_t object, queue, threads;

		if (!awaited->object)
			continue;
		PRB_TRY(pool_of_result(r, awaited->object, &object));
		if (!object)
			continue;
		PRB_TRY(attribute(r, object, "_inqueue", &queue));
		if (queue != pool->queue)
			continue;
		PRB_TRY(number(r, object, "_processes", &pool->most));
		PRB_TRY(attribute(r, object, "_pool", &threads));
		PRB_TRY(part(r, threads, PRB_PART_LENGTH, NULL, &answer));
		pool->threads = strtoll(prb_str_text(&answer->text), NULL, 10);
		PRB_TRY(note_job(r, awaited));
	}
	return NULL;
}

static struct prb_error *read_inside(void *context, const struct prb_inside *inside)
{
	struct reading *r = context;
	struct prb_error *err;

	r->inside = inside;
	r->tasks.count = 0;
	PRB_TRY(items(r, r->pool->queue, note_task, r));
	if (r->failed)
		return prb_error_create(PRB_ERROR_BAD_DATA, "the queue is too long");
	r->pool->queued = r->tasks.count;
	PRB_TRY(prb_parts_create(inside->py, inside->mem, &r->parts));
	err = r->pool->reference ? read_executor(r) : read_pool(r);
	prb_parts_destroy(r->parts);
	r->pool->whole = !err;
	return err;
}

struct prb_error *prb_thread_pool_read(struct prb_target *t, struct prb_thread_pool *pool)
{
	struct reading r = {.pool = pool};
	struct prb_error *err;

	pool->whole = false;
	err = prb_inside_each(t, NULL, read_inside, &r);
	prb_vec_free(&r.tasks);
	return err;
}

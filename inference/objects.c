/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Queues, requests, the KV cache and CUDA graphs of a process whose roots are known. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "inference/process.h"
#include "python/repr/core/items.h"

static const double MONOTONIC_BELOW = 1e9; /* of the epoch that is September 2001 */

enum { ID_MAX = 200, STATE_MAX = 60, SIZES_MAX = 400, MISSING_MAX = 500 };

/** The walk over the items of one container. */
struct walk {
	struct prb_server_reading *r;
	const struct prb_engine_queue *queue; /* NULL: the container of all requests */
	struct prb_classes *classes;	      /* of the requests; NULL: any */
	struct prb_number_map known;	      /* of process->requests, by address */
	int64_t count;
	bool rows; /* the items become rows */
	struct prb_error *err;
};

/** Adds what the description names and the process has not, once. */
static struct prb_error *note_missing(struct prb_server_process *p,
				      const struct prb_engine_path *path,
				      const struct prb_engine_value *value)
{
	prb_auto_str struct prb_str text = {};
	size_t before = p->missing ? strlen(p->missing) : 0;

	if (!value->missing.length || path->optional || before > MISSING_MAX)
		return NULL;
	if (p->missing && strstr(p->missing, prb_str_text(&value->missing)))
		return NULL;
	if (p->missing)
		prb_str_printf(&text, "%s; ", p->missing);
	prb_str_printf(&text, "%s: %s", path->text, prb_str_text(&value->missing));
	free(p->missing);
	p->missing = prb_str_take(&text);
	return p->missing ? NULL : prb_error_nomem();
}

static struct prb_error *read_at(struct prb_server_reading *r, const struct prb_engine_path *path,
				 struct prb_engine_value *ret)
{
	ret->kind = PRB_PART_NONE;
	if (!path->text)
		return NULL;
	PRB_TRY(prb_engine_read(&r->scope, path, ret));
	return note_missing(r->process, path, ret);
}

/** A number that is none, or negative, is not known. */
static struct prb_error *read_number(struct prb_server_reading *r,
				     const struct prb_engine_path *path, int64_t *ret)
{
	prb_auto_engine_value struct prb_engine_value value = {};

	PRB_TRY(read_at(r, path, &value));
	*ret = value.kind == PRB_PART_INT && value.integer >= 0 ? value.integer
	       : value.kind == PRB_PART_BOOL			? value.integer != 0
								: -1;
	return NULL;
}

static struct prb_error *read_text(struct prb_server_reading *r, const struct prb_engine_path *path,
				   size_t max, char **ret)
{
	prb_auto_engine_value struct prb_engine_value value = {};
	prb_auto_str struct prb_str text = {};

	PRB_TRY(read_at(r, path, &value));
	PRB_TRY(prb_engine_put_text(r->scope.parts, &value, max, &text));
	if (!text.length)
		return NULL;
	free(*ret);
	*ret = prb_str_take(&text);
	return *ret ? NULL : prb_error_nomem();
}

/**
 * Seconds since the epoch; NaN where there are none. 0 is what many write for "not yet". Engines
 * take times of either clock: no machine has been up for as long as the epoch is old.
 */
static struct prb_error *read_time(struct prb_server_reading *r, const struct prb_engine_path *path,
				   double *ret)
{
	prb_auto_engine_value struct prb_engine_value value = {};

	PRB_TRY(read_at(r, path, &value));
	*ret = value.kind == PRB_PART_FLOAT && value.real > 0 && isfinite(value.real) ? value.real
										      : NAN;
	if (*ret < MONOTONIC_BELOW)
		*ret += r->process->epoch;
	return NULL;
}

static struct prb_error *add_request(struct walk *w, uint64_t object)
{
	struct prb_server_process *p = w->r->process;
	struct prb_server_request *request;

	if (p->requests.count >= PRB_SERVER_REQUESTS_MAX) {
		p->cut = true;
		return NULL;
	}
	request = prb_vec_push(&p->requests);
	if (!request || !prb_number_map_put(&w->known, object, p->requests.count - 1))
		return prb_error_nomem();
	request->address = object;
	request->queue = w->queue ? w->queue->name : NULL;
	request->slot = w->queue ? w->count : -1;
	return NULL;
}

/** Adds the object as a request, if it is of the class of one and was not met before. */
static struct prb_error *consider(struct walk *w, uint64_t object, bool *is_one)
{
	uint32_t mask = 1;
	size_t known;

	if (w->classes)
		PRB_TRY(prb_classes_of(w->classes, object, &mask));
	*is_one = mask;
	return mask && !prb_number_map_get(&w->known, object, &known) ? add_request(w, object)
								      : NULL;
}

static bool visit_in_tuple(void *context, uint64_t key __attribute__((unused)), uint64_t value)
{
	struct walk *w = context;
	bool is_one = false;

	w->err = consider(w, value, &is_one);
	return !w->err && !is_one;
}

/** Heaps have requests behind what they are sorted by: (priority, time, request). */
static struct prb_error *consider_tuple(struct walk *w, uint64_t object)
{
	prb_auto_str struct prb_str type = {};
	struct prb_error *err;
	bool failed = false;

	PRB_TRY(prb_error_tolerate(
		prb_object_type_name(w->r->inside->py, w->r->inside->mem, object, &type), &failed));
	if (failed || strcmp(prb_str_text(&type), "tuple") != 0)
		return NULL;
	err = prb_object_items(w->r->inside->py, w->r->inside->mem, object, false, visit_in_tuple,
			       w, NULL);
	if (w->err) {
		prb_error_destroy(err);
		return prb_steal(&w->err);
	}
	return prb_error_tolerate(err, NULL);
}

static struct prb_error *visit(struct walk *w, uint64_t object)
{
	bool is_one;

	if (w->queue && w->queue->item.text) {
		struct prb_engine_scope scope = w->r->scope;
		prb_auto_engine_value struct prb_engine_value value = {};

		scope.object = object;
		PRB_TRY(prb_engine_read(&scope, &w->queue->item, &value));
		PRB_TRY(note_missing(w->r->process, &w->queue->item, &value));
		object = value.object;
	}
	if (w->rows && object) {
		PRB_TRY(consider(w, object, &is_one));
		if (!is_one)
			PRB_TRY(consider_tuple(w, object));
	}
	w->count++;
	return NULL;
}

static bool visit_item(void *context, uint64_t key __attribute__((unused)), uint64_t value)
{
	struct walk *w = context;

	w->err = visit(w, value);
	return !w->err && w->count < PRB_SERVER_REQUESTS_MAX;
}

/** *ret: whether the object has items. */
static struct prb_error *walk_items(struct walk *w, uint64_t object, bool *ret)
{
	struct prb_error *err;

	w->count = 0;
	err = prb_object_items(w->r->inside->py, w->r->inside->mem, object, false, visit_item, w,
			       NULL);
	if (w->err) {
		prb_error_destroy(err);
		return prb_steal(&w->err);
	}
	*ret = !err;
	return prb_error_tolerate(err, NULL);
}

static struct prb_error *read_queue(struct walk *w, const struct prb_engine_queue *queue)
{
	struct prb_server_queue *added = prb_vec_push(&w->r->process->queues);
	prb_auto_engine_value struct prb_engine_value value = {};
	prb_auto_str struct prb_str class = {};
	bool has_items = false;

	if (!added)
		return prb_error_nomem();
	added->name = queue->name;
	added->count = -1;
	PRB_TRY(prb_str_copy(queue->path.text, &added->path));
	PRB_TRY(read_at(w->r, &queue->path, &value));
	if (value.kind == PRB_PART_INT && value.integer >= 0)
		added->count = value.integer;
	if (!value.object || value.kind == PRB_PART_NONE || value.kind == PRB_PART_INT)
		return NULL;
	w->queue = queue;
	PRB_TRY(walk_items(w, value.object, &has_items));
	if (has_items)
		added->count = w->count;
	PRB_TRY(prb_classes_put_name(w->r->classes, value.object, &class));
	added->class = prb_str_take(&class);
	return added->class ? NULL : prb_error_nomem();
}

static struct prb_error *read_containers(struct walk *w)
{
	const struct prb_engine_part *part = w->r->process->part;
	prb_auto_engine_value struct prb_engine_value all = {};
	const struct prb_engine_queue *queue;
	bool has_items;

	prb_vec_each (queue, &part->queues)
		PRB_TRY(read_queue(w, queue));
	if (!part->all.text)
		return NULL;
	PRB_TRY(read_at(w->r, &part->all, &all));
	w->queue = NULL;
	return all.object && all.kind != PRB_PART_NONE ? walk_items(w, all.object, &has_items)
						       : NULL;
}

/** An id is a text or a number: others are shared by several requests. */
static struct prb_error *read_id(struct prb_server_reading *r, char **ret)
{
	prb_auto_engine_value struct prb_engine_value value = {};
	prb_auto_str struct prb_str text = {};

	PRB_TRY(read_at(r, &r->process->part->request[PRB_REQUEST_ID], &value));
	if (value.kind != PRB_PART_STR && value.kind != PRB_PART_INT)
		return NULL;
	PRB_TRY(prb_engine_put_text(r->scope.parts, &value, ID_MAX, &text));
	*ret = prb_str_take(&text);
	return *ret ? NULL : prb_error_nomem();
}

static struct prb_error *read_request(struct prb_server_reading *r,
				      struct prb_server_request *request)
{
	const struct prb_engine_path *columns = r->process->part->request;
	prb_auto_engine_value struct prb_engine_value priority = {};

	r->scope.object = request->address;
	r->scope.id = NULL;
	PRB_TRY(read_id(r, &request->id));
	r->scope.id = request->id;
	PRB_TRY(read_text(r, &columns[PRB_REQUEST_STATE], STATE_MAX, &request->state));
	PRB_TRY(read_text(r, &columns[PRB_REQUEST_LORA], ID_MAX, &request->lora));
	PRB_TRY(read_time(r, &columns[PRB_REQUEST_ARRIVAL], &request->arrival));
	PRB_TRY(read_time(r, &columns[PRB_REQUEST_LAST_TOKEN], &request->last_token));
	PRB_TRY(read_number(r, &columns[PRB_REQUEST_PROMPT_TOKENS], &request->prompt_tokens));
	PRB_TRY(read_number(r, &columns[PRB_REQUEST_OUTPUT_TOKENS], &request->output_tokens));
	PRB_TRY(read_number(r, &columns[PRB_REQUEST_COMPUTED_TOKENS], &request->computed_tokens));
	PRB_TRY(read_at(r, &columns[PRB_REQUEST_PRIORITY], &priority));
	request->priority = priority.kind == PRB_PART_INT ? priority.integer : INT64_MIN;
	return NULL;
}

/** True if the path begins at a root, and not at the request. */
static bool is_of_root(const struct prb_server_reading *r, const struct prb_engine_path *path)
{
	const char *name = path->text ? path->routes.items[0].steps.items[0].name : "";

	for (size_t i = 0; i < r->scope.root_count; i++)
		if (!strcmp(r->scope.roots[i].name, name))
			return true;
	return false;
}

/** Its blocks: what the request itself says, or a root by its id. */
static struct prb_error *read_blocks(struct prb_server_reading *r,
				     struct prb_server_request *request)
{
	const struct prb_engine_path *path = &r->process->part->request[PRB_REQUEST_BLOCKS];

	r->scope.object = is_of_root(r, path) ? 0 : request->address;
	r->scope.id = request->id;
	request->blocks = -1;
	return request->id ? read_number(r, path, &request->blocks) : NULL;
}

static struct prb_error *read_requests(struct prb_server_reading *r)
{
	struct prb_server_process *p = r->process;
	prb_auto_str struct prb_str class = {};
	struct prb_server_request *request;
	struct prb_error *err = NULL;

	prb_vec_each (request, &p->requests) {
		if (!err)
			err = read_request(r, request);
		if (!err)
			err = read_blocks(r, request);
	}
	r->scope.object = 0;
	r->scope.id = NULL;
	PRB_TRY(err);
	if (!p->requests.count)
		return NULL;
	PRB_TRY(prb_classes_put_name(r->classes, p->requests.items[0].address, &class));
	p->request_class = prb_str_take(&class);
	return p->request_class ? NULL : prb_error_nomem();
}

/** Adds the number of the process of one of its workers. */
static bool visit_worker(void *context, uint64_t key __attribute__((unused)), uint64_t value)
{
	struct walk *w = context;
	struct prb_server_process *p = w->r->process;
	struct prb_engine_scope scope = w->r->scope;
	prb_auto_engine_value struct prb_engine_value pid = {};
	pid_t *added = NULL;

	scope.object = value;
	w->err = prb_engine_read(&scope, &p->part->workers.item, &pid);
	if (!w->err && pid.kind == PRB_PART_INT && pid.integer > 0 && pid.integer < INT32_MAX) {
		added = prb_vec_push(&p->workers);
		if (added)
			*added = (pid_t)pid.integer;
		else
			w->err = prb_error_nomem();
	}
	return !w->err && p->workers.count < PRB_SERVER_PROCESSES_MAX;
}

static struct prb_error *read_workers(struct prb_server_reading *r)
{
	const struct prb_engine_queue *workers = &r->process->part->workers;
	prb_auto_engine_value struct prb_engine_value value = {};
	struct walk w = {.r = r};
	struct prb_error *err;

	PRB_TRY(read_at(r, &workers->path, &value));
	if (!value.object || value.kind == PRB_PART_NONE || !workers->item.text)
		return NULL;
	err = prb_object_items(r->inside->py, r->inside->mem, value.object, false, visit_worker, &w,
			       NULL);
	if (w.err) {
		prb_error_destroy(err);
		return w.err;
	}
	return prb_error_tolerate(err, NULL);
}

static struct prb_error *read_figures(struct prb_server_reading *r)
{
	struct prb_server_process *p = r->process;

	PRB_TRY(read_number(r, &p->part->limit, &p->limit));
	PRB_TRY(read_number(r, &p->part->paused, &p->paused));
	PRB_TRY(read_number(r, &p->part->preempts, &p->preempts));
	PRB_TRY(read_number(r, &p->part->peers, &p->peers));
	PRB_TRY(read_workers(r));
	for (size_t i = 0; i < PRB_KV_COLUMNS; i++)
		PRB_TRY(read_number(r, &p->part->kv[i], &p->kv[i]));
	PRB_TRY(read_number(r, &p->part->graph[PRB_GRAPH_EAGER], &p->eager));
	return read_text(r, &p->part->graph[PRB_GRAPH_SIZES], SIZES_MAX, &p->graph_sizes);
}

struct prb_error *prb_server_read_objects(struct prb_server_reading *r)
{
	const struct prb_engine_part *part = r->process->part;
	const char *const class[] = {part->class ? part->class : ""};
	struct walk w = {.r = r, .rows = part->request[PRB_REQUEST_ID].text};
	struct prb_error *err = NULL;

	if (part->class)
		err = prb_classes_create(r->inside->py, r->inside->mem, class, 1, &w.classes);
	if (!err)
		err = read_containers(&w);
	prb_classes_destroy(w.classes);
	prb_number_map_deinit(&w.known);
	PRB_TRY(err);
	PRB_TRY(read_requests(r));
	return read_figures(r);
}

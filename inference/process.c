/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads one process of a server: which part it is, what it does, and then its objects. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "dump/dump.h"
#include "dump/idle.h"
#include "inference/process.h"
#include "values/heap/heap.h"

enum { VERSION_MAX = 60, RANK_MAX = 1 << 20, TITLE_REST_MAX = 40 };

void prb_server_process_deinit(struct prb_server_process *p)
{
	struct prb_server_request *request;
	struct prb_server_queue *queue;

	prb_vec_each (request, &p->requests) {
		free(request->id);
		free(request->state);
		free(request->lora);
	}
	prb_vec_each (queue, &p->queues) {
		free(queue->class);
		free(queue->path);
	}
	prb_vec_free(&p->requests);
	prb_vec_free(&p->queues);
	prb_vec_free(&p->workers);
	prb_dump_destroy(p->dump);
	free(p->version);
	free(p->name);
	free(p->unreadable);
	free(p->missing);
	free(p->request_class);
	free(p->graph_sizes);
}

int64_t prb_server_queued(const struct prb_server_process *process, const char *queue)
{
	const struct prb_server_queue *at;

	prb_vec_each (at, &process->queues)
		if (!strcmp(at->name, queue))
			return at->count;
	return -1;
}

/** Evaluates an expression of modules; 0 if there is no such object. */
static struct prb_error *find(const struct prb_inside *inside, uint64_t *ret, const char *format,
			      const char *module)
{
	prb_auto_free char *expression = prb_format(format, module);

	*ret = 0;
	if (!expression)
		return prb_error_nomem();
	return prb_error_tolerate(prb_inside_find(inside, expression, ret), NULL);
}

static struct prb_error *find_engine(const struct prb_engines *engines,
				     const struct prb_inside *inside, const struct prb_engine **ret)
{
	struct prb_engine *const *engine;
	uint64_t module;

	*ret = NULL;
	prb_vec_each (engine, &engines->list) {
		PRB_TRY(find(inside, &module, "sys.modules['%s']", (*engine)->module));
		if (module && (!*ret || !(*engine)->hosts))
			*ret = *engine;
		if (*ret && !(*ret)->hosts)
			return NULL;
	}
	return NULL;
}

static struct prb_error *read_version(const struct prb_inside *inside, const char *module,
				      char **ret)
{
	static const char *const places[] = {"sys.modules['%s'].__version__",
					     "sys.modules['%s.version'].__version__",
					     "sys.modules['%s._version'].__version__"};
	prb_auto_free char *package = strndup(module, strcspn(module, "."));
	prb_auto_str struct prb_str text = {};
	bool failed = true;

	if (!package)
		return prb_error_nomem();
	for (size_t i = 0; i < PRB_ARRAY_SIZE(places) && failed; i++) {
		uint64_t object;

		PRB_TRY(find(inside, &object, places[i], package));
		prb_str_truncate(&text, 0);
		failed = !object;
		if (object)
			PRB_TRY(prb_error_tolerate(
				prb_object_str(inside->py, inside->mem, object, VERSION_MAX, &text),
				&failed));
	}
	if (failed)
		return NULL;
	*ret = prb_str_take(&text);
	return *ret ? NULL : prb_error_nomem();
}

struct prb_error *prb_server_find_version(const struct prb_engines *engines,
					  const struct prb_inside *inside,
					  struct prb_server_process *ret)
{
	const struct prb_engine *found;
	struct prb_engine *const *engine;

	PRB_TRY(find_engine(engines, inside, &found));
	if (!found)
		return NULL;
	PRB_TRY(read_version(inside, found->module, &ret->version));
	/* Several descriptions may be of one engine, each for other versions. */
	prb_vec_each (engine, &engines->list)
		if (!strcmp((*engine)->module, found->module) &&
		    prb_engine_takes(*engine, ret->version)) {
			ret->engine = *engine;
			return NULL;
		}
	return prb_str_copy("no description is for this version", &ret->missing);
}

struct looking {
	const struct prb_engines *engines;
	struct prb_server_process found;
};

static struct prb_error *look_inside(void *context, const struct prb_inside *inside)
{
	struct looking *looking = context;

	return looking->found.engine
		       ? NULL
		       : prb_server_find_version(looking->engines, inside, &looking->found);
}

struct prb_error *prb_server_engine_of(const struct prb_engines *engines, struct prb_target *target,
				       const struct prb_pythons *pythons,
				       const struct prb_engine **ret, bool *is_one)
{
	struct looking looking = {.engines = engines};
	struct prb_error *err = prb_inside_each(target, pythons, look_inside, &looking);

	*ret = looking.found.engine;
	*is_one = looking.found.engine || looking.found.missing;
	prb_server_process_deinit(&looking.found);
	return err;
}

struct prb_error *prb_server_is_one(const struct prb_engines *engines, struct prb_target *target,
				    const struct prb_pythons *pythons, bool *ret)
{
	const struct prb_engine *engine;

	return prb_server_engine_of(engines, target, pythons, &engine, ret);
}

/** Notes an object that may be a root of a part. */
static struct prb_error *consider(struct prb_server_reading *r, uint64_t object, uint32_t mask)
{
	for (size_t i = 0; mask && i < r->root_count; i++)
		if (mask & UINT32_C(1) << i && !r->roots[i].object) {
			r->roots[i].object = object;
			r->found++;
		}
	return NULL;
}

/** Variables of the frames of all threads. */
static struct prb_error *search_frames(struct prb_server_reading *r)
{
	const struct prb_dump_thread *thread;
	const struct prb_dump_frame *frame;
	const struct prb_dump_local *local;

	prb_vec_each (thread, &r->process->dump->threads)
		prb_vec_each (frame, &thread->frames)
			prb_vec_each (local, &frame->locals) {
				uint32_t mask = 0;

				if (!local->type_address)
					continue;
				PRB_TRY(prb_classes_of_type(r->classes, local->type_address,
							    &mask));
				PRB_TRY(consider(r, local->address, mask));
			}
	return NULL;
}

/** All objects, until the first root is there: those of a part have each other. */
static struct prb_error *search_heap(struct prb_server_reading *r)
{
	struct prb_heap *heap;
	struct prb_heap_object object;
	struct prb_error *err;
	bool more = true;

	PRB_TRY(prb_heap_create(r->inside->py, r->process->target->mem, r->inside->interp, &heap));
	do {
		uint32_t mask;

		err = prb_heap_next(heap, &object, &more);
		if (!err && more)
			err = prb_classes_of_type(r->classes, object.type, &mask);
		if (!err && more && mask)
			err = consider(r, object.address, mask);
	} while (!err && more && !r->found);
	prb_heap_destroy(heap);
	return err;
}

static struct prb_error *search_modules(struct prb_server_reading *r)
{
	for (size_t i = 0; i < r->root_count; i++)
		if (r->root_specs[i]->path && !r->roots[i].object) {
			PRB_TRY(find(r->inside, &r->roots[i].object, "%s", r->root_specs[i]->path));
			r->found += r->roots[i].object != 0;
		}
	return NULL;
}

/** The part that has a root here; else the one that its title names. */
static const struct prb_engine_part *choose_part(const struct prb_server_reading *r,
						 size_t *first_root)
{
	const struct prb_engine_part *part;
	size_t at = 0;

	prb_vec_each (part, &r->process->engine->parts) {
		*first_root = at;
		for (size_t i = 0; i < part->roots.count; i++)
			if (at + i < r->root_count && r->roots[at + i].object)
				return part;
		at += part->roots.count;
	}
	*first_root = at;
	return NULL;
}

static struct prb_error *list_roots(struct prb_server_reading *r)
{
	const struct prb_engine_part *part;
	const struct prb_engine_root *root;

	prb_vec_each (part, &r->process->engine->parts)
		prb_vec_each (root, &part->roots) {
			if (r->root_count == PRB_CLASSES_MAX)
				return NULL;
			r->root_specs[r->root_count] = root;
			r->class_names[r->root_count] = root->class ? root->class : "";
			r->roots[r->root_count++].name = root->name;
		}
	return NULL;
}

static struct prb_error *find_roots(struct prb_server_reading *r)
{
	PRB_TRY(list_roots(r));
	PRB_TRY(prb_classes_create(r->inside->py, r->inside->mem, r->class_names, r->root_count,
				   &r->classes));
	PRB_TRY(search_frames(r));
	if (!r->found)
		PRB_TRY(search_modules(r));
	if (!r->found && !r->process->brief)
		PRB_TRY(prb_error_tolerate(search_heap(r), NULL));
	return NULL;
}

bool prb_server_is_place(const struct prb_dump_frame *frame, const char *name)
{
	const char *dot = strrchr(name, '.');

	if (frame->kind != PRB_FRAME_PYTHON)
		return false;
	if (frame->qualname) {
		size_t length = strlen(frame->qualname), end = strlen(name);

		/* A function inside of a function has the outer one in front. */
		return !strcmp(frame->qualname, name) ||
		       (length > end && frame->qualname[length - end - 1] == '.' &&
			!strcmp(frame->qualname + length - end, name));
	}
	return frame->func && !strcmp(frame->func, dot ? dot + 1 : name);
}

static bool is_at(const struct prb_dump_thread *thread, const struct prb_engine_place *place)
{
	bool inner = !place->inner;
	const struct prb_dump_frame *frame;

	prb_vec_each (frame, &thread->frames) {
		inner = inner || prb_server_is_place(frame, place->inner);
		if (inner && prb_server_is_place(frame, place->outer))
			return true;
	}
	return false;
}

static void find_activity(struct prb_server_process *p)
{
	const struct prb_engine_place *place;

	if (!p->part || !p->dump || !p->dump->threads.count)
		return;
	prb_vec_each (place, &p->part->places)
		if (!p->activity && is_at(p->dump->threads.items, place))
			p->activity = place->activity;
}

/** Without the method that an actor of Ray is in: ".check_health". */
static size_t title_length(const char *rest)
{
	const char *method = strrchr(rest, '.');
	size_t length = strlen(rest);

	if (method && (islower((unsigned char)method[1]) || method[1] == '_'))
		length = (size_t)(method - rest);
	return length < TITLE_REST_MAX ? length : TITLE_REST_MAX;
}

/** Appends the name of the part, and what its title says behind the usual words: "_TP1". */
static bool put_title(struct prb_str *name, const struct prb_server_process *p,
		      const struct prb_engine_part *part)
{
	const char *rest, *title = p->dump && p->dump->argv.count ? p->dump->argv.items[0] : "";

	prb_str_puts(name, part->name);
	if (prb_engine_by_title(p->engine, title, &rest) != part)
		return false;
	for (size_t i = 0, length = title_length(rest); i < length; i++)
		prb_str_putc(name, rest[i] == '_' || rest[i] == ':' ? ' ' : rest[i]);
	return *rest;
}

static struct prb_error *put_name(struct prb_server_reading *r)
{
	const struct prb_engine_part *part = r->process->part;
	const struct prb_engine_rank *rank;
	prb_auto_str struct prb_str name = {};
	bool titled = put_title(&name, r->process, part);

	prb_vec_each (rank, &part->ranks) {
		if (titled)
			break;

		prb_auto_engine_value struct prb_engine_value value = {};

		PRB_TRY(prb_engine_read(&r->scope, &rank->path, &value));
		if (value.kind == PRB_PART_INT && value.integer >= 0 && value.integer < RANK_MAX)
			prb_str_printf(&name, " %s%d", rank->letters, (int)value.integer);
	}
	r->process->name = prb_str_take(&name);
	return r->process->name ? NULL : prb_error_nomem();
}

/**
 * A scheduler that polls has nothing to do where all its queues are empty, if it is in no step: the
 * queues of a child that it has forked are empty, too.
 */
static bool is_empty(const struct prb_server_process *p)
{
	const struct prb_server_queue *queue;
	bool known = false;

	prb_vec_each (queue, &p->queues) {
		if (queue->count > 0)
			return false;
		known = known || !queue->count;
	}
	return known && p->part->places.count && p->part->role == PRB_ENGINE_SCHEDULER &&
	       !p->missing;
}

static struct prb_error *read_parts(struct prb_server_reading *r)
{
	size_t first;

	PRB_TRY(find_roots(r));
	r->process->part = choose_part(r, &first);
	if (!r->process->part)
		return NULL;
	PRB_TRY(prb_parts_create(r->inside->py, r->inside->mem, &r->scope.parts));
	r->scope.roots = r->roots + first;
	r->scope.root_count = r->process->part->roots.count;
	find_activity(r->process);
	PRB_TRY(put_name(r));
	if (r->process->brief)
		return NULL;
	PRB_TRY(prb_server_read_objects(r));
	if (!r->process->activity && is_empty(r->process))
		r->process->activity = PRB_ENGINE_IDLE;
	return NULL;
}

static struct prb_error *read_inside(void *context, const struct prb_inside *inside)
{
	struct prb_server_process *p = context;
	struct prb_server_reading r = {.process = p, .inside = inside, .engines = p->reading};
	struct prb_error *err;

	if (p->engine)
		return NULL;
	PRB_TRY(prb_server_find_version(r.engines, inside, p));
	if (!p->engine)
		return NULL;
	err = read_parts(&r);
	prb_parts_destroy(r.scope.parts);
	prb_classes_destroy(r.classes);
	return err;
}

/** A process that has no root yet, or none any more, is named by its title. */
static struct prb_error *name_by_title(struct prb_server_process *p)
{
	const char *rest, *title = p->dump && p->dump->argv.count ? p->dump->argv.items[0] : "";
	prb_auto_str struct prb_str name = {};

	if (!p->engine || p->part)
		return NULL;
	p->part = prb_engine_by_title(p->engine, title, &rest);
	find_activity(p);
	if (!p->part)
		return NULL;
	if (!p->missing && p->part->roots.count)
		PRB_TRY(prb_str_copy("none of the described objects is here yet", &p->missing));
	(void)put_title(&name, p, p->part);
	p->name = prb_str_take(&name);
	return p->name ? NULL : prb_error_nomem();
}

static double monotonic_epoch(void)
{
	return prb_clock_calendar_seconds() - prb_clock_seconds();
}

struct prb_error *prb_server_process_read(const struct prb_engines *engines,
					  struct prb_target *target, enum prb_dump_mode mode,
					  struct prb_server_process *ret)
{
	const struct prb_dump_options options = {
		.mode = mode, .locals = true, .no_values = true, .no_modules = true};
	struct prb_dump_found found = {};
	struct prb_error *err;
	bool is_one;

	ret->target = target;
	ret->pid = target->pid;
	ret->limit = ret->eager = ret->paused = ret->preempts = ret->peers = -1;
	for (size_t i = 0; i < PRB_KV_COLUMNS; i++)
		ret->kv[i] = -1;
	ret->reading = engines;
	PRB_TRY(prb_server_is_one(engines, target, NULL, &is_one));
	if (!is_one)
		return NULL;
	ret->epoch = target->live && target->local ? monotonic_epoch() : NAN;
	err = prb_dump_create_with(target, &options, &found, &ret->dump);
	if (!err)
		err = prb_idle_fill(target, ret->dump, NULL);
	if (!err)
		err = prb_inside_each(target, &found.pythons, read_inside, ret);
	if (!err)
		err = name_by_title(ret);
	prb_dump_found_deinit(&found);
	return err;
}

struct prb_error *prb_server_process_name(const struct prb_engines *engines,
					  struct prb_target *target, struct prb_str *ret)
{
	struct prb_server_process p = {.brief = true};
	struct prb_error *err = prb_server_process_read(engines, target, PRB_DUMP_NONBLOCKING, &p);

	if (!err && p.engine) {
		prb_str_puts(ret, p.engine->name);
		prb_str_putc(ret, ' ');
		if (p.version)
			prb_str_printf(ret, "%.*s ", (int)prb_engine_release(p.version), p.version);
		prb_str_puts(ret, p.name ? p.name : "process");
	}
	prb_server_process_deinit(&p);
	return err;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "values/greenlets.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/map.h"
#include "base/str.h"
#include "base/text.h"
#include "python/repr/core/items.h"
#include "python/repr/core/repr.h"
#include "values/greenlet_locks.h"
#include "values/greenlet_pools.h"
#include "values/heap/heap.h"

enum {
	WORDS = 64,	    /* looked at behind an object's head, and in the structure behind it */
	INNER = 20,	    /* words of that structure; what lies behind it is not its own */
	OUTER = 12,	    /* the same of the object, before 2.0 */
	IMPLEMENTATION = 2, /* from 2.0 on: behind weak references and dict */
	MAX_BASES = 64,
	MAX_FRAMES = 100000,
	MAX_GREENLETS = 1000000,
	MAX_LINKS = 1000000, /* looked at in all lists */
};

/* An object that will switch to a greenlet: an Event with waiters. */
struct link {
	uint64_t greenlet, waited_for;
	uint64_t type;
};

struct reader {
	struct prb_python *py;
	struct prb_mem *mem;
	struct prb_heap *heap;
	struct prb_greenlets *out;
	uint64_t linkable; /* the object whose links are being followed, and its type */
	uint64_t linkable_type;
	bool nomem;
	PRB_VEC(struct link) links;
	struct prb_greenlet_pools pools;
	struct prb_number_map kinds; /* of types */
	struct prb_number_map lists; /* those whose links are known */
	size_t looked_at;
};

static void frame_deinit(struct prb_greenlet_frame *frame)
{
	prb_py_code_deinit(&frame->code);
	free(frame->qualname);
}

static void clear_frames(struct prb_greenlet *g)
{
	struct prb_greenlet_frame *frame;

	prb_vec_each (frame, &g->frames)
		frame_deinit(frame);
	g->frames.count = 0;
	g->held.count = 0;
	g->lock = 0;
	g->limited = false;
}

void prb_greenlets_deinit(struct prb_greenlets *greenlets)
{
	struct prb_greenlet *g;

	prb_vec_each (g, &greenlets->list) {
		clear_frames(g);
		prb_vec_free(&g->frames);
		prb_vec_free(&g->held);
		free(g->type);
		free(g->linked);
		free(g->call);
		free(g->error);
	}
	prb_vec_free(&greenlets->list);
}

/* Errors about ourselves or a vanished process end the walk; all others say that it is not so. */
static bool is_fatal(const struct prb_error *err)
{
	return err && (err->code == PRB_ERROR_NOMEM || err->code == PRB_ERROR_NO_PROCESS ||
		       err->code == PRB_ERROR_PERMISSION);
}

static struct prb_error *type_of(struct reader *r, uint64_t object, uint64_t *ret)
{
	return prb_mem_read_u64(r->mem, object + (uint64_t)r->py->layout.object_type, ret);
}

enum kind { OTHER, GREENLET, POOL, LINKABLE };

/* Compiled and in Python. */
static const struct {
	const char *name;
	enum kind kind;
} KINDS[] = {
	{"greenlet.greenlet", GREENLET},
	{"greenlet", GREENLET},
	{"gevent.pool.Group", POOL},
	{"gevent.pool.Pool", POOL},
	{"gevent._gevent_c_abstract_linkable.AbstractLinkable", LINKABLE},
	{"gevent._abstract_linkable.AbstractLinkable", LINKABLE},
	{"gevent._gevent_cqueue.SimpleQueue", LINKABLE},
	{"gevent.queue.SimpleQueue", LINKABLE},
	{"gevent._gevent_cqueue.Queue", LINKABLE},
	{"gevent.queue.Queue", LINKABLE},
};

/* What objects of a type are, by the nearest of its bases that is known. Of each type once: there
 * are hundreds of types, and hundred thousands of objects. */
static struct prb_error *kind_of(struct reader *r, uint64_t type, enum kind *ret)
{
	uint64_t at = type;
	size_t known;

	*ret = OTHER;
	if (prb_number_map_get(&r->kinds, type, &known)) {
		*ret = (enum kind)known;
		return NULL;
	}
	for (int i = 0; i < MAX_BASES && at && *ret == OTHER; i++) {
		const char *name;

		PRB_TRY(prb_heap_type_name(r->heap, at, &name));
		for (size_t k = 0; k < PRB_ARRAY_SIZE(KINDS) && *ret == OTHER; k++)
			if (!strcmp(name, KINDS[k].name))
				*ret = KINDS[k].kind;
		PRB_TRY(prb_mem_read_u64(r->mem, at + (uint64_t)r->py->layout.type_base, &at));
	}
	return prb_number_map_put(&r->kinds, type, *ret) ? NULL : prb_error_nomem();
}

/* Words that can be read, up to the first that cannot. */
static size_t read_words(struct reader *r, uint64_t address, uint64_t *words)
{
	size_t count = 0;

	if (address < 4096 || address % 8)
		return 0;
	for (; count < WORDS; count++) {
		prb_auto_error struct prb_error *err =
			prb_mem_read_u64(r->mem, address + 8 * count, &words[count]);

		if (err)
			break;
	}
	return count;
}

/* Freed memory keeps its type until it is reused. */
static bool is_alive(struct reader *r, uint64_t object)
{
	uint32_t count = 1;

	if (r->py->layout.free_threaded)
		return true;
	prb_auto_error struct prb_error *err =
		prb_mem_read_u32(r->mem, object + (uint64_t)r->py->layout.object_refcnt, &count);
	return !err && count;
}

static bool is_frame(struct reader *r, uint64_t object)
{
	prb_auto_str struct prb_str name = {};

	if (object < 4096 || object % 8)
		return false;
	prb_auto_error struct prb_error *err = prb_object_type_name(r->py, r->mem, object, &name);
	return !err && !strcmp(prb_str_text(&name), "frame") && is_alive(r, object);
}

/* The frame object of a suspended greenlet; 0: it has none. */
static uint64_t top_frame(struct reader *r, uint64_t object)
{
	uint64_t head = (uint64_t)r->py->layout.object_size, words[WORDS], inner[WORDS];
	size_t count = read_words(r, object + head, words), more;

	if (count <= IMPLEMENTATION)
		return 0;
	more = read_words(r, words[IMPLEMENTATION], inner);
	for (size_t i = 0; i < PRB_MIN(more, (size_t)INNER); i++)
		if (is_frame(r, inner[i]))
			return inner[i];
	/* Before 2.0 the object has all of it. */
	for (size_t i = IMPLEMENTATION; i < PRB_MIN(count, (size_t)OUTER); i++)
		if (is_frame(r, words[i]))
			return words[i];
	return 0;
}

static struct prb_error *add_frame(struct reader *r, struct prb_greenlet *g,
				   const struct prb_py_frame *frame)
{
	struct prb_greenlet_frame *slot;

	if (frame->hidden || frame->shim)
		return NULL;
	slot = prb_vec_push(&g->frames);
	if (!slot)
		return prb_error_nomem();
	PRB_TRY(prb_python_code(r->py, r->mem, frame->code, &slot->code));
	PRB_TRY(prb_python_location(r->py, r->mem, frame, &slot->location));
	if (slot->code.qualname)
		return prb_str_copy(slot->code.qualname, &slot->qualname);
	return prb_python_qualname(r->py, r->mem, frame, &slot->code, &slot->qualname);
}

static void frames_guard(struct prb_py_frames *frames)
{
	prb_py_frames_deinit(frames);
}

static struct prb_error *read_stack(struct reader *r, struct prb_greenlet *g, uint64_t object)
{
	__attribute__((cleanup(frames_guard))) struct prb_py_frames frames = {};
	uint64_t address = object;

	if (r->py->layout.behaviour->chain != PRB_CHAIN_PYFRAME)
		PRB_TRY(prb_mem_read_u64(r->mem, object + (uint64_t)r->py->layout.object_size + 8,
					 &address));
	PRB_TRY(prb_python_frames_from(r->py, r->mem, address, &frames));
	for (size_t i = 0; i < frames.list.count && i < MAX_FRAMES; i++)
		PRB_TRY(add_frame(r, g, &frames.list.items[i]));
	return prb_greenlet_note_locks(r->py, r->mem, &frames, g);
}

/* The part of a path from the library's name on, as in "gevent/hub.py"; NULL if it is of none. */
static const char *in_library(const char *file)
{
	static const char *const libraries[] = {"/gevent/", "/eventlet/"};
	const char *at = NULL;

	for (size_t i = 0; file && !at && i < PRB_ARRAY_SIZE(libraries); i++)
		at = strstr(file, libraries[i]);
	return at ? at + 1 : NULL;
}

/* The function that eventlet begins a greenlet with, which calls the program's. */
static bool begins(const struct prb_py_code *code)
{
	return code->name && !strcmp(code->name, "main") &&
	       prb_text_ends(code->file, "/eventlet/greenthread.py");
}

/* The library's function that the program called is the outermost of those at the inner end. */
static struct prb_error *name_call(struct prb_greenlet *g)
{
	const struct prb_greenlet_frame *frame, *last = NULL;
	const char *file;

	prb_vec_each (frame, &g->frames) {
		if (!in_library(frame->code.file) || begins(&frame->code))
			break;
		last = frame;
	}
	if (!last)
		return NULL;
	file = in_library(last->code.file);
	g->call = prb_format("%.*s.%s", (int)strcspn(file, "."), file,
			     last->qualname ? last->qualname : last->code.name);
	for (char *at = g->call; at && (at = strchr(at, '/'));)
		*at = '.';
	return g->call ? NULL : prb_error_nomem();
}

struct prb_error *prb_greenlet_stack(struct prb_python *py, struct prb_mem *mem,
				     struct prb_greenlet *g)
{
	struct reader r = {.py = py, .mem = mem};
	struct prb_error *err = NULL;
	uint64_t type, frame;

	clear_frames(g);
	free(prb_steal(&g->call));
	PRB_TRY(type_of(&r, g->address, &type));
	if (type != g->type_address)
		return prb_error_create(PRB_ERROR_BAD_DATA, "it has ended");
	frame = top_frame(&r, g->address);
	if (frame)
		err = read_stack(&r, g, frame);
	if (!err)
		err = name_call(g);
	if (err)
		clear_frames(g);
	return err;
}

static struct prb_error *add_greenlet(struct reader *r, uint64_t object, uint64_t type)
{
	struct prb_greenlet *g;
	const char *name;

	if (r->out->list.count >= MAX_GREENLETS) {
		r->out->doubt = "there are over a million greenlets; the others are left out";
		return NULL;
	}
	g = prb_vec_push(&r->out->list);
	if (!g)
		return prb_error_nomem();
	g->address = object;
	g->type_address = type;
	PRB_TRY(prb_heap_type_name(r->heap, type, &name));
	return prb_str_copy(name, &g->type);
}

/* A link is a bound method, greenlet.switch, or a Waiter: one of its first members is the greenlet.
 */
static bool visit_link(void *context, uint64_t key, uint64_t value)
{
	enum { MEMBERS = 5 };
	uint64_t members[MEMBERS];
	struct reader *r = context;

	(void)key;
	if (r->looked_at++ >= MAX_LINKS) {
		r->out->doubt =
			"what greenlets wait for is looked up in a million places; some are "
			"left out";
		return false;
	}
	prb_auto_error struct prb_error *err = prb_mem_read(
		r->mem, value + (uint64_t)r->py->layout.object_size, members, sizeof(members));
	for (size_t i = 0; i < MEMBERS && !err; i++) {
		if (members[i] < 4096 || members[i] % 8)
			continue;
		struct link *link = prb_vec_push(&r->links);
		if (!link) {
			r->nomem = true;
			return false;
		}
		*link = (struct link){members[i], r->linkable, r->linkable_type};
	}
	return true;
}

static bool holds_links(const char *type)
{
	return !strcmp(type, "list") || !strcmp(type, "collections.deque");
}

/* An Event and the like have a list of waiters, somewhere among their C members. */
static struct prb_error *add_links(struct reader *r, const struct prb_heap_object *object)
{
	uint64_t words[WORDS];
	size_t count = read_words(r, object->address + (uint64_t)r->py->layout.object_size, words);
	size_t own = (size_t)(object->bytes / 8), seen;

	r->linkable = object->address;
	r->linkable_type = object->type;
	for (size_t i = 0; i < PRB_MIN(count, own) && !r->nomem; i++) {
		uint64_t type = 0;
		const char *name;

		if (words[i] < 4096 || words[i] % 8)
			continue;
		prb_auto_error struct prb_error *err = type_of(r, words[i], &type);
		if (err || type < 4096 || type % 8)
			continue;
		prb_auto_error struct prb_error *bad = prb_heap_type_name(r->heap, type, &name);
		if (bad || !holds_links(name) || prb_number_map_get(&r->lists, words[i], &seen))
			continue;
		if (!prb_number_map_put(&r->lists, words[i], 0))
			return prb_error_nomem();
		prb_auto_error struct prb_error *torn =
			prb_object_items(r->py, r->mem, words[i], true, visit_link, r, NULL);
		if (is_fatal(torn))
			return prb_steal(&torn);
	}
	return r->nomem ? prb_error_nomem() : NULL;
}

static struct prb_error *look_at(struct reader *r, const struct prb_heap_object *object)
{
	enum kind kind;

	PRB_TRY(kind_of(r, object->type, &kind));
	if (kind == POOL)
		return prb_greenlet_pools_add(&r->pools, r->py, r->mem, object->address);
	if (kind == GREENLET)
		PRB_TRY(add_greenlet(r, object->address, object->type));
	return kind == OTHER ? NULL : add_links(r, object);
}

static struct prb_error *explain_all(struct reader *r, struct prb_number_map *places)
{
	const struct link *link;

	for (size_t i = 0; i < r->out->list.count; i++)
		if (!prb_number_map_put(places, r->out->list.items[i].address, i))
			return prb_error_nomem();
	prb_vec_each (link, &r->links) {
		struct prb_greenlet *g;
		const char *name;
		size_t place;

		if (!prb_number_map_get(places, link->greenlet, &place))
			continue;
		g = &r->out->list.items[place];
		if (g->linked)
			continue;
		g->waits_on = link->waited_for;
		PRB_TRY(prb_heap_type_name(r->heap, link->type, &name));
		g->linked = prb_format("%s at %#llx", name, (unsigned long long)link->waited_for);
		if (!g->linked)
			return prb_error_nomem();
	}
	return NULL;
}

/* With what each waits for, the pools whose greenlets all wait for it. */
static struct prb_error *explain(struct reader *r)
{
	struct prb_number_map places = {};
	struct prb_error *err = explain_all(r, &places);

	if (!err)
		err = prb_greenlet_pools_judge(&r->pools, r->py, r->mem, &places, r->out);
	prb_number_map_deinit(&places);
	return err;
}

static struct prb_error *walk(struct reader *r, size_t most)
{
	struct prb_heap_object object;
	bool more = true;

	for (size_t count = 0;; count++) {
		if (most && count >= most) {
			r->out->doubt = "only the first 100,000 objects were looked at; the table "
					"python.greenlets has those of all";
			break;
		}
		PRB_TRY(prb_heap_next(r->heap, &object, &more));
		if (!more)
			break;
		prb_auto_error struct prb_error *err = look_at(r, &object);
		if (is_fatal(err))
			return prb_steal(&err);
	}
	if (!r->out->doubt)
		r->out->doubt = prb_heap_doubt(r->heap);
	return explain(r);
}

struct prb_error *prb_greenlets_read(struct prb_python *py, struct prb_mem *mem, uint64_t interp,
				     size_t most, struct prb_greenlets *ret)
{
	struct reader r = {.py = py, .mem = mem, .out = ret};

	*ret = (struct prb_greenlets){};
	PRB_TRY(prb_heap_create(py, mem, interp, &r.heap));

	struct prb_error *err = walk(&r, most);
	prb_heap_destroy(r.heap);
	prb_vec_free(&r.links);
	prb_greenlet_pools_deinit(&r.pools);
	prb_number_map_deinit(&r.kinds);
	prb_number_map_deinit(&r.lists);
	return err;
}

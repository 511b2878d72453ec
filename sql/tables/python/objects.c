/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "values/heap/heap.h"
#include "python/repr/core/repr.h"
#include "sql/tables/shared/interpreters.h"
#include "sql/spec/table.h"
#include "target/custom.h"

enum { TYPE, ADDRESS, REFERENCES, BYTES, GENERATION, REPR, INTERPRETER, TYPE_ADDRESS };

static const struct prb_column columns[] = {
	[TYPE] = {"type", PRB_COLUMN_TEXT, "Name of its type, with the module",
		  .flags = PRB_COLUMN_KEY},
	[ADDRESS] = {"address", PRB_COLUMN_INTEGER, "Where it lies in memory: its id()"},
	[REFERENCES] = {"refs", PRB_COLUMN_INTEGER,
			"Its reference count; NULL for immortal objects (3.12 and later)"},
	[BYTES] = {"bytes", PRB_COLUMN_INTEGER,
		   "Its own memory, without what it points to (table of a dict, items of a list)",
		   "bytes"},
	[GENERATION] = {"generation", PRB_COLUMN_INTEGER,
			"Of the garbage collector: 0 is the youngest, 3 is gc.freeze()'s"},
	[REPR] = {"repr", PRB_COLUMN_TEXT, "What repr() would print, shortened",
		  .flags = PRB_COLUMN_COSTLY},
	[INTERPRETER] = {"interpreter", PRB_COLUMN_INTEGER, "Id of the interpreter",
			 .flags = PRB_COLUMN_KEY},
	[TYPE_ADDRESS] = {"type_address", PRB_COLUMN_INTEGER, "Where its type lies in memory"},
	{},
};

/* Where a scan is, between pages. */
struct state {
	size_t interpreter;    /* index in the list */
	struct prb_heap *heap; /* of it; NULL: not begun */
	uint64_t wanted;       /* the type met last that has the name asked for */
	uint64_t unwanted;     /* the one met last that has not */
};

static void end(void *state)
{
	prb_heap_destroy(((struct state *)state)->heap);
	free(state);
}

/* True if the object's type has the requested name. */
static struct prb_error *is_wanted(struct prb_scan *scan, struct state *s,
				   const struct prb_heap_object *object, bool *ret)
{
	const char *key, *name;

	*ret = true;
	if (object->type == s->wanted || !prb_scan_key_text(scan, TYPE, &key))
		return NULL;
	*ret = false;
	if (object->type == s->unwanted)
		return NULL;
	PRB_TRY(prb_heap_type_name(s->heap, object->type, &name));
	*ret = !strcmp(name, key);
	*(*ret ? &s->wanted : &s->unwanted) = object->type;
	return NULL;
}

static struct prb_error *put_repr(struct prb_scan *scan, const struct prb_interpreter *i,
				  struct prb_heap *heap, uint64_t object)
{
	prb_auto_str struct prb_str text = {};

	const struct prb_repr_options options = prb_instant_repr(scan->instant);

	PRB_TRY(prb_object_repr(i->py, prb_heap_mem(heap), object, &options, &text));
	PRB_TRY(prb_custom_expand(i->py->target->custom, &text));
	prb_put_text(scan, REPR, prb_str_text(&text));
	return NULL;
}

static struct prb_error *put(struct prb_scan *scan, const struct prb_interpreter *i,
			     struct prb_heap *heap, const struct prb_heap_object *object)
{
	const char *name;

	PRB_TRY(prb_scan_row(scan));
	if (prb_scan_wants(scan, TYPE)) {
		PRB_TRY(prb_heap_type_name(heap, object->type, &name));
		prb_put_text(scan, TYPE, name);
	}
	prb_put_integer(scan, ADDRESS, (int64_t)object->address);
	prb_put_natural(scan, REFERENCES, object->refcount);
	prb_put_integer(scan, BYTES, (int64_t)object->bytes);
	prb_put_integer(scan, GENERATION, object->generation);
	prb_put_integer(scan, INTERPRETER, i->state.id);
	prb_put_integer(scan, TYPE_ADDRESS, (int64_t)object->type);
	return prb_scan_wants(scan, REPR) ? put_repr(scan, i, heap, object->address) : NULL;
}

/* A page of one interpreter's objects; *more is false after its last. */
static struct prb_error *put_page(struct prb_scan *scan, const struct prb_interpreter *i,
				  struct state *s, bool *more)
{
	struct prb_heap_object object;
	bool wanted;

	if (!s->heap)
		PRB_TRY(prb_heap_create(i->py, prb_interpreter_bulk(scan, i), i->state.address,
					&s->heap));
	while (!prb_scan_full(scan)) {
		PRB_TRY(prb_heap_next(s->heap, &object, more));
		if (!*more)
			return NULL;
		PRB_TRY(is_wanted(scan, s, &object, &wanted));
		if (wanted)
			PRB_TRY(put(scan, i, s->heap, &object));
	}
	return NULL;
}

/* After the last object: a note, since no row is to blame. */
static void end_interpreter(struct prb_scan *scan, struct state *s)
{
	if (prb_heap_doubt(s->heap))
		prb_scan_note(scan, "python.objects: %s", prb_heap_doubt(s->heap));
	prb_heap_destroy(s->heap);
	*s = (struct state){.interpreter = s->interpreter + 1};
}

static struct prb_error *scan(struct prb_scan *scan)
{
	const struct prb_interpreters *interpreters;

	if (!scan->state) {
		scan->state = calloc(1, sizeof(struct state));
		if (!scan->state)
			return prb_error_nomem();
		scan->end = end;
	}

	struct state *s = scan->state;

	PRB_TRY(prb_interpreters_read(scan, &interpreters));
	for (; s->interpreter < interpreters->list.count && !scan->more;) {
		const struct prb_interpreter *i = &interpreters->list.items[s->interpreter];
		bool more = true;

		if (!prb_interpreter_wanted(scan, INTERPRETER, i)) {
			s->interpreter++;
			continue;
		}
		PRB_TRY(put_page(scan, i, s, &more));
		if (more)
			scan->more = true;
		else
			end_interpreter(scan, s);
	}
	return NULL;
}

const struct prb_table prb_table_python_objects = {
	.schema = "python",
	.name = "objects",
	.doc = "Objects that the garbage collector knows: containers, instances, functions, "
	       "classes",
	.columns = columns,
	.flags = PRB_TABLE_COSTLY,
	.rows = 100000,
	.scan = scan,
};

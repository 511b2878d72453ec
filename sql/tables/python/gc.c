/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/cleanup.h"
#include "values/heap/heap.h"
#include "sql/tables/shared/interpreters.h"
#include "sql/spec/table.h"

enum {
	INTERPRETER,
	GENERATION,
	ENABLED,
	COLLECTING,
	COUNT,
	THRESHOLD,
	COLLECTIONS,
	COLLECTED,
	UNCOLLECTABLE,
	SECONDS,
	OBJECTS,
	GARBAGE,
	LONG_LIVED,
	PENDING,
	ERROR,
};

static const struct prb_column columns[] = {
	[INTERPRETER] = {"interpreter", PRB_COLUMN_INTEGER,
			 "Id of the interpreter; up to 3.8 all have one collector",
			 .flags = PRB_COLUMN_KEY},
	[GENERATION] = {"generation", PRB_COLUMN_INTEGER,
			"0 is the youngest; 3 are the objects that gc.freeze() put aside"},
	[ENABLED] = {"enabled", PRB_COLUMN_INTEGER,
		     "1 if it runs by itself; NULL if that cannot be known"},
	[COLLECTING] = {"collecting", PRB_COLUMN_INTEGER, "1 while it runs"},
	[COUNT] = {"count", PRB_COLUMN_INTEGER,
		   "As gc.get_count(): objects made, or collections of the younger generation, "
		   "since its last collection"},
	[THRESHOLD] = {"threshold", PRB_COLUMN_INTEGER,
		       "As gc.get_threshold(): the count at which it is collected"},
	[COLLECTIONS] = {"collections", PRB_COLUMN_INTEGER, "How often it was collected"},
	[COLLECTED] = {"collected", PRB_COLUMN_INTEGER, "Objects freed by that"},
	[UNCOLLECTABLE] = {"uncollectable", PRB_COLUMN_INTEGER, "Objects that could not be freed"},
	[SECONDS] = {"seconds", PRB_COLUMN_REAL, "Time spent on it (3.15 and later)", "s"},
	[OBJECTS] = {"objects", PRB_COLUMN_INTEGER, "Objects that it has now: all are walked",
		     .flags = PRB_COLUMN_COSTLY},
	[GARBAGE] = {"garbage", PRB_COLUMN_INTEGER, "Length of gc.garbage"},
	[LONG_LIVED] = {"long_lived", PRB_COLUMN_INTEGER,
			"Objects that survived the last full collection"},
	[PENDING] = {"pending", PRB_COLUMN_INTEGER,
		     "Objects that came to them since, which wait for the next full one"},
	[ERROR] = {"_error", PRB_COLUMN_TEXT, "Why something could not be read"},
	{},
};

static void put_generation(struct prb_scan *scan, const struct prb_gc_generation *generation)
{
	prb_put_integer(scan, COUNT, generation->count);
	prb_put_integer(scan, THRESHOLD, generation->threshold);
	prb_put_natural(scan, COLLECTIONS, generation->collections);
	prb_put_natural(scan, COLLECTED, generation->collected);
	prb_put_natural(scan, UNCOLLECTABLE, generation->uncollectable);
	if (generation->seconds >= 0)
		prb_put_real(scan, SECONDS, generation->seconds);
}

/* How many objects each generation has. */
struct sizes {
	int64_t objects[PRB_GC_GENERATIONS + 1];
	struct prb_error *err;
	const char *doubt;
};

static struct prb_error *count(struct prb_heap *heap, struct sizes *ret)
{
	struct prb_heap_object object;
	bool more = true;

	for (;;) {
		PRB_TRY(prb_heap_next(heap, &object, &more));
		if (!more)
			break;
		ret->objects[object.generation]++;
	}
	ret->doubt = prb_heap_doubt(heap);
	return NULL;
}

static void read_sizes(struct prb_scan *scan, const struct prb_interpreter *i, struct sizes *ret)
{
	struct prb_heap *heap;

	*ret = (struct sizes){};
	if (!prb_scan_wants(scan, OBJECTS))
		return;
	ret->err = prb_heap_create(i->py, prb_interpreter_bulk(scan, i), i->state.address, &heap);
	if (ret->err)
		return;
	ret->err = count(heap, ret);
	prb_heap_destroy(heap);
}

static void put_collector(struct prb_scan *scan, const struct prb_interpreter *i,
			  const struct prb_gc *gc, int64_t generation)
{
	prb_put_integer(scan, INTERPRETER, i->state.id);
	prb_put_integer(scan, GENERATION, generation);
	prb_put_natural(scan, ENABLED, gc->enabled);
	prb_put_integer(scan, COLLECTING, gc->collecting);
	prb_put_natural(scan, GARBAGE, gc->garbage);
	prb_put_natural(scan, LONG_LIVED, gc->long_lived);
	prb_put_natural(scan, PENDING, gc->pending);
}

static struct prb_error *put(struct prb_scan *scan, const struct prb_interpreter *i,
			     const struct prb_gc *gc)
{
	struct sizes sizes;

	read_sizes(scan, i, &sizes);
	if (sizes.doubt && !prb_instant_target(scan->instant)->live)
		prb_scan_note(scan, "python.gc: %s", sizes.doubt);
	for (unsigned g = 0; g <= PRB_GC_PERMANENT; g++) {
		if (g == PRB_GC_PERMANENT && !gc->freezes)
			break;
		struct prb_error *err = prb_scan_row(scan);
		if (err) {
			prb_error_destroy(sizes.err);
			return err;
		}
		put_collector(scan, i, gc, g);
		if (g < PRB_GC_GENERATIONS)
			put_generation(scan, &gc->generations[g]);
		if (!sizes.err)
			prb_put_integer(scan, OBJECTS, sizes.objects[g]);
		prb_put_text(scan, ERROR, sizes.err ? sizes.err->message : sizes.doubt);
	}
	return prb_put_reason(scan, ERROR, sizes.err);
}

static struct prb_error *scan(struct prb_scan *scan)
{
	const struct prb_interpreters *interpreters;
	const struct prb_interpreter *i;

	PRB_TRY(prb_interpreters_read(scan, &interpreters));
	prb_vec_each (i, &interpreters->list) {
		struct prb_gc gc;

		if (!prb_interpreter_wanted(scan, INTERPRETER, i))
			continue;
		PRB_TRY(prb_gc_read(i->py, i->mem, i->state.address, &gc));
		PRB_TRY(put(scan, i, &gc));
	}
	return NULL;
}

const struct prb_table prb_table_python_gc = {
	.schema = "python",
	.name = "gc",
	.doc = "The garbage collector, by generation",
	.columns = columns,
	.rows = 3,
	.scan = scan,
};

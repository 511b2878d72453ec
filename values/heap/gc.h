/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The garbage collector of an interpreter: what gc.get_count(), gc.get_threshold(),
 * gc.get_stats() and gc.isenabled() would say, read from outside.
 *
 * Up to 3.8 all interpreters of a process share one collector, and each shows the same numbers.
 * Before 3.7 its state is statics of the interpreter: what a stripped binary hides is unknown
 * (-1). Free-threaded builds use the first generation only.
 *
 * Threading: as python.h. Errors: PRB_ERROR_UNSUPPORTED if the place of the state is unknown (a
 * snapshot of an earlier release), memory errors as mem.h.
 */
#ifndef PRB_VALUES_HEAP_GC_H
#define PRB_VALUES_HEAP_GC_H

#include "base/error.h"
#include "python/python.h"

enum { PRB_GC_GENERATIONS = 3, PRB_GC_PERMANENT = PRB_GC_GENERATIONS };

struct prb_gc_generation {
	int64_t count, threshold; /**< as gc.get_count() and gc.get_threshold() */
	int64_t collections, collected, uncollectable; /**< since the start; -1 unknown */
	double seconds; /**< spent collecting it, 3.15+; negative if the version lacks it */
};

struct prb_gc {
	int8_t enabled; /**< 1, 0; -1 unknown */
	bool collecting;
	bool freezes;	    /**< there is a place for what gc.freeze() puts aside (3.7+) */
	bool incremental;   /**< the old generation is one, collected in steps (early 3.14) */
	int64_t garbage;    /**< len(gc.garbage); -1 unknown */
	int64_t long_lived; /**< objects that survived the last full collection; -1 unknown */
	int64_t pending;    /**< objects that came to them since; -1 unknown */
	struct prb_gc_generation generations[PRB_GC_GENERATIONS];
};

/** Reads the state of the collector of the interpreter at @p interp. */
struct prb_error *prb_gc_read(struct prb_python *py, struct prb_mem *mem, uint64_t interp,
			      struct prb_gc *ret) PRB_MUST_CHECK;

/** The heads of the lists of objects, for callers that walk them. */
struct prb_gc_lists {
	/** Generations 0 to 2, then the objects that gc.freeze() put aside; 0: no such list. */
	uint64_t heads[PRB_GC_GENERATIONS + 1];
	uint64_t collecting; /**< address of the flag; 0 unknown */
	uint64_t head_size;  /**< bytes of the collector before each object */
};

/** PRB_ERROR_UNSUPPORTED also for free-threaded builds, which have no such lists. */
struct prb_error *prb_gc_lists(struct prb_python *py, struct prb_mem *mem, uint64_t interp,
			       struct prb_gc_lists *ret) PRB_MUST_CHECK;

#endif

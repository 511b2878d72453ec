/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Shared by the files of the census. Internal to values/census/. */
#ifndef PRB_VALUES_CENSUS_PRIVATE_H
#define PRB_VALUES_CENSUS_PRIVATE_H

#include "base/map.h"
#include "python/repr/core/repr_private.h"
#include "target/mem/blocks.h"
#include "values/census/census.h"

struct prb_torch_modules;

/** How the references and the memory of a type's objects are found. */
enum prb_census_kind {
	PRB_CENSUS_WORDS, /**< each word of an object may be a reference */
	PRB_CENSUS_LEAF,  /**< no references: numbers, bytes */
	PRB_CENSUS_STR,
	PRB_CENSUS_LIST,
	PRB_CENSUS_TUPLE,
	PRB_CENSUS_DICT,
	PRB_CENSUS_SET,
	PRB_CENSUS_DEQUE,
	PRB_CENSUS_WEAKREF,
	PRB_CENSUS_MODULE,
	PRB_CENSUS_GENERATOR,
	PRB_CENSUS_FRAME,
	PRB_CENSUS_BYTEARRAY,
	PRB_CENSUS_ARRAY,
	PRB_CENSUS_MMAP,
	PRB_CENSUS_NDARRAY,
	PRB_CENSUS_TENSOR,
};

struct prb_census_entry {
	uint64_t address;
	enum prb_census_kind kind;
	uint32_t size;	 /**< tp_basicsize */
	uint32_t before; /**< bytes before each object that are its own */
	uint32_t item;	 /**< tp_itemsize */
	bool int_tag;	 /**< counts its items as ints of 3.12+ do */
	bool managed;	 /**< has a dict or values where its version keeps them */
	bool inline_values;
	bool of_types; /**< its objects are types */
	bool followed; /**< an object has led to the type itself */
	uint64_t count, bytes, owned;
	char *name; /**< NULL until it is asked for */
};

struct prb_census_node {
	uint64_t address, bytes;
	uint32_t type, parent; /**< parent: PRB_CENSUS_NONE - 1 - index of a root for roots */
};

/** Where the walk begins: the modules, a variable of a frame, or what nothing led to. */
struct prb_census_root {
	char *name, *place; /**< "batch" and "train"; NULL: the modules, or nothing */
	bool modules;
};

/** Where an object is in a container. */
struct prb_census_place {
	uint64_t key;	/**< of a dict; else 0 */
	uint64_t index; /**< how many items lie before it */
	bool is_key;
};

/** Places of all objects in a container, for which they were asked more than once. */
struct prb_census_places {
	uint64_t container;
	bool tried, whole;	       /**< whole: all are there */
	struct prb_number_map numbers; /**< by object: index, twice, and 1 for a key */
	PRB_VEC(uint64_t) keys;	       /**< by index */
};

enum { PRB_CENSUS_ROOTS = 1 << 20, PRB_CENSUS_REJECTED = 1 << 12, PRB_CENSUS_PLACES = 8 };

struct prb_census {
	struct prb_python *py;
	struct prb_mem *base, *mem; /**< the target's; the cache of it */
	uint64_t interp;
	struct prb_blocks *blocks;
	struct prb_repr repr;	 /**< reader of tables */
	struct prb_repr fresh;	 /**< the same, of memory as it is now */
	struct prb_repr classes; /**< reader of types */
	PRB_VEC(struct prb_census_node) nodes;
	uint32_t *table; /**< index + 1 into nodes and a tag, 0 empty; open addressing */
	size_t table_size;
	PRB_VEC(struct prb_census_entry) types;
	uint32_t *type_table;
	size_t type_table_size;
	uint64_t rejected[PRB_CENSUS_REJECTED]; /**< addresses that are no types: a cache */
	PRB_VEC(struct prb_census_root) roots;
	PRB_VEC(struct prb_census_tensor) tensors;
	uint64_t *pools; /**< addresses of pools; open addressing */
	size_t pool_count, pool_size;
	uint64_t last_pool;
	uint64_t unheld_from; /**< index of the first node that no module or frame leads to */
	uint64_t max_objects, bytes, unheld_bytes;
	uint8_t *garbage; /**< bit N % 8 of byte N / 8: object unheld_from + N is garbage */
	uint64_t garbage_count, garbage_bytes;
	double deadline, seconds;
	unsigned pieces; /**< of tables, since the clock was looked at */
	bool late;
	const char *doubt;
	struct prb_error *fatal;			    /**< ended the walk */
	struct prb_census_places places[PRB_CENSUS_PLACES]; /**< of those asked for last */
	size_t next_places;
	bool alone; /**< one object is measured: its references are not followed */
	const struct prb_torch_modules *names; /**< of keys, or NULL */
	/* Instead of being added, references are reported; wanted NONE: to all objects. */
	uint32_t wanted;
	prb_census_holder *holder;
	void *context;
};

/** Notes the first doubt. @p reason is static. */
void prb_census_set_doubt(struct prb_census *c, const char *reason);
/** Keeps errors that end the walk, and forgets those of one object. False if there was one. */
bool prb_census_try(struct prb_census *c, struct prb_error *err);

/** Where objects may lie, also of programs that are not position-independent. */
#define PRB_CENSUS_ADDRESS_MAX (UINT64_C(1) << 48)
static inline bool prb_census_is_address(uint64_t word)
{
	const uint64_t least = 1 << 16;

	return word % sizeof(word) == 0 && word >= least && word < PRB_CENSUS_ADDRESS_MAX;
}

/* census.c */
/** False if a word is no address, or a reference to that object would change and report nothing. */
bool prb_census_matters(const struct prb_census *c, uint64_t object);
/** A reference from @p parent to what may be an object; false if the walk is to end. */
bool prb_census_refer(struct prb_census *c, uint32_t parent, uint64_t object);

/** References to these are about to be reported: prefetches their slots, all at the same time. */
void prb_census_expect(const struct prb_census *c, const uint64_t *objects, size_t count);

/** The type of what may be an object at @p object; NULL if none is there. */
struct prb_census_entry *prb_census_look_at(struct prb_census *c, uint64_t object);

/* types.c */
/** The type at @p address, or NULL if there is none. Valid until the next call. */
struct prb_census_entry *prb_census_entry(struct prb_census *c, uint64_t address);
/** Bytes of an object itself, of which @p header are the first object_size bytes. */
uint64_t prb_census_own_bytes(struct prb_census *c, const struct prb_census_entry *type,
			      uint64_t object);

/** True if the walk's time is over; asked for each piece of a table, it looks at the clock rarely.
 */
bool prb_census_is_late(struct prb_census *c);

/** False if memory of this size cannot lie there: what was read of it is of something else. */
bool prb_census_is_backed(struct prb_census *c, uint64_t address, uint64_t bytes);

/* edges.c */
/** Reports the references of a node, and adds the memory that it owns. */
void prb_census_follow(struct prb_census *c, uint32_t index);
/** The words of a frame, in versions whose frames are no objects. */
void prb_census_follow_frame(struct prb_census *c, uint32_t parent, uint64_t frame);
/** Adds to what an object takes. */
void prb_census_own(struct prb_census *c, uint32_t index, uint64_t bytes);

/* roots.c */
void prb_census_add_modules(struct prb_census *c);
/** The parts of frames that are taken. */
enum prb_census_frames {
	/** The variables outside of a model's methods: inside, its name is "self" or "args[0]". */
	PRB_CENSUS_FRAMES_OUTSIDE,
	PRB_CENSUS_FRAMES_VARIABLES, /**< all variables */
	PRB_CENSUS_FRAMES_WHOLE,     /**< and what else frames have */
};
/** The frames of all threads. */
void prb_census_add_frames(struct prb_census *c, enum prb_census_frames which);

/* garbage.c */
void prb_census_find_garbage(struct prb_census *c);

/* places.c */
/** The first place of an object in a container; false if there is none. */
bool prb_census_find_place(struct prb_census *c, uint64_t container, uint64_t child,
			   struct prb_census_place *ret);
void prb_census_forget_places(struct prb_census *c);

/* pools.c */
void prb_census_note_pool(struct prb_census *c, uint64_t block, uint64_t bytes);

/* tensors.c */
void prb_census_note_tensor(struct prb_census *c, uint32_t index);
/** Decides which tensor's bytes a storage's are. */
void prb_census_share_storages(struct prb_census *c);

#endif

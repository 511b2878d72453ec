/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The state of the garbage collector, wherever a version keeps it. */
#include "values/heap/gc.h"

#include <string.h>

#include "base/cleanup.h"

/* Where the parts of the state lie; 0: unknown. */
struct places {
	uint64_t state; /* the structure, 3.7+ */
	uint64_t enabled, collecting, stats, generations, permanent;
};

static uint64_t member(uint64_t base, int32_t offset)
{
	return base && offset != PRB_ABSENT ? base + (uint64_t)offset : 0;
}

/*
 * The state has a pointer to its first generation. It is better than the offset: builds of the
 * same version differ in how they pack the structure.
 */
static struct prb_error *find_generations(const struct prb_layout *l, struct prb_mem *mem,
					  struct places *ret)
{
	uint64_t place = member(ret->state, l->gc_generation0), first;

	ret->generations = member(ret->state, l->gc_generations);
	if (!place || l->gc_size == PRB_ABSENT)
		return NULL;

	struct prb_error *err = prb_mem_read_u64(mem, place, &first);
	if (prb_error_catch(&err, PRB_ERROR_FAULT))
		return NULL;
	if (!err && first >= ret->state && first - ret->state < (uint64_t)l->gc_size)
		ret->generations = first;
	return err;
}

static struct prb_error *find_places(struct prb_python *py, struct prb_mem *mem, uint64_t interp,
				     struct places *ret)
{
	const struct prb_layout *l = &py->layout;

	*ret = (struct places){};
	if (l->generation_size <= 0 || l->generation_count < 0 || l->generation_threshold < 0 ||
	    l->gc_head_size <= 0)
		return prb_error_create(PRB_ERROR_UNSUPPORTED,
					"the layout of the garbage collector is unknown");
	ret->state = member(interp, l->interp_gc);
	if (!ret->state)
		ret->state = member(py->runtime, l->runtime_gc);
	if (ret->state) {
		ret->enabled = member(ret->state, l->gc_enabled);
		ret->collecting = member(ret->state, l->gc_collecting);
		ret->stats = member(ret->state, l->gc_stats);
		ret->permanent = member(ret->state, l->gc_permanent);
		PRB_TRY(find_generations(l, mem, ret));
	} else if (py->gc_generation0) {
		ret->enabled = py->gc_enabled;
		ret->collecting = py->gc_collecting;
		ret->stats = py->gc_stats;
		PRB_TRY(prb_mem_read_u64(mem, py->gc_generation0, &ret->generations));
	}
	if (!ret->generations)
		return prb_error_create(PRB_ERROR_UNSUPPORTED,
					"the location of the garbage collector's lists is unknown");
	return NULL;
}

static struct prb_error *read_int(struct prb_mem *mem, uint64_t address, int64_t *ret)
{
	uint32_t value;

	PRB_TRY(prb_mem_read_u32(mem, address, &value));
	*ret = (int32_t)value;
	return NULL;
}

static struct prb_error *read_word(struct prb_mem *mem, uint64_t base, int32_t offset, int64_t *ret)
{
	uint64_t value;

	*ret = -1;
	if (!base || offset == PRB_ABSENT)
		return NULL;
	PRB_TRY(prb_mem_read_u64(mem, base + (uint64_t)offset, &value));
	*ret = (int64_t)value;
	return NULL;
}

/* 3.15: the newest entry of a ring; an index that makes no sense gives the first. */
static struct prb_error *newest(struct prb_mem *mem, const struct prb_layout *l, uint64_t ring,
				int32_t index_offset, uint64_t *ret)
{
	uint8_t index;

	PRB_TRY(prb_mem_read_u8(mem, ring + (uint64_t)index_offset, &index));
	if ((int64_t)index * l->stats_size >= index_offset)
		index = 0;
	*ret = ring + index * (uint64_t)l->stats_size;
	return NULL;
}

/* Statistics of one generation; 0 if unknown. */
static struct prb_error *find_stats(const struct prb_layout *l, struct prb_mem *mem, uint64_t stats,
				    unsigned generation, uint64_t *ret)
{
	*ret = 0;
	if (!stats || l->stats_size <= 0)
		return NULL;
	if (l->stats_old == PRB_ABSENT) { /* up to 3.14: one after the other */
		*ret = stats + generation * (uint64_t)l->stats_size;
		return NULL;
	}
	PRB_TRY(prb_mem_read_u64(mem, stats, &stats));
	if (!generation)
		return newest(mem, l, stats, l->stats_young_index, ret);
	return newest(mem, l,
		      stats + (uint64_t)l->stats_old +
			      (generation - 1) * (uint64_t)l->stats_old_size,
		      l->stats_old_index, ret);
}

static struct prb_error *read_generation(const struct prb_layout *l, struct prb_mem *mem,
					 const struct places *places, unsigned index,
					 struct prb_gc_generation *ret)
{
	uint64_t generation = places->generations + index * (uint64_t)l->generation_size;
	uint64_t stats;
	int64_t seconds;

	PRB_TRY(read_int(mem, generation + (uint64_t)l->generation_count, &ret->count));
	PRB_TRY(read_int(mem, generation + (uint64_t)l->generation_threshold, &ret->threshold));
	PRB_TRY(find_stats(l, mem, places->stats, index, &stats));
	PRB_TRY(read_word(mem, stats, l->stats_collections, &ret->collections));
	PRB_TRY(read_word(mem, stats, l->stats_collected, &ret->collected));
	PRB_TRY(read_word(mem, stats, l->stats_uncollectable, &ret->uncollectable));
	PRB_TRY(read_word(mem, stats, l->stats_duration, &seconds));
	if (stats && l->stats_duration != PRB_ABSENT)
		memcpy(&ret->seconds, &seconds, sizeof(ret->seconds));
	else
		ret->seconds = -1;
	return NULL;
}

/* len(gc.garbage) */
static struct prb_error *read_garbage(const struct prb_layout *l, struct prb_mem *mem,
				      const struct places *places, int64_t *ret)
{
	int64_t list;

	PRB_TRY(read_word(mem, places->state, l->gc_garbage, &list));
	*ret = -1;
	return list > 0 ? read_word(mem, (uint64_t)list, l->var_size, ret) : NULL;
}

struct prb_error *prb_gc_read(struct prb_python *py, struct prb_mem *mem, uint64_t interp,
			      struct prb_gc *ret)
{
	const struct prb_layout *l = &py->layout;
	struct places places;
	int64_t flag = -1;

	*ret = (struct prb_gc){.incremental = l->gc_visited_space != PRB_ABSENT};
	PRB_TRY(find_places(py, mem, interp, &places));
	ret->freezes = places.permanent != 0;
	if (places.enabled)
		PRB_TRY(read_int(mem, places.enabled, &flag));
	ret->enabled = flag < 0 ? -1 : flag != 0;
	flag = 0;
	if (places.collecting)
		PRB_TRY(read_int(mem, places.collecting, &flag));
	ret->collecting = flag == 1;
	PRB_TRY(read_garbage(l, mem, &places, &ret->garbage));
	PRB_TRY(read_word(mem, places.state, l->gc_long_lived_total, &ret->long_lived));
	PRB_TRY(read_word(mem, places.state, l->gc_long_lived_pending, &ret->pending));
	for (unsigned i = 0; i < PRB_GC_GENERATIONS; i++)
		PRB_TRY(read_generation(l, mem, &places, i, &ret->generations[i]));
	return NULL;
}

struct prb_error *prb_gc_lists(struct prb_python *py, struct prb_mem *mem, uint64_t interp,
			       struct prb_gc_lists *ret)
{
	const struct prb_layout *l = &py->layout;
	struct places places;

	if (l->free_threaded)
		return prb_error_create(PRB_ERROR_UNSUPPORTED,
					"free-threaded builds keep no lists of objects");
	PRB_TRY(find_places(py, mem, interp, &places));
	*ret = (struct prb_gc_lists){
		.collecting = places.collecting,
		.head_size = (uint64_t)l->gc_head_size,
	};
	for (unsigned i = 0; i < PRB_GC_GENERATIONS; i++)
		ret->heads[i] = places.generations + i * (uint64_t)l->generation_size;
	ret->heads[PRB_GC_PERMANENT] = places.permanent;
	return NULL;
}

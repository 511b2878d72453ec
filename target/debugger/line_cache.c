/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "target/debugger/line_cache.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "target/mem/view.h"

enum {
	SLAB_LINES = 128,
	CALL_LINES = 512, /* most that one call reads: 256 KiB */
	PAGE_LINES = PRB_PAGE_SIZE / PRB_LINE_SIZE,
	FAR_LINES = 2 * PAGE_LINES, /* what fits one packet of gdb */
	CHEAP_NS = 30000,	    /* a call that took no longer went nowhere */
	LONG_NS = 2000000,	    /* a longer read went to another machine */
	AHEAD_LINES = PAGE_LINES,   /* most that are read because their neighbours were */
};

struct prb_error *prb_line_cache_init(struct prb_line_cache *cache,
				      const struct prb_debugger *debugger,
				      const struct prb_maps *maps)
{
	*cache = (struct prb_line_cache){
		.debugger = debugger, .maps = maps, .line_ns = INT64_MAX, .far_ns = INT64_MAX};
	cache->buffer = malloc((size_t)CALL_LINES * PRB_LINE_SIZE);
	return cache->buffer ? NULL : prb_error_nomem();
}

static void forget(struct prb_line_cache *cache)
{
	char **slab;

	prb_vec_each (slab, &cache->slabs)
		free(*slab);
	prb_vec_free(&cache->slabs);
	prb_number_map_deinit(&cache->index);
	cache->index = (struct prb_number_map){};
	cache->count = 0;
}

void prb_line_cache_deinit(struct prb_line_cache *cache)
{
	forget(cache);
	free(cache->buffer);
}

/* NULL: it is not there. */
static char *find(const struct prb_line_cache *cache, uint64_t number)
{
	size_t line;

	if (!prb_number_map_get(&cache->index, number, &line))
		return NULL;
	return cache->slabs.items[line / SLAB_LINES] + line % SLAB_LINES * PRB_LINE_SIZE;
}

static bool keep(struct prb_line_cache *cache, uint64_t number, const char *data)
{
	if (cache->count == cache->slabs.count * SLAB_LINES) {
		char **slab = prb_vec_push(&cache->slabs);

		if (!slab)
			return false;
		*slab = malloc((size_t)SLAB_LINES * PRB_LINE_SIZE);
		if (!*slab) {
			cache->slabs.count--;
			return false;
		}
	}
	if (!prb_number_map_put(&cache->index, number, cache->count))
		return false;
	cache->count++;
	memcpy(find(cache, number), data, PRB_LINE_SIZE);
	return true;
}

/* Where a line takes long one is enough: to another one more would have to be read soon. */
static bool line_is_tried(const struct prb_line_cache *cache)
{
	return cache->line_trials >= PRB_LINE_TRIALS ||
	       (cache->line_trials && cache->line_ns > LONG_NS);
}

static bool on_trial(const struct prb_line_cache *cache)
{
	return cache->far_trials < PRB_LINE_TRIALS || !line_is_tried(cache);
}

/*
 * How many lines are read where one is needed, from a multiple of that number on: of most pages
 * some are needed, and of those next to them where bytes cost nearly nothing. The first trial is of
 * many: one line alone is seldom enough.
 */
static uint64_t window(const struct prb_line_cache *cache)
{
	if (on_trial(cache))
		return cache->far_trials <= cache->line_trials || line_is_tried(cache) ? FAR_LINES
										       : 1;
	if (cache->line_ns < CHEAP_NS)
		return 1;
	if (cache->far_ns < cache->line_ns / 4 * 5)
		return FAR_LINES;
	return cache->far_ns < cache->line_ns * 2 ? PAGE_LINES : 1;
}

/* Notes the duration of a read of so many lines; other sizes do not count. */
static void note_trial(struct prb_line_cache *cache, size_t count, int64_t took)
{
	if (count == 1) {
		cache->line_trials++;
		cache->line_ns = PRB_MIN(cache->line_ns, took);
	} else if (count > FAR_LINES / 2 && count <= FAR_LINES) {
		cache->far_trials++;
		cache->far_ns = PRB_MIN(cache->far_ns, took);
	}
}

/* Whole lines that one call could read; what a debugger claims beyond what was asked is not. */
static size_t ask(struct prb_line_cache *cache, uint64_t first, size_t count)
{
	size_t length = count * PRB_LINE_SIZE;
	int64_t start = prb_clock_ns();
	size_t done = cache->debugger->read(cache->debugger->context, first * PRB_LINE_SIZE,
					    cache->buffer, length);

	if (on_trial(cache))
		note_trial(cache, count, prb_clock_ns() - start);
	return PRB_MIN(done, length) / PRB_LINE_SIZE;
}

/* How many lines from @p first on, up to @p most, are missing. */
static size_t missing(const struct prb_line_cache *cache, uint64_t first, uint64_t most)
{
	size_t count = 0;

	while (count < most && !find(cache, first + count))
		count++;
	return count;
}

/* How many lines are there from @p line on, in steps of @p step; not more than matter. */
static uint64_t held(const struct prb_line_cache *cache, uint64_t line, uint64_t step)
{
	uint64_t count = 0;

	while (count < AHEAD_LINES && find(cache, line + count * step))
		count++;
	return count;
}

/*
 * A read next to cached lines continues in that direction, as through the frames of a stack: reads
 * ahead as many lines as are cached already.
 */
static void read_ahead(const struct prb_line_cache *cache, uint64_t *first, uint64_t *last)
{
	uint64_t more = held(cache, *first - 1, UINT64_MAX);

	if (more) {
		*last += PRB_MIN(more, UINT64_MAX / PRB_LINE_SIZE - *last);
		return;
	}
	for (more = held(cache, *last + 1, 1); more && *first && !find(cache, *first - 1); more--)
		--*first;
}

static bool is_mapped(const struct prb_line_cache *cache, uint64_t line)
{
	return prb_maps_find(cache->maps, line * PRB_LINE_SIZE) != NULL;
}

/*
 * Makes of @p first to @p last whole windows of @p lines. A range across a border that is no longer
 * than one window begins a window of its own: two halves would be more to read.
 */
static void widen(const struct prb_line_cache *cache, uint64_t lines, uint64_t *first,
		  uint64_t *last)
{
	/*
	 * A part of them where nothing is mapped could not be read in one piece with the rest; not
	 * every debugger lists all mappings.
	 */
	bool told = is_mapped(cache, *first);
	uint64_t wanted = *last;

	if (*first / lines != *last / lines && *last - *first < lines) {
		*last = *first + PRB_MIN(lines - 1, UINT64_MAX / PRB_LINE_SIZE - *first);
	} else {
		*last |= lines - 1;
		while (*first % lines && !find(cache, *first - 1) &&
		       (!told || is_mapped(cache, *first - 1)))
			--*first;
	}
	while (told && *last > wanted && !is_mapped(cache, *last))
		--*last;
}

/*
 * Reads the line @p first, those up to @p last, and the rest of windows of @p lines, as far as they
 * are missing and one call can; gives how many, from *begin on.
 */
static size_t read_windows(struct prb_line_cache *cache, uint64_t first, uint64_t last,
			   uint64_t lines, uint64_t *begin)
{
	uint64_t most;

	if (!on_trial(cache))
		read_ahead(cache, &first, &last);
	widen(cache, lines, &first, &last);
	*begin = first;
	most = PRB_MIN(last - first + 1, (uint64_t)CALL_LINES);
	if (on_trial(cache))
		most = PRB_MIN(most, lines);
	if (cache->count + most > PRB_LINES_MAX)
		forget(cache);
	return ask(cache, first, missing(cache, first, most));
}

/*
 * Gets the line @p first, and what else is wanted up to @p last; *got lines are cached then. A
 * range that cannot be read in one piece may still be read page by page, or line by line.
 */
static struct prb_error *fetch(struct prb_line_cache *cache, uint64_t first, uint64_t last,
			       size_t *got)
{
	uint64_t begin, lines = window(cache);
	size_t count = read_windows(cache, first, last, lines, &begin);

	if (begin + count <= first && lines > PAGE_LINES)
		count = read_windows(cache, first, first, PAGE_LINES, &begin);
	if (begin + count <= first) {
		begin = first;
		count = ask(cache, begin, 1);
	}
	for (size_t i = 0; i < count; i++)
		if (!keep(cache, begin + i, cache->buffer + i * PRB_LINE_SIZE))
			return prb_error_nomem();
	*got = count ? begin + count - first : 0;
	return NULL;
}

/* A line that is not there as a whole may have been asked for in part only. */
static struct prb_error *read_part(struct prb_line_cache *cache, uint64_t address, void *buffer,
				   size_t length)
{
	size_t done = PRB_MIN(
		cache->debugger->read(cache->debugger->context, address, buffer, length), length);

	return done == length ? NULL : prb_error_fault(address + done, length - done);
}

struct prb_error *prb_line_cache_read(struct prb_line_cache *cache, uint64_t address, void *buffer,
				      size_t length)
{
	uint64_t end;

	if (!length)
		return NULL;
	if (!prb_add(address, length, &end))
		return prb_error_fault(address, length);
	while (length) {
		uint64_t number = address / PRB_LINE_SIZE;
		size_t offset = address % PRB_LINE_SIZE, got = 1;
		size_t part = PRB_MIN(length, PRB_LINE_SIZE - offset);
		const char *line = find(cache, number);

		if (!line) {
			PRB_TRY(fetch(cache, number, (end - 1) / PRB_LINE_SIZE, &got));
			line = got ? find(cache, number) : NULL;
		}
		if (line)
			memcpy(buffer, line + offset, part);
		else
			PRB_TRY(read_part(cache, address, buffer, part));
		buffer = (char *)buffer + part;
		address += part;
		length -= part;
	}
	return NULL;
}

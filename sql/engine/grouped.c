/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sql/engine/grouped.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/checked.h"
#include "base/siphash.h"

enum {
	BLOCK = 1 << 20, /* bytes allocated at once, unless a text is longer */
	MAX_ROWS = 64,	 /* in one piece of a group: the first has one row, each next piece twice as
			    many */
	FIRST_PLACES = 1 << 10,
};

/** Memory that lives as long as the rows. */
struct block {
	struct block *next;
	uint64_t bytes[];
};

/** Some rows of a group. */
struct piece {
	struct piece *next;
	uint32_t count, capacity;
	struct prb_cell cells[];
};

struct group {
	struct piece *first, *last;
	uint64_t hash;
};

struct prb_grouped {
	unsigned stride, count; /**< cells of a row; number of key cells */
	uint16_t keys[PRB_GROUP_KEYS];
	bool descending[PRB_GROUP_KEYS];
	uint64_t seed; /**< of the hashes: the target chooses the rows */

	struct block *blocks;
	char *free;
	size_t left; /**< bytes at `free` */

	struct group *groups;
	size_t group_count, group_capacity;
	uint32_t *places; /**< hash table: index of the group + 1; 0: none */
	size_t place_count;

	/* The present row. */
	size_t group;
	struct piece *piece;
	uint32_t row;
	int16_t slots[]; /**< as in the page */
};

struct prb_error *prb_grouped_create(const struct prb_page *page, const struct prb_group_key *keys,
				     unsigned count, struct prb_grouped **ret)
{
	size_t slots = page->column_count * sizeof(page->slots[0]);
	struct prb_grouped *g = calloc(1, sizeof(*g) + slots);

	if (!g)
		return prb_error_nomem();
	memcpy(g->slots, page->slots, slots);
	g->stride = page->stride;
	for (unsigned i = 0; i < PRB_MIN(count, PRB_GROUP_KEYS); i++) {
		/* An unused column is the same in all rows. */
		if (page->slots[keys[i].column] < 0)
			continue;
		g->descending[g->count] = keys[i].descending;
		g->keys[g->count++] = (uint16_t)page->slots[keys[i].column];
	}
	if (getrandom(&g->seed, sizeof(g->seed), 0) != sizeof(g->seed))
		g->seed = (uintptr_t)g;
	*ret = g;
	return NULL;
}

void prb_grouped_destroy(struct prb_grouped *g)
{
	if (!g)
		return;
	while (g->blocks) {
		struct block *block = g->blocks;

		g->blocks = block->next;
		sqlite3_free(block);
	}
	sqlite3_free(g->groups);
	sqlite3_free(g->places);
	free(g);
}

/** Memory for eight-byte words, or NULL. */
static void *allocate(struct prb_grouped *g, size_t size)
{
	void *result;

	size = (size + 7) & ~(size_t)7;
	if (size > g->left) {
		size_t bytes = PRB_MAX(size, BLOCK);
		struct block *block = sqlite3_malloc64(sizeof(*block) + bytes);

		if (!block)
			return NULL;
		block->next = g->blocks;
		g->blocks = block;
		g->free = (char *)block->bytes;
		g->left = bytes;
	}
	result = g->free;
	g->free += size;
	g->left -= size;
	return result;
}

/* Cells */

static const char *text_of(const struct prb_cell *cell, const char *texts)
{
	return cell->kind == PRB_CELL_TEXT ? texts + cell->offset : cell->text;
}

static size_t length_of(const struct prb_cell *cell)
{
	return cell->kind == PRB_CELL_STATIC ? strlen(cell->text) : cell->length;
}

/** Rank of NULL, numbers and texts in SQLite's order. */
static int rank_of(const struct prb_cell *cell)
{
	switch (cell->kind) {
	case PRB_CELL_NULL:
		return 0;
	case PRB_CELL_INTEGER:
	case PRB_CELL_REAL:
		return 1;
	default:
		return 2;
	}
}

static long double number_of(const struct prb_cell *cell)
{
	return cell->kind == PRB_CELL_INTEGER ? (long double)cell->integer
					      : (long double)cell->real;
}

/** @p b is a stored cell; @p a one of a page with these texts, or a stored one. */
static int compare(const struct prb_cell *a, const char *texts, const struct prb_cell *b)
{
	int rank = rank_of(a), difference = rank - rank_of(b);

	if (difference || !rank)
		return difference;
	if (rank == 2) {
		size_t left = length_of(a), right = length_of(b);
		int order = memcmp(text_of(a, texts), text_of(b, NULL), PRB_MIN(left, right));

		return order ? order : (left > right) - (left < right);
	}
	if (a->kind == PRB_CELL_INTEGER && b->kind == PRB_CELL_INTEGER)
		return (a->integer > b->integer) - (a->integer < b->integer);
	return (number_of(a) > number_of(b)) - (number_of(a) < number_of(b));
}

/** Equal cells have equal hashes: 1 and 1.0 are equal. */
static uint64_t hash_cell(const struct prb_cell *cell, const char *texts, uint64_t seed,
			  uint64_t hash)
{
	const uint64_t key[2] = {seed, hash};
	double real;

	switch (rank_of(cell)) {
	case 0:
		return ~hash;
	case 1:
		real = (double)number_of(cell);
		real = real == 0 ? 0 : real; /* not -0 */
		/* An integer without an exact double equals no double. */
		return (long double)real == number_of(cell)
			       ? prb_siphash(1, 3, key, &real, sizeof(real))
			       : prb_siphash(1, 3, key, &cell->integer, sizeof(cell->integer));
	default:
		return prb_siphash(1, 3, key, text_of(cell, texts), length_of(cell));
	}
}

/* Groups */

static uint64_t hash_row(const struct prb_grouped *g, const struct prb_cell *row, const char *texts)
{
	uint64_t hash = 0;

	for (unsigned i = 0; i < g->count; i++)
		hash = hash_cell(&row[g->keys[i]], texts, g->seed, hash);
	return hash;
}

static bool is_of(const struct prb_grouped *g, const struct group *group,
		  const struct prb_cell *row, const char *texts)
{
	for (unsigned i = 0; i < g->count; i++)
		if (compare(&row[g->keys[i]], texts, &group->first->cells[g->keys[i]]))
			return false;
	return true;
}

/** Doubles the hash table; false when out of memory. */
static bool grow_places(struct prb_grouped *g)
{
	size_t count = g->place_count ? 2 * g->place_count : FIRST_PLACES;
	uint32_t *places = count <= UINT32_MAX ? sqlite3_malloc64(count * sizeof(*places)) : NULL;

	if (!places)
		return false;
	memset(places, 0, count * sizeof(*places));
	for (size_t i = 0; i < g->group_count; i++) {
		size_t place = g->groups[i].hash & (count - 1);

		while (places[place])
			place = (place + 1) & (count - 1);
		places[place] = (uint32_t)i + 1;
	}
	sqlite3_free(g->places);
	g->places = places;
	g->place_count = count;
	return true;
}

static struct group *add_group(struct prb_grouped *g, size_t place, uint64_t hash)
{
	if (g->group_count == g->group_capacity) {
		size_t capacity = PRB_MAX(2 * g->group_capacity, 64);
		struct group *groups = sqlite3_realloc64(g->groups, capacity * sizeof(*g->groups));

		if (!groups)
			return NULL;
		g->groups = groups;
		g->group_capacity = capacity;
	}
	g->groups[g->group_count] = (struct group){.hash = hash};
	g->places[place] = (uint32_t)++g->group_count;
	return &g->groups[g->group_count - 1];
}

/** The row's group, created without rows if missing; NULL when out of memory. */
static struct group *find_group(struct prb_grouped *g, const struct prb_cell *row,
				const char *texts)
{
	uint64_t hash = hash_row(g, row, texts);
	size_t place;

	if (2 * g->group_count >= g->place_count && !grow_places(g))
		return NULL;
	place = hash & (g->place_count - 1);
	while (g->places[place]) {
		struct group *group = &g->groups[g->places[place] - 1];

		if (group->hash == hash && is_of(g, group, row, texts))
			return group;
		place = (place + 1) & (g->place_count - 1);
	}
	return add_group(g, place, hash);
}

/** Adds a row to the group; NULL when out of memory. */
static struct prb_cell *add_row(struct prb_grouped *g, struct group *group)
{
	struct piece *piece = group->last;

	if (!piece || piece->count == piece->capacity) {
		uint32_t capacity = piece ? PRB_MIN(2 * piece->capacity, MAX_ROWS) : 1;
		struct piece *more =
			allocate(g, sizeof(*more) + capacity * g->stride * sizeof(struct prb_cell));

		if (!more)
			return NULL;
		*more = (struct piece){.capacity = capacity};
		if (piece)
			piece->next = more;
		else
			group->first = more;
		piece = group->last = more;
	}
	return &piece->cells[piece->count++ * g->stride];
}

/** Copies a text, or shares the equal text of the row before. */
static bool copy_text(struct prb_grouped *g, const struct prb_cell *before, const char *texts,
		      struct prb_cell *cell)
{
	const char *text = text_of(cell, texts);
	char *copy;

	cell->kind = PRB_CELL_KEPT;
	if (before && before->kind == PRB_CELL_KEPT && before->length == cell->length &&
	    !memcmp(before->text, text, cell->length)) {
		cell->text = before->text;
		return true;
	}
	copy = allocate(g, cell->length);
	if (!copy)
		return false;
	memcpy(copy, text, cell->length);
	cell->text = copy;
	return true;
}

struct prb_error *prb_grouped_add(struct prb_grouped *g, const struct prb_page *page)
{
	const char *texts = prb_str_text(&page->text);

	for (size_t i = 0; i < page->rows; i++) {
		const struct prb_cell *row = &page->cells.items[i * page->stride], *before = NULL;
		struct group *group = find_group(g, row, texts);
		struct prb_cell *copy;

		if (group && group->last)
			before = &group->last->cells[(group->last->count - 1) * g->stride];
		copy = group ? add_row(g, group) : NULL;
		if (!copy)
			return prb_error_nomem();
		memcpy(copy, row, g->stride * sizeof(*row));
		for (unsigned c = 0; c < g->stride; c++)
			if (copy[c].kind == PRB_CELL_TEXT &&
			    !copy_text(g, before ? &before[c] : NULL, texts, &copy[c]))
				return prb_error_nomem();
	}
	return NULL;
}

static int by_keys(const void *left, const void *right, void *context)
{
	const struct prb_cell *a = ((const struct group *)left)->first->cells;
	const struct prb_cell *b = ((const struct group *)right)->first->cells;
	const struct prb_grouped *g = context;

	for (unsigned i = 0; i < g->count; i++) {
		int order = compare(&a[g->keys[i]], NULL, &b[g->keys[i]]);

		if (order)
			return g->descending[i] ? -order : order;
	}
	return 0;
}

void prb_grouped_sort(struct prb_grouped *g)
{
	if (g->group_count)
		qsort_r(g->groups, g->group_count, sizeof(*g->groups), by_keys, g);
	g->group = 0;
	g->piece = NULL;
	g->row = 0;
}

bool prb_grouped_next(struct prb_grouped *g)
{
	if (g->piece && ++g->row < g->piece->count)
		return true;
	g->row = 0;
	if (g->piece && g->piece->next) {
		g->piece = g->piece->next;
		return true;
	}
	if (g->group == g->group_count)
		return false;
	g->piece = g->groups[g->group++].first;
	return true;
}

void prb_grouped_result(const struct prb_grouped *g, unsigned column, sqlite3_context *context)
{
	int slot = g->slots[column];

	if (slot >= 0)
		prb_cell_result(&g->piece->cells[g->row * g->stride + (unsigned)slot], NULL,
				context);
}

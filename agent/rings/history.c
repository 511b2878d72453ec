/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/rings/history.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/rings/private.h"

enum {
	LAST = 3,    /* columns that a level's row has of the last row that it is of */
	VALUES = 9,  /* columns of which it has least, mean and highest values */
	SERIES = 32, /* of a table with texts: each combination is summed up by itself */
};

static const struct kept {
	const char *schema, *name;
	const char *last[LAST], *values[VALUES];
} tables[] = {
	{"python",
	 "torch_step_timing",
	 {"step", "local_step"},
	 {"duration", "data", "forward", "evaluation", "backward", "optimizer", "communication",
	  "checkpoint", "own"}},
	{"python", "variables", {"name", "function", "step"}, {"number"}},
	{"main", "training_logs", {"epoch", "step"}, {"loss", "lr", "grad_norm", "duration"}},
};

struct sum {
	double sum, least, highest;
	uint32_t count; /* rows that are not NULL */
};

struct bucket {
	uint32_t parts; /* rows of the level below */
	struct sum values[VALUES];
};

struct series {
	uint64_t key; /* hash of its texts */
	struct bucket levels[PRBA_HISTORY_LEVELS];
};

struct prba_history {
	uint32_t busy, pid; /* pid: of the process that the sums are of */
	uint32_t last_count, value_count, series_count;
	uint32_t last[LAST], values[VALUES]; /* numbers of columns */
	intptr_t rings[PRBA_HISTORY_LEVELS];
	struct series series[SERIES];
};

/** The numbers of the columns with these names: how many there are. */
static uint32_t find(const struct prb_ring_header *header, const struct prb_ring_column *columns,
		     const char *const *names, uint32_t most, uint32_t *ret)
{
	uint32_t count = 0;

	for (uint32_t n = 0; n < most && names[n]; n++)
		for (uint32_t i = 0; i < header->column_count; i++)
			if (!strcmp(columns[i].name, names[n]))
				ret[count++] = i;
	return count;
}

struct prba_history *prba_history_create(const struct prb_ring_header *header,
					 const struct prb_ring_column *columns)
{
	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++) {
		const struct kept *kept = &tables[i];
		struct prba_history *history;

		if (strcmp(kept->schema, header->schema) != 0 ||
		    strcmp(kept->name, header->name) != 0)
			continue;
		history = calloc(1, sizeof(*history));
		if (!history)
			return NULL;
		history->last_count = find(header, columns, kept->last, LAST, history->last);
		history->value_count = find(header, columns, kept->values, VALUES, history->values);
		return history;
	}
	return NULL;
}

int prba_history_columns(const struct prba_history *history, const struct prb_ring_column *base,
			 struct prb_ring_column ret[PRB_RING_COLUMNS])
{
	static const char *const ends[] = {"", "_min", "_max"};
	int count = 0;

	for (uint32_t i = 0; i < history->last_count; i++)
		ret[count++] = base[history->last[i]];
	ret[count++] = (struct prb_ring_column){.name = "steps", .type = PRB_RING_INTEGER};
	for (uint32_t i = 0; i < history->value_count; i++) {
		const struct prb_ring_column *column = &base[history->values[i]];

		for (size_t end = 0; end < sizeof(ends) / sizeof(*ends); end++, count++) {
			ret[count] = *column;
			ret[count].type = PRB_RING_REAL;
			snprintf(ret[count].name, sizeof(ret[count].name), "%.32s%s", column->name,
				 ends[end]);
		}
	}
	return count;
}

void prba_history_set(struct prba_history *history, unsigned level, intptr_t ring)
{
	history->rings[level] = ring;
}

/** A text of a row as it is, since numbers of interned ones are the ring's. */
static struct probing_cell plain(const struct prba_ring *ring, const struct probing_cell *cell)
{
	struct probing_cell result = *cell;
	uint64_t place = (uint64_t)cell->integer;

	if (cell->kind != PROBING_INTERNED)
		return result;
	result = (struct probing_cell){};
	if (place + sizeof(result.length) > ring->string_bytes)
		return result;
	memcpy(&result.length, ring->strings + place, sizeof(result.length));
	place += sizeof(result.length);
	if (place + result.length > ring->string_bytes)
		return (struct probing_cell){};
	result.kind = PROBING_TEXT;
	result.text = ring->strings + place;
	return result;
}

/** FNV-1a of the texts among @p last. */
static uint64_t key_of(const struct probing_cell *last, uint32_t count)
{
	uint64_t key = 14695981039346656037u;

	for (uint32_t i = 0; i < count; i++) {
		if (last[i].kind != PROBING_TEXT)
			continue;
		for (uint32_t c = 0; c < last[i].length; c++)
			key = (key ^ (unsigned char)last[i].text[c]) * 1099511628211u;
		key = (key ^ 256) * 1099511628211u;
	}
	return key;
}

/** NULL if there are too many. */
static struct series *find_series(struct prba_history *history, uint64_t key)
{
	struct series *series = history->series;

	for (uint32_t i = 0; i < history->series_count; i++, series++)
		if (series->key == key)
			return series;
	if (history->series_count == SERIES)
		return NULL;
	memset(series, 0, sizeof(*series));
	series->key = key;
	history->series_count++;
	return series;
}

static void merge(struct sum *into, const struct sum *from)
{
	if (!from->count)
		return;
	/* A NaN is no least value, unless all are. */
	if (!into->count || from->least < into->least || into->least != into->least)
		into->least = from->least;
	if (!into->count || from->highest > into->highest || into->highest != into->highest)
		into->highest = from->highest;
	into->sum += from->sum;
	into->count += from->count;
}

static struct sum sum_of(const struct probing_cell *cell)
{
	double value = cell->kind == PROBING_REAL ? cell->real : (double)cell->integer;

	if (cell->kind != PROBING_REAL && cell->kind != PROBING_INTEGER)
		return (struct sum){};
	return (struct sum){value, value, value, 1};
}

static struct probing_cell real(double value, bool there)
{
	return there ? (struct probing_cell){PROBING_REAL, 0, {.real = value}}
		     : (struct probing_cell){};
}

static void write_row(const struct prba_history *history, unsigned level,
		      const struct bucket *bucket, int64_t time, const struct probing_cell *last)
{
	struct probing_cell cells[PRB_RING_COLUMNS];
	uint32_t at = history->last_count;
	int64_t steps = 1;

	memcpy(cells, last, at * sizeof(*cells));
	for (unsigned i = 0; i <= level; i++)
		steps *= PRBA_HISTORY_BASE;
	cells[at++] = (struct probing_cell){PROBING_INTEGER, 0, {.integer = steps}};
	for (uint32_t i = 0; i < history->value_count; i++) {
		const struct sum *sum = &bucket->values[i];

		cells[at++] = real(sum->sum / sum->count, sum->count);
		cells[at++] = real(sum->least, sum->count);
		cells[at++] = real(sum->highest, sum->count);
	}
	probing_ring_append(history->rings[level], time, cells);
}

/** Full buckets are written, and are parts of the next level's. */
static void carry(const struct prba_history *history, struct series *series, int64_t time,
		  const struct probing_cell *last)
{
	for (unsigned level = 0; level < PRBA_HISTORY_LEVELS; level++) {
		struct bucket *bucket = &series->levels[level];

		if (bucket->parts < PRBA_HISTORY_BASE)
			return;
		if (history->rings[level] > 0)
			write_row(history, level, bucket, time, last);
		if (level + 1 < PRBA_HISTORY_LEVELS) {
			bucket[1].parts++;
			for (uint32_t i = 0; i < history->value_count; i++)
				merge(&bucket[1].values[i], &bucket->values[i]);
		}
		memset(bucket, 0, sizeof(*bucket));
	}
}

void prba_history_add(struct prba_history *history, const struct prba_ring *ring, uint32_t pid,
		      int64_t time, const struct probing_cell *cells)
{
	struct probing_cell last[LAST];
	struct series *series;

	/* A child has copies of its parent's sums. */
	if (__atomic_load_n(&history->pid, __ATOMIC_RELAXED) != pid) {
		history->series_count = 0;
		__atomic_store_n(&history->pid, pid, __ATOMIC_RELAXED);
		__atomic_store_n(&history->busy, 0, __ATOMIC_RELEASE);
	}
	if (__atomic_exchange_n(&history->busy, 1, __ATOMIC_ACQUIRE))
		return;
	for (uint32_t i = 0; i < history->last_count; i++)
		last[i] = plain(ring, &cells[history->last[i]]);
	series = find_series(history, key_of(last, history->last_count));
	if (series) {
		series->levels[0].parts++;
		for (uint32_t i = 0; i < history->value_count; i++) {
			struct sum one = sum_of(&cells[history->values[i]]);

			merge(&series->levels[0].values[i], &one);
		}
		carry(history, series, time, last);
	}
	__atomic_store_n(&history->busy, 0, __ATOMIC_RELEASE);
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile/store/write/growing_chunk.h"

#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "profile/store/chunk.h"
#include "profile/store/write/statements.h"

enum {
	EXACT_S = 3600,	  /* for so long times are kept to the nanosecond */
	UNITS = 100,	  /* later: the mean gap between two samples has so many units */
	STEP_UNITS = 10,  /* of runs that are put together */
	LONGEST_S = 3600, /* step */
	MOST_RUNS = 8192, /* of a chunk, put together */
	/* With more, the writer could not keep up. */
	MOST_SMALL_RUNS = 65536,
	/* All chunks of a recording together may have so many bytes, and so many for each minute.
	 */
	EXACT_BYTES = 8000000,
	MINUTE_BYTES = 11000,
};

static const int64_t second = 1000000000;

int64_t prb_store_chunk_begin(const struct prb_batch *b)
{
	int64_t begin = INT64_MAX;
	const struct prb_run *run;

	prb_vec_each (run, &b->runs)
		begin = PRB_MIN(begin, run->begin);
	return begin;
}

/* A recording of days does not need single nanoseconds. */
static int64_t unit_of(const struct prb_batch *b, int64_t begin, unsigned units)
{
	int64_t unit = (int64_t)(1e9 / b->about.rate / units);

	return begin < EXACT_S * second ? 1 : PRB_MAX(unit, (int64_t)1);
}

static struct prb_error *put(struct prb_store_file *file, const struct prb_batch *b, int64_t number,
			     struct prb_chunk chunk, const struct prb_run *runs, int64_t *ret_bytes)
{
	prb_auto_str struct prb_str data = {};

	chunk.threads = b->threads.count;
	chunk.stacks = b->all_stacks;
	chunk.waits = b->all_waits;
	PRB_TRY(prb_chunk_encode(&chunk, runs, &data));
	*ret_bytes = (int64_t)data.length;
	return prb_store_sql_put(file, PRB_STORE_CHUNK, "iiiib", number, chunk.begin, chunk.unit,
				 (int64_t)chunk.runs, (const void *)data.data, data.length);
}

static struct prb_error *put_as_they_are(struct prb_store_file *file, const struct prb_batch *b,
					 int64_t *ret_bytes)
{
	const struct prb_store_chunks *chunks = &file->chunks;
	int64_t begin = prb_store_chunk_begin(b);
	const struct prb_chunk chunk = {
		.runs = b->runs.count,
		.begin = begin,
		.unit = unit_of(b, begin, UNITS),
		.small = b->cut && b->runs.count <= MOST_SMALL_RUNS,
	};
	prb_auto_free struct prb_run *sorted = malloc(b->runs.count * sizeof(*sorted));

	if (!sorted)
		return prb_error_nomem();
	/* Runs of one thread are alike. */
	memcpy(sorted, b->runs.items, b->runs.count * sizeof(*sorted));
	if (b->cut)
		prb_runs_sort(sorted, b->runs.count);
	return put(file, b, chunks->next + (chunks->steps.runs.count > 0), chunk, sorted,
		   ret_bytes);
}

/* Its bounds of error need no more than three digits. */
static double shorten(double squares)
{
	uint64_t bits;

	memcpy(&bits, &squares, sizeof(bits));
	bits &= ~((UINT64_C(1) << 42) - 1);
	memcpy(&squares, &bits, sizeof(bits));
	return squares;
}

static struct prb_error *put_together(struct prb_store_file *file, const struct prb_batch *b,
				      int64_t *ret_bytes)
{
	const struct prb_store_chunks *chunks = &file->chunks;
	size_t count = chunks->steps.runs.count;
	prb_auto_free struct prb_run *runs = malloc(count * sizeof(*runs));
	const struct prb_chunk chunk = {
		.runs = count,
		.begin = chunks->begin,
		.unit = unit_of(b, INT64_MAX, STEP_UNITS),
		.small = true,
	};

	if (!runs)
		return prb_error_nomem();
	memcpy(runs, chunks->steps.runs.items, count * sizeof(*runs));
	prb_runs_straighten(runs, count);
	for (size_t i = 0; i < count; i++)
		if (runs[i].samples > 1)
			runs[i].cpu_squares = shorten(runs[i].cpu_squares);
	return put(file, b, chunks->next, chunk, runs, ret_bytes);
}

/* Only once, however often the transaction fails. */
static struct prb_error *absorb(struct prb_store_chunks *chunks, const struct prb_batch *b)
{
	const struct prb_run *run;

	if (chunks->absorbed == b->chunk)
		return NULL;
	if (!chunks->steps.runs.count)
		chunks->begin = prb_store_chunk_begin(b);
	prb_vec_each (run, &b->runs)
		PRB_TRY(prb_steps_add(&chunks->steps, run));
	chunks->absorbed = b->chunk;
	return NULL;
}

struct prb_error *prb_store_chunk_put(struct prb_store_file *file, const struct prb_batch *b,
				      struct prb_store_chunk *ret)
{
	struct prb_store_chunks *chunks = &file->chunks;
	prb_auto_str struct prb_str sql = {};

	ret->complete = b->cut;
	if (!b->cut || !chunks->steps.step)
		return put_as_they_are(file, b, &ret->bytes);
	PRB_TRY(absorb(chunks, b));
	PRB_TRY(put_together(file, b, &ret->bytes));
	ret->complete = chunks->steps.runs.count > MOST_RUNS ||
			b->about.duration - chunks->begin >= chunks->steps.step;
	/* Where it grew until now. */
	prb_str_printf(&sql, "DELETE FROM chunks WHERE chunk > %lld", (long long)chunks->next);
	return sql.failed ? prb_error_nomem() : prb_store_sql_run(file, prb_str_text(&sql));
}

/* As long as the file grows too fast, steps get longer. */
static void choose_step(struct prb_store_chunks *chunks, const struct prb_batch *b, int64_t begin,
			int64_t bytes)
{
	int64_t *step = &chunks->steps.step, now = b->about.duration;
	double minutes = (double)now / 60e9, share = (double)(now - begin) / 60e9 * MINUTE_BYTES;

	/* Such a file does not grow with time. */
	if (b->about.ring || b->about.condition)
		return;
	if ((double)chunks->bytes > EXACT_BYTES + minutes * MINUTE_BYTES)
		*step = PRB_MIN(*step ? 2 * *step : second, LONGEST_S * second);
	else if ((double)bytes < share / 2)
		*step = *step > second ? *step / 2 : 0;
}

void prb_store_chunk_written(struct prb_store_file *file, const struct prb_batch *b,
			     const struct prb_store_chunk *chunk)
{
	struct prb_store_chunks *chunks = &file->chunks;
	int64_t begin = chunks->steps.runs.count ? chunks->begin : prb_store_chunk_begin(b);

	if (!chunk->complete)
		return;
	prb_steps_clear(&chunks->steps);
	chunks->next++;
	chunks->bytes += chunk->bytes;
	choose_step(chunks, b, begin, chunk->bytes);
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile/store/chunk.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/pack.h"

enum {
	LEVEL = 3,
	LEVEL_SMALL = 17,
	/* The most bytes of a run, decompressed: ten numbers, a mark and a sum of squares. */
	MOST_RUN_BYTES = 10 * 10 + 1 + (int)sizeof(double),
	SQUARES_FOLLOW = 1, /* or they are those of a single sample */
};

/* Numbers, 7 bits a byte, the lowest first. */

static void put_number(struct prb_str *s, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		prb_str_putc(s, (char)(value | 0x80));
	prb_str_putc(s, (char)value);
}

/* Small numbers of both signs are short. */
static uint64_t fold_sign(int64_t value)
{
	return (uint64_t)value << 1 ^ (uint64_t)(value >> 63);
}

static int64_t unfold_sign(uint64_t value)
{
	return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

static int64_t in_units(int64_t ns, int64_t unit)
{
	return (ns + unit / 2) / unit;
}

/* Encoding: what the columns take of a run, and of the runs of its thread before. */

struct sums {
	int64_t end;		  /* of the last run of the thread, ns from the chunk's begin */
	int64_t wall, cpu, queue; /* of all of them, ns */
};

struct encoder {
	const struct prb_chunk *chunk;
	const struct prb_run *runs;
	struct sums *sums; /* of threads */
	struct prb_str *out;
};

static void put_begins(struct encoder *e)
{
	int64_t unit = e->chunk->unit;

	for (size_t i = 0; i < e->chunk->runs; i++) {
		const struct prb_run *run = &e->runs[i];
		struct sums *sums = &e->sums[run->thread];
		int64_t begin = run->begin - e->chunk->begin;

		put_number(e->out, fold_sign(in_units(begin, unit) - in_units(sums->end, unit)));
		sums->end = begin + run->wall;
	}
}

static int64_t rounded(int64_t *sum, int64_t value, int64_t unit)
{
	int64_t before = in_units(*sum, unit);

	*sum += value;
	return in_units(*sum, unit) - before;
}

/* From begin to end: both are rounded, so that runs meet. */
static void put_walls(struct encoder *e)
{
	int64_t unit = e->chunk->unit;

	for (size_t i = 0; i < e->chunk->runs; i++) {
		int64_t begin = e->runs[i].begin - e->chunk->begin;

		put_number(e->out, (uint64_t)(in_units(begin + e->runs[i].wall, unit) -
					      in_units(begin, unit)));
	}
}

static void put_weights(struct encoder *e)
{
	for (size_t i = 0; i < e->chunk->runs; i++)
		put_number(e->out, (uint64_t)rounded(&e->sums[e->runs[i].thread].cpu,
						     e->runs[i].cpu, e->chunk->unit));
	for (size_t i = 0; i < e->chunk->runs; i++)
		put_number(e->out, (uint64_t)rounded(&e->sums[e->runs[i].thread].queue,
						     e->runs[i].queue, e->chunk->unit));
}

static void put_squares(struct encoder *e)
{
	for (size_t i = 0; i < e->chunk->runs; i++) {
		const struct prb_run *run = &e->runs[i];
		bool single = run->cpu_squares == (double)run->cpu * (double)run->cpu;

		put_number(e->out, single ? 0 : SQUARES_FOLLOW);
		if (!single)
			prb_str_append(e->out, &run->cpu_squares, sizeof(run->cpu_squares));
	}
}

static void put_columns(struct encoder *e)
{
	const struct prb_run *run, *end = e->runs + e->chunk->runs;

	for (run = e->runs; run < end; run++)
		put_number(e->out, run->thread);
	for (run = e->runs; run < end; run++)
		put_number(e->out, run->stack);
	for (run = e->runs; run < end; run++)
		put_number(e->out, run->state);
	for (run = e->runs; run < end; run++)
		put_number(e->out, (uint64_t)run->wait << 1 | run->gil);
	for (run = e->runs; run < end; run++)
		put_number(e->out, run->samples);
	for (run = e->runs; run < end; run++)
		put_number(e->out, run->reads);
	put_begins(e);
	put_walls(e);
	put_weights(e);
	put_squares(e);
}

struct prb_error *prb_chunk_encode(const struct prb_chunk *chunk, const struct prb_run *runs,
				   struct prb_str *ret)
{
	prb_auto_free struct sums *sums = calloc(chunk->threads + 1, sizeof(*sums));
	prb_auto_str struct prb_str columns = {};
	struct encoder encoder = {chunk, runs, sums, &columns};
	prb_auto_free char *packed = NULL;
	size_t size;

	if (!sums)
		return prb_error_nomem();
	put_columns(&encoder);
	if (columns.failed)
		return prb_error_nomem();
	PRB_TRY(prb_pack(prb_str_text(&columns), columns.length, chunk->small ? LEVEL_SMALL : LEVEL,
			 &packed, &size));
	prb_str_append(ret, packed, size);
	return ret->failed ? prb_error_nomem() : NULL;
}

/* Decoding */

struct decoder {
	const struct prb_chunk *chunk;
	const uint8_t *at, *end;
	struct prb_run *runs;
	int64_t *ends; /* of threads: of their last run, units */
};

static struct prb_error *bad(const char *what)
{
	return prb_error_create(PRB_ERROR_BAD_DATA, "a chunk of samples %s", what);
}

static struct prb_error *take_number(struct decoder *d, uint64_t *ret)
{
	*ret = 0;
	for (unsigned shift = 0; shift < 64; shift += 7) {
		uint8_t byte;

		if (d->at == d->end)
			return bad("ends too early");
		byte = *d->at++;
		if (shift == 63 && byte > 1)
			break;
		*ret |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return NULL;
	}
	return bad("holds a number of more than 64 bits");
}

static struct prb_error *take_below(struct decoder *d, uint64_t bound, const char *what,
				    uint64_t *ret)
{
	PRB_TRY(take_number(d, ret));
	return *ret < bound ? NULL : bad(what);
}

static struct prb_error *take_time(struct decoder *d, int64_t *ret)
{
	uint64_t value;

	PRB_TRY(take_number(d, &value));
	if (value > INT64_MAX || __builtin_mul_overflow((int64_t)value, d->chunk->unit, ret))
		return bad("holds a time that is too long");
	return NULL;
}

static struct prb_error *take_places(struct decoder *d)
{
	const struct prb_chunk *chunk = d->chunk;
	struct prb_run *run, *end = d->runs + chunk->runs;
	uint64_t value;

	for (run = d->runs; run < end; run++) {
		PRB_TRY(take_below(d, chunk->threads, "names a thread that is not there", &value));
		run->thread = (uint32_t)value;
	}
	for (run = d->runs; run < end; run++) {
		PRB_TRY(take_below(d, chunk->stacks, "names a stack that is not there", &value));
		run->stack = (uint32_t)value;
	}
	for (run = d->runs; run < end; run++) {
		PRB_TRY(take_below(d, PRB_RUN_STATES, "names a state that is not there", &value));
		run->state = (enum prb_run_state)value;
	}
	for (run = d->runs; run < end; run++) {
		PRB_TRY(take_below(d, 2 * (uint64_t)chunk->waits, "names a wait that is not there",
				   &value));
		run->wait = (uint32_t)(value >> 1);
		run->gil = value & 1;
	}
	return NULL;
}

static struct prb_error *take_counts(struct decoder *d)
{
	struct prb_run *run, *end = d->runs + d->chunk->runs;
	const uint64_t bound = UINT32_MAX;
	uint64_t value;

	for (run = d->runs; run < end; run++) {
		PRB_TRY(take_below(d, bound, "has too many samples", &value));
		run->samples = (uint32_t)value;
	}
	for (run = d->runs; run < end; run++) {
		PRB_TRY(take_below(d, bound, "has too many samples", &value));
		run->reads = (uint32_t)value;
	}
	return NULL;
}

/* Where a run begins is known from the one before it and how long that was. */
static struct prb_error *place_run(struct decoder *d, struct prb_run *run)
{
	int64_t unit = d->chunk->unit, begin, *last = &d->ends[run->thread];

	if (__builtin_add_overflow(*last, run->begin, &begin) ||
	    __builtin_add_overflow(begin, run->wall / unit, last) ||
	    __builtin_mul_overflow(begin, unit, &begin) ||
	    __builtin_add_overflow(begin, d->chunk->begin, &run->begin) || run->begin < 0 ||
	    run->wall > INT64_MAX - run->begin)
		return bad("holds a time that is out of range");
	return NULL;
}

static struct prb_error *take_times(struct decoder *d)
{
	struct prb_run *run, *end = d->runs + d->chunk->runs;
	uint64_t value;

	for (run = d->runs; run < end; run++) {
		PRB_TRY(take_number(d, &value));
		run->begin = unfold_sign(value);
	}
	for (run = d->runs; run < end; run++) {
		PRB_TRY(take_time(d, &run->wall));
		PRB_TRY(place_run(d, run));
	}
	for (run = d->runs; run < end; run++)
		PRB_TRY(take_time(d, &run->cpu));
	for (run = d->runs; run < end; run++)
		PRB_TRY(take_time(d, &run->queue));
	return NULL;
}

static struct prb_error *take_squares(struct decoder *d)
{
	struct prb_run *run, *end = d->runs + d->chunk->runs;
	uint64_t mark;

	for (run = d->runs; run < end; run++) {
		PRB_TRY(take_below(d, SQUARES_FOLLOW + 1, "has an unknown mark", &mark));
		run->cpu_squares = (double)run->cpu * (double)run->cpu;
		if (mark != SQUARES_FOLLOW)
			continue;
		if ((size_t)(d->end - d->at) < sizeof(run->cpu_squares))
			return bad("ends too early");
		memcpy(&run->cpu_squares, d->at, sizeof(run->cpu_squares));
		d->at += sizeof(run->cpu_squares);
		if (!isfinite(run->cpu_squares) || run->cpu_squares < 0)
			return bad("holds a sum of squares that is none");
	}
	return d->at == d->end ? NULL : bad("is longer than its runs");
}

/* A frame that says how long it is, and is that long. */
static struct prb_error *unpack(const struct prb_chunk *chunk, const void *data, size_t size,
				char **ret, size_t *ret_size)
{
	unsigned long long announced = ZSTD_getFrameContentSize(data, size);
	prb_auto_free char *unpacked = NULL;
	size_t got;

	if (announced == ZSTD_CONTENTSIZE_ERROR || announced == ZSTD_CONTENTSIZE_UNKNOWN)
		return bad("is no zstd frame with a known length");
	if (announced > chunk->runs * MOST_RUN_BYTES)
		return bad("is longer than its runs");
	unpacked = malloc((size_t)announced + 1);
	if (!unpacked)
		return prb_error_nomem();
	got = ZSTD_decompress(unpacked, (size_t)announced, data, size);
	if (ZSTD_isError(got) || got != announced)
		return bad("cannot be decompressed");
	*ret = prb_steal(&unpacked);
	*ret_size = got;
	return NULL;
}

struct prb_error *prb_chunk_decode(const struct prb_chunk *chunk, const void *data, size_t size,
				   struct prb_run *ret)
{
	prb_auto_free int64_t *ends = calloc(chunk->threads + 1, sizeof(*ends));
	prb_auto_free char *unpacked = NULL;
	size_t length;

	if (chunk->runs > PRB_CHUNK_MOST_RUNS || chunk->unit < 1)
		return bad("has too many runs, or no unit");
	if (!ends)
		return prb_error_nomem();
	PRB_TRY(unpack(chunk, data, size, &unpacked, &length));
	struct decoder decoder = {chunk, (uint8_t *)unpacked, (uint8_t *)unpacked + length, ret,
				  ends};
	PRB_TRY(take_places(&decoder));
	PRB_TRY(take_counts(&decoder));
	PRB_TRY(take_times(&decoder));
	return take_squares(&decoder);
}

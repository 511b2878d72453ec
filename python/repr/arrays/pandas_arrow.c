/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Texts of pandas in Arrow's memory, where those of pandas 3 are if pyarrow is installed. An object
 * of pyarrow holds a ChunkedArray of C++, which leads to arrays, their data and their buffers.
 * Nothing describes these (tested: pyarrow 10 to 26), so each is checked by what it must agree
 * with: lengths with each other, and what is read with the sizes of the buffers.
 */
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "python/repr/arrays/pandas.h"
#include "python/repr/arrays/polars.h"
#include "python/repr/core/handlers.h"

enum {
	OBJECT_WORDS =
		8, /* of an object of pyarrow, among which are a shared pointer and a plain one */
	CHUNKED_LENGTH = 5, /* word of a ChunkedArray, which begins with a vector of arrays */
	ARRAY_DATA = 1,	    /* word of an array */
	POINTER = 16,	    /* bytes of a shared one */
	CHUNKS_MAX = 1024,
	CHUNK_COST = 8, /* of what may be walked through */
};

/* Words of the data of an array: behind its type. */
enum { LENGTH = 2, OFFSET = 4, BUFFERS, BUFFERS_END, DATA_WORDS };

struct buffer {
	uint64_t address, size;
};

/* An array: its values, and what they are made of. */
struct chunk {
	uint64_t length, offset;
	struct buffer present, ends, bytes;
};

/* Its functions, whether it is mutable and of the processor's memory (a byte each), address, size.
 */
static struct prb_error *read_buffer(struct prb_repr *r, uint64_t pointer, struct buffer *ret)
{
	enum { FLAGS = 0xffff, MUTABLE = 1, OF_CPU = 0x100 };
	uint64_t address, words[4];

	*ret = (struct buffer){};
	PRB_TRY(prb_repr_word(r, pointer, &address));
	if (!address)
		return NULL;
	PRB_TRY(prb_repr_words(r, address, PRB_ARRAY_SIZE(words), words));
	if (((words[1] & FLAGS) | MUTABLE) != (OF_CPU | MUTABLE))
		return prb_repr_bad(address, "not a buffer");
	*ret = (struct buffer){words[2], words[3]};
	return NULL;
}

/* Texts have three buffers: which there are, where each ends, and their bytes. */
static struct prb_error *read_chunk(struct prb_repr *r, uint64_t pointer, struct chunk *ret)
{
	enum { COUNT = 3 };
	uint64_t array, data, words[DATA_WORDS], end;

	PRB_TRY(prb_repr_walk(r, CHUNK_COST));
	PRB_TRY(prb_repr_word(r, pointer, &array));
	PRB_TRY(prb_repr_word(r, array + ARRAY_DATA * 8, &data));
	PRB_TRY(prb_repr_words(r, data, DATA_WORDS, words));
	*ret = (struct chunk){.length = words[LENGTH], .offset = words[OFFSET]};
	if (words[BUFFERS_END] - words[BUFFERS] != COUNT * POINTER ||
	    !prb_add(ret->length, ret->offset, &end))
		return prb_repr_bad(data, "not an array of texts");
	PRB_TRY(read_buffer(r, words[BUFFERS], &ret->present));
	PRB_TRY(read_buffer(r, words[BUFFERS] + POINTER, &ret->ends));
	PRB_TRY(read_buffer(r, words[BUFFERS] + 2 * POINTER, &ret->bytes));
	if (ret->present.address && ret->present.size < end / 8 + !!(end % 8))
		return prb_repr_bad(data, "an array whose buffer is too small");
	return NULL;
}

/* Where the text before @p number ends, and that one. */
static bool read_ends(struct prb_repr *r, const struct chunk *chunk, unsigned width,
		      uint64_t number, uint64_t ret[static 2])
{
	uint64_t needed, at = chunk->ends.address + number * width;
	uint32_t narrow[2];
	struct prb_error *err;

	if (!prb_mul(number + 2, width, &needed) || needed > chunk->ends.size)
		return false;
	err = prb_mem_read(r->mem, at, width == 8 ? (void *)ret : narrow, 2 * (size_t)width);
	for (int i = 0; !err && width != 8 && i < 2; i++)
		ret[i] = narrow[i];
	bool right = !err && ret[0] <= ret[1] && ret[1] <= chunk->bytes.size;
	prb_error_destroy(err);
	return right;
}

/*
 * The ends are of 8 or of 4 bytes. If those of 4 can be read as 8, all of them are 0, and both are
 * the same; so 8 are tried first.
 */
static struct prb_error *find_text(struct prb_repr *r, const struct chunk *chunk, uint64_t row,
				   struct prb_polars_text *ret)
{
	uint64_t ends[2], last[2], first[2];

	for (unsigned width = 8; width >= 4; width /= 2) {
		if (!read_ends(r, chunk, width, chunk->offset, first) ||
		    !read_ends(r, chunk, width, chunk->offset + row, ends) ||
		    !read_ends(r, chunk, width, chunk->offset + chunk->length - 1, last) ||
		    first[0] > ends[0] || ends[1] > last[1])
			continue;
		*ret = (struct prb_polars_text){chunk->bytes.address + ends[0], ends[1] - ends[0]};
		return NULL;
	}
	return prb_repr_bad(chunk->ends.address, "not the ends of texts");
}

/* Whether there is a text in that row, and where. */
static struct prb_error *read_row(struct prb_repr *r, const struct prb_frame_column *column,
				  uint64_t row, bool *present, struct prb_polars_text *ret)
{
	struct chunk chunk;
	uint8_t bits;

	for (uint64_t i = 0; i < column->chunks; i++) {
		PRB_TRY(read_chunk(r, column->first + i * POINTER, &chunk));
		if (row >= chunk.length) {
			row -= chunk.length;
			continue;
		}
		*present = true;
		if (chunk.present.address) {
			uint64_t bit = chunk.offset + row;

			PRB_TRY(prb_mem_read(r->mem, chunk.present.address + bit / 8, &bits, 1));
			*present = bits >> bit % 8 & 1;
		}
		return *present ? find_text(r, &chunk, row, ret) : NULL;
	}
	return prb_repr_bad(column->first, "no such row");
}

static struct prb_error *find_chunked(struct prb_repr *r, uint64_t object, uint64_t *ret)
{
	uint64_t words[OBJECT_WORDS];

	PRB_TRY(prb_repr_words(r, object + (uint64_t)r->layout->object_size, OBJECT_WORDS, words));
	for (unsigned i = 0; i + 2 < OBJECT_WORDS; i++)
		if (words[i] && words[i] == words[i + 2]) {
			*ret = words[i];
			return NULL;
		}
	return prb_repr_bad(object, "not an array of pyarrow");
}

struct prb_error *prb_arrow_texts_open(struct prb_repr *r, uint64_t object,
				       struct prb_frame_column *ret)
{
	uint64_t chunked, words[CHUNKED_LENGTH + 1], length = 0;
	struct chunk chunk;

	PRB_TRY(find_chunked(r, object, &chunked));
	PRB_TRY(prb_repr_words(r, chunked, PRB_ARRAY_SIZE(words), words));
	ret->first = words[0];
	ret->chunks = (words[1] - words[0]) / POINTER;
	if (words[1] < words[0] || words[2] < words[1] || ret->chunks > CHUNKS_MAX)
		return prb_repr_bad(chunked, "not an array of arrays");
	for (uint64_t i = 0; i < ret->chunks; i++) {
		PRB_TRY(read_chunk(r, ret->first + i * POINTER, &chunk));
		if (!prb_add(length, chunk.length, &length))
			return prb_repr_bad(chunked, "arrays of impossible length");
	}
	if (length != words[CHUNKED_LENGTH])
		return prb_repr_bad(chunked, "arrays of another length");
	ret->kind = PRB_FRAME_TEXTS;
	ret->count = length;
	return NULL;
}

struct prb_error *prb_arrow_put_text(struct prb_repr *r, const struct prb_frame_column *column,
				     uint64_t row)
{
	struct prb_polars_text text;
	bool present;

	PRB_TRY(read_row(r, column, row, &present, &text));
	if (present)
		return prb_polars_put_text(r, text);
	prb_str_puts(r->out, !strcmp(column->name, "str") ? "nan" : "<NA>");
	return NULL;
}

struct prb_error *prb_arrow_text_is(struct prb_repr *r, const struct prb_frame_column *column,
				    uint64_t row, const char *wanted, bool *same)
{
	struct prb_polars_text text;
	bool present;

	PRB_TRY(read_row(r, column, row, &present, &text));
	*same = present && text.length == strlen(wanted);
	if (!*same || !text.length)
		return NULL;

	prb_auto_free char *bytes = malloc(text.length);

	if (!bytes)
		return prb_error_nomem();
	PRB_TRY(prb_mem_read(r->mem, text.address, bytes, text.length));
	*same = !memcmp(bytes, wanted, text.length);
	return NULL;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* From a position in a code object to source lines and columns: one decoder per table format. */
#include "python/frames/lines.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

enum { MAX_TABLE = 16 << 20 /* bytes of one line table */ };

static const struct prb_py_location nowhere = {-1, -1, -1, -1};

/* A line or column that no source has is none. */
static int32_t place(int64_t value)
{
	return value < 0 || value > INT32_MAX ? -1 : (int32_t)value;
}

/* 3.4–3.9: pairs of (bytecode delta, line delta); the last pair not behind the position counts. */
static void decode_lnotab(const uint8_t *table, size_t size, int64_t position, bool is_signed,
			  struct prb_py_location *ret)
{
	int64_t address = 0, line = ret->line;

	for (size_t i = 0; i + 1 < size; i += 2) {
		address += table[i];
		if (address > position)
			break;
		line += is_signed ? (int8_t)table[i + 1] : table[i + 1];
	}
	*ret = nowhere;
	ret->line = place(line);
}

/* 3.10: pairs of (bytecode length, line delta); a delta of -128 means that there is no line. */
static void decode_linetable(const uint8_t *table, size_t size, int64_t position,
			     struct prb_py_location *ret)
{
	int64_t end = 0, line = ret->line;

	for (size_t i = 0; i + 1 < size; i += 2) {
		int8_t delta = (int8_t)table[i + 1];

		if (delta != -128)
			line += delta;
		end += table[i];
		if (position >= end)
			continue;
		*ret = nowhere;
		if (delta != -128)
			ret->line = place(line);
		return;
	}
	*ret = nowhere;
}

struct cursor {
	const uint8_t *at, *end;
};

static uint32_t take_byte(struct cursor *c)
{
	return c->at < c->end ? *c->at++ : 0;
}

/* Six bits a byte, least significant first; bit 6 says that more follow. */
static uint32_t take_varint(struct cursor *c)
{
	uint32_t value = 0;

	for (unsigned shift = 0; shift < 32; shift += 6) {
		uint32_t byte = take_byte(c);

		value |= (byte & 63) << shift;
		if (!(byte & 64))
			break;
	}
	return value;
}

static int32_t take_signed(struct cursor *c)
{
	uint32_t value = take_varint(c);

	return value & 1 ? -(int32_t)(value >> 1) : (int32_t)(value >> 1);
}

/* Kinds of an entry in the location table of 3.11+. */
enum {
	LOCATION_SHORT_LAST = 9, /* 0–9: same line, columns in one more byte */
	LOCATION_ONE_LINE = 10,	 /* 10–12: 0–2 lines on, two column bytes */
	LOCATION_NO_COLUMNS = 13,
	LOCATION_LONG = 14,
	LOCATION_NONE = 15,
};

/* Decodes the entry behind its first byte; *line moves on. */
static struct prb_py_location take_location(struct cursor *c, unsigned kind, int64_t *line)
{
	struct prb_py_location location = nowhere;

	if (kind <= LOCATION_SHORT_LAST) {
		uint32_t byte = take_byte(c);

		location.col = (int32_t)(kind << 3 | byte >> 4);
		location.end_col = location.col + (int32_t)(byte & 15);
		location.line = location.end_line = place(*line);
	} else if (kind < LOCATION_NO_COLUMNS) {
		*line += kind - LOCATION_ONE_LINE;
		location.line = location.end_line = place(*line);
		location.col = (int32_t)take_byte(c);
		location.end_col = (int32_t)take_byte(c);
	} else if (kind == LOCATION_NO_COLUMNS) {
		*line += take_signed(c);
		location.line = location.end_line = place(*line);
	} else if (kind == LOCATION_LONG) {
		*line += take_signed(c);
		location.line = place(*line);
		location.end_line = place(*line + take_varint(c));
		location.col = place((int64_t)take_varint(c) - 1);
		location.end_col = place((int64_t)take_varint(c) - 1);
	}
	return location;
}

static void decode_locations(const uint8_t *table, size_t size, int64_t position,
			     struct prb_py_location *ret)
{
	struct cursor c = {table, table + size};
	int64_t end = 0, line = ret->line;

	while (c.at < c.end) {
		uint32_t first = take_byte(&c);
		struct prb_py_location location = take_location(&c, first >> 3 & 15, &line);

		end += 2 * ((first & 7) + 1);
		if (position < end) {
			*ret = location;
			return;
		}
		/* Entries begin with the top bit set and none of their other bytes has it. */
		while (c.at < c.end && !(*c.at & 0x80))
			c.at++;
	}
	*ret = nowhere;
}

void prb_lines_decode(enum prb_line_format format, const uint8_t *table, size_t size,
		      int32_t first_line, int64_t position, struct prb_py_location *ret)
{
	*ret = nowhere;
	ret->line = first_line;
	if (position < 0) { /* before the first instruction */
		ret->line = place(first_line);
		return;
	}
	switch (format) {
	case PRB_LINES_LNOTAB_UNSIGNED:
		return decode_lnotab(table, size, position, false, ret);
	case PRB_LINES_LNOTAB_SIGNED:
		return decode_lnotab(table, size, position, true, ret);
	case PRB_LINES_LINETABLE:
		return decode_linetable(table, size, position, ret);
	case PRB_LINES_LOCATIONS:
		return decode_locations(table, size, position, ret);
	}
}

/* Free-threaded builds run a copy of the bytecode per thread; the frame says which. Without an
 * address it is a position in the original. */
static struct prb_error *code_start(struct prb_python *py, struct prb_mem *mem,
				    const struct prb_py_frame *frame, uint64_t *ret)
{
	const struct prb_layout *l = &py->layout;
	uint64_t array;
	uint32_t index;

	*ret = frame->code + (uint64_t)l->code_bytes;
	if (!frame->address || !l->free_threaded || l->frame_tlbc_index <= 0 || l->code_tlbc <= 0)
		return NULL;
	PRB_TRY(prb_mem_read_u32(mem, frame->address + (uint64_t)l->frame_tlbc_index, &index));
	if (!index)
		return NULL;
	PRB_TRY(prb_mem_read_u64(mem, frame->code + (uint64_t)l->code_tlbc, &array));

	uint64_t count;
	PRB_TRY(prb_mem_read_u64(mem, array, &count));
	if (index >= count)
		return prb_error_create(PRB_ERROR_BAD_DATA, "bytecode copy %u of %llu", index,
					(unsigned long long)count);
	return prb_mem_read_u64(mem, array + 8 + 8 * (uint64_t)index, ret);
}

struct prb_error *prb_python_position(struct prb_python *py, struct prb_mem *mem,
				      const struct prb_py_frame *frame, int64_t *ret)
{
	uint64_t start;

	switch (py->layout.behaviour->position) {
	case PRB_POSITION_BYTES:
		*ret = (int64_t)frame->position;
		return NULL;
	case PRB_POSITION_UNITS:
		*ret = (int64_t)frame->position < 0 ? -1 : 2 * (int64_t)frame->position;
		return NULL;
	case PRB_POSITION_PREV_INSTR:
	case PRB_POSITION_INSTR_PTR:
		break;
	}
	PRB_TRY(code_start(py, mem, frame, &start));
	*ret = (int64_t)(frame->position - start);
	return NULL;
}

struct prb_error *prb_python_location(struct prb_python *py, struct prb_mem *mem,
				      const struct prb_py_frame *frame, struct prb_py_location *ret)
{
	const struct prb_layout *l = &py->layout;
	uint64_t table, size;
	uint32_t first_line;
	int64_t position;

	*ret = nowhere;
	PRB_TRY(prb_mem_read_u64(mem, frame->code + (uint64_t)l->code_linetable, &table));
	PRB_TRY(prb_mem_read_u32(mem, frame->code + (uint64_t)l->code_firstlineno, &first_line));
	PRB_TRY(prb_mem_read_u64(mem, table + (uint64_t)l->var_size, &size));
	PRB_TRY(prb_python_position(py, mem, frame, &position));
	if (size > MAX_TABLE)
		return prb_error_create(PRB_ERROR_BAD_DATA, "a line table of %llu bytes",
					(unsigned long long)size);

	uint8_t small[1024];
	prb_auto_free uint8_t *large = size > sizeof(small) ? malloc(size) : NULL;
	uint8_t *data = size > sizeof(small) ? large : small;
	if (!data)
		return prb_error_nomem();
	PRB_TRY(prb_mem_read(mem, table + (uint64_t)l->bytes_data, data, size));
	prb_lines_decode(l->behaviour->lines, data, size, (int32_t)first_line, position, ret);
	return NULL;
}

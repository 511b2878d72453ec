/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dwarf/lines/record.h"

#include <stdlib.h>
#include <string.h>

enum { FORMAT = 1, MAX_LINES = 255 };

static void put_u32(struct prb_str *s, uint32_t value)
{
	for (int shift = 0; shift < 32; shift += 8)
		prb_str_putc(s, (char)(value >> shift));
}

static void put_string(struct prb_str *s, const char *text)
{
	size_t length = text ? strlen(text) : 0;

	put_u32(s, text ? (uint32_t)length + 1 : 0);
	prb_str_append(s, text, length);
}

void prb_line_record_encode(const struct prb_lines *lines, bool had_table, struct prb_str *ret)
{
	size_t count = lines->list.count < MAX_LINES ? lines->list.count : MAX_LINES;

	prb_str_putc(ret, FORMAT);
	prb_str_putc(ret, had_table);
	prb_str_putc(ret, (char)count);
	put_string(ret, count ? lines->list.items[0].symbol : NULL);
	for (size_t i = 0; i < count; i++) {
		const struct prb_line *line = &lines->list.items[i];

		put_u32(ret, line->line);
		prb_str_putc(ret, line->inlined);
		put_string(ret, line->func);
		put_string(ret, line->file);
	}
}

struct cursor {
	const uint8_t *data, *end;
	bool bad;
};

static uint8_t get_u8(struct cursor *c)
{
	if (c->data >= c->end) {
		c->bad = true;
		return 0;
	}
	return *c->data++;
}

static uint32_t get_u32(struct cursor *c)
{
	uint32_t value = 0;

	for (int shift = 0; shift < 32; shift += 8)
		value |= (uint32_t)get_u8(c) << shift;
	return value;
}

static char *get_string(struct cursor *c)
{
	uint32_t length = get_u32(c);

	if (c->bad || length-- == 0)
		return NULL;
	if (length > (size_t)(c->end - c->data)) {
		c->bad = true;
		return NULL;
	}

	char *text = strndup((const char *)c->data, length);
	c->bad |= !text;
	c->data += length;
	return text;
}

bool prb_line_record_decode(const void *data, size_t length, struct prb_lines *ret, bool *had_table)
{
	struct cursor c = {.data = data, .end = (const uint8_t *)data + length};

	if (get_u8(&c) != FORMAT)
		return false;
	*had_table = get_u8(&c);

	unsigned count = get_u8(&c);
	char *symbol = get_string(&c);
	for (unsigned i = 0; i < count && !c.bad; i++) {
		struct prb_line *line = prb_vec_push(&ret->list);

		if (!line) {
			c.bad = true;
			break;
		}
		line->line = get_u32(&c);
		line->inlined = get_u8(&c);
		line->func = get_string(&c);
		line->file = get_string(&c);
		line->symbol = symbol ? strdup(symbol) : NULL;
		c.bad |= symbol && !line->symbol;
	}
	free(symbol);
	return !c.bad && c.data == c.end && ret->list.count > 0;
}

bool prb_line_record_decode_unnamed(const void *data, size_t length, struct prb_lines *ret)
{
	static const uint8_t no_symbol[4];
	enum { SYMBOL = 3 /* the place of its length */ };
	bool had_table;

	return length >= SYMBOL + sizeof(no_symbol) &&
	       !memcmp((const uint8_t *)data + SYMBOL, no_symbol, sizeof(no_symbol)) &&
	       prb_line_record_decode(data, length, ret, &had_table);
}

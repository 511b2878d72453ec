/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Matches of regular expressions. */
#include "base/checked.h"
#include "base/cleanup.h"
#include "python/repr/core/handlers.h"

/* Words behind the size of the object. */
enum { STRING, REGS, PATTERN, POS, ENDPOS, LAST_INDEX, GROUPS, START, END, WORDS };

/* A piece of a str or of bytes, as the literal that it is. */
static struct prb_error *put_piece(struct prb_repr *r, uint64_t string, uint64_t start,
				   uint64_t end)
{
	uint64_t count = end - start;
	bool is_str;

	PRB_TRY(prb_repr_is_str(r, string, &is_str));
	if (is_str)
		return prb_repr_quote_part(r, string, start, count);
	if (!prb_repr_is(r, string, "bytes")) {
		prb_str_puts(r->out, "…");
		return NULL;
	}

	uint32_t bytes[256];
	uint64_t shown =
		PRB_MIN(PRB_MIN(count, (uint64_t)r->max.max_text), (uint64_t)PRB_ARRAY_SIZE(bytes));
	for (uint64_t i = 0; i < shown; i++) {
		uint8_t byte;

		PRB_TRY(prb_mem_read_u8(
			r->mem, string + (uint64_t)r->layout->bytes_data + start + i, &byte));
		bytes[i] = byte;
	}
	prb_repr_quote_bytes(r, bytes, shown);
	if (shown < count)
		prb_str_printf(r->out, "…+%llu", (unsigned long long)(count - shown));
	return NULL;
}

struct prb_error *prb_repr_handle_match(struct prb_repr *r, uint64_t object, struct prb_type *type)
{
	uint64_t words[WORDS];

	PRB_TRY(prb_repr_words(r, object + (uint64_t)r->layout->object_size + 8, WORDS, words));
	if (words[START] > words[END])
		return prb_repr_bad(object, "a match that ends before it begins");
	prb_str_printf(r->out, "<%s object; span=(%llu, %llu), match=", type->name,
		       (unsigned long long)words[START], (unsigned long long)words[END]);
	PRB_TRY(put_piece(r, words[STRING], words[START], words[END]));
	prb_str_putc(r->out, '>');
	return NULL;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* bytes and bytearray. */
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "python/repr/core/handlers.h"

static void put_byte(struct prb_repr *r, uint8_t c, char quote)
{
	static const char named[] = {['\t'] = 't', ['\n'] = 'n', ['\r'] = 'r'};

	if (c == (uint8_t)quote || c == '\\')
		prb_str_printf(r->out, "\\%c", c);
	else if (c < sizeof(named) && named[c])
		prb_str_printf(r->out, "\\%c", named[c]);
	else if (c < ' ' || c >= 0x7f)
		prb_str_put_escaped_byte(r->out, c);
	else
		prb_str_putc(r->out, (char)c);
}

void prb_repr_quote_bytes(struct prb_repr *r, const uint32_t *bytes, size_t count)
{
	bool single = false, both = false;

	for (size_t i = 0; i < count; i++) {
		single |= bytes[i] == '\'';
		both |= bytes[i] == '"';
	}

	char quote = single && !both ? '"' : '\'';

	prb_str_printf(r->out, "b%c", quote);
	for (size_t i = 0; i < count; i++)
		put_byte(r, (uint8_t)bytes[i], quote);
	prb_str_putc(r->out, quote);
}

/* @p escape is a quote that is escaped even where it needs not be, or 0. */
static struct prb_error *put_bytes(struct prb_repr *r, uint64_t address, uint64_t length,
				   char escape)
{
	size_t shown =
		PRB_MIN(length, PRB_MIN((uint64_t)r->max.max_text, (uint64_t)prb_repr_room(r)));
	prb_auto_free uint8_t *bytes = malloc(shown + 1);

	if (!bytes)
		return prb_error_nomem();
	if (shown)
		PRB_TRY(prb_mem_read(r->mem, address, bytes, shown));

	char quote = memchr(bytes, '\'', shown) && !memchr(bytes, '"', shown) ? '"' : '\'';

	prb_str_printf(r->out, "b%c", quote);
	for (size_t i = 0; i < shown; i++)
		put_byte(r, bytes[i], escape && bytes[i] == (uint8_t)escape ? escape : quote);
	prb_str_putc(r->out, quote);
	if (shown < length)
		prb_str_printf(r->out, "…+%llu", (unsigned long long)(length - shown));
	return NULL;
}

struct prb_error *prb_repr_handle_bytes(struct prb_repr *r, uint64_t object,
					struct prb_type *type __attribute__((unused)))
{
	uint64_t length;

	PRB_TRY(prb_repr_size(r, object, &length));
	return put_bytes(r, object + (uint64_t)r->layout->bytes_data, length, 0);
}

struct prb_error *prb_repr_handle_bytearray(struct prb_repr *r, uint64_t object,
					    struct prb_type *type)
{
	uint64_t length, words[3]; /* allocated, bytes, start */

	PRB_TRY(prb_repr_size(r, object, &length));
	PRB_TRY(prb_repr_words(r, object + (uint64_t)r->layout->var_size + 8, 3, words));
	PRB_TRY(prb_repr_put_kind(r, type, "bytearray"));
	prb_str_putc(r->out, '(');
	/* An empty one may have no memory at all. */
	PRB_TRY(put_bytes(r, words[2], length, r->traits->bytearray_as_bytes ? 0 : '\''));
	prb_str_putc(r->out, ')');
	return NULL;
}

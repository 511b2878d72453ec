/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "target/custom.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

/*
 * Control characters that no repr() has. Between BEGIN and USUAL are the object and its class,
 * between USUAL and END the text that is shown if the extension has none.
 */
enum { BEGIN = 1, USUAL = 2, END = 3 };
enum { MOST = 64 << 10 }; /* bytes of one text */

void prb_custom_begin(struct prb_str *out, uint64_t object, uint64_t type)
{
	prb_str_printf(out, "%c%llx %llx%c", BEGIN, (unsigned long long)object,
		       (unsigned long long)type, USUAL);
}

void prb_custom_end(struct prb_str *out)
{
	prb_str_putc(out, END);
}

/*
 * The end of the usual text, which may have nested marks; a text that was cut ends with the whole.
 */
static const char *find_end(const char *at, const char *end)
{
	unsigned level = 1;

	for (; at < end; at++) {
		level += *at == BEGIN;
		level -= *at == END;
		if (!level)
			break;
	}
	return at;
}

/* Not inside of a character. */
static void cut(struct prb_str *text, size_t start)
{
	size_t end = start + MOST;

	if (text->failed || text->length <= end)
		return;
	while (end > start && (text->data[end] & 0xc0) == 0x80)
		end--;
	prb_str_truncate(text, end);
	prb_str_puts(text, "…");
}

static bool put_text(const struct prb_custom *custom, const char *mark, struct prb_str *out)
{
	size_t start = out->length;
	char *rest;
	uint64_t object = strtoull(mark + 1, &rest, 16), type = strtoull(rest, NULL, 16);

	if (!custom->object(custom->context, object, type, out)) {
		prb_str_truncate(out, start);
		return false;
	}
	cut(out, start);
	return true;
}

static void expand(const struct prb_custom *custom, const char *at, const char *end,
		   struct prb_str *out)
{
	while (at < end) {
		const char *mark = memchr(at, BEGIN, (size_t)(end - at)), *usual, *stop;

		prb_str_append(out, at, (size_t)((mark ? mark : end) - at));
		if (!mark)
			return;
		usual = memchr(mark, USUAL, (size_t)(end - mark));
		if (!usual) { /* it was cut */
			prb_str_puts(out, "…");
			return;
		}
		stop = find_end(usual + 1, end);
		if (!put_text(custom, mark, out))
			expand(custom, usual + 1, stop, out);
		at = stop < end ? stop + 1 : end;
	}
}

struct prb_error *prb_custom_expand(const struct prb_custom *custom, struct prb_str *text)
{
	prb_auto_str struct prb_str result = {};

	if (!custom || !text->length || !memchr(text->data, BEGIN, text->length))
		return NULL;
	expand(custom, text->data, text->data + text->length, &result);
	if (result.failed)
		return prb_error_nomem();
	text->length = 0;
	prb_str_append(text, result.data, result.length);
	return text->failed ? prb_error_nomem() : NULL;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* str objects: their text, and their repr. */
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "python/repr/core/handlers.h"
#include "base/siphash.h"

enum { NAME_MAX_CHARACTERS = 1000, COMPARE_MAX = 256, SUM_MAX_CHARACTERS = 4096 };

/* Where the characters of a str lie. */
struct text {
	uint64_t length; /* characters */
	uint64_t data;
	unsigned kind; /* bytes per character: 1, 2 or 4 */
};

unsigned prb_repr_str_state_shift(const struct prb_layout *l)
{
	return l->free_threaded && l->behaviour->interned_byte ? 8 : 2;
}

static bool is_ascii_state(const struct prb_layout *l, uint32_t state)
{
	return (state >> prb_repr_str_state_shift(l) & 0x1f) == (1 | 1 << 3 | 1 << 4);
}

/* Up to 3.11 a str may wait for its first use as an array of wchar_t. */
static struct prb_error *find_wide(struct prb_repr *r, uint64_t object, struct text *ret)
{
	const struct prb_layout *l = r->layout;

	if (l->unicode_wstr < 0 || l->unicode_wstr_length < 0)
		return prb_repr_bad(object, "a str of unknown kind");
	PRB_TRY(prb_repr_word(r, object + (uint64_t)l->unicode_wstr, &ret->data));
	PRB_TRY(prb_repr_word(r, object + (uint64_t)l->unicode_wstr_length, &ret->length));
	ret->kind = sizeof(wchar_t);
	return NULL;
}

/* Of what is known to be a str. */
static struct prb_error *locate_text(struct prb_repr *r, uint64_t object, struct text *ret)
{
	const struct prb_layout *l = r->layout;
	uint32_t state;

	PRB_TRY(prb_repr_word(r, object + (uint64_t)l->unicode_length, &ret->length));
	PRB_TRY(prb_mem_read_u32(r->mem, object + (uint64_t)l->unicode_state, &state));
	state >>= prb_repr_str_state_shift(l);
	ret->kind = state & 7;
	if (ret->kind == 0)
		PRB_TRY(find_wide(r, object, ret));
	else if (!(state & 1 << 3))
		PRB_TRY(prb_repr_word(r, object + (uint64_t)l->unicode_any_data, &ret->data));
	else
		ret->data = object + (uint64_t)(state & 1 << 4 ? l->unicode_ascii_size
							       : l->unicode_compact_size);
	if ((ret->kind != 1 && ret->kind != 2 && ret->kind != 4) || ret->length > INT64_MAX / 4)
		return prb_repr_bad(object, "a str of unknown kind");
	return NULL;
}

static struct prb_error *find_text(struct prb_repr *r, uint64_t object, struct text *ret)
{
	bool is_str;

	PRB_TRY(prb_repr_is_str(r, object, &is_str));
	return is_str ? locate_text(r, object, ret) : prb_repr_bad(object, "not a str");
}

/* Reads the first characters; the caller frees *ret. */
static struct prb_error *read_characters(struct prb_repr *r, const struct text *text, size_t count,
					 uint32_t **ret)
{
	prb_auto_free uint32_t *wide = calloc(count + 1, sizeof(*wide));

	if (!wide)
		return prb_error_nomem();
	if (count)
		PRB_TRY(prb_mem_read(r->mem, text->data, wide, count * text->kind));
	/* Widens in place, from the last to the first. */
	for (size_t i = count; i-- > 0;) {
		if (text->kind == 1)
			wide[i] = ((uint8_t *)wide)[i];
		else if (text->kind == 2)
			wide[i] = ((uint16_t *)wide)[i];
	}
	*ret = prb_steal(&wide);
	return NULL;
}

static struct prb_error *append_text(struct prb_repr *r, uint64_t object, size_t max,
				     void (*put)(struct prb_str *s, uint32_t code_point),
				     struct prb_str *ret)
{
	prb_auto_free uint32_t *wide = NULL;
	struct text text;

	PRB_TRY(find_text(r, object, &text));

	size_t count = PRB_MIN(text.length, (uint64_t)max);

	PRB_TRY(read_characters(r, &text, count, &wide));
	for (size_t i = 0; i < count; i++)
		put(ret, wide[i]);
	return ret->failed ? prb_error_nomem() : NULL;
}

struct prb_error *prb_repr_text(struct prb_repr *r, uint64_t object, size_t max,
				struct prb_str *ret)
{
	return append_text(r, object, max, prb_str_put_utf8, ret);
}

static void put_raw(struct prb_str *s, uint32_t c)
{
	if (c >= 0xd800 && c < 0xe000)
		prb_str_append(s,
			       (char[]){(char)(0xe0 | c >> 12), (char)(0x80 | (c >> 6 & 0x3f)),
					(char)(0x80 | (c & 0x3f))},
			       3);
	else if (c)
		prb_str_put_utf8(s, c);
	else
		prb_str_putc(s, '\0');
}

struct prb_error *prb_repr_raw_text(struct prb_repr *r, uint64_t object, size_t max,
				    struct prb_str *ret)
{
	return append_text(r, object, max, put_raw, ret);
}

struct prb_error *prb_repr_put_text(struct prb_repr *r, uint64_t object)
{
	struct text text;

	PRB_TRY(prb_repr_text(r, object, NAME_MAX_CHARACTERS, r->out));
	PRB_TRY(find_text(r, object, &text));
	if (text.length > NAME_MAX_CHARACTERS)
		prb_str_printf(r->out, "…+%llu",
			       (unsigned long long)text.length - NAME_MAX_CHARACTERS);
	return NULL;
}

/* For names that are not ASCII: compares the whole text. */
static struct prb_error *wide_text_is(struct prb_repr *r, uint64_t object, const char *text,
				      bool *ret)
{
	prb_auto_str struct prb_str its = {};

	PRB_TRY(prb_repr_text(r, object, strlen(text) + 1, &its));
	*ret = strcmp(prb_str_text(&its), text) == 0;
	return NULL;
}

bool prb_is_ascii(const char *text)
{
	while (*text && !(*text & 0x80))
		text++;
	return !*text;
}

struct prb_error *prb_repr_text_is(struct prb_repr *r, uint64_t object, const char *text, bool *ret)
{
	const struct prb_layout *l = r->layout;
	size_t header = (size_t)l->unicode_ascii_size, length = strlen(text);
	uint8_t bytes[COMPARE_MAX];
	uint64_t its_length;
	uint32_t state;

	*ret = false;
	if (length > sizeof(bytes) || header > sizeof(bytes) || !prb_is_ascii(text))
		return wide_text_is(r, object, text, ret);
	if (l->unicode_state < 0 || l->unicode_length < 0 ||
	    header < (size_t)l->unicode_state + sizeof(state) ||
	    header < (size_t)l->unicode_length + sizeof(its_length))
		return prb_repr_bad(object, "a layout without str");
	PRB_TRY(prb_mem_read(r->mem, object, bytes, header));
	memcpy(&its_length, bytes + l->unicode_length, sizeof(its_length));
	memcpy(&state, bytes + l->unicode_state, sizeof(state));
	if (its_length != length || !is_ascii_state(l, state))
		return NULL;
	PRB_TRY(prb_mem_read(r->mem, object + header, bytes, length));
	if (memcmp(bytes, text, length) != 0)
		return NULL;
	/* Last, because it costs most: that it is a str at all. */
	return prb_repr_is_str(r, object, ret);
}

static void put_escaped(struct prb_repr *r, uint32_t c, char quote)
{
	static const char named[] = {['\t'] = 't', ['\n'] = 'n', ['\r'] = 'r'};

	if (c == (uint32_t)quote || c == '\\')
		prb_str_printf(r->out, "\\%c", (char)c);
	else if (c < sizeof(named) && named[c])
		prb_str_printf(r->out, "\\%c", named[c]);
	else if (c < ' ' || c == 0x7f)
		prb_str_put_escaped_byte(r->out, (uint8_t)c);
	else if (c < 0x7f || prb_py_printable(c, r->layout->version))
		prb_str_put_utf8(r->out, c);
	else if (c <= 0xff)
		prb_str_put_escaped_byte(r->out, (uint8_t)c);
	else if (c <= 0xffff)
		prb_str_printf(r->out, "\\u%04x", c);
	else
		prb_str_printf(r->out, "\\U%08x", c);
}

void prb_repr_quote(struct prb_repr *r, const uint32_t *text, size_t count)
{
	bool single = false, both = false;

	for (size_t i = 0; i < count; i++) {
		single |= text[i] == '\'';
		both |= text[i] == '"';
	}

	char quote = single && !both ? '"' : '\'';

	prb_str_putc(r->out, quote);
	for (size_t i = 0; i < count; i++)
		put_escaped(r, text[i], quote);
	prb_str_putc(r->out, quote);
}

/* Decodes what put_raw() wrote: it is well-formed. */
struct prb_error *prb_repr_quote_raw(struct prb_repr *r, const struct prb_str *text)
{
	prb_auto_free uint32_t *wide = calloc(text->length + 1, sizeof(*wide));
	size_t count = 0;

	if (!wide)
		return prb_error_nomem();
	for (size_t i = 0; i < text->length; i++) {
		uint8_t c = (uint8_t)text->data[i];

		if ((c & 0xc0) == 0x80 && count)
			wide[count - 1] = wide[count - 1] << 6 | (c & 0x3f);
		else
			wide[count++] = c < 0x80   ? c
					: c < 0xe0 ? c & 0x1f
					: c < 0xf0 ? c & 0xf
						   : c & 7;
	}
	prb_repr_quote(r, wide, count);
	return NULL;
}

struct prb_error *prb_repr_quote_at(struct prb_repr *r, uint64_t address, unsigned width,
				    uint64_t length)
{
	const struct text text = {.data = address, .kind = width};
	size_t count =
		PRB_MIN(length, PRB_MIN((uint64_t)r->max.max_text, (uint64_t)prb_repr_room(r)));
	prb_auto_free uint32_t *wide = NULL;

	PRB_TRY(read_characters(r, &text, count, &wide));
	prb_repr_quote(r, wide, count);
	if (count < length)
		prb_str_printf(r->out, "…+%llu", (unsigned long long)(length - count));
	return NULL;
}

struct prb_error *prb_repr_quote_part(struct prb_repr *r, uint64_t object, uint64_t start,
				      uint64_t count)
{
	struct text text;

	PRB_TRY(find_text(r, object, &text));
	if (start > text.length || count > text.length - start)
		return prb_repr_bad(object, "shorter than its part");
	return prb_repr_quote_at(r, text.data + start * text.kind, text.kind, count);
}

struct prb_error *prb_repr_handle_str(struct prb_repr *r, uint64_t object,
				      struct prb_type *type __attribute__((unused)))
{
	struct text text;

	PRB_TRY(find_text(r, object, &text));
	return prb_repr_quote_at(r, text.data, text.kind, text.length);
}

struct prb_error *prb_object_str(struct prb_python *py, struct prb_mem *mem, uint64_t object,
				 size_t max, struct prb_str *ret)
{
	prb_auto_repr struct prb_repr r;

	prb_repr_init(&r, py, mem, NULL, ret);
	return prb_repr_text(&r, object, max, ret);
}

/* A str keeps its hash right behind its length, once it was computed. */
struct prb_error *prb_object_str_sum(struct prb_python *py, struct prb_mem *mem, uint64_t object,
				     uint64_t *ret)
{
	static const uint64_t key[2] = {};
	prb_auto_str struct prb_str unused = {};
	prb_auto_repr struct prb_repr r = {};
	uint8_t part[512];
	struct text text;
	uint64_t sum = UINT64_MAX;

	PRB_TRY(prb_mem_read_u64(mem, object + (uint64_t)py->layout.unicode_length + 8, ret));
	if (*ret != UINT64_MAX)
		return NULL;
	prb_repr_init(&r, py, mem, NULL, &unused);
	PRB_TRY(locate_text(&r, object, &text));
	for (uint64_t at = 0, size = PRB_MIN(text.length, (uint64_t)SUM_MAX_CHARACTERS) * text.kind;
	     at < size; at += sizeof(part) - sizeof(sum)) {
		size_t length = PRB_MIN(size - at, sizeof(part) - sizeof(sum));

		memcpy(part, &sum, sizeof(sum));
		PRB_TRY(prb_mem_read(mem, text.data + at, part + sizeof(sum), length));
		sum = prb_siphash(1, 3, key, part, length + sizeof(sum));
	}
	*ret = sum;
	return NULL;
}

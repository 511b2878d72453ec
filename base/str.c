/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/str.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static atomic_bool ran_out;

static bool fail(struct prb_str *s)
{
	s->failed = true;
	atomic_store_explicit(&ran_out, true, memory_order_relaxed);
	return false;
}

bool prb_str_ran_out(void)
{
	return atomic_load_explicit(&ran_out, memory_order_relaxed);
}

static bool reserve(struct prb_str *s, size_t extra)
{
	size_t needed;

	if (s->failed)
		return false;
	if (__builtin_add_overflow(s->length, extra, &needed) ||
	    __builtin_add_overflow(needed, 1, &needed)) {
		return fail(s);
	}
	if (needed <= s->capacity)
		return true;

	size_t grown = s->capacity * 2 > needed ? s->capacity * 2 : needed;
	if (grown < 32)
		grown = 32;

	char *moved = realloc(s->data, grown);
	if (!moved) {
		return fail(s);
	}
	s->data = moved;
	s->capacity = grown;
	return true;
}

void prb_str_deinit(struct prb_str *s)
{
	free(s->data);
	*s = (struct prb_str){};
}

void prb_str_append(struct prb_str *s, const void *data, size_t length)
{
	if (!reserve(s, length))
		return;
	if (length)
		memcpy(s->data + s->length, data, length);
	s->length += length;
	s->data[s->length] = '\0';
}

void prb_str_puts(struct prb_str *s, const char *text)
{
	prb_str_append(s, text, strlen(text));
}

void prb_str_putc(struct prb_str *s, char c)
{
	prb_str_append(s, &c, 1);
}

void prb_str_vprintf(struct prb_str *s, const char *format, va_list args)
{
	va_list again;

	va_copy(again, args);
	int length = vsnprintf(NULL, 0, format, again);
	va_end(again);
	if (length < 0) {
		fail(s);
		return;
	}
	if (!reserve(s, (size_t)length))
		return;
	vsnprintf(s->data + s->length, (size_t)length + 1, format, args);
	s->length += (size_t)length;
}

void prb_str_printf(struct prb_str *s, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	prb_str_vprintf(s, format, args);
	va_end(args);
}

void prb_str_put_escaped_byte(struct prb_str *s, uint8_t byte)
{
	static const char digits[] = "0123456789abcdef";

	prb_str_append(s, (char[]){'\\', 'x', digits[byte >> 4], digits[byte & 0xf]}, 4);
}

void prb_str_put_utf8(struct prb_str *s, uint32_t c)
{
	if (!c) {
		prb_str_puts(s, "\\x00");
	} else if (c < 0x80) {
		prb_str_putc(s, (char)c);
	} else if (c < 0x800) {
		prb_str_append(s, (char[]){(char)(0xc0 | c >> 6), (char)(0x80 | (c & 0x3f))}, 2);
	} else if (c >= 0xd800 && c < 0xe000) {
		prb_str_printf(s, "\\u%04x", c);
	} else if (c < 0x10000) {
		prb_str_append(s,
			       (char[]){(char)(0xe0 | c >> 12), (char)(0x80 | (c >> 6 & 0x3f)),
					(char)(0x80 | (c & 0x3f))},
			       3);
	} else if (c < 0x110000) {
		prb_str_append(s,
			       (char[]){(char)(0xf0 | c >> 18), (char)(0x80 | (c >> 12 & 0x3f)),
					(char)(0x80 | (c >> 6 & 0x3f)), (char)(0x80 | (c & 0x3f))},
			       4);
	} else {
		prb_str_printf(s, "\\U%08x", c);
	}
}

void prb_str_truncate(struct prb_str *s, size_t length)
{
	if (length >= s->length)
		return;
	s->length = length;
	s->data[length] = '\0';
}

void prb_str_remove(struct prb_str *s, size_t at, size_t count)
{
	if (at > s->length || count > s->length - at || !count)
		return;
	memmove(s->data + at, s->data + at + count, s->length - at - count + 1);
	s->length -= count;
}

const char *prb_str_text(const struct prb_str *s)
{
	return s->data ? s->data : "";
}

char *prb_str_take(struct prb_str *s)
{
	if (s->failed || !reserve(s, 0)) {
		prb_str_deinit(s);
		return NULL;
	}
	s->data[s->length] = '\0';

	char *text = s->data;
	*s = (struct prb_str){};
	return text;
}

struct prb_error *prb_str_copy(const char *text, char **ret)
{
	free(*ret);
	*ret = text ? strdup(text) : NULL;
	return text && !*ret ? prb_error_nomem() : NULL;
}

char *prb_format(const char *format, ...)
{
	prb_auto_str struct prb_str s = {};
	va_list args;

	va_start(args, format);
	prb_str_vprintf(&s, format, args);
	va_end(args);
	return prb_str_take(&s);
}

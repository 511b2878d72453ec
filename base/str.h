/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Building strings: a growable buffer that is always terminated by a NUL.
 *
 *     prb_auto_str struct prb_str s = {};
 *     prb_str_printf(&s, "%d threads", n);
 *     char *text = prb_str_take(&s);          // the caller's to free
 *
 * Running out of memory sets `failed` once and makes later calls do nothing, so that a builder is
 * checked once, at the end; prb_str_take() then returns NULL.
 */
#ifndef PRB_BASE_STR_H
#define PRB_BASE_STR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct prb_str {
	char *data;    /**< NULL while empty */
	size_t length; /**< without the terminating NUL */
	size_t capacity;
	bool failed; /**< memory ran out; the content is incomplete */
};

void prb_str_deinit(struct prb_str *s);
#define prb_auto_str __attribute__((cleanup(prb_str_deinit)))

void prb_str_append(struct prb_str *s, const void *data, size_t length);
void prb_str_puts(struct prb_str *s, const char *text);
void prb_str_putc(struct prb_str *s, char c);
void prb_str_printf(struct prb_str *s, const char *format, ...) PRB_PRINTF(2, 3);
void prb_str_vprintf(struct prb_str *s, const char *format, va_list args) PRB_PRINTF(2, 0);

/** Appends a byte as \xhh: long values of bytes have thousands of them. */
void prb_str_put_escaped_byte(struct prb_str *s, uint8_t byte);

/** Appends a code point as UTF-8; surrogates and values over U+10FFFF as \udXXX / \UXXXXXXXX, and
 * NUL, which would end the text for all that read it as one of C, as \x00. */
void prb_str_put_utf8(struct prb_str *s, uint32_t code_point);

/** Cuts back to @p length bytes; a text that is no longer than that stays as it is. */
void prb_str_truncate(struct prb_str *s, size_t length);

/** Takes @p count bytes out, from @p at on. A text that has not so many there, since memory ran
 * out, stays as it is. */
void prb_str_remove(struct prb_str *s, size_t at, size_t count);

/** True if memory ran out for any text of this process: an answer that was made of several may lack
 * one. Any thread. */
bool prb_str_ran_out(void);

/** The text, "" when empty; valid until the next change. */
const char *prb_str_text(const struct prb_str *s);

/** Hands the text to the caller, who frees it; NULL if memory ran out. Never NULL otherwise. */
char *prb_str_take(struct prb_str *s);

/** Replaces *ret, a string of its own or NULL, by a copy of @p text; NULL gives NULL. */
struct prb_error *prb_str_copy(const char *text, char **ret) PRB_MUST_CHECK;

/** A fresh formatted string for the caller to free, NULL when out of memory. */
char *prb_format(const char *format, ...) PRB_PRINTF(1, 2);

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * decimal.Decimal of the C implementation: after the hash a number of libmpdec: flags, exponent,
 * digits, words, allocated words, pointer to the words of 19 digits, lowest first.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "python/repr/core/handlers.h"

enum { NEGATIVE = 1, INFINITE = 2, NAN_QUIET = 4, NAN_SIGNALLING = 8 };
enum { WORD_DIGITS = 19, WORDS_MAX = 4096 };

struct decimal {
	unsigned flags;
	int64_t exponent;
	char *digits; /* coefficient without leading zeros */
};

static struct prb_error *read_decimal(struct prb_repr *r, uint64_t object, struct decimal *ret)
{
	uint64_t head[6];
	prb_auto_free uint64_t *words = NULL;

	PRB_TRY(prb_repr_words(r, object + (uint64_t)r->layout->object_size + 8, 6, head));
	ret->flags = head[0] & 0xff;
	ret->exponent = (int64_t)head[1];

	uint64_t count = head[3];

	if (count > WORDS_MAX || ret->exponent > INT64_MAX / 4 || ret->exponent < INT64_MIN / 4)
		return prb_repr_bad(object, "a decimal of impossible size");
	words = calloc(count + 1, sizeof(*words));
	ret->digits = calloc(count + 1, WORD_DIGITS + 2);
	if (!words || !ret->digits)
		return prb_error_nomem();
	PRB_TRY(prb_repr_words(r, head[5], count, words));

	char *at = ret->digits;

	for (uint64_t i = count; i-- > 0;) {
		/* A word has at most 20 digits, whatever garbage is in it. */
		if (at == ret->digits && words[i])
			at += sprintf(at, "%" PRIu64, words[i]);
		else if (at != ret->digits)
			at += sprintf(at, "%0*" PRIu64, WORD_DIGITS, words[i]);
	}
	if (at == ret->digits && !(ret->flags & (NAN_QUIET | NAN_SIGNALLING)))
		strcpy(ret->digits, "0");
	return NULL;
}

/* The form of the decimal arithmetic specification: to-scientific-string. */
static void put_number(struct prb_repr *r, const struct decimal *decimal)
{
	int64_t count = (int64_t)strlen(decimal->digits);
	int64_t adjusted = decimal->exponent + count - 1;

	if (decimal->exponent <= 0 && adjusted >= -6) {
		int64_t whole = count + decimal->exponent;

		if (decimal->exponent == 0) {
			prb_repr_put_digits(r, decimal->digits);
		} else if (whole > 0) {
			prb_str_append(r->out, decimal->digits, (size_t)whole);
			prb_str_putc(r->out, '.');
			prb_repr_put_digits(r, decimal->digits + whole);
		} else {
			prb_str_printf(r->out, "0.%.*s", (int)-whole, "000000");
			prb_repr_put_digits(r, decimal->digits);
		}
		return;
	}
	prb_str_putc(r->out, decimal->digits[0]);
	if (count > 1) {
		prb_str_putc(r->out, '.');
		prb_repr_put_digits(r, decimal->digits + 1);
	}
	prb_str_printf(r->out, "E%+" PRId64, adjusted);
}

struct prb_error *prb_repr_handle_decimal(struct prb_repr *r, uint64_t object,
					  struct prb_type *type __attribute__((unused)))
{
	struct decimal decimal = {};
	struct prb_error *err = read_decimal(r, object, &decimal);
	prb_auto_free char *digits = decimal.digits;

	PRB_TRY(err);
	prb_str_puts(r->out, decimal.flags & NEGATIVE ? "Decimal('-" : "Decimal('");
	if (decimal.flags & INFINITE) {
		prb_str_puts(r->out, "Infinity");
	} else if (decimal.flags & (NAN_QUIET | NAN_SIGNALLING)) {
		prb_str_puts(r->out, decimal.flags & NAN_SIGNALLING ? "sNaN" : "NaN");
		prb_repr_put_digits(r, digits);
	} else {
		put_number(r, &decimal);
	}
	prb_str_puts(r->out, "')");
	return NULL;
}

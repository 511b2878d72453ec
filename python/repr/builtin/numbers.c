/* SPDX-License-Identifier: GPL-3.0-or-later */
/* int, bool, float and complex. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "python/repr/core/handlers.h"

enum {
	DIGITS_MAX = 4096, /* of an int whose decimal form we compute: its cost is quadratic */
	DECIMAL_BASE = 1000000000,
	DECIMAL_WIDTH = 9,
};

/* An int as it lies in memory. */
struct integer {
	bool negative;
	uint64_t count;	 /* digits */
	uint64_t digits; /* address */
	unsigned width;	 /* bytes of a digit: 4 for 30 bits, 2 for 15 */
};

static struct prb_error *find_integer(struct prb_repr *r, uint64_t object,
				      const struct prb_type *type, struct integer *ret)
{
	uint64_t size;

	if (!(type->flags & PRB_PY_INT))
		return prb_repr_bad(object, "not an int");
	PRB_TRY(prb_repr_member(r, object, 0, &size));
	if (r->traits->int_tag) {
		ret->negative = (size & 3) == 2;
		ret->count = (size & 3) == 1 ? 0 : size >> 3;
	} else {
		ret->negative = (int64_t)size < 0;
		ret->count = ret->negative ? -size : size;
	}
	ret->width = type->itemsize == 2 ? 2 : 4;
	ret->digits = object + (uint64_t)r->layout->object_size + 8;
	if (ret->count > UINT32_MAX)
		return prb_repr_bad(object, "an int of impossible size");
	return NULL;
}

struct prb_error *prb_repr_item_count(struct prb_repr *r, uint64_t object,
				      const struct prb_type *type, uint64_t *ret)
{
	uint64_t size;

	if (type->flags & PRB_PY_INT) {
		struct integer integer;

		PRB_TRY(find_integer(r, object, type, &integer));
		*ret = integer.count;
		return NULL;
	}
	PRB_TRY(prb_repr_word(r, object + (uint64_t)r->layout->var_size, &size));
	*ret = (int64_t)size < 0 ? -size : size;
	return NULL;
}

/* Digits, lowest first, as numbers below 2^(15 or 30). */
static struct prb_error *read_digits(struct prb_repr *r, const struct integer *integer,
				     uint32_t *ret)
{
	if (integer->count == 0)
		return NULL;
	PRB_TRY(prb_mem_read(r->mem, integer->digits, ret, integer->count * integer->width));
	for (uint64_t i = integer->count; i-- > 0;)
		ret[i] = integer->width == 2 ? ((uint16_t *)ret)[i] & 0x7fff : ret[i] & 0x3fffffff;
	return NULL;
}

/* Sign and magnitude of an int of at most 128 bits. */
static struct prb_error *read_small(struct prb_repr *r, uint64_t object, bool *negative,
				    unsigned __int128 *ret)
{
	enum { SMALL = 9 }; /* digits of 128 bits, at 15 bits each */
	struct integer integer;
	struct prb_type *type;
	uint32_t digits[SMALL];

	PRB_TRY(prb_repr_nameless_type_of(r, object, &type));
	PRB_TRY(find_integer(r, object, type, &integer));
	if (integer.count > SMALL)
		return prb_repr_bad(object, "an int that is too large");
	PRB_TRY(read_digits(r, &integer, digits));

	unsigned bits = integer.width == 2 ? 15 : 30;

	*ret = 0;
	*negative = integer.negative;
	for (uint64_t i = integer.count; i-- > 0;) {
		if (*ret >> (128 - bits))
			return prb_repr_bad(object, "an int that is too large");
		*ret = *ret << bits | digits[i];
	}
	return NULL;
}

struct prb_error *prb_repr_int(struct prb_repr *r, uint64_t object, int64_t *ret)
{
	unsigned __int128 value;
	bool negative;

	PRB_TRY(read_small(r, object, &negative, &value));
	if (value > (unsigned __int128)INT64_MAX + negative)
		return prb_repr_bad(object, "an int that does not fit into 64 bits");
	*ret = negative ? (int64_t)(0 - (uint64_t)value) : (int64_t)value;
	return NULL;
}

struct prb_error *prb_repr_uint128(struct prb_repr *r, uint64_t object, unsigned __int128 *ret)
{
	bool negative;

	PRB_TRY(read_small(r, object, &negative, ret));
	return negative ? prb_repr_bad(object, "an int below zero") : NULL;
}

struct prb_error *prb_object_int(struct prb_python *py, struct prb_mem *mem, uint64_t object,
				 int64_t *ret)
{
	prb_auto_repr struct prb_repr r;

	prb_repr_init(&r, py, mem, NULL, NULL);
	return prb_repr_int(&r, object, ret);
}

/* Decimal text of a number given in base 2^bits; needs room for 10 characters per digit and 1. */
static struct prb_error *to_decimal(const uint32_t *digits, size_t count, unsigned bits, char *text)
{
	/* 30 bits are 1.0034 decimal digits of nine places. */
	prb_auto_free uint32_t *decimal = calloc(count + count / 128 + 2, sizeof(*decimal));
	size_t used = 0;

	if (!decimal)
		return prb_error_nomem();
	for (size_t i = count; i-- > 0;) {
		uint64_t carry = digits[i];

		for (size_t j = 0; j < used; j++) {
			carry += (uint64_t)decimal[j] << bits;
			decimal[j] = (uint32_t)(carry % DECIMAL_BASE);
			carry /= DECIMAL_BASE;
		}
		for (; carry; carry /= DECIMAL_BASE)
			decimal[used++] = (uint32_t)(carry % DECIMAL_BASE);
	}
	text += sprintf(text, "%" PRIu32, used ? decimal[used - 1] : 0);
	for (size_t i = used; i-- > 1;)
		text += sprintf(text, "%0*" PRIu32, DECIMAL_WIDTH, decimal[i - 1]);
	return NULL;
}

void prb_repr_put_digits(struct prb_repr *r, const char *text)
{
	size_t length = strlen(text);
	size_t shown = PRB_MIN(length, PRB_MIN((size_t)r->max.max_text, prb_repr_room(r)));

	prb_str_append(r->out, text, shown);
	if (shown < length)
		prb_str_printf(r->out, "…+%zu", length - shown);
}

struct prb_error *prb_repr_handle_int(struct prb_repr *r, uint64_t object, struct prb_type *type)
{
	prb_auto_free uint32_t *digits = NULL;
	prb_auto_free char *text = NULL;
	struct integer integer;

	PRB_TRY(find_integer(r, object, type, &integer));
	if (integer.count > DIGITS_MAX) {
		prb_str_printf(r->out, "<int of about %" PRIu64 " bits>",
			       integer.count * (integer.width == 2 ? 15 : 30));
		return NULL;
	}
	digits = calloc(integer.count + 1, sizeof(*digits));
	text = malloc(integer.count * 10 + 16);
	if (!digits || !text)
		return prb_error_nomem();
	PRB_TRY(read_digits(r, &integer, digits));
	PRB_TRY(to_decimal(digits, integer.count, integer.width == 2 ? 15 : 30, text));
	if (integer.negative)
		prb_str_putc(r->out, '-');
	prb_repr_put_digits(r, text);
	return NULL;
}

struct prb_error *prb_repr_handle_bool(struct prb_repr *r, uint64_t object,
				       struct prb_type *type __attribute__((unused)))
{
	int64_t value;

	PRB_TRY(prb_repr_int(r, object, &value));
	prb_str_puts(r->out, value ? "True" : "False");
	return NULL;
}

/*
 * The shortest digits that read back as the same number, with their exponent: "%.*e" rounds
 * correctly, so the first precision that reads back is the shortest one. For types narrower than
 * double, what lies closer than half a step reads back.
 */
static int shortest_digits(double value, double step, char digits[20])
{
	char text[40];
	int count = 0;

	for (int precision = 0; precision <= 16; precision++) {
		snprintf(text, sizeof(text), "%.*e", precision, value);

		double again = strtod(text, NULL);

		if (again == value || fabs(again - value) < step / 2)
			break;
	}

	char *exponent = strchr(text, 'e');

	for (char *c = text; exponent && c < exponent; c++)
		if (*c >= '0' && *c <= '9')
			digits[count++] = *c;
	digits[count] = '\0';
	return exponent ? atoi(exponent + 1) : 0;
}

void prb_repr_put_shortest(struct prb_repr *r, double value, double step, bool point)
{
	char digits[20];

	if (isnan(value)) {
		prb_str_puts(r->out, "nan");
		return;
	}
	if (signbit(value))
		prb_str_putc(r->out, '-');
	if (isinf(value)) {
		prb_str_puts(r->out, "inf");
		return;
	}

	int exponent = shortest_digits(fabs(value), step, digits);
	int count = (int)strlen(digits);

	if (exponent < -4 || exponent >= 16) {
		prb_str_putc(r->out, digits[0]);
		if (count > 1)
			prb_str_printf(r->out, ".%s", digits + 1);
		prb_str_printf(r->out, "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent));
	} else if (exponent < 0) {
		prb_str_printf(r->out, "0.%.*s%s", -exponent - 1, "000", digits);
	} else if (count > exponent + 1) {
		prb_str_printf(r->out, "%.*s.%s", exponent + 1, digits, digits + exponent + 1);
	} else {
		prb_str_printf(r->out, "%s%.*s%s", digits, exponent + 1 - count, "0000000000000000",
			       point ? ".0" : "");
	}
}

void prb_repr_put_double(struct prb_repr *r, double value)
{
	prb_repr_put_shortest(r, value, 0, true);
}

struct prb_error *prb_repr_handle_float(struct prb_repr *r, uint64_t object,
					struct prb_type *type __attribute__((unused)))
{
	double value;

	PRB_TRY(prb_mem_read(r->mem, object + (uint64_t)r->layout->object_size, &value,
			     sizeof(value)));
	prb_repr_put_double(r, value);
	return NULL;
}

void prb_repr_put_complex(struct prb_repr *r, double real, double imaginary)
{
	if (real == 0 && !signbit(real)) {
		prb_repr_put_shortest(r, imaginary, 0, false);
		prb_str_putc(r->out, 'j');
		return;
	}
	prb_str_putc(r->out, '(');
	prb_repr_put_shortest(r, real, 0, false);
	if (isnan(imaginary) || !signbit(imaginary))
		prb_str_putc(r->out, '+');
	prb_repr_put_shortest(r, imaginary, 0, false);
	prb_str_puts(r->out, "j)");
}

struct prb_error *prb_repr_handle_complex(struct prb_repr *r, uint64_t object,
					  struct prb_type *type __attribute__((unused)))
{
	double value[2];

	PRB_TRY(prb_mem_read(r->mem, object + (uint64_t)r->layout->object_size, value,
			     sizeof(value)));
	prb_repr_put_complex(r, value[0], value[1]);
	return NULL;
}

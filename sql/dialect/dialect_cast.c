/* SPDX-License-Identifier: GPL-3.0-or-later */
/* x::type, where x may be a name, a literal, a call or anything in parentheses. */
#include <strings.h>

#include "base/checked.h"
#include "sql/dialect/dialect_private.h"

struct type {
	const char *name;
	const char *second; /* "double precision": may follow */
	const char *open, *close;
};

static const struct type types[] = {
	{"integer", NULL, "CAST(", " AS INTEGER)"},
	{"int", NULL, "CAST(", " AS INTEGER)"},
	{"int2", NULL, "CAST(", " AS INTEGER)"},
	{"int4", NULL, "CAST(", " AS INTEGER)"},
	{"int8", NULL, "CAST(", " AS INTEGER)"},
	{"smallint", NULL, "CAST(", " AS INTEGER)"},
	{"bigint", NULL, "CAST(", " AS INTEGER)"},
	{"real", NULL, "CAST(", " AS REAL)"},
	{"double", "precision", "CAST(", " AS REAL)"},
	{"float", NULL, "CAST(", " AS REAL)"},
	{"float4", NULL, "CAST(", " AS REAL)"},
	{"float8", NULL, "CAST(", " AS REAL)"},
	{"numeric", NULL, "CAST(", " AS NUMERIC)"},
	{"decimal", NULL, "CAST(", " AS NUMERIC)"},
	{"text", NULL, "CAST(", " AS TEXT)"},
	{"string", NULL, "CAST(", " AS TEXT)"},
	{"varchar", NULL, "CAST(", " AS TEXT)"},
	{"character", "varying", "CAST(", " AS TEXT)"},
	{"blob", NULL, "CAST(", " AS BLOB)"},
	{"bytea", NULL, "CAST(", " AS BLOB)"},
	{"timestamp", NULL, "to_timestamp(", ")"},
	{"timestamptz", NULL, "to_timestamp(", ")"},
	{"date", NULL, "date_trunc('day', to_timestamp(", "))"},
	{"interval", NULL, "to_interval(", ")"},
};

/** The type that token @p i names; *end is just after it, a length in parentheses included. */
static const struct type *find_type(const struct prb_translation *t, size_t i, size_t *end)
{
	for (size_t n = 0; n < PRB_ARRAY_SIZE(types); n++) {
		if (!prb_translation_is(t, i, types[n].name))
			continue;
		i++;
		if (types[n].second && prb_translation_is(t, i, types[n].second))
			i++;
		if (prb_translation_is(t, i, "(") && t->partners[i] != PRB_NO_TOKEN)
			i = t->partners[i] + 1;
		*end = i;
		return &types[n];
	}
	return NULL;
}

/** The first token of schema.table.column that ends with token @p i. */
static size_t name_start(const struct prb_translation *t, size_t i)
{
	while (i >= 2 && prb_translation_is(t, i - 1, ".") && prb_translation_is_name(t, i - 2))
		i -= 2;
	return i;
}

/** The first token of the group or call that ends with the parenthesis @p i. */
static size_t call_start(const struct prb_translation *t, size_t i)
{
	while (t->partners[i] != PRB_NO_TOKEN) {
		size_t open = t->partners[i], before = open - 1;

		if (!open)
			return open;
		if (prb_translation_is(t, before, "group") && open > 2 &&
		    prb_translation_is(t, before - 1, "within"))
			before--;
		/* sum(x) FILTER (…) OVER (…): the call precedes. */
		if (before && prb_translation_is(t, before - 1, ")") &&
		    (prb_translation_is(t, before, "over") ||
		     prb_translation_is(t, before, "filter") ||
		     prb_translation_is(t, before, "within"))) {
			i = before - 1;
			continue;
		}
		if (prb_translation_is_name(t, before) && prb_translation_ends_operand(t, before))
			return name_start(t, before);
		return open;
	}
	return PRB_NO_TOKEN;
}

/** The first token of the operand that ends with token @p i, or PRB_NO_TOKEN. */
static size_t operand_start(const struct prb_translation *t, size_t i)
{
	if (!prb_translation_ends_operand(t, i))
		return PRB_NO_TOKEN;
	if (prb_translation_is(t, i, ")"))
		return call_start(t, i);
	if (prb_translation_is(t, i, "end"))
		return t->partners[i] == PRB_NO_TOKEN ? i : t->partners[i];
	if (prb_translation_is_name(t, i))
		return name_start(t, i);
	if (i && t->tokens.items[i].kind == PRB_TOKEN_STRING &&
	    (prb_translation_is(t, i - 1, "interval") || prb_translation_is(t, i - 1, "timestamp")))
		return i - 1;
	return i;
}

static struct prb_error *bad_type(const struct prb_translation *t, size_t i)
{
	prb_auto_str struct prb_str name = {};

	if (i < t->tokens.count)
		prb_translation_value(t, i, &name);
	prb_str_truncate(&name, PRB_MIN(name.length, (size_t)60));
	return prb_error_hint(
		prb_error_create(PRB_ERROR_USAGE, "cannot cast to '%s'", prb_str_text(&name)),
		"types are integer, real, numeric, text, blob, timestamp, date, "
		"interval");
}

void prb_translation_find_casts(struct prb_translation *t)
{
	size_t end = PRB_NO_TOKEN;

	for (size_t i = 1; i < t->tokens.count; i++) {
		const struct type *type;
		struct prb_cast *cast;
		size_t first;

		if (!prb_translation_is(t, i, "::"))
			continue;
		/* x::int::text: the operand is the cast before. */
		first = i == end ? t->casts.items[t->casts.count - 1].first
				 : operand_start(t, i - 1);
		if (first == PRB_NO_TOKEN)
			continue;
		type = find_type(t, i + 1, &end);
		if (!type) {
			prb_translation_refuse(t, i + 1, bad_type(t, i + 1));
			return;
		}
		cast = prb_vec_push(&t->casts);
		if (!cast) {
			t->no_memory = true;
			return;
		}
		*cast = (struct prb_cast){first,      i,	   end,
					  type->open, type->close, t->openings[first]};
		t->openings[first] = t->casts.count - 1;
	}
}

size_t prb_translation_write_cast(struct prb_translation *t, size_t i)
{
	size_t low = 0, high = t->casts.count;

	if (!prb_translation_is(t, i, "::"))
		return 0;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct prb_cast *cast = &t->casts.items[middle];

		if (cast->colons == i) {
			prb_translation_put(t, i, cast->close);
			return cast->end - i;
		}
		if (cast->colons < i)
			low = middle + 1;
		else
			high = middle;
	}
	return 0;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dwarf/lines/demangle.h"

#include <ctype.h>
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "dwarf/lines/cxx_cost.h"

/*
 * Names are the target's, and each reference to an earlier part of one can double what is printed:
 * a hundred bytes could be gigabytes. The library's functions cannot be told to end, so that names
 * are looked at before, and what is printed is bounded, too.
 */
enum {
	OPTIONS = DMGL_PARAMS | DMGL_ANSI,
	MAX_SYMBOL = 1 << 16,
	MAX_D_SYMBOL = 1000,
	MAX_D_TEMPLATES = 4, /* whose parameters are read in up to ten ways each */
	MAX_OUTPUT = 1 << 16,
	MAX_DOUBLED = 10, /* references that are followed however long what they refer to is */
};

struct output {
	struct prb_str text;
	bool jumps, too_long;
	jmp_buf end;
};

/* The library has allocated nothing while it prints, but for identifiers that are not ASCII. */
static bool may_jump(const char *text, size_t length)
{
	while (length && isascii((unsigned char)text[length - 1]))
		length--;
	return !length;
}

static void put(const char *text, size_t length, void *opaque)
{
	struct output *output = opaque;

	output->too_long |= length > MAX_OUTPUT - output->text.length;
	if (!output->too_long)
		prb_str_append(&output->text, text, length);
	else if (output->jumps && may_jump(text, length))
		longjmp(output->end, 1);
}

static char *take(struct output *output, bool whole)
{
	prb_auto_str struct prb_str text = output->text;

	return whole && !output->too_long && !text.failed && text.length ? prb_str_take(&text)
									 : NULL;
}

static size_t count(const char *symbol, const char *mark)
{
	size_t found = 0;

	for (; (symbol = strstr(symbol, mark)); symbol++)
		found++;
	return found;
}

static bool print_rust(const char *symbol, struct output *output)
{
	return !setjmp(output->end) && rust_demangle_callback(symbol, OPTIONS, put, output);
}

/*
 * Where a name of Rust branches something is printed, so that its end bounds the time, too. Few
 * back references are followed to the end.
 */
static char *demangle_rust(const char *symbol)
{
	struct output output = {
		.jumps = symbol[1] == 'R' && count(symbol, "B") > MAX_DOUBLED,
	};

	return take(&output, print_rust(symbol, &output));
}

static char *demangle_cxx(const char *symbol)
{
	void *block;
	struct demangle_component *tree;
	struct output output = {};
	bool whole;

	if (!prb_cxx_parses_soon(symbol))
		return NULL;
	tree = cplus_demangle_v3_components(symbol, OPTIONS, &block);
	if (!tree)
		return NULL;
	whole = prb_cxx_prints_soon(symbol, tree, block) &&
		cplus_demangle_print_callback(OPTIONS, tree, put, &output);
	free(block);
	return take(&output, whole);
}

/* References to types: "Q" and how far back it is. Those to identifiers, at a digit, double
 * nothing. */
static size_t count_d_types(const char *symbol)
{
	size_t found = 0;

	for (const char *q = symbol; (q = strchr(q, 'Q')); q++) {
		const char *at = q + 1;
		size_t back = 0;

		while (isupper((unsigned char)*at) && back <= MAX_D_SYMBOL)
			back = back * 26 + (size_t)(*at++ - 'A');
		if (islower((unsigned char)*at))
			back = back * 26 + (size_t)(*at - 'a');
		found += back > (size_t)(q - symbol) || !isdigit((unsigned char)q[-(ssize_t)back]);
	}
	return found;
}

static char *demangle_d(const char *symbol)
{
	if (strnlen(symbol, MAX_D_SYMBOL) == MAX_D_SYMBOL || count_d_types(symbol) > MAX_DOUBLED ||
	    count(symbol, "__T") + count(symbol, "__U") > MAX_D_TEMPLATES)
		return NULL;
	return dlang_demangle(symbol, OPTIONS | DMGL_DLANG);
}

char *prb_demangle(const char *symbol)
{
	char *rust;

	if (symbol[0] != '_' || strnlen(symbol, MAX_SYMBOL) == MAX_SYMBOL)
		return NULL;
	if (symbol[1] == 'D')
		return demangle_d(symbol);
	rust = demangle_rust(symbol);
	return rust ? rust : demangle_cxx(symbol);
}

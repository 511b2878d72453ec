/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Short forms of Rust names. A name is recognized as Rust by its text alone: debug information does
 * not help here. */
#include <ctype.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "dwarf/lines/short_name.h"

enum {
	MAX_NESTED = 64,
	HASH_DIGITS = 16,
	MOST_SHOWN = 1, /* arguments of types that are arguments themselves are not shown */
};

struct rust {
	const char *at;
	struct prb_str text;
	bool generic[MAX_NESTED]; /* of each open '<': arguments, or the type of a method */
	unsigned nested, arguments;
	size_t method_type_end; /* in the text: of a type in front of a method; 0: none */
	bool with_trait, bad;
};

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || (c & 0x80);
}

/* C++ names of functions have parameters, behind which only qualifiers and marks of clones follow.
 */
static bool has_parameters(const char *name)
{
	const size_t length = strlen(name);

	for (const char *end = name; (end = strstr(end, ") ")); end++)
		if (strncmp(end + 2, "->", 2) != 0 && end[2] != '+')
			return true;
	return length && name[length - 1] == ')';
}

static bool is_of_rust_crate(const char *name)
{
	return (!strncmp(name, "core::", 6) || !strncmp(name, "alloc::", 7)) &&
	       !has_parameters(name);
}

/* What LLVM adds to local symbols of any language. */
static size_t without_llvm(const char *name)
{
	const char *clone = strstr(name, " [clone .llvm."), *part = strstr(name, ".llvm.");

	return clone || part ? (size_t)((clone ? clone : part) - name) : strlen(name);
}

bool prb_rust_is_name(const char *name)
{
	static const char *const marks[] = {"::<", " as ", "{closure#", "{{closure}}", "{impl#"};

	for (size_t i = 0; i < PRB_ARRAY_SIZE(marks); i++)
		if (strstr(name, marks[i]))
			return true;
	return (name[0] == '<' && strstr(name, ">::")) || is_of_rust_crate(name) ||
	       prb_rust_hash(name) < without_llvm(name);
}

size_t prb_rust_hash(const char *name)
{
	size_t end = without_llvm(name), digits = 0;

	while (digits < HASH_DIGITS && digits < end &&
	       isxdigit((unsigned char)name[end - 1 - digits]))
		digits++;
	if (digits == HASH_DIGITS && end > digits + 3 &&
	    !strncmp(name + end - digits - 3, "::h", 3))
		return end - digits - 3;
	return end;
}

static char last(const struct rust *r)
{
	return r->text.length ? r->text.data[r->text.length - 1] : '\0';
}

/* Skips the arguments that begin here, with all that is in them. */
static void skip_arguments(struct rust *r)
{
	unsigned open = 0;

	do {
		if (!strncmp(r->at, "->", 2))
			r->at++;
		else if (*r->at == '<')
			open++;
		else if (*r->at == '>')
			open--;
		else if (!*r->at) {
			r->bad = true;
			return;
		}
		r->at++;
	} while (open);
	prb_str_puts(&r->text, "<…>");
}

static void open_bracket(struct rust *r)
{
	bool generic = is_word(last(r)) || last(r) == ':' || last(r) == '}';

	if (generic && r->arguments >= MOST_SHOWN) {
		skip_arguments(r);
		return;
	}
	if (r->nested == MAX_NESTED) {
		r->bad = true;
		return;
	}
	r->generic[r->nested++] = generic;
	r->arguments += generic;
	prb_str_putc(&r->text, *r->at++);
}

static void close_bracket(struct rust *r)
{
	if (!r->nested) {
		r->bad = true;
		return;
	}
	r->arguments -= r->generic[--r->nested];
	prb_str_putc(&r->text, *r->at++);
	if (!r->nested && !r->method_type_end && r->text.data[0] == '<')
		r->method_type_end = r->text.length;
}

/* Of paths within brackets the modules are left out, whose names begin small. */
static void copy_word(struct rust *r)
{
	size_t length = 0, hash = 0;
	const char *next;

	while (is_word(r->at[length]))
		length++;
	/* The hash of a crate: "core[f846ed4b]". */
	if (r->at[length] == '[')
		hash = strspn(r->at + length + 1, "0123456789abcdef");
	next = r->at + length + (hash && r->at[length + 1 + hash] == ']' ? hash + 2 : 0);
	if (!(r->nested && (islower((unsigned char)*r->at) || *r->at == '_') &&
	      !strncmp(next, "::", 2) && is_word(next[2]))) {
		r->with_trait |= length == 2 && r->nested == 1 && !memcmp(r->at, "as", 2);
		prb_str_append(&r->text, r->at, length);
		r->at = next;
		return;
	}
	r->at = next + 2;
}

static void copy_one(struct rust *r)
{
	if (!strncmp(r->at, "->", 2) || !strncmp(r->at, "=>", 2)) {
		prb_str_append(&r->text, r->at, 2);
		r->at += 2;
	} else if (*r->at == '<') {
		open_bracket(r);
	} else if (*r->at == '>') {
		close_bracket(r);
	} else if (is_word(*r->at)) {
		copy_word(r);
	} else {
		prb_str_putc(&r->text, *r->at++);
	}
}

/* "<File>::open" is "File::open". */
static void drop_brackets(struct rust *r, struct prb_str *ret)
{
	size_t end = r->method_type_end;

	if (end < 3 || r->with_trait || !is_word(r->text.data[1])) {
		prb_str_puts(ret, prb_str_text(&r->text));
		return;
	}
	prb_str_append(ret, r->text.data + 1, end - 2);
	prb_str_puts(ret, r->text.data + end);
}

bool prb_rust_short_name(const char *name, struct prb_str *ret)
{
	prb_auto_str struct prb_str whole = {};
	struct rust r = {};

	prb_str_append(&whole, name, prb_rust_hash(name));
	r.at = prb_str_text(&whole);
	while (*r.at && !r.bad && !r.text.failed)
		copy_one(&r);
	r.bad |= r.nested > 0;
	if (!r.bad && !r.text.failed && !whole.failed)
		drop_brackets(&r, ret);
	ret->failed |= r.text.failed || whole.failed;
	prb_str_deinit(&r.text);
	return !r.bad;
}

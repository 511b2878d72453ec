/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dwarf/lines/short_name.h"

#include <ctype.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/vec.h"

/* Names from a file can be nested and long on purpose. Real ones stay far below these bounds. */
enum { MAX_DEPTH = 64, MAX_NAME = 1 << 16 };

/** The text being parsed, and the position. */
struct reader {
	const char *at;
	unsigned depth;
	bool bad; /**< not a C++ name */
};

/** Text that is written, and where in it the name began that is being written. */
struct writer {
	struct prb_str text;
	size_t name;
};

struct arguments {
	PRB_VEC(struct prb_str) list;
	bool tight; /**< no space behind commas, as Rust prints them */
};

static bool read_text(struct reader *r, struct writer *w, char closer);

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || (c & 0x80);
}

static bool fail(struct reader *r)
{
	r->bad = true;
	return false;
}

static bool copy(struct reader *r, struct writer *w, size_t length)
{
	prb_str_append(&w->text, r->at, length);
	r->at += length;
	return true;
}

static char last(const struct writer *w)
{
	return w->text.length ? w->text.data[w->text.length - 1] : '\0';
}

/** True if @p text ends with a '>' that belongs to the name of an operator. */
static bool ends_with_operator(const char *text, size_t length)
{
	static const char *const names[] = {"operator>", "operator>>", "operator->"};

	for (size_t i = 0; i < PRB_ARRAY_SIZE(names); i++) {
		size_t size = strlen(names[i]);

		if (length >= size && !memcmp(text + length - size, names[i], size))
			return true;
	}
	return false;
}

static void close_arguments(struct writer *w)
{
	if (last(w) == '>' && ends_with_operator(w->text.data, w->text.length))
		prb_str_putc(&w->text, ' ');
	prb_str_putc(&w->text, '>');
}

static void arguments_deinit(struct arguments *arguments)
{
	struct prb_str *argument;

	prb_vec_each (argument, &arguments->list)
		prb_str_deinit(argument);
	prb_vec_free(&arguments->list);
}

/** Reads one argument without the spaces around it. */
static bool read_argument(struct reader *r, struct prb_str *ret)
{
	struct writer w = {};
	bool read;

	while (*r->at == ' ')
		r->at++;
	read = read_text(r, &w, '>');
	while (last(&w) == ' ')
		prb_str_truncate(&w.text, w.text.length - 1);
	*ret = w.text;
	return read;
}

/** Reads up to and including the '>' that closes the arguments. */
static bool read_arguments(struct reader *r, struct arguments *arguments)
{
	do {
		struct prb_str argument;
		bool read;

		if (*r->at++ == ',') /* else '<' */
			arguments->tight = *r->at != ' ';
		read = read_argument(r, &argument);

		struct prb_str *slot = prb_vec_push(&arguments->list);
		if (!slot) {
			prb_str_deinit(&argument);
			return false;
		}
		*slot = argument;
		if (!read)
			return false;
	} while (*r->at == ',');
	r->at++;
	return true;
}

/** Writes the arguments of the class or function whose name has just been written. */
static void write_arguments(struct writer *w, const struct arguments *arguments)
{
	const char *name = prb_str_text(&w->text) + PRB_MIN(w->name, w->text.length);
	const struct prb_str *items = arguments->list.items;
	size_t count = prb_std_needed_arguments(name, items, arguments->list.count);
	const char *alias = count == 1 ? prb_std_alias(name, prb_str_text(&items[0])) : NULL;

	if (alias) {
		prb_str_truncate(&w->text, w->name);
		prb_str_puts(&w->text, alias);
		return;
	}
	prb_str_putc(&w->text, '<');
	for (size_t i = 0; i < count; i++) {
		prb_str_puts(&w->text, !i ? "" : arguments->tight ? "," : ", ");
		prb_str_puts(&w->text, prb_str_text(&items[i]));
	}
	close_arguments(w);
}

static bool copy_arguments(struct reader *r, struct writer *w)
{
	__attribute__((cleanup(arguments_deinit))) struct arguments arguments = {};
	const struct prb_str *argument;

	if (!read_arguments(r, &arguments)) {
		w->text.failed |= !r->bad;
		return false;
	}
	prb_vec_each (argument, &arguments.list)
		w->text.failed |= argument->failed;
	write_arguments(w, &arguments);
	return true;
}

/** Copies the symbol behind the word "operator", and template arguments that follow at once. */
static bool copy_operator(struct reader *r, struct writer *w)
{
	static const char *const symbols[] = {
		"<=>", "<<=", ">>=", "->*",  "()", "[]", "->", "<<",
		">>",  "<=",  ">=",  "\"\"", "<",  ">",	 ",",
	};

	for (size_t i = 0; i < PRB_ARRAY_SIZE(symbols); i++) {
		size_t length = strlen(symbols[i]);

		if (strncmp(r->at, symbols[i], length) != 0)
			continue;
		copy(r, w, length);
		return *r->at == '<' ? copy_arguments(r, w) : true;
	}
	return true; /* others, and conversions, need no care */
}

static void skip_abi_tags(struct reader *r)
{
	while (!strncmp(r->at, "[abi:", 5)) {
		const char *end = strchr(r->at, ']');

		if (!end)
			return;
		r->at = end + 1;
	}
}

/** Copies an identifier, unless it is an inline namespace, and what may follow it at once. */
static bool copy_identifier(struct reader *r, struct writer *w)
{
	bool fresh = last(w) != ':';
	size_t length = 0;

	if (fresh)
		w->name = w->text.length;
	while (is_word(r->at[length]))
		length++;
	if (!fresh && !strncmp(r->at + length, "::", 2) &&
	    prb_std_is_inline_namespace(prb_str_text(&w->text) + w->name, r->at, length)) {
		r->at += length + 2;
		return true;
	}

	bool is_operator = length == 8 && !memcmp(r->at, "operator", 8);
	copy(r, w, length);
	if (is_operator)
		return copy_operator(r, w);
	skip_abi_tags(r);
	return *r->at == '<' ? copy_arguments(r, w) : true;
}

static bool copy_bracket(struct reader *r, struct writer *w, char closer)
{
	copy(r, w, 1);
	if (!read_text(r, w, closer))
		return false;
	return copy(r, w, 1);
}

static bool read_one(struct reader *r, struct writer *w)
{
	switch (*r->at) {
	case '(':
		return copy_bracket(r, w, ')');
	case '[':
		return copy_bracket(r, w, ']');
	case '{':
		return copy_bracket(r, w, '}');
	case ')':
	case ']':
	case '}':
		return fail(r);
	case '<':
		/* In an expression it compares: the operand in front of it is in brackets. */
		if (last(w) == ')' || last(w) == ']' || r->at[1] == ' ')
			return copy(r, w, 1);
		w->name = w->text.length;
		return copy_arguments(r, w);
	case '-':
		return copy(r, w, r->at[1] == '>' ? 2 : 1);
	default:
		return is_word(*r->at) ? copy_identifier(r, w) : copy(r, w, 1);
	}
}

/**
 * Copies text up to @p closer, which stays unread; for '>' a comma ends it too. '\0': to the end.
 * False if @p closer is missing, or when out of memory.
 */
static bool read_text(struct reader *r, struct writer *w, char closer)
{
	bool read = true;

	if (++r->depth > MAX_DEPTH)
		return fail(r);
	while (read && *r->at && *r->at != closer && !(closer == '>' && *r->at == ','))
		read = !w->text.failed && read_one(r, w);
	r->depth--;
	if (read && closer && !*r->at)
		return fail(r);
	return read;
}

static bool may_be_short(const char *name)
{
	return strpbrk(name, "<:[") && strnlen(name, MAX_NAME) < MAX_NAME;
}

/* Takes @p text, the short form of @p name unless it is @p bad. */
static struct prb_error *take(struct prb_str *text, bool bad, const char *name, char **ret)
{
	prb_auto_str struct prb_str taken = *text;

	if (taken.failed)
		return prb_error_nomem();
	if (bad || !strcmp(prb_str_text(&taken), name))
		return NULL;
	*ret = prb_str_take(&taken);
	return *ret ? NULL : prb_error_nomem();
}

struct prb_error *prb_cxx_short_name(const char *name, char **ret)
{
	struct reader r = {.at = name};
	struct writer w = {};

	*ret = NULL;
	if (!may_be_short(name))
		return NULL;
	read_text(&r, &w, '\0');
	return take(&w.text, r.bad, name, ret);
}

struct prb_error *prb_short_name(const char *name, char **ret)
{
	struct prb_str text = {};
	bool bad;

	*ret = NULL;
	if (!may_be_short(name))
		return NULL;
	if (!prb_rust_is_name(name))
		return prb_cxx_short_name(name, ret);
	bad = !prb_rust_short_name(name, &text);
	return take(&text, bad, name, ret);
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reading an expression from left to right; each part is looked up as soon as it is read. */
#include "values/expression.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "values/expression_private.h"

enum { MAX_PARTS = 256, MAX_NESTED = 8 };

static struct prb_error *not_understood(const struct prb_search *s)
{
	return prb_error_hint(
		prb_error_create(PRB_ERROR_USAGE,
				 "'%.200s' cannot be looked up: '%.100s' is not "
				 "understood",
				 s->text, s->at),
		"names, attributes and constant indexes are: self.rows[0]['key'], len(rows); no "
		"code is run");
}

static bool is_name_byte(char c, bool first)
{
	return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c & 0x80 ||
	       (!first && c >= '0' && c <= '9');
}

static void skip_blanks(struct prb_search *s)
{
	s->at += strspn(s->at, " \t");
}

static struct prb_error *take_name(struct prb_search *s, struct prb_str *ret)
{
	const char *start = s->at;

	while (is_name_byte(*s->at, s->at == start))
		s->at++;
	if (s->at == start)
		return not_understood(s);
	prb_str_append(ret, start, (size_t)(s->at - start));
	return ret->failed ? prb_error_nomem() : NULL;
}

static struct prb_error *take_text(struct prb_search *s, struct prb_str *ret)
{
	char quote = *s->at++;
	size_t length = strcspn(s->at, (char[]){quote, '\\', '\0'});

	if (s->at[length] != quote)
		return not_understood(s);
	prb_str_append(ret, s->at, length);
	s->at += length + 1;
	return ret->failed ? prb_error_nomem() : NULL;
}

static struct prb_error *take_number(struct prb_search *s, int64_t *ret)
{
	char *end;

	errno = 0;
	long long number = strtoll(s->at, &end, 10);
	if (end == s->at || errno)
		return not_understood(s);
	s->at = end;
	*ret = number;
	return NULL;
}

/* Behind "[". */
static struct prb_error *find_index(struct prb_search *s)
{
	prb_auto_str struct prb_str key = {};
	bool is_text;
	int64_t number;

	skip_blanks(s);
	is_text = *s->at && strchr("'\"", *s->at);
	PRB_TRY(is_text ? take_text(s, &key) : take_number(s, &number));
	skip_blanks(s);
	if (*s->at != ']')
		return not_understood(s);
	s->at++;
	if (s->view == PRB_SEARCH_VARIABLES && is_text)
		return prb_search_variable(s, prb_str_text(&key));
	if (s->view == PRB_SEARCH_ARRAY && !is_text)
		return prb_search_array_item(s, number);
	PRB_TRY(prb_search_end_view(s, true));
	return is_text ? prb_search_text_item(s, prb_str_text(&key))
		       : prb_search_number_item(s, number);
}

/* A number in C has nothing that could be looked into. */
static struct prb_error *check_object(const struct prb_search *s)
{
	return s->object ? NULL
			 : prb_error_create(PRB_ERROR_NOT_FOUND,
					    "%.*s is %.100s, which is not looked into",
					    s->looked_into, s->from, prb_str_text(&s->value));
}

static struct prb_error *find_parts(struct prb_search *s)
{
	for (unsigned part = 0;; part++) {
		prb_auto_str struct prb_str name = {}, whole = {};

		s->looked_into = (int)(s->at - s->from);
		skip_blanks(s);
		if (!*s->at || (s->nested && *s->at == ')'))
			return NULL;
		if (part == MAX_PARTS || !strchr(".[", *s->at))
			return not_understood(s);
		PRB_TRY(check_object(s));
		if (*s->at++ == '[') {
			PRB_TRY(find_index(s));
			continue;
		}
		skip_blanks(s);
		PRB_TRY(take_name(s, &name));
		PRB_TRY(prb_search_mangle(s, prb_str_text(&name), &whole));
		PRB_TRY(prb_search_attribute(s, prb_str_text(&whole)));
	}
}

static struct prb_error *search_type(struct prb_search *s)
{
	struct prb_type *type;

	PRB_TRY(prb_repr_type_of(s->r, s->object, &type));
	s->object = type->address;
	return NULL;
}

static const struct {
	const char *name;
	struct prb_error *(*search)(struct prb_search *s);
} functions[] = {
	{"dir", prb_search_dir},
	{"len", prb_search_len},
	{"type", search_type},
	{"vars", prb_search_vars},
};

static struct prb_error *find_whole(struct prb_search *s);

/* At the "(" of a function whose name begins at @p from. */
static struct prb_error *find_call(struct prb_search *s, const char *name, const char *from)
{
	for (size_t i = 0; i < PRB_ARRAY_SIZE(functions); i++) {
		if (strcmp(functions[i].name, name) != 0)
			continue;
		if (++s->nested > MAX_NESTED)
			return not_understood(s);
		s->at++;
		PRB_TRY(find_whole(s));
		if (*s->at != ')')
			return not_understood(s);
		PRB_TRY(check_object(s));
		PRB_TRY(prb_search_end_view(s, true));
		s->at++;
		s->nested--;
		s->from = from;
		s->looked_into = (int)(s->at - s->from);
		return functions[i].search(s);
	}
	return not_understood(s);
}

static struct prb_error *find_whole(struct prb_search *s)
{
	prb_auto_str struct prb_str name = {};
	const char *end, *from;

	skip_blanks(s);
	s->from = from = s->at;
	PRB_TRY(take_name(s, &name));
	end = s->at;
	skip_blanks(s);
	if (*s->at == '(') {
		PRB_TRY(find_call(s, prb_str_text(&name), from));
		return find_parts(s);
	}
	s->at = end;
	PRB_TRY(prb_search_name(s, prb_str_text(&name)));
	return find_parts(s);
}

struct prb_error *prb_python_find(struct prb_python *py, struct prb_mem *mem,
				  const struct prb_py_scope *scope, const char *expression,
				  const struct prb_repr_options *options, struct prb_py_value *ret)
{
	prb_auto_str struct prb_str unused = {};
	prb_auto_repr struct prb_repr r;
	struct prb_search s = {.r = &r, .scope = scope, .text = expression, .at = expression};

	*ret = (struct prb_py_value){};
	s.computed_by = ret->computed_by;
	prb_repr_init(&r, py, mem, options, &unused);
	if (strlen(expression) > PRB_EXPRESSION_MAX)
		return prb_error_create(PRB_ERROR_USAGE, "the expression has over %d bytes",
					PRB_EXPRESSION_MAX);

	struct prb_error *err = find_whole(&s);
	if (!err)
		err = prb_search_end_view(&s, false);
	if (!err && s.value.failed)
		err = prb_error_nomem();
	if (err) {
		prb_str_deinit(&s.value);
		return err;
	}
	ret->object = s.object;
	ret->type = s.type;
	ret->text = s.value;
	return NULL;
}

struct prb_error *prb_python_names(struct prb_python *py, struct prb_mem *mem,
				   const struct prb_py_scope *scope, const char *prefix,
				   struct prb_str *ret)
{
	prb_auto_str struct prb_str unused = {};
	prb_auto_repr struct prb_repr r;
	struct prb_search s = {.r = &r, .scope = scope, .text = prefix, .at = prefix};

	if (strlen(prefix) > PRB_EXPRESSION_MAX)
		return prb_error_create(PRB_ERROR_USAGE, "the expression has over %d bytes",
					PRB_EXPRESSION_MAX);
	prb_repr_init(&r, py, mem, NULL, &unused);

	struct prb_error *err = prb_search_complete(&s, find_whole, ret);
	prb_str_deinit(&s.value);
	return err ? err : ret->failed ? prb_error_nomem() : NULL;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sql/dialect/partial.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "base/vec.h"
#include "sql/dialect/tokens.h"

enum { MAX_TOKENS = 4000, MAX_KEYS = 32, MAX_PARTS = 40 };

/** Tokens [from, to). */
struct span {
	size_t from, to;
};

/** A column of what each rank gives. */
struct part {
	char *text;
	bool key; /**< its rows are grouped by it */
};

struct item {
	struct span expression, alias; /**< an empty alias: none */
};

/** A key of GROUP BY, and what it is called in the rows of the ranks. */
struct key {
	struct span span;
	char name[32];
};

struct splitter {
	const char *sql;
	const struct prb_partial_table *table;
	PRB_VEC(struct prb_token) tokens; /* without blanks */
	size_t end;			  /* tokens before the semicolon */
	struct span list, where, group, having, order, limit;
	char schema[64], name[64];
	PRB_VEC(struct item) items;
	PRB_VEC(struct part) parts;
	struct key keys[MAX_KEYS];
	size_t key_count;
	bool aggregates; /* there are some */
	bool failed;	 /* out of memory */
};

void prb_partial_deinit(struct prb_partial *partial)
{
	free(partial->schema);
	free(partial->table);
	free(partial->where);
	free(partial->each);
	free(partial->rest);
}

static void splitter_deinit(struct splitter *s)
{
	struct part *part;

	prb_vec_each (part, &s->parts)
		free(part->text);
	prb_vec_free(&s->parts);
	prb_vec_free(&s->items);
	prb_vec_free(&s->tokens);
}

static const struct prb_token *token(const struct splitter *s, size_t i)
{
	return &s->tokens.items[i];
}

static bool is(const struct splitter *s, size_t i, const char *word)
{
	return i < s->end && prb_token_is(s->sql, token(s, i), word);
}

static bool is_any(const struct splitter *s, size_t i, const char *const *words, size_t count)
{
	for (size_t k = 0; k < count; k++)
		if (is(s, i, words[k]))
			return true;
	return false;
}

static bool is_word(const struct splitter *s, size_t i)
{
	return i < s->end && token(s, i)->kind == PRB_TOKEN_WORD;
}

/** The text of a span as it was written. */
static void put_text(const struct splitter *s, struct span span, struct prb_str *out)
{
	if (span.from < span.to)
		prb_str_append(out, s->sql + token(s, span.from)->start,
			       token(s, span.to - 1)->end - token(s, span.from)->start);
}

static bool same_token(const struct splitter *s, size_t a, size_t b)
{
	const struct prb_token *x = token(s, a), *y = token(s, b);
	size_t length = x->end - x->start;

	if (x->kind != y->kind || length != y->end - y->start)
		return false;
	return x->kind == PRB_TOKEN_WORD
		       ? !strncasecmp(s->sql + x->start, s->sql + y->start, length)
		       : !memcmp(s->sql + x->start, s->sql + y->start, length);
}

/** True if the tokens at @p at equal @p span, and the next one does not continue them. */
static bool matches(const struct splitter *s, size_t at, size_t to, struct span span)
{
	size_t length = span.to - span.from;

	if (!length || to - at < length)
		return false;
	for (size_t i = 0; i < length; i++)
		if (!same_token(s, at + i, span.from + i))
			return false;
	return at + length == to || !is(s, at + length, "(");
}

/** Behind the bracket that ends what begins at @p at, at most @p to. */
static size_t behind(const struct splitter *s, size_t at, size_t to)
{
	size_t depth = 0;

	for (; at < to; at++) {
		depth += is(s, at, "(");
		if (is(s, at, ")") && !--depth)
			return at + 1;
	}
	return to;
}

/* Reading the statement */

static bool read_tokens(struct splitter *s)
{
	size_t length = strlen(s->sql);

	for (size_t at = 0; at < length;) {
		struct prb_token next = prb_token_at(s->sql, length, at);
		struct prb_token *place;

		at = next.end;
		if (prb_token_is_blank(&next))
			continue;
		if (next.kind == PRB_TOKEN_BAD || next.kind == PRB_TOKEN_PARAMETER ||
		    s->tokens.count == MAX_TOKENS)
			return false;
		place = prb_vec_push(&s->tokens);
		if (!place) {
			s->failed = true;
			return false;
		}
		*place = next;
	}
	s->end = s->tokens.count;
	while (s->end && token(s, s->end - 1)->kind == PRB_TOKEN_SEMICOLON)
		s->end--;
	for (size_t i = 0; i < s->end; i++)
		if (token(s, i)->kind == PRB_TOKEN_SEMICOLON)
			return false;
	return s->end > 0;
}

/** Words with which a statement is more than one that reads rows of one table. */
static bool is_simple(const struct splitter *s)
{
	static const char *const others[] = {
		"select", "with",	"values",  "union",    "except", "intersect",
		"over",	  "filter",	"window",  "distinct", "join",	 "offset",
		"random", "randomblob", "_target", "exists",   "all"};

	if (!is(s, 0, "select"))
		return false;
	for (size_t i = 1; i < s->end; i++)
		/* count(DISTINCT x) can be split. */
		if (is_any(s, i, others, PRB_ARRAY_SIZE(others)) &&
		    !(is(s, i, "distinct") && i > 1 && is(s, i - 1, "(") && is(s, i - 2, "count")))
			return false;
	return true;
}

/** From @p at to the next of the clauses that may follow, outside of brackets. */
static size_t clause_end(const struct splitter *s, size_t at)
{
	static const char *const words[] = {"from", "where", "group", "having", "order", "limit"};
	size_t depth = 0;

	for (; at < s->end; at++) {
		depth += is(s, at, "(");
		depth -= is(s, at, ")") && depth;
		if (!depth && is_any(s, at, words, PRB_ARRAY_SIZE(words)))
			break;
	}
	return at;
}

static bool copy_word(const struct splitter *s, size_t i, char *ret, size_t size)
{
	const struct prb_token *t = token(s, i);
	size_t length = t->end - t->start;

	if (!is_word(s, i) || length >= size)
		return false;
	memcpy(ret, s->sql + t->start, length);
	ret[length] = '\0';
	return true;
}

/** Reads the clause @p word at *at, whose second word is @p second or NULL. */
static bool read_clause(const struct splitter *s, size_t *at, const char *word, const char *second,
			struct span *ret)
{
	if (!is(s, *at, word))
		return true;
	++*at;
	if (second && !is(s, (*at)++, second))
		return false;
	ret->from = *at;
	ret->to = *at = clause_end(s, *at);
	return ret->from < ret->to;
}

static bool read_clauses(struct splitter *s)
{
	size_t at = clause_end(s, 1);

	s->list = (struct span){1, at};
	if (s->list.from == s->list.to || !is(s, at, "from") || at + 6 > s->end ||
	    !is(s, at + 1, "global") || !is(s, at + 2, ".") || !is(s, at + 4, ".") ||
	    !copy_word(s, at + 3, s->schema, sizeof(s->schema)) ||
	    !copy_word(s, at + 5, s->name, sizeof(s->name)))
		return false;
	at += 6;
	if (!read_clause(s, &at, "where", NULL, &s->where) ||
	    !read_clause(s, &at, "group", "by", &s->group) ||
	    !read_clause(s, &at, "having", NULL, &s->having) ||
	    !read_clause(s, &at, "order", "by", &s->order) ||
	    !read_clause(s, &at, "limit", NULL, &s->limit))
		return false;
	return at == s->end;
}

/** True for the columns that say where a row is from, which the rank itself has not. */
static bool is_place(const struct splitter *s, size_t i)
{
	static const char *const names[] = {"_host", "_addr", "_local_rank", "_node_rank", "_role"};

	return is_any(s, i, names, PRB_ARRAY_SIZE(names));
}

/** A part of the statement that a rank understands by itself. */
static bool is_plain(const struct splitter *s, struct span span)
{
	for (size_t i = span.from; i < span.to; i++)
		if (is_place(s, i) || is(s, i, "."))
			return false;
	return true;
}

/* Taking it apart */

static bool add_part(struct splitter *s, bool key, const char *before, struct span span,
		     const char *after, size_t *ret)
{
	prb_auto_str struct prb_str text = {};
	struct part *part;

	if (s->parts.count == MAX_PARTS)
		return false;
	prb_str_puts(&text, before);
	put_text(s, span, &text);
	prb_str_puts(&text, after);
	part = prb_vec_push(&s->parts);
	if (part)
		*part = (struct part){prb_str_take(&text), key};
	s->failed |= !part || !part->text;
	*ret = s->parts.count - 1;
	return !s->failed;
}

/** The first comma in a span that is in no bracket, or its end. */
static size_t find_comma(const struct splitter *s, struct span span)
{
	size_t depth = 0;

	for (size_t i = span.from; i < span.to; i++) {
		depth += is(s, i, "(");
		depth -= is(s, i, ")");
		if (!depth && is(s, i, ","))
			return i;
	}
	return span.to;
}

/** Ranks give sketches, which can be merged. */
static bool split_sketch(struct splitter *s, size_t at, struct span arguments, struct prb_str *out)
{
	const struct span value = {arguments.from, find_comma(s, arguments)};
	bool quantile = is(s, at, "approx_quantile");
	size_t part;

	if (value.from == value.to || !is_plain(s, value) ||
	    arguments.to - value.to != (quantile ? 2 : 0) ||
	    (quantile && token(s, value.to + 1)->kind != PRB_TOKEN_NUMBER))
		return false;
	s->aggregates = true;
	if (!add_part(s, false, quantile ? "approx_quantile_sketch(" : "approx_distinct_sketch(",
		      value, ")", &part))
		return false;
	prb_str_printf(out, " %s(c%zu",
		       quantile ? "approx_quantile_merge" : "approx_distinct_merge", part);
	put_text(s, (struct span){value.to, arguments.to}, out);
	prb_str_putc(out, ')');
	return true;
}

/** One call of an aggregate: its parts, and how they are put together. */
static bool split_call(struct splitter *s, size_t at, size_t end, struct prb_str *out)
{
	const struct span all = {at, end}, argument = {at + 2, end - 1};
	size_t one, two;

	if (is(s, at, "approx_count_distinct") || is(s, at, "approx_quantile"))
		return split_sketch(s, at, argument, out);
	/* min(a, b) is of one row. */
	if (argument.from >= argument.to || find_comma(s, argument) < argument.to ||
	    !is_plain(s, argument))
		return false;
	s->aggregates = true;
	if (is(s, argument.from, "distinct")) {
		const struct span value = {argument.from + 1, argument.to};

		if (!add_part(s, true, "(", value, ")", &one))
			return false;
		prb_str_printf(out, " count(DISTINCT c%zu)", one);
		return true;
	}
	if (is(s, at, "avg")) {
		if (!add_part(s, false, "total(", argument, ")", &one) ||
		    !add_part(s, false, "count(", argument, ")", &two))
			return false;
		prb_str_printf(out, " (sum(c%zu) / nullif(sum(c%zu), 0))", one, two);
		return true;
	}
	if (!add_part(s, false, "", all, "", &one))
		return false;
	if (is(s, at, "count"))
		prb_str_printf(out, " coalesce(sum(c%zu), 0)", one);
	else
		prb_str_printf(out, " %s(c%zu)",
			       is(s, at, "min")	  ? "min"
			       : is(s, at, "max") ? "max"
			       : is(s, at, "sum") ? "sum"
						  : "total",
			       one);
	return true;
}

static bool is_alias(const struct splitter *s, size_t i)
{
	const struct item *item;

	prb_vec_each (item, &s->items)
		if (item->alias.from < item->alias.to && same_token(s, item->alias.from, i))
			return true;
	return false;
}

/** Words that mean the same everywhere. */
static bool is_common(const struct splitter *s, size_t i)
{
	static const char *const words[] = {
		"and",	  "or",	      "not",	"is",	  "null",    "in",    "like",	"between",
		"case",	  "when",     "then",	"else",	  "end",     "as",    "asc",	"desc",
		"nulls",  "first",    "last",	"cast",	  "integer", "real",  "text",	"round",
		"abs",	  "coalesce", "ifnull", "nullif", "lower",   "upper", "length", "substr",
		"printf", "format",   "true",	"false"};

	return is_any(s, i, words, PRB_ARRAY_SIZE(words));
}

static bool is_column(const struct splitter *s, size_t i)
{
	const struct prb_token *t = token(s, i);

	return s->table->has_column(s->table->context, s->schema, s->name, s->sql + t->start,
				    t->end - t->start);
}

/** Appends what the span is over the rows of the ranks; false if that cannot be said. */
static bool translate(struct splitter *s, struct span span, bool aliases, struct prb_str *out)
{
	static const char *const aggregates[] = {
		"count",	  "sum", "total", "min", "max", "avg", "approx_count_distinct",
		"approx_quantile"};

	for (size_t i = span.from; i < span.to;) {
		size_t k = 0;

		while (k < s->key_count && !matches(s, i, span.to, s->keys[k].span))
			k++;
		if (k < s->key_count) {
			prb_str_printf(out, " %s", s->keys[k].name);
			i += s->keys[k].span.to - s->keys[k].span.from;
			continue;
		}
		if (is_any(s, i, aggregates, PRB_ARRAY_SIZE(aggregates)) && is(s, i + 1, "(")) {
			size_t end = behind(s, i, span.to);

			if (!split_call(s, i, end, out))
				return false;
			i = end;
			continue;
		}
		if ((is_word(s, i) && (!is_common(s, i) || is_column(s, i)) &&
		     !(aliases && is_alias(s, i))) ||
		    token(s, i)->kind == PRB_TOKEN_NAME || is(s, i, "."))
			return false;
		prb_str_putc(out, ' ');
		put_text(s, (struct span){i, i + 1}, out);
		i++;
	}
	return true;
}

/** Calls @p each for what is between the commas of a span. */
static bool each_of(struct splitter *s, struct span span,
		    bool (*each)(struct splitter *s, struct span span))
{
	size_t depth = 0, from = span.from;

	for (size_t i = span.from; i <= span.to; i++) {
		if (i < span.to && (depth || !is(s, i, ","))) {
			depth += is(s, i, "(");
			depth -= is(s, i, ")") && depth;
			continue;
		}
		if (from == i || !each(s, (struct span){from, i}))
			return false;
		from = i + 1;
	}
	return true;
}

static bool read_item(struct splitter *s, struct span span)
{
	struct item *item = prb_vec_push(&s->items);

	if (!item) {
		s->failed = true;
		return false;
	}
	*item = (struct item){.expression = span};
	if (span.to - span.from > 2 && is(s, span.to - 2, "as")) {
		item->alias = (struct span){span.to - 1, span.to};
		item->expression.to = span.to - 2;
	}
	if (span.to - span.from == 1 && is(s, span.from, "*"))
		return false;
	/* Such a name could mean the column elsewhere. */
	if (item->alias.to && is_column(s, item->alias.from))
		return false;
	/* A name without AS. */
	return item->alias.to || span.to - span.from < 2 || !is_word(s, span.to - 1) ||
	       is_common(s, span.to - 1);
}

/** The expression that GROUP BY means: an item's by its number or name, or its own. */
static bool find_key(const struct splitter *s, struct span *span)
{
	const struct item *item;
	bool single = span->to - span->from == 1;

	if (single && token(s, span->from)->kind == PRB_TOKEN_NUMBER) {
		unsigned long number = strtoul(s->sql + token(s, span->from)->start, NULL, 10);

		if (!number || number > s->items.count)
			return false;
		*span = s->items.items[number - 1].expression;
		return true;
	}
	if (!single || is_column(s, span->from) || is_place(s, span->from) ||
	    is(s, span->from, "_rank") || is(s, span->from, "_pid"))
		return true;
	prb_vec_each (item, &s->items)
		if (item->alias.to && same_token(s, item->alias.from, span->from)) {
			*span = item->expression;
			return true;
		}
	return false;
}

static bool add_key(struct splitter *s, struct span span)
{
	struct key *key = &s->keys[s->key_count];
	size_t part;

	if (s->key_count == MAX_KEYS || !find_key(s, &span))
		return false;
	key->span = span;
	if (span.to - span.from == 1 &&
	    (is_place(s, span.from) || is(s, span.from, "_rank") || is(s, span.from, "_pid"))) {
		s->key_count++;
		return copy_word(s, span.from, key->name, sizeof(key->name));
	}
	if (!is_plain(s, span) || !add_part(s, true, "(", span, ")", &part))
		return false;
	snprintf(key->name, sizeof(key->name), "c%zu", part);
	s->key_count++;
	return true;
}

/* Putting it together */

static void put_where(const struct splitter *s, struct prb_str *out)
{
	if (s->where.from == s->where.to)
		return;
	prb_str_puts(out, " WHERE (");
	put_text(s, s->where, out);
	prb_str_putc(out, ')');
}

/** The statement for each rank: its keys and parts, a row for each group. */
static void put_each(const struct splitter *s, struct prb_str *out)
{
	prb_str_puts(out, "SELECT _rank, _pid");
	for (size_t i = 0; i < s->parts.count; i++)
		prb_str_printf(out, ", %s AS c%zu", s->parts.items[i].text, i);
	prb_str_printf(out, " FROM %s.%s", s->schema, s->name);
	put_where(s, out);
	prb_str_puts(out, " GROUP BY 1, 2");
	for (size_t i = 0; i < s->parts.count; i++)
		if (s->parts.items[i].key)
			prb_str_printf(out, ", %zu", i + 3);
}

/** Columns are called what SQLite would call them: by the name behind AS, or by their text. */
static bool put_items(struct splitter *s, struct prb_str *out)
{
	prb_str_puts(out, "SELECT");
	for (size_t i = 0; i < s->items.count; i++) {
		const struct item *item = &s->items.items[i];
		prb_auto_str struct prb_str name = {};

		prb_str_puts(out, i ? "," : "");
		if (!translate(s, item->expression, false, out))
			return false;
		put_text(s, item->alias.to ? item->alias : item->expression, &name);
		if (strchr(prb_str_text(&name), '"'))
			return false;
		prb_str_printf(out, " AS \"%s\"", prb_str_text(&name));
	}
	return true;
}

static bool put_clause(struct splitter *s, const char *words, struct span span, struct prb_str *out)
{
	if (span.from == span.to)
		return true;
	prb_str_printf(out, " %s", words);
	return translate(s, span, true, out);
}

static bool put_rest(struct splitter *s, struct prb_str *out)
{
	if (!put_items(s, out))
		return false;
	prb_str_printf(out, " FROM global.\"%s\"", s->table->name);
	for (size_t i = 0; i < s->key_count; i++)
		prb_str_printf(out, "%s%s", i ? ", " : " GROUP BY ", s->keys[i].name);
	return put_clause(s, "HAVING", s->having, out) &&
	       put_clause(s, "ORDER BY", s->order, out) && put_clause(s, "LIMIT", s->limit, out);
}

static struct prb_error *split_aggregates(struct splitter *s, struct prb_partial *ret)
{
	prb_auto_str struct prb_str each = {}, rest = {};

	if (!each_of(s, s->list, read_item) ||
	    (s->group.from < s->group.to && !each_of(s, s->group, add_key)) ||
	    !put_rest(s, &rest) || (!s->aggregates && !s->key_count))
		return s->failed ? prb_error_nomem() : NULL;
	put_each(s, &each);
	ret->columns = (unsigned)s->parts.count;
	ret->each = prb_str_take(&each);
	ret->rest = prb_str_take(&rest);
	return ret->each && ret->rest ? NULL : prb_error_nomem();
}

/** True if the first rows that a rank has are as good as any: nothing is done with all of them. */
static bool takes_any_rows(const struct splitter *s)
{
	/* A function may be an aggregate. */
	for (size_t i = s->list.from; i < s->list.to; i++)
		if (is(s, i, "("))
			return false;
	return s->group.from == s->group.to && s->having.from == s->having.to &&
	       s->order.from == s->order.to && s->limit.to - s->limit.from == 1 &&
	       token(s, s->limit.from)->kind == PRB_TOKEN_NUMBER;
}

static struct prb_error *split(struct splitter *s, struct prb_partial *ret)
{
	prb_auto_str struct prb_str where = {};
	bool plain;

	if (!read_tokens(s) || !is_simple(s) || !read_clauses(s))
		return s->failed ? prb_error_nomem() : NULL;
	plain = is_plain(s, s->where);
	put_text(s, s->where, &where);
	if (plain && where.length)
		PRB_TRY(prb_str_copy(prb_str_text(&where), &ret->where));
	PRB_TRY(prb_str_copy(s->schema, &ret->schema));
	PRB_TRY(prb_str_copy(s->name, &ret->table));
	if (plain && takes_any_rows(s))
		ret->limit = strtoll(s->sql + token(s, s->limit.from)->start, NULL, 10);
	return plain ? split_aggregates(s, ret) : NULL;
}

struct prb_error *prb_partial_make(const char *sql, const struct prb_partial_table *table,
				   struct prb_partial *ret)
{
	__attribute__((cleanup(splitter_deinit))) struct splitter s = {.sql = sql, .table = table};

	*ret = (struct prb_partial){.limit = -1};
	return split(&s, ret);
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "clickhouse/translate.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/vec.h"
#include "clickhouse/server.h"
#include "sql/dialect/tokens.h"
#include "sql/functions/functions_time.h"
#include "sql/spec/collected.h"

enum { MAX_DEPTH = 200, MAX_LENGTH = 1 << 20 };

/** Text to insert before a token, each time that it is written. */
struct insertion {
	size_t token;
	const char *before;
	const char *after; /* behind the condition for the job; NULL: without that */
	size_t from, to;   /* then these tokens, too */
};

struct translation {
	const struct prb_clickhouse_url *url;
	const char *text;
	PRB_VEC(struct prb_token) tokens; /* without spaces and comments */
	PRB_VEC(struct insertion) insertions;
	struct prb_str *out;
	unsigned depth;
};

static bool is(const struct translation *t, size_t i, const char *word)
{
	return i < t->tokens.count && prb_token_is(t->text, &t->tokens.items[i], word);
}

static bool is_of(const struct translation *t, size_t i, enum prb_token_kind kind)
{
	return i < t->tokens.count && t->tokens.items[i].kind == kind;
}

static bool is_name(const struct translation *t, size_t i)
{
	return is_of(t, i, PRB_TOKEN_WORD) || is_of(t, i, PRB_TOKEN_NAME);
}

/** A name without quotes, or what a string stands for, cut to @p size. */
static void value(const struct translation *t, size_t i, struct prb_str *s)
{
	const struct prb_token *token = &t->tokens.items[i];
	bool quoted = token->kind == PRB_TOKEN_NAME || token->kind == PRB_TOKEN_STRING;
	char quote = t->text[token->start] == '[' ? ']' : t->text[token->start];

	for (size_t at = token->start + quoted; at < token->end - quoted; at++) {
		prb_str_putc(s, t->text[at]);
		if (quoted && t->text[at] == quote)
			at++;
	}
}

static void put(struct translation *t, const char *text)
{
	prb_str_printf(t->out, "%s ", text);
}

/** Index of the parenthesis that closes the one at @p i, or the count of tokens if none does. */
static size_t partner(const struct translation *t, size_t i)
{
	size_t depth = 0;

	for (; i < t->tokens.count; i++) {
		depth += is(t, i, "(");
		depth -= is(t, i, ")");
		if (!depth)
			break;
	}
	return i;
}

/** "NAME AS (SELECT", behind WITH or a comma. */
static bool is_common(const struct translation *t, size_t i)
{
	return i && is_name(t, i) && is(t, i + 1, "as") && is(t, i + 2, "(") &&
	       (is(t, i + 3, "select") || is(t, i + 3, "with")) &&
	       (is(t, i - 1, "with") || is(t, i - 1, ","));
}

static struct prb_error *write_all(struct translation *t, size_t from, size_t to);

static struct prb_error *refuse(const char *what, const char *instead)
{
	return prb_error_hint(prb_error_create(PRB_ERROR_USAGE,
					       "ClickHouse has no %s of ours, and it is not "
					       "translated",
					       what),
			      "%s", instead);
}

/** The subquery that a WITH before it gives this name: its opening parenthesis, or 0. */
static size_t find_common_table(const struct translation *t, size_t name)
{
	prb_auto_str struct prb_str wanted = {};

	value(t, name, &wanted);
	for (size_t i = name; i-- > 0;) {
		prb_auto_str struct prb_str known = {};

		if (!is_common(t, i))
			continue;
		value(t, i, &known);
		/* Not within itself. */
		if (!strcasecmp(prb_str_text(&known), prb_str_text(&wanted)) &&
		    partner(t, i + 2) < name)
			return i + 2;
	}
	return 0;
}

static void put_source(struct translation *t, const char *schema, const char *name)
{
	prb_str_printf(t->out, "`%s`.`%s_%s` ", t->url->database, schema, name);
}

static void put_job(struct translation *t, const char *before)
{
	if (!t->url->job)
		return;
	prb_str_printf(t->out, "%s job = ", before);
	prb_clickhouse_quote(t->out, t->url->job);
	prb_str_putc(t->out, ' ');
}

/** Our views are subqueries there. */
static void put_view(struct translation *t, const struct prb_collected *view)
{
	prb_str_puts(t->out, "(SELECT job, host, uid, rank, role, pid, tid, timestamp");
	for (const struct prb_collected_column *c = view->columns; c->name; c++)
		prb_str_printf(t->out, ", `%s` AS `%s`", c->source, c->name);
	prb_str_puts(t->out, " FROM ");
	put_source(t, view->source_schema, view->source_name);
	if (view->filter)
		prb_str_printf(t->out, "WHERE `%s` = '%s' ", view->filter, view->value);
	put_job(t, view->filter ? "AND" : "WHERE");
	put(t, ")");
}

/** The next token of this SELECT, not of a subquery, that is one of @p words; its end if none is.
 */
static size_t find_word(const struct translation *t, size_t from, const char *const *words)
{
	for (size_t i = from; i < t->tokens.count; i++) {
		if (is(t, i, "("))
			i = partner(t, i);
		else if (is(t, i, ")"))
			return i;
		else
			for (const char *const *word = words; *word; word++)
				if (is(t, i, *word))
					return i;
	}
	return t->tokens.count;
}

/** Words that may follow conditions, and words that may follow a table, as opposed to its alias. */
static const char *const rest[] = {"group", "having",	"order",  "limit",
				   "union", "settings", "window", NULL};
static const char *const behind_table[] = {"where",  "group",	 "having",   "order", "limit",
					   "union",  "settings", "window",   "join",  ",",
					   "sample", "final",	 "prewhere", "array", NULL};

static bool insert(struct translation *t, size_t token, const char *before, const char *after)
{
	struct insertion *known;

	prb_vec_each (known, &t->insertions)
		if (known->token == token && !strcmp(known->before, before))
			return true;
	known = prb_vec_push(&t->insertions);
	if (known)
		*known = (struct insertion){token, before, after, 0, 0};
	return known;
}

/**
 * The job as a condition of the SELECT whose table is at @p i, so that servers aggregate their own
 * rows. False if it has other tables, too: then it is one of a subquery.
 */
static bool add_condition(struct translation *t, size_t i)
{
	size_t at = find_word(t, i, behind_table);

	if (!i || !is(t, i - 1, "from"))
		return false;
	if (is(t, at, "where"))
		return insert(t, at + 1, "", " AND ( ") &&
		       insert(t, find_word(t, at + 1, rest), ") ", NULL);
	for (const char *const *word = rest; *word; word++)
		if (is(t, at, *word))
			return insert(t, at, "WHERE ", "");
	return (at == t->tokens.count || is(t, at, ")")) && insert(t, at, "WHERE ", "");
}

/** Columns that are part of the order of our tables, where they must not be NULL. */
static const struct {
	const char *name, *before;
} ordered[] = {
	{"step", "AND ifNull(`step`, -1) "},
	{"rank", "AND ifNull(`rank`, -1) "},
};

/** Behind the number at @p i, or 0 if there is none. */
static size_t skip_number(const struct translation *t, size_t i)
{
	i += is(t, i, "-");
	return is_of(t, i, PRB_TOKEN_NUMBER) ? i + 1 : 0;
}

/** Behind what a column is compared with by the operator at @p i, or 0 if that is no number. */
static size_t skip_comparison(const struct translation *t, size_t i)
{
	static const char *const signs[] = {"=", "==", "<", "<=", ">", ">=", NULL};

	if (is(t, i, "between")) {
		i = skip_number(t, i + 1);
		return i && is(t, i, "and") ? skip_number(t, i + 1) : 0;
	}
	if (is(t, i, "in") && is(t, i + 1, "(")) {
		for (i = skip_number(t, i + 2); i && is(t, i, ",");)
			i = skip_number(t, i + 1);
		return i && is(t, i, ")") ? i + 1 : 0;
	}
	for (const char *const *sign = signs; *sign; sign++)
		if (is(t, i, *sign))
			return skip_number(t, i + 1);
	return 0;
}

/** If one of `ordered` is compared at @p i: says the same of what the order of the table has. */
static bool add_ordered(struct translation *t, size_t i, size_t end)
{
	size_t name = is_name(t, i) && is(t, i + 1, ".") ? i + 2 : i;
	size_t behind = skip_comparison(t, name + 1);

	if (!behind || (behind != end && !is(t, behind, "and")))
		return true;
	for (size_t n = 0; n < PRB_ARRAY_SIZE(ordered); n++) {
		struct insertion *known;
		bool there = false;

		if (!is(t, name, ordered[n].name))
			continue;
		prb_vec_each (known, &t->insertions)
			there |= known->from == name + 1;
		known = there ? NULL : prb_vec_push(&t->insertions);
		if (known)
			*known = (struct insertion){behind, ordered[n].before, NULL, name + 1,
						    behind};
		return there || known;
	}
	return true;
}

/**
 * Conditions on columns of the table at @p i that its order is to be searched for: ClickHouse looks
 * for `ifNull(step, -1)` itself. Only what all rows must meet: there, false and NULL are the same.
 */
static bool add_key_conditions(struct translation *t, size_t i)
{
	const size_t where = find_word(t, i, behind_table), end = find_word(t, where + 1, rest);
	bool first = true, between = false;

	if (!i || !is(t, i - 1, "from") || !is(t, where, "where"))
		return true;
	/* Within CASE, false and NULL differ. */
	for (size_t at = where + 1; at < end && !is(t, at, "case"); at++) {
		if (first && !add_ordered(t, at, end))
			return false;
		first = is(t, at, "and") && !between;
		between = is(t, at, "between") || (between && !is(t, at, "and"));
		if (is(t, at, "("))
			at = partner(t, at);
	}
	return true;
}

static void put_insertions(struct translation *t, size_t token)
{
	for (size_t i = t->insertions.count; i-- > 0;) {
		const struct insertion *one = &t->insertions.items[i];

		if (one->token != token)
			continue;
		prb_str_puts(t->out, one->before);
		if (one->after)
			put_job(t, "");
		prb_str_puts(t->out, one->after ? one->after : "");
		for (size_t at = one->from; at < one->to; at++) {
			const struct prb_token *copied = &t->tokens.items[at];

			prb_str_append(t->out, t->text + copied->start,
				       copied->end - copied->start);
			prb_str_putc(t->out, ' ');
		}
	}
}

static void put_table(struct translation *t, size_t at, const char *schema, const char *name)
{
	const struct prb_collected *known = prb_collected_find(schema, name);

	if (known && known->source_name) {
		put_view(t, known);
		return;
	}
	if (known)
		name = known->name;
	if (!t->url->job || add_condition(t, at)) {
		t->out->failed |= !add_key_conditions(t, at);
		put_source(t, schema, name);
		return;
	}
	prb_str_puts(t->out, "(SELECT * FROM ");
	put_source(t, schema, name);
	put_job(t, "WHERE");
	put(t, ")");
}

/** True if an alias follows. */
static bool has_alias(const struct translation *t, size_t i)
{
	static const char *const others[] = {
		"where",    "prewhere", "group", "order",   "limit",  "having", "union",
		"join",	    "any",	"all",	 "left",    "right",  "inner",	"full",
		"cross",    "using",	"on",	 "final",   "sample", "array",	"global",
		"settings", "format",	"asof",	 "natural", "outer",  "window"};

	if (is(t, i, "as"))
		return true;
	for (size_t n = 0; n < PRB_ARRAY_SIZE(others); n++)
		if (is(t, i, others[n]))
			return false;
	return is_name(t, i);
}

/** A name of WITH behind FROM or JOIN: the subquery goes there, as 18.16 has no names for them. */
static struct prb_error *write_common_table(struct translation *t, size_t i, size_t *ret)
{
	prb_auto_str struct prb_str name = {};
	size_t open;

	if (!is_name(t, i) || is(t, i + 1, ".") || is(t, i + 1, "("))
		return NULL;
	open = find_common_table(t, i);
	if (!open)
		return NULL;
	PRB_TRY(write_all(t, open, partner(t, open) + 1));
	value(t, i, &name);
	if (!has_alias(t, i + 1))
		prb_str_printf(t->out, "AS `%s` ", prb_str_text(&name));
	*ret = 1;
	return NULL;
}

/** WITH and its subqueries, which go to where their names are. */
static struct prb_error *skip_with(const struct translation *t, size_t i, size_t *ret)
{
	size_t at = i + 1;

	if (!is(t, i, "with"))
		return NULL;
	if (is(t, at, "recursive"))
		return refuse("WITH RECURSIVE", "read the rows, and follow them elsewhere");
	if (is_name(t, at) && is(t, at + 1, "("))
		return refuse("names of columns behind WITH",
			      "name them in the subquery: SELECT x AS name");
	while (is_common(t, at)) {
		at = partner(t, at + 2) + 1;
		*ret = at - i;
		if (!is(t, at, ","))
			break;
		at++;
	}
	return NULL;
}

/** A table behind FROM, JOIN, DESCRIBE: gives the tokens it takes, 0 if it is not one of ours. */
static size_t write_table(struct translation *t, size_t i)
{
	static const char *const schemas[] = {"python", "user", "main", "profile", "probing"};
	prb_auto_str struct prb_str schema = {}, name = {};
	const struct prb_collected *known;
	const char *which = NULL;

	if (!is_name(t, i))
		return 0;
	value(t, i, is(t, i + 1, ".") ? &schema : &name);
	if (is(t, i + 1, ".") && is_name(t, i + 2))
		value(t, i + 2, &name);
	for (size_t n = 0; n < PRB_ARRAY_SIZE(schemas); n++)
		if (!strcasecmp(schemas[n], prb_str_text(&schema)))
			which = schemas[n];
	known = schema.length ? NULL : prb_collected_find("main", prb_str_text(&name));
	if (known)
		which = "main";
	if (!which)
		return 0;
	for (const char *at = prb_str_text(&name); *at; at++)
		if (!prb_token_is_name_byte(*at) || *at == '$' || (unsigned char)*at > 127)
			return 0;
	put_table(t, i, which, prb_str_text(&name));
	if (!has_alias(t, i + (schema.length ? 3 : 1)))
		prb_str_printf(t->out, "AS `%s` ", prb_str_text(&name));
	return schema.length ? 3 : 1;
}

static bool expects_table(const struct translation *t, size_t i)
{
	static const char *const before[] = {"from", "join", "describe", "desc"};

	for (size_t n = 0; i && n < PRB_ARRAY_SIZE(before); n++)
		if (is(t, i - 1, before[n]))
			return true;
	return i > 1 && is(t, i - 1, "table") && (is(t, i - 2, "describe") || is(t, i - 2, "desc"));
}

/** interval '5 minutes', INTERVAL 5 MINUTE: times are seconds. */
static struct prb_error *write_interval(struct translation *t, size_t i, size_t *ret)
{
	prb_auto_str struct prb_str amount = {};
	double seconds;

	if (!is(t, i, "interval"))
		return NULL;
	if (is_of(t, i + 1, PRB_TOKEN_STRING)) {
		value(t, i + 1, &amount);
		*ret = 2;
		if (amount.length == strspn(prb_str_text(&amount), "0123456789.- ") &&
		    is_of(t, i + 2, PRB_TOKEN_WORD)) {
			prb_str_putc(&amount, ' ');
			value(t, i + 2, &amount);
			*ret = 3;
		}
	} else if (is_of(t, i + 1, PRB_TOKEN_NUMBER) && is_of(t, i + 2, PRB_TOKEN_WORD)) {
		value(t, i + 1, &amount);
		prb_str_putc(&amount, ' ');
		value(t, i + 2, &amount);
		*ret = 3;
	} else {
		return NULL;
	}
	PRB_TRY(prb_interval_parse(prb_str_text(&amount), amount.length, &seconds));
	prb_str_printf(t->out, "%.9g ", seconds);
	return NULL;
}

/** Calls with other names there; the argument of most is one of our times. */
static const struct {
	const char *name, *before, *after;
} calls[] = {
	{"year", "toYear(toDateTime(", ", 'UTC'))"},
	{"month", "toMonth(toDateTime(", ", 'UTC'))"},
	{"day", "toDayOfMonth(toDateTime(", ", 'UTC'))"},
	{"hour", "toHour(toDateTime(", ", 'UTC'))"},
	{"minute", "toMinute(toDateTime(", ", 'UTC'))"},
	{"second", "toSecond(toDateTime(", ", 'UTC'))"},
	{"iif", "if(", ")"},
	{"instr", "position(", ")"},
	{"total", "ifNull(toFloat64(sum(", ")), 0)"},
};

static const struct {
	const char *unit, *function;
} truncations[] = {
	{"minute", "toStartOfMinute"}, {"hour", "toStartOfHour"},	{"day", "toStartOfDay"},
	{"month", "toStartOfMonth"},   {"quarter", "toStartOfQuarter"}, {"year", "toStartOfYear"},
};

/** date_trunc('hour', time) */
static struct prb_error *write_truncation(struct translation *t, size_t i, size_t close)
{
	prb_auto_str struct prb_str unit = {};

	if (is_of(t, i + 2, PRB_TOKEN_STRING) && is(t, i + 3, ","))
		value(t, i + 2, &unit);
	for (size_t n = 0; n < PRB_ARRAY_SIZE(truncations); n++) {
		if (strcasecmp(truncations[n].unit, prb_str_text(&unit)) != 0)
			continue;
		prb_str_printf(t->out, "toFloat64(toDateTime(%s(toDateTime(",
			       truncations[n].function);
		PRB_TRY(write_all(t, i + 4, close));
		put(t, ", 'UTC')), 'UTC'))");
		return NULL;
	}
	return refuse("date_trunc() with this unit",
		      "minute, hour, day, month, quarter and year are translated");
}

/** percentile_cont(0.9) WITHIN GROUP (ORDER BY x) */
static struct prb_error *write_percentile(struct translation *t, size_t i, size_t close,
					  size_t *ret)
{
	size_t group = close + 3, end;

	if (!is(t, close + 1, "within") || !is(t, close + 2, "group") || !is(t, group, "(") ||
	    !is(t, group + 1, "order") || !is(t, group + 2, "by"))
		return refuse("percentile_cont() of this form", "quantile(0.9)(x) is ClickHouse's");
	end = partner(t, group);
	prb_str_puts(t->out, "quantile(");
	PRB_TRY(write_all(t, i + 2, close));
	prb_str_puts(t->out, ")(");
	PRB_TRY(write_all(t, group + 3, end));
	put(t, ")");
	*ret = end + 1 - i;
	return NULL;
}

/** count(*) FILTER (WHERE x): all versions have countIf(x). */
static struct prb_error *write_filtered(struct translation *t, size_t i, size_t close, size_t *ret)
{
	const bool distinct = is(t, i + 2, "distinct"), all = is(t, i + 2, "*");
	const size_t end = partner(t, close + 2);
	prb_auto_str struct prb_str name = {};

	if (end >= t->tokens.count)
		return NULL;
	value(t, i, &name);
	if (distinct && !is(t, i, "count"))
		return refuse("DISTINCT with FILTER but in count()",
			      "FooIf(x, condition) is ClickHouse's");
	prb_str_printf(t->out, "%sIf(", distinct ? "uniqExact" : prb_str_text(&name));
	if (!all && close > i + 2) {
		PRB_TRY(write_all(t, i + 2 + distinct, close));
		prb_str_puts(t->out, ", ");
	}
	PRB_TRY(write_all(t, close + 4, end));
	put(t, ")");
	*ret = end + 1 - i;
	return NULL;
}

/** group_concat(x), group_concat(DISTINCT x), group_concat(x, ' ') */
static struct prb_error *write_concatenation(struct translation *t, size_t i, size_t close)
{
	const bool distinct = is(t, i + 2, "distinct");
	const bool divided = is(t, close - 2, ",") && is_of(t, close - 1, PRB_TOKEN_STRING);

	prb_str_printf(t->out, "arrayStringConcat(%s(toString(",
		       distinct ? "groupUniqArray" : "groupArray");
	PRB_TRY(write_all(t, i + 2 + distinct, divided ? close - 2 : close));
	prb_str_puts(t->out, ")), ");
	if (divided)
		PRB_TRY(write_all(t, close - 1, close));
	else
		prb_str_puts(t->out, "','");
	put(t, ")");
	return NULL;
}

/** A call of a function that is called otherwise there; *ret: its tokens, 0 if it is another. */
static struct prb_error *write_call(struct translation *t, size_t i, size_t *ret)
{
	size_t close;

	if (!is_of(t, i, PRB_TOKEN_WORD) || !is(t, i + 1, "("))
		return NULL;
	close = partner(t, i + 1);
	if (close >= t->tokens.count)
		return NULL;
	if (is(t, i, "now") && close == i + 2) {
		put(t, "toFloat64(now())");
		*ret = 3;
		return NULL;
	}
	if (is(t, close + 1, "filter") && is(t, close + 2, "(") && is(t, close + 3, "where"))
		return write_filtered(t, i, close, ret);
	if (is(t, i, "group_concat") && close > i + 2) {
		*ret = close + 1 - i;
		return write_concatenation(t, i, close);
	}
	for (size_t n = 0; n < PRB_ARRAY_SIZE(calls); n++) {
		if (!is(t, i, calls[n].name))
			continue;
		prb_str_puts(t->out, calls[n].before);
		PRB_TRY(write_all(t, i + 2, close));
		put(t, calls[n].after);
		*ret = close + 1 - i;
		return NULL;
	}
	if (is(t, i, "date_trunc")) {
		*ret = close + 1 - i;
		return write_truncation(t, i, close);
	}
	return is(t, i, "percentile_cont") ? write_percentile(t, i, close, ret) : NULL;
}

/** Types in a CAST. */
static size_t write_type(struct translation *t, size_t i)
{
	static const char *const types[][2] = {{"integer", "Int64"},
					       {"bigint", "Int64"},
					       {"real", "Float64"},
					       {"double", "Float64"},
					       {"text", "String"}};

	for (size_t n = 0;
	     i && is(t, i - 1, "as") && is(t, i + 1, ")") && n < PRB_ARRAY_SIZE(types); n++)
		if (is(t, i, types[n][0])) {
			put(t, types[n][1]);
			return 1;
		}
	return 0;
}

static struct prb_error *check(const struct translation *t, size_t i)
{
	if (is(t, i, "~") || is(t, i, "~*") || is(t, i, "!~") || is(t, i, "!~*") ||
	    is(t, i, "regexp"))
		return refuse("regular expressions", "match(text, 'pattern') is ClickHouse's");
	if (is(t, i, "->") || is(t, i, "->>") || (is(t, i, "json_extract") && is(t, i + 1, "(")))
		return refuse("operators of JSON",
			      "visitParamExtractString(attributes, 'key') is ClickHouse's");
	if (is(t, i, "::"))
		return refuse("casts with ::", "CAST(x AS REAL) works in both");
	if (is(t, i, "format") && is_of(t, i + 1, PRB_TOKEN_WORD) && i && !is(t, i - 1, ","))
		return prb_error_hint(
			prb_error_create(PRB_ERROR_USAGE, "FORMAT is for other clients"),
			"'probing query --format' chooses how rows are printed");
	if (is_of(t, i, PRB_TOKEN_BAD))
		return prb_error_create(PRB_ERROR_USAGE, "the statement has an open quote or a "
							 "stray character");
	return NULL;
}

/** Writes the replacement of token @p i and maybe some after it; *ret: how many. */
static struct prb_error *write_one(struct translation *t, size_t i, size_t *ret)
{
	prb_auto_str struct prb_str text = {};

	*ret = 0;
	PRB_TRY(check(t, i));
	PRB_TRY(skip_with(t, i, ret));
	if (!*ret && expects_table(t, i))
		PRB_TRY(write_common_table(t, i, ret));
	if (!*ret && expects_table(t, i))
		*ret = write_table(t, i);
	if (!*ret)
		PRB_TRY(write_interval(t, i, ret));
	if (!*ret)
		PRB_TRY(write_call(t, i, ret));
	if (!*ret)
		*ret = write_type(t, i);
	if (*ret)
		return NULL;
	*ret = 1;
	if (is_of(t, i, PRB_TOKEN_STRING) || is_of(t, i, PRB_TOKEN_NAME)) {
		value(t, i, &text);
		if (memchr(prb_str_text(&text), '`', text.length) && is_of(t, i, PRB_TOKEN_NAME))
			return prb_error_create(PRB_ERROR_USAGE, "names have no backticks");
		if (is_of(t, i, PRB_TOKEN_STRING))
			prb_clickhouse_quote(t->out, prb_str_text(&text));
		else
			prb_str_printf(t->out, "`%s`", prb_str_text(&text));
	} else {
		prb_str_append(t->out, t->text + t->tokens.items[i].start,
			       t->tokens.items[i].end - t->tokens.items[i].start);
	}
	/* No space in front of parentheses and dots: names of functions belong to them. */
	if (!is(t, i + 1, "(") && !is(t, i + 1, ".") && !is(t, i, "."))
		prb_str_putc(t->out, ' ');
	return NULL;
}

static struct prb_error *write_all(struct translation *t, size_t from, size_t to)
{
	if (t->depth++ == MAX_DEPTH)
		return prb_error_create(PRB_ERROR_USAGE, "the statement is nested too deeply");
	for (size_t i = from, taken; i < to; i += taken) {
		put_insertions(t, i);
		PRB_TRY(write_one(t, i, &taken));
		/* Subqueries of WITH, used twice by another one, and so on. */
		if (t->out->length > MAX_LENGTH)
			return prb_error_create(PRB_ERROR_USAGE,
						"the statement is over %d MiB as ClickHouse is to "
						"get it",
						MAX_LENGTH >> 20);
	}
	put_insertions(t, to);
	t->depth--;
	return NULL;
}

static struct prb_error *find_tokens(struct translation *t, size_t length)
{
	for (size_t at = 0; at < length;) {
		struct prb_token token = prb_token_at(t->text, length, at), *slot;

		at = token.end;
		if (prb_token_is_blank(&token))
			continue;
		slot = prb_vec_push(&t->tokens);
		if (!slot)
			return prb_error_nomem();
		*slot = token;
	}
	while (t->tokens.count && t->tokens.items[t->tokens.count - 1].kind == PRB_TOKEN_SEMICOLON)
		t->tokens.count--;
	for (size_t i = 0; i < t->tokens.count; i++)
		if (t->tokens.items[i].kind == PRB_TOKEN_SEMICOLON)
			return prb_error_create(PRB_ERROR_USAGE,
						"one statement at a time goes to ClickHouse");
	return t->tokens.count ? NULL : prb_error_create(PRB_ERROR_USAGE, "there is no query");
}

/** With the names that our statements have. */
static const char SHOW_TABLES[] =
	"SELECT replaceRegexpOne(name, '^(user|python|main|profile|probing)_', '\\\\1.') AS name "
	"FROM system.tables WHERE database = currentDatabase() ORDER BY name ";

struct prb_error *prb_clickhouse_translate(const struct prb_clickhouse_url *url, const char *sql,
					   size_t length, struct prb_str *ret)
{
	struct translation t = {.url = url, .text = sql, .out = ret};
	struct prb_error *err = find_tokens(&t, length);

	if (!err && t.tokens.count == 2 && is(&t, 0, "show") && is(&t, 1, "tables"))
		prb_str_puts(ret, SHOW_TABLES);
	else if (!err)
		err = write_all(&t, 0, t.tokens.count);
	prb_vec_free(&t.tokens);
	prb_vec_free(&t.insertions);
	if (!err && ret->failed)
		return prb_error_nomem();
	return err;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Translations as they are written: pieces of the user's text, and what replaces others. */
#include <string.h>
#include <strings.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "sql/dialect/dialect_private.h"
#include "sql/spec/table.h"

/* Translations within translations; what is deeper stays as it is. */
enum { DEPTH_MAX = 64 };

bool prb_translation_is(const struct prb_translation *t, size_t i, const char *word)
{
	return i < t->tokens.count && prb_token_is(t->script, &t->tokens.items[i], word);
}

bool prb_translation_is_name(const struct prb_translation *t, size_t i)
{
	return i < t->tokens.count && (t->tokens.items[i].kind == PRB_TOKEN_WORD ||
				       t->tokens.items[i].kind == PRB_TOKEN_NAME);
}

void prb_translation_value(const struct prb_translation *t, size_t i, struct prb_str *s)
{
	const struct prb_token *token = &t->tokens.items[i];
	const char *text = t->script + token->start;
	size_t length = token->end - token->start;

	if (token->kind != PRB_TOKEN_NAME && token->kind != PRB_TOKEN_STRING) {
		prb_str_append(s, text, length);
		return;
	}
	for (size_t at = 1; at + 1 < length; at++) {
		prb_str_putc(s, text[at]);
		/* A doubled quote stands for one. */
		if (text[at] == text[length - 1])
			at++;
	}
}

void prb_translation_refuse(struct prb_translation *t, size_t i, struct prb_error *err)
{
	struct prb_dialect_statement *statement = t->statement;

	if (statement->refusal) {
		prb_error_destroy(err);
		return;
	}
	statement->refusal = err;
	statement->refused_at = i < t->tokens.count ? t->tokens.items[i].start : statement->start;
}

/** Two pieces that were not adjacent must not become one token. */
static bool would_join(const struct prb_str *out, char next)
{
	char last = out->length ? out->data[out->length - 1] : ' ';

	return !memchr(" (,\t\n", last, 5) && !memchr(" ),(\t\n", next, 6);
}

static void put(struct prb_translation *t, const char *text, size_t length, size_t own, bool copied)
{
	struct prb_statement_piece *piece;

	if ((!copied || own != t->written_to) && would_join(&t->out, *text))
		prb_str_putc(&t->out, ' ');
	piece = prb_vec_push(&t->statement->pieces);
	if (piece)
		*piece = (struct prb_statement_piece){t->out.length, own, copied};
	else
		t->no_memory = true;
	prb_str_append(&t->out, text, length);
}

static void copy(struct prb_translation *t, size_t start, size_t end)
{
	if (start == end)
		return;
	put(t, t->script + start, end - start, start, true);
	t->written_to = end;
}

void prb_translation_put(struct prb_translation *t, size_t i, const char *text)
{
	put(t, text, strlen(text), t->tokens.items[i].start, false);
	t->written_to = SIZE_MAX;
	t->changed = true;
}

void prb_translation_put_string(struct prb_translation *t, size_t i, const char *text)
{
	prb_auto_str struct prb_str quoted = {};

	prb_str_putc(&quoted, '\'');
	for (; *text; text++)
		prb_str_append(&quoted, *text == '\'' ? "''" : text, *text == '\'' ? 2 : 1);
	prb_str_putc(&quoted, '\'');
	t->no_memory |= quoted.failed;
	prb_translation_put(t, i, prb_str_text(&quoted));
}

bool prb_translation_ends_operand(const struct prb_translation *t, size_t i)
{
	/* Words after which an operand begins. */
	static const char *const beginnings[] = {
		"all",	  "and",    "as",	 "between", "by",     "case",	"distinct",
		"else",	  "escape", "from",	 "glob",    "having", "ilike",	"in",
		"is",	  "limit",  "like",	 "match",   "not",    "offset", "on",
		"or",	  "regexp", "returning", "select",  "set",    "then",	"union",
		"using",  "values", "when",	 "where",   "join",   "with",	"except",
		"within", "group",  "intersect", "over",    "filter",
	};
	const struct prb_token *token;

	if (i >= t->tokens.count)
		return false;
	token = &t->tokens.items[i];
	if (token->kind == PRB_TOKEN_OPERATOR)
		return prb_translation_is(t, i, ")");
	if (token->kind == PRB_TOKEN_BAD || token->kind == PRB_TOKEN_SEMICOLON)
		return false;
	for (size_t n = 0; token->kind == PRB_TOKEN_WORD && n < PRB_ARRAY_SIZE(beginnings); n++)
		if (prb_token_is(t->script, token, beginnings[n]))
			return false;
	return true;
}

static bool begins_operand(const struct prb_translation *t, size_t i)
{
	return i < t->tokens.count && !prb_translation_is(t, i, ")") &&
	       !prb_translation_is(t, i, ",") && t->tokens.items[i].kind != PRB_TOKEN_BAD;
}

/** a ~ 're' and its kin; a ILIKE 'x'. */
static size_t translate_match(struct prb_translation *t, size_t i)
{
	static const struct {
		const char *from, *to;
	} operators[] = {
		/* || binds tighter than REGEXP. */
		{"~", "REGEXP"},      {"~*", "REGEXP '(?i)' ||"},
		{"!~", "NOT REGEXP"}, {"!~*", "NOT REGEXP '(?i)' ||"},
		{"ilike", "LIKE"},
	};

	/* ~~ is LIKE elsewhere, and twice the complement here. */
	if (!i || !begins_operand(t, i + 1) || prb_translation_is(t, i + 1, "~"))
		return 0;
	/* x NOT ILIKE 'y' */
	if (!prb_translation_ends_operand(t, i - 1) &&
	    !(prb_translation_is(t, i, "ilike") && prb_translation_is(t, i - 1, "not")))
		return 0;
	for (size_t n = 0; n < PRB_ARRAY_SIZE(operators); n++)
		if (prb_translation_is(t, i, operators[n].from)) {
			prb_translation_put(t, i, operators[n].to);
			return 1;
		}
	return 0;
}

/** "python.threads", one name in quotes, which is a table's. */
static size_t translate_table(struct prb_translation *t, size_t i)
{
	prb_auto_str struct prb_str name = {};
	char *dot;

	prb_translation_value(t, i, &name);
	dot = name.length ? strchr(name.data, '.') : NULL;
	if (!dot)
		return 0;
	*dot = '\0';
	const struct prb_table *table = prb_table_find(name.data, dot + 1);
	if (!table)
		return 0;
	*dot = '.';
	prb_translation_put(t, i, name.data);
	return 1;
}

static size_t translate_here(struct prb_translation *t, size_t i)
{
	static size_t (*const all[])(struct prb_translation *, size_t) = {
		translate_match,       prb_translate_interval,	 prb_translate_timestamp,
		prb_translate_extract, prb_translate_percentile,
	};
	enum prb_token_kind kind = t->tokens.items[i].kind;
	size_t length = 0;

	if (kind == PRB_TOKEN_NAME)
		return translate_table(t, i);
	if (kind != PRB_TOKEN_WORD && kind != PRB_TOKEN_OPERATOR)
		return 0;
	/* schema.interval, x AS interval: a name. */
	if (kind == PRB_TOKEN_WORD && i &&
	    (prb_translation_is(t, i - 1, ".") || prb_translation_is(t, i - 1, "as")))
		return 0;
	for (size_t n = 0; n < PRB_ARRAY_SIZE(all) && !length; n++)
		length = all[n](t, i);
	return length;
}

void prb_translation_write(struct prb_translation *t, size_t from, size_t to)
{
	size_t length;

	t->depth++;
	for (size_t i = from; i < to; i += length) {
		const struct prb_token *token = &t->tokens.items[i];
		size_t cast = t->openings[i];

		if (i > from)
			copy(t, token[-1].end, token->start);
		for (; cast != PRB_NO_TOKEN; cast = t->casts.items[cast].inner)
			prb_translation_put(t, i, t->casts.items[cast].open);
		length = prb_translation_write_cast(t, i);
		if (!length && t->depth < DEPTH_MAX)
			length = translate_here(t, i);
		if (length)
			continue;
		copy(t, token->start, token->end);
		length = 1;
	}
	t->depth--;
}

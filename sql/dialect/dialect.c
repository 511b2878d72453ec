/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sql/dialect/dialect.h"

#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "sql/dialect/dialect_private.h"

/* Longer statements stay as they are. */
enum { TRANSLATED_MAX = 1 << 20 };

void prb_dialect_statement_deinit(struct prb_dialect_statement *statement)
{
	free(statement->translation);
	prb_vec_free(&statement->pieces);
	prb_error_destroy(statement->refusal);
	free(statement->key);
	free(statement->value);
	*statement = (struct prb_dialect_statement){};
}

static void translation_deinit(struct prb_translation *t)
{
	prb_vec_free(&t->tokens);
	prb_vec_free(&t->casts);
	free(t->partners);
	free(t->openings);
	prb_str_deinit(&t->out);
}

/** Finds where the next statement is; start == end if there is none. */
static void find_statement(const char *script, size_t length, size_t at,
			   struct prb_dialect_statement *ret)
{
	bool found = false;

	while (at < length) {
		struct prb_token token = prb_token_at(script, length, at);

		at = token.end;
		if (token.kind == PRB_TOKEN_SEMICOLON) {
			if (found)
				break;
		} else if (!prb_token_is_blank(&token)) {
			if (!found)
				ret->start = token.start;
			ret->end = token.end;
			found = true;
		}
	}
	ret->next = at;
}

static bool read_tokens(struct prb_translation *t)
{
	const struct prb_dialect_statement *statement = t->statement;

	for (size_t at = statement->start; at < statement->end;) {
		struct prb_token token = prb_token_at(t->script, statement->end, at), *pushed;

		at = token.end;
		if (prb_token_is_blank(&token))
			continue;
		pushed = prb_vec_push(&t->tokens);
		if (!pushed)
			return false;
		*pushed = token;
	}
	return true;
}

/** Finds which parentheses belong together, and which CASE and END. */
static bool pair_tokens(struct prb_translation *t)
{
	prb_auto_free size_t *open = calloc(t->tokens.count, sizeof(*open));
	size_t depth = 0, parentheses = 0;

	t->partners = calloc(t->tokens.count, sizeof(*t->partners));
	t->openings = calloc(t->tokens.count, sizeof(*t->openings));
	if (!open || !t->partners || !t->openings)
		return false;
	for (size_t i = 0; i < t->tokens.count; i++) {
		bool closes = false;

		t->partners[i] = t->openings[i] = PRB_NO_TOKEN;
		if (prb_translation_is(t, i, "(")) {
			open[depth++] = i;
			parentheses++;
		} else if (prb_translation_is(t, i, "case")) {
			open[depth++] = i;
		} else if (prb_translation_is(t, i, ")") && parentheses) {
			while (!prb_translation_is(t, open[depth - 1], "("))
				depth--;
			parentheses--;
			closes = true;
		} else if (prb_translation_is(t, i, "end") && depth) {
			closes = prb_translation_is(t, open[depth - 1], "case");
		}
		if (closes) {
			t->partners[i] = open[--depth];
			t->partners[open[depth]] = i;
		}
	}
	return true;
}

/** The value of SET: one string, or anything without blanks and quotes. */
static bool read_setting(struct prb_translation *t, size_t i, struct prb_str *value)
{
	const struct prb_token *first = &t->tokens.items[i], *token;

	if (first->kind == PRB_TOKEN_STRING) {
		prb_translation_value(t, i, value);
		return i + 1 == t->tokens.count;
	}
	for (token = first; token < t->tokens.items + t->tokens.count; token++)
		if (strchr("'\"`[", t->script[token->start]) || token->kind == PRB_TOKEN_BLOB ||
		    (token > first && token[-1].end < token->start))
			return false;
	prb_str_append(value, t->script + first->start, token[-1].end - first->start);
	return true;
}

static void translate_set(struct prb_translation *t)
{
	prb_auto_str struct prb_str key = {}, value = {};
	size_t count = t->tokens.count, i = 1;

	while (i < count && prb_translation_is_name(t, i)) {
		prb_translation_value(t, i++, &key);
		if (!prb_translation_is(t, i, "."))
			break;
		prb_str_putc(&key, '.');
		i++;
	}
	if (i + 1 < count && i > 1 && !prb_translation_is(t, i - 1, ".") &&
	    (prb_translation_is(t, i, "=") || prb_translation_is(t, i, "to")) &&
	    read_setting(t, i + 1, &value)) {
		t->statement->kind = PRB_STATEMENT_SET;
		t->statement->key = prb_str_take(&key);
		t->statement->value = prb_str_take(&value);
		t->no_memory |= !t->statement->key || !t->statement->value;
		return;
	}
	prb_translation_refuse(
		t, PRB_MIN(i, count - 1),
		prb_error_hint(
			prb_error_create(PRB_ERROR_USAGE, "this is not how a setting is set"),
			"for example SET probing.sample_rate = 0.1, or SET key = 'text'"));
}

static struct prb_error *translate(struct prb_translation *t)
{
	if (!read_tokens(t) || !pair_tokens(t))
		return prb_error_nomem();
	if (prb_translation_is(t, 0, "set")) {
		translate_set(t);
	} else if (!prb_translate_show(t)) {
		prb_translation_find_casts(t);
		prb_translation_write(t, 0, t->tokens.count);
	}
	if (t->no_memory || t->out.failed)
		return prb_error_nomem();
	if (!t->changed || t->statement->refusal) {
		prb_vec_free(&t->statement->pieces);
		return NULL;
	}
	t->statement->translation = prb_str_take(&t->out);
	return t->statement->translation ? NULL : prb_error_nomem();
}

struct prb_error *prb_dialect_next(const char *script, size_t length, size_t at,
				   struct prb_dialect_statement *ret)
{
	__attribute__((cleanup(translation_deinit))) struct prb_translation t = {
		.script = script,
		.statement = ret,
	};
	struct prb_error *err;

	*ret = (struct prb_dialect_statement){};
	find_statement(script, length, at, ret);
	/* SQLite would take it for the end. */
	if (ret->next > at && memchr(script + at, '\0', ret->next - at))
		return prb_error_create(PRB_ERROR_USAGE, "the text of the query has a NUL byte");
	if (ret->start == ret->end)
		return NULL;
	ret->kind = PRB_STATEMENT_SQL;
	if (ret->end - ret->start > TRANSLATED_MAX)
		return NULL;
	err = translate(&t);
	if (err)
		prb_dialect_statement_deinit(ret);
	return err;
}

size_t prb_dialect_locate(const struct prb_dialect_statement *statement, size_t offset)
{
	size_t low = 0, high = statement->pieces.count, length = statement->end - statement->start;
	const struct prb_statement_piece *piece;

	if (!statement->translation || !high)
		return statement->start + PRB_MIN(offset, length);
	/* The last piece that begins at or before the offset. */
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (statement->pieces.items[middle].translated <= offset)
			low = middle;
		else
			high = middle;
	}
	piece = &statement->pieces.items[low];
	if (!piece->copied || offset < piece->translated)
		return piece->own;
	return PRB_MIN(piece->own + (offset - piece->translated), statement->end);
}

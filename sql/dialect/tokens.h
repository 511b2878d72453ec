/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Tokenizer for SQL text.
 *
 * Spans follow each other without gaps and end where the text ends, whatever the bytes are: what
 * SQLite would refuse is a span of kind PRB_TOKEN_BAD. Otherwise the borders are those of SQLite's
 * own tokenizer, except that operators which it lacks (:: ~* !~ !~*) are one span each.
 */
#ifndef PRB_SQL_DIALECT_TOKENS_H
#define PRB_SQL_DIALECT_TOKENS_H

#include <stdbool.h>
#include <stddef.h>

enum prb_token_kind {
	PRB_TOKEN_SPACE,
	PRB_TOKEN_COMMENT,   /**< to the end of the line, or between slashes and asterisks */
	PRB_TOKEN_WORD,	     /**< a keyword or a name without quotes */
	PRB_TOKEN_NAME,	     /**< a name in "double quotes", `backticks` or [brackets] */
	PRB_TOKEN_STRING,    /**< 'text' */
	PRB_TOKEN_BLOB,	     /**< x'00ff' */
	PRB_TOKEN_NUMBER,    /**< 12, 0x1f, 1.5e3 */
	PRB_TOKEN_PARAMETER, /**< ?, ?1, :name, @name, $name, #name */
	PRB_TOKEN_OPERATOR,  /**< also brackets, comma and dot */
	PRB_TOKEN_SEMICOLON,
	PRB_TOKEN_BAD, /**< an open quote, a number with letters, a stray byte */
};

/** Bytes [start, end) of the text. */
struct prb_token {
	enum prb_token_kind kind;
	size_t start, end;
};

/** The token at @p at, which is before the end of the text of @p length bytes. */
struct prb_token prb_token_at(const char *text, size_t length, size_t at);

/** True for spaces and comments: what has no meaning. */
bool prb_token_is_blank(const struct prb_token *token);

/** True if the token is exactly @p word, letters' case ignored; not for quoted ones. */
bool prb_token_is(const char *text, const struct prb_token *token, const char *word);

/** True for bytes that names and numbers consist of: a token after one of them needs a space. */
bool prb_token_is_name_byte(char c);

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sql/dialect/tokens.h"

#include <string.h>
#include <strings.h>

#include "base/checked.h"

/** A position in the text; beyond the end there are NULs. */
struct reader {
	const char *text;
	size_t length;
	size_t at;
};

static char peek(const struct reader *r, size_t ahead)
{
	return ahead < r->length - r->at ? r->text[r->at + ahead] : '\0';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/** A vertical tab is a space only among others: so it is in SQLite. */
static bool is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/** Bytes that a name may start with. */
static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
	       (unsigned char)c >= 0x80;
}

bool prb_token_is_name_byte(char c)
{
	return is_letter(c) || is_digit(c) || c == '$';
}

static void skip_while(struct reader *r, bool (*test)(char))
{
	while (r->at < r->length && test(r->text[r->at]))
		r->at++;
}

/** To just after the quote that ends what starts here; a doubled quote stands for itself. */
static bool skip_quoted(struct reader *r, char quote)
{
	for (r->at++; r->at < r->length; r->at++) {
		if (r->text[r->at] == '\0')
			return false;
		if (r->text[r->at] != quote)
			continue;
		r->at++;
		if (quote == ']' || peek(r, 0) != quote)
			return true;
	}
	return false;
}

static enum prb_token_kind read_line_comment(struct reader *r)
{
	while (r->at < r->length && r->text[r->at] != '\n')
		r->at++;
	return PRB_TOKEN_COMMENT;
}

/** An unclosed comment extends to the end, as in SQLite. */
static enum prb_token_kind read_comment(struct reader *r)
{
	r->at += 2;
	while (r->at < r->length && !(r->text[r->at] == '*' && peek(r, 1) == '/'))
		r->at++;
	r->at = PRB_MIN(r->at + 2, r->length);
	return PRB_TOKEN_COMMENT;
}

static enum prb_token_kind read_number(struct reader *r)
{
	if (peek(r, 0) == '0' && (peek(r, 1) == 'x' || peek(r, 1) == 'X') && is_hex(peek(r, 2))) {
		r->at += 2;
		skip_while(r, is_hex);
	} else {
		skip_while(r, is_digit);
		if (peek(r, 0) == '.') {
			r->at++;
			skip_while(r, is_digit);
		}
		size_t sign = peek(r, 1) == '+' || peek(r, 1) == '-';

		if ((peek(r, 0) == 'e' || peek(r, 0) == 'E') && is_digit(peek(r, 1 + sign))) {
			r->at += 1 + sign;
			skip_while(r, is_digit);
		}
	}
	if (!prb_token_is_name_byte(peek(r, 0)))
		return PRB_TOKEN_NUMBER;
	skip_while(r, prb_token_is_name_byte);
	return PRB_TOKEN_BAD;
}

/** $name, also with Tcl's ::parts and (suffix), which SQLite takes. */
static enum prb_token_kind read_parameter(struct reader *r)
{
	size_t start = r->at++, letters = 0;

	for (; r->at < r->length; r->at++) {
		char c = r->text[r->at];

		if (prb_token_is_name_byte(c)) {
			letters++;
		} else if (c == '(' && letters) {
			while (r->at < r->length && !is_space(r->text[r->at]) &&
			       r->text[r->at] != ')' && r->text[r->at])
				r->at++;
			if (peek(r, 0) != ')')
				return PRB_TOKEN_BAD;
			r->at++;
			break;
		} else if (c == ':' && peek(r, 1) == ':') {
			r->at++;
		} else {
			break;
		}
	}
	if (letters)
		return PRB_TOKEN_PARAMETER;
	if (r->at != start + 1 || r->text[start] != ':' || peek(r, 0) != ':')
		return PRB_TOKEN_BAD;
	r->at++;
	return PRB_TOKEN_OPERATOR;
}

static enum prb_token_kind read_word(struct reader *r)
{
	size_t start = r->at + 2;

	if ((peek(r, 0) != 'x' && peek(r, 0) != 'X') || peek(r, 1) != '\'') {
		skip_while(r, prb_token_is_name_byte);
		return PRB_TOKEN_WORD;
	}
	r->at += 2;
	skip_while(r, is_hex);
	if (peek(r, 0) == '\'' && (r->at - start) % 2 == 0) {
		r->at++;
		return PRB_TOKEN_BLOB;
	}
	while (r->at < r->length && r->text[r->at] && r->text[r->at] != '\'')
		r->at++;
	r->at += peek(r, 0) == '\'';
	return PRB_TOKEN_BAD;
}

static enum prb_token_kind read_operator(struct reader *r)
{
	/* The longest first. */
	static const char *const several[] = {
		"!~*", "->>", "!~", "~*", "->", "||", "==", "<=", "<>", "<<", ">=", ">>", "!="};

	for (size_t i = 0; i < PRB_ARRAY_SIZE(several); i++) {
		size_t length = strlen(several[i]);

		if (r->length - r->at >= length && !memcmp(r->text + r->at, several[i], length)) {
			r->at += length;
			return PRB_TOKEN_OPERATOR;
		}
	}
	return r->text[r->at] && strchr("()+-*/%&|~<>=,.", r->text[r->at++]) ? PRB_TOKEN_OPERATOR
									     : PRB_TOKEN_BAD;
}

static enum prb_token_kind read_quoted(struct reader *r, char quote, enum prb_token_kind kind)
{
	return skip_quoted(r, quote) ? kind : PRB_TOKEN_BAD;
}

static enum prb_token_kind read_token(struct reader *r)
{
	char c = peek(r, 0);

	/* A byte order mark is a space to SQLite. */
	if (c == '\xef' && peek(r, 1) == '\xbb' && peek(r, 2) == '\xbf') {
		r->at += 3;
		return PRB_TOKEN_SPACE;
	}
	if (is_space(c) && c != '\v') {
		skip_while(r, is_space);
		return PRB_TOKEN_SPACE;
	}
	if (c == '-' && peek(r, 1) == '-')
		return read_line_comment(r);
	if (c == '/' && peek(r, 1) == '*' && peek(r, 2))
		return read_comment(r);
	if (is_letter(c))
		return read_word(r);
	if (is_digit(c) || (c == '.' && is_digit(peek(r, 1))))
		return read_number(r);

	switch (c) {
	case '\'':
		return read_quoted(r, c, PRB_TOKEN_STRING);
	case '"':
	case '`':
		return read_quoted(r, c, PRB_TOKEN_NAME);
	case '[':
		return read_quoted(r, ']', PRB_TOKEN_NAME);
	case '?':
		r->at++;
		skip_while(r, is_digit);
		return PRB_TOKEN_PARAMETER;
	case ':':
	case '@':
	case '$':
	case '#':
		return read_parameter(r);
	case ';':
		r->at++;
		return PRB_TOKEN_SEMICOLON;
	default:
		return read_operator(r);
	}
}

struct prb_token prb_token_at(const char *text, size_t length, size_t at)
{
	struct reader r = {text, length, at};
	enum prb_token_kind kind = read_token(&r);

	/* Every token advances. */
	return (struct prb_token){kind, at, PRB_MAX(r.at, at + 1)};
}

bool prb_token_is_blank(const struct prb_token *token)
{
	return token->kind == PRB_TOKEN_SPACE || token->kind == PRB_TOKEN_COMMENT;
}

bool prb_token_is(const char *text, const struct prb_token *token, const char *word)
{
	size_t length = token->end - token->start;

	return (token->kind == PRB_TOKEN_WORD || token->kind == PRB_TOKEN_OPERATOR) &&
	       strlen(word) == length && !strncasecmp(text + token->start, word, length);
}

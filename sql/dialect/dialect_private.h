/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Shared by the files of the dialect: a statement as tokens, and the translation being
 * written. Internal to sql/dialect/.
 */
#ifndef PRB_SQL_DIALECT_DIALECT_PRIVATE_H
#define PRB_SQL_DIALECT_DIALECT_PRIVATE_H

#include <stdint.h>

#include "sql/dialect/dialect.h"
#include "sql/dialect/tokens.h"

/** No token. */
#define PRB_NO_TOKEN SIZE_MAX

/** A cast with two colons: CAST( goes in front of one token, the rest in place of others. */
struct prb_cast {
	size_t first;	   /**< the operand's first token */
	size_t colons;	   /**< the token :: */
	size_t end;	   /**< just after the type's last token */
	const char *open;  /**< "CAST(" */
	const char *close; /**< " AS REAL)" */
	size_t inner;	   /**< the next cast that begins with the same token, or PRB_NO_TOKEN */
};

struct prb_translation {
	const char *script;
	/** Without spaces and comments. */
	PRB_VEC(struct prb_token) tokens;
	/** For each parenthesis, CASE and END: the other one, or PRB_NO_TOKEN. */
	size_t *partners;
	PRB_VEC(struct prb_cast) casts;
	/** For each token: the outermost cast that begins with it, or PRB_NO_TOKEN. */
	size_t *openings;

	struct prb_str out;
	size_t written_to; /**< the script's byte just after what was copied last */
	bool changed;
	bool no_memory;
	unsigned depth;
	struct prb_dialect_statement *statement; /**< takes pieces and refusal */
};

/** True if token @p i is there and is this word or operator. */
bool prb_translation_is(const struct prb_translation *t, size_t i, const char *word);

/** True if token @p i is a name, quoted or not. */
bool prb_translation_is_name(const struct prb_translation *t, size_t i);

/** Appends what a quoted or plain name, or a string, stands for. */
void prb_translation_value(const struct prb_translation *t, size_t i, struct prb_str *s);

/** Writes text that stands for what begins with token @p i. */
void prb_translation_put(struct prb_translation *t, size_t i, const char *text);
/** As above, as a string of SQL. */
void prb_translation_put_string(struct prb_translation *t, size_t i, const char *text);
/** Writes tokens [from, to), translated. */
void prb_translation_write(struct prb_translation *t, size_t from, size_t to);

/** Notes why there is no translation: the first reason counts. Takes @p err. */
void prb_translation_refuse(struct prb_translation *t, size_t i, struct prb_error *err);

/* Each of these writes what begins with token @p i, if that is what it knows, and gives the tokens
 * it stands for; otherwise 0. */
size_t prb_translate_interval(struct prb_translation *t, size_t i);
size_t prb_translate_timestamp(struct prb_translation *t, size_t i);
size_t prb_translate_extract(struct prb_translation *t, size_t i);
size_t prb_translate_percentile(struct prb_translation *t, size_t i);

/** True if an operand may end with token @p i, so that what follows takes two operands. */
bool prb_translation_ends_operand(const struct prb_translation *t, size_t i);

/** Finds all casts. */
void prb_translation_find_casts(struct prb_translation *t);
/** Writes the end of the cast whose colons are token @p i; gives its tokens, 0 if there is none. */
size_t prb_translation_write_cast(struct prb_translation *t, size_t i);

/** Translates the whole statement if it is SHOW or DESCRIBE; false if it is neither. */
bool prb_translate_show(struct prb_translation *t);

#endif

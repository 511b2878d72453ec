/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Writing JSON into a string, value by value, commas and escapes being taken care of.
 *
 *     prb_auto_str struct prb_str text = {};
 *     struct prb_json json = {&text};
 *     prb_json_open(&json, NULL, '{');
 *     prb_json_text(&json, "name", "Net.forward");
 *     prb_json_close(&json, '}');
 *
 * Each value has a key, which is escaped as texts are, inside of an object and NULL inside of an
 * array. The text can be written
 * out and cut to nothing at any time. Running out of memory shows in the string (`failed`).
 *
 * The output is plain ASCII on one line: a terminal can show it, whatever the target's names hold.
 */
#ifndef PRB_BASE_JSON_H
#define PRB_BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

struct prb_json {
	struct prb_str *out; /**< borrowed */
	bool comma;	     /**< the next value needs a comma */
};

/** Begins an object '{' or an array '['. */
void prb_json_open(struct prb_json *json, const char *key, char bracket);
/** Ends it: '}' or ']'. */
void prb_json_close(struct prb_json *json, char bracket);

void prb_json_null(struct prb_json *json, const char *key);
void prb_json_bool(struct prb_json *json, const char *key, bool value);
void prb_json_integer(struct prb_json *json, const char *key, int64_t value);

/** A number with @p digits digits after the point; null if it is negative or not finite. */
void prb_json_real(struct prb_json *json, const char *key, double value, int digits);

/** As above, for a number that may be negative. */
void prb_json_signed(struct prb_json *json, const char *key, double value, int digits);

/** An integer, or null if it is negative. */
void prb_json_natural(struct prb_json *json, const char *key, int64_t value);

/**
 * A string; null for NULL. Bytes that are not UTF-8 become \udcXX, as six characters of text,
 * which is what Python's surrogateescape makes of them.
 */
void prb_json_text(struct prb_json *json, const char *key, const char *value);

/** As above, for @p length bytes, which a NUL follows, and which may hold others. */
void prb_json_bytes(struct prb_json *json, const char *key, const char *value, size_t length);

/** Appends @p length bytes, which a NUL follows, as such a string in quotes. */
void prb_json_quote(struct prb_str *s, const char *text, size_t length);

#endif

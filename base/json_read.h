/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Reading JSON, value by value, from text that nobody has checked.
 *
 *     struct prb_json_reader r = {text, text + length};
 *     if (prb_json_enter(&r, '{'))
 *         while (prb_json_member(&r, &key))
 *             if (!strcmp(prb_str_text(&key), "name"))
 *                 prb_json_read_text(&r, &name);
 *             else
 *                 prb_json_skip(&r, NULL);
 *
 * After prb_json_member() or prb_json_item() exactly one function takes the value. What is no JSON
 * sets `failed`, and from then on everything returns false. Nothing recurses, so depth is no
 * danger. Commas too many are ignored, since some writers leave them.
 *
 * Threading: one thread at a time. Ownership: the text is borrowed.
 */
#ifndef PRB_BASE_JSON_READ_H
#define PRB_BASE_JSON_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct prb_json_reader {
	const char *at, *end;
	bool failed;
};

/** A value's text, as it stands there. */
struct prb_json_span {
	const char *text;
	size_t length;
};

/** Begins an object '{' or array '['; another value is skipped, and false. */
bool prb_json_enter(struct prb_json_reader *r, char bracket);
/** Replaces @p key by that of the next member. False at the end of the object, which is passed. */
bool prb_json_member(struct prb_json_reader *r, struct prb_str *key);
/** True if the array has one more value. False at its end, which is passed. */
bool prb_json_item(struct prb_json_reader *r);

/** Replaces @p ret by a string; another value is skipped, and false. */
bool prb_json_read_text(struct prb_json_reader *r, struct prb_str *ret);
/** Passes a value of any kind. @p ret may be NULL. */
bool prb_json_skip(struct prb_json_reader *r, struct prb_json_span *ret);
/**
 * Reads a number, or a string that holds one, times @p scale, a power of ten: 1000 gives
 * thousandths without an error of rounding. False for anything else, and for what does not fit.
 */
bool prb_json_read_scaled(struct prb_json_reader *r, int64_t scale, int64_t *ret);

#endif

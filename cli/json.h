/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Writing JSON piece by piece with jansson.
 */
#ifndef PRB_CLI_JSON_H
#define PRB_CLI_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "dwarf/base/error.h"

/**
 * A JSON string; null for NULL. Bytes that are not UTF-8 become \udcXX, as text, which is what
 * Python's surrogateescape makes of them. NULL when out of memory.
 */
json_t *prb_json_text(const char *text);

/** Writes a value to @p out and ends it; NULL is taken as out of memory. */
struct prb_error *prb_json_write(json_t *value, FILE *out) PRB_MUST_CHECK;

/** The same for the members of an object without the braces around them, to add more by hand. */
struct prb_error *prb_json_write_members(json_t *object, FILE *out) PRB_MUST_CHECK;

#endif

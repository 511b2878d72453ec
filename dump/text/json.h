/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file A dump as JSON, as docs/json.md has it. */
#ifndef PRB_DUMP_TEXT_JSON_H
#define PRB_DUMP_TEXT_JSON_H

#include "dump/model/dump.h"

/** Takes a piece of the text. */
typedef void prb_dump_json_put(void *context, const char *text, size_t length);

/** One object, without a line feed at the end. Of @p options, locals and source tell what was asked
 * for: an empty list means that there are none. */
struct prb_error *prb_dump_json(const struct prb_dump *dump, const struct prb_dump_options *options,
				prb_dump_json_put *put, void *context) PRB_MUST_CHECK;

#endif

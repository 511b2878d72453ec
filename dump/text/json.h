/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file A dump as JSON, as docs/json.md has it. */
#ifndef PRB_DUMP_TEXT_JSON_H
#define PRB_DUMP_TEXT_JSON_H

#include "dump/model/dump.h"

/** Receives a piece of the text. */
typedef void prb_dump_json_put(void *context, const char *text, size_t length);

/**
 * One object, without a line feed at the end. @p options says if locals and source were requested:
 * an empty list then means that there are none.
 */
struct prb_error *prb_dump_json(const struct prb_dump *dump, const struct prb_dump_options *options,
				prb_dump_json_put *put, void *context) PRB_MUST_CHECK;

#endif

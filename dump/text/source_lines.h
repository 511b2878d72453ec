/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Source lines with the running expression underlined.
 */
#ifndef PRB_DUMP_TEXT_SOURCE_LINES_H
#define PRB_DUMP_TEXT_SOURCE_LINES_H

#include "base/str.h"
#include "dump/model/dump.h"

/**
 * Appends the source of @p frame, each line after @p indent spaces instead of its own indentation,
 * and under it ^ below the columns of the expression. Of a long expression the first lines are
 * shown, and the count of the others.
 */
void prb_render_source(struct prb_str *s, const struct prb_dump_frame *frame, size_t indent);

#endif

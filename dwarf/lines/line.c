/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dwarf/lines/line.h"

#include <stdlib.h>

void prb_lines_deinit(struct prb_lines *lines)
{
	struct prb_line *line;

	prb_vec_each (line, &lines->list) {
		free(line->func);
		free(line->symbol);
		free(line->file);
	}
	prb_vec_free(&lines->list);
	lines->trouble = NULL;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/term.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool prb_term_colour(FILE *stream)
{
	const char *no_colour = getenv("NO_COLOR"), *term = getenv("TERM");

	if (no_colour && *no_colour)
		return false;
	return isatty(fileno(stream)) && term && *term && strcmp(term, "dumb") != 0;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/term.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { MAX_SIZE = 10000 };

bool prb_term_colour(FILE *stream)
{
	const char *no_colour = getenv("NO_COLOR"), *term = getenv("TERM");

	if (no_colour && *no_colour)
		return false;
	return isatty(fileno(stream)) && term && *term && strcmp(term, "dumb") != 0;
}

/** The size in that variable, or one that every terminal has. */
static size_t size_of_variable(const char *name, size_t otherwise)
{
	const char *text = getenv(name);
	char *end;
	unsigned long value = text ? strtoul(text, &end, 10) : 0;

	return value > 0 && value <= MAX_SIZE && !*end ? value : otherwise;
}

bool prb_term_size(FILE *stream, size_t *columns, size_t *rows)
{
	struct winsize size = {};

	if (!isatty(fileno(stream)))
		return false;
	/* Serial lines and some containers do not know. */
	ioctl(fileno(stream), TIOCGWINSZ, &size);
	*columns = size.ws_col ? size.ws_col : size_of_variable("COLUMNS", 80);
	*rows = size.ws_row ? size.ws_row : size_of_variable("LINES", 24);
	return true;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "command/term.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { MAX_SIZE = 10000 };

/** "80x24", maybe with words, if the stream is passed on to a terminal elsewhere; else NULL. */
static const char *remote_terminal(FILE *stream)
{
	const char *text = getenv(PRB_TERM_REMOTE);

	return stream == stdout && text && *text ? text : NULL;
}

void prb_term_remote_text(size_t columns, size_t rows, bool colour, bool both,
			  char ret[PRB_TERM_REMOTE_SIZE])
{
	snprintf(ret, PRB_TERM_REMOTE_SIZE, "%zux%zu%s%s", columns, rows, colour ? " colour" : "",
		 both ? " both" : "");
}

bool prb_term_is(FILE *stream)
{
	const char *remote = remote_terminal(stdout);

	if (remote && (stream == stdout || strstr(remote, " both")))
		return true;
	return isatty(fileno(stream));
}

bool prb_term_colour(FILE *stream)
{
	const char *no_colour = getenv("NO_COLOR"), *term = getenv("TERM");

	if (remote_terminal(stream))
		return strstr(remote_terminal(stream), "colour");
	if (no_colour && *no_colour)
		return false;
	return isatty(fileno(stream)) && term && *term && strcmp(term, "dumb") != 0;
}

/** A number that a terminal may have as its size, or one that every terminal has. */
static size_t size_in(const char *text, const char *ends, size_t otherwise)
{
	char *end;
	unsigned long value = text ? strtoul(text, &end, 10) : 0;

	return value > 0 && value <= MAX_SIZE && strchr(ends, *end) ? value : otherwise;
}

bool prb_term_size(FILE *stream, size_t *columns, size_t *rows)
{
	const char *remote = remote_terminal(stream);
	struct winsize size = {};

	if (remote) {
		const char *cross = strchr(remote, 'x');

		*columns = size_in(remote, "x", 80);
		*rows = size_in(cross ? cross + 1 : NULL, " ", 24);
		return true;
	}
	if (!isatty(fileno(stream)))
		return false;
	/* Serial lines and some containers do not know. */
	ioctl(fileno(stream), TIOCGWINSZ, &size);
	*columns = size.ws_col ? size.ws_col : size_in(getenv("COLUMNS"), "", 80);
	*rows = size.ws_row ? size.ws_row : size_in(getenv("LINES"), "", 24);
	return true;
}

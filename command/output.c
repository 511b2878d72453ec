/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "command/output.h"

#include <errno.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "command/term.h"

static FILE *other; /* in place of stdout, or NULL */

void prb_output_aside(void)
{
	other = stderr;
}

static FILE *place(void)
{
	return other ? other : stdout;
}

static struct prb_error *cannot_write(void)
{
	return prb_error_os(errno ? errno : EIO, "cannot write the output");
}

struct prb_error *prb_output_bytes(const char *text, size_t length)
{
	errno = 0;
	return fwrite(text, 1, length, place()) == length ? NULL : cannot_write();
}

struct prb_error *prb_output(const struct prb_str *text)
{
	if (text->failed)
		return prb_error_nomem();
	PRB_TRY(prb_output_bytes(prb_str_text(text), text->length));
	return prb_output_flush();
}

struct prb_error *prb_output_lines(const struct prb_str *text, bool for_programs)
{
	prb_auto_str struct prb_str fitting = {};
	size_t columns, rows;

	if (for_programs || text->failed || !prb_term_size(place(), &columns, &rows))
		return prb_output(text);
	prb_text_fit(&fitting, prb_str_text(text), columns);
	return prb_output(&fitting);
}

struct prb_error *prb_output_flush(void)
{
	errno = 0;
	return fflush(place()) || ferror(place()) ? cannot_write() : NULL;
}

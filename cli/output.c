/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/output.h"

#include <errno.h>
#include <stdio.h>

struct prb_error *prb_output(const struct prb_str *text)
{
	if (text->failed)
		return prb_error_nomem();
	fwrite(prb_str_text(text), 1, text->length, stdout);
	return prb_output_flush();
}

struct prb_error *prb_output_flush(void)
{
	errno = 0;
	if (fflush(stdout) || ferror(stdout))
		return prb_error_os(errno ? errno : EIO, "cannot write the output");
	return NULL;
}

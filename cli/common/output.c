/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/common/output.h"

#include <errno.h>
#include <stdio.h>

#include "base/cleanup.h"

static struct prb_error *cannot_write(void)
{
	return prb_error_os(errno ? errno : EIO, "cannot write the output");
}

struct prb_error *prb_output_bytes(const char *text, size_t length)
{
	errno = 0;
	return fwrite(text, 1, length, stdout) == length ? NULL : cannot_write();
}

struct prb_error *prb_output(const struct prb_str *text)
{
	if (text->failed)
		return prb_error_nomem();
	PRB_TRY(prb_output_bytes(prb_str_text(text), text->length));
	return prb_output_flush();
}

struct prb_error *prb_output_flush(void)
{
	errno = 0;
	return fflush(stdout) || ferror(stdout) ? cannot_write() : NULL;
}

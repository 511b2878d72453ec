/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/conflict.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/cleanup.h"

struct prb_error *prb_conflict_create(const char *format, ...)
{
	prb_auto_free char *message = NULL;
	va_list args;
	int length;

	va_start(args, format);
	length = vasprintf(&message, format, args);
	va_end(args);
	if (length < 0) {
		message = NULL;
		return prb_error_nomem();
	}
	return prb_conflict_mark(prb_error_create(PRB_ERROR_OS, "%s", message));
}

struct prb_error *prb_conflict_mark(struct prb_error *err)
{
	/* Out of memory is one static error, which stays as it is. */
	if (err && err->code != PRB_ERROR_NOMEM)
		err->os_errno = EBUSY;
	return err;
}

bool prb_conflict_is(const struct prb_error *err)
{
	return err && err->os_errno == EBUSY;
}

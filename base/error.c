/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct prb_error nomem = {
	.code = PRB_ERROR_NOMEM,
	.os_errno = ENOMEM,
	.message = (char *)"out of memory",
};

static struct prb_error *create(enum prb_error_code code, const char *format, va_list args)
{
	struct prb_error *err = calloc(1, sizeof(*err));

	if (!err)
		return &nomem;
	err->code = code;
	if (vasprintf(&err->message, format, args) < 0) {
		free(err);
		return &nomem;
	}
	return err;
}

struct prb_error *prb_error_create(enum prb_error_code code, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	struct prb_error *err = create(code, format, args);
	va_end(args);
	return err;
}

static enum prb_error_code code_of_errno(int os_errno)
{
	switch (os_errno) {
	case ESRCH:
		return PRB_ERROR_NO_PROCESS;
	case EPERM:
	case EACCES:
		return PRB_ERROR_PERMISSION;
	case ENOMEM:
		return PRB_ERROR_NOMEM;
	default:
		return PRB_ERROR_OS;
	}
}

struct prb_error *prb_error_os(int os_errno, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	struct prb_error *err = create(code_of_errno(os_errno), format, args);
	va_end(args);
	if (err == &nomem)
		return err;
	err->os_errno = os_errno;

	char *message;
	if (asprintf(&message, "%s: %s", err->message, strerror(os_errno)) >= 0) {
		free(err->message);
		err->message = message;
	}
	return err;
}

struct prb_error *prb_error_fault(uint64_t address, uint64_t length)
{
	struct prb_error *err =
		prb_error_create(PRB_ERROR_FAULT, "cannot read %llu bytes at %#llx in the target",
				 (unsigned long long)length, (unsigned long long)address);

	if (err != &nomem)
		err->address = address;
	return err;
}

struct prb_error *prb_error_nomem(void)
{
	return &nomem;
}

struct prb_error *prb_error_prefix(struct prb_error *err, const char *format, ...)
{
	if (!err || err == &nomem)
		return err;

	char *context, *message;
	va_list args;

	va_start(args, format);
	int rc = vasprintf(&context, format, args);
	va_end(args);
	if (rc < 0)
		return err;
	if (asprintf(&message, "%s: %s", context, err->message) >= 0) {
		free(err->message);
		err->message = message;
	}
	free(context);
	return err;
}

struct prb_error *prb_error_hint(struct prb_error *err, const char *format, ...)
{
	if (!err || err == &nomem)
		return err;

	char *hint;
	va_list args;

	va_start(args, format);
	int rc = vasprintf(&hint, format, args);
	va_end(args);
	if (rc >= 0) {
		free(err->hint);
		err->hint = hint;
	}
	return err;
}

struct prb_error *prb_error_copy(const struct prb_error *err)
{
	struct prb_error *copy = err ? prb_error_create(err->code, "%s", err->message) : NULL;

	return err && err->hint ? prb_error_hint(copy, "%s", err->hint) : copy;
}

void prb_error_destroy(struct prb_error *err)
{
	if (!err || err == &nomem)
		return;
	free(err->message);
	free(err->hint);
	free(err);
}

struct prb_error *prb_error_tolerate(struct prb_error *err, bool *failed)
{
	if (!err || err->code == PRB_ERROR_NOMEM)
		return err;
	if (failed)
		*failed = true;
	prb_error_destroy(err);
	return NULL;
}

bool prb_error_catch(struct prb_error **err, enum prb_error_code code)
{
	if (!*err || (*err)->code != code)
		return false;
	prb_error_destroy(*err);
	*err = NULL;
	return true;
}

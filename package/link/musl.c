/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The few functions of glibc that musl lacks and libprobing.so calls, for the wheel that is
 * installed on musl: the library and all that is linked into it were compiled with glibc's headers,
 * whose structures and constants are musl's for everything else that it calls. A test looks at what
 * is left undefined.
 *
 * The variants that check lengths end the process, as glibc's do. Threading and errors: those of
 * the functions that are named.
 */
#undef _FORTIFY_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HIDDEN __attribute__((visibility("hidden")))

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

static size_t fits(size_t length, size_t room)
{
	if (length > room)
		abort();
	return length;
}

HIDDEN int __fprintf_chk(FILE *stream, int flag, const char *format, ...)
{
	va_list list;
	int ret;

	(void)flag;
	va_start(list, format);
	ret = vfprintf(stream, format, list);
	va_end(list);
	return ret;
}

HIDDEN int __printf_chk(int flag, const char *format, ...)
{
	va_list list;
	int ret;

	(void)flag;
	va_start(list, format);
	ret = vprintf(format, list);
	va_end(list);
	return ret;
}

HIDDEN int __snprintf_chk(char *to, size_t most, int flag, size_t room, const char *format, ...)
{
	va_list list;
	int ret;

	(void)flag;
	va_start(list, format);
	ret = vsnprintf(to, fits(most, room), format, list);
	va_end(list);
	return ret;
}

HIDDEN int __sprintf_chk(char *to, int flag, size_t room, const char *format, ...)
{
	va_list list;
	int ret;

	(void)flag;
	va_start(list, format);
	ret = vsnprintf(to, room, format, list);
	va_end(list);
	if (ret >= 0)
		fits((size_t)ret + 1, room);
	return ret;
}

HIDDEN void *__memcpy_chk(void *to, const void *from, size_t length, size_t room)
{
	return memcpy(to, from, fits(length, room));
}

HIDDEN void *__memset_chk(void *to, int byte, size_t length, size_t room)
{
	return memset(to, byte, fits(length, room));
}

HIDDEN char *__strcpy_chk(char *to, const char *from, size_t room)
{
	return memcpy(to, from, fits(strlen(from) + 1, room));
}

HIDDEN char *__realpath_chk(const char *path, char *ret, size_t room)
{
	fits(PATH_MAX, room);
	return realpath(path, ret);
}

HIDDEN int fcntl64(int fd, int command, ...)
{
	va_list list;
	long argument;

	va_start(list, command);
	argument = va_arg(list, long);
	va_end(list);
	return (int)syscall(SYS_fcntl, fd, command, argument);
}

HIDDEN int renameat2(int old_folder, const char *old, int folder, const char *path,
		     unsigned int flags)
{
	return (int)syscall(SYS_renameat2, old_folder, old, folder, path, flags);
}

/* Only for RTLD_DL_LINKMAP: musl's handle of a library begins as a struct link_map does. */
HIDDEN int dladdr1(const void *address, Dl_info *info, void **extra, int flags)
{
	void *handle;

	(void)flags;
	if (!dladdr(address, info))
		return 0;
	handle = dlopen(info->dli_fname, RTLD_LAZY | RTLD_NOLOAD);
	*extra = handle;
	if (handle)
		dlclose(handle);
	return handle != NULL;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * For LD_PRELOAD into the command: the kernel as it is with proc_mem.force_override=never, by which
 * nobody writes through /proc/PID/mem where the process itself could not.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

/* Is it memory that may only be read? */
static int is_protected(int fd, off_t offset)
{
	char link[64], path[64] = "", line[512], mode[5];
	unsigned long start, end;
	int found = 0;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ssize_t length = readlink(link, path, sizeof(path) - 1);
	if (length < 4 || strncmp(path, "/proc/", 6) || strcmp(path + length - 4, "/mem"))
		return 0;
	strcpy(path + length - 3, "maps");

	FILE *file = fopen(path, "r");
	while (file && !found && fgets(line, sizeof(line), file))
		found = sscanf(line, "%lx-%lx %4s", &start, &end, mode) == 3 &&
			(unsigned long)offset >= start && (unsigned long)offset < end &&
			mode[1] != 'w';
	if (file)
		fclose(file);
	return found;
}

ssize_t pwrite64(int fd, const void *data, size_t size, off_t offset)
{
	static ssize_t (*original)(int, const void *, size_t, off_t);

	if (!original)
		original =
			(ssize_t(*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, "pwrite64");
	if (!is_protected(fd, offset))
		return original(fd, data, size, offset);
	errno = EIO;
	return -1;
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t offset)
{
	return pwrite64(fd, data, size, offset);
}

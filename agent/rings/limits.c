/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/rings/limits.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/inside/config.h"
#include "agent/inside/libc.h"
#include "agent/inside/status.h"
#include "agent/ring.h"

enum { MAX_LEFT = 256, NAME = 48, SECONDS_OF_DAY = 86400 };

struct left {
	char name[NAME];
	int64_t time; /* last change of a ring, seconds since the epoch */
	uint64_t bytes;
};

static struct left left[MAX_LEFT];
static unsigned left_count;

int prba_ring_check_memory(uint64_t used, uint64_t more)
{
	return (double)used + (double)more > prba_config_number(PRB_CONFIG_MAX_MEMORY) ? -EDQUOT
										       : 0;
}

uint64_t prba_ring_namespace(void)
{
	struct stat st;

	return syscall(SYS_newfstatat, AT_FDCWD, "/proc/self/ns/pid", &st, 0) ? 0
									      : (uint64_t)st.st_ino;
}

/** PID-STARTTIME of a process that runs. */
static bool is_alive(unsigned long pid, unsigned long long start)
{
	char path[32], text[1024];
	const char *at;

	snprintf(path, sizeof(path), "/proc/%lu/stat", pid);
	prba_status_text(path, text, sizeof(text));
	at = strrchr(text, ')');
	for (int i = 0; at && i < 20; i++)
		at = strchr(at + 1, ' ');
	return at && strtoull(at + 1, NULL, 10) == start;
}

/** True for a ring, or for its copy by 'probing record', whose name begins like the ring's. */
static bool is_ring(const char *name)
{
	size_t length = strlen(name);

	return length > 5 &&
	       (!strcmp(name + length - 5, ".ring") || !strcmp(name + length - 5, ".cold"));
}

static DIR *open_below(int at, const char *name)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);

	if (fd >= 0 && !folder)
		close(fd);
	return folder;
}

/** False if the ring is of a process that cannot be seen from here. */
static bool is_of_here(int folder, const char *name)
{
	int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct prb_ring_header header = {};
	bool good = fd >= 0 && read(fd, &header, sizeof(header)) == (ssize_t)sizeof(header);

	if (fd >= 0)
		close(fd);
	return good && header.pid_namespace == prba_ring_namespace();
}

/** Adds the folder to `left` if all that is in it is of an ended process of here. */
static void look_at(int base, const char *name)
{
	char *end;
	unsigned long pid = strtoul(name, &end, 10);
	unsigned long long start = *end == '-' ? strtoull(end + 1, &end, 10) : 0;
	struct left *entry = &left[left_count];
	struct dirent *file;
	bool good = true;
	DIR *folder;

	if (*end || !pid || !start || strlen(name) >= NAME || is_alive(pid, start))
		return;
	folder = open_below(base, name);
	*entry = (struct left){};
	memcpy(entry->name, name, strlen(name) + 1);
	while (good && folder && (file = readdir(folder))) {
		struct stat st;

		if (!is_ring(file->d_name))
			continue;
		good = is_of_here(dirfd(folder), file->d_name) &&
		       !syscall(SYS_newfstatat, dirfd(folder), file->d_name, &st,
				AT_SYMLINK_NOFOLLOW);
		if (good && st.st_mtime > entry->time)
			entry->time = st.st_mtime;
		entry->bytes += good ? (uint64_t)st.st_blocks * 512 : 0;
	}
	if (folder)
		closedir(folder);
	left_count += good && entry->bytes;
}

static void remove_folder(int base, const char *name)
{
	DIR *folder = open_below(base, name);
	struct dirent *file;

	while (folder && (file = readdir(folder)))
		if (is_ring(file->d_name) || !strncmp(file->d_name, ".new-", 5))
			unlinkat(dirfd(folder), file->d_name, 0);
	if (folder)
		closedir(folder);
	unlinkat(base, name, AT_REMOVEDIR);
}

static void remove_old(int base, double oldest)
{
	for (unsigned i = 0; i < left_count; i++) {
		if ((double)left[i].time > oldest)
			continue;
		remove_folder(base, left[i].name);
		left[i--] = left[--left_count];
	}
}

/** The oldest go until the others take no more than @p most bytes. */
static void remove_largest(int base, double most)
{
	double sum = 0;

	for (unsigned i = 0; i < left_count; i++)
		sum += (double)left[i].bytes;
	while (left_count && sum > most) {
		unsigned oldest = 0;

		for (unsigned i = 1; i < left_count; i++)
			if (left[i].time < left[oldest].time)
				oldest = i;
		remove_folder(base, left[oldest].name);
		sum -= (double)left[oldest].bytes;
		left[oldest] = left[--left_count];
	}
}

void prba_ring_sweep(int base)
{
	DIR *folder = open_below(base, ".");
	struct dirent *entry;
	double days = prba_config_number(PRB_CONFIG_RETENTION_DAYS);

	left_count = 0;
	while (folder && left_count < MAX_LEFT && (entry = readdir(folder)))
		if (*entry->d_name >= '1' && *entry->d_name <= '9')
			look_at(base, entry->d_name);
	if (folder)
		closedir(folder);
	remove_old(base, (double)time(NULL) - days * SECONDS_OF_DAY);
	remove_largest(base, prba_config_number(PRB_CONFIG_MAX_MEMORY));
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dwarf/elf/confine.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "target/proc/rights.h"

/** Only root and our user can add to the folder, or take something out of it. */
static bool is_folder_closed(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode) && (!st.st_uid || st.st_uid == geteuid()) &&
	       !(st.st_mode & S_IWOTH) && (!(st.st_mode & S_IWGRP) || st.st_gid == st.st_uid);
}

/** Where the kernel says that the file lies, all folders above are closed to others. */
static bool is_place_closed(int fd)
{
	char link[32], path[PATH_MAX];
	struct stat st, named;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);

	ssize_t length = readlink(link, path, sizeof(path) - 1);
	if (length <= 0 || path[0] != '/')
		return false;
	path[length] = '\0';
	if (fstat(fd, &st) || lstat(path, &named) || named.st_dev != st.st_dev ||
	    named.st_ino != st.st_ino)
		return false;
	for (char *slash; (slash = strrchr(path, '/')) != path;) {
		*slash = '\0';
		if (!is_folder_closed(path))
			return false;
	}
	return is_folder_closed("/");
}

bool prb_elf_must_confine(const struct prb_elf *elf)
{
	if (!prb_rights_are_special())
		return false;
	return prb_elf_fd(elf) < 0 || !prb_elf_is_safe(elf) || !is_place_closed(prb_elf_fd(elf));
}

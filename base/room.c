/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/room.h"

#include <sys/statvfs.h>

#include "base/checked.h"

uint64_t prb_room(int fd)
{
	const uint64_t most = 1 << 30;
	struct statvfs fs;

	if (fstatvfs(fd, &fs) || !fs.f_blocks)
		return UINT64_MAX;

	const uint64_t margin = PRB_MIN((uint64_t)fs.f_blocks * fs.f_frsize / 20, most);
	const uint64_t left = (uint64_t)fs.f_bavail * fs.f_frsize;

	return left > margin ? left - margin : 0;
}

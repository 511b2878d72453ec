/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dwarf/elf/copy.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"

enum { CHUNK = 16 << 10 };

/* A sparse file may claim any size. Debug information that is used has up to some gigabytes. */
static const uint64_t MAX_SIZE = 64ULL << 30, MAX_COPIED = 2ULL << 30;

struct prb_error *prb_copy_init(int fd, const char *name, struct prb_copy *ret)
{
	struct stat st;

	*ret = (struct prb_copy){.fd = fd};
	if (fstat(fd, &st))
		return prb_error_os(errno, "cannot read %s", name);
	ret->size = (uint64_t)st.st_size;
	if (!S_ISREG(st.st_mode) || !st.st_size)
		return prb_error_create(PRB_ERROR_UNSUPPORTED, "%s: not an ELF file", name);
	if (ret->size > MAX_SIZE)
		return prb_error_create(PRB_ERROR_UNSUPPORTED, "%s is too large (%llu bytes)", name,
					(unsigned long long)ret->size);

	void *room = mmap(NULL, ret->size, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (room == MAP_FAILED)
		return prb_error_create(PRB_ERROR_UNSUPPORTED,
					"%s: no room in memory for its %llu bytes", name,
					(unsigned long long)ret->size);
	madvise(room, ret->size, MADV_NOHUGEPAGE);
	ret->room = room;
	ret->have = calloc(ret->size / CHUNK + 1, 1);
	if (ret->have)
		return NULL;
	prb_copy_deinit(ret);
	return prb_error_nomem();
}

void prb_copy_deinit(struct prb_copy *copy)
{
	if (copy->room)
		munmap(copy->room, copy->size);
	free(copy->have);
	*copy = (struct prb_copy){.fd = -1};
}

static bool read_part(struct prb_copy *copy, uint64_t offset, uint64_t length)
{
	while (length) {
		ssize_t n = pread(copy->fd, copy->room + offset, length, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		offset += (uint64_t)n;
		length -= (uint64_t)n;
	}
	return true;
}

bool prb_copy_need(struct prb_copy *copy, uint64_t offset, uint64_t length)
{
	if (!length)
		return true;
	for (uint64_t chunk = offset / CHUNK, end = (offset + length - 1) / CHUNK + 1, next;
	     chunk < end; chunk = next) {
		for (next = chunk; next < end && copy->have[next] == copy->have[chunk]; next++)
			;
		if (copy->have[chunk])
			continue;
		uint64_t from = chunk * CHUNK, to = PRB_MIN(next * CHUNK, copy->size);

		if (to - from > MAX_COPIED - copy->copied || !read_part(copy, from, to - from))
			return false;
		copy->copied += to - from;
		for (uint64_t i = chunk; i < next; i++)
			copy->have[i] = 1;
	}
	return true;
}

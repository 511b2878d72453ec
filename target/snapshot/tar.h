/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file The header of a member of a tar archive (POSIX ustar), for what bundles need of it. */
#ifndef PRB_TARGET_SNAPSHOT_TAR_H
#define PRB_TARGET_SNAPSHOT_TAR_H

enum { TAR_BLOCK = 512 };

struct tar_header {
	char name[100];
	char mode[8], uid[8], gid[8];
	char size[12], mtime[12];
	char checksum[8];
	char type;
	char link[100];
	char magic[6], version[2];
	char owner[32], group[32];
	char major[8], minor[8];
	char prefix[155];
	char padding[12];
};
_Static_assert(sizeof(struct tar_header) == TAR_BLOCK, "the header is one block");

/** The sum of all bytes, with blanks in place of the checksum. */
static inline unsigned tar_checksum(const struct tar_header *header)
{
	const unsigned char *bytes = (const unsigned char *)header;
	unsigned sum = 0;

	for (unsigned i = 0; i < TAR_BLOCK; i++)
		sum += i >= 148 && i < 156 ? ' ' : bytes[i];
	return sum;
}

#endif

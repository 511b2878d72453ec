/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "rings/claim.h"

#include <fcntl.h>
#include <unistd.h>

static struct flock lock_of(short type, uint64_t purpose)
{
	return (struct flock){
		.l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)(purpose >> 2), .l_len = 1};
}

bool prb_ring_is_claimed(int fd, uint64_t purpose)
{
	struct flock lock = lock_of(F_WRLCK, purpose);

	return !fcntl(fd, F_OFD_GETLK, &lock) && lock.l_type != F_UNLCK;
}

bool prb_ring_claim(int fd, uint64_t purpose)
{
	struct flock lock = lock_of(F_RDLCK, purpose), none = lock_of(F_UNLCK, purpose);

	if (prb_ring_is_claimed(fd, purpose))
		return false;
	fcntl(fd, F_OFD_SETLK, &lock);
	/* Two may have begun at once. */
	if (!prb_ring_is_claimed(fd, purpose))
		return true;
	fcntl(fd, F_OFD_SETLK, &none);
	return false;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file How much may be written to a disk that others need, too. */
#ifndef PRB_BASE_ROOM_H
#define PRB_BASE_ROOM_H

#include <stdint.h>

/**
 * Bytes that may be written to the file system of @p fd: what is free without a twentieth of it
 * all, which is 1 GiB at most and stays free. UINT64_MAX if it does not report its size.
 */
uint64_t prb_room(int fd);

#endif

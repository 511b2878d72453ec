/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Finds which agent's library is in use, if a process has those of several builds mapped.
 *
 * Threading: one thread at a time for one target. Hints for people: the target could feign them.
 */
#ifndef PRB_CONTROL_SERVING_H
#define PRB_CONTROL_SERVING_H

#include "target/target.h"

/** A mapped file. Its end is prb_serving_deinit(). */
struct prb_serving {
	char *path; /**< NULL: not known */
	uint64_t inode;
	uint32_t major, minor;
};

/** *ret->path stays NULL if the process has no such library, or several and no
 * thread's stack shows which. Stops no thread. */
void prb_serving_find(struct prb_target *t, struct prb_serving *ret);

/**
 * The path of that library if it is mapped now, or where it is not known, of any library of an
 * agent; NULL if there is none. The caller's to free.
 */
char *prb_serving_mapped(struct prb_target *t, const struct prb_serving *library);

void prb_serving_deinit(struct prb_serving *library);

#endif

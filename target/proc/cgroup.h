/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The text of /proc/PID/cgroup: in which control groups a process is.
 *
 * Threading: any thread; nothing here keeps state.
 */
#ifndef PRB_TARGET_PROC_CGROUP_H
#define PRB_TARGET_PROC_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

/** One line; the texts are not terminated. */
struct prb_cgroup {
	int hierarchy; /**< its number; 0 for version 2 */
	const char *controllers, *path;
	size_t controllers_length, path_length;
};

/** Takes the next line of *text apart, which moves behind it; false at the end. */
bool prb_cgroup_next(const char **text, struct prb_cgroup *ret);

/**
 * Appends the id of the container that the paths name: 64 hex digits as Docker, containerd, CRI-O
 * and Podman give, or the name of an LXC container. Nothing if they name none, which is also so
 * when seen from inside of the container.
 */
void prb_cgroup_container(const char *text, struct prb_str *ret);

/**
 * Reads the file @p file ("memory.max") of @p group on this machine. @p mounts is the text of
 * /proc/self/mountinfo. False if it is not there: the root group has none, and a group outside of
 * what our namespace shows cannot be named.
 */
bool prb_cgroup_file(const char *mounts, const struct prb_cgroup *group, const char *file,
		     struct prb_str *ret);

/** Appends the text of /proc/self/mountinfo, up to a megabyte of it; false if it cannot be read. */
bool prb_cgroup_mounts(struct prb_str *ret);

/**
 * Appends a file of the control group that a process with this text is in itself: @p two of version
 * 2, or @p one of the hierarchy of version 1 that has @p controller. False if there is none.
 * @p mounts: as for prb_cgroup_file().
 */
bool prb_cgroup_own_file(const char *mounts, const char *text, const char *controller,
			 const char *two, const char *one, struct prb_str *ret);

/**
 * The memory limit that a process with this text is under, and what its control group uses of it,
 * in bytes: of the group with the least room, since each limit holds for all groups below. Both -1
 * if there is none.
 */
void prb_cgroup_memory(const char *text, int64_t *ret_limit, int64_t *ret_used);

#endif

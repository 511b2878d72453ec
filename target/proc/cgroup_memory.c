/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The memory limit of a process's control groups. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "target/proc/cgroup.h"

static int64_t number_of(const char *mounts, const struct prb_cgroup *group, const char *file)
{
	/* Version 1 says "no limit" with the largest number of whole pages. */
	const long long none = INT64_MAX / 65536 * 65536 - 65536;
	prb_auto_str struct prb_str text = {};
	char *end;

	if (!prb_cgroup_file(mounts, group, file, &text))
		return -1;

	long long value = strtoll(prb_str_text(&text), &end, 10);

	return end != prb_str_text(&text) && value >= 0 && value < none ? value : -1;
}

/** Each group's limit holds for all below it: the one with the least room counts. */
static void read_group(const char *mounts, struct prb_cgroup *group, int64_t *ret_limit,
		       int64_t *ret_used)
{
	bool two = !group->hierarchy;

	while (group->path_length) {
		int64_t limit =
			number_of(mounts, group, two ? "memory.max" : "memory.limit_in_bytes");
		int64_t used =
			number_of(mounts, group, two ? "memory.current" : "memory.usage_in_bytes");

		if (limit >= 0 && used >= 0 &&
		    (*ret_limit < 0 || limit - used < *ret_limit - *ret_used)) {
			*ret_limit = limit;
			*ret_used = used;
		}
		if (group->path_length == 1)
			return;
		while (group->path_length && group->path[group->path_length - 1] != '/')
			group->path_length--;
		group->path_length -= group->path_length > 1;
	}
}

void prb_cgroup_memory(const char *text, int64_t *ret_limit, int64_t *ret_used)
{
	prb_auto_str struct prb_str mounts = {};
	struct prb_cgroup group;

	*ret_limit = *ret_used = -1;
	if (!prb_cgroup_mounts(&mounts))
		return;
	while (prb_cgroup_next(&text, &group))
		if (!group.hierarchy ||
		    memmem(group.controllers, group.controllers_length, "memory", strlen("memory")))
			read_group(prb_str_text(&mounts), &group, ret_limit, ret_used);
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the kernel says of a process's memory, and of the limit of its control groups. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "memory/memory.h"
#include "proc/cgroup.h"

/** The number behind "NAME:" in kB, as bytes; -1 if there is none. */
static int64_t find(const char *text, const char *name)
{
	size_t length = strlen(name);

	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n')
		if (!strncmp(line, name, length) && line[length] == ':')
			return strtoll(line + length + 1, NULL, 10) * 1024;
	return -1;
}

static void read_status(struct prb_target *target, struct prb_memory_process *p)
{
	prb_auto_str struct prb_str text = {};
	prb_auto_error struct prb_error *err = prb_target_read_file(target, &text, "status");

	if (err)
		return;
	p->rss = find(prb_str_text(&text), "VmRSS");
	p->peak = find(prb_str_text(&text), "VmHWM");
	p->anonymous = find(prb_str_text(&text), "RssAnon");
	p->file = find(prb_str_text(&text), "RssFile");
	p->shared = find(prb_str_text(&text), "RssShmem");
	p->swap = find(prb_str_text(&text), "VmSwap");
	p->told = p->rss >= 0;
}

static void read_rollup(struct prb_target *target, struct prb_memory_process *p)
{
	prb_auto_str struct prb_str text = {};
	prb_auto_error struct prb_error *err = prb_target_read_file(target, &text, "smaps_rollup");

	if (err)
		return;
	p->pss = find(prb_str_text(&text), "Pss");
	p->huge = find(prb_str_text(&text), "AnonHugePages");
}

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
static void read_group(const char *mounts, struct prb_cgroup *group, struct prb_memory_process *p)
{
	bool two = !group->hierarchy;

	while (group->path_length) {
		int64_t limit =
			number_of(mounts, group, two ? "memory.max" : "memory.limit_in_bytes");
		int64_t used =
			number_of(mounts, group, two ? "memory.current" : "memory.usage_in_bytes");

		if (limit >= 0 && used >= 0 &&
		    (p->limit < 0 || limit - used < p->limit - p->used)) {
			p->limit = limit;
			p->used = used;
		}
		if (group->path_length == 1)
			return;
		while (group->path_length && group->path[group->path_length - 1] != '/')
			group->path_length--;
		group->path_length -= group->path_length > 1;
	}
}

static void read_groups(struct prb_target *target, struct prb_memory_process *p)
{
	enum { MOUNTS_MAX = 1 << 20 };
	prb_auto_str struct prb_str text = {};
	prb_auto_error struct prb_error *err = prb_target_read_file(target, &text, "cgroup");
	prb_auto_close int fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	prb_auto_free char *mounts = malloc(MOUNTS_MAX + 1);
	size_t length = 0;
	struct prb_cgroup group;
	ssize_t n;

	if (err || fd < 0 || !mounts)
		return;
	while (length < MOUNTS_MAX && (n = read(fd, mounts + length, MOUNTS_MAX - length)) > 0)
		length += (size_t)n;
	mounts[length] = '\0';
	for (const char *at = prb_str_text(&text); prb_cgroup_next(&at, &group);)
		if (!group.hierarchy ||
		    memmem(group.controllers, group.controllers_length, "memory", strlen("memory")))
			read_group(mounts, &group, p);
}

void prb_memory_read_process(struct prb_target *target, struct prb_memory_process *ret)
{
	*ret = (struct prb_memory_process){-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, false};
	read_status(target, ret);
	read_rollup(target, ret);
	if (target->local && target->live)
		read_groups(target, ret);
}

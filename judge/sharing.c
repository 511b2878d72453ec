/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "judge/sharing.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "target/proc/process.h"
#include "target/proc/text.h"

enum { MOST_RELATIVES = 256 };

/* A file, or anonymous memory that is shared, which has a number of a file, too. */
struct file {
	char device[16];
	unsigned long long inode;
};

/** The next mapping of a text of /proc/PID/maps; false at the end. */
static bool next(const char **at, uint64_t *start, uint64_t *end, struct file *ret)
{
	int got = sscanf(*at, "%" SCNx64 "-%" SCNx64 " %*s %*s %15s %llu", start, end, ret->device,
			 &ret->inode);
	const char *line = strchr(*at, '\n');

	*at = line ? line + 1 : *at + strlen(*at);
	return got == 4;
}

static bool find_file(const struct prb_case *c, uint64_t address, struct file *ret)
{
	prb_auto_str struct prb_str maps = {};
	const char *at;
	uint64_t start, end;

	prb_error_destroy(prb_target_read_file(c->target, &maps, "maps"));
	at = prb_str_text(&maps);
	while (next(&at, &start, &end, ret))
		if (start <= address && address < end)
			return ret->inode;
	return false;
}

/** True if the process has mapped the file, or may not be read. */
static bool maps_file(pid_t pid, const struct file *file)
{
	prb_auto_str struct prb_str maps = {};
	struct file each;
	const char *at;
	uint64_t start, end;

	if (!prb_proc_read(pid, "maps", &maps))
		return true;
	at = prb_str_text(&maps);
	while (next(&at, &start, &end, &each))
		if (each.inode == file->inode && !strcmp(each.device, file->device))
			return true;
	return false;
}

/** The same of the children of @p pid, but for @p own. */
static bool children_map(pid_t pid, pid_t own, const struct file *file)
{
	prb_auto_str struct prb_str list = {};
	unsigned count = 0;
	char name[64], *end;
	long child;

	snprintf(name, sizeof(name), "task/%d/children", (int)pid);
	prb_proc_read(pid, name, &list);
	for (const char *at = prb_str_text(&list); (child = strtol(at, &end, 10)) > 0; at = end)
		if (child != own && (count++ > MOST_RELATIVES || maps_file((pid_t)child, file)))
			return true;
	return false;
}

bool prb_case_shares(const struct prb_case *c, uint64_t address)
{
	prb_auto_str struct prb_str line = {};
	struct prb_stat stat;
	struct file file;

	if (!c->target || !find_file(c, address, &file))
		return true;
	prb_error_destroy(prb_target_read_file(c->target, &line, "stat"));
	if (!prb_stat_parse(prb_str_text(&line), &stat))
		return true;
	return (stat.ppid > 0 && maps_file(stat.ppid, &file)) ||
	       children_map(stat.ppid, c->target->pid, &file) ||
	       children_map(c->target->pid, 0, &file);
}

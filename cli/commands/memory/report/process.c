/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The kernel's figures of a process's memory, and the limit of its control groups. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/commands/memory/report/memory.h"
#include "target/proc/cgroup.h"

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

static void read_groups(struct prb_target *target, struct prb_memory_process *p)
{
	prb_auto_str struct prb_str text = {};
	prb_auto_error struct prb_error *err = prb_target_read_file(target, &text, "cgroup");

	if (!err)
		prb_cgroup_memory(prb_str_text(&text), &p->limit, &p->used);
}

void prb_memory_read_process(struct prb_target *target, struct prb_memory_process *ret)
{
	*ret = (struct prb_memory_process){-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, false};
	read_status(target, ret);
	read_rollup(target, ret);
	if (target->local && target->live)
		read_groups(target, ret);
}

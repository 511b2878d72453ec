/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "target/proc/cgroup.h"
#include "sql/engine/instant.h"
#include "sql/tables/shared/facts.h"
#include "sql/tables/shared/machine.h"
#include "sql/spec/table.h"

enum {
	HIERARCHY,
	CONTROLLERS,
	PATH,
	MEMORY_MAX,
	MEMORY_CURRENT,
	CPU_MAX,
	PIDS_MAX,
	PIDS_CURRENT,
};

static const struct prb_column columns[] = {
	[HIERARCHY] = {"hierarchy", PRB_COLUMN_INTEGER,
		       "Number of the hierarchy; 0 for that of version 2"},
	[CONTROLLERS] = {"controllers", PRB_COLUMN_TEXT,
			 "Controllers of a hierarchy of version 1; NULL for version 2"},
	[PATH] = {"path", PRB_COLUMN_TEXT, "Path of the group in its hierarchy"},
	[MEMORY_MAX] = {"memory_max", PRB_COLUMN_INTEGER,
			"Most memory that the group may have; NULL if there is no limit", "bytes"},
	[MEMORY_CURRENT] = {"memory_current", PRB_COLUMN_INTEGER, "Memory that the group has",
			    "bytes"},
	[CPU_MAX] = {"cpu_max", PRB_COLUMN_REAL,
		     "Processors that the group may use; NULL if there is no limit", "CPUs"},
	[PIDS_MAX] = {"pids_max", PRB_COLUMN_INTEGER,
		      "Most threads that the group may have; NULL if there is no limit"},
	[PIDS_CURRENT] = {"pids_current", PRB_COLUMN_INTEGER, "Threads that the group has"},
	{},
};

static bool fact(struct prb_scan *scan, const char *mounts, const struct prb_cgroup *group,
		 const char *file, struct prb_str *ret)
{
	struct prb_target *target = prb_instant_target(scan->instant);
	char key[64];

	snprintf(key, sizeof(key), "cgroup:%d:%s", group->hierarchy, file);
	if (!target->local)
		return prb_target_recall(target, key, ret);
	if (!prb_cgroup_file(mounts, group, file, ret))
		return false;
	prb_target_remember(target, key, prb_str_text(ret), ret->length);
	return true;
}

static void put_number(struct prb_scan *scan, unsigned column, const char *mounts,
		       const struct prb_cgroup *group, const char *file)
{
	/* Version 1 says "no limit" with the largest number of whole pages. */
	const long long none = INT64_MAX / 65536 * 65536 - 65536;
	prb_auto_str struct prb_str text = {};
	char *end;

	if (!prb_scan_wants(scan, column) || !fact(scan, mounts, group, file, &text))
		return;
	long long value = strtoll(prb_str_text(&text), &end, 10);
	if (end != prb_str_text(&text) && value >= 0 && value < none)
		prb_put_integer(scan, column, value);
}

/** "max 100000" or "150000 100000"; in version 1 two files, with -1 for no limit. */
static void put_cpus(struct prb_scan *scan, const char *mounts, const struct prb_cgroup *group)
{
	prb_auto_str struct prb_str text = {}, period = {};
	double quota, length;

	if (!prb_scan_wants(scan, CPU_MAX))
		return;
	if (!group->hierarchy) {
		if (fact(scan, mounts, group, "cpu.max", &text) &&
		    sscanf(prb_str_text(&text), "%lf %lf", &quota, &length) == 2 && length > 0)
			prb_put_real(scan, CPU_MAX, quota / length);
		return;
	}
	if (fact(scan, mounts, group, "cpu.cfs_quota_us", &text) &&
	    fact(scan, mounts, group, "cpu.cfs_period_us", &period) &&
	    sscanf(prb_str_text(&text), "%lf", &quota) == 1 &&
	    sscanf(prb_str_text(&period), "%lf", &length) == 1 && quota >= 0 && length > 0)
		prb_put_real(scan, CPU_MAX, quota / length);
}

static struct prb_error *group_row(struct prb_scan *scan, const struct prb_cgroup *group,
				   const char *mounts)
{
	bool two = !group->hierarchy;

	PRB_TRY(prb_scan_row(scan));
	prb_put_integer(scan, HIERARCHY, group->hierarchy);
	if (group->controllers_length)
		prb_put_bytes(scan, CONTROLLERS, group->controllers, group->controllers_length);
	prb_put_bytes(scan, PATH, group->path, group->path_length);
	put_number(scan, MEMORY_MAX, mounts, group, two ? "memory.max" : "memory.limit_in_bytes");
	put_number(scan, MEMORY_CURRENT, mounts, group,
		   two ? "memory.current" : "memory.usage_in_bytes");
	put_cpus(scan, mounts, group);
	put_number(scan, PIDS_MAX, mounts, group, "pids.max");
	put_number(scan, PIDS_CURRENT, mounts, group, "pids.current");
	return NULL;
}

static struct prb_error *scan(struct prb_scan *scan)
{
	prb_auto_str struct prb_str text = {}, mounts = {};
	struct prb_cgroup group;
	bool told;

	PRB_TRY(prb_fact_table(scan, &text, &told, "cgroup"));
	if (prb_instant_target(scan->instant)->local)
		PRB_TRY(prb_machine_file("/proc/self/mountinfo", &mounts));
	for (const char *at = prb_str_text(&text); prb_cgroup_next(&at, &group);)
		PRB_TRY(group_row(scan, &group, prb_str_text(&mounts)));
	return NULL;
}

const struct prb_table prb_table_process_cgroups = {
	.schema = "process",
	.name = "cgroups",
	.doc = "Control groups the process is in, with the limits of each",
	.columns = columns,
	.rows = 5,
	.scan = scan,
};

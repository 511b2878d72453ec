/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "proc/cgroup.h"
#include "sql/engine/instant.h"
#include "sql/tables/facts.h"
#include "sql/tables/machine.h"
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

/** Where a hierarchy is mounted on this machine. */
struct mount {
	struct prb_str root; /**< which of its groups is mounted */
	struct prb_str point;
};

static void mount_deinit(struct mount *mount)
{
	prb_str_deinit(&mount->root);
	prb_str_deinit(&mount->point);
}

static bool has_word(const char *list, size_t length, const char *word, size_t word_length)
{
	for (const char *at = list, *end = list + length; at < end;) {
		size_t part = strcspn(at, ", \n");

		if (part == word_length && !strncmp(at, word, part))
			return true;
		at += part + 1;
	}
	return false;
}

/** "31 23 0:28 /ROOT /POINT OPTIONS - cgroup SOURCE rw,memory" */
static bool is_mount_of(const char *line, size_t length, const struct prb_cgroup *group)
{
	static const char one[] = " - cgroup ", two[] = " - cgroup2 ";

	if (!group->hierarchy)
		return memmem(line, length, two, sizeof(two) - 1);
	const char *type = memmem(line, length, one, sizeof(one) - 1);
	if (!type)
		return false;
	const char *options = memchr(type + sizeof(one) - 1, ' ',
				     length - (size_t)(type - line) - (sizeof(one) - 1));
	size_t first = 0;

	while (first < group->controllers_length && group->controllers[first] != ',')
		first++;
	return options && has_word(options + 1, length - (size_t)(options + 1 - line),
				   group->controllers, first);
}

static bool find_mount(const char *mounts, const struct prb_cgroup *group, struct mount *ret)
{
	const char *line;
	size_t length;

	while (prb_next_line(&mounts, &line, &length)) {
		const char *field = line;

		if (!is_mount_of(line, length, group))
			continue;
		for (unsigned i = 0; i < 3; i++) {
			field += strcspn(field, " \n");
			field += *field == ' ';
		}
		prb_str_append(&ret->root, field, strcspn(field, " \n"));
		field += strcspn(field, " \n");
		field += *field == ' ';
		prb_str_append(&ret->point, field, strcspn(field, " \n"));
		return ret->root.length && ret->point.length;
	}
	return false;
}

/** The file of a group, as text; false if it is not there, as the root's are not. */
static bool read_file(const struct mount *mount, const struct prb_cgroup *group, const char *file,
		      struct prb_str *ret)
{
	prb_auto_str struct prb_str path = {};
	const char *below = group->path;
	size_t length = group->path_length, root = mount->root.length;

	/* What is mounted may be the container's own group. */
	if (root > 1) {
		if (length < root || strncmp(below, mount->root.data, root) != 0)
			return false;
		below += root;
		length -= root;
	}
	/* A group outside of what our namespace shows has no file that we could name. */
	if (memmem(below, length, "/..", 3))
		return false;
	prb_str_printf(&path, "%s%.*s/%s", prb_str_text(&mount->point), (int)length, below, file);
	struct prb_error *err = prb_machine_file(prb_str_text(&path), ret);
	bool there = !err;

	prb_error_destroy(err);
	return there;
}

static bool fact(struct prb_scan *scan, const struct mount *mount, const struct prb_cgroup *group,
		 const char *file, struct prb_str *ret)
{
	struct prb_target *target = prb_instant_target(scan->instant);
	char key[64];

	snprintf(key, sizeof(key), "cgroup:%d:%s", group->hierarchy, file);
	if (!target->local)
		return prb_target_recall(target, key, ret);
	if (!mount->point.length || !read_file(mount, group, file, ret))
		return false;
	prb_target_remember(target, key, prb_str_text(ret), ret->length);
	return true;
}

static void put_number(struct prb_scan *scan, unsigned column, const struct mount *mount,
		       const struct prb_cgroup *group, const char *file)
{
	/* Version 1 says "no limit" with the largest number of whole pages. */
	const long long none = INT64_MAX / 65536 * 65536 - 65536;
	prb_auto_str struct prb_str text = {};
	char *end;

	if (!prb_scan_wants(scan, column) || !fact(scan, mount, group, file, &text))
		return;
	long long value = strtoll(prb_str_text(&text), &end, 10);
	if (end != prb_str_text(&text) && value >= 0 && value < none)
		prb_put_integer(scan, column, value);
}

/** "max 100000" or "150000 100000"; in version 1 two files, with -1 for no limit. */
static void put_cpus(struct prb_scan *scan, const struct mount *mount,
		     const struct prb_cgroup *group)
{
	prb_auto_str struct prb_str text = {}, period = {};
	double quota, length;

	if (!prb_scan_wants(scan, CPU_MAX))
		return;
	if (!group->hierarchy) {
		if (fact(scan, mount, group, "cpu.max", &text) &&
		    sscanf(prb_str_text(&text), "%lf %lf", &quota, &length) == 2 && length > 0)
			prb_put_real(scan, CPU_MAX, quota / length);
		return;
	}
	if (fact(scan, mount, group, "cpu.cfs_quota_us", &text) &&
	    fact(scan, mount, group, "cpu.cfs_period_us", &period) &&
	    sscanf(prb_str_text(&text), "%lf", &quota) == 1 &&
	    sscanf(prb_str_text(&period), "%lf", &length) == 1 && quota >= 0 && length > 0)
		prb_put_real(scan, CPU_MAX, quota / length);
}

static struct prb_error *group_row(struct prb_scan *scan, const struct prb_cgroup *group,
				   const char *mounts)
{
	__attribute__((cleanup(mount_deinit))) struct mount mount = {};
	bool two = !group->hierarchy;

	if (!find_mount(mounts, group, &mount))
		mount_deinit(&mount);
	PRB_TRY(prb_scan_row(scan));
	prb_put_integer(scan, HIERARCHY, group->hierarchy);
	if (group->controllers_length)
		prb_put_bytes(scan, CONTROLLERS, group->controllers, group->controllers_length);
	prb_put_bytes(scan, PATH, group->path, group->path_length);
	put_number(scan, MEMORY_MAX, &mount, group, two ? "memory.max" : "memory.limit_in_bytes");
	put_number(scan, MEMORY_CURRENT, &mount, group,
		   two ? "memory.current" : "memory.usage_in_bytes");
	put_cpus(scan, &mount, group);
	put_number(scan, PIDS_MAX, &mount, group, "pids.max");
	put_number(scan, PIDS_CURRENT, &mount, group, "pids.current");
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

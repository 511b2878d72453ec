/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "judge/sharing.h"

#include "base/cleanup.h"
#include "target/mem/maps.h"
#include "target/proc/process.h"
#include "target/proc/text.h"

enum { MOST_RELATIVES = 256 };

/** Reads the maps of a process that is named by its target, or else by @p pid; false: they may not
 * be read. */
static bool read_maps(struct prb_target *t, pid_t pid, struct prb_maps *ret)
{
	prb_auto_str struct prb_str text = {};
	struct prb_error *err = NULL;

	if (t)
		err = prb_target_read_maps(t, ret);
	else if (!prb_proc_read(pid, "maps", &text))
		return false;
	if (!t)
		err = prb_maps_parse(prb_str_text(&text), ret);
	prb_error_destroy(err);
	return !err;
}

/** The mapping of a file, or of anonymous memory that is shared, which has a number of a file, too;
 * or NULL. */
static const struct prb_map *find_file(const struct prb_case *c, uint64_t address,
				       struct prb_maps *maps)
{
	const struct prb_map *map =
		read_maps(c->target, 0, maps) ? prb_maps_find(maps, address) : NULL;

	return map && map->inode ? map : NULL;
}

/** True if the process has mapped the file, or may not be read. */
static bool maps_file(pid_t pid, const struct prb_map *file)
{
	__attribute__((cleanup(prb_maps_deinit))) struct prb_maps maps = {};
	const struct prb_map *each;

	if (!read_maps(NULL, pid, &maps))
		return true;
	prb_vec_each (each, &maps.list)
		if (each->inode == file->inode && each->major == file->major &&
		    each->minor == file->minor)
			return true;
	return false;
}

/** The same of the children of @p pid, but for @p own. */
static bool children_map(pid_t pid, pid_t own, const struct prb_map *file)
{
	prb_auto_pids struct prb_pids children = {};
	const pid_t *child;
	unsigned count = 0;
	bool listed;

	prb_error_destroy(prb_pids_of_children(pid, pid, &children, &listed));
	prb_vec_each (child, &children.list)
		if (*child != own && (count++ > MOST_RELATIVES || maps_file(*child, file)))
			return true;
	return false;
}

static bool shares(const struct prb_case *c, uint64_t address, bool below)
{
	prb_auto_str struct prb_str line = {};
	__attribute__((cleanup(prb_maps_deinit))) struct prb_maps maps = {};
	const struct prb_map *file = c->target ? find_file(c, address, &maps) : NULL;
	struct prb_stat stat;

	if (!file)
		return true;
	prb_error_destroy(prb_target_read_file(c->target, &line, "stat"));
	if (!prb_stat_parse(prb_str_text(&line), &stat))
		return true;
	return (stat.ppid > 0 && maps_file(stat.ppid, file)) ||
	       children_map(stat.ppid, c->target->pid, file) ||
	       (below && children_map(c->target->pid, 0, file));
}

bool prb_case_shares(const struct prb_case *c, uint64_t address)
{
	return shares(c, address, true);
}

bool prb_case_shares_above(const struct prb_case *c, uint64_t address)
{
	return shares(c, address, false);
}

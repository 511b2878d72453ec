/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "control/serving.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/threads.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"
#include "control/socket.h"
#include "dwarf/unwind/unwind.h"
#include "target/mem/maps.h"
#include "target/task.h"

static const double MOST_SECONDS = 1;

enum {
	MOST_FRAMES = 8, /* more than the C library has around a system call */
	LOOK_NS = 5000000,
};

static bool is_same(const struct prb_map *map, const struct prb_serving *library)
{
	return map->inode == library->inode && map->major == library->major &&
	       map->minor == library->minor;
}

static void note(const struct prb_map *map, struct prb_serving *ret)
{
	*ret = (struct prb_serving){prb_format("%s", map->path), map->inode, map->major,
				    map->minor};
}

/** The agent's library that is on the C stack of a waiting thread, which is not stopped for it. */
static const struct prb_map *find_on_stack(struct prb_target *t, const struct prb_maps *maps,
					   struct prb_unwinder *unwinder, long tid)
{
	struct prb_regs regs = {.machine = t->machine};
	prb_auto_error struct prb_error *err = NULL;
	const struct prb_map *map = NULL;
	struct prb_unwind_step step = {};
	struct prb_task task;

	err = prb_task_read(t, (pid_t)tid, &task);
	if (err || !task.pc)
		return NULL;
	regs.pc = task.pc;
	prb_regs_set(&regs, prb_regs_sp(t->machine), task.sp);
	for (unsigned n = 0; !err && n < MOST_FRAMES && !step.end && !step.reason; n++) {
		map = prb_maps_find(maps, regs.pc);
		if (map && prb_agent_is_library(map))
			return map;
		err = prb_unwind_step(unwinder, t->mem, !n, &regs, &step);
	}
	return NULL;
}

static const struct prb_map *find_by_threads(struct prb_target *t, const struct prb_maps *maps,
					     struct prb_unwinder *unwinder)
{
	prb_auto_str struct prb_str tids = {};
	const struct prb_map *found = NULL;

	prb_error_destroy(prb_target_list(t, &tids, "task"));
	for (const char *at = prb_str_text(&tids); *at && !found;) {
		prb_auto_str struct prb_str name = {};
		char *end;
		long tid = strtol(at, &end, 10);

		if (end == at)
			break;
		prb_error_destroy(prb_target_read_file(t, &name, "task/%ld/comm", tid));
		if (prb_is_agent_thread(prb_str_text(&name)))
			found = find_on_stack(t, maps, unwinder, tid);
		at = *end ? end + 1 : end;
	}
	return found;
}

static void ask_threads(struct prb_target *t, const struct prb_maps *maps, struct prb_serving *ret)
{
	struct prb_modules *modules = NULL;
	struct prb_unwinder *unwinder = NULL;
	prb_auto_error struct prb_error *err = prb_modules_create(t, &modules);

	if (!err)
		err = prb_unwinder_create(modules, &unwinder);
	const struct prb_map *found = NULL;
	const double end = prb_clock_seconds() + MOST_SECONDS;
	/* It has just answered, and is about to wait for the next request. */
	for (unsigned n = 0; !err && !found && (!n || prb_clock_seconds() < end); n++) {
		if (n)
			nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
		found = find_by_threads(t, maps, unwinder);
	}
	if (found)
		note(found, ret);
	if (unwinder)
		prb_unwinder_destroy(unwinder);
	prb_modules_destroy(modules);
}

void prb_serving_find(struct prb_target *t, struct prb_serving *ret)
{
	__attribute__((cleanup(prb_maps_deinit))) struct prb_maps maps = {};
	prb_auto_error struct prb_error *err = prb_target_read_maps(t, &maps);
	const struct prb_map *map;
	bool several = false;

	*ret = (struct prb_serving){};
	if (err)
		return;
	prb_vec_each (map, &maps.list) {
		if (!prb_agent_is_library(map))
			continue;
		if (!ret->path)
			note(map, ret);
		several |= !is_same(map, ret);
	}
	if (!several)
		return;
	prb_serving_deinit(ret);
	ask_threads(t, &maps, ret);
}

char *prb_serving_mapped(struct prb_target *t, const struct prb_serving *library)
{
	__attribute__((cleanup(prb_maps_deinit))) struct prb_maps maps = {};
	prb_auto_error struct prb_error *err = prb_target_read_maps(t, &maps);
	const struct prb_map *map;

	prb_vec_each (map, &maps.list)
		if (!err && prb_agent_is_library(map) && (!library->path || is_same(map, library)))
			return prb_format("%s", map->path);
	return NULL;
}

void prb_serving_deinit(struct prb_serving *library)
{
	free(library->path);
	*library = (struct prb_serving){};
}

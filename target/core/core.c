/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A core file as a target. */
#include <errno.h>
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "target/core/file.h"

static struct prb_error *core_read_link(struct prb_target *t, const char *name, struct prb_str *ret)
{
	struct core *core = (struct core *)t;
	const char *exe = core->exe_override ? core->exe_override : core->exe;
	const struct core_fact *fact = strcmp(name, "exe") ? core_fact(core, name) : NULL;

	if (fact) {
		prb_str_append(ret, fact->text, fact->length);
		return NULL;
	}
	if (strcmp(name, "exe") || !exe[0])
		return prb_error_create(PRB_ERROR_NOT_FOUND,
					"the core file does not contain the link '%s'", name);
	prb_str_puts(ret, exe);
	return NULL;
}

/* The files of the process are ours if they are still there; those mapped must be the same build.
 */
static struct prb_error *core_open_path(struct prb_target *t, const char *path, int *ret_fd)
{
	struct core *core = (struct core *)t;
	const struct prb_map *map;

	prb_vec_each (map, &t->maps.list)
		if (!strcmp(map->path, path))
			return core_open_map(core, map, ret_fd);
	return core_open_other(core, path, ret_fd);
}

static struct prb_error *core_open_mapping(struct prb_target *t, const struct prb_map *map,
					   int *ret_fd)
{
	return core_open_map((struct core *)t, map, ret_fd);
}

static struct prb_error *core_registers(struct prb_target *t, pid_t tid, struct prb_regs *ret)
{
	const struct core_thread *thread = core_thread((struct core *)t, tid);

	if (!thread)
		return prb_error_create(PRB_ERROR_NO_PROCESS, "the core file has no thread %d",
					tid);
	*ret = thread->regs;
	return NULL;
}

static void core_destroy(struct prb_target *t)
{
	struct core *core = (struct core *)t;

	core_mem_deinit(core);
	prb_vec_free(&core->segments);
	prb_vec_free(&core->threads);
	prb_vec_free(&core->mappings);
	prb_vec_free(&core->facts);
	prb_str_deinit(&core->notes);
	free(core->path);
	free(core->exe);
	free(core->exe_override);
	free(core->sysroot);
	free(core->library_path);
	if (core->fd >= 0)
		close(core->fd);
	free(core);
}

static const struct prb_target_ops core_ops = {
	.read_file = core_read_fact,
	.read_link = core_read_link,
	.list = core_list_fact,
	.open_file = core_open_path,
	.open_map = core_open_mapping,
	.registers = core_registers,
	.destroy = core_destroy,
};

/* The program: what is mapped where the kernel put its program headers, else how it was called. */
static struct prb_error *find_exe(struct core *core)
{
	prb_auto_str struct prb_str name = {};
	const struct prb_map *map = NULL;
	uint64_t address;

	if (core_auxv(core, AT_PHDR, &address))
		map = prb_maps_find(&core->target.maps, address);
	if (map && map->path[0] == '/') {
		core->exe = strdup(map->path);
	} else {
		if (core_auxv(core, AT_EXECFN, &address))
			prb_error_destroy(
				prb_mem_read_cstr(&core->stored, address, PATH_MAX, &name));
		core->exe = prb_str_take(&name);
	}
	return core->exe ? NULL : prb_error_nomem();
}

/*
 * The user's program must be the one that ran; if the core has no identity of it, the user is
 * believed.
 */
static struct prb_error *check_exe(struct core *core)
{
	const struct prb_map *map;
	struct prb_build_id here, there;

	prb_auto_close int fd = open(core->exe_override, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return prb_error_os(errno, "cannot open %s", core->exe_override);
	prb_vec_each (map, &core->target.maps.list) {
		if (map->offset || strcmp(map->path, core->exe))
			continue;
		prb_build_id_of_file(fd, &here);
		prb_build_id_in_memory(&core->stored, map->start, &there);
		if (here.length && there.length &&
		    (here.length != there.length || memcmp(here.bytes, there.bytes, here.length)))
			return prb_error_create(PRB_ERROR_USAGE,
						"%s is not the program of this core: its build-id "
						"differs from that of %s",
						core->exe_override, core->exe);
		return NULL;
	}
	return NULL;
}

static void tell(const struct core *core)
{
	if (core->info.missing_segments)
		prb_log("core", 1, "%s is truncated: %llu bytes of %u segments are missing",
			core->path, (unsigned long long)core->info.missing_bytes,
			core->info.missing_segments);
	prb_log("core", 2, "%s: %zu threads, %zu segments, %zu mapped files, signal %d", core->path,
		core->threads.count, core->segments.count, core->mappings.count, core->info.signal);
}

static struct prb_error *check_folder(const char *option, const char *path)
{
	struct stat stat_;

	if (stat(path, &stat_))
		return prb_error_os(errno, "%s %s", option, path);
	if (!S_ISDIR(stat_.st_mode))
		return prb_error_create(PRB_ERROR_USAGE, "%s %s: it is not a folder", option, path);
	return NULL;
}

/* All folders of a list that colons divide. */
static struct prb_error *check_folders(const char *list)
{
	prb_auto_free char *copy = strdup(list);

	if (!copy)
		return prb_error_nomem();
	for (char *rest = copy, *folder; (folder = strsep(&rest, ":"));)
		if (*folder)
			PRB_TRY(check_folder("--library-path", folder));
	return NULL;
}

static struct prb_error *take_places(struct core *core, const struct prb_core_places *places)
{
	if (places->sysroot) {
		PRB_TRY(check_folder("--sysroot", places->sysroot));
		core->sysroot = realpath(places->sysroot, NULL);
		if (!core->sysroot)
			return prb_error_os(errno, "--sysroot %s", places->sysroot);
	}
	if (places->library_path) {
		PRB_TRY(check_folders(places->library_path));
		core->library_path = strdup(places->library_path);
		if (!core->library_path)
			return prb_error_nomem();
	}
	return NULL;
}

static struct prb_error *open_core(struct core *core, const char *path,
				   const struct prb_core_places *places)
{
	PRB_TRY(take_places(core, places));
	PRB_TRY(core_file_open(core, path));
	PRB_TRY(core_notes_parse(core));
	if (!core->segments.count && !core->threads.count)
		return prb_error_create(PRB_ERROR_BAD_DATA,
					"%s has neither memory nor threads in it", path);
	core_mem_init(core);
	PRB_TRY(prb_target_refresh_maps(&core->target));
	PRB_TRY(find_exe(core));
	if (places->exe) {
		core->exe_override = realpath(places->exe, NULL);
		if (!core->exe_override)
			return prb_error_os(errno, "cannot open %s", places->exe);
		PRB_TRY(check_exe(core));
	}
	tell(core);
	return NULL;
}

struct prb_error *prb_target_open_core_in(const char *path, const struct prb_core_places *places,
					  struct prb_target **ret)
{
	struct core *core = calloc(1, sizeof(*core));

	if (!core)
		return prb_error_nomem();
	core->fd = -1;
	core->target.ops = &core_ops;
	core->target.kind = PRB_TARGET_CORE;
	core->target.partial = true;

	struct prb_error *err = open_core(core, path, places);
	if (err) {
		prb_target_destroy(&core->target);
		return err;
	}
	*ret = &core->target;
	return NULL;
}

struct prb_error *prb_target_open_core(const char *path, const char *exe, struct prb_target **ret)
{
	return prb_target_open_core_in(path, &(struct prb_core_places){.exe = exe}, ret);
}

const struct prb_core_info *prb_core_info(const struct prb_target *t)
{
	return t->kind == PRB_TARGET_CORE ? &((const struct core *)t)->info : NULL;
}

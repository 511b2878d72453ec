/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where the files that a process had mapped may be on this machine. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/log.h"
#include "target/core/file.h"

struct search {
	struct prb_local_file file; /* `path` is the one being tried */
	int fd;			    /* -1: not found yet */
	struct prb_error *refused;  /* of a file that is there, but is not the one */
};

static struct prb_error *try_path(struct search *s, const char *path)
{
	s->file.path = path;

	struct prb_error *err = prb_local_file_open(&s->file, &s->fd);
	if (!err) {
		prb_log("core", 2, "%s is read", path);
		return NULL;
	}
	s->fd = -1;
	if (err->code == PRB_ERROR_NOMEM)
		return err;
	if (s->refused || access(path, F_OK))
		prb_error_destroy(err);
	else
		s->refused = err;
	return NULL;
}

static struct prb_error *try_in(struct search *s, const char *folder, size_t length,
				const char *name)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%.*s/%s", (int)length, folder, name);

	if (s->fd >= 0 || !length || n < 0 || (size_t)n >= sizeof(path))
		return NULL;
	return try_path(s, path);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Tries the user's folders before the path that the core names. */
static struct prb_error *try_told(const struct core *core, struct search *s, const char *path)
{
	const char *name = base_name(path);

	if (core->sysroot)
		PRB_TRY(try_in(s, core->sysroot, strlen(core->sysroot), path + 1));
	for (const char *at = core->library_path; at && *at;) {
		size_t length = strcspn(at, ":");

		PRB_TRY(try_in(s, at, PRB_MIN(length, (size_t)PATH_MAX), name));
		at += length + (at[length] == ':');
	}
	return NULL;
}

/* Where a program was moved its libraries were, most likely: only builds that are proven. */
static struct prb_error *try_beside_exe(const struct core *core, struct search *s, const char *path)
{
	const char *end = core->exe_override ? strrchr(core->exe_override, '/') : NULL;
	char folder[PATH_MAX];
	int n;

	if (!end || s->fd >= 0)
		return NULL;
	s->file.believed_until = 0;
	PRB_TRY(try_in(s, core->exe_override, (size_t)(end - core->exe_override), base_name(path)));
	n = snprintf(folder, sizeof(folder), "%.*s/../lib", (int)(end - core->exe_override),
		     core->exe_override);
	return n < 0 ? NULL : try_in(s, folder, strnlen(folder, sizeof(folder)), base_name(path));
}

struct prb_error *core_open_map(struct core *core, const struct prb_map *map, int *ret_fd)
{
	struct search s = {.file = {.mem = &core->stored, .believed_until = core->target.time},
			   .fd = -1};

	if (!prb_local_file_base(&core->target.maps, map, &s.file.base))
		return prb_error_create(PRB_ERROR_NOT_FOUND,
					"where the file %s begins in memory is not known",
					map->path);
	bool moved = core->exe_override && !strcmp(map->path, core->exe);

	struct prb_error *err = moved || map->path[0] != '/' ? NULL : try_told(core, &s, map->path);
	if (!err && s.fd < 0) {
		s.file.rights = moved ? NULL : &core->owner;
		err = try_path(&s, moved ? core->exe_override : map->path);
		s.file.rights = NULL;
	}
	if (!err && map->path[0] == '/')
		err = try_beside_exe(core, &s, map->path);
	if (!err && s.fd < 0)
		err = s.refused ? prb_steal(&s.refused)
				: prb_error_create(PRB_ERROR_NOT_FOUND, "%s is not on this machine",
						   map->path);
	prb_error_destroy(s.refused);
	*ret_fd = s.fd;
	return err;
}

struct prb_error *core_open_other(const struct core *core, const char *path, int *ret_fd)
{
	if (core->sysroot && path[0] == '/') {
		prb_auto_free char *inside = prb_format("%s%s", core->sysroot, path);
		prb_auto_error struct prb_error *err =
			inside ? prb_file_open(-1, inside, ret_fd) : prb_error_nomem();

		if (!err)
			return NULL;
	}
	return prb_rights_open(&core->owner, -1, path, ret_fd);
}

/* Mapped data, such as locales, is in no stack. */
static bool is_program(const struct core *core, const char *path)
{
	return !strcmp(path, core->exe) || strstr(base_name(path), ".so");
}

const char *prb_core_missing(const struct prb_target *t, size_t index)
{
	const struct core *core = (const struct core *)t;
	const struct core_local *local;

	if (t->kind != PRB_TARGET_CORE)
		return NULL;
	prb_vec_each (local, &core->locals)
		if (local->reason && is_program(core, local->path) && !index--)
			return local->reason;
	return NULL;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/commands/list/version.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "dump/text/paths.h"
#include "python/python.h"

void prb_list_versions_deinit(struct prb_list_versions *versions)
{
	struct prb_list_version *known;

	prb_vec_each (known, &versions->list)
		free(known->version);
	prb_vec_free(&versions->list);
}

/** Asks for the patch release, where the cheap way gave none. */
static struct prb_error *ask_release(struct prb_target *target, struct prb_modules *modules,
				     struct prb_python_identity *identity)
{
	struct prb_pythons pythons = {};
	struct prb_view *view;

	PRB_TRY(prb_view_create(target->mem, &view));

	struct prb_error *err = prb_pythons_find(modules, view, &pythons);
	if (!err)
		snprintf(identity->version, sizeof(identity->version), "%s",
			 pythons.list.items[0]->version);
	prb_pythons_deinit(&pythons);
	prb_view_destroy(view);
	return err;
}

static bool has_release(const char *version)
{
	const char *dot = strchr(version, '.');

	return dot && strchr(dot + 1, '.');
}

/** The file that its Python is in, NULL if that may not be the same in another process. */
static const struct prb_map *find_python(const struct prb_target *target,
					 const struct prb_python_process *p)
{
	const struct prb_map *map, *program = NULL;

	prb_vec_each (map, &target->maps.list) {
		if (map->deleted || !map->inode)
			continue;
		if (!strncmp(prb_path_last(map->path), "libpython", strlen("libpython")))
			return map;
		if (!program && p->process.exe && !strcmp(map->path, p->process.exe))
			program = map;
	}
	return program;
}

static const char *find_known(const struct prb_list_versions *versions, const struct prb_map *file)
{
	const struct prb_list_version *known;

	prb_vec_each (known, &versions->list)
		if (known->inode == file->inode && known->major == file->major &&
		    known->minor == file->minor)
			return known->version;
	return NULL;
}

/** *ret: the version from the process itself; file names give at most the minor version. */
static struct prb_error *identify(struct prb_target *target, char **ret)
{
	struct prb_modules *modules;
	struct prb_python_identity identity = {};

	PRB_TRY(prb_modules_create(target, &modules));

	struct prb_error *err = prb_python_identify(modules, &identity);
	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		err = ask_release(target, modules, &identity);
	else if (!err && !has_release(identity.version))
		prb_error_destroy(ask_release(target, modules, &identity));
	prb_modules_destroy(modules);
	PRB_TRY(err);
	*ret = prb_format("%s%s", identity.version, identity.free_threaded ? "t" : "");
	return *ret ? NULL : prb_error_nomem();
}

struct prb_error *prb_list_version(struct prb_list_versions *versions, struct prb_target *target,
				   struct prb_python_process *p)
{
	const struct prb_map *file = find_python(target, p);
	const char *known = file ? find_known(versions, file) : NULL;
	struct prb_list_version *place;
	char *version = NULL;

	if (known)
		PRB_TRY(prb_str_copy(known, &version));
	else
		PRB_TRY(identify(target, &version));
	free(p->version);
	p->version = version;
	if (known || !file)
		return NULL;
	place = prb_vec_push(&versions->list);
	if (place)
		*place = (struct prb_list_version){file->inode, file->major, file->minor,
						   strdup(version)};
	return place && place->version ? NULL : prb_error_nomem();
}

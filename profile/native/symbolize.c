/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile/native/symbolize.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/log.h"
#include "base/pool.h"
#include "base/str.h"
#include "dwarf/elf/elf.h"
#include "dwarf/lines/demangle.h"
#include "dwarf/lines/short_name.h"

enum { MOST_FILES = 200000, MOST_DEPTH = 16 };

struct work {
	struct prb_recording *recording;
	struct prb_symbolized *ret;
	size_t files; /* that were looked at */
};

static struct prb_error *take_name(struct work *w, struct prb_elf *elf, struct prb_tree_function *f)
{
	prb_auto_free char *readable = NULL, *brief = NULL;
	struct prb_elf_symbol symbol;
	struct prb_error *err = prb_elf_symbol_at(elf, f->address, &symbol);

	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		return NULL;
	PRB_TRY(err);
	readable = prb_demangle(symbol.name);
	PRB_TRY(prb_short_name(readable ? readable : symbol.name, &brief));
	w->ret->named++;
	return prb_pool_share(w->recording->tree->pool,
			      brief	 ? brief
			      : readable ? readable
					 : symbol.name,
			      &f->name);
}

static struct prb_error *use(struct work *w, struct prb_elf *elf)
{
	const char *build_id = prb_elf_build_id(elf);
	size_t before = w->ret->named;
	struct prb_tree_function *f;

	if (!*build_id)
		return NULL;
	prb_vec_each (f, &w->recording->tree->functions)
		if (prb_function_lacks_name(f) && !strcmp(f->image->build_id, build_id))
			PRB_TRY(take_name(w, elf, f));
	w->ret->files += w->ret->named > before;
	return NULL;
}

static struct prb_error *look_at(struct work *w, const char *path)
{
	struct prb_elf *elf = NULL;
	int fd = -1;
	struct prb_error *err = prb_file_open(-1, path, &fd);

	if (!err)
		err = prb_elf_open(fd, path, &elf);
	if (!err)
		err = use(w, elf);
	if (elf)
		prb_elf_close(elf);
	if (!err || err->code == PRB_ERROR_NOMEM)
		return err;
	prb_log("profile", 2, "%s", err->message);
	prb_error_destroy(err);
	return NULL;
}

static struct prb_error *walk(struct work *w, const char *path, unsigned depth);

static struct prb_error *walk_entry(struct work *w, const char *folder, const struct dirent *entry,
				    unsigned depth)
{
	prb_auto_str struct prb_str path = {};

	if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
		return NULL;
	prb_str_printf(&path, "%s/%s", folder, entry->d_name);
	if (path.failed)
		return prb_error_nomem();
	if (entry->d_type == DT_DIR) {
		w->ret->cut_short |= depth >= MOST_DEPTH;
		return depth < MOST_DEPTH ? walk(w, prb_str_text(&path), depth + 1) : NULL;
	}
	if (entry->d_type != DT_REG && entry->d_type != DT_LNK && entry->d_type != DT_UNKNOWN)
		return NULL;
	w->ret->cut_short |= w->files >= MOST_FILES;
	return w->files++ < MOST_FILES ? look_at(w, prb_str_text(&path)) : NULL;
}

static struct prb_error *walk(struct work *w, const char *path, unsigned depth)
{
	prb_auto_closedir DIR *folder = opendir(path);
	const struct dirent *entry;

	if (!folder && !depth)
		return prb_error_os(errno, "cannot open the folder %s", path);
	while (folder && (entry = readdir(folder)))
		PRB_TRY(walk_entry(w, path, entry, depth));
	return NULL;
}

struct prb_error *prb_symbolize(struct prb_recording *recording, const char *folder,
				struct prb_symbolized *ret)
{
	struct work w = {.recording = recording, .ret = ret};
	const struct prb_tree_function *f;

	*ret = (struct prb_symbolized){};
	prb_vec_each (f, &recording->tree->functions)
		if (prb_function_lacks_name(f)) {
			ret->lacking++;
			ret->without += !*f->image->build_id;
		}
	return walk(&w, folder, 0);
}

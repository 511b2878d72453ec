/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile/native/symbolize.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/log.h"
#include "base/pool.h"
#include "base/str.h"
#include "dwarf/elf/elf.h"
#include "dwarf/lines/demangle.h"
#include "dwarf/lines/short_name.h"

enum { MOST_FILES = 200000, MOST_DEPTH = 16 };
enum { LEAST_HEX = 8, MOST_HEX = 128, MOST_WANTED = 200 };

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

static void count(const struct prb_recording *recording, struct prb_symbolized *ret)
{
	const struct prb_tree_function *f;

	*ret = (struct prb_symbolized){};
	prb_vec_each (f, &recording->tree->functions)
		if (prb_function_lacks_name(f)) {
			ret->lacking++;
			ret->without += !*f->image->build_id;
		}
}

struct prb_error *prb_symbolize(struct prb_recording *recording, const char *folder,
				struct prb_symbolized *ret)
{
	struct work w = {.recording = recording, .ret = ret};

	count(recording, ret);
	return walk(&w, folder, 0);
}

/* Recordings are files that others may have written. */
static bool is_build_id(const char *text)
{
	size_t length = strspn(text, "0123456789abcdef");

	return length >= LEAST_HEX && length <= MOST_HEX && length % 2 == 0 && !text[length];
}

static int by_functions(const void *a, const void *b)
{
	const struct prb_symbols_wanted *x = a, *y = b;

	return (x->functions < y->functions) - (x->functions > y->functions);
}

static int by_build_id(const void *a, const void *b)
{
	const struct prb_symbols_wanted *x = a, *y = b;

	return strcmp(x->build_id, y->build_id);
}

/* A file that is mapped at several places is several images. */
static void unite(struct prb_symbols_wanted_list *wanted)
{
	struct prb_symbols_wanted *all = wanted->list.items;
	size_t kept = 0;

	if (!wanted->list.count)
		return;
	qsort(all, wanted->list.count, sizeof(*all), by_build_id);
	for (size_t i = 0; i < wanted->list.count; i++)
		if (kept && !strcmp(all[kept - 1].build_id, all[i].build_id))
			all[kept - 1].functions += all[i].functions;
		else
			all[kept++] = all[i];
	qsort(all, kept, sizeof(*all), by_functions);
	wanted->list.count = PRB_MIN(kept, (size_t)MOST_WANTED);
	wanted->left_out = kept - wanted->list.count;
}

struct prb_error *prb_symbols_wanted(const struct prb_recording *recording,
				     struct prb_symbolized *counts,
				     struct prb_symbols_wanted_list *ret)
{
	const struct prb_tree *tree = recording->tree;
	prb_auto_free size_t *functions = calloc(tree->images.count + 1, sizeof(*functions));
	const struct prb_tree_function *f;

	count(recording, counts);
	*ret = (struct prb_symbols_wanted_list){};
	if (!functions)
		return prb_error_nomem();
	prb_vec_each (f, &tree->functions)
		if (prb_function_lacks_name(f))
			functions[f->image->number]++;
	for (size_t i = 0; i < tree->images.count; i++) {
		const struct prb_tree_image *image = tree->images.items[i];
		struct prb_symbols_wanted *slot;

		if (!functions[i] || !is_build_id(image->build_id))
			continue;
		slot = prb_vec_push(&ret->list);
		if (!slot)
			return prb_error_nomem();
		*slot = (struct prb_symbols_wanted){image->build_id, image->path, functions[i]};
	}
	unite(ret);
	return NULL;
}

struct prb_error *prb_symbolize_by(struct prb_recording *recording, const char *build_id, int fd,
				   const char *name, struct prb_symbolized *ret)
{
	struct work w = {.recording = recording, .ret = ret};
	struct prb_error *err;
	struct prb_elf *elf;

	err = prb_elf_open(fd, name, &elf);
	if (!err) {
		err = strcmp(prb_elf_build_id(elf), build_id) != 0
			      ? prb_error_create(PRB_ERROR_BAD_DATA, "%s does not have build-id %s",
						 name, build_id)
			      : use(&w, elf);
		prb_elf_close(elf);
	}
	if (err && err->code != PRB_ERROR_NOMEM)
		err->code = PRB_ERROR_BAD_DATA;
	return err;
}

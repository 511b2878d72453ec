/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dump/text/paths.h"

#include <stdlib.h>
#include <string.h>

const char *prb_path_last(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static int compare(const void *a, const void *b)
{
	const char *x = *(const char *const *)a, *y = *(const char *const *)b;
	int order = strcmp(prb_path_last(x), prb_path_last(y));

	return order ? order : strcmp(x, y);
}

static struct prb_error *collect(struct prb_paths *paths, const struct prb_dump *dump)
{
	const struct prb_dump_thread *thread;
	const struct prb_dump_frame *frame;

	prb_vec_each (thread, &dump->threads) {
		const char *last = NULL;

		prb_vec_each (frame, &thread->frames) {
			const char *path = frame->file ? frame->file : frame->module;

			/* Neighbours in a stack are often of one file. */
			if (!path || (last && (last == path || !strcmp(last, path))))
				continue;
			last = path;

			const char **place = prb_vec_push(&paths->list);
			if (!place)
				return prb_error_nomem();
			*place = path;
		}
	}
	return NULL;
}

struct prb_error *prb_paths_init(struct prb_paths *paths, const struct prb_dump *dump, bool full)
{
	size_t kept = 0;

	*paths = (struct prb_paths){.full = full};
	if (full)
		return NULL;

	struct prb_error *err = collect(paths, dump);
	if (err) {
		prb_paths_deinit(paths);
		return err;
	}
	if (!paths->list.count)
		return NULL;
	qsort(paths->list.items, paths->list.count, sizeof(*paths->list.items), compare);
	for (size_t i = 0; i < paths->list.count; i++)
		if (!kept || strcmp(paths->list.items[kept - 1], paths->list.items[i]) != 0)
			paths->list.items[kept++] = paths->list.items[i];
	paths->list.count = kept;
	return NULL;
}

void prb_paths_deinit(struct prb_paths *paths)
{
	prb_vec_free(&paths->list);
}

/** True if another path ends in @p last. Paths that do are neighbours in the list. */
static bool is_ambiguous(const struct prb_paths *paths, const char *path, const char *last)
{
	const char **found = paths->list.count
				     ? bsearch(&path, paths->list.items, paths->list.count,
					       sizeof(*paths->list.items), compare)
				     : NULL;

	if (!found)
		return false;
	if (found > paths->list.items && !strcmp(prb_path_last(found[-1]), last))
		return true;
	return found + 1 < paths->list.items + paths->list.count &&
	       !strcmp(prb_path_last(found[1]), last);
}

const char *prb_paths_short(const struct prb_paths *paths, const char *path)
{
	const char *last = prb_path_last(path);

	if (paths->full)
		return path;
	if (last == path || (strncmp(last, "__", 2) != 0 && !is_ambiguous(paths, path, last)))
		return last;

	const char *folder = last - 1;
	while (folder > path && folder[-1] != '/')
		folder--;
	return folder;
}

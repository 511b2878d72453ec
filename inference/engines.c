/* SPDX-License-Identifier: GPL-3.0-or-later */
/* All descriptions: those of the program, and those in a folder of the user's. */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/own_file.h"
#include "base/file.h"
#include "base/str.h"
#include "inference/engine.h"

enum {
	FILES_MAX = 100,
	COMM_MAX = 15, /* bytes of a process's name that Linux keeps, TASK_COMM_LEN - 1 */
};

static const struct {
	const char *file, *text;
} built_in[] = {
#include "inference/engines.inc"
	{},
};

void prb_engines_deinit(struct prb_engines *engines)
{
	struct prb_engine **engine;

	prb_vec_each (engine, &engines->list)
		prb_engine_destroy(*engine);
	prb_vec_free(&engines->list);
}

static struct prb_error *add(struct prb_engines *engines, const char *file, const char *text,
			     size_t length)
{
	struct prb_engine *engine, **place;

	PRB_TRY(prb_engine_parse(file, text, length, &engine));
	place = prb_vec_push(&engines->list);
	if (!place) {
		prb_engine_destroy(engine);
		return prb_error_nomem();
	}
	*place = engine;
	return NULL;
}

static bool is_description(const char *name)
{
	size_t length = strlen(name), end = strlen(".engine");

	return length > end && *name != '.' && !strcmp(name + length - end, ".engine");
}

/** Reads a file that only its user and root can have written. */
static struct prb_error *add_file(const char *folder, const char *name, struct prb_engines *ret)
{
	prb_auto_free char *path = prb_format("%s/%s", folder, name);
	prb_auto_free char *text = malloc(PRB_ENGINE_FILE_MAX + 1);
	prb_auto_close int fd = -1;
	size_t length = 0;
	ssize_t n;

	if (!path || !text)
		return prb_error_nomem();
	PRB_TRY(prb_file_open(-1, path, &fd));
	if (!prb_file_is_safe(fd, path))
		return prb_error_hint(prb_error_create(PRB_ERROR_PERMISSION,
						       "%s: another user than you and root can "
						       "change it",
						       path),
				      "chmod go-w the file and its folders, or copy it");
	while (length <= PRB_ENGINE_FILE_MAX &&
	       (n = read(fd, text + length, PRB_ENGINE_FILE_MAX + 1 - length)) > 0)
		length += (size_t)n;
	return add(ret, path, text, length);
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static struct prb_error *add_folder(const char *folder, struct prb_engines *ret)
{
	prb_auto_closedir DIR *dir = opendir(folder);
	char *names[FILES_MAX];
	struct prb_error *err = NULL;
	struct dirent *entry;
	size_t count = 0;

	if (!dir)
		return prb_error_hint(prb_error_create(PRB_ERROR_NOT_FOUND,
						       "%s: there is no such folder", folder),
				      "PROBING_ENGINES names it");
	while (count < FILES_MAX && (entry = readdir(dir)))
		if (is_description(entry->d_name) && (names[count] = strdup(entry->d_name)))
			count++;
	qsort(names, count, sizeof(*names), compare);
	for (size_t i = 0; i < count; i++) {
		if (!err)
			err = add_file(folder, names[i], ret);
		free(names[i]);
	}
	return err;
}

/** True if a file of the user's replaces this one of ours. */
static bool is_replaced(const struct prb_engines *engines, const char *file)
{
	struct prb_engine *const *engine;

	prb_vec_each (engine, &engines->list) {
		const char *slash = strrchr((*engine)->file, '/');

		if (slash && !strcmp(slash + 1, file))
			return true;
	}
	return false;
}

struct prb_error *prb_engines_load(const char *folder, struct prb_engines *ret)
{
	if (folder && *folder)
		PRB_TRY(add_folder(folder, ret));
	for (size_t i = 0; built_in[i].file; i++)
		if (!is_replaced(ret, built_in[i].file))
			PRB_TRY(add(ret, built_in[i].file, built_in[i].text,
				    strlen(built_in[i].text)));
	return NULL;
}

const struct prb_engine_part *prb_engine_by_title(const struct prb_engine *engine,
						  const char *title, const char **ret_rest)
{
	const struct prb_engine_part *part;
	char *const *begin;

	prb_vec_each (part, &engine->parts)
		prb_vec_each (begin, &part->titles)
			if (!strncmp(title, *begin, strlen(*begin))) {
				*ret_rest = title + strlen(*begin);
				return part;
			}
	return NULL;
}

const struct prb_engine_part *prb_engine_by_comm(const struct prb_engine *engine, const char *comm)
{
	size_t length = comm ? strlen(comm) : 0;
	const struct prb_engine_part *part;
	char *const *begin;

	if (!length || !engine)
		return NULL;
	prb_vec_each (part, &engine->parts)
		prb_vec_each (begin, &part->titles) {
			size_t most = strlen(*begin);

			/* A longer title was cut. */
			if (length == COMM_MAX && most > length)
				most = length;
			if (length >= most && !strncmp(comm, *begin, most))
				return part;
		}
	return NULL;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/dashboards/dashboards.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/conflict.h"
#include "base/json.h"
#include "base/new_file.h"
#include "base/own_file.h"
#include "base/vec.h"
#include "gateway/dashboards/check.h"

enum { MOST = 100, NAME_SIZE = 32 };

static const char ENDING[] = ".json";

/** The built-in dashboards: a JSON object, by name. */
static const char OWN[] =
#include "gateway/dashboards/own.inc"
	;

struct prb_error *prb_dashboards_open(const char *path, struct prb_dashboards *ret)
{
	ret->folder = -1;
	return path ? prb_own_folder_named(path, &ret->folder) : NULL;
}

void prb_dashboards_close(struct prb_dashboards *dashboards)
{
	prb_close_guard(&dashboards->folder);
}

/** For the caller to free by json_decref(). */
static json_t *own_ones(void)
{
	json_t *all = json_loads(OWN, 0, NULL);
	json_t *list = json_incref(json_object_get(all, "dashboards"));

	json_decref(all);
	return list;
}

/** Appends a built-in dashboard; *found is false if there is none of that name. */
static struct prb_error *read_own(const char *name, struct prb_str *ret, bool *found)
{
	json_t *list = own_ones();
	const json_t *one = json_object_get(list, name);
	char *text = one ? json_dumps(one, JSON_COMPACT) : NULL;
	struct prb_error *err = !list || (one && !text) ? prb_error_nomem() : NULL;

	*found = text;
	if (text)
		prb_str_puts(ret, text);
	free(text);
	json_decref(list);
	return err;
}

/** Reads the file of a dashboard; *found is false if there is none. */
static struct prb_error *read_file(const struct prb_dashboards *d, const char *name,
				   struct prb_str *ret, bool *found)
{
	prb_auto_free char *file = prb_format("%s%s", name, ENDING);
	char chunk[4096];
	uint64_t size;
	ssize_t got;

	*found = false;
	if (!file)
		return prb_error_nomem();
	prb_auto_close int fd =
		d->folder < 0 ? -1 : prb_own_file_open(d->folder, file, O_RDONLY, geteuid(), &size);

	if (fd < 0)
		return d->folder < 0 || errno == ENOENT
			       ? NULL
			       : prb_error_os(errno, "cannot read the dashboard %s", file);
	*found = true;
	while ((got = read(fd, chunk, sizeof(chunk))) > 0 && ret->length <= PRB_DASHBOARD_MOST)
		prb_str_append(ret, chunk, (size_t)got);
	if (got < 0)
		return prb_error_os(errno, "cannot read the dashboard %s", file);
	return ret->failed ? prb_error_nomem() : NULL;
}

/** The checked text of one; *saved: it is a file of the folder. */
static struct prb_error *load(const struct prb_dashboards *d, const char *name, struct prb_str *ret,
			      bool *saved)
{
	prb_auto_str struct prb_str text = {};
	bool found;

	PRB_TRY(read_file(d, name, &text, saved));
	found = *saved;
	if (!found)
		PRB_TRY(read_own(name, &text, &found));
	if (!found)
		return prb_error_hint(prb_error_create(PRB_ERROR_NOT_FOUND,
						       "there is no dashboard '%.32s'", name),
				      "/v1/dashboards lists them");

	struct prb_error *err = prb_dashboard_check(prb_str_text(&text), text.length, ret);

	if (err && err->code == PRB_ERROR_USAGE) {
		prb_auto_error struct prb_error *why = err;

		return prb_error_create(PRB_ERROR_BAD_DATA, "the file of the dashboard: %s",
					why->message);
	}
	return err;
}

struct prb_error *prb_dashboards_get(const struct prb_dashboards *d, const char *name,
				     struct prb_str *ret)
{
	bool saved;

	return load(d, name, ret, &saved);
}

struct names {
	PRB_VEC(char *) list;
};

static void names_deinit(struct names *names)
{
	char **name;

	prb_vec_each (name, &names->list)
		free(*name);
	prb_vec_free(&names->list);
}

static struct prb_error *add_name(struct names *names, const char *name, size_t length)
{
	char **place = prb_vec_push(&names->list);

	if (place)
		*place = strndup(name, length);
	return place && *place ? NULL : prb_error_nomem();
}

static bool has_name(const struct names *names, const char *name)
{
	char *const *one;

	prb_vec_each (one, &names->list)
		if (!strcmp(*one, name))
			return true;
	return false;
}

static int by_name(const void *a, const void *b)
{
	const char *const *x = a, *const *y = b;

	return strcmp(*x, *y);
}

/** The names of the files in the folder. */
static struct prb_error *find_names(const struct prb_dashboards *d, struct names *ret)
{
	int fd = d->folder < 0 ? -1 : openat(d->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	struct prb_error *err = NULL;
	const struct dirent *entry;

	if (!folder && fd >= 0)
		close(fd);
	while (folder && !err && ret->list.count < MOST && (entry = readdir(folder))) {
		size_t length = strlen(entry->d_name), end = sizeof(ENDING) - 1;

		if (length > end && length - end < NAME_SIZE &&
		    !strcmp(entry->d_name + length - end, ENDING) &&
		    strspn(entry->d_name, PRB_DASHBOARD_LETTERS) == length - end)
			err = add_name(ret, entry->d_name, length - end);
	}
	if (folder)
		closedir(folder);
	if (ret->list.count)
		qsort(ret->list.items, ret->list.count, sizeof(*ret->list.items), by_name);
	return err;
}

static struct prb_error *put_entry(const struct prb_dashboards *d, const char *name,
				   struct prb_json *json)
{
	prb_auto_str struct prb_str text = {}, title = {};
	bool saved = false;
	prb_auto_error struct prb_error *err = load(d, name, &text, &saved);

	if (err && err->code == PRB_ERROR_NOMEM)
		return prb_steal(&err);
	if (!err)
		PRB_TRY(prb_dashboard_title(&text, &title));
	prb_json_open(json, NULL, '{');
	prb_json_text(json, "name", name);
	prb_json_text(json, "title", err ? name : prb_str_text(&title));
	prb_json_bool(json, "saved", saved);
	prb_json_text(json, "error", err ? err->message : NULL);
	prb_json_close(json, '}');
	return NULL;
}

/** Appends the built-in dashboards whose names no saved one has. */
static struct prb_error *put_own(const struct prb_dashboards *d, const struct names *names,
				 struct prb_json *json)
{
	json_t *list = own_ones(), *one;
	struct prb_error *err = list ? NULL : prb_error_nomem();
	const char *name;

	json_object_foreach(list, name, one) if (!err && !has_name(names, name)) err =
		put_entry(d, name, json);
	json_decref(list);
	return err;
}

struct prb_error *prb_dashboards_list(const struct prb_dashboards *d, struct prb_str *ret)
{
	__attribute__((cleanup(names_deinit))) struct names names = {};
	struct prb_json json = {ret};
	char **name;

	PRB_TRY(find_names(d, &names));
	prb_json_open(&json, NULL, '{');
	prb_json_bool(&json, "folder", d->folder >= 0);
	prb_json_open(&json, "dashboards", '[');
	PRB_TRY(put_own(d, &names, &json));
	prb_vec_each (name, &names.list)
		PRB_TRY(put_entry(d, *name, &json));
	prb_json_close(&json, ']');
	prb_json_close(&json, '}');
	return NULL;
}

static struct prb_error *no_folder(void)
{
	return prb_error_hint(prb_conflict_create("dashboards are not kept here"),
			      "'probing serve --dashboards FOLDER' keeps them as files");
}

struct prb_error *prb_dashboards_save(const struct prb_dashboards *d, const char *name,
				      const char *text)
{
	prb_auto_new_file struct prb_new_file file = PRB_NO_FILE;
	__attribute__((cleanup(names_deinit))) struct names names = {};
	prb_auto_free char *path = prb_format("%s%s", name, ENDING);
	prb_auto_str struct prb_str checked = {};

	PRB_TRY(prb_dashboard_check(text, strlen(text), &checked));
	if (d->folder < 0)
		return no_folder();
	PRB_TRY(find_names(d, &names));
	if (!has_name(&names, name) && names.list.count >= MOST)
		return prb_error_create(PRB_ERROR_USAGE, "there are %d dashboards already", MOST);
	if (!path)
		return prb_error_nomem();
	PRB_TRY(prb_new_file_open_in(&file, d->folder, path));
	for (size_t at = 0; at < checked.length;) {
		ssize_t written = write(file.fd, checked.data + at, checked.length - at);

		if (written < 0 && errno != EINTR)
			return prb_error_os(errno, "cannot write the dashboard %s", path);
		at += written > 0 ? (size_t)written : 0;
	}
	return prb_new_file_finish(&file);
}

struct prb_error *prb_dashboards_remove(const struct prb_dashboards *d, const char *name)
{
	prb_auto_free char *path = prb_format("%s%s", name, ENDING);
	prb_auto_str struct prb_str own = {};
	bool comes_with_us;

	if (!path)
		return prb_error_nomem();
	PRB_TRY(read_own(name, &own, &comes_with_us));
	if (d->folder < 0 && comes_with_us)
		return no_folder();
	if (d->folder >= 0 && !unlinkat(d->folder, path, 0))
		return NULL;
	return d->folder < 0 || errno == ENOENT
		       ? prb_error_create(PRB_ERROR_NOT_FOUND, "no dashboard '%.32s' is kept here",
					  name)
		       : prb_error_os(errno, "cannot remove the dashboard %s", path);
}

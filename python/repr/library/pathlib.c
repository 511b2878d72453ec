/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * pathlib paths. Their text is computed when first needed and kept in `_str`; before that it is
 * put together here, for POSIX paths: from the parts, or from the arguments as they were given.
 */
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "python/repr/core/handlers.h"

enum { PARTS_MAX = 1024, PART_CHARACTERS = 4096 };

static struct prb_error *get_text(struct prb_repr *r, uint64_t object, const char *name,
				  struct prb_str *ret)
{
	uint64_t value;

	PRB_TRY(prb_repr_attribute(r, object, name, &value));
	return prb_repr_raw_text(r, value, PART_CHARACTERS, ret);
}

/* Addresses of the items of a list; the caller frees *ret. */
static struct prb_error *get_list(struct prb_repr *r, uint64_t object, const char *name,
				  uint64_t **ret, size_t *count)
{
	uint64_t list, length, address;

	PRB_TRY(prb_repr_attribute(r, object, name, &list));
	if (!prb_repr_is(r, list, "list"))
		return prb_error_create(PRB_ERROR_NOT_FOUND, "'%s' is no list", name);
	PRB_TRY(prb_repr_size(r, list, &length));
	if (length > PARTS_MAX)
		return prb_repr_bad(list, "a path of too many parts");
	PRB_TRY(prb_repr_word(r, list + (uint64_t)r->layout->list_items, &address));

	prb_auto_free uint64_t *items = calloc(length + 1, sizeof(*items));

	if (!items)
		return prb_error_nomem();
	PRB_TRY(prb_repr_words(r, address, length, items));
	*ret = prb_steal(&items);
	*count = length;
	return NULL;
}

/* `_drv`, `_root` and `_parts` (up to 3.11, where the first part is the anchor). */
static struct prb_error *join_parsed(struct prb_repr *r, uint64_t object, const char *parts,
				     bool with_anchor, struct prb_str *ret)
{
	prb_auto_free uint64_t *items = NULL;
	prb_auto_str struct prb_str root = {};
	size_t count;

	PRB_TRY(get_list(r, object, parts, &items, &count));
	PRB_TRY(get_text(r, object, "_root", &root));
	prb_str_puts(ret, prb_str_text(&root));
	for (size_t i = with_anchor && root.length; i < count; i++) {
		if (i > (with_anchor && root.length))
			prb_str_putc(ret, '/');
		PRB_TRY(prb_repr_raw_text(r, items[i], PART_CHARACTERS, ret));
	}
	return NULL;
}

/* Appends the parts of a path without empty ones and ".". */
static void normalise(const char *path, struct prb_str *ret)
{
	size_t slashes = strspn(path, "/");

	/* Exactly two slashes mean something of their own. */
	prb_str_puts(ret, slashes == 2 ? "//" : slashes ? "/" : "");

	size_t root = ret->length;

	for (const char *at = path; *at;) {
		size_t length = strcspn(at, "/");

		if (length && !(length == 1 && *at == '.')) {
			if (ret->length > root)
				prb_str_putc(ret, '/');
			prb_str_append(ret, at, length);
		}
		at += length + (at[length] == '/');
	}
}

/* The arguments of the constructor, since 3.12; an absolute one drops those before it. */
static struct prb_error *join_raw(struct prb_repr *r, uint64_t object, struct prb_str *ret)
{
	prb_auto_free uint64_t *items = NULL;
	prb_auto_str struct prb_str path = {};
	size_t count;

	PRB_TRY(get_list(r, object, "_raw_paths", &items, &count));
	for (size_t i = 0; i < count; i++) {
		prb_auto_str struct prb_str part = {};

		PRB_TRY(prb_repr_raw_text(r, items[i], PART_CHARACTERS, &part));
		if (*prb_str_text(&part) == '/')
			prb_str_truncate(&path, 0);
		else if (path.length && path.data[path.length - 1] != '/')
			prb_str_putc(&path, '/');
		prb_str_puts(&path, prb_str_text(&part));
	}
	normalise(prb_str_text(&path), ret);
	return NULL;
}

static struct prb_error *find_path(struct prb_repr *r, uint64_t object, struct prb_str *ret)
{
	struct prb_error *err = get_text(r, object, "_str", ret);

	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		err = join_parsed(r, object, "_parts", true, ret);
	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		err = join_parsed(r, object, "_tail_cached", false, ret);
	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND)) {
		prb_str_truncate(ret, 0);
		err = join_raw(r, object, ret);
	}
	if (!err && !ret->length)
		prb_str_putc(ret, '.');
	return err;
}

/* A path of Windows, or one of a class derived from that. */
static struct prb_error *is_windows(struct prb_repr *r, const struct prb_type *type, bool *ret)
{
	uint64_t mro[PRB_MRO_MAX];
	size_t count;

	*ret = false;
	PRB_TRY(prb_repr_mro(r, type, mro, &count));
	for (size_t i = 0; i < count && !*ret; i++) {
		struct prb_type *class;

		PRB_TRY(prb_repr_type(r, mro[i], &class));
		*ret = !strcmp(class->name, "PureWindowsPath");
	}
	return NULL;
}

/*
 * The text as it is printed, with slashes. It does not exist until the program has requested it:
 * drives and shares make it hard to compute.
 */
static struct prb_error *find_windows_path(struct prb_repr *r, uint64_t object, struct prb_str *ret)
{
	PRB_TRY(get_text(r, object, "_str", ret));
	for (size_t i = 0; i < ret->length; i++)
		if (ret->data[i] == '\\')
			ret->data[i] = '/';
	return NULL;
}

struct prb_error *prb_repr_handle_path(struct prb_repr *r, uint64_t object, struct prb_type *type)
{
	prb_auto_str struct prb_str path = {};
	bool windows;

	PRB_TRY(is_windows(r, type, &windows));

	struct prb_error *err =
		windows ? find_windows_path(r, object, &path) : find_path(r, object, &path);
	if (windows && prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		return prb_repr_handle_default(r, object, type);
	PRB_TRY(err);
	PRB_TRY(prb_repr_put_name(r, type));
	prb_str_putc(r->out, '(');
	PRB_TRY(prb_repr_quote_raw(r, &path));
	prb_str_putc(r->out, ')');
	return NULL;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sql/tables/values.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "sql/engine/instant.h"
#include "sql/tables/interpreters.h"

enum { PARTS_MAX = 20000000 };

static void clear(struct prb_value_parts *parts)
{
	struct prb_value_part *part;

	prb_vec_each (part, &parts->list) {
		free(part->name);
		free(part->text);
		free(part->owner);
	}
	parts->list.count = 0;
	prb_error_destroy(prb_steal(&parts->err));
}

static void end(void *state)
{
	struct prb_value_parts *parts = state;

	clear(parts);
	prb_vec_free(&parts->list);
	prb_objects_destroy(parts->objects);
	free(parts);
}

struct prb_value_part *prb_value_part_add(struct prb_value_parts *parts)
{
	struct prb_value_part *part = NULL;

	if (parts->list.count < PARTS_MAX)
		part = prb_vec_push(&parts->list);
	if (!part)
		parts->err = prb_error_nomem();
	return part;
}

/* In whichever Python takes it for an object. */
static struct prb_error *find(struct prb_scan *scan, struct prb_value_parts *parts,
			      prb_value_finder *finder)
{
	struct prb_pythons *pythons;
	struct prb_error *err = NULL;

	PRB_TRY(prb_instant_pythons(scan->instant, &pythons, &parts->mem));
	for (size_t i = 0; i < pythons->list.count; i++) {
		prb_error_destroy(err);
		clear(parts);
		parts->py = pythons->list.items[i];
		err = finder(parts);
		if (parts->err) {
			prb_error_destroy(err);
			return prb_steal(&parts->err);
		}
		if (!err)
			break;
	}
	if (!parts->py)
		return prb_error_create(PRB_ERROR_NOT_FOUND, "there is no Python in it");
	PRB_TRY(prb_objects_create(parts->py, parts->mem, NULL, &parts->objects));
	return err;
}

static struct prb_error *no_address(const struct prb_scan *scan)
{
	return prb_error_hint(prb_error_create(PRB_ERROR_USAGE,
					       "%s.%s needs to know the address of an object",
					       scan->table->schema, scan->table->name),
			      "for example SELECT x.* FROM python.locals l, %s.%s(l.address) x "
			      "WHERE l.name = 'self'",
			      scan->table->schema, scan->table->name);
}

/* A row that says why there are no others. */
static struct prb_error *put_failure(struct prb_scan *scan, unsigned address, unsigned error,
				     uint64_t object, struct prb_error *err)
{
	struct prb_error *mine = prb_scan_row(scan);

	if (mine) {
		prb_error_destroy(err);
		return mine;
	}
	prb_put_integer(scan, address, (int64_t)object);
	return prb_put_reason(scan, error, err);
}

static struct prb_error *begin(struct prb_scan *scan, unsigned address, unsigned error,
			       prb_value_finder *finder, bool *done)
{
	struct prb_value_parts *parts = calloc(1, sizeof(*parts));
	struct prb_error *err;
	int64_t object;

	if (!parts)
		return prb_error_nomem();
	scan->state = parts;
	scan->end = end;
	*done = true;
	/* Joined with an address that is not known: no row. */
	if (!prb_scan_key_integer(scan, address, &object))
		return prb_scan_keyed(scan, address) ? NULL : no_address(scan);
	parts->object = (uint64_t)object;
	parts->error = error;
	err = find(scan, parts, finder);
	*done = err;
	return err ? put_failure(scan, address, error, parts->object, err) : NULL;
}

struct prb_error *prb_value_scan(struct prb_scan *scan, unsigned address, unsigned error,
				 prb_value_finder *finder, prb_value_putter *put)
{
	struct prb_value_parts *parts;
	bool done = false;

	if (!scan->state)
		PRB_TRY(begin(scan, address, error, finder, &done));
	parts = scan->state;
	for (; !done && scan->position < parts->list.count; scan->position++) {
		if (prb_scan_full(scan)) {
			scan->more = true;
			return NULL;
		}
		PRB_TRY(prb_scan_row(scan));
		prb_put_integer(scan, address, (int64_t)parts->object);
		PRB_TRY(put(scan, parts, scan->position));
	}
	if (!done && parts->torn)
		return put_failure(
			scan, address, error, parts->object,
			prb_error_create(PRB_ERROR_BAD_DATA,
					 "it was changing while it was read: more may be "
					 "missing"));
	return NULL;
}

struct prb_error *prb_put_type(struct prb_scan *scan, const struct prb_value_parts *parts,
			       unsigned type, uint64_t object)
{
	prb_auto_str struct prb_str name = {};

	if (!prb_scan_wants(scan, type))
		return NULL;

	struct prb_error *err = prb_objects_type_name(parts->objects, object, &name);
	if (err)
		return prb_put_reason(scan, parts->error, err);
	prb_put_text(scan, type, prb_str_text(&name));
	return NULL;
}

struct prb_error *prb_put_value(struct prb_scan *scan, const struct prb_value_parts *parts,
				unsigned type, uint64_t object, const char *text)
{
	prb_auto_str struct prb_str value = {};

	if (!object) {
		prb_put_text(scan, type, text ? prb_repr_text_type(text) : NULL);
		prb_put_text(scan, type + 1, text);
		return NULL;
	}
	prb_put_integer(scan, type + 2, (int64_t)object);
	PRB_TRY(prb_put_type(scan, parts, type, object));
	if (!prb_scan_wants(scan, type + 1))
		return NULL;
	PRB_TRY(prb_objects_repr(parts->objects, object, &value));
	prb_put_bytes(scan, type + 1, prb_str_text(&value), value.length);
	return NULL;
}

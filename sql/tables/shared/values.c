/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sql/tables/shared/values.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "dump/tasks/consistent_read.h"
#include "sql/engine/instant.h"
#include "target/custom.h"
#include "sql/tables/shared/interpreters.h"

enum { PARTS_MAX = 8000000 /* 1.3 GB */, TRIED_MAX = 20000, OBJECTS_OF_VIEW = 100 };

static void clear(struct prb_value_parts *parts)
{
	struct prb_value_part *part;

	prb_vec_each (part, &parts->list) {
		free(part->name);
		free(part->text);
		free(part->owner);
		free(part->why);
		prb_str_deinit(&part->key_text);
		prb_str_deinit(&part->value_text);
		prb_str_deinit(&part->type);
	}
	parts->list.count = 0;
	parts->cut = false;
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
	struct prb_value_part *part;

	parts->cut = parts->list.count >= PARTS_MAX;
	if (parts->cut)
		return NULL;
	part = prb_vec_push(&parts->list);
	if (!part)
		parts->err = prb_error_nomem();
	return part;
}

static struct prb_error *begin_objects(struct prb_value_parts *parts)
{
	prb_objects_destroy(parts->objects);
	parts->objects = NULL;
	return prb_objects_create(parts->py, parts->mem, &parts->options, &parts->objects);
}

/* In whichever Python takes it for an object. */
static struct prb_error *find(struct prb_pythons *pythons, struct prb_value_parts *parts,
			      const struct prb_value_table *table)
{
	struct prb_error *err = NULL;

	parts->torn = parts->garbled = false;
	for (size_t i = 0; i < pythons->list.count; i++) {
		prb_error_destroy(err);
		clear(parts);
		parts->py = pythons->list.items[i];
		err = table->find(parts);
		if (parts->err) {
			prb_error_destroy(err);
			return prb_steal(&parts->err);
		}
		if (!err)
			return begin_objects(parts);
	}
	return err ? err : prb_error_create(PRB_ERROR_NOT_FOUND, "there is no Python in it");
}

static bool is_garbled(const struct prb_str *text)
{
	return strstr(prb_str_text(text), "<unreadable at ") ||
	       strstr(prb_str_text(text), "…unreadable");
}

/* Reads the texts of a part that are wanted. */
static struct prb_error *show(struct prb_scan *scan, struct prb_value_parts *parts,
			      const struct prb_value_table *table, struct prb_value_part *part)
{
	struct prb_error *err = NULL;

	if (part->shown)
		return NULL;
	part->shown = true;
	if (part->key && prb_scan_wants(scan, table->key))
		PRB_TRY(prb_objects_repr(parts->objects, part->key, &part->key_text));
	if (part->value && !part->computed && prb_scan_wants(scan, table->type + 1))
		PRB_TRY(prb_objects_repr(parts->objects, part->value, &part->value_text));
	if (part->value && !part->computed && table->number && prb_scan_wants(scan, table->number))
		err = prb_objects_number(parts->objects, part->value, &part->number);
	if (!err && part->value && prb_scan_wants(scan, table->type))
		err = prb_objects_type_name(parts->objects, part->value, &part->type);
	parts->garbled |= err || is_garbled(&part->key_text) || is_garbled(&part->value_text);
	if (err && err->code == PRB_ERROR_NOMEM)
		return err;
	if (err)
		part->why = strdup(err->message);
	prb_error_destroy(err);
	return NULL;
}

/* State shared by the objects of a statement, for a running target. */
struct shared {
	struct prb_tasks tasks;
	struct prb_view *view; /* of one object after the other */
	unsigned objects;      /* that it was used for */
};

static struct prb_error *create_shared(struct prb_instant *instant, void **ret)
{
	struct shared *shared = calloc(1, sizeof(*shared));

	if (!shared)
		return prb_error_nomem();
	*ret = shared;
	return prb_tasks_create(prb_instant_target(instant), &shared->tasks);
}

static void end_shared(void *memo)
{
	struct shared *shared = memo;

	prb_tasks_deinit(&shared->tasks);
	prb_view_destroy(shared->view);
	free(shared);
}

/* Pages of types are those of the object before; where those of old ones have become many, all are
 * forgotten. */
static struct prb_error *use_view(struct shared *shared, struct prb_target *target)
{
	if (shared->objects++ % OBJECTS_OF_VIEW)
		return NULL;
	prb_view_destroy(shared->view);
	shared->view = NULL;
	return prb_view_create(target->mem, &shared->view);
}

/* Behind the last part that is asked for. */
static size_t end_of(const struct prb_value_parts *parts)
{
	return PRB_MIN(parts->list.count, parts->to);
}

struct attempt {
	struct prb_scan *scan;
	const struct prb_value_table *table;
	struct prb_pythons *pythons;
	struct prb_value_parts *parts;
	struct shared *shared;
	bool again;
	struct prb_error *err; /* there is no object */
};

static struct prb_error *find_once(void *context)
{
	struct attempt *a = context;
	struct prb_value_parts *parts = a->parts;

	if (!a->again)
		PRB_TRY(prb_view_prefetch(a->shared->view));
	a->again = true;
	prb_error_destroy(a->err);
	a->err = find(a->pythons, parts, a->table);
	if (a->err)
		/* It may lie in memory that was not copied: the next attempt copies that too. */
		return prb_view_misses(a->shared->view) ? prb_error_copy(a->err) : NULL;
	for (size_t i = parts->from; i < PRB_MIN(end_of(parts), parts->from + TRIED_MAX); i++)
		PRB_TRY(show(a->scan, parts, a->table, &parts->list.items[i]));
	return parts->torn || parts->garbled
		       ? prb_error_create(PRB_ERROR_BAD_DATA, "it is being changed")
		       : NULL;
}

/* Reads the object at one instant. Of the parts that are asked for, the texts after the first
 * TRIED_MAX are read later. */
static struct prb_error *find_steady(struct attempt *a)
{
	static const char key;
	struct prb_value_parts *parts = a->parts;
	struct prb_target *target = prb_instant_target(a->scan->instant);
	struct prb_mem *mem = parts->mem;
	void *shared;
	bool consistent;

	PRB_TRY(prb_instant_memo(a->scan->instant, &key, create_shared, end_shared, &shared));
	a->shared = shared;
	PRB_TRY(prb_tasks_update(&a->shared->tasks, target));
	PRB_TRY(use_view(a->shared, target));
	parts->mem = prb_view_mem(a->shared->view);

	struct prb_error *err = prb_read_consistent(target, &a->shared->tasks, a->shared->view,
						    find_once, a, &consistent);
	parts->mem = mem;
	/* A partly read object is shown, with an error. */
	if (err && !a->err && (parts->torn || parts->garbled)) {
		prb_error_destroy(err);
		err = NULL;
	}
	if (err)
		prb_error_destroy(a->err);
	if (err || a->err)
		return err ? err : a->err;
	parts->torn |= !consistent;
	return begin_objects(parts);
}

static struct prb_error *find_parts(struct prb_scan *scan, struct prb_value_parts *parts,
				    const struct prb_value_table *table)
{
	struct prb_pythons *pythons;

	parts->options = prb_instant_repr(scan->instant);
	PRB_TRY(prb_instant_pythons(scan->instant, &pythons, &parts->mem));
	if (!prb_instant_target(scan->instant)->moves ||
	    prb_instant_mode(scan->instant) == PRB_DUMP_NONBLOCKING)
		return find(pythons, parts, table);
	return find_steady(&(struct attempt){
		.scan = scan, .table = table, .pythons = pythons, .parts = parts});
}

struct prb_error *prb_value_address(const struct prb_scan *scan, unsigned column, const char *what,
				    const char *name, uint64_t *ret, bool *known)
{
	int64_t address = 0;

	*known = prb_scan_key_integer(scan, column, &address);
	*ret = (uint64_t)address;
	if (*known || prb_scan_keyed(scan, column))
		return NULL;
	return prb_error_hint(prb_error_create(PRB_ERROR_USAGE,
					       "%s.%s needs to know the address of %s",
					       scan->table->schema, scan->table->name, what),
			      "for example SELECT x.* FROM python.locals l, %s.%s(l.address) x "
			      "WHERE l.name = '%s'",
			      scan->table->schema, scan->table->name, name);
}

struct prb_error *prb_value_failure(struct prb_scan *scan, unsigned address, unsigned error,
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

static struct prb_error *put_failure(struct prb_scan *scan, const struct prb_value_table *table,
				     uint64_t object, struct prb_error *err)
{
	return prb_value_failure(scan, table->address, table->error, object, err);
}

static void find_range(const struct prb_scan *scan, const struct prb_value_table *table,
		       struct prb_value_parts *ret)
{
	double from = 0, to = PARTS_MAX;

	if (table->place)
		prb_scan_range(scan, table->place - 1, &from, &to);
	ret->from = (size_t)PRB_MIN(from, (double)PARTS_MAX);
	ret->to = to < 0 ? 0 : (size_t)to + 1;
}

static struct prb_error *begin(struct prb_scan *scan, const struct prb_value_table *table,
			       bool *done)
{
	struct prb_value_parts *parts = calloc(1, sizeof(*parts));
	struct prb_error *err;
	bool known;

	if (!parts)
		return prb_error_nomem();
	scan->state = parts;
	scan->end = end;
	*done = true;
	PRB_TRY(prb_value_address(scan, table->address, "an object", "self", &parts->object,
				  &known));
	if (!known)
		return NULL;
	find_range(scan, table, parts);
	scan->position = parts->from;
	err = find_parts(scan, parts, table);
	*done = err;
	return err ? put_failure(scan, table, parts->object, err) : NULL;
}

/* Applies extensions to marked parts. */
static struct prb_error *customise(struct prb_value_parts *parts, struct prb_value_part *part)
{
	const struct prb_custom *custom = parts->py ? parts->py->target->custom : NULL;

	PRB_TRY(prb_custom_expand(custom, &part->key_text));
	return prb_custom_expand(custom, &part->value_text);
}

/** A value in C is given as text; that of an int has digits only. */
static void put_number_text(struct prb_scan *scan, unsigned column, const char *text)
{
	char *end;

	errno = 0;
	int64_t number = strtoll(text, &end, 10);
	if (end != text && !*end && !errno)
		prb_put_integer(scan, column, number);
}

static void put_number(struct prb_scan *scan, unsigned column, const struct prb_value_part *part)
{
	if (part->number.kind == PRB_NUMBER_INTEGER)
		prb_put_integer(scan, column, part->number.integer);
	if (part->number.kind == PRB_NUMBER_REAL)
		prb_put_real(scan, column, part->number.real);
	if (!part->value && part->text)
		put_number_text(scan, column, part->text);
}

static struct prb_error *put_value(struct prb_scan *scan, const struct prb_value_table *table,
				   const struct prb_value_part *part)
{
	if (table->number)
		put_number(scan, table->number, part);
	if (!part->value) {
		prb_put_text(scan, table->type, part->text ? prb_repr_text_type(part->text) : NULL);
		prb_put_text(scan, table->type + 1, part->text);
		return NULL;
	}
	if (part->type.length)
		prb_put_text(scan, table->type, prb_str_text(&part->type));
	if (part->why)
		PRB_TRY(prb_put_reason(scan, table->error,
				       prb_error_create(PRB_ERROR_BAD_DATA, "%s", part->why)));
	if (part->computed)
		return NULL;
	prb_put_integer(scan, table->type + 2, (int64_t)part->value);
	prb_put_bytes(scan, table->type + 1, prb_str_text(&part->value_text),
		      part->value_text.length);
	return NULL;
}

struct prb_error *prb_value_scan(struct prb_scan *scan, const struct prb_value_table *table)
{
	struct prb_value_parts *parts;
	bool done = false;

	if (!scan->state)
		PRB_TRY(begin(scan, table, &done));
	parts = scan->state;
	for (; !done && scan->position < end_of(parts); scan->position++) {
		struct prb_value_part *part = &parts->list.items[scan->position];

		if (prb_scan_full(scan)) {
			scan->more = true;
			return NULL;
		}
		PRB_TRY(prb_scan_row(scan));
		PRB_TRY(show(scan, parts, table, part));
		PRB_TRY(customise(parts, part));
		prb_put_integer(scan, table->address, (int64_t)parts->object);
		table->put(scan, part, scan->position);
		PRB_TRY(put_value(scan, table, part));
	}
	if (!done && parts->cut)
		return put_failure(scan, table, parts->object,
				   prb_error_create(PRB_ERROR_BAD_DATA,
						    "it has more than %d parts: the others are "
						    "left out",
						    PARTS_MAX));
	if (!done && parts->torn)
		return put_failure(
			scan, table, parts->object,
			prb_error_create(PRB_ERROR_BAD_DATA,
					 "it was changing while it was read: more may be "
					 "missing"));
	return NULL;
}

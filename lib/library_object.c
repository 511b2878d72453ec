/* SPDX-License-Identifier: GPL-3.0-or-later */
/* libprobing: objects of the target one by one, for callers that walk them. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "dwarf/elf/module.h"
#include "lib/library_private.h"
#include "python/repr/core/attributes.h"
#include "python/repr/core/items.h"
#include "target/custom.h"
#include "target/snapshot/snapshot.h"
#include "values/census/size.h"
#include "values/part.h"

/* How old what was read of a process that runs may be. */
static const double max_age = 0.01;

struct prb_library_objects {
	struct prb_target *target;
	struct prb_view *view;
	struct prb_modules *modules;
	struct prb_pythons pythons;
	PRB_VEC(struct prb_parts *) parts;	/* one for each Python */
	PRB_VEC(struct prb_measure *) measures; /* the same; NULL: none was asked for */
	double read_at;
	struct prb_str text; /* of an answer */
};

static void forget_measures(struct prb_library_objects *o)
{
	struct prb_measure **measure;

	prb_vec_each (measure, &o->measures) {
		prb_measure_destroy(*measure);
		*measure = NULL;
	}
}

void prb_library_objects_destroy(struct prb_library_objects *o)
{
	struct prb_parts **parts;

	if (!o)
		return;
	forget_measures(o);
	prb_vec_free(&o->measures);
	prb_vec_each (parts, &o->parts)
		prb_parts_destroy(*parts);
	prb_vec_free(&o->parts);
	prb_pythons_deinit(&o->pythons);
	prb_view_destroy(o->view);
	prb_modules_destroy(o->modules);
	prb_str_deinit(&o->text);
	free(o);
}

static struct prb_error *fill(struct prb_library_objects *o)
{
	struct prb_python **py;

	PRB_TRY(prb_target_check_memory(o->target));
	PRB_TRY(prb_view_create(o->target->mem, &o->view));
	PRB_TRY(prb_pythons_open(o->target, o->view, false, &o->modules, &o->pythons));
	prb_vec_each (py, &o->pythons.list) {
		struct prb_parts **parts = prb_vec_push(&o->parts);

		if (!parts || !prb_vec_push(&o->measures))
			return prb_error_nomem();
		PRB_TRY(prb_parts_create(*py, prb_view_mem(o->view), parts));
	}
	return NULL;
}

static struct prb_error *create(struct probing *p)
{
	struct prb_library_objects *o;
	struct prb_error *err;

	if (prb_session_target_count(p->session) != 1)
		return prb_error_create(PRB_ERROR_USAGE, "objects are read in one target");
	if (prb_snapshot_redacted(prb_session_target(p->session)))
		return prb_error_create(PRB_ERROR_UNSUPPORTED, "values were left out when this "
							       "snapshot was made (--redact)");
	o = calloc(1, sizeof(*o));
	if (!o)
		return prb_error_nomem();
	o->target = prb_session_target(p->session);
	err = fill(o);
	if (err)
		prb_library_objects_destroy(o);
	else
		p->objects = o;
	return err;
}

static void forget(struct prb_library_objects *o)
{
	struct prb_parts **parts;

	prb_view_new_epoch(o->view);
	prb_vec_each (parts, &o->parts)
		prb_parts_forget(*parts);
	forget_measures(o);
	o->read_at = prb_clock_seconds();
}

/* Makes ready what was read, unless it is too old. */
static struct prb_error *begin(struct probing *p)
{
	if (!p->objects)
		PRB_TRY(create(p));
	if (p->objects->target->live && prb_clock_seconds() - p->objects->read_at > max_age)
		forget(p->objects);
	return NULL;
}

static int32_t outcome_of(const struct prb_error *err, bool needs_code)
{
	if (!err)
		return PROBING_OBJECT_FOUND;
	if (needs_code)
		return PROBING_OBJECT_NEEDS_CODE;
	if (err->code == PRB_ERROR_NOT_FOUND)
		return PROBING_OBJECT_MISSING;
	return PROBING_OBJECT_GONE;
}

/* In whichever Python takes it for an object. */
static struct prb_error *read_once(struct probing *p, const struct prb_part_wanted *wanted,
				   const struct prb_part_answer **answer, int32_t *outcome)
{
	struct prb_error *err = prb_error_create(PRB_ERROR_NOT_FOUND, "there is no Python in it");
	struct prb_parts **parts;
	bool needs_code;

	prb_vec_each (parts, &p->objects->parts) {
		prb_error_destroy(err);
		err = prb_parts_read(*parts, wanted, answer, &needs_code);
		*outcome = outcome_of(err, needs_code);
		if (*outcome != PROBING_OBJECT_GONE)
			return err;
	}
	return err;
}

/* The text is ours until the next answer, since an extension may have changed it. */
static struct prb_error *answer_with(struct probing *p, const struct prb_part_answer *a,
				     struct probing_object *ret)
{
	const struct prb_custom *custom = prb_session_custom(p->session);
	struct prb_str *text = &p->objects->text;

	ret->address = a->object;
	ret->type = a->type;
	ret->kind = (int32_t)a->kind;
	ret->integer = a->integer;
	ret->real = a->real;
	ret->text = prb_str_text(&a->text);
	ret->length = a->text.length;
	if (!custom)
		return NULL;
	prb_str_truncate(text, 0);
	prb_str_append(text, ret->text, ret->length);
	PRB_TRY(prb_custom_expand(custom, text));
	ret->text = prb_str_text(text);
	ret->length = text->length;
	return NULL;
}

/* The Python that owns the object, after a check that it is still the same object. */
static struct prb_error *owner_of(struct probing *p, uint64_t address, uint64_t type, size_t *ret,
				  int32_t *outcome)
{
	struct prb_part_wanted wanted = {.object = address, .type = type};
	struct prb_error *err = prb_error_create(PRB_ERROR_NOT_FOUND, "there is no Python in it");
	const struct prb_part_answer *answer;
	bool needs_code;

	for (*ret = 0; *ret < p->objects->parts.count; ++*ret) {
		prb_error_destroy(err);
		err = prb_parts_read(p->objects->parts.items[*ret], &wanted, &answer, &needs_code);
		*outcome = outcome_of(err, needs_code);
		if (!err)
			break;
	}
	return err;
}

/* The bytes of an object. */
static struct prb_error *measure(struct probing *p, uint64_t address, uint64_t type,
				 struct probing_object *ret)
{
	struct prb_library_objects *o = p->objects;
	struct prb_error *err;
	uint64_t bytes;
	size_t at;

	PRB_TRY(owner_of(p, address, type, &at, &ret->outcome));
	if (!o->measures.items[at])
		PRB_TRY(prb_measure_create(o->pythons.list.items[at], prb_view_mem(o->view),
					   &o->measures.items[at]));
	err = prb_measure_object(o->measures.items[at], address, &bytes);
	ret->outcome = outcome_of(err, false);
	PRB_TRY(err);
	ret->address = ret->type = 0;
	ret->kind = PROBING_OBJECT_INT;
	ret->integer = (int64_t)bytes;
	ret->text = "";
	ret->length = 0;
	return NULL;
}

static struct prb_error *read_part(struct probing *p, const struct prb_part_wanted *wanted,
				   enum probing_object_part part, struct probing_object *ret)
{
	const struct prb_part_answer *answer = NULL;

	if (part == PROBING_OBJECT_SIZE)
		return measure(p, wanted->object, wanted->type, ret);
	PRB_TRY(read_once(p, wanted, &answer, &ret->outcome));
	return answer_with(p, answer, ret);
}

struct probing_error *probing_object(struct probing *p, uint64_t address, uint64_t type,
				     enum probing_object_part part, const char *name, int64_t index,
				     struct probing_object *ret)
{
	const struct prb_part_wanted wanted = {
		.object = address,
		.type = type,
		.part = (enum prb_part)part,
		.name = name ? name : "",
		.index = index,
		.text_max = prb_session_text_max(p->session),
	};
	struct prb_error *err;

	if (ret->size < sizeof(*ret) || part > PROBING_OBJECT_SIZE)
		return prb_public_error(prb_error_create(
			PRB_ERROR_USAGE, "struct probing_object or the part is not known"));
	ret->outcome = PROBING_OBJECT_MISSING;
	err = begin(p);
	if (err)
		return prb_public_error(err);
	err = read_part(p, &wanted, part, ret);
	/* Cached and current memory may be inconsistent. */
	if (ret->outcome == PROBING_OBJECT_GONE && p->objects->target->live) {
		prb_error_destroy(err);
		forget(p->objects);
		err = read_part(p, &wanted, part, ret);
	}
	return prb_public_error(err);
}

struct each {
	probing_part_handler *handler;
	void *context;
};

static bool on_attribute(void *context, const struct prb_attribute *a)
{
	const struct each *e = context;

	return !e->handler(e->context, a->name, a->text, a->key, a->object);
}

static bool on_item(void *context, uint64_t key, uint64_t value)
{
	const struct each *e = context;

	return !e->handler(e->context, NULL, NULL, key, value);
}

struct probing_error *probing_object_each(struct probing *p, uint64_t address, uint64_t type,
					  int items, probing_part_handler *handler, void *context,
					  int32_t *outcome)
{
	struct each each = {handler, context};
	struct prb_error *err;
	bool torn = false;
	size_t at = 0;

	*outcome = PROBING_OBJECT_MISSING;
	err = begin(p);
	if (!err)
		err = owner_of(p, address, type, &at, outcome);
	if (err)
		return prb_public_error(err);

	struct prb_mem *mem = prb_view_mem(p->objects->view);
	struct prb_python *py = p->objects->pythons.list.items[at];

	if (items)
		err = prb_object_items(py, mem, address, false, on_item, &each, &torn);
	else
		err = prb_object_attributes(py, mem, address,
					    PRB_ATTRIBUTE_DICT | PRB_ATTRIBUTE_SLOT, on_attribute,
					    &each, &torn);
	*outcome = torn ? PROBING_OBJECT_GONE : outcome_of(err, false);
	return prb_public_error(err);
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* libprobing: what an expression means in a frame, and what lies at an address. */
#include <limits.h>

#include "dump/inspect.h"
#include "lib/library_private.h"

enum { MAX_ITEMS = 1000 };

static struct prb_error *tell(struct prb_inspected *object, struct prb_error *err,
			      probing_object_handler *handler, void *context)
{
	if (err)
		return err;
	handler(context, prb_str_text(&object->type), prb_str_text(&object->value),
		object->address);
	prb_inspected_deinit(object);
	return NULL;
}

struct probing_error *probing_look_up(struct probing *p, int64_t tid, unsigned depth,
				      const char *expression, probing_object_handler *handler,
				      void *context)
{
	struct prb_inspect_place place = {.tid = (pid_t)tid, .depth = depth};
	struct prb_inspected object;
	/* One requested value is shown whole. */
	struct prb_repr_options options = {
		.max_items = MAX_ITEMS,
		.max_objects = 1,
		.objects_alone = true,
		.max_attributes = MAX_ITEMS,
		.max_text = (unsigned)prb_session_text_max(p->session),
		.max_total = (unsigned)prb_session_text_max(p->session),
	};

	if (prb_session_target_count(p->session) != 1 || tid < 1 || tid > INT_MAX)
		return prb_public_error(prb_error_create(
			PRB_ERROR_USAGE, "an expression is looked up in one thread of one target"));
	return prb_public_error(tell(
		&object,
		prb_inspect(prb_session_target(p->session), &place, expression, &options, &object),
		handler, context));
}

struct probing_error *probing_describe(struct probing *p, uint64_t address, unsigned limit,
				       probing_object_handler *handler, void *context)
{
	struct prb_inspected object;
	struct prb_repr_options options = {
		.max_items = limit,
		.max_text = limit,
		.max_objects = 1,
		.objects_alone = true,
		.whole = true,
		.max_total = (unsigned)prb_session_text_max(p->session),
	};

	if (prb_session_target_count(p->session) != 1)
		return prb_public_error(
			prb_error_create(PRB_ERROR_USAGE, "an object is described in one target"));
	return prb_public_error(tell(
		&object,
		prb_inspect_address(prb_session_target(p->session), address, &options, &object),
		handler, context));
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* libprobing: what an expression means in a frame. */
#include <limits.h>

#include "injector/lookup.h"
#include "sql/library_private.h"
#include "sql/session_private.h"

enum { MAX_ITEMS = 1000 };

struct probing_error *probing_look_up(struct probing *p, int64_t tid, unsigned depth,
				      const char *expression, probing_object_handler *handler,
				      void *context)
{
	struct prb_found_object object;
	struct prb_error *err;
	/* Whoever asks for one value wants to see it whole. */
	struct prb_repr_options options = {
		.max_items = MAX_ITEMS,
		.max_text = (unsigned)p->session->text_max,
		.max_total = (unsigned)p->session->text_max,
	};

	if (p->session->targets.count != 1 || tid < 1 || tid > INT_MAX)
		return prb_public_error(prb_error_create(
			PRB_ERROR_USAGE, "an expression is looked up in one thread of one target"));
	err = prb_lookup(p->session->targets.items[0].target, (pid_t)tid, depth, expression,
			 &options, &object);
	if (err)
		return prb_public_error(err);
	handler(context, prb_str_text(&object.type), prb_str_text(&object.value), object.address);
	prb_found_object_deinit(&object);
	return NULL;
}

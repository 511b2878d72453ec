/* SPDX-License-Identifier: GPL-3.0-or-later */
/* libprobing: stacks as the command prints them. */
#include <limits.h>

#include "base/cleanup.h"
#include "dump/text/json.h"
#include "dump/dump.h"
#include "dump/idle.h"
#include "lib/library_private.h"

struct sink {
	probing_text_handler *handler;
	void *context;
	bool ended; /* the handler wants no more */
};

static void put(void *context, const char *text, size_t length)
{
	struct sink *sink = context;

	if (!sink->ended && sink->handler(sink->context, text, length))
		sink->ended = true;
}

struct probing_error *probing_dump(struct probing *p, int64_t tid, unsigned what,
				   probing_text_handler *handler, void *context)
{
	const struct prb_dump_options options = {
		.mode = prb_session_mode(p->session),
		.tid = (pid_t)tid,
		.locals = what & PROBING_LOCALS,
		.native = what & PROBING_NATIVE,
		.native_all = what & PROBING_NATIVE_ALL,
		.source = what & PROBING_SOURCE,
	};
	struct sink sink = {.handler = handler, .context = context};
	struct prb_target *target;
	struct prb_dump *dump;
	struct prb_error *err;

	if (prb_session_target_count(p->session) != 1 || tid < 0 || tid > INT_MAX)
		return prb_public_error(prb_error_create(
			PRB_ERROR_USAGE, "a dump is of one target, and of one thread or all"));
	target = prb_session_target(p->session);
	err = prb_dump_create(target, &options, &dump);
	if (err)
		return prb_public_error(err);
	err = prb_idle_fill(target, dump, NULL);
	if (!err)
		err = prb_dump_json(dump, &options, put, &sink);
	prb_dump_destroy(dump);
	return prb_public_error(err);
}

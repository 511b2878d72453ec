/* SPDX-License-Identifier: GPL-3.0-or-later */
/* libprobing: which threads a debugger may make call functions, and what debuggers have left. */
#include "injector/hijack/hijackable.h"
#include "lib/library_private.h"

struct threads {
	probing_thread_handler *handler;
	void *context;
};

static bool tell_thread(void *context, pid_t tid, const struct prb_verdict *verdict)
{
	const struct threads *t = context;
	const struct probing_thread thread = {
		.size = sizeof(thread),
		.tid = tid,
		.why = verdict->why,
		.in_call = verdict->in_call,
		.ways_out = verdict->ways_out,
		.way_count = verdict->way_count,
	};

	return t->handler(t->context, &thread);
}

static struct prb_error *only_target(struct probing *p, struct prb_target **ret)
{
	if (prb_session_target_count(p->session) != 1)
		return prb_error_create(PRB_ERROR_USAGE, "this needs a session with one target");
	*ret = prb_session_target(p->session);
	return NULL;
}

struct probing_error *probing_hijackable(struct probing *p, probing_thread_handler *handler,
					 void *context)
{
	struct threads threads = {handler, context};
	struct prb_target *target;
	struct prb_error *err = only_target(p, &target);

	return prb_public_error(err ? err : prb_hijackable(target, tell_thread, &threads));
}

struct breakpoints {
	probing_breakpoint_handler *handler;
	void *context;
};

static struct prb_error *tell_trap(void *context, const struct prb_trap *trap)
{
	const struct breakpoints *b = context;

	b->handler(b->context, trap->address, trap->length, trap->original, trap->function);
	return NULL;
}

struct probing_error *probing_left_breakpoints(struct probing *p,
					       probing_breakpoint_handler *handler, void *context)
{
	struct breakpoints breakpoints = {handler, context};
	struct prb_target *target;
	struct prb_error *err = only_target(p, &target);

	return prb_public_error(err ? err : prb_left_breakpoints(target, tell_trap, &breakpoints));
}

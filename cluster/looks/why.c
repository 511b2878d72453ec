/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cluster/looks/why.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cluster/looks/call.h"
#include "cluster/looks/keeper.h"
#include "cluster/looks/operation.h"
#include "cluster/looks/thread_text.h"

static bool same(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static bool same_arguments(const struct prb_call *a, const struct prb_call *b)
{
	if (!a || !b)
		return a == b;
	return a->peer == b->peer && same(a->members, b->members) && same(a->data, b->data);
}

bool prb_why_same_call(const struct prb_seen *a, const struct prb_seen *b)
{
	return a->collective && b->collective && !strcmp(a->collective, b->collective) &&
	       prb_call_same_place(a, b) && same_arguments(a->call, b->call);
}

void prb_why_put_operation(struct prb_str *s, const struct prb_seen *seen)
{
	prb_str_puts(s, seen->gpu ? "a wait for the GPU (" : seen->unnamed ? "a collective (" : "");
	prb_text_escape(s, seen->collective);
	prb_str_puts(s, seen->unnamed ? ")" : "");
}

/** Appends " (to rank 3, (4,) float32, group 2 of ranks 0-3)". */
static void put_arguments(struct prb_str *s, const struct prb_seen *seen)
{
	const struct prb_call *call = seen->call;
	const char *before = " (";

	if (!call)
		return;
	if (call->peer >= 0) {
		prb_str_printf(s, "%s%s rank %ld", before,
			       !prb_operation_is_between_two(seen->collective) ? "root"
			       : prb_operation_sends(seen->collective)	       ? "to"
									       : "from",
			       call->peer);
		before = ", ";
	}
	if (call->tag > 0) {
		prb_str_printf(s, "%stag %ld", before, call->tag);
		before = ", ";
	}
	if (call->data) {
		prb_str_puts(s, before);
		prb_text_escape(s, call->data);
		before = ", ";
	}
	if (call->members) {
		prb_str_puts(s, before);
		prb_str_puts(s, "group ");
		prb_text_escape(s, call->group ? call->group : "?");
		prb_str_puts(s, " of ranks ");
		prb_text_escape(s, call->members);
		before = ", ";
	}
	if (*before == ',')
		prb_str_putc(s, ')');
}

void prb_why_put_call(struct prb_str *s, const struct prb_seen *seen)
{
	prb_why_put_operation(s, seen);
	if (seen->caller) {
		prb_str_puts(s, ", called at ");
		prb_put_caller(s, seen->main, seen->caller);
	}
	put_arguments(s, seen);
}

void prb_why_put_state(struct prb_str *s, const struct prb_seen *seen)
{
	enum prb_movement movement = seen->movement;

	if (!seen->main) {
		prb_why_put_absence(s, seen, false);
		return;
	}
	prb_str_puts(s, movement == PRB_MOVES	? "moves; it was at "
			: movement == PRB_SPINS ? "computes at "
						: "is at ");
	prb_put_thread(s, seen->main);
}

void prb_why_put_end(struct prb_str *s, const struct prb_seen *seen)
{
	if (seen->end)
		prb_str_puts(s, ": ");
	prb_why_put_how(s, seen);
}

void prb_why_put_how(struct prb_str *s, const struct prb_seen *seen)
{
	if (seen->end)
		prb_text_escape(s, seen->end);
	if (seen->end_log) {
		prb_str_puts(s, "; its log says: ");
		prb_text_escape(s, seen->end_log);
	}
}

void prb_why_put_absence(struct prb_str *s, const struct prb_seen *seen, bool several)
{
	if (!seen->rank->pid && !seen->error)
		prb_str_puts(s, several ? "have no process" : "has no process");
	else if (seen->unasked)
		prb_str_puts(s, several ? "have no process on the hosts that were asked"
					: "has no process on the hosts that were asked");
	else if (seen->gone)
		prb_str_puts(s, several ? "have ended meanwhile" : "has ended meanwhile");
	else if (!seen->main) {
		prb_str_puts(s, "cannot be read: ");
		prb_text_escape(s, seen->error ? seen->error : "it has no thread");
	} else {
		prb_str_puts(s, seen->state == PRB_SEEN_FROZEN
					? "is frozen by its control group at "
				: seen->state == 'D' ? "sleeps in the kernel (state D) at "
				: seen->state == 't' ? "is stopped by a debugger at "
				: seen->state == 'Z' ? "has ended, and waits for its parent: "
						     : "is stopped by a signal at ");
		if (seen->state == 'D')
			prb_put_thread(s, seen->main);
		else
			prb_put_innermost(s, seen->main);
	}
}

/** The thread of @p dump with that number. */
static const struct prb_dump_thread *find_thread(const struct prb_dump *dump, pid_t tid)
{
	const struct prb_dump_thread *thread;

	prb_vec_each (thread, &dump->threads)
		if (tid > 0 && thread->tid == tid)
			return thread;
	return NULL;
}

/** The thread that holds the lock that @p thread waits for, or the GIL; NULL if unknown. */
static const struct prb_dump_thread *holder(const struct prb_dump *dump,
					    const struct prb_dump_thread *thread)
{
	const struct prb_dump_thread *other;

	if (!same(thread->gil, "waits"))
		return find_thread(dump, (pid_t)prb_number_behind(thread->waits_for, " held by "));
	prb_vec_each (other, &dump->threads)
		if (same(other->gil, "holds"))
			return other;
	return NULL;
}

void prb_why_put_reason(struct prb_str *s, const struct prb_seen *seen)
{
	if (!seen->main) {
		prb_why_put_absence(s, seen, false);
		return;
	}
	if (seen->worker) {
		prb_str_puts(s, "waits in DataLoader for ");
		prb_text_escape(s, seen->worker);
		return;
	}
	prb_why_put_state(s, seen);
	if (seen->holder) {
		prb_str_puts(s, same(seen->main->gil, "waits") ? "; the GIL is held by "
							       : "; the lock is held by ");
		prb_text_escape(s, seen->holder);
	}
	if (seen->chain) {
		prb_str_puts(s, "; ");
		prb_text_escape(s, seen->chain);
	}
}

/** Appends the circle of threads of @p dump that wait for each other's locks; false: none. */
static bool put_cycle(const struct prb_dump *dump, struct prb_str *s)
{
	const struct prb_dump_thread *thread;

	prb_vec_each (thread, &dump->threads) {
		const struct prb_dump_thread *here = thread;
		size_t steps = 0;

		do
			here = same(here->gil, "waits") ? NULL : holder(dump, here);
		while (here && here != thread && steps++ < dump->threads.count);
		if (here != thread)
			continue;
		do {
			const struct prb_dump_thread *next = holder(dump, here);

			prb_str_puts(s, here == thread ? "" : ", ");
			prb_put_thread_name(s, here);
			prb_str_puts(s, " waits for a lock of ");
			prb_put_thread_name(s, next);
			here = next;
		} while (here != thread);
		return true;
	}
	return false;
}

static struct prb_error *note_holder(struct prb_seen *seen)
{
	const struct prb_dump_thread *held = holder(seen->dump, seen->main);
	prb_auto_str struct prb_str text = {};

	if (!held)
		return NULL;
	prb_put_thread_name(&text, held);
	prb_str_puts(&text, ": ");
	prb_put_thread(&text, held);
	seen->holder = prb_str_take(&text);
	return seen->holder ? NULL : prb_error_nomem();
}

struct prb_error *prb_why_note(struct prb_round *round)
{
	struct prb_seen *seen;

	prb_vec_each (seen, &round->list) {
		prb_auto_str struct prb_str text = {};

		if (!seen->main)
			continue;
		PRB_TRY(note_holder(seen));
		if (put_cycle(seen->dump, &text) && !(seen->cycle = prb_str_take(&text)))
			return prb_error_nomem();
		PRB_TRY(prb_keeper_find(seen));
	}
	return NULL;
}

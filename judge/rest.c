/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "judge/rest.h"

#include <string.h>

#include "base/checked.h"
#include "judge/hub.h"
#include "judge/sharing.h"
#include "judge/threads.h"

/* Memory that processes share: who of them posts it, is not known. */
static bool is_shared(const struct prb_enders *enders)
{
	return enders->word.inode || (enders->kind && (!strcmp(enders->kind, "semaphore") ||
						       !strcmp(enders->kind, "shared memory")));
}

struct prb_rest prb_rest_of(const struct prb_enders *enders, pid_t own)
{
	if (!enders->endless)
		return (struct prb_rest){PRB_REST_CLOCK};
	if (enders->outside)
		return (struct prb_rest){PRB_REST_OUTSIDE};
	if (enders->any_child)
		return (struct prb_rest){PRB_REST_CHILDREN};
	for (unsigned i = 0; i < enders->count && !is_shared(enders); i++)
		if (enders->pids[i] != own)
			return (struct prb_rest){PRB_REST_PROCESS, enders->pids[i]};
	return (struct prb_rest){PRB_REST_INSIDE};
}

/* The kernel's limit of a wait is none if the loop chose it since it had no timer. */
static struct prb_enders enders_of(const struct prb_case *c, const struct prb_dump_thread *thread)
{
	struct prb_enders enders = thread->enders;

	enders.endless = enders.endless || prb_case_loop_has_no_timer(c, thread);
	return enders;
}

struct prb_rest prb_case_rest(const struct prb_case *c, const struct prb_dump_thread *thread)
{
	pid_t owner = prb_thread_owner(thread);
	struct prb_enders enders;

	if (prb_thread_is(thread, "stopped") || prb_thread_is(thread, "traced") ||
	    prb_thread_is(thread, "uninterruptible"))
		return (struct prb_rest){PRB_REST_INSIDE};
	if (!prb_thread_is(thread, "idle"))
		return (struct prb_rest){PRB_REST_RUNS};
	/* What is not described, is not known to have a limit either. */
	if (!thread->waits_for)
		return (struct prb_rest){PRB_REST_INSIDE};
	if (prb_thread_waits_for_gil(thread))
		return (struct prb_rest){PRB_REST_CLOCK};
	if (owner && thread->enders.endless && prb_case_thread(c, owner))
		return (struct prb_rest){PRB_REST_THREAD, owner};
	enders = enders_of(c, thread);
	return prb_rest_of(&enders, c->dump->pid);
}

bool prb_thread_moves(const struct prb_dump_thread *thread)
{
	const struct prb_enders *enders = &thread->enders;

	return !prb_thread_is(thread, "idle") || !enders->endless ||
	       (!enders->kind && !prb_thread_waits_inside(thread));
}

/** A semaphore in memory that other processes have mapped, too: which one posts it, is not known.
 */
static bool may_be_of_others(const struct prb_case *c, const struct prb_dump_thread *thread)
{
	static const char *const kinds[] = {"semaphore", "shared memory"};
	const char *kind = thread->enders.kind;
	struct prb_futex_call call = prb_case_futex_call(c, thread);

	if (kind && strcmp(kind, kinds[0]) != 0 && strcmp(kind, kinds[1]) != 0)
		return false;
	return (call.endless || call.limited) && !call.own && prb_case_shares(c, call.address);
}

bool prb_case_goes_on(const struct prb_case *c, const struct prb_dump_thread *thread)
{
	const struct prb_enders enders = enders_of(c, thread);

	/* What a thread without a description waits for may be anything. */
	if (!thread->waits_for && prb_thread_is(thread, "idle"))
		return true;
	if (enders.kind && !strcmp(enders.kind, "socket") && !enders.endless)
		return true;
	if (may_be_of_others(c, thread))
		return true;
	switch (prb_case_rest(c, thread).kind) {
	case PRB_REST_RUNS:
	case PRB_REST_CLOCK:
	case PRB_REST_OUTSIDE:
		return true;
	case PRB_REST_CHILDREN:
	case PRB_REST_PROCESS:
	case PRB_REST_THREAD:
	case PRB_REST_INSIDE:
		break;
	}
	return false;
}

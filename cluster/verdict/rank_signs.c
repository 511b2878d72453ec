/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The signs that ranks give for a verdict: where they wait, where they are, what the kernel counts.
 */
#include "base/cleanup.h"
#include "cluster/looks/call.h"
#include "cluster/looks/why.h"
#include "cluster/verdict/verdict_private.h"
#include "cluster/verdict/waiters.h"

struct prb_error *prb_verdict_sign_waiter(const struct prb_evidence *e,
					  const struct prb_seen *waiting, bool member)
{
	struct prb_str *s;

	PRB_TRY(prb_signs_add(&e->verdict->signs, PRB_SIGN_WAITERS, -1, &s));
	prb_str_printf(s, "rank %ld is in ", waiting->rank->rank);
	prb_why_put_operation(s, waiting);
	if (prb_waits_for_one(waiting))
		prb_str_printf(s, " with rank %ld", waiting->call->peer);
	else if (member)
		prb_str_puts(s, ", of whose group the named ranks are members");
	return NULL;
}

struct prb_error *prb_verdict_sign_stack(const struct prb_evidence *e, const struct prb_seen *seen)
{
	struct prb_str *s;

	PRB_TRY(prb_signs_add(&e->verdict->signs, PRB_SIGN_STACK, seen->rank->rank, &s));
	prb_str_printf(s, "rank %ld ", seen->rank->rank);
	if (seen->movement == PRB_MOVES)
		prb_str_puts(s, "was at other places from look to look");
	else if (seen->collective) {
		prb_str_puts(s, "is in ");
		prb_why_put_operation(s, seen);
	} else if (!seen->entered)
		prb_str_puts(s, "was in no collective at any look");
	else
		prb_str_puts(s, "is in no collective");
	return NULL;
}

struct prb_error *prb_verdict_sign_still(const struct prb_evidence *e, const struct prb_seen *seen)
{
	struct prb_str *s;

	if (seen->movement != PRB_STILL)
		return NULL;
	PRB_TRY(prb_signs_add(&e->verdict->signs, PRB_SIGN_SCHEDULER, -1, &s));
	prb_str_printf(s, "rank %ld ", seen->rank->rank);
	if (prb_evidence_slept(e, seen))
		prb_str_printf(s, "has slept for %.1f s", seen->main->idle_seconds);
	else
		prb_str_printf(s, "has used no processor to speak of for %.1f s", e->round->span);
	return NULL;
}

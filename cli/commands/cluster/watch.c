/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `probing cluster watch`: waits until a job of this machine makes no progress, then judges it. */
#include <time.h>

#include "cli/commands/cluster/cluster.h"
#include "command/exit.h"
#include "command/output.h"
#include "cluster/looks/look.h"
#include "cluster/looks/vigil.h"
#include "cluster/verdict/verdict.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "base/text.h"

enum { LOOKS_PER_LIMIT = 6 };

static void forget(struct prb_cluster *c)
{
	for (size_t i = 0; i < PRB_CLUSTER_LOOKS; i++) {
		prb_round_deinit(&c->rounds[i]);
		c->rounds[i] = (struct prb_round){};
	}
}

/** Judges the job; *hung: it hangs, and that was printed. */
static struct prb_error *judge(struct prb_cluster *c, struct prb_vigil *vigil, double waited,
			       bool *hung)
{
	prb_auto_verdict struct prb_verdict verdict = {};
	prb_auto_str struct prb_str text = {};

	PRB_TRY(prb_cluster_look(c, PRB_CLUSTER_LOOKS));
	PRB_TRY(prb_cluster_judge(c, &verdict));
	*hung = verdict.kind != PRB_VERDICT_MOVES &&
		(verdict.kind != PRB_VERDICT_UNKNOWN || prb_vigil_waits(vigil));
	if (!*hung) {
		forget(c);
		prb_vigil_forget(vigil);
		return NULL;
	}
	prb_str_puts(&text, "ranks have waited for ");
	prb_text_duration(&text, waited);
	prb_warn(prb_str_text(&text));
	return prb_cluster_tell(c, &verdict);
}

static struct prb_error *watch(struct prb_cluster *c, struct prb_vigil *vigil)
{
	bool hung = false, gone = false;
	double waited;

	for (;;) {
		double rest = prb_vigil_limit(vigil) / LOOKS_PER_LIMIT;
		const struct timespec pause = {(time_t)rest,
					       (long)((rest - (double)(time_t)rest) * 1e9)};

		PRB_TRY(prb_vigil_look(vigil, &gone));
		if (gone)
			return NULL;
		if (prb_vigil_is_suspicious(vigil, &waited))
			PRB_TRY(judge(c, vigil, waited, &hung));
		if (hung)
			return NULL;
		if (nanosleep(&pause, NULL))
			return prb_error_create(PRB_ERROR_CANCELLED, "interrupted");
	}
}

struct prb_error *prb_cluster_watch(struct prb_cluster *c)
{
	struct prb_vigil vigil;
	struct prb_error *err = prb_vigil_init(c->job, c->settings->hang, &vigil);

	if (!err)
		err = watch(c, &vigil);
	prb_vigil_deinit(&vigil);
	return err;
}

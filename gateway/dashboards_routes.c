/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Requests about dashboards, which are answered at once: no target is read. */
#include "base/cleanup.h"
#include "gateway/gateway_private.h"

struct prb_error *prb_answer_dashboards(struct prb_request *r)
{
	return prb_dashboards_list(&r->gateway->dashboards, &r->reply);
}

struct prb_error *prb_answer_dashboard(struct prb_request *r)
{
	return prb_dashboards_get(&r->gateway->dashboards, r->name, &r->reply);
}

struct prb_error *prb_answer_dashboard_save(struct prb_request *r)
{
	struct prb_error *err =
		prb_dashboards_save(&r->gateway->dashboards, r->name, prb_param(r, "json"));

	/* A text that is no dashboard. */
	r->refused = err;
	PRB_TRY(err);
	return prb_answer_dashboard(r);
}

struct prb_error *prb_answer_dashboard_delete(struct prb_request *r)
{
	PRB_TRY(prb_dashboards_remove(&r->gateway->dashboards, r->name));
	prb_str_puts(&r->reply, "{}\n");
	return NULL;
}

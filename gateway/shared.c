/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/shared.h"

#include "gateway/gateway_private.h"

void prb_shared_deinit(struct prb_shared *shared)
{
	struct prb_shared_answer *one;

	prb_vec_each (one, &shared->list) {
		prb_str_deinit(&one->reply);
		prb_str_deinit(&one->log);
	}
	prb_vec_free(&shared->list);
}

static struct prb_shared_answer *find(const struct prb_request *r)
{
	struct prb_shared_answer *one;

	prb_vec_each (one, &r->gateway->shared.list)
		if (one->route == r->route)
			return one;
	return NULL;
}

bool prb_shared_take(struct prb_request *r, double since)
{
	const struct prb_shared_answer *one = find(r);

	if (!one || !one->reply.length || one->when < since || one->began < r->gateway->changed)
		return false;
	prb_str_append(&r->reply, one->reply.data, one->reply.length);
	prb_str_append(&r->child.log, prb_str_text(&one->log), one->log.length);
	return !r->reply.failed;
}

bool prb_shared_is_made(const struct prb_request *r)
{
	struct prb_request *const *other;

	prb_vec_each (other, &r->gateway->waiting)
		if (*other != r && (*other)->route == r->route && (*other)->child.pid)
			return true;
	return false;
}

void prb_shared_put(const struct prb_request *r)
{
	struct prb_shared_answer *one = find(r);

	if (!(r->route->shared > 0))
		return;
	if (!one)
		one = prb_vec_push(&r->gateway->shared.list);
	if (!one)
		return;
	one->route = r->route;
	one->began = r->since;
	one->when = r->gateway->now;
	prb_str_truncate(&one->reply, 0);
	prb_str_truncate(&one->log, 0);
	prb_str_append(&one->reply, prb_str_text(&r->reply), r->reply.length);
	prb_str_append(&one->log, prb_str_text(&r->child.log), r->child.log.length);
	if (one->reply.failed || one->log.failed)
		prb_str_truncate(&one->reply, 0);
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Who can end a wait, collected while it is described. */
#include <stdlib.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "dump/waits/wait_private.h"

struct prb_error *prb_search_create(struct prb_search **ret)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? NULL : prb_error_nomem();
}

void prb_search_destroy(struct prb_search *search)
{
	struct prb_known_sharers *known;

	if (!search)
		return;
	prb_fd_peers_destroy(search->holders);
	prb_vec_each (known, &search->sharers)
		prb_pids_deinit(&known->found.pids);
	prb_vec_free(&search->sharers);
	free(search);
}

struct prb_error *prb_wait_context_search_all(struct prb_wait_context *c, struct prb_search *search)
{
	if (!search) {
		PRB_TRY(prb_search_create(&c->own_search));
		search = c->own_search;
	}
	c->search = search;
	return NULL;
}

void prb_enders_object(struct prb_wait_context *c, const char *kind)
{
	if (!c->enders)
		return;
	c->objects++;
	c->kind = kind;
	if (!c->enders->kind)
		c->enders->kind = kind;
}

void prb_enders_add(struct prb_wait_context *c, pid_t pid)
{
	struct prb_enders *e = c->enders;

	if (!e || pid <= 0)
		return;
	for (unsigned i = 0; i < PRB_MIN(e->count, (unsigned)PRB_MOST_ENDERS); i++)
		if (e->pids[i] == pid)
			return;
	if (e->count < PRB_MOST_ENDERS) {
		e->pids[e->count] = pid;
		e->kinds[e->count] = c->kind;
	}
	e->count++;
}

void prb_enders_all(struct prb_wait_context *c, bool certain)
{
	if (!c->enders)
		return;
	c->complete++;
	c->enders->certain = c->enders->certain && certain;
}

void prb_enders_thread(struct prb_wait_context *c, const char *kind, pid_t tid, bool alone)
{
	if (!c->enders)
		return;
	prb_enders_object(c, kind);
	c->enders->tid = tid;
	c->enders->alone = alone;
	prb_enders_add(c, c->target->pid);
	prb_enders_all(c, true);
}

void prb_enders_limited(struct prb_wait_context *c)
{
	if (c->enders)
		c->enders->endless = false;
}

void prb_enders_outside(struct prb_wait_context *c)
{
	if (c->enders)
		c->enders->outside = true;
}

void prb_enders_any_child(struct prb_wait_context *c)
{
	if (c->enders)
		c->enders->any_child = true;
}

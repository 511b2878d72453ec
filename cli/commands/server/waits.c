/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which processes of a server wait for which other ones of it. */
#include "base/checked.h"
#include "base/cleanup.h"
#include "cli/commands/server/server.h"

void prb_server_waits_deinit(struct prb_server_waits *waits)
{
	prb_vec_free(&waits->list);
}

static bool is_known(const struct prb_server_waits *waits, pid_t pid, pid_t other)
{
	const struct prb_server_wait *wait;

	prb_vec_each (wait, &waits->list)
		if (wait->pid == pid && wait->other == other)
			return true;
	return false;
}

static struct prb_error *add(struct prb_server_waits *ret, pid_t pid, pid_t other, const char *kind)
{
	struct prb_server_wait *wait;

	if (other == pid || is_known(ret, pid, other))
		return NULL;
	wait = prb_vec_push(&ret->list);
	if (!wait)
		return prb_error_nomem();
	*wait = (struct prb_server_wait){pid, other, kind};
	return NULL;
}

/** What the kernel or an object says of its main thread: a child, a pipe, a lock. */
static struct prb_error *add_known(const struct prb_server *server,
				   const struct prb_server_process *p, struct prb_server_waits *ret)
{
	const struct prb_enders *enders;

	if (!p->dump || !p->dump->threads.count)
		return NULL;
	enders = &p->dump->threads.items[0].enders;
	for (unsigned i = 0; enders->kind && i < enders->count; i++)
		if (prb_server_find(server, enders->pids[i]))
			PRB_TRY(add(ret, p->pid, enders->pids[i],
				    prb_enders_kind(enders, enders->pids[i])));
	return NULL;
}

/** True if @p p waits for what @p other is to do, by what the description says of the main thread.
 */
static bool waits_for(const struct prb_server *server, const struct prb_server_process *p,
		      const struct prb_server_process *other)
{
	if (!p->part || !other->part)
		return false;
	switch (p->part->role) {
	case PRB_ENGINE_WORKER:
		return p->activity == PRB_ENGINE_IDLE &&
		       other->part->role == PRB_ENGINE_SCHEDULER &&
		       prb_server_serves(server, p, other);
	case PRB_ENGINE_SCHEDULER:
		if (p->activity == PRB_ENGINE_IDLE)
			return other->part->role == PRB_ENGINE_FRONTEND;
		return p->activity == PRB_ENGINE_REPLY && other->activity != PRB_ENGINE_IDLE &&
		       other->part->role == PRB_ENGINE_WORKER &&
		       prb_server_serves(server, other, p);
	case PRB_ENGINE_DETOKENIZER:
		return p->activity == PRB_ENGINE_IDLE && other->part->role == PRB_ENGINE_SCHEDULER;
	case PRB_ENGINE_FRONTEND:
		break;
	}
	return false;
}

struct prb_error *prb_server_waits_read(const struct prb_server *server,
					struct prb_server_waits *ret)
{
	static const char *const kinds[] = {
		[PRB_ENGINE_IDLE] = "work", [PRB_ENGINE_REPLY] = "answer"};
	struct prb_server_process *const *p, *const *other;

	prb_vec_each (p, &server->processes) {
		PRB_TRY(add_known(server, *p, ret));
		prb_vec_each (other, &server->processes)
			if (waits_for(server, *p, *other))
				PRB_TRY(add(ret, (*p)->pid, (*other)->pid, kinds[(*p)->activity]));
	}
	return NULL;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "judge/chain.h"

#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "judge/threads.h"

enum { MOST_STEPS = 16 };

void prb_chain_deinit(struct prb_chain *chain)
{
	prb_vec_free(&chain->list);
}

/* The one other process that can end the wait; 0: none, or several. We are not what is looked for.
 */
static pid_t other_process(const struct prb_enders *enders, pid_t own)
{
	pid_t found = 0;

	for (unsigned i = 0; i < enders->count; i++) {
		if (enders->pids[i] == own || enders->pids[i] == getpid())
			continue;
		if (found)
			return 0;
		found = enders->pids[i];
	}
	return found;
}

static bool find_thread(const struct prb_peers *peers, size_t peer, pid_t tid,
			struct prb_peer_thread *ret)
{
	const struct prb_dump *dump = peers->list.items[peer].dump;

	for (size_t i = 0; dump && i < dump->threads.count; i++) {
		if (dump->threads.items[i].tid != tid)
			continue;
		*ret = (struct prb_peer_thread){peer, i};
		return true;
	}
	return false;
}

static struct prb_error *next(struct prb_peers *peers, struct prb_peer_thread at,
			      struct prb_chain *chain, struct prb_peer_thread *ret, bool *found)
{
	const struct prb_enders *enders = &prb_peer_thread(peers, at)->enders;
	pid_t pid;
	size_t peer;

	*found = false;
	if (!enders->kind)
		return NULL;
	if (enders->tid) {
		*found = find_thread(peers, at.peer, enders->tid, ret);
		return NULL;
	}
	pid = other_process(enders, peers->list.items[at.peer].pid);
	if (!pid)
		return NULL;
	PRB_TRY(prb_peers_add(peers, pid, &peer));
	*found = peer < peers->list.count && find_thread(peers, peer, pid, ret);
	chain->unread = *found ? 0 : pid;
	return NULL;
}

static bool is_in(const struct prb_chain *chain, struct prb_peer_thread at)
{
	const struct prb_peer_thread *other;

	prb_vec_each (other, &chain->list)
		if (other->peer == at.peer && other->thread == at.thread)
			return true;
	return false;
}

struct prb_error *prb_chain_follow(struct prb_peers *peers, pid_t pid, size_t thread,
				   struct prb_chain *ret)
{
	struct prb_peer_thread at = {.thread = thread};
	bool found = true;

	PRB_TRY(prb_peers_add(peers, pid, &at.peer));
	while (found && ret->list.count < MOST_STEPS) {
		struct prb_peer_thread *place;

		if (is_in(ret, at)) {
			ret->circle = true;
			return NULL;
		}
		place = prb_vec_push(&ret->list);
		if (!place)
			return prb_error_nomem();
		*place = at;
		PRB_TRY(next(peers, at, ret, &at, &found));
	}
	return NULL;
}

void prb_chain_put(struct prb_str *s, const struct prb_peers *peers, const struct prb_chain *chain)
{
	const char *kind = NULL;
	const struct prb_peer_thread *at;

	prb_vec_each (at, &chain->list) {
		const struct prb_dump_thread *thread = prb_peer_thread(peers, *at);
		bool main = thread->tid == peers->list.items[at->peer].pid;

		prb_str_puts(s, kind ? " → " : "");
		/* All main threads have one name: the kernel's says whose. */
		if (main) {
			prb_str_printf(s, "%d ", (int)thread->tid);
			prb_text_escape(s, thread->os_name ? thread->os_name : "?");
		} else {
			prb_case_put_thread(s, thread);
		}
		if (kind)
			prb_str_printf(s, " (%s)", kind);
		kind = thread->enders.kind;
	}
	if (chain->unread)
		prb_str_printf(s, " → %d (%s)", (int)chain->unread, kind);
	if (chain->circle)
		prb_str_puts(s, " → the same");
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "judge/chain.h"

#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "judge/polling.h"
#include "judge/threads.h"

enum { MOST_STEPS = 16 };

void prb_chain_deinit(struct prb_chain *chain)
{
	prb_vec_free(&chain->list);
}

/* Processes that can end a wait. We are not what is looked for. */
struct candidates {
	pid_t pids[PRB_MOST_ENDERS];
	unsigned count;
};

static struct candidates others_of(const struct prb_enders *enders, pid_t own)
{
	struct candidates c = {};

	for (unsigned i = 0; i < enders->count; i++)
		if (enders->pids[i] != own && enders->pids[i] != getpid())
			c.pids[c.count++] = enders->pids[i];
	return c;
}

static bool is_candidate(const struct candidates *c, pid_t pid)
{
	for (unsigned i = 0; i < c->count; i++)
		if (c->pids[i] == pid)
			return true;
	return false;
}

/* True if each of its threads waits, and for nobody but the candidates and the waiter. */
static bool waits_behind(const struct prb_peer *peer, const struct candidates *c, pid_t own)
{
	const struct prb_dump_thread *thread;

	if (!peer->dump || !peer->whole)
		return false;
	prb_vec_each (thread, &peer->dump->threads) {
		const struct prb_enders *enders = &thread->enders;

		if (!enders->kind || !enders->endless || !enders->count)
			return false;
		for (unsigned i = 0; i < enders->count; i++)
			if (enders->pids[i] != own && !is_candidate(c, enders->pids[i]))
				return false;
	}
	return true;
}

/*
 * Pipes and semaphores are inherited, so many can end the wait; those that wait for the same ones
 * will not. The one that is left; 0: none, or several.
 */
static struct prb_error *find_free(struct prb_peers *peers, const struct candidates *c, pid_t own,
				   pid_t *ret)
{
	unsigned count = 0;

	*ret = 0;
	for (unsigned i = 0; i < c->count; i++) {
		size_t place;

		if (c->count > 1) {
			PRB_TRY(prb_peers_add(peers, c->pids[i], &place));
			if (place < peers->list.count &&
			    waits_behind(&peers->list.items[place], c, own))
				continue;
		}
		*ret = count++ ? 0 : c->pids[i];
		if (count > 1)
			return NULL;
	}
	return NULL;
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

/*
 * The thread that serves a waiter from another process: the main one, or, of a server that has a
 * thread for each client, the one that does not wait for its client.
 */
static bool find_serving(const struct prb_peers *peers, size_t peer, pid_t pid,
			 struct prb_peer_thread *ret)
{
	static const struct {
		const char *file, *server, *handler;
	} servers[] = {
		{"/multiprocessing/managers.py", "serve_forever", "serve_client"},
		{"/socketserver.py", "serve_forever", "process_request_thread"},
	};
	const struct prb_dump *dump = peers->list.items[peer].dump;
	struct prb_peer_thread main;
	unsigned count = 0;

	if (!find_thread(peers, peer, pid, &main))
		return false;
	*ret = main;
	for (size_t s = 0; s < PRB_ARRAY_SIZE(servers); s++) {
		if (!prb_thread_frame(prb_peer_thread(peers, main), servers[s].server,
				      servers[s].file))
			continue;
		for (size_t i = 0; i < dump->threads.count; i++) {
			const struct prb_dump_thread *thread = &dump->threads.items[i];

			if (prb_thread_frame(thread, servers[s].handler, servers[s].file) &&
			    (!thread->enders.kind || strcmp(thread->enders.kind, "socket") != 0))
				*ret = count++ ? main : (struct prb_peer_thread){peer, i};
		}
	}
	return true;
}

/* The process that is waited for, beyond that of the waiter; 0: none, or several. */
static struct prb_error *go_outside(struct prb_peers *peers, struct prb_peer_thread at, pid_t *ret)
{
	pid_t own = peers->list.items[at.peer].pid;
	struct candidates c = others_of(&prb_peer_thread(peers, at)->enders, own);

	return find_free(peers, &c, own, ret);
}

static bool same_processes(const struct prb_dump_thread *a, const struct prb_dump_thread *b,
			   pid_t own)
{
	struct candidates x = others_of(&a->enders, own), y = others_of(&b->enders, own);

	for (unsigned i = 0; i < x.count; i++)
		if (!is_candidate(&y, x.pids[i]))
			return false;
	return x.count && x.count == y.count;
}

/* True if nobody but another thread of the process @p own can end the wait, and any can. */
static bool waits_inside(const struct prb_enders *enders, pid_t own)
{
	return enders->kind && enders->count == 1 && enders->pids[0] == own && !enders->tid &&
	       (enders->all || enders->likely);
}

/** True if it waits for a lock that somebody holds: that of a Condition's waiter is a signal. */
static bool wants_lock(const struct prb_dump_thread *thread)
{
	return thread->wants == PRB_WANTS_LOCK &&
	       !prb_thread_frame(thread, "wait", "/threading.py");
}

/*
 * Where only threads of the process can end the wait, the one that does not itself wait for any of
 * them has to go on first; or several that wait for the same processes.
 */
static bool find_free_thread(const struct prb_peers *peers, struct prb_peer_thread at,
			     struct prb_peer_thread *ret)
{
	const struct prb_peer *peer = &peers->list.items[at.peer];
	const struct prb_dump_thread *first = NULL, *thread;

	/* That a thread sleeps does not make it the holder of the lock. */
	if (wants_lock(prb_peer_thread(peers, at)))
		return false;
	if (!waits_inside(&prb_peer_thread(peers, at)->enders, peer->pid) || !peer->whole)
		return false;
	for (size_t i = 0; i < peer->dump->threads.count; i++) {
		thread = &peer->dump->threads.items[i];
		if (i == at.thread || waits_inside(&thread->enders, peer->pid) ||
		    prb_polling_thread(thread))
			continue;
		if (first && !same_processes(first, thread, peer->pid))
			return false;
		if (first)
			continue;
		first = thread;
		*ret = (struct prb_peer_thread){at.peer, i};
	}
	return first;
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
	if (enders->word.inode) {
		PRB_TRY(prb_peers_find_holders(peers, at.peer));
		enders = &prb_peer_thread(peers, at)->enders;
	}
	if (enders->holder_tid) {
		PRB_TRY(prb_peers_add(peers, enders->holder_pid, &peer));
		*found = find_thread(peers, peer, enders->holder_tid, ret);
		return NULL;
	}
	PRB_TRY(go_outside(peers, at, &pid));
	if (!pid) {
		*found = find_free_thread(peers, at, ret);
		return NULL;
	}
	PRB_TRY(prb_peers_add(peers, pid, &peer));
	*found = peer < peers->list.count && find_serving(peers, peer, pid, ret);
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

bool prb_chain_lasts(const struct prb_peers *peers, const struct prb_chain *chain, bool *alone)
{
	*alone = true;
	for (size_t i = 0; i + 1 < chain->list.count; i++) {
		struct prb_peer_thread at = chain->list.items[i];
		const struct prb_enders *enders = &prb_peer_thread(peers, at)->enders;
		const struct prb_peer *peer = &peers->list.items[at.peer];

		if (!enders->endless || enders->outside)
			return false;
		*alone = *alone && enders->certain && enders->count == 1 &&
			 (!enders->any_child || peer->dump->threads.count == 1);
	}
	return true;
}

static void put_kind(struct prb_str *s, const struct prb_enders *enders, pid_t pid)
{
	prb_str_printf(s, " (%s", prb_enders_kind(enders, pid));
	prb_str_puts(s, *enders->what ? " " : "");
	prb_text_escape(s, enders->what);
	prb_str_putc(s, ')');
}

void prb_chain_put(struct prb_str *s, const struct prb_peers *peers, const struct prb_chain *chain)
{
	const struct prb_enders *enders = NULL;
	const struct prb_peer_thread *at;
	const char *holder = NULL;

	prb_vec_each (at, &chain->list) {
		const struct prb_dump_thread *thread = prb_peer_thread(peers, *at);
		bool main = thread->tid == peers->list.items[at->peer].pid;

		prb_str_puts(s, enders ? " → " : "");
		/* All main threads have one name: the kernel's says whose. */
		if (main) {
			prb_str_printf(s, "%d ", (int)thread->tid);
			prb_text_escape(s, thread->os_name ? thread->os_name : "?");
		} else {
			prb_case_put_thread(s, thread);
		}
		if (enders)
			put_kind(s, enders, peers->list.items[at->peer].pid);
		enders = &thread->enders;
		holder = thread->orphaned ? "a lock that no thread of its process holds"
			 : wants_lock(thread) && !enders->tid ? "a lock whose holder is not known"
							      : NULL;
	}
	if (holder && !chain->circle && !chain->unread)
		prb_str_printf(s, " → %s", holder);
	if (chain->unread && enders) {
		prb_str_printf(s, " → %d", (int)chain->unread);
		put_kind(s, enders, chain->unread);
	}
	if (chain->circle)
		prb_str_puts(s, " → the same");
}

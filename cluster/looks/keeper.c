/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cluster/looks/keeper.h"

#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "cluster/looks/thread_text.h"
#include "dump/model/program_frame.h"
#include "judge/chain.h"

enum { MOST_NAMED = 3 /* threads */ };

/** True if the innermost Python function of the thread waits on behalf of another one. */
static bool waits_in_library(const struct prb_dump_thread *thread)
{
	static const char *const modules[] = {"threading", "queue", "concurrent.",
					      "multiprocessing."};
	const struct prb_dump_frame *frame = prb_dump_innermost(thread);

	for (size_t i = 0; frame && frame->module && i < PRB_ARRAY_SIZE(modules); i++)
		if (!strncmp(frame->module, modules[i], strlen(modules[i])))
			return true;
	return false;
}

/** Appends what one step leads to: "process 4720 python3 (child)", "thread 4251 uploader". */
static void put_link(struct prb_str *s, const struct prb_peers *peers,
		     const struct prb_dump_thread *from, struct prb_peer_thread at, bool own)
{
	const struct prb_dump_thread *thread = prb_peer_thread(peers, at);

	if (own) {
		prb_put_thread_name(s, thread);
	} else {
		prb_str_printf(s, "process %d ", (int)peers->list.items[at.peer].pid);
		prb_text_escape(s, thread->os_name ? thread->os_name : "?");
	}
	if (from->enders.kind)
		prb_str_printf(s, " (%s)",
			       prb_enders_kind(&from->enders, peers->list.items[at.peer].pid));
}

/** Appends the chain after its first @p skip threads; false: there is nothing more. */
static bool put_chain(struct prb_str *s, const struct prb_peers *peers,
		      const struct prb_chain *chain, size_t skip, const char *who)
{
	const struct prb_peer_thread *list = chain->list.items, *last = NULL;

	for (size_t i = skip; i < chain->list.count; i++) {
		const struct prb_dump_thread *from = prb_peer_thread(peers, list[i - 1]);

		prb_str_puts(s, i == skip ? who : ", that");
		prb_str_puts(s, i == skip ? " waits for " : " for ");
		put_link(s, peers, from, list[i], list[i].peer == list[i - 1].peer);
		last = &list[i];
	}
	if (chain->unread) {
		prb_str_printf(s, "%s for process %d, which cannot be read",
			       last ? ", that" : "it waits", (int)chain->unread);
		return true;
	}
	if (chain->circle) {
		prb_str_puts(s, last ? ", and that for one of these" : "it waits for itself");
		return true;
	}
	if (!last)
		return false;
	prb_str_puts(s, ", which is at ");
	prb_put_thread(s, prb_peer_thread(peers, *last));
	return true;
}

/** True for another thread than @p but that runs Python, and waits for nobody else unless @p all
 * count. */
static bool is_candidate(const struct prb_dump_thread *thread, const struct prb_dump_thread *but,
			 bool all)
{
	return thread != but && prb_dump_innermost(thread) && (all || !waits_in_library(thread));
}

/** How many of these there are; *first: the place of the first of them. */
static size_t count_candidates(const struct prb_dump *dump, const struct prb_dump_thread *but,
			       bool all, size_t *first)
{
	size_t count = 0;

	for (size_t i = 0; i < dump->threads.count; i++)
		if (is_candidate(&dump->threads.items[i], but, all) && !count++)
			*first = i;
	return count;
}

/** Names the threads that a thread may wait for, of which it is not known which. */
static void put_candidates(struct prb_str *s, const struct prb_dump *dump,
			   const struct prb_dump_thread *but, bool all, size_t count)
{
	size_t named = 0;

	prb_str_puts(s, count > 1 ? "its other threads: " : "its other thread: ");
	for (size_t i = 0; i < dump->threads.count && named < MOST_NAMED; i++) {
		const struct prb_dump_thread *thread = &dump->threads.items[i];

		if (!is_candidate(thread, but, all))
			continue;
		prb_str_puts(s, named++ ? "; " : "");
		prb_put_thread_name(s, thread);
		prb_str_puts(s, " in ");
		prb_put_thread(s, thread);
	}
	if (count > named)
		prb_str_printf(s, "; and %zu more", count - named);
}

/** The place of a thread in a dump; past its end if it has none. */
static size_t place_of(const struct prb_dump *dump, pid_t tid)
{
	size_t i = 0;

	while (i < dump->threads.count && dump->threads.items[i].tid != tid)
		i++;
	return i;
}

/** True if it waits for the answer to a remote call of torch. */
static bool waits_for_call(const struct prb_dump_thread *thread)
{
	static const char rpc[] = "torch.distributed.rpc.";
	const struct prb_dump_frame *frame = prb_dump_innermost(thread);

	return frame && frame->module && !strncmp(frame->module, rpc, strlen(rpc));
}

/** The thread waits for another one, and it is not known for which. */
static struct prb_error *put_unknown(struct prb_str *s, struct prb_seen *seen,
				     struct prb_peers *peers, size_t peer, struct prb_chain *chain)
{
	size_t first = 0, count;
	bool all = false;

	if (waits_for_call(seen->main)) {
		prb_str_puts(s, "it waits for a process that it calls, maybe another rank");
		seen->guessed = true;
	}
	if (!waits_in_library(seen->main))
		return NULL;
	count = count_candidates(seen->dump, seen->main, false, &first);
	if (!count) {
		all = true;
		count = count_candidates(seen->dump, seen->main, true, &first);
	}
	if (!count)
		return NULL;
	put_candidates(s, seen->dump, seen->main, all, count);
	seen->guessed = true;
	if (count > 1)
		return NULL;
	first = place_of(peers->list.items[peer].dump, seen->dump->threads.items[first].tid);
	if (first == peers->list.items[peer].dump->threads.count)
		return NULL;
	PRB_TRY(prb_chain_follow(peers, seen->rank->pid, first, chain));
	if (chain->list.count > 1 || chain->unread) {
		PRB_TRY(prb_peers_note_idle(peers));
		prb_str_puts(s, "; ");
		put_chain(s, peers, chain, 1, "that thread");
	}
	return NULL;
}

static bool is_lock(const char *kind)
{
	return kind && (!strcmp(kind, "file lock") || !strcmp(kind, "lock"));
}

static struct prb_error *follow(struct prb_seen *seen, struct prb_peers *peers,
				struct prb_chain *chain, struct prb_chain *other)
{
	const struct prb_dump *dump;
	prb_auto_str struct prb_str s = {};
	struct prb_peer_thread at = {};

	PRB_TRY(prb_peers_add(peers, seen->rank->pid, &at.peer));
	dump = at.peer < peers->list.count ? peers->list.items[at.peer].dump : NULL;
	at.thread = dump ? place_of(dump, seen->main->tid) : 0;
	if (!dump || at.thread == dump->threads.count)
		return NULL;
	PRB_TRY(prb_chain_follow(peers, seen->rank->pid, at.thread, chain));
	if (chain->list.count < 2 && !chain->unread) {
		PRB_TRY(put_unknown(&s, seen, peers, at.peer, other));
		chain = other->list.count > 1 ? other : chain;
	} else {
		PRB_TRY(prb_peers_note_idle(peers));
		put_chain(&s, peers, chain, seen->holder ? 2 : 1, "it");
	}
	if (chain->list.count > 1) {
		const struct prb_peer_thread *last = &chain->list.items[chain->list.count - 1];

		seen->keeper = peers->list.items[last->peer].pid;
		seen->holds = is_lock(prb_peer_thread(peers, last[-1])->enders.kind);
	}
	if (!s.length)
		return NULL;
	seen->chain = prb_str_take(&s);
	return seen->chain ? NULL : prb_error_nomem();
}

struct prb_error *prb_keeper_find(struct prb_seen *seen)
{
	prb_auto_peers struct prb_peers peers = {};
	prb_auto_chain struct prb_chain chain = {}, other = {};

	/* A running thread waits for nobody. */
	if (!seen->main || seen->collective || seen->worker || seen->cycle || !seen->rank->pid ||
	    seen->rank->host || strcmp(seen->main->state, "idle") != 0)
		return NULL;
	return prb_error_tolerate(follow(seen, &peers, &chain, &other), NULL);
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "judge/peers.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "dump/dump.h"
#include "dump/idle.h"
#include "judge/polling.h"
#include "judge/rings.h"
#include "target/proc/text.h"

enum { MOST_PEERS = 16 };

void prb_peers_deinit(struct prb_peers *peers)
{
	struct prb_peer *peer;

	prb_vec_each (peer, &peers->list) {
		prb_dump_destroy(peer->dump);
		prb_target_destroy(peer->target);
		prb_vec_free(&peer->sleepers);
		free(peer->stuck);
	}
	prb_vec_free(&peers->list);
	prb_search_destroy(peers->search);
}

static struct prb_peer *find(const struct prb_peers *peers, pid_t pid)
{
	struct prb_peer *peer;

	prb_vec_each (peer, &peers->list)
		if (peer->pid == pid)
			return peer;
	return NULL;
}

/* Nobody asked about this process: its running threads are not stopped. */
static struct prb_error *dump(struct prb_peer *peer, struct prb_search *search)
{
	const struct prb_dump_options options = {.mode = PRB_DUMP_NONBLOCKING,
						 .no_values = true,
						 .no_command = true,
						 .no_modules = true,
						 .all_enders = true,
						 .search = search};
	struct prb_error *err = prb_dump_create(peer->target, &options, &peer->dump);

	if (!err || err->code == PRB_ERROR_NOMEM)
		return err;
	prb_error_destroy(err);
	return prb_dump_create_stackless(peer->target, true, search, &peer->dump);
}

static int64_t switches(const struct prb_peer *peer, pid_t tid)
{
	const struct prb_case c = {.target = peer->target};

	return prb_case_switches(&c, tid);
}

static struct prb_error *note_sleepers(struct prb_peer *peer)
{
	prb_auto_str struct prb_str tasks = {};
	char *end;

	PRB_TRY(prb_target_list(peer->target, &tasks, "task"));
	for (const char *at = prb_str_text(&tasks);; at = end) {
		struct prb_case_sleeper *sleeper;
		pid_t tid = (pid_t)strtol(at, &end, 10);
		int64_t count;

		if (end == at)
			return NULL;
		count = switches(peer, tid);
		if (count < 0)
			continue;
		sleeper = prb_vec_push(&peer->sleepers);
		if (!sleeper)
			return prb_error_nomem();
		*sleeper = (struct prb_case_sleeper){tid, count};
	}
}

static struct prb_error *read_one(struct prb_peer *peer, struct prb_search *search)
{
	prb_auto_str struct prb_str status = {};
	const char *threads, *user;

	PRB_TRY(prb_target_open_process(peer->pid, &peer->target));
	PRB_TRY(note_sleepers(peer));
	PRB_TRY(dump(peer, search));
	PRB_TRY(prb_rings_note_waits(peer->target, peer->dump));
	PRB_TRY(prb_target_read_file(peer->target, &status, "status"));
	threads = prb_text_field(prb_str_text(&status), "Threads");
	user = prb_text_field(prb_str_text(&status), "Uid");
	peer->user = user ? strtoll(user, NULL, 10) : -1;
	peer->handles = prb_status_handles_signals(prb_str_text(&status), false);
	peer->whole = threads && strtoull(threads, NULL, 10) == peer->dump->threads.count;
	peer->stuck = calloc(peer->dump->threads.count + 1, sizeof(*peer->stuck));
	return peer->stuck ? NULL : prb_error_nomem();
}

struct prb_error *prb_peers_add(struct prb_peers *peers, pid_t pid, size_t *ret)
{
	struct prb_peer *peer = find(peers, pid);
	struct prb_error *err;

	*ret = peer ? (size_t)(peer - peers->list.items) : peers->list.count;
	if (peer || peers->list.count >= MOST_PEERS)
		return NULL;
	if (!peers->search)
		PRB_TRY(prb_search_create(&peers->search));
	peer = prb_vec_push(&peers->list);
	if (!peer)
		return prb_error_nomem();
	*peer = (struct prb_peer){.pid = pid, .user = -1};
	err = read_one(peer, peers->search);
	if (!err || err->code == PRB_ERROR_NOMEM)
		return err;
	prb_error_destroy(err);
	prb_dump_destroy(prb_steal(&peer->dump));
	return NULL;
}

/* What one thread of a process waits for is of no interest if another one of it does not wait. */
static bool all_wait(const struct prb_peer *peer)
{
	const struct prb_dump_thread *thread;

	if (!peer->dump || !peer->whole)
		return false;
	prb_vec_each (thread, &peer->dump->threads)
		if (!thread->enders.kind || !thread->enders.endless || !thread->enders.all)
			return false;
	return true;
}

static bool holds(const struct prb_dump_thread *thread, const struct prb_shared_word *word)
{
	const struct prb_shared_word *held;

	prb_vec_each (held, &thread->holds)
		if (prb_shared_word_same(held, word))
			return true;
	return false;
}

/* A fork copies what the parent held: then two seem to hold it, and none is named. */
static void find_holder(const struct prb_peers *peers, struct prb_enders *enders)
{
	const struct prb_peer *peer;
	unsigned count = 0;

	enders->holder_pid = enders->holder_tid = 0;
	prb_vec_each (peer, &peers->list) {
		const struct prb_dump_thread *thread = NULL;

		for (size_t i = 0; peer->dump && i < peer->dump->threads.count; i++) {
			thread = &peer->dump->threads.items[i];
			if (!holds(thread, &enders->word) || count++)
				continue;
			enders->holder_pid = peer->pid;
			enders->holder_tid = thread->tid;
		}
	}
	if (count > 1)
		enders->holder_pid = enders->holder_tid = 0;
}

static void find_all_holders(struct prb_peers *peers)
{
	struct prb_peer *peer;

	prb_vec_each (peer, &peers->list)
		for (size_t i = 0; peer->dump && i < peer->dump->threads.count; i++)
			if (peer->dump->threads.items[i].enders.word.inode)
				find_holder(peers, &peer->dump->threads.items[i].enders);
}

struct prb_error *prb_peers_find_holders(struct prb_peers *peers, size_t place)
{
	const struct prb_dump *dump = peers->list.items[place].dump;
	size_t other;

	for (size_t i = 0; dump && i < dump->threads.count; i++) {
		const struct prb_enders *enders = &dump->threads.items[i].enders;

		for (unsigned k = 0; enders->word.inode && k < enders->count; k++)
			PRB_TRY(prb_peers_add(peers, enders->pids[k], &other));
	}
	find_all_holders(peers);
	return NULL;
}

struct prb_error *prb_peers_note_idle(struct prb_peers *peers)
{
	struct prb_error *err = NULL;
	struct prb_peer *peer;
	struct prb_idle *idle;

	PRB_TRY(prb_idle_create(&idle));
	prb_vec_each (peer, &peers->list)
		if (!err && peer->dump)
			err = prb_error_tolerate(
				prb_idle_note(idle, peer->target, peer->dump, NULL), NULL);
	prb_idle_finish(idle);
	return err;
}

struct prb_error *prb_peers_read(struct prb_peers *peers, pid_t pid)
{
	size_t place;

	PRB_TRY(prb_peers_add(peers, pid, &place));
	for (size_t i = 0; i < peers->list.count; i++) {
		const struct prb_dump_thread *thread;

		if (!all_wait(&peers->list.items[i]))
			continue;
		prb_vec_each (thread, &peers->list.items[i].dump->threads)
			for (unsigned k = 0; k < thread->enders.count; k++)
				PRB_TRY(prb_peers_add(peers, thread->enders.pids[k], &place));
	}
	find_all_holders(peers);
	return prb_peers_note_idle(peers);
}

static bool all_stuck(const struct prb_peers *peers, pid_t pid)
{
	const struct prb_peer *peer = find(peers, pid);

	if (!peer || !peer->dump || !peer->whole)
		return false;
	for (size_t i = 0; i < peer->dump->threads.count; i++)
		if (!peer->stuck[i])
			return false;
	return true;
}

static bool is_stuck(const struct prb_peers *peers, const struct prb_peer *own,
		     const struct prb_dump_thread *thread)
{
	const struct prb_enders *enders = &thread->enders;

	if (enders->alone) {
		for (size_t i = 0; i < own->dump->threads.count; i++)
			if (own->dump->threads.items[i].tid == enders->tid)
				return own->stuck[i];
		return false;
	}
	for (unsigned i = 0; i < enders->count; i++)
		if (!all_stuck(peers, enders->pids[i]))
			return false;
	return enders->count > 0;
}

/* True if it slept before it was read, and has not run since. */
static bool slept_on(const struct prb_peer *peer, pid_t tid)
{
	const struct prb_case_sleeper *sleeper;

	prb_vec_each (sleeper, &peer->sleepers)
		if (sleeper->tid == tid)
			return switches(peer, tid) == sleeper->switches;
	return false;
}

static bool may_be_stuck(const struct prb_peer *peer, const struct prb_dump_thread *thread)
{
	const struct prb_enders *enders = &thread->enders;

	/* A thread that only polls whether others are done is never stuck itself. */
	return enders->kind && enders->all && enders->endless && !prb_polling_thread(thread) &&
	       slept_on(peer, thread->tid);
}

void prb_peers_judge(struct prb_peers *peers)
{
	struct prb_peer *peer;
	bool changed = true;

	prb_vec_each (peer, &peers->list)
		for (size_t i = 0; peer->dump && i < peer->dump->threads.count; i++)
			peer->stuck[i] = may_be_stuck(peer, &peer->dump->threads.items[i]);
	while (changed) {
		changed = false;
		prb_vec_each (peer, &peers->list)
			for (size_t i = 0; peer->dump && i < peer->dump->threads.count; i++) {
				if (!peer->stuck[i] ||
				    is_stuck(peers, peer, &peer->dump->threads.items[i]))
					continue;
				peer->stuck[i] = false;
				changed = true;
			}
	}
}

/*
 * True if only the process itself may hold the other end of what the thread reads. A loop that
 * polls the socket by which its own threads wake it is another matter.
 */
static bool reads_own_end(const struct prb_dump_thread *thread)
{
	const struct prb_enders *enders = &thread->enders;

	if (enders->count > 1)
		return false;
	return !strcmp(enders->kind, "pipe") ||
	       (!strcmp(enders->kind, "socket") && thread->waits_for &&
		(!strncmp(thread->waits_for, "read", 4) || !strncmp(thread->waits_for, "recv", 4)));
}

/*
 * True if @p a waits for @p b or its process: not just for any thread of its own process, or for
 * itself among others.
 */
static bool waits_for(const struct prb_peers *peers, struct prb_peer_thread a,
		      struct prb_peer_thread b)
{
	const struct prb_enders *enders = &prb_peer_thread(peers, a)->enders;
	bool own = a.peer == b.peer;

	if (enders->holder_tid)
		return prb_peer_thread(peers, b)->tid == enders->holder_tid;
	if (enders->tid)
		return own && prb_peer_thread(peers, b)->tid == enders->tid;
	if (own && !reads_own_end(prb_peer_thread(peers, a)) &&
	    (!enders->word.inode || enders->count > 1))
		return false;
	for (unsigned i = 0; i < enders->count; i++)
		if (enders->pids[i] == peers->list.items[b.peer].pid)
			return true;
	return false;
}

/* A thread that a walk has come to, and the step from which. */
struct step {
	struct prb_peer_thread at;
	size_t from;
	bool seen;
};

struct walk {
	const struct prb_peers *peers;
	PRB_VEC(struct step) steps; /* all stuck threads; the first is where the walk begins */
	PRB_VEC(size_t) reached;    /* in the order in which they were */
};

static void walk_deinit(struct walk *walk)
{
	prb_vec_free(&walk->steps);
	prb_vec_free(&walk->reached);
}

static struct prb_error *collect(struct walk *walk, struct prb_peer_thread start)
{
	const struct prb_peers *peers = walk->peers;
	struct step *step = prb_vec_push(&walk->steps);

	if (!step)
		return prb_error_nomem();
	*step = (struct step){.at = start};
	for (size_t i = 0; i < peers->list.count; i++) {
		const struct prb_peer *peer = &peers->list.items[i];

		for (size_t k = 0; peer->dump && k < peer->dump->threads.count; k++) {
			if (!peer->stuck[k] || (i == start.peer && k == start.thread))
				continue;
			step = prb_vec_push(&walk->steps);
			if (!step)
				return prb_error_nomem();
			*step = (struct step){.at = {i, k}};
		}
	}
	return NULL;
}

static struct prb_error *reach(struct walk *walk, size_t from, size_t to)
{
	size_t *place = prb_vec_push(&walk->reached);

	if (!place)
		return prb_error_nomem();
	*place = to;
	walk->steps.items[to].from = from;
	walk->steps.items[to].seen = true;
	return NULL;
}

/* The shortest way that leads back: *last is its end. */
static struct prb_error *go(struct walk *walk, size_t *last, bool *found)
{
	struct step *steps = walk->steps.items;

	PRB_TRY(reach(walk, 0, 0));
	for (size_t n = 0; n < walk->reached.count; n++) {
		*last = walk->reached.items[n];
		*found = waits_for(walk->peers, steps[*last].at, steps[0].at);
		if (*found)
			return NULL;
		for (size_t i = 0; i < walk->steps.count; i++)
			if (!steps[i].seen && waits_for(walk->peers, steps[*last].at, steps[i].at))
				PRB_TRY(reach(walk, *last, i));
	}
	return NULL;
}

/* A circle is described in the same words for each of its processes. */
static struct prb_error *rotate(const struct prb_peers *peers, struct prb_peer_circle *circle)
{
	size_t first = 0, count = circle->list.count;
	prb_auto_free struct prb_peer_thread *copy = calloc(count, sizeof(*copy));

	if (!copy)
		return prb_error_nomem();
	memcpy(copy, circle->list.items, count * sizeof(*copy));
	for (size_t i = 1; i < count; i++)
		if (prb_peer_thread(peers, copy[i])->tid < prb_peer_thread(peers, copy[first])->tid)
			first = i;
	for (size_t i = 0; i < count; i++)
		circle->list.items[i] = copy[(first + i) % count];
	return NULL;
}

static struct prb_error *tell(const struct walk *walk, size_t last, struct prb_peer_circle *ret)
{
	for (size_t at = last;; at = walk->steps.items[at].from) {
		struct prb_peer_thread *place = prb_vec_push(&ret->list);

		if (!place)
			return prb_error_nomem();
		*place = walk->steps.items[at].at;
		if (!at)
			break;
	}
	for (size_t i = 0, k = ret->list.count - 1; i < k; i++, k--) {
		struct prb_peer_thread kept = ret->list.items[i];

		ret->list.items[i] = ret->list.items[k];
		ret->list.items[k] = kept;
	}
	return rotate(walk->peers, ret);
}

struct prb_error *prb_peers_circle(const struct prb_peers *peers, size_t thread,
				   struct prb_peer_circle *ret)
{
	__attribute__((cleanup(walk_deinit))) struct walk walk = {.peers = peers};
	bool found = false;
	size_t last = 0;

	if (!peers->list.items[0].dump || !peers->list.items[0].stuck[thread])
		return NULL;
	PRB_TRY(collect(&walk, (struct prb_peer_thread){0, thread}));
	PRB_TRY(go(&walk, &last, &found));
	return found ? tell(&walk, last, ret) : NULL;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "judge/rings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "target/task.h"

enum { MOST_PEERS = 64 };

void prb_ring_peers_deinit(struct prb_ring_peers *peers)
{
	struct prb_ring_peer *peer;

	prb_vec_each (peer, &peers->list)
		prb_shared_rings_deinit(&peer->rings);
	prb_vec_free(&peers->list);
}

static struct prb_error *add(struct prb_ring_peers *peers, struct prb_target *t)
{
	struct prb_ring_peer *peer = prb_vec_push(&peers->list);

	if (!peer)
		return prb_error_nomem();
	peer->pid = t->pid;
	return prb_shared_rings_read(t, &peer->rings);
}

/* One that cannot be read is not known. */
static struct prb_error *add_process(struct prb_ring_peers *peers, pid_t pid)
{
	prb_auto_target struct prb_target *t = NULL;
	const struct prb_ring_peer *peer;
	struct prb_error *err;

	prb_vec_each (peer, &peers->list)
		if (peer->pid == pid)
			return NULL;
	if (peers->list.count >= MOST_PEERS)
		return NULL;
	err = prb_target_open_process(pid, &t);
	if (!err)
		err = add(peers, t);
	return prb_error_tolerate(err, NULL);
}

static struct prb_error *add_sharers(struct prb_ring_peers *peers)
{
	const struct prb_shared_rings *own = &peers->list.items[0].rings;
	size_t count = own->list.count;
	struct prb_sharers *sharers = count ? calloc(count, sizeof(*sharers)) : NULL;
	struct prb_error *err;
	bool all;

	if (!sharers)
		return count ? prb_error_nomem() : NULL;
	for (size_t i = 0; i < count; i++) {
		const struct prb_shared_ring *ring = &own->list.items[i];

		sharers[i].word = (struct prb_shared_word){
			.inode = ring->inode, .major = ring->major, .minor = ring->minor};
	}
	err = prb_sharers_find(sharers, count, &all);
	for (size_t i = 0; i < count; i++) {
		const pid_t *pid;

		prb_vec_each (pid, &sharers[i].pids.list)
			if (!err)
				err = add_process(peers, *pid);
		prb_pids_deinit(&sharers[i].pids);
	}
	free(sharers);
	return err;
}

const struct prb_ring_peer *prb_ring_peers_find(const struct prb_ring_peers *peers,
						const struct prb_shared_ring *ring, int64_t reader,
						const struct prb_shared_ring **ret)
{
	const struct prb_ring_peer *peer;

	prb_vec_each (peer, &peers->list)
		for (size_t i = 0; i < peer->rings.list.count; i++) {
			const struct prb_shared_ring *other = &peer->rings.list.items[i];

			*ret = other;
			if (other->has_queue && prb_shared_ring_same(other, ring) &&
			    (reader < 0 ? other->writes : other->reader == reader))
				return peer;
		}
	return NULL;
}

struct prb_error *prb_ring_peers_read(struct prb_target *t, struct prb_ring_peers *ret)
{
	PRB_TRY(add(ret, t));
	return t->live && t->local ? add_sharers(ret) : NULL;
}

/* The loops in which vLLM and SGLang wait. */
enum loop { NO_LOOP, WRITES, READS };

static enum loop loop_of(const struct prb_dump_thread *thread)
{
	static const char file[] = "/shm_broadcast.py";
	static const char *const functions[] = {
		[WRITES] = "MessageQueue.acquire_write", [READS] = "MessageQueue.acquire_read"};
	const struct prb_dump_frame *frame;

	prb_vec_each (frame, &thread->frames) {
		size_t length = frame->file ? strlen(frame->file) : 0;
		const char *name = frame->qualname ? frame->qualname : frame->func;

		if (length < strlen(file) || strcmp(frame->file + length - strlen(file), file) != 0)
			continue;
		for (size_t i = WRITES; name && i < PRB_ARRAY_SIZE(functions); i++)
			if (!strcmp(name, functions[i]) ||
			    !strcmp(name, strchr(functions[i], '.') + 1))
				return (enum loop)i;
	}
	return NO_LOOP;
}

static void add_ender(struct prb_enders *enders, const struct prb_ring_peer *peer)
{
	if (!peer || enders->count >= PRB_MOST_ENDERS)
		return;
	for (unsigned i = 0; i < enders->count; i++)
		if (enders->pids[i] == peer->pid)
			return;
	enders->pids[enders->count++] = peer->pid;
}

/* The ring lets the loop go on: it is not what the thread waits at. */
static bool is_open(const struct prb_shared_ring *ring, enum loop loop)
{
	if (loop == READS)
		return prb_shared_ring_is_unread(ring, ring->current, ring->reader);
	for (int64_t reader = 0; reader < ring->readers; reader++)
		if (prb_shared_ring_is_unread(ring, ring->current, reader))
			return false;
	return true;
}

static void note(const struct prb_ring_peers *peers, const struct prb_shared_ring *ring,
		 enum loop loop, struct prb_enders *enders)
{
	const struct prb_shared_ring *unused;

	if (loop == READS) {
		add_ender(enders, prb_ring_peers_find(peers, ring, -1, &unused));
		return;
	}
	for (int64_t reader = 0; reader < ring->readers; reader++)
		if (prb_shared_ring_is_unread(ring, ring->current, reader))
			add_ender(enders, prb_ring_peers_find(peers, ring, reader, &unused));
}

/* Which ring the thread waits at is known if it can be only one; else for any of them. */
static struct prb_error *note_thread(const struct prb_ring_peers *peers, enum loop loop,
				     struct prb_dump_thread *thread)
{
	const struct prb_shared_ring *ring, *only = NULL;
	prb_auto_str struct prb_str words = {};
	struct prb_enders enders = {.kind = "ring", .endless = true};
	unsigned count = 0;

	prb_vec_each (ring, &peers->list.items[0].rings.list) {
		if (!ring->has_queue || ring->current < 0 ||
		    (loop == WRITES ? !ring->writes : ring->reader < 0) || is_open(ring, loop))
			continue;
		only = count++ ? NULL : ring;
		note(peers, ring, loop, &enders);
	}
	if (!count)
		return NULL;
	if (only) {
		snprintf(enders.what, sizeof(enders.what), "%s", prb_str_text(&only->name));
		prb_str_puts(&words, loop == READS ? "a message in ring " : "readers of ring ");
		prb_text_escape(&words, enders.what);
	} else {
		prb_str_puts(&words, loop == READS ? "a message in one of " : "readers of one of ");
		prb_str_printf(&words, "%u rings", count);
	}
	thread->enders = enders;
	free(thread->waits_for);
	thread->waits_for = prb_str_take(&words);
	return thread->waits_for ? NULL : prb_error_nomem();
}

struct prb_error *prb_rings_note_waits(struct prb_target *t, struct prb_dump *dump)
{
	prb_auto_ring_peers struct prb_ring_peers peers = {};
	struct prb_dump_thread *thread;

	prb_vec_each (thread, &dump->threads) {
		enum loop loop = loop_of(thread);

		if (loop == NO_LOOP)
			continue;
		if (!peers.list.count)
			PRB_TRY(prb_ring_peers_read(t, &peers));
		PRB_TRY(note_thread(&peers, loop, thread));
	}
	return NULL;
}

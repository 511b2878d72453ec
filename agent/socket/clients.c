/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/socket/clients.h"

#include <stdatomic.h>

#include "agent/client/connection.h"
#include "agent/eval/worker.h"
#include "agent/inside/libc.h"
#include "agent/socket/listen.h"

/** Code that is to end and does not gets another interrupt after so long. */
enum { INTERRUPT_AGAIN_MS = 1000 };

bool prba_clients_add(struct prba_clients *clients, struct prba_connection *c)
{
	for (int i = 0; i < PRBA_CLIENTS; i++) {
		if (!clients->list[i]) {
			clients->list[i] = c;
			return true;
		}
	}
	return false;
}

bool prba_clients_expect_room(const struct prba_clients *clients)
{
	int64_t now = prba_now_ms();
	bool expected = false;

	for (int i = 0; i < PRBA_CLIENTS; i++) {
		if (!clients->list[i])
			return false;
		expected |= now < clients->list[i]->ends_by;
	}
	return expected;
}

void prba_clients_count(const struct prba_clients *clients, unsigned *present, unsigned *busy)
{
	*present = *busy = 0;
	for (int i = 0; i < PRBA_CLIENTS; i++) {
		struct prba_connection *c = clients->list[i];

		*present += c && !atomic_load(&c->gone);
		*busy += c && atomic_load(&c->job.state) != PRBA_IDLE;
	}
}

/** Looks after one connection; gives the deadline of its job, 0 if there is none. */
static int64_t look_after(struct prba_clients *clients, int i, int64_t now, bool stopping)
{
	struct prba_connection *c = clients->list[i];
	int64_t again = 0;

	/*
	 * No client waits for the code any more. Code may catch the exception, and then gets
	 * another.
	 */
	if ((stopping || atomic_load(&c->gone)) && !prba_worker_is_over(c)) {
		if (now >= c->interrupt_at) {
			prba_worker_leave(c);
			if (!c->ends_by)
				c->ends_by = now + INTERRUPT_AGAIN_MS;
			c->interrupt_at = now + INTERRUPT_AGAIN_MS;
		}
		again = c->interrupt_at;
	}
	if (prba_worker_is_over(c) && atomic_load(&c->gone)) {
		clients->list[i] = NULL;
		prba_worker_deinit(c);
		prba_connection_destroy(c);
		return 0;
	}
	return again ? again : prba_worker_check(c, now);
}

/**
 * One worker may rest for as long as its client stays, so that what belongs to a thread is there
 * for its next request; when several rest, those go that rested for longest.
 */
static void end_surplus_workers(const struct prba_clients *clients)
{
	for (;;) {
		struct prba_connection *oldest = NULL;
		int64_t since = 0;
		int resting = 0;

		for (int i = 0; i < PRBA_CLIENTS; i++) {
			struct prba_connection *c = clients->list[i];
			int64_t rests = c ? prba_worker_rests_since(c) : 0;

			resting += rests != 0;
			if (rests && (!oldest || rests < since)) {
				oldest = c;
				since = rests;
			}
		}
		if (resting < 2)
			return;
		prba_worker_end(oldest);
	}
}

int prba_clients_look_after(struct prba_clients *clients, bool stopping)
{
	int64_t now = prba_now_ms(), first = 0;

	for (int i = 0; i < PRBA_CLIENTS; i++) {
		int64_t by = clients->list[i] ? look_after(clients, i, now, stopping) : 0;

		if (by && (!first || by < first))
			first = by;
	}
	end_surplus_workers(clients);
	if (!first)
		return -1;
	return first <= now ? 0 : first - now > 60000 ? 60000 : (int)(first - now);
}

bool prba_clients_are_over(const struct prba_clients *clients)
{
	bool over = true;

	for (int i = 0; i < PRBA_CLIENTS; i++)
		over &= !clients->list[i] || prba_worker_is_over(clients->list[i]);
	return over;
}

void prba_clients_end(struct prba_clients *clients)
{
	for (int i = 0; i < PRBA_CLIENTS; i++) {
		struct prba_connection *c = clients->list[i];

		clients->list[i] = NULL;
		if (!c)
			continue;
		prba_worker_deinit(c);
		prba_connection_destroy(c);
	}
}

void prba_clients_forked(struct prba_clients *clients)
{
	for (int i = 0; i < PRBA_CLIENTS; i++) {
		struct prba_connection *c = clients->list[i];

		if (c && prba_inode(c->fd) == c->inode)
			close(c->fd);
		if (c)
			atomic_store(&c->gone, true);
		clients->list[i] = NULL;
	}
}

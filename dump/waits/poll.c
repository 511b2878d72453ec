/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The descriptors that poll, select and epoll watch: their number, and the first few in words. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/vec.h"
#include "target/proc/text.h"
#include "dump/waits/wait_private.h"

enum {
	DESCRIBED = 4,
	MAX_NOTED = 64,	    /* whose other ends are looked for, if all are wanted */
	MAX_WATCHED = 4096, /* descriptors counted; more are "over 4096" */
};

struct watched {
	int fd;
	enum prb_direction direction;
};

struct watch {
	PRB_VEC(struct watched) list;
	bool more; /* more than MAX_WATCHED */
};

static void watch_deinit(struct watch *watch)
{
	prb_vec_free(&watch->list);
}
#define auto_watch __attribute__((cleanup(watch_deinit)))

static enum prb_direction direction_of(bool in, bool out)
{
	return in ? PRB_INCOMING : out ? PRB_OUTGOING : PRB_EITHER_WAY;
}

static bool add(struct watch *watch, int fd, enum prb_direction direction, struct prb_str *s)
{
	struct watched *watched;

	if (watch->list.count >= MAX_WATCHED) {
		watch->more = true;
		return false;
	}
	watched = prb_vec_push(&watch->list);
	if (!watched) {
		s->failed = true;
		return false;
	}
	*watched = (struct watched){fd, direction};
	return true;
}

static void put_watch(struct prb_wait_context *c, const struct watch *watch, struct prb_str *s)
{
	size_t noted = c->enders && c->search ? MAX_NOTED : DESCRIBED;

	if (watch->list.count > noted || watch->more)
		prb_enders_object(c, NULL);
	if (watch->list.count > 1)
		prb_str_printf(s, "%s%zu descriptors: ", watch->more ? "over " : "",
			       watch->list.count);
	for (size_t i = 0; i < watch->list.count && i < DESCRIBED; i++) {
		prb_str_puts(s, i ? ", " : "");
		prb_describe_fd(c, watch->list.items[i].fd, watch->list.items[i].direction, s);
	}
	if (watch->list.count > DESCRIBED)
		prb_str_puts(s, ", …");
	for (size_t i = DESCRIBED; i < watch->list.count && i < noted; i++) {
		prb_auto_str struct prb_str unused = {};

		prb_describe_fd(c, watch->list.items[i].fd, watch->list.items[i].direction,
				&unused);
		s->failed |= unused.failed;
	}
}

void prb_describe_poll(struct prb_wait_context *c, uint64_t fds, uint64_t count, struct prb_str *s)
{
	auto_watch struct watch watch = {};
	size_t known = (size_t)PRB_MIN(count, (uint64_t)MAX_WATCHED);
	struct pollfd *polled = known ? calloc(known, sizeof(*polled)) : NULL;

	if (known && !polled)
		s->failed = true;
	if (polled && prb_wait_ok(s, prb_mem_read(c->mem, fds, polled, known * sizeof(*polled)))) {
		for (size_t i = 0; i < known; i++) {
			short events = polled[i].events;

			/* The kernel ignores negative descriptors. */
			if (polled[i].fd >= 0)
				add(&watch, polled[i].fd,
				    direction_of(events & (POLLIN | POLLPRI), events & POLLOUT), s);
		}
		watch.more = count > known;
	}
	free(polled);
	put_watch(c, &watch, s);
}

void prb_describe_select(struct prb_wait_context *c, uint64_t count, const uint64_t sets[3],
			 struct prb_str *s)
{
	auto_watch struct watch watch = {};
	uint64_t bits[3][MAX_WATCHED / 64] = {};
	size_t known = (size_t)PRB_MIN(count, (uint64_t)MAX_WATCHED);

	for (int i = 0; i < 3; i++) {
		size_t bytes = (known + 63) / 64 * 8;

		if (sets[i] && !prb_wait_ok(s, prb_mem_read(c->mem, sets[i], bits[i], bytes)))
			memset(bits[i], 0, bytes);
	}
	for (size_t fd = 0; fd < known; fd++) {
		uint64_t bit = UINT64_C(1) << (fd % 64);
		bool in = (bits[0][fd / 64] | bits[2][fd / 64]) & bit;
		bool out = bits[1][fd / 64] & bit;

		if (in || out)
			add(&watch, (int)fd, direction_of(in, out), s);
	}
	put_watch(c, &watch, s);
}

static int compare_watched(const void *a, const void *b)
{
	const struct watched *x = a, *y = b;

	return x->fd < y->fd ? -1 : x->fd > y->fd;
}

void prb_describe_epoll(struct prb_wait_context *c, int fd, struct prb_str *s)
{
	auto_watch struct watch watch = {};
	prb_auto_str struct prb_str info = {};

	prb_describe_fd(c, fd, PRB_EITHER_WAY, s);
	c->instances++;
	if (!prb_wait_ok(s, prb_target_read_file(c->target, &info, "fdinfo/%d", fd)))
		return;
	for (const char *line = prb_str_text(&info); line; line = strchr(line, '\n')) {
		unsigned events;
		int watched;

		line += *line == '\n';
		if (sscanf(line, "tfd: %d events: %x", &watched, &events) == 2 &&
		    !add(&watch, watched, direction_of(events & EPOLLIN, events & EPOLLOUT), s))
			break;
	}
	if (!watch.list.count) {
		prb_str_puts(s, " watching nothing");
		return;
	}
	qsort(watch.list.items, watch.list.count, sizeof(*watch.list.items), compare_watched);
	prb_str_puts(s, " watching ");
	put_watch(c, &watch, s);
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/client/connection.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "agent/inside/libc.h"

enum {
	FIRST_IN = 16 << 10,
	MAX_IN = PRB_WIRE_MAX_REQUEST + PRB_WIRE_HEADER_SIZE,
	OUT_SIZE = 256 << 10,
	PATIENCE_MS = 10000, /* with a client that does not read */
};

static void *map(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

uint64_t prba_inode(int fd)
{
	enum { DEVICE_BITS = 32 };
	struct stat st; /* as the kernel writes it, on 64-bit machines */

	return syscall(SYS_fstat, fd, &st) ? 0 : st.st_ino ^ (uint64_t)st.st_dev << DEVICE_BITS;
}

/** The program may have closed it, and its number may be that of something else by now. */
static bool is_ours(struct prba_connection *c)
{
	if (prba_inode(c->fd) == c->inode)
		return true;
	atomic_store(&c->gone, true);
	return false;
}

static int32_t peer_of(int fd)
{
	struct ucred peer;
	socklen_t length = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) ? 0 : peer.pid;
}

struct prba_connection *prba_connection_create(int fd)
{
	struct prba_connection *c = map(sizeof(*c));

	if (!c)
		return NULL;
	c->fd = fd;
	c->inode = prba_inode(fd);
	c->pid = peer_of(fd);
	pthread_mutex_init(&c->lock, NULL);
	pthread_mutex_init(&c->job.lock, NULL);
	return c;
}

void prba_connection_destroy(struct prba_connection *c)
{
	if (is_ours(c))
		close(c->fd);
	if (c->in)
		munmap(c->in, c->in_size);
	if (c->out)
		munmap(c->out, OUT_SIZE);
	munmap(c, sizeof(*c));
}

static bool make_room(struct prba_connection *c)
{
	size_t size = c->in_size ? c->in_size * 2 : FIRST_IN;
	uint8_t *more;

	if (c->in_used < c->in_size)
		return true;
	if (c->in_size >= MAX_IN)
		return false;
	if (size > MAX_IN)
		size = MAX_IN;
	more = map(size);
	if (!more)
		return false;
	if (c->in) {
		memcpy(more, c->in, c->in_used);
		munmap(c->in, c->in_size);
	}
	c->in = more;
	c->in_size = size;
	return true;
}

bool prba_connection_receive(struct prba_connection *c)
{
	ssize_t got;

	if (!make_room(c) || !is_ours(c))
		return false;
	got = recv(c->fd, c->in + c->in_used, c->in_size - c->in_used, MSG_DONTWAIT);
	if (got > 0)
		c->in_used += (size_t)got;
	return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

int prba_connection_next(struct prba_connection *c, struct prb_wire_frame *ret)
{
	return prb_wire_next(c->in, c->in_used, PRB_WIRE_MAX_REQUEST, ret);
}

void prba_connection_drop(struct prba_connection *c, const struct prb_wire_frame *frame)
{
	size_t length = PRB_WIRE_HEADER_SIZE + (size_t)frame->length;

	c->in_used -= length;
	memmove(c->in, c->in + length, c->in_used);
	/* Large code came; the memory goes. */
	if (!c->in_used && c->in_size > FIRST_IN) {
		munmap(c->in, c->in_size);
		c->in = NULL;
		c->in_size = 0;
	}
}

void prba_connection_give_up(struct prba_connection *c)
{
	if (!atomic_exchange(&c->gone, true) && is_ours(c))
		shutdown(c->fd, SHUT_RDWR);
}

/** Under the lock. */
static void flush(struct prba_connection *c)
{
	while (c->out_start < c->out_end && !atomic_load(&c->gone) && is_ours(c)) {
		ssize_t sent = send(c->fd, c->out + c->out_start, c->out_end - c->out_start,
				    MSG_DONTWAIT | MSG_NOSIGNAL);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0 && errno == EAGAIN)
			return;
		if (sent < 0) {
			prba_connection_give_up(c);
			break;
		}
		c->out_start += (size_t)sent;
	}
	c->out_start = c->out_end = 0;
}

/** Room behind what is queued; under the lock. */
static uint8_t *room(struct prba_connection *c, size_t length)
{
	if (!c->out)
		c->out = map(OUT_SIZE);
	if (!c->out) {
		prba_connection_give_up(c);
		return NULL;
	}
	if (c->out_end + length > OUT_SIZE && c->out_start) {
		memmove(c->out, c->out + c->out_start, c->out_end - c->out_start);
		c->out_end -= c->out_start;
		c->out_start = 0;
	}
	return c->out_end + length > OUT_SIZE ? NULL : c->out + c->out_end;
}

enum prba_sent prba_connection_send(struct prba_connection *c, uint16_t type, uint16_t request,
				    const void *data, size_t length)
{
	enum prba_sent result = PRBA_SENT;

	pthread_mutex_lock(&c->lock);
	if (!atomic_load(&c->gone)) {
		/* Keeps room for the final frame, which reports the outcome. */
		size_t spare = c->keeps && type != PRB_WIRE_DONE ? PRB_WIRE_MAX_REPLY : 0;
		uint8_t *at = room(c, PRB_WIRE_HEADER_SIZE + length + spare);

		if (at) {
			prb_wire_put_header(at, (uint32_t)length, type, request);
			if (length)
				memcpy(at + PRB_WIRE_HEADER_SIZE, data, length);
			c->out_end += PRB_WIRE_HEADER_SIZE + length;
		}
		if (!c->keeps)
			flush(c);
		if (!at && !atomic_load(&c->gone))
			result = PRBA_FULL;
	}
	pthread_mutex_unlock(&c->lock);
	return result;
}

bool prba_connection_flush(struct prba_connection *c)
{
	bool left;

	pthread_mutex_lock(&c->lock);
	if (c->out_start < c->out_end)
		flush(c);
	left = c->out_start < c->out_end;
	pthread_mutex_unlock(&c->lock);
	return left;
}

void prba_connection_wait(struct prba_connection *c)
{
	struct pollfd wait = {.fd = c->fd, .events = POLLOUT};
	int rc;

	if (!atomic_load(&c->gone) && is_ours(c)) {
		do {
			rc = poll(&wait, 1, PATIENCE_MS);
		} while (rc < 0 && errno == EINTR);
		if (rc <= 0)
			prba_connection_give_up(c);
	}
}

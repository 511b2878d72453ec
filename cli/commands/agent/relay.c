/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/commands/agent/relay.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control/load.h"
#include "control/socket.h"
#include "base/cleanup.h"

enum { CHUNK = 64 << 10 };

/** One direction: what was read from one descriptor and is to be written to the other. */
struct way {
	int from, to;
	char data[CHUNK];
	size_t used, written;
};

/** Reads if there is nothing to write, else writes; false at the end of either descriptor. */
static bool move(struct way *way)
{
	ssize_t count;

	if (way->written < way->used) {
		count = write(way->to, way->data + way->written, way->used - way->written);
		if (count > 0)
			way->written += (size_t)count;
	} else {
		way->written = way->used = 0;
		count = read(way->from, way->data, CHUNK);
		if (count > 0)
			way->used = (size_t)count;
	}
	return count > 0 || (count < 0 && (errno == EINTR || errno == EAGAIN));
}

static struct pollfd expect(const struct way *way)
{
	bool writes = way->written < way->used;

	return (struct pollfd){.fd = writes ? way->to : way->from,
			       .events = writes ? POLLOUT : POLLIN};
}

static struct prb_error *pass_on(int fd)
{
	prb_auto_free struct way *ways = calloc(2, sizeof(*ways));

	if (!ways)
		return prb_error_nomem();
	ways[0].from = STDIN_FILENO;
	ways[0].to = ways[1].from = fd;
	ways[1].to = STDOUT_FILENO;
	for (;;) {
		struct pollfd waits[2] = {expect(&ways[0]), expect(&ways[1])};

		if (poll(waits, 2, -1) < 0 && errno != EINTR)
			return prb_error_os(errno, "cannot wait for the agent");
		for (size_t i = 0; i < 2; i++)
			if (waits[i].revents && !move(&ways[i]))
				return NULL;
	}
}

struct prb_error *prb_agent_relay(struct prb_target *t, bool may_load)
{
	prb_auto_close int fd = -1;
	struct prb_agent *agent;

	/* The hello is the client's, which gets a connection of its own. */
	PRB_TRY(prb_agent_reach(t, may_load, &agent));
	prb_agent_close(agent);
	PRB_TRY(prb_agent_socket(t, &fd));
	signal(SIGPIPE, SIG_IGN);
	return pass_on(fd);
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Messages of ZeroMQ that lie between the processes of a server. */
#include "base/cleanup.h"
#include "base/text.h"
#include "dump/zeromq/zeromq.h"
#include "judge/server/private.h"

/** The connection with the most messages in one direction. */
struct most {
	const struct prb_zeromq_socket *socket;
	const struct prb_zeromq_pipe *pipe;
	int64_t count;
};

static struct most find_most(const struct prb_zeromq *zeromq, bool inwards)
{
	const struct prb_zeromq_socket *socket;
	const struct prb_zeromq_pipe *pipe;
	struct most most = {};

	prb_vec_each (socket, &zeromq->sockets)
		prb_vec_each (pipe, &socket->pipes) {
			int64_t count = inwards ? pipe->in : pipe->out;

			/* Between threads of one process nothing is lost by another one. */
			if (!pipe->other && count > most.count)
				most = (struct most){socket, pipe, count};
		}
	return most;
}

static void put_socket(struct prb_str *text, const struct most *most,
		       const struct prb_server_process *p)
{
	const struct prb_str *endpoint =
		most->socket->endpoint.length ? &most->socket->endpoint : &most->pipe->endpoint;

	prb_str_printf(text, "the ZeroMQ socket %s", most->socket->type);
	if (endpoint->length) {
		prb_str_putc(text, ' ');
		prb_text_escape(text, prb_str_text(endpoint));
	}
	prb_str_puts(text, " of ");
	prb_server_put(text, p);
}

struct prb_error *prb_server_put_messages(struct prb_str *text, const struct prb_server_process *p,
					  bool inwards, bool *ret)
{
	prb_auto_zeromq struct prb_zeromq zeromq = {};
	struct most most;

	*ret = false;
	if (!p->target)
		return NULL;
	PRB_TRY(prb_error_tolerate(prb_zeromq_read(p->target, &zeromq), NULL));
	most = find_most(&zeromq, inwards);
	if (!most.count)
		return NULL;
	*ret = true;
	put_socket(text, &most, p);
	prb_str_puts(text, !inwards && most.pipe->full ? " is full: " : " has ");
	prb_server_put_count(text, (size_t)most.count, "message");
	prb_str_puts(text, inwards ? " that it has not received" : " that it has not passed on");
	return NULL;
}

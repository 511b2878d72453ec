/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cluster/ras.h"

#include <errno.h>
#include <jansson.h>
#include <netdb.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"
#include "remote/remote_address.h"

enum { MOST_ANSWER = 64 << 20, CHUNK = 65536, MAX_ADDRESS = 64 };

/* RAS itself waits some seconds for processes that do not answer. */
static const double PATIENCE = 20;

static const char REQUEST[] = "CLIENT PROTOCOL 2\nSET FORMAT json\nVERBOSE STATUS\n";

static struct prb_error *cannot(int why, const char *address)
{
	return prb_error_hint(
		prb_error_os(why, "cannot ask NCCL's RAS service at %.200s", address),
		"NCCL has it from 2.24 on, unless NCCL_RAS_ENABLE is 0, on the machine of each "
		"rank; $NCCL_RAS_ADDR of a rank is its address");
}

static struct prb_error *open_socket(const char *address, int *ret)
{
	const struct timeval limit = {.tv_sec = (long)PATIENCE};
	struct addrinfo *list;
	int why = 0;

	*ret = -1;
	PRB_TRY(prb_address_resolve(address, false, &list));
	for (const struct addrinfo *info = list; info && *ret < 0; info = info->ai_next) {
		prb_auto_close int fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

		/* The limit of sending is that of connecting, too. */
		if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) ||
		    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) ||
		    connect(fd, info->ai_addr, info->ai_addrlen))
			why = errno;
		else
			*ret = prb_steal_fd(&fd);
	}
	freeaddrinfo(list);
	return *ret < 0 ? cannot(why, address) : NULL;
}

/** RAS closes the connection when it has told all. */
static struct prb_error *ask(const char *address, struct prb_str *ret)
{
	double until = prb_clock_seconds() + PATIENCE;
	prb_auto_close int fd = -1;
	char chunk[CHUNK];

	PRB_TRY(open_socket(address, &fd));
	if (send(fd, REQUEST, strlen(REQUEST), MSG_NOSIGNAL) != (ssize_t)strlen(REQUEST))
		return cannot(errno, address);
	for (;;) {
		ssize_t got = recv(fd, chunk, sizeof(chunk), 0);

		if (got < 0 && errno == EINTR)
			return prb_error_create(PRB_ERROR_CANCELLED, "interrupted");
		if (got < 0)
			return cannot(errno == EAGAIN ? ETIMEDOUT : errno, address);
		if (!got)
			return ret->failed ? prb_error_nomem() : NULL;
		prb_str_append(ret, chunk, (size_t)got);
		if (ret->length > MOST_ANSWER || prb_clock_seconds() > until)
			return cannot(ret->length > MOST_ANSWER ? EFBIG : ETIMEDOUT, address);
	}
}

/** RAS names hosts by their addresses; anything else is not for ssh. */
static bool is_address(const char *host)
{
	size_t length = strlen(host);

	return length && length < MAX_ADDRESS &&
	       strspn(host, "0123456789abcdefABCDEF.:") == length && strpbrk(host, ".:");
}

static struct prb_error *add_host(const json_t *rank, struct prb_hosts *ret)
{
	const char *host = json_string_value(json_object_get(rank, "host"));
	char **place;

	if (!host || !is_address(host))
		return NULL;
	prb_vec_each (place, &ret->list)
		if (!strcmp(*place, host))
			return NULL;
	if (ret->list.count >= PRB_MAX_HOSTS)
		return prb_error_create(PRB_ERROR_BAD_DATA, "RAS names over %d hosts",
					PRB_MAX_HOSTS);
	place = prb_vec_push(&ret->list);
	if (!place)
		return prb_error_nomem();
	*place = strdup(host);
	return *place ? NULL : prb_error_nomem();
}

/** Of each communicator the ranks that answered and those that are missing. */
static struct prb_error *add_hosts(const json_t *document, struct prb_hosts *ret)
{
	static const char *const lists[] = {"ranks", "missing_ranks"};
	json_t *communicator, *rank;
	size_t i, k;

	json_array_foreach(json_object_get(document, "communicators"), i, communicator)
	{
		for (size_t n = 0; n < PRB_ARRAY_SIZE(lists); n++)
			json_array_foreach(json_object_get(communicator, lists[n]), k, rank)
				PRB_TRY(add_host(rank, ret));
	}
	return NULL;
}

struct prb_error *prb_ras_find(const char *address, struct prb_hosts *ret)
{
	prb_auto_str struct prb_str text = {};
	struct prb_error *err;
	json_t *document;
	const char *from;

	PRB_TRY(ask(address, &text));
	from = strchr(prb_str_text(&text), '{');
	document = from ? json_loads(from, 0, NULL) : NULL;
	if (!document)
		return prb_error_hint(
			prb_error_create(PRB_ERROR_UNSUPPORTED,
					 "the RAS service at %.200s does not tell its "
					 "ranks in JSON",
					 address),
			"NCCL does from 2.28.7 on; name the hosts with --hosts");
	err = add_hosts(document, ret);
	json_decref(document);
	if (!err && !ret->list.count)
		err = prb_error_create(PRB_ERROR_NOT_FOUND,
				       "the RAS service at %.200s names no host", address);
	return err;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cluster/reach/ras.h"

#include <errno.h>
#include <jansson.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"
#include "remote/socket_address.h"

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

		/* SO_SNDTIMEO also limits connect(). */
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

/** RAS closes the connection after its answer. */
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

void prb_ras_destroy(struct prb_ras *ras)
{
	struct prb_ras_communicator *communicator;
	struct prb_ras_rank *rank;

	if (!ras)
		return;
	prb_vec_each (communicator, &ras->list) {
		prb_vec_each (rank, &communicator->ranks)
			free(rank->host);
		prb_vec_free(&communicator->ranks);
		for (size_t i = 0; i < PRB_RAS_OPERATIONS; i++)
			free(communicator->operations[i]);
		free(communicator->name);
		free(communicator->second);
	}
	prb_vec_free(&ras->list);
	free(ras);
}

/** The place of an operation; -1 for one too many. */
static int find_operation(struct prb_ras_communicator *communicator, const char *name)
{
	for (int i = 0; i < PRB_RAS_OPERATIONS; i++) {
		if (!communicator->operations[i])
			communicator->operations[i] = strdup(name);
		if (!communicator->operations[i])
			return -1;
		if (!strcmp(communicator->operations[i], name))
			return i;
	}
	return -1;
}

static long number_of(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	return json_is_integer(value) && json_integer_value(value) >= 0 &&
			       json_integer_value(value) <= INT32_MAX
		       ? (long)json_integer_value(value)
		       : -1;
}

static struct prb_error *add_rank(json_t *value, bool missing,
				  struct prb_ras_communicator *communicator)
{
	const char *host = json_string_value(json_object_get(value, "host")), *operation;
	json_t *counts = json_object_get(value, "collective_counts"), *count;
	struct prb_ras_rank *rank = prb_vec_push(&communicator->ranks);

	if (!rank)
		return prb_error_nomem();
	*rank = (struct prb_ras_rank){
		.rank = number_of(value, "rank"),
		.pid = number_of(value, "pid"),
		.missing = missing,
		.dead = json_is_true(
			json_object_get(json_object_get(value, "status"), "considered_dead"))};
	json_object_foreach(counts, operation, count)
	{
		int place = find_operation(communicator, operation);

		if (place >= 0 && json_is_integer(count))
			rank->counts[place] = json_integer_value(count);
	}
	return host && is_address(host) ? prb_str_copy(host, &rank->host) : NULL;
}

/** The hash by which RAS names a communicator; other values give no name. */
static struct prb_error *copy_hash(const json_t *value, const char *key, char **ret)
{
	const char *text = json_string_value(json_object_get(value, key));
	bool good = text && strlen(text) < MAX_ADDRESS &&
		    strspn(text, "0123456789abcdefx:") == strlen(text);

	return prb_str_copy(good ? text : "?", ret);
}

static struct prb_error *add_communicator(json_t *value, struct prb_ras *ras)
{
	struct prb_ras_communicator *communicator = prb_vec_push(&ras->list);
	json_t *rank;
	size_t i;

	if (!communicator)
		return prb_error_nomem();
	*communicator = (struct prb_ras_communicator){.size = number_of(value, "size")};
	PRB_TRY(copy_hash(value, "hash", &communicator->name));
	PRB_TRY(copy_hash(value, "secondary_hash", &communicator->second));
	json_array_foreach(json_object_get(value, "ranks"), i, rank)
		PRB_TRY(add_rank(rank, false, communicator));
	json_array_foreach(json_object_get(value, "missing_ranks"), i, rank)
		PRB_TRY(add_rank(rank, true, communicator));
	return NULL;
}

static struct prb_error *parse(const struct prb_str *text, const char *address, struct prb_ras *ras)
{
	const char *from = strchr(prb_str_text(text), '{');
	json_t *document = from ? json_loads(from, 0, NULL) : NULL, *communicator;
	struct prb_error *err = NULL;
	size_t i;

	if (!document)
		return prb_error_hint(
			prb_error_create(PRB_ERROR_UNSUPPORTED,
					 "the RAS service at %.200s does not tell its "
					 "ranks in JSON",
					 address),
			"NCCL does from 2.28.7 on; name the hosts with --hosts");
	json_array_foreach(json_object_get(document, "communicators"), i, communicator) if (!err)
		err = add_communicator(communicator, ras);
	json_decref(document);
	return err;
}

struct prb_error *prb_ras_read(const char *address, struct prb_ras **ret)
{
	prb_auto_str struct prb_str text = {};
	struct prb_ras *ras = calloc(1, sizeof(*ras));
	struct prb_error *err;

	*ret = NULL;
	if (!ras)
		return prb_error_nomem();
	ras->seconds = prb_clock_seconds();
	err = ask(address, &text);
	if (!err)
		err = parse(&text, address, ras);
	if (err)
		prb_ras_destroy(ras);
	else
		*ret = ras;
	return err;
}

static struct prb_error *add_host(const char *host, struct prb_hosts *ret)
{
	char **place;

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

struct prb_error *prb_ras_hosts(const struct prb_ras *ras, const char *address,
				struct prb_hosts *ret)
{
	const struct prb_ras_communicator *communicator;
	const struct prb_ras_rank *rank;

	prb_vec_each (communicator, &ras->list)
		prb_vec_each (rank, &communicator->ranks)
			if (rank->host)
				PRB_TRY(add_host(rank->host, ret));
	return ret->list.count
		       ? NULL
		       : prb_error_create(PRB_ERROR_NOT_FOUND,
					  "the RAS service at %.200s names no host", address);
}

bool prb_ras_is_same(const struct prb_ras_communicator *a, const struct prb_ras_communicator *b)
{
	if (strcmp(a->name, b->name) != 0 || strcmp(a->second, b->second) != 0 ||
	    a->ranks.count != b->ranks.count)
		return false;
	for (size_t i = 0; i < a->ranks.count; i++)
		if (a->ranks.items[i].rank != b->ranks.items[i].rank ||
		    a->ranks.items[i].missing != b->ranks.items[i].missing ||
		    memcmp(a->ranks.items[i].counts, b->ranks.items[i].counts,
			   sizeof(a->ranks.items[i].counts)) != 0)
			return false;
	return true;
}

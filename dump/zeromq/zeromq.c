/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dump/zeromq/zeromq.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "dump/zeromq/private.h"
#include "target/proc/text.h"

/* libzmq marks its contexts and sockets with these. */
enum { CONTEXT_TAG = 0xabadcafe, SOCKET_TAG = 0xbaddecaf };

/* No object lies below. */
enum { LOWEST = 4096 };

void prb_zeromq_deinit(struct prb_zeromq *zeromq)
{
	struct prb_zeromq_socket *socket;
	struct prb_zeromq_pipe *pipe;

	prb_vec_each (socket, &zeromq->sockets) {
		prb_vec_each (pipe, &socket->pipes)
			prb_str_deinit(&pipe->endpoint);
		prb_vec_free(&socket->pipes);
		prb_str_deinit(&socket->endpoint);
	}
	prb_vec_free(&zeromq->sockets);
}

const struct prb_zeromq_socket *prb_zeromq_socket_of(const struct prb_zeromq *zeromq, int fd)
{
	const struct prb_zeromq_socket *socket;

	prb_vec_each (socket, &zeromq->sockets)
		if (fd >= 0 && socket->fd == fd)
			return socket;
	return NULL;
}

static bool peek(struct prb_zeromq_reader *r, uint64_t address, void *buffer, size_t length)
{
	struct prb_error *err = prb_mem_peek(r->classes.mem, address, buffer, length);
	bool ok = !err;

	if (err && err->code == PRB_ERROR_NOMEM)
		r->classes.failed = true;
	prb_error_destroy(err);
	return ok;
}

void prb_zeromq_words(struct prb_zeromq_reader *r, uint64_t address, struct prb_zeromq_words *ret)
{
	enum { SMALLEST = 32, FLAGS = 7 };
	size_t most = PRB_ARRAY_SIZE(ret->items);
	uint64_t chunk;

	ret->address = address;
	ret->count = 0;
	/* glibc's malloc() has the size in front. Another one's objects may be read too far. */
	if (!peek(r, address - sizeof(chunk), &chunk, sizeof(chunk)))
		return;
	chunk &= ~(uint64_t)FLAGS;
	if (chunk % 16 == 0 && chunk >= SMALLEST && chunk < sizeof(ret->items))
		most = chunk / sizeof(*ret->items) - 1;
	/* Memory may end behind the object. */
	for (size_t count = most; count >= SMALLEST / sizeof(*ret->items) - 1; count /= 2)
		if (peek(r, address, ret->items, count * sizeof(*ret->items))) {
			ret->count = count;
			return;
		}
}

bool prb_zeromq_is_vector(const uint64_t words[3], uint64_t *first, uint64_t *count)
{
	*first = words[0];
	*count = (words[1] - words[0]) / sizeof(uint64_t);
	return words[0] && words[0] % sizeof(uint64_t) == 0 && words[1] >= words[0] &&
	       words[2] >= words[1] && (words[1] - words[0]) % sizeof(uint64_t) == 0 &&
	       (words[2] - words[0]) % sizeof(uint64_t) == 0;
}

bool prb_zeromq_text(struct prb_zeromq_reader *r, uint64_t address, struct prb_str *ret)
{
	enum { LONGEST = 256 };
	size_t before = ret->length;
	struct prb_error *err;

	if (address < LOWEST)
		return false;
	err = prb_mem_read_cstr(r->classes.mem, address, LONGEST, ret);
	if (!err)
		return true;
	r->classes.failed = r->classes.failed || err->code == PRB_ERROR_NOMEM;
	prb_error_destroy(err);
	prb_str_truncate(ret, before);
	return false;
}

bool prb_zeromq_endpoint(struct prb_zeromq_reader *r, uint64_t address, struct prb_str *ret)
{
	static const char *const starts[] = {"tcp://", "ipc://",  "inproc://", "tipc://",
					     "pgm://", "epgm://", "udp://",    "ws://",
					     "wss://", "vsock://"};
	char start[10];

	/* Most of the words that are asked about are no text at all. */
	if (address < LOWEST || !peek(r, address, start, sizeof(start)))
		return false;
	for (size_t i = 0; i < PRB_ARRAY_SIZE(starts); i++)
		if (!strncmp(start, starts[i], strlen(starts[i])))
			return prb_zeromq_text(r, address, ret);
	return false;
}

/* What the epoll instance @p instance watches: a descriptor, and an object that begins with it. */
static struct prb_error *note_watched(struct prb_zeromq_reader *r, int instance)
{
	prb_auto_str struct prb_str info = {};
	struct prb_error *err = prb_target_read_file(r->t, &info, "fdinfo/%d", instance);

	if (err)
		return prb_error_tolerate(err, NULL);
	for (const char *line = prb_str_text(&info); line; line = strchr(line, '\n')) {
		struct prb_zeromq_watched *watched;
		const struct prb_class *class;
		unsigned long long data;
		uint64_t words[4], object;
		int fd;

		line += *line == '\n';
		if (sscanf(line, "tfd: %d events: %*x data: %llx", &fd, &data) != 2 ||
		    data < LOWEST || data % 8 || !peek(r, data, words, sizeof(words)) ||
		    (int)(uint32_t)words[0] != fd)
			continue;
		/* The parts of struct epoll_event lie closer together on x86_64. */
		class = prb_class_of(&r->classes, words[2], &object);
		if (!class)
			class = prb_class_of(&r->classes, words[3], &object);
		if (!class)
			continue;
		r->cut = r->cut || r->watched.count >= PRB_ZEROMQ_MOST;
		watched = r->cut ? NULL : prb_vec_push(&r->watched);
		if (!watched)
			return r->cut ? NULL : prb_error_nomem();
		*watched = (struct prb_zeromq_watched){
			.fd = fd,
			.object = object,
			.engine = strstr(class->name, "engine"),
			.listener = strstr(class->name, "listener"),
		};
	}
	return NULL;
}

static int compare_watched(const void *a, const void *b)
{
	const struct prb_zeromq_watched *x = a, *y = b;

	return x->object < y->object ? -1 : x->object > y->object;
}

static struct prb_error *note_eventfd(struct prb_zeromq_reader *r, int fd)
{
	int *place = r->eventfds.count < PRB_ZEROMQ_MOST ? prb_vec_push(&r->eventfds) : NULL;

	if (place)
		*place = fd;
	return place || r->eventfds.count >= PRB_ZEROMQ_MOST ? NULL : prb_error_nomem();
}

static struct prb_error *find_watched(struct prb_zeromq_reader *r)
{
	prb_auto_str struct prb_str names = {};
	char *end;

	PRB_TRY(prb_target_list(r->t, &names, "fd"));
	for (const char *at = prb_str_text(&names);; at = end) {
		prb_auto_str struct prb_str link = {};
		int fd = (int)strtol(at, &end, 10);
		struct prb_error *err;

		if (end == at)
			return NULL;
		err = prb_target_read_link(r->t, &link, "fd/%d", fd);
		if (!err && !strcmp(prb_str_text(&link), "anon_inode:[eventpoll]"))
			err = note_watched(r, fd);
		else if (!err && !strcmp(prb_str_text(&link), "anon_inode:[eventfd]"))
			err = note_eventfd(r, fd);
		PRB_TRY(prb_error_tolerate(err, NULL));
	}
}

/* The place of a 32-bit @p tag among the words, in units of four bytes; 0: it is not there. */
static size_t find_tag(const struct prb_zeromq_words *words, uint32_t tag)
{
	for (size_t i = 0; i < words->count * 2; i++)
		if ((uint32_t)(words->items[i / 2] >> (i % 2 * 32)) == tag)
			return i + 1;
	return 0;
}

/* The vector of sockets, next to the tag. */
static bool find_sockets(struct prb_zeromq_reader *r, uint64_t context, uint64_t *first,
			 uint64_t *count)
{
	struct prb_zeromq_words words;
	size_t next;

	prb_zeromq_words(r, context, &words);
	next = find_tag(&words, CONTEXT_TAG);
	next = (next + 1) / 2;
	return next && next + 3 <= words.count &&
	       prb_zeromq_is_vector(&words.items[next], first, count);
}

/* An object of libzmq begins with its class, and its context. */
static struct prb_error *find_contexts(struct prb_zeromq_reader *r)
{
	const struct prb_zeromq_watched *watched;

	prb_vec_each (watched, &r->watched) {
		uint64_t context, first, count, *known;
		bool seen = false;

		if (!peek(r, watched->object + 8, &context, sizeof(context)) || context < LOWEST ||
		    context % 8)
			continue;
		prb_vec_each (known, &r->contexts)
			seen = seen || *known == context;
		if (seen || !find_sockets(r, context, &first, &count))
			continue;
		known = prb_vec_push(&r->contexts);
		if (!known)
			return prb_error_nomem();
		*known = context;
	}
	return NULL;
}

static const char *type_of(const struct prb_class *class)
{
	static const struct {
		const char *class, *type;
	} types[] = {
		{"N3zmq6pair_tE", "PAIR"},	 {"N3zmq5pub_tE", "PUB"},
		{"N3zmq5sub_tE", "SUB"},	 {"N3zmq5req_tE", "REQ"},
		{"N3zmq5rep_tE", "REP"},	 {"N3zmq8dealer_tE", "DEALER"},
		{"N3zmq8router_tE", "ROUTER"},	 {"N3zmq6pull_tE", "PULL"},
		{"N3zmq6push_tE", "PUSH"},	 {"N3zmq6xpub_tE", "XPUB"},
		{"N3zmq6xsub_tE", "XSUB"},	 {"N3zmq8stream_tE", "STREAM"},
		{"N3zmq8server_tE", "SERVER"},	 {"N3zmq8client_tE", "CLIENT"},
		{"N3zmq7radio_tE", "RADIO"},	 {"N3zmq6dish_tE", "DISH"},
		{"N3zmq8gather_tE", "GATHER"},	 {"N3zmq9scatter_tE", "SCATTER"},
		{"N3zmq7dgram_tE", "DGRAM"},	 {"N3zmq6peer_tE", "PEER"},
		{"N3zmq9channel_tE", "CHANNEL"},
	};

	for (size_t i = 0; class && i < PRB_ARRAY_SIZE(types); i++)
		if (!strcmp(class->name, types[i].class))
			return types[i].type;
	return NULL;
}

static bool is_eventfd(const struct prb_zeromq_reader *r, uint32_t fd)
{
	const int *known;

	prb_vec_each (known, &r->eventfds)
		if ((uint32_t)*known == fd)
			return true;
	return false;
}

/*
 * A signaler: the descriptors that it writes and reads, and mostly its process. They are one
 * eventfd, or two sockets where libzmq was built without.
 */
static int find_signaler(const struct prb_zeromq_reader *r, const uint64_t *words, size_t count)
{
	enum { LARGEST = 1 << 20 };
	const uint32_t *halves = (const uint32_t *)words;

	for (size_t i = 0; i + 2 < count * 2; i++) {
		uint32_t writes = halves[i], reads = halves[i + 1];
		bool own = halves[i + 2] == (uint32_t)r->pid;

		if ((writes == reads && is_eventfd(r, reads)) ||
		    (own && writes > 2 && writes < LARGEST && reads > 2 && reads < LARGEST))
			return (int)reads;
	}
	return -1;
}

/* The mailbox lies in the socket until 4.1, and by itself since. */
static int find_fd(struct prb_zeromq_reader *r, const struct prb_zeromq_words *socket, size_t from)
{
	enum { MAILBOX = 80, SEARCHED = 4 }; /* words */
	uint64_t mailbox[MAILBOX], object;
	size_t count = PRB_MIN(socket->count - from, (size_t)MAILBOX);

	for (size_t i = from; i < from + SEARCHED && i < socket->count; i++) {
		const struct prb_class *class =
			prb_class_of(&r->classes, socket->items[i], &object);

		if (class && !strcmp(class->name, "N3zmq9mailbox_tE") &&
		    peek(r, object, mailbox, sizeof(mailbox)))
			return find_signaler(r, mailbox, PRB_ARRAY_SIZE(mailbox));
	}
	return find_signaler(r, &socket->items[from], count);
}

static struct prb_error *add_pipe(struct prb_zeromq_reader *r, uint64_t address,
				  struct prb_zeromq_socket *socket)
{
	struct prb_zeromq_pipe pipe, *place;

	r->cut = r->cut || r->pipes++ >= PRB_ZEROMQ_MOST;
	if (r->cut)
		return NULL;
	if (!prb_zeromq_pipe(r, address, &pipe)) {
		prb_str_deinit(&pipe.endpoint);
		return NULL;
	}
	place = pipe.endpoint.failed ? NULL : prb_vec_push(&socket->pipes);
	if (!place) {
		prb_str_deinit(&pipe.endpoint);
		return prb_error_nomem();
	}
	*place = pipe;
	return NULL;
}

/* The first vector behind the tag whose items are pipes: there is no other. */
static struct prb_error *find_pipes(struct prb_zeromq_reader *r,
				    const struct prb_zeromq_words *words, size_t from,
				    struct prb_zeromq_socket *socket)
{
	for (size_t i = from; i + 3 <= words->count && !socket->pipes.count; i++) {
		uint64_t first, count, address;

		if (!prb_zeromq_is_vector(&words->items[i], &first, &count))
			continue;
		for (uint64_t k = 0; k < count && !r->cut; k++) {
			if (!peek(r, first + k * 8, &address, sizeof(address)))
				break;
			PRB_TRY(add_pipe(r, address, socket));
			if (!socket->pipes.count)
				break;
		}
	}
	return NULL;
}

/* True if a listener belongs to the socket: it has its address. */
static bool find_listener(struct prb_zeromq_reader *r, uint64_t socket)
{
	const struct prb_zeromq_watched *watched;
	struct prb_zeromq_words words;

	prb_vec_each (watched, &r->watched) {
		if (!watched->listener)
			continue;
		prb_zeromq_words(r, watched->object, &words);
		for (size_t i = 0; i < words.count; i++)
			if (words.items[i] == socket)
				return true;
	}
	return false;
}

static struct prb_error *read_socket(struct prb_zeromq_reader *r, uint64_t address,
				     uint64_t context, struct prb_zeromq *ret)
{
	enum { SEARCHED = 96 }; /* words behind the tag */
	struct prb_zeromq_words words;
	struct prb_zeromq_socket *socket;
	uint64_t object;
	const char *type = type_of(prb_class_of(&r->classes, address, &object));
	size_t from;

	if (!type)
		return NULL;
	prb_zeromq_words(r, object, &words);
	from = find_tag(&words, SOCKET_TAG) / 2;
	if (!from)
		return NULL;
	socket = prb_vec_push(&ret->sockets);
	if (!socket)
		return prb_error_nomem();
	socket->address = object;
	socket->context = context;
	socket->type = type;
	words.count = PRB_MIN(words.count, from + SEARCHED);
	socket->fd = find_fd(r, &words, from);
	socket->listens = find_listener(r, object);
	for (size_t i = from; i < words.count; i++)
		if (prb_zeromq_endpoint(r, words.items[i], &socket->endpoint))
			break;
	if (socket->endpoint.failed)
		return prb_error_nomem();
	return find_pipes(r, &words, from, socket);
}

static struct prb_error *read_context(struct prb_zeromq_reader *r, uint64_t context,
				      struct prb_zeromq *ret)
{
	uint64_t first, count, address;

	if (!find_sockets(r, context, &first, &count))
		return NULL;
	for (uint64_t i = 0; i < count; i++) {
		r->cut = r->cut || ret->sockets.count >= PRB_ZEROMQ_MOST || i >= PRB_ZEROMQ_MOST;
		if (r->cut || !peek(r, first + i * 8, &address, sizeof(address)))
			return NULL;
		PRB_TRY(read_socket(r, address, context, ret));
	}
	return NULL;
}

static struct prb_error *read_all(struct prb_zeromq_reader *r, struct prb_zeromq *ret)
{
	prb_auto_str struct prb_str status = {};
	const uint64_t *context;

	PRB_TRY(find_watched(r));
	if (!r->watched.count)
		return NULL;
	qsort(r->watched.items, r->watched.count, sizeof(*r->watched.items), compare_watched);
	PRB_TRY(find_contexts(r));
	PRB_TRY(prb_error_tolerate(prb_target_read_file(r->t, &status, "status"), NULL));
	r->pid = r->t->pid;
	prb_text_last_number(prb_str_text(&status), "NSpid", &r->pid);
	prb_vec_each (context, &r->contexts)
		PRB_TRY(read_context(r, *context, ret));
	ret->cut = r->cut;
	return r->classes.failed ? prb_error_nomem() : NULL;
}

struct prb_error *prb_zeromq_read(struct prb_target *t, struct prb_zeromq *ret)
{
	struct prb_zeromq_reader r = {.t = t, .classes = {.mem = t->mem}};
	struct prb_error *err;

	*ret = (struct prb_zeromq){};
	err = read_all(&r, ret);
	prb_classes_deinit(&r.classes);
	prb_vec_free(&r.watched);
	prb_vec_free(&r.contexts);
	prb_vec_free(&r.eventfds);
	if (err)
		prb_zeromq_deinit(ret);
	return err;
}

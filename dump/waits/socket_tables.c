/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The tables of sockets under /proc/PID/net, of the target's network namespace, and of others if
 * the other end of a connection is not there. Each table is read once for a dump, at the first
 * lookup, and indexed by inode.
 */
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/vec.h"
#include "dump/waits/wait_private.h"
#include "target/proc/inet_line.h"
#include "target/proc/process.h"

enum {
	UNIX_ACCEPTS = 0x10000, /* among the flags in net/unix: __SO_ACCEPTCON */
};

typedef bool parse_line(const char *line, int domain, int type, struct prb_socket *ret);

static parse_line parse_inet, parse_unix, parse_netlink;

struct table {
	const char *name;
	int domain, type;
	parse_line *parse;
	unsigned inode_column; /* from 0 */
};

static const struct table tables[] = {
	{"net/tcp", AF_INET, SOCK_STREAM, parse_inet, 9},
	{"net/tcp6", AF_INET6, SOCK_STREAM, parse_inet, 9},
	{"net/unix", AF_UNIX, 0, parse_unix, 6},
	{"net/udp", AF_INET, SOCK_DGRAM, parse_inet, 9},
	{"net/udp6", AF_INET6, SOCK_DGRAM, parse_inet, 9},
	{"net/raw", AF_INET, SOCK_RAW, parse_inet, 9},
	{"net/raw6", AF_INET6, SOCK_RAW, parse_inet, 9},
	{"net/netlink", AF_NETLINK, SOCK_RAW, parse_netlink, 9},
};

struct entry {
	uint64_t inode;
	size_t line; /* offset in the table's text */
};

struct loaded {
	bool tried;
	struct prb_str text;
	PRB_VEC(struct entry) entries;
};

enum {
	TCP_TABLES = 2, /* the first ones */
	MOST_NETWORKS = 64,
};

/* The TCP tables of another network namespace of this machine. */
struct network {
	struct prb_str name; /* "net:[4026531840]" */
	pid_t pid;	     /* one of its processes */
	struct loaded loaded[TCP_TABLES];
};

struct prb_socket_tables {
	struct loaded loaded[PRB_ARRAY_SIZE(tables)];
	bool networks_tried;
	PRB_VEC(struct network) networks;
};

static bool parse_end(const struct prb_inet_end *end, int domain, struct sockaddr_storage *ret,
		      socklen_t *ret_length)
{
	uint32_t words[4];
	unsigned count = domain == AF_INET ? 1 : 4;

	if (strlen(end->address) != 8 * (size_t)count)
		return false;
	for (unsigned i = 0; i < count; i++) {
		if (sscanf(end->address + 8 * (size_t)i, "%8x", &words[i]) != 1)
			return false;
	}
	*ret = (struct sockaddr_storage){.ss_family = (sa_family_t)domain};
	if (domain == AF_INET) {
		struct sockaddr_in *in = (struct sockaddr_in *)ret;

		in->sin_addr.s_addr = words[0];
		in->sin_port = htons((uint16_t)end->port);
		*ret_length = sizeof(*in);
	} else {
		struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)ret;

		memcpy(&in6->sin6_addr, words, sizeof(words));
		in6->sin6_port = htons((uint16_t)end->port);
		*ret_length = sizeof(*in6);
	}
	return true;
}

static bool parse_inet(const char *line, int domain, int type, struct prb_socket *ret)
{
	struct prb_inet_line each;

	if (!prb_inet_line_parse(line, &each) ||
	    !parse_end(&each.near, domain, &ret->local, &ret->local_length) ||
	    !parse_end(&each.far, domain, &ret->peer, &ret->peer_length))
		return false;
	ret->listening = type == SOCK_STREAM && each.state == PRB_INET_LISTENING;
	if (type == SOCK_STREAM)
		ret->state = (int)each.state;
	return true;
}

static bool parse_unix(const char *line, int domain, int type, struct prb_socket *ret)
{
	struct sockaddr_un *un = (struct sockaddr_un *)&ret->local;
	unsigned flags, kind;
	int path = 0;

	(void)type;
	if (sscanf(line, "%*[^:]: %*x %*x %x %x %*x %*u%n", &flags, &kind, &path) != 2 || !path)
		return false;
	ret->type = (int)kind;
	ret->listening = flags & UNIX_ACCEPTS;
	if (line[path] != ' ')
		return true;

	const char *name = line + path + 1;
	size_t length = PRB_MIN(strcspn(name, "\n"), sizeof(un->sun_path));
	un->sun_family = (sa_family_t)domain;
	memcpy(un->sun_path, name, length);
	if (length && name[0] == '@')
		un->sun_path[0] = '\0';
	ret->local_length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
	return true;
}

static bool parse_netlink(const char *line, int domain, int type, struct prb_socket *ret)
{
	(void)domain;
	(void)type;
	return sscanf(line, "%*x %d", &ret->protocol) == 1;
}

static uint64_t column(const char *line, unsigned number)
{
	for (; number; number--) {
		line += strspn(line, " ");
		line += strcspn(line, " \n");
	}
	line += strspn(line, " ");
	return *line == '\n' ? 0 : strtoull(line, NULL, 10);
}

static int compare_entries(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return x->inode < y->inode ? -1 : x->inode > y->inode;
}

static bool index_lines(const struct table *table, struct loaded *loaded)
{
	const char *text = prb_str_text(&loaded->text);
	const char *line = strchr(text, '\n'); /* after the heading */
	for (; line && line[1]; line = strchr(line + 1, '\n')) {
		uint64_t inode = column(line + 1, table->inode_column);
		struct entry *entry;

		if (!inode)
			continue;
		entry = prb_vec_push(&loaded->entries);
		if (!entry)
			return false;
		*entry = (struct entry){inode, (size_t)(line + 1 - text)};
	}
	if (loaded->entries.count)
		qsort(loaded->entries.items, loaded->entries.count, sizeof(*loaded->entries.items),
		      compare_entries);
	return true;
}

static bool load(struct prb_wait_context *c, const struct table *table, struct loaded *loaded)
{
	loaded->tried = true;
	if (!prb_wait_ok(&loaded->text,
			 prb_target_read_file(c->target, &loaded->text, "%s", table->name)))
		return !loaded->text.failed;
	return index_lines(table, loaded);
}

static bool find(const struct table *table, const struct loaded *loaded, uint64_t inode,
		 struct prb_socket *ret)
{
	const struct entry key = {.inode = inode};
	const struct entry *entry =
		loaded->entries.count ? bsearch(&key, loaded->entries.items, loaded->entries.count,
						sizeof(*loaded->entries.items), compare_entries)
				      : NULL;

	if (!entry)
		return false;
	*ret = (struct prb_socket){.domain = table->domain, .type = table->type};
	return table->parse(loaded->text.data + entry->line, table->domain, table->type, ret);
}

/* An IPv6 address may be one of IPv4, in other bytes and the same words. */
static bool same_address(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	prb_auto_str struct prb_str x = {}, y = {};

	prb_put_sockaddr(&x, a, sizeof(*a));
	prb_put_sockaddr(&y, b, sizeof(*b));
	return x.length && x.length == y.length && !memcmp(x.data, y.data, x.length);
}

static uint64_t other_end(const struct table *table, const struct loaded *loaded,
			  const struct prb_socket *socket)
{
	const struct entry *entry;

	prb_vec_each (entry, &loaded->entries) {
		struct prb_socket found = {};

		if (table->parse(loaded->text.data + entry->line, table->domain, table->type,
				 &found) &&
		    !found.listening && same_address(&found.local, &socket->peer) &&
		    same_address(&found.peer, &socket->local))
			return entry->inode;
	}
	return 0;
}

static bool is_loopback(const struct sockaddr_storage *address)
{
	const struct sockaddr_in *in = (const void *)address;
	const struct sockaddr_in6 *in6 = (const void *)address;

	if (address->ss_family == AF_INET)
		return (ntohl(in->sin_addr.s_addr) >> 24) == 127;
	return IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr) ||
	       (IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr) && in6->sin6_addr.s6_addr[12] == 127);
}

static bool is_known(const struct prb_socket_tables *sockets, const char *name)
{
	const struct network *network;

	prb_vec_each (network, &sockets->networks)
		if (!strcmp(prb_str_text(&network->name), name))
			return true;
	return false;
}

/* Notes the network namespaces that other processes are in; the target's is the first. */
static void find_networks(struct prb_wait_context *c, struct prb_str *s)
{
	prb_auto_pids struct prb_pids pids = {};
	struct network *network = prb_vec_push(&c->sockets->networks);
	const pid_t *pid;

	c->sockets->networks_tried = true;
	if (!network ||
	    !prb_wait_ok(s, prb_target_read_link(c->target, &network->name, "ns/net")) ||
	    !prb_wait_ok(s, prb_pids_of_all(&pids)))
		return;
	prb_vec_each (pid, &pids.list) {
		char path[40], name[64];
		ssize_t length;

		snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)*pid);
		length = readlink(path, name, sizeof(name) - 1);
		if (length <= 0)
			continue;
		name[length] = 0;
		if (is_known(c->sockets, name) || c->sockets->networks.count > MOST_NETWORKS)
			continue;
		network = prb_vec_push(&c->sockets->networks);
		if (!network)
			return;
		network->pid = *pid;
		prb_str_puts(&network->name, name);
	}
}

/* Private addresses may be used by several networks: then nobody knows. */
static uint64_t other_network(struct prb_wait_context *c, const struct prb_socket *socket)
{
	prb_auto_str struct prb_str unused = {};
	uint64_t only = 0;

	if (is_loopback(&socket->local) || is_loopback(&socket->peer))
		return 0;
	if (!c->sockets->networks_tried)
		find_networks(c, &unused);
	for (size_t n = 1; n < c->sockets->networks.count; n++) {
		struct network *network = &c->sockets->networks.items[n];

		for (size_t i = 0; i < TCP_TABLES; i++) {
			struct loaded *loaded = &network->loaded[i];
			uint64_t inode;

			if (!loaded->tried)
				loaded->tried = prb_proc_read(network->pid, tables[i].name,
							      &loaded->text) &&
						index_lines(&tables[i], loaded);
			inode = other_end(&tables[i], loaded, socket);
			if (inode && only)
				return 0;
			only = inode ? inode : only;
		}
	}
	return only;
}

/* Both families keep the port in the same place. */
static bool same_port(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	return ((const struct sockaddr_in *)(const void *)a)->sin_port ==
	       ((const struct sockaddr_in *)(const void *)b)->sin_port;
}

static bool is_any(const struct sockaddr_storage *address)
{
	const struct sockaddr_in *in = (const void *)address;
	const struct sockaddr_in6 *in6 = (const void *)address;

	return address->ss_family == AF_INET ? !in->sin_addr.s_addr
					     : IN6_IS_ADDR_UNSPECIFIED(&in6->sin6_addr);
}

static uint64_t listener(const struct table *table, const struct loaded *loaded,
			 const struct prb_socket *socket)
{
	const struct entry *entry;

	prb_vec_each (entry, &loaded->entries) {
		struct prb_socket found = {};

		if (table->parse(loaded->text.data + entry->line, table->domain, table->type,
				 &found) &&
		    found.listening && same_port(&found.local, &socket->peer) &&
		    (is_any(&found.local) || same_address(&found.local, &socket->peer)))
			return entry->inode;
	}
	return 0;
}

typedef uint64_t search_table(const struct table *table, const struct loaded *loaded,
			      const struct prb_socket *socket);

static uint64_t search(struct prb_wait_context *c, const struct prb_socket *socket,
		       search_table *find_in)
{
	uint64_t inode = 0;

	if (!socket->local_length || !socket->peer_length)
		return 0;
	if (!c->sockets)
		c->sockets = calloc(1, sizeof(*c->sockets));
	if (!c->sockets)
		return 0;
	for (size_t i = 0; i < TCP_TABLES && !inode; i++) {
		struct loaded *loaded = &c->sockets->loaded[i];

		if (!loaded->tried && !load(c, &tables[i], loaded))
			return 0;
		inode = find_in(&tables[i], loaded, socket);
	}
	return inode;
}

uint64_t prb_socket_other_end(struct prb_wait_context *c, const struct prb_socket *socket)
{
	uint64_t inode = search(c, socket, other_end);

	return inode || !c->sockets || !socket->local_length || !socket->peer_length
		       ? inode
		       : other_network(c, socket);
}

uint64_t prb_socket_listener(struct prb_wait_context *c, const struct prb_socket *socket)
{
	return search(c, socket, listener);
}

bool prb_socket_from_tables(struct prb_wait_context *c, uint64_t inode, struct prb_socket *ret)
{
	if (!c->sockets)
		c->sockets = calloc(1, sizeof(*c->sockets));
	if (!c->sockets)
		return false;
	for (size_t i = 0; i < PRB_ARRAY_SIZE(tables); i++) {
		struct loaded *loaded = &c->sockets->loaded[i];

		if (!loaded->tried && !load(c, &tables[i], loaded))
			return false;
		if (find(&tables[i], loaded, inode, ret))
			return true;
	}
	return false;
}

void prb_socket_tables_destroy(struct prb_socket_tables *sockets)
{
	struct network *network;

	if (!sockets)
		return;
	prb_vec_each (network, &sockets->networks) {
		prb_str_deinit(&network->name);
		for (size_t i = 0; i < TCP_TABLES; i++) {
			prb_str_deinit(&network->loaded[i].text);
			prb_vec_free(&network->loaded[i].entries);
		}
	}
	prb_vec_free(&sockets->networks);
	for (size_t i = 0; i < PRB_ARRAY_SIZE(tables); i++) {
		prb_str_deinit(&sockets->loaded[i].text);
		prb_vec_free(&sockets->loaded[i].entries);
	}
	free(sockets);
}

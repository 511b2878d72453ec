/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Describes sockets. A live target's socket is queried through a duplicate of its descriptor,
 * closed at once. That takes microseconds however many sockets the machine has, and works across
 * network namespaces. If the kernel gives no duplicates, the tables are searched.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <linux/vm_sockets.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "base/text.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "target/proc/text.h"
#include "dump/waits/wait_private.h"

enum { NO_PIDFD = -2 };

static void put_ipv6(struct prb_str *s, const struct sockaddr_in6 *in6)
{
	char text[INET6_ADDRSTRLEN];

	if (IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr)) {
		inet_ntop(AF_INET, &in6->sin6_addr.s6_addr[12], text, sizeof(text));
		prb_str_printf(s, "%s:%u", text, ntohs(in6->sin6_port));
		return;
	}
	inet_ntop(AF_INET6, &in6->sin6_addr, text, sizeof(text));
	prb_str_printf(s, "[%s", text);
	if (in6->sin6_scope_id)
		prb_str_printf(s, "%%%u", in6->sin6_scope_id);
	prb_str_printf(s, "]:%u", ntohs(in6->sin6_port));
}

void prb_put_sockaddr(struct prb_str *s, const struct sockaddr_storage *address, socklen_t length)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)address;
	const struct sockaddr_un *un = (const struct sockaddr_un *)address;
	const struct sockaddr_vm *vm = (const struct sockaddr_vm *)address;
	char text[INET_ADDRSTRLEN];

	if (address->ss_family == AF_INET && length >= sizeof(*in)) {
		inet_ntop(AF_INET, &in->sin_addr, text, sizeof(text));
		prb_str_printf(s, "%s:%u", text, ntohs(in->sin_port));
	} else if (address->ss_family == AF_INET6 && length >= sizeof(struct sockaddr_in6)) {
		put_ipv6(s, (const struct sockaddr_in6 *)address);
	} else if (address->ss_family == AF_UNIX &&
		   length > offsetof(struct sockaddr_un, sun_path)) {
		size_t bytes = PRB_MIN(length, (socklen_t)sizeof(*un)) -
			       offsetof(struct sockaddr_un, sun_path);

		if (un->sun_path[0]) {
			prb_text_escape_bytes(s, un->sun_path, strnlen(un->sun_path, bytes));
		} else if (bytes > 1) {
			prb_str_putc(s, '@');
			prb_text_escape_bytes(s, un->sun_path + 1, bytes - 1);
		}
	} else if (address->ss_family == AF_VSOCK && length >= sizeof(*vm)) {
		prb_str_printf(s, "%u:%u", vm->svm_cid, vm->svm_port);
	}
}

/* "" and 0.0.0.0:0 are no addresses. */
static bool is_address(const struct sockaddr_storage *address, socklen_t length)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)address;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)address;

	switch (address->ss_family) {
	case AF_INET:
		return length >= sizeof(*in) && (in->sin_port || in->sin_addr.s_addr);
	case AF_INET6:
		return length >= sizeof(*in6) &&
		       (in6->sin6_port || !IN6_IS_ADDR_UNSPECIFIED(&in6->sin6_addr));
	case AF_UNIX:
		return length > offsetof(struct sockaddr_un, sun_path);
	case AF_VSOCK:
		return length >= sizeof(struct sockaddr_vm);
	}
	return false;
}

/*
 * Duplicating a descriptor into another process moves its socket into that process's class of the
 * old network control groups. If those are in use, no descriptor is duplicated.
 */
static bool groups_tell_sockets_apart(void)
{
	char text[4096];
	prb_auto_close int fd = open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

	if (n <= 0)
		return false;
	text[n] = '\0';
	return strstr(text, "net_cls") || strstr(text, "net_prio");
}

/* A duplicate of the target's socket, or -1. */
static int borrow(struct prb_wait_context *c, int fd, uint64_t inode)
{
	struct stat st;

	if (c->pidfd == -1) {
		int pidfd = groups_tell_sockets_apart()
				    ? -1
				    : (int)syscall(SYS_pidfd_open, c->target->pid, 0);

		c->pidfd = pidfd < 0 ? NO_PIDFD : pidfd;
	}
	if (c->pidfd < 0)
		return -1;

	int copy = (int)syscall(SYS_pidfd_getfd, c->pidfd, fd, 0);
	if (copy < 0 && (errno == ENOSYS || errno == EPERM)) {
		close(c->pidfd);
		c->pidfd = NO_PIDFD;
	}
	if (copy >= 0 && (fstat(copy, &st) || !S_ISSOCK(st.st_mode) || st.st_ino != inode)) {
		close(copy);
		return -1;
	}
	return copy;
}

static bool has_limit(int fd, int option)
{
	struct timeval time = {};
	socklen_t length = sizeof(time);

	return !getsockopt(fd, SOL_SOCKET, option, &time, &length) && (time.tv_sec || time.tv_usec);
}

static bool ask_socket(struct prb_wait_context *c, int fd, uint64_t inode, struct prb_socket *ret)
{
	prb_auto_close int copy = borrow(c, fd, inode);
	int listening = 0;
	struct ucred peer = {};
	struct tcp_info info = {};
	socklen_t length = sizeof(int);

	*ret = (struct prb_socket){};
	if (copy < 0 || getsockopt(copy, SOL_SOCKET, SO_DOMAIN, &ret->domain, &length) ||
	    getsockopt(copy, SOL_SOCKET, SO_TYPE, &ret->type, &length) ||
	    getsockopt(copy, SOL_SOCKET, SO_PROTOCOL, &ret->protocol, &length))
		return false;
	if (!getsockopt(copy, SOL_SOCKET, SO_ACCEPTCONN, &listening, &length))
		ret->listening = listening;

	ret->local_length = sizeof(ret->local);
	if (getsockname(copy, (struct sockaddr *)&ret->local, &ret->local_length))
		ret->local_length = 0;
	ret->peer_length = sizeof(ret->peer);
	if (getpeername(copy, (struct sockaddr *)&ret->peer, &ret->peer_length))
		ret->peer_length = 0;
	length = sizeof(info);
	if (ret->protocol == IPPROTO_TCP && (ret->domain == AF_INET || ret->domain == AF_INET6) &&
	    !getsockopt(copy, IPPROTO_TCP, TCP_INFO, &info, &length))
		ret->state = info.tcpi_state;
	length = sizeof(peer);
	if (ret->domain == AF_UNIX && !getsockopt(copy, SOL_SOCKET, SO_PEERCRED, &peer, &length))
		ret->peer_pid = peer.pid;
	ret->limited = has_limit(copy, SO_RCVTIMEO) || has_limit(copy, SO_SNDTIMEO);
	return true;
}

static bool same_network(struct prb_wait_context *c)
{
	prb_auto_str struct prb_str theirs = {};
	char ours[64];
	ssize_t n = readlink("/proc/self/ns/net", ours, sizeof(ours));

	return prb_wait_ok(&theirs, prb_target_read_link(c->target, &theirs, "ns/net")) && n > 0 &&
	       (size_t)n == theirs.length && !memcmp(ours, theirs.data, theirs.length);
}

static uint64_t parse_diag(const void *reply, size_t length)
{
	const struct nlmsghdr *header = reply;
	size_t at = NLMSG_LENGTH(sizeof(struct unix_diag_msg));

	if (length < at || header->nlmsg_len < at || header->nlmsg_len > length ||
	    header->nlmsg_type != SOCK_DIAG_BY_FAMILY)
		return 0;
	while (prb_inside(at, sizeof(struct nlattr), header->nlmsg_len)) {
		const struct nlattr *attribute = (const void *)((const char *)reply + at);

		if (attribute->nla_len < sizeof(*attribute) ||
		    !prb_inside(at, attribute->nla_len, header->nlmsg_len))
			return 0;
		if (attribute->nla_type == UNIX_DIAG_PEER &&
		    attribute->nla_len >= NLA_HDRLEN + sizeof(uint32_t))
			return *(const uint32_t *)((const char *)attribute + NLA_HDRLEN);
		at += NLA_ALIGN(attribute->nla_len);
	}
	return 0;
}

static int diag_socket(void)
{
	return socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG);
}

struct elsewhere {
	int network; /* descriptor of the namespace */
	int socket;
};

static void *make_there(void *context)
{
	struct elsewhere *there = context;

	if (!setns(there->network, CLONE_NEWNET))
		there->socket = diag_socket();
	return NULL;
}

/*
 * A socket belongs to the network namespace in which it was made. A thread of its own goes there,
 * and ends; that needs the rights of root.
 */
static int diag_socket_of(struct prb_wait_context *c)
{
	struct elsewhere there = {.socket = -1};
	sigset_t all, before;
	pthread_t thread;
	char path[40];

	if (same_network(c))
		return diag_socket();
	snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)c->target->pid);
	there.network = open(path, O_RDONLY | O_CLOEXEC);
	if (there.network < 0)
		return -1;
	/* Signals are for the threads that were there before. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (!pthread_create(&thread, NULL, make_there, &there))
		pthread_join(thread, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	close(there.network);
	return there.socket;
}

/* The inode at the other end of a unix socket, 0 if unknown. */
static uint64_t unix_peer(struct prb_wait_context *c, uint64_t inode)
{
	prb_auto_close int fd = diag_socket_of(c);
	struct {
		struct nlmsghdr header;
		struct unix_diag_req request;
	} question = {
		.header = {.nlmsg_len = sizeof(question),
			   .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			   .nlmsg_flags = NLM_F_REQUEST},
		.request = {.sdiag_family = AF_UNIX,
			    .udiag_states = 0xffffffff,
			    .udiag_ino = (uint32_t)inode,
			    .udiag_show = UDIAG_SHOW_PEER,
			    .udiag_cookie = {~0u, ~0u} /* any */},
	};
	char reply[1024] __attribute__((aligned(8)));

	if (fd < 0 || inode > UINT32_MAX)
		return 0;
	if (send(fd, &question, sizeof(question), 0) != sizeof(question))
		return 0;
	/* The kernel answers before send() returns. */
	ssize_t n = recv(fd, reply, sizeof(reply), 0);
	return n < 0 ? 0 : parse_diag(reply, (size_t)n);
}

void prb_describe_unix_peer(struct prb_wait_context *c, const struct prb_socket *socket,
			    uint64_t inode, pid_t hint, struct prb_str *s)
{
	uint64_t peer = unix_peer(c, inode);
	size_t before = s->length;

	if (peer) {
		char link[40];

		snprintf(link, sizeof(link), "socket:[%llu]", (unsigned long long)peer);
		prb_describe_holders(c, link, PRB_HAS_OPEN, hint, s);
	}
	/*
	 * The process that connected. For a socketpair() that is the target itself, which is no
	 * news.
	 */
	if (s->length == before && socket->peer_pid && socket->peer_pid != c->target->pid) {
		prb_enders_add(c, socket->peer_pid);
		prb_describe_process(socket->peer_pid, s);
	}
}

static void put_unix_peer(struct prb_wait_context *c, const struct prb_socket *socket,
			  uint64_t inode, struct prb_str *s)
{
	prb_auto_str struct prb_str process = {};
	bool named = is_address(&socket->peer, socket->peer_length);

	prb_describe_unix_peer(c, socket, inode, socket->peer_pid, &process);
	if (named) {
		prb_str_puts(s, " → ");
		prb_put_sockaddr(s, &socket->peer, socket->peer_length);
	}
	if (process.length)
		prb_str_printf(s, "%s%s", named ? " of " : " → ", prb_str_text(&process));
	s->failed |= process.failed;
}

static const char *netlink_family(int protocol)
{
	static const char *const names[] = {
		[NETLINK_ROUTE] = "route",	   [NETLINK_SOCK_DIAG] = "socket diagnosis",
		[NETLINK_XFRM] = "xfrm",	   [NETLINK_SELINUX] = "selinux",
		[NETLINK_AUDIT] = "audit",	   [NETLINK_CONNECTOR] = "connector",
		[NETLINK_NETFILTER] = "netfilter", [NETLINK_KOBJECT_UEVENT] = "device events",
		[NETLINK_GENERIC] = "generic",
	};

	return protocol >= 0 && (size_t)protocol < PRB_ARRAY_SIZE(names) ? names[protocol] : NULL;
}

static const char *kind_of(const struct prb_socket *socket)
{
	switch (socket->domain) {
	case AF_UNIX:
		return "unix socket";
	case AF_NETLINK:
		return "netlink socket";
	case AF_PACKET:
		return "packet socket";
	case AF_VSOCK:
		return "vsock socket";
	case AF_INET:
	case AF_INET6:
		return socket->type == SOCK_DGRAM ? "UDP socket"
		       : socket->type == SOCK_RAW ? "raw socket"
						  : "socket";
	}
	return "socket";
}

/* Clients, and senders to a socket that is not connected; but not multiprocessing's own helpers. */
static void note_outside(struct prb_wait_context *c, const struct prb_socket *socket, bool peer)
{
	static const char helpers[] = "/pymp-";
	prb_auto_str struct prb_str address = {};

	if (socket->listening && socket->domain == AF_UNIX)
		prb_put_sockaddr(&address, &socket->local, socket->local_length);
	if (strstr(prb_str_text(&address), helpers))
		return;
	if (socket->listening || socket->domain == AF_NETLINK ||
	    (socket->type == SOCK_DGRAM && !peer &&
	     (socket->domain != AF_UNIX || is_address(&socket->local, socket->local_length))))
		prb_enders_outside(c);
}

static void put_socket(struct prb_wait_context *c, int fd, const struct prb_socket *socket,
		       uint64_t inode, struct prb_str *s)
{
	bool local = is_address(&socket->local, socket->local_length);
	bool peer = is_address(&socket->peer, socket->peer_length);
	const char *netlink =
		socket->domain == AF_NETLINK ? netlink_family(socket->protocol) : NULL;

	note_outside(c, socket, peer);
	prb_str_printf(s, "%s %d", kind_of(socket), fd);
	if (netlink)
		prb_str_printf(s, " (%s)", netlink);
	if (local && (socket->listening || socket->domain == AF_UNIX || !peer)) {
		prb_str_puts(s, socket->listening ? " listening on " : " on ");
		prb_put_sockaddr(s, &socket->local, socket->local_length);
	}
	if (socket->domain == AF_UNIX && !socket->listening) {
		put_unix_peer(c, socket, inode, s);
	} else if (peer) {
		prb_str_puts(s, " → ");
		prb_put_sockaddr(s, &socket->peer, socket->peer_length);
	}
}

/** Adds the processes at the other end of a TCP connection; false if none is found. */
static bool note_tcp_peer(struct prb_wait_context *c, const struct prb_socket *socket)
{
	uint64_t other = prb_socket_other_end(c, socket);
	char link[40];

	/* A connection that was not accepted yet has no end there. */
	if (!other)
		other = prb_socket_listener(c, socket);
	snprintf(link, sizeof(link), "socket:[%llu]", (unsigned long long)other);
	return other && prb_note_holders(c, link, PRB_HAS_OPEN);
}

/* Threads of its own can end the wait, too, by shutdown(). */
static void note_enders(struct prb_wait_context *c, const struct prb_socket *socket)
{
	if (!c->enders)
		return;
	if (socket->limited)
		prb_enders_limited(c);
	/* Another machine, or a process that we may not read. */
	if (!socket->listening && socket->protocol == IPPROTO_TCP && c->search &&
	    !note_tcp_peer(c, socket) && is_address(&socket->peer, socket->peer_length))
		prb_enders_outside(c);
	prb_enders_add(c, c->target->pid);
}

bool prb_socket_find(struct prb_wait_context *c, int fd, uint64_t inode, struct prb_socket *ret)
{
	return ask_socket(c, fd, inode, ret) || prb_socket_from_tables(c, inode, ret);
}

void prb_put_address(struct prb_str *s, const struct sockaddr_storage *address, socklen_t length,
		     int *port)
{
	prb_auto_str struct prb_str text = {};

	*port = -1;
	if (!is_address(address, length))
		return;
	prb_put_sockaddr(&text, address, length);
	s->failed |= text.failed;
	const char *words = prb_str_text(&text), *colon = strrchr(words, ':');
	if (address->ss_family == AF_UNIX || !colon) {
		prb_str_puts(s, words);
		return;
	}
	bool brackets = *words == '[';
	prb_str_append(s, words + brackets, (size_t)(colon - words) - 2 * (size_t)brackets);
	*port = atoi(colon + 1);
}

void prb_describe_socket(struct prb_wait_context *c, int fd, uint64_t inode, struct prb_str *s)
{
	struct prb_socket socket;

	if (!prb_socket_find(c, fd, inode, &socket)) {
		prb_str_printf(s, "socket %d", fd);
		return;
	}
	put_socket(c, fd, &socket, inode, s);
	note_enders(c, &socket);
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A descriptor in parts; descriptor_words.c describes it in words. */
#include "dump/waits/descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>

#include "base/text.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "target/proc/text.h"
#include "dump/waits/wait_private.h"

struct prb_descriptors {
	struct prb_target *target;
	struct prb_wait_context *context;
	struct prb_str mounts; /* mountinfo */
	bool mounts_read;
};

struct prb_error *prb_descriptors_create(struct prb_target *t, struct prb_descriptors **ret)
{
	struct prb_descriptors *d = calloc(1, sizeof(*d));

	if (!d)
		return prb_error_nomem();
	d->target = t;
	struct prb_error *err = prb_wait_context_create(t, &d->context);
	if (err)
		free(d);
	else
		*ret = d;
	return err;
}

void prb_descriptors_destroy(struct prb_descriptors *d)
{
	if (!d)
		return;
	prb_wait_context_destroy(d->context);
	prb_str_deinit(&d->mounts);
	free(d);
}

void prb_descriptor_deinit(struct prb_descriptor *descriptor)
{
	prb_str_deinit(&descriptor->path);
	prb_str_deinit(&descriptor->socket_text);
	prb_str_deinit(&descriptor->peer);
	prb_str_deinit(&descriptor->reason);
}

/* Parts from its link */

static const char *anonymous_kind(const char *name)
{
	static const struct {
		const char *link, *kind;
	} kinds[] = {
		{"[eventpoll]", "epoll"},
		{"[eventfd]", "eventfd"},
		{"[timerfd]", "timerfd"},
		{"[signalfd]", "signalfd"},
		{"inotify", "inotify"},
		{"[fanotify]", "fanotify"},
		{"[pidfd]", "pidfd"},
		{"[io_uring]", "io_uring"},
		{"[perf_event]", "perf_event"},
		{"[userfaultfd]", "userfaultfd"},
		{"bpf-map", "bpf"},
		{"bpf-prog", "bpf"},
	};

	for (size_t i = 0; i < PRB_ARRAY_SIZE(kinds); i++)
		if (!strcmp(kinds[i].link, name))
			return kinds[i].kind;
	return "anonymous";
}

static bool starts(const char *text, const char *start)
{
	return !strncmp(text, start, strlen(start));
}

static const char *path_kind(const char *path)
{
	if (starts(path, "/memfd:"))
		return "memfd";
	if (starts(path, "/dev/pts/") || starts(path, "/dev/tty"))
		return "terminal";
	if (starts(path, "/dev/") && !starts(path, "/dev/shm/"))
		return "device";
	return path[0] == '/' ? "file" : "other";
}

static void classify(struct prb_descriptors *d, struct prb_descriptor *ret, const char *link)
{
	static const char anonymous[] = "anon_inode:", deleted[] = " (deleted)";
	static const char *const numbered[] = {"socket", "pipe", "pidfd", "net", "mnt",
					       "pid",	 "user", "uts",	  "ipc"};
	const size_t cut = sizeof(deleted) - 1;

	for (size_t i = 0; i < PRB_ARRAY_SIZE(numbered); i++) {
		ret->inode = prb_link_inode(link, numbered[i]);
		if (ret->inode) {
			ret->kind = i < 3 ? numbered[i] : "namespace";
			prb_str_puts(&ret->path, link);
			return;
		}
	}
	if (starts(link, anonymous)) {
		ret->kind = anonymous_kind(link + sizeof(anonymous) - 1);
		prb_text_escape_bytes(&ret->path, link, strlen(link));
		return;
	}
	ret->kind = path_kind(link);
	prb_put_path(d->context, link, &ret->path);
	if (ret->path.length > cut && !strcmp(ret->path.data + ret->path.length - cut, deleted)) {
		/* An anonymous file never had a name. */
		ret->deleted = strcmp(ret->kind, "memfd") != 0;
		prb_str_truncate(&ret->path, ret->path.length - cut);
	}
}

/* Position and flags */

static struct prb_error *read_info(struct prb_descriptors *d, struct prb_descriptor *ret,
				   long *mount)
{
	prb_auto_str struct prb_str text = {};

	*mount = -1;
	PRB_TRY(prb_target_read_file(d->target, &text, "fdinfo/%d", ret->fd));
	const char *position = prb_text_field(prb_str_text(&text), "pos");
	const char *flags = prb_text_field(prb_str_text(&text), "flags");
	const char *id = prb_text_field(prb_str_text(&text), "mnt_id");
	if (position && flags) {
		ret->info_known = true;
		ret->position = strtoull(position, NULL, 10);
		ret->flags = (unsigned)strtoul(flags, NULL, 8);
	}
	if (id)
		*mount = strtol(id, NULL, 10);
	return NULL;
}

/* Size */

/** The type of the file system with this mount id; returns its length, 0 if unknown. */
static size_t file_system(struct prb_descriptors *d, long mount, const char **ret)
{
	if (!d->mounts_read) {
		d->mounts_read = true;
		if (!prb_wait_ok(&d->mounts,
				 prb_target_read_file(d->target, &d->mounts, "mountinfo")))
			prb_str_truncate(&d->mounts, 0);
	}
	for (const char *line = prb_str_text(&d->mounts); line && *line;) {
		const char *end = line + strcspn(line, "\n");

		if (strtol(line, NULL, 10) == mount) {
			const char *type = memmem(line, (size_t)(end - line), " - ", 3);

			*ret = type ? type + 3 : NULL;
			return type ? strcspn(type + 3, " \n") : 0;
		}
		line = *end ? end + 1 : NULL;
	}
	return 0;
}

/** True for file systems with a server that may be dead: a request would hang us as well. */
static bool may_hang(const char *type, size_t length)
{
	static const char *const remote[] = {"nfs",  "cifs",   "smb",	    "fuse",
					     "ceph", "9p",     "afs",	    "lustre",
					     "gpfs", "beegfs", "glusterfs", "virtiofs"};

	for (size_t i = 0; i < PRB_ARRAY_SIZE(remote); i++)
		if (length >= strlen(remote[i]) && !strncmp(type, remote[i], strlen(remote[i])))
			return true;
	return false;
}

static const char *mode_kind(const struct prb_descriptor *descriptor, unsigned mode)
{
	switch (mode & S_IFMT) {
	case S_IFDIR:
		return "directory";
	case S_IFIFO:
		return "fifo";
	case S_IFSOCK:
		return "socket";
	case S_IFBLK:
		return "device";
	case S_IFCHR:
		return strcmp(descriptor->kind, "terminal") ? "device" : "terminal";
	case S_IFREG:
		return strcmp(descriptor->kind, "memfd") ? "file" : "memfd";
	}
	return descriptor->kind;
}

/** "MODE SIZE INODE" of a live process's file. */
static bool ask_file(struct prb_descriptors *d, int fd, long mount, struct prb_str *reason,
		     struct prb_str *ret)
{
	const char *type = NULL;
	char path[64];
	struct stat st;
	size_t length = mount >= 0 ? file_system(d, mount, &type) : 0;

	if (length && may_hang(type, length)) {
		prb_str_printf(reason,
			       "the size is not asked for: a dead server of %.*s would "
			       "keep us waiting",
			       (int)length, type);
		return false;
	}
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)d->target->pid, fd);
	if (stat(path, &st)) {
		prb_str_printf(reason, "the file does not tell its size: %s",
			       strerrordesc_np(errno));
		return false;
	}
	prb_str_printf(ret, "%u %llu %llu", st.st_mode, (unsigned long long)st.st_size,
		       (unsigned long long)st.st_ino);
	return true;
}

static void read_room(struct prb_descriptors *d, struct prb_descriptor *ret, long mount)
{
	const char *type = NULL;
	size_t length = file_system(d, mount, &type);
	struct statvfs fs;
	char path[64];

	if (!d->target->local || !ret->info_known || (ret->flags & O_ACCMODE) == O_RDONLY ||
	    !length || may_hang(type, length))
		return;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)d->target->pid, ret->fd);
	if (statvfs(path, &fs) || !fs.f_blocks)
		return;
	ret->room_known = true;
	ret->room = (uint64_t)fs.f_bavail * fs.f_frsize;
	ret->room_of_root = (uint64_t)fs.f_bfree * fs.f_frsize;
	ret->capacity = (uint64_t)fs.f_blocks * fs.f_frsize;
}

static void read_stat(struct prb_descriptors *d, struct prb_descriptor *ret, long mount)
{
	prb_auto_str struct prb_str text = {};
	unsigned long long size, inode;
	unsigned mode;
	char key[40];

	snprintf(key, sizeof(key), "fdstat:%d", ret->fd);
	if (d->target->local) {
		if (!ask_file(d, ret->fd, mount, &ret->reason, &text))
			return;
		prb_target_remember(d->target, key, prb_str_text(&text), text.length);
	} else if (!prb_target_recall(d->target, key, &text)) {
		return;
	}
	if (sscanf(prb_str_text(&text), "%u %llu %llu", &mode, &size, &inode) != 3)
		return;
	ret->kind = mode_kind(ret, mode);
	ret->inode = inode;
	ret->size_known = S_ISREG(mode);
	ret->size = size;
}

/* Sockets */

static const char *protocol_name(const struct prb_socket *socket)
{
	bool six = socket->domain == AF_INET6;

	switch (socket->domain) {
	case AF_UNIX:
		return "unix";
	case AF_NETLINK:
		return "netlink";
	case AF_PACKET:
		return "packet";
	case AF_VSOCK:
		return "vsock";
	case AF_INET:
	case AF_INET6:
		if (socket->type == SOCK_STREAM)
			return socket->protocol == IPPROTO_MPTCP ? "mptcp" : six ? "tcp6" : "tcp";
		if (socket->type == SOCK_DGRAM)
			return six ? "udp6" : "udp";
		return six ? "raw6" : "raw";
	}
	return "other";
}

static const char *type_name(const struct prb_socket *socket)
{
	switch (socket->type) {
	case SOCK_STREAM:
		return "stream";
	case SOCK_DGRAM:
		return "datagram";
	case SOCK_SEQPACKET:
		return "seqpacket";
	case SOCK_RAW:
		return "raw";
	}
	return "";
}

static const char *state_name(const struct prb_socket *socket)
{
	/* Numbered as in <netinet/tcp.h>. */
	static const char *const tcp[] = {
		"",	      "established", "syn-sent",	"syn-received", "fin-wait-1",
		"fin-wait-2", "time-wait",   "close",		"close-wait",	"last-ack",
		"listen",     "closing",     "new-syn-received"};

	if (socket->listening)
		return "listen";
	if (socket->state > 0 && (size_t)socket->state < PRB_ARRAY_SIZE(tcp))
		return tcp[socket->state];
	if (socket->domain == AF_UNIX && socket->type != SOCK_DGRAM && socket->peer_length)
		return "established";
	return "";
}

static void put_end(struct prb_str *s, const struct sockaddr_storage *address, socklen_t length)
{
	int port;

	prb_str_putc(s, '\t');
	prb_put_address(s, address, length, &port);
	prb_str_putc(s, '\t');
	if (port >= 0)
		prb_str_printf(s, "%d", port);
}

/** Tab-separated fields; names are made printable, so no field has a tab. */
static void put_fields(struct prb_str *s, const struct prb_socket *socket)
{
	prb_str_printf(s, "%s\t%s\t%s", protocol_name(socket), type_name(socket),
		       state_name(socket));
	put_end(s, &socket->local, socket->local_length);
	put_end(s, &socket->peer, socket->peer_length);
}

static void split_fields(struct prb_descriptor *ret)
{
	unsigned count = 0;

	if (!ret->socket_text.length)
		return;
	ret->socket[count++] = ret->socket_text.data;
	for (char *s = ret->socket_text.data; *s && count < PRB_SOCKET_FIELDS; s++) {
		if (*s != '\t')
			continue;
		*s = '\0';
		ret->socket[count++] = s + 1;
	}
	while (count < PRB_SOCKET_FIELDS)
		ret->socket[count++] = "";
}

static void read_socket(struct prb_descriptors *d, struct prb_descriptor *ret, bool want_peer)
{
	struct prb_socket socket;
	char key[40];

	snprintf(key, sizeof(key), "socket:%llu", (unsigned long long)ret->inode);
	if (!d->target->local) {
		if (!prb_target_recall(d->target, key, &ret->socket_text))
			prb_str_puts(&ret->reason, "nothing is known of the socket");
		split_fields(ret);
		return;
	}
	if (!prb_socket_find(d->context, ret->fd, ret->inode, &socket)) {
		prb_str_puts(&ret->reason, "the kernel does not report which socket it is");
		return;
	}
	put_fields(&ret->socket_text, &socket);
	prb_target_remember(d->target, key, prb_str_text(&ret->socket_text),
			    ret->socket_text.length);
	split_fields(ret);
	/* A hint saves the search of other processes for one socket, but not for many. */
	if (want_peer && socket.domain == AF_UNIX && !socket.listening)
		prb_describe_unix_peer(d->context, &socket, ret->inode, 0, &ret->peer);
}

/* Peers */

static void find_pipe_peer(struct prb_descriptors *d, struct prb_descriptor *ret, const char *link)
{
	enum prb_access access = (ret->flags & O_ACCMODE) == O_WRONLY	? PRB_CAN_READ
				 : (ret->flags & O_ACCMODE) == O_RDONLY ? PRB_CAN_WRITE
									: PRB_HAS_OPEN;

	prb_describe_holders(d->context, link, access, 0, &ret->peer);
}

static void find_pidfd_peer(struct prb_descriptors *d, struct prb_descriptor *ret)
{
	prb_auto_str struct prb_str text = {};
	const char *pid = NULL;

	if (prb_wait_ok(&ret->peer, prb_target_read_file(d->target, &text, "fdinfo/%d", ret->fd)))
		pid = prb_text_field(prb_str_text(&text), "Pid");
	if (pid && atoi(pid) > 0)
		prb_describe_process(atoi(pid), &ret->peer);
}

static void read_peer(struct prb_descriptors *d, struct prb_descriptor *ret, const char *link)
{
	char key[40];

	snprintf(key, sizeof(key), "fdpeer:%d", ret->fd);
	if (!d->target->local) {
		prb_target_recall(d->target, key, &ret->peer);
		return;
	}
	if (!strcmp(ret->kind, "pipe") || !strcmp(ret->kind, "fifo"))
		find_pipe_peer(d, ret, link);
	else if (!strcmp(ret->kind, "pidfd"))
		find_pidfd_peer(d, ret);
	if (ret->peer.length)
		prb_target_remember(d->target, key, prb_str_text(&ret->peer), ret->peer.length);
}

static bool has_path(const struct prb_descriptor *descriptor)
{
	return prb_str_text(&descriptor->path)[0] == '/';
}

static struct prb_error *read_parts(struct prb_descriptors *d, unsigned parts,
				    struct prb_descriptor *ret)
{
	prb_auto_str struct prb_str link = {};
	long mount = -1;

	PRB_TRY(prb_target_read_link(d->target, &link, "fd/%d", ret->fd));
	classify(d, ret, prb_str_text(&link));
	/* fdinfo also has the mount id and the access mode of a pipe. */
	if (parts & (PRB_DESCRIPTOR_INFO | PRB_DESCRIPTOR_PEER) ||
	    (parts & (PRB_DESCRIPTOR_STAT | PRB_DESCRIPTOR_ROOM) && has_path(ret)))
		PRB_TRY(read_info(d, ret, &mount));
	if (parts & PRB_DESCRIPTOR_STAT && has_path(ret))
		read_stat(d, ret, mount);
	if (parts & PRB_DESCRIPTOR_ROOM && has_path(ret))
		read_room(d, ret, mount);
	if (parts & (PRB_DESCRIPTOR_SOCKET | PRB_DESCRIPTOR_PEER) && !strcmp(ret->kind, "socket"))
		read_socket(d, ret, parts & PRB_DESCRIPTOR_PEER);
	if (parts & PRB_DESCRIPTOR_PEER)
		read_peer(d, ret, prb_str_text(&link));
	return ret->path.failed || ret->socket_text.failed || ret->peer.failed || ret->reason.failed
		       ? prb_error_nomem()
		       : NULL;
}

struct prb_error *prb_descriptor_read(struct prb_descriptors *d, int fd, unsigned parts,
				      struct prb_descriptor *ret)
{
	*ret = (struct prb_descriptor){.fd = fd, .kind = "other"};

	struct prb_error *err = read_parts(d, parts, ret);
	if (err)
		prb_descriptor_deinit(ret);
	return err;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "dump/waits/descriptors.h"
#include "sql/engine/instant.h"
#include "sql/tables/shared/facts.h"
#include "sql/spec/table.h"

enum {
	FD,
	KIND,
	PATH,
	MODE,
	FLAGS,
	POSITION,
	SIZE,
	INODE,
	DELETED,
	PROTOCOL,
	TYPE,
	STATE,
	LOCAL_ADDRESS,
	LOCAL_PORT,
	REMOTE_ADDRESS,
	REMOTE_PORT,
	PEER,
	ERROR,
};

static const struct prb_column columns[] = {
	[FD] = {"fd", PRB_COLUMN_INTEGER, "Number of the descriptor", .flags = PRB_COLUMN_KEY},
	[KIND] = {"kind", PRB_COLUMN_TEXT,
		  "file, directory, socket, pipe, fifo, terminal, device, memfd, epoll, eventfd, "
		  "timerfd, signalfd, inotify, pidfd, io_uring, namespace, anonymous or other"},
	[PATH] = {"path", PRB_COLUMN_TEXT,
		  "File, as the target sees it; socket:[INODE] and the like if it is none"},
	[MODE] = {"mode", PRB_COLUMN_TEXT, "What it is open for: r, w or rw"},
	[FLAGS] = {"flags", PRB_COLUMN_TEXT,
		   "append, nonblock, cloexec, direct, sync, path, …, with commas between"},
	[POSITION] = {"position", PRB_COLUMN_INTEGER, "Where the next read or write begins",
		      "bytes"},
	[SIZE] = {"size", PRB_COLUMN_INTEGER, "Size of a regular file", "bytes"},
	[INODE] = {"inode", PRB_COLUMN_INTEGER, "Inode of the file, socket or pipe"},
	[DELETED] = {"deleted", PRB_COLUMN_INTEGER, "1 if the file was removed since"},
	[PROTOCOL] = {"protocol", PRB_COLUMN_TEXT,
		      "Of a socket: tcp, tcp6, udp, udp6, unix, netlink, packet, raw, vsock"},
	[TYPE] = {"type", PRB_COLUMN_TEXT, "Of a socket: stream, datagram, seqpacket or raw"},
	[STATE] = {"state", PRB_COLUMN_TEXT,
		   "Of a connection: established, listen, syn-sent, close-wait, …"},
	[LOCAL_ADDRESS] = {"local_address", PRB_COLUMN_TEXT,
			   "Of a socket: its address; a path, or @NAME, of a unix socket"},
	[LOCAL_PORT] = {"local_port", PRB_COLUMN_INTEGER, "Of a socket: its port"},
	[REMOTE_ADDRESS] = {"remote_address", PRB_COLUMN_TEXT,
			    "Of a socket: address of the other end"},
	[REMOTE_PORT] = {"remote_port", PRB_COLUMN_INTEGER, "Of a socket: port of the other end"},
	[PEER] = {"peer", PRB_COLUMN_TEXT,
		  "Process at the other end of a pipe or unix socket, or of a pidfd; slow where "
		  "there are many processes"},
	[ERROR] = {"_error", PRB_COLUMN_TEXT, "Why cells are missing"},
	{},
};

static void put_flags(struct prb_scan *scan, unsigned flags)
{
	static const struct {
		unsigned flag;
		const char *name;
	} names[] = {
		{O_APPEND, "append"},
		{O_NONBLOCK, "nonblock"},
		{O_CLOEXEC, "cloexec"},
		{O_DIRECT, "direct"},
		{O_SYNC, "sync"},
		{O_DSYNC, "dsync"},
		{O_DIRECTORY, "directory"},
		{O_PATH, "path"},
		{O_NOATIME, "noatime"},
		{O_ASYNC, "async"},
		{O_TMPFILE & ~O_DIRECTORY, "tmpfile"},
	};
	static const char *const modes[] = {"r", "w", "rw"};
	prb_auto_str struct prb_str text = {};

	if ((flags & O_ACCMODE) < PRB_ARRAY_SIZE(modes) && !(flags & O_PATH))
		prb_put_static(scan, MODE, modes[flags & O_ACCMODE]);
	for (size_t i = 0; i < PRB_ARRAY_SIZE(names); i++) {
		/* These two are parts of O_SYNC and O_TMPFILE. */
		if ((names[i].flag == O_DSYNC && (flags & O_SYNC) == O_SYNC) ||
		    (names[i].flag == O_DIRECTORY && (flags & O_TMPFILE) == O_TMPFILE))
			continue;
		if ((flags & names[i].flag) == names[i].flag)
			prb_str_printf(&text, "%s%s", text.length ? "," : "", names[i].name);
	}
	prb_put_text(scan, FLAGS, prb_str_text(&text));
}

static void put_words(struct prb_scan *scan, unsigned column, const char *text)
{
	if (text && *text)
		prb_put_text(scan, column, text);
}

static void put_socket(struct prb_scan *scan, const char *const *fields)
{
	static const struct {
		unsigned column;
		enum prb_socket_field field;
	} texts[] = {{PROTOCOL, PRB_SOCKET_PROTOCOL},
		     {TYPE, PRB_SOCKET_TYPE},
		     {STATE, PRB_SOCKET_STATE},
		     {LOCAL_ADDRESS, PRB_SOCKET_LOCAL_ADDRESS},
		     {REMOTE_ADDRESS, PRB_SOCKET_REMOTE_ADDRESS}},
	  ports[] = {{LOCAL_PORT, PRB_SOCKET_LOCAL_PORT}, {REMOTE_PORT, PRB_SOCKET_REMOTE_PORT}};

	for (size_t i = 0; i < PRB_ARRAY_SIZE(texts); i++)
		put_words(scan, texts[i].column, fields[texts[i].field]);
	for (size_t i = 0; i < PRB_ARRAY_SIZE(ports); i++)
		if (*fields[ports[i].field])
			prb_put_integer(scan, ports[i].column, atoi(fields[ports[i].field]));
}

static void put(struct prb_scan *scan, const struct prb_descriptor *d)
{
	prb_put_integer(scan, FD, d->fd);
	prb_put_static(scan, KIND, d->kind);
	prb_put_text(scan, PATH, prb_str_text(&d->path));
	prb_put_integer(scan, DELETED, d->deleted);
	if (d->inode)
		prb_put_integer(scan, INODE, (int64_t)d->inode);
	if (d->info_known) {
		prb_put_integer(scan, POSITION, (int64_t)d->position);
		put_flags(scan, d->flags);
	}
	if (d->size_known)
		prb_put_integer(scan, SIZE, (int64_t)d->size);
	if (d->socket[0])
		put_socket(scan, d->socket);
	put_words(scan, PEER, prb_str_text(&d->peer));
	put_words(scan, ERROR, prb_str_text(&d->reason));
}

static unsigned wanted_parts(const struct prb_scan *scan)
{
	static const struct {
		unsigned column, part;
	} parts[] = {
		{KIND, PRB_DESCRIPTOR_STAT},	      {MODE, PRB_DESCRIPTOR_INFO},
		{FLAGS, PRB_DESCRIPTOR_INFO},	      {POSITION, PRB_DESCRIPTOR_INFO},
		{SIZE, PRB_DESCRIPTOR_STAT},	      {INODE, PRB_DESCRIPTOR_STAT},
		{PROTOCOL, PRB_DESCRIPTOR_SOCKET},    {TYPE, PRB_DESCRIPTOR_SOCKET},
		{STATE, PRB_DESCRIPTOR_SOCKET},	      {LOCAL_ADDRESS, PRB_DESCRIPTOR_SOCKET},
		{LOCAL_PORT, PRB_DESCRIPTOR_SOCKET},  {REMOTE_ADDRESS, PRB_DESCRIPTOR_SOCKET},
		{REMOTE_PORT, PRB_DESCRIPTOR_SOCKET}, {PEER, PRB_DESCRIPTOR_PEER},
	};
	unsigned result = 0;

	for (size_t i = 0; i < PRB_ARRAY_SIZE(parts); i++)
		if (prb_scan_wants(scan, parts[i].column))
			result |= parts[i].part;
	return result;
}

static struct prb_error *create(struct prb_instant *instant, void **ret)
{
	struct prb_descriptors *descriptors = NULL;

	PRB_TRY(prb_descriptors_create(prb_instant_target(instant), &descriptors));
	*ret = descriptors;
	return NULL;
}

static void destroy(void *memo)
{
	prb_descriptors_destroy(memo);
}

/** A descriptor closed meanwhile gives no row; an unreadable one gives its reason. */
static struct prb_error *fd_row(struct prb_scan *scan, struct prb_descriptors *descriptors, int fd)
{
	struct prb_descriptor descriptor;
	prb_auto_missing struct prb_missing missing = {};
	struct prb_error *err =
		prb_descriptor_read(descriptors, fd, wanted_parts(scan), &descriptor);

	if (!err) {
		err = prb_scan_row(scan);
		if (!err)
			put(scan, &descriptor);
		prb_descriptor_deinit(&descriptor);
		return err;
	}
	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		return NULL;
	PRB_TRY(prb_missing_add(scan, &missing, err, "fd"));
	PRB_TRY(prb_scan_row(scan));
	prb_put_integer(scan, FD, fd);
	prb_missing_put(scan, ERROR, &missing);
	return NULL;
}

static struct prb_error *scan(struct prb_scan *scan)
{
	static const char key;
	const char *names;
	void *descriptors;
	int64_t wanted;
	bool one = prb_scan_key_integer(scan, FD, &wanted);

	PRB_TRY(prb_fact_list(scan, PRB_FACT_FDS, &names));
	PRB_TRY(prb_instant_memo(scan->instant, &key, create, destroy, &descriptors));
	while (names[scan->position]) {
		const char *line = names + scan->position;
		long fd = strtol(line, NULL, 10);

		if (prb_scan_full(scan)) {
			scan->more = true;
			return NULL;
		}
		scan->position += strcspn(line, "\n");
		scan->position += names[scan->position] == '\n';
		if (fd >= 0 && fd <= INT_MAX && (!one || fd == wanted))
			PRB_TRY(fd_row(scan, descriptors, (int)fd));
	}
	return NULL;
}

const struct prb_table prb_table_process_fds = {
	.schema = "process",
	.name = "fds",
	.doc = "Open files, pipes and sockets",
	.columns = columns,
	.rows = 50,
	.scan = scan,
};

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/socket/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/random.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/client/connection.h"
#include "agent/inside/environment.h"
#include "agent/inside/libc.h"
#include "agent/inside/own_folder.h"
#include "agent/inside/status.h"

enum { HIGH_FD = 200, BACKLOG = 16 };

int prba_move_fd(int fd)
{
	int high = fcntl(fd, F_DUPFD_CLOEXEC, HIGH_FD);

	if (high < 0)
		return fd;
	close(fd);
	return high;
}

/** A folder that is ours alone; made if @p make. */
static bool own_folder(const char *path, bool make)
{
	int fd = prba_own_folder(AT_FDCWD, path, make);

	return fd >= 0 && !close(fd);
}

/** 0 if there is no such file. */
static uint64_t file_inode(const char *path)
{
	struct stat st;

	return syscall(SYS_newfstatat, AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW) ? 0 : st.st_ino;
}

/** True if other users may look like ours: a user namespace shows all users that it has no number
 * for as one. If ours has that number too, SO_PEERCRED cannot tell them from us; permissions of
 * files still do.
 */
static bool looks_like_others(void)
{
	char text[64];
	unsigned first, outside, count;

	prba_status_text("/proc/sys/kernel/overflowuid", text, sizeof(text));
	if (*text && strtoul(text, NULL, 10) != geteuid())
		return false;
	/* The initial namespace has numbers for all. */
	prba_status_text("/proc/self/uid_map", text, sizeof(text));
	return sscanf(text, "%u %u %u", &first, &outside, &count) != 3 || first || outside ||
	       count != UINT32_MAX;
}

/** An unpredictable number, if the kernel has one; never 0. */
static uint64_t random_number(void)
{
	uint64_t number = 0;

	syscall(SYS_getrandom, &number, sizeof(number), GRND_NONBLOCK);
	return number ? number : (uint64_t)prba_now_ms();
}

/** The file in @p folder, or, if that is NULL, an abstract name with @p number in place of the
 * user's unless that is 0. */
static int try_bind(struct prba_socket *s, const char *folder, uint64_t number)
{
	size_t size = sizeof(s->address.sun_path);
	char *path = s->address.sun_path;
	int length, error;

	memset(&s->address, 0, sizeof(s->address));
	s->address.sun_family = AF_UNIX;
	if (folder)
		length = snprintf(path, size, "%s/agent-%d.sock", folder, (int)getpid());
	else
		length =
			snprintf(path + 1, size - 1, number ? "probing-%llx-%d" : "probing-%llu-%d",
				 number ? (unsigned long long)number : geteuid(), (int)getpid());
	if (length < 0 || (size_t)length >= size - 1)
		return -ENAMETOOLONG;
	s->address_length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + 1);
	if (folder)
		unlink(path); /* of an earlier process of this number */
	if (bind(s->fd, (struct sockaddr *)&s->address, s->address_length))
		return -errno;
	if (folder && chmod(path, 0600)) {
		error = -errno;
		unlink(path);
		return error;
	}
	s->file = folder ? file_inode(path) : 0;
	s->owner = geteuid();
	return listen(s->fd, BACKLOG) ? -errno : 0;
}

/** A name of the process's network. Any user can occupy the usual name, but not a random one. */
static int bind_abstract(struct prba_socket *s)
{
	int rc;

	if (looks_like_others())
		return -EACCES;
	rc = try_bind(s, NULL, 0);
	return rc == -EADDRINUSE ? try_bind(s, NULL, random_number()) : rc;
}

/** A folder that no other user can deny us, if there is room in /tmp. */
static int bind_in_tmp(struct prba_socket *s)
{
	char path[sizeof(s->address.sun_path)];
	int fd = prba_tmp_folder(path, sizeof(path));

	if (fd < 0)
		return fd;
	close(fd);
	return try_bind(s, path, 0);
}

/** Tries the places in turn. */
static int bind_somewhere(struct prba_socket *s, const char *folder)
{
	const char *runtime = prba_environment("XDG_RUNTIME_DIR");
	char path[sizeof(s->address.sun_path)];
	int rc;

	if (folder)
		return own_folder(folder, false) ? try_bind(s, folder, 0) : -EPERM;
	if (runtime && *runtime == '/' && strlen(runtime) < sizeof(path) - 30 &&
	    own_folder(runtime, false)) {
		snprintf(path, sizeof(path), "%s/probing", runtime);
		if (own_folder(path, true) && !try_bind(s, path, 0))
			return 0;
	}
	snprintf(path, sizeof(path), "/tmp/probing-%u", (unsigned)geteuid());
	if (own_folder(path, true)) {
		if (!try_bind(s, path, 0))
			return 0;
	} else {
		prba_own_folder_why(path, s->note, sizeof(s->note));
	}
	rc = bind_abstract(s);
	return rc && !bind_in_tmp(s) ? 0 : rc;
}

int prba_socket_open(struct prba_socket *s, const char *folder)
{
	int rc;

	s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->fd < 0)
		return -errno;
	s->fd = prba_move_fd(s->fd);
	s->inode = prba_inode(s->fd);
	*s->note = '\0';
	rc = bind_somewhere(s, folder);
	if (rc) {
		close(s->fd);
		s->fd = -1;
	}
	return rc;
}

void prba_socket_unlink(struct prba_socket *s)
{
	/* Never a file that another process has put there. */
	if (s->address.sun_path[0] && file_inode(s->address.sun_path) == s->file)
		unlink(s->address.sun_path);
	s->address.sun_path[0] = 0;
}

bool prba_socket_is_there(const struct prba_socket *s)
{
	return s->owner == geteuid() && (!s->file || file_inode(s->address.sun_path) == s->file);
}

void prba_socket_close(struct prba_socket *s)
{
	int fd = s->fd;

	prba_socket_unlink(s);
	s->fd = -1;
	if (fd >= 0 && prba_inode(fd) == s->inode)
		close(fd);
}

int prba_socket_accept(struct prba_socket *s)
{
	struct ucred peer;
	socklen_t length = sizeof(peer);
	int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return -1;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) ||
	    (peer.uid != 0 && (peer.uid != geteuid() || (!s->file && looks_like_others())))) {
		close(fd);
		return -1;
	}
	return prba_move_fd(fd);
}

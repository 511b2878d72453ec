/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "control/sweep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"

enum {
	YOUNG_S = 60,	/* between its bind() and listen() a socket refuses, too */
	LOOKS_AT = 512, /* names of a folder; the rest is left for another command */
};

static int open_folder(const struct prb_target *t, const char *folder, uid_t uid)
{
	prb_auto_free char *path = prb_format("/proc/%d/root%s", (int)t->pid, folder);
	prb_auto_close int fd =
		path ? open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) || st.st_uid != uid || (st.st_mode & 0022))
		return -1;
	return prb_steal_fd(&fd);
}

static bool is_old_socket(int folder, const char *name)
{
	struct stat st;

	return !strncmp(name, "agent-", strlen("agent-")) &&
	       !fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISSOCK(st.st_mode) &&
	       time(NULL) - st.st_mtime > YOUNG_S;
}

/** Read when it is needed first, which it seldom is. */
static bool is_bound(struct prb_target *t, struct prb_str *sockets, const char *name)
{
	prb_auto_free char *line = prb_format("/%s\n", name);

	if (!sockets->length)
		prb_error_destroy(prb_target_read_file(t, sockets, "net/unix"));
	return !line || sockets->failed || !sockets->length || strstr(prb_str_text(sockets), line);
}

static bool refuses(int folder, const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	prb_auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int length = snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s",
			      folder, name);

	return fd >= 0 && length < (int)sizeof(address.sun_path) &&
	       connect(fd, (struct sockaddr *)&address, sizeof(address)) && errno == ECONNREFUSED;
}

void prb_agent_sweep(struct prb_target *t, const char *folder, uid_t uid)
{
	prb_auto_str struct prb_str sockets = {};
	int fd = open_folder(t, folder, uid);
	DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;

	if (!list && fd >= 0)
		close(fd);
	for (int i = 0; i < LOOKS_AT && list && (entry = readdir(list)); i++)
		if (is_old_socket(fd, entry->d_name) && !is_bound(t, &sockets, entry->d_name) &&
		    refuses(fd, entry->d_name))
			unlinkat(fd, entry->d_name, 0);
	if (list)
		closedir(list);
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/inside/status.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PATH_SIZE = 48, FILE_SIZE = 4096, NAME_SIZE = 32 };

void prba_status_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = -1;

	if (fd >= 0) {
		length = read(fd, text, size - 1);
		close(fd);
	}
	text[length > 0 ? length : 0] = '\0';
}

bool prba_status_read(int tid, const char *field, char ret[PRBA_STATUS_VALUE])
{
	char path[PATH_SIZE] = "/proc/self/status", text[FILE_SIZE], name[NAME_SIZE];
	const char *at;

	if (tid != PRBA_STATUS_PROCESS)
		snprintf(path, sizeof(path), "/proc/self/task/%d/status", tid);
	snprintf(name, sizeof(name), "\n%s:\t", field);
	prba_status_text(path, text, sizeof(text));
	at = strstr(text, name);
	snprintf(ret, PRBA_STATUS_VALUE, "%.*s", at ? (int)strcspn(at + strlen(name), "\n") : 0,
		 at ? at + strlen(name) : "");
	return at;
}

void prba_status_wait(int tid, char ret[PRBA_STATUS_CALL])
{
	char path[PATH_SIZE], futex[16];

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", tid);
	prba_status_text(path, ret, PRBA_STATUS_CALL);
	snprintf(futex, sizeof(futex), "%d ", (int)SYS_futex);
	if (strncmp(ret, futex, strlen(futex)) != 0)
		*ret = '\0';
}

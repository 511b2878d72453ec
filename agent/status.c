/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/status.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PATH_SIZE = 48, FILE_SIZE = 4096, NAME_SIZE = 32 };

bool prba_status_read(int tid, const char *field, char ret[PRBA_STATUS_VALUE])
{
	char path[PATH_SIZE] = "/proc/self/status", text[FILE_SIZE], name[NAME_SIZE];
	ssize_t length = -1;
	const char *at;
	int fd;

	if (tid != PRBA_STATUS_PROCESS)
		snprintf(path, sizeof(path), "/proc/self/task/%d/status", tid);
	snprintf(name, sizeof(name), "\n%s:\t", field);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		length = read(fd, text, sizeof(text) - 1);
		close(fd);
	}
	text[length > 0 ? length : 0] = '\0';
	at = strstr(text, name);
	snprintf(ret, PRBA_STATUS_VALUE, "%.*s", at ? (int)strcspn(at + strlen(name), "\n") : 0,
		 at ? at + strlen(name) : "");
	return at;
}

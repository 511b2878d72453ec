/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "command/start.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"

static const char itself_path[] = "/proc/self/exe";

static bool is_program(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return false;
	if (!S_ISREG(st.st_mode)) {
		errno = EACCES;
		return false;
	}
	return !access(path, X_OK);
}

char *prb_start_find(const char *name)
{
	const char *variable = getenv("PATH");
	prb_auto_free char *folders = strdup(variable ? variable : "");
	char *rest = folders;
	int why = ENOENT;

	if (strchr(name, '/'))
		return strdup(name);
	for (const char *folder; rest && (folder = strsep(&rest, ":"));) {
		prb_auto_free char *path = prb_format("%s/%s", folder, name);

		if (*folder != '/' || !path)
			continue;
		if (is_program(path))
			return prb_steal(&path);
		if (errno == EACCES)
			why = EACCES;
	}
	errno = why;
	return NULL;
}

int prb_start_become_at(const char *path, char *const *words)
{
	execv(path ? path : itself_path, words);
	return errno;
}

int prb_start_become(char *const *words)
{
	prb_auto_free char *path = prb_start_find(words[0]);

	return path ? prb_start_become_at(path, words) : errno;
}

int prb_start_become_typed(char *const *words)
{
	execvp(words[0], words);
	return errno;
}

int prb_start_child(char *const *words, bool itself, const posix_spawn_file_actions_t *actions,
		    pid_t *ret)
{
	prb_auto_free char *path = itself ? strdup(itself_path) : prb_start_find(words[0]);

	return path ? posix_spawn(ret, path, actions, NULL, words, environ) : errno;
}

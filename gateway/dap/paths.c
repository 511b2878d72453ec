/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Paths of the client's files, which "pathMappings" says are others in the process. */
#include <string.h>

#include "base/str.h"
#include "gateway/dap/private.h"

/** Length of a folder's path without the slashes at its end. */
static int length_of(const char *folder)
{
	size_t length = strlen(folder);

	while (length && folder[length - 1] == '/')
		length--;
	return (int)length;
}

/** The path with one folder in place of the other. */
static char *moved(const struct prb_dap *d, const char *path, const char *from, const char *to)
{
	json_t *each;
	size_t i;

	json_array_foreach(d->mappings, i, each)
	{
		const char *root = json_string_value(json_object_get(each, from));
		const char *other = json_string_value(json_object_get(each, to));
		int length = root ? length_of(root) : 0;

		/* What is relative is so to a folder that only debugpy knows. */
		if (!root || !other || *root != '/' || *other != '/')
			continue;
		if (!strncmp(path, root, (size_t)length) && path[length] == '/')
			return prb_format("%.*s%s", length_of(other), other, path + length);
	}
	return strdup(path);
}

char *prb_dap_path_here(const struct prb_dap *d, const char *path)
{
	return moved(d, path, "localRoot", "remoteRoot");
}

char *prb_dap_path_of_client(const struct prb_dap *d, const char *path)
{
	return moved(d, path, "remoteRoot", "localRoot");
}

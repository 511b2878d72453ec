/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/package_place.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/str.h"

void prb_program_folder(char *ret, size_t size)
{
	ssize_t length = readlink("/proc/self/exe", ret, size - 1);
	char *slash;

	ret[PRB_MAX(length, 0)] = '\0';
	slash = strrchr(ret, '/');
	if (slash)
		*slash = '\0';
}

/** The folder as a pattern that only it matches. */
static char *quote(const char *folder)
{
	prb_auto_str struct prb_str out = {};

	for (; *folder; folder++) {
		if (strchr("\\*?[", *folder))
			prb_str_putc(&out, '\\');
		prb_str_putc(&out, *folder);
	}
	return out.failed ? NULL : prb_str_take(&out);
}

char *prb_package_file(const char *folder, const char *name)
{
	static const char *const places[] = {
		"/../lib*/python3*/site-packages/probing",
		"/../lib*/python3*/dist-packages/probing",
		"/../probing",
	};
	prb_auto_free char *quoted = quote(folder);
	char *result = NULL;

	for (size_t i = 0; quoted && !result && i < PRB_ARRAY_SIZE(places); i++) {
		prb_auto_free char *pattern = prb_format("%s%s/%s", quoted, places[i], name);
		glob_t found = {};

		if (!pattern)
			return NULL;
		if (!glob(pattern, 0, NULL, &found))
			result = realpath(found.gl_pathv[0], NULL);
		globfree(&found);
	}
	return result;
}

static char *find_package(const char *folder)
{
	static const char *const places[] = {"/../package/probing",
					     "/../share/probing/python/probing"};
	char *found;

	for (size_t i = 0; i < PRB_ARRAY_SIZE(places); i++) {
		prb_auto_free char *path = prb_format("%s%s", folder, places[i]);

		found = path ? realpath(path, NULL) : NULL;
		if (found)
			return found;
	}
	found = prb_package_file(folder, "__init__.py");
	if (found)
		*strrchr(found, '/') = '\0';
	return found;
}

struct prb_error *prb_package_find(const char *folder, char **ret)
{
	*ret = find_package(folder);
	return *ret ? NULL
		    : prb_error_hint(prb_error_create(PRB_ERROR_NOT_FOUND,
						      "the Python package is not installed beside "
						      "probing"),
				     "'make install' puts it there");
}

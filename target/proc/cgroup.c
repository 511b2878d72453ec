/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "target/proc/cgroup.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

bool prb_cgroup_next(const char **text, struct prb_cgroup *ret)
{
	while (**text) {
		const char *line = *text;
		const char *end = line + strcspn(line, "\n");
		char *controllers;

		*text = end + (*end == '\n');
		long hierarchy = strtol(line, &controllers, 10);
		if (controllers == line || *controllers != ':')
			continue;
		controllers++;
		const char *path = memchr(controllers, ':', (size_t)(end - controllers));
		if (!path)
			continue;
		*ret = (struct prb_cgroup){
			.hierarchy = (int)hierarchy,
			.controllers = controllers,
			.controllers_length = (size_t)(path - controllers),
			.path = path + 1,
			.path_length = (size_t)(end - path - 1),
		};
		return true;
	}
	return false;
}

/** The innermost run of exactly 64 hex digits. */
static const char *find_digits(const struct prb_cgroup *group)
{
	enum { DIGITS = 64 };
	const char *found = NULL, *end = group->path + group->path_length;

	for (const char *at = group->path; at < end; at++) {
		const char *start = at;

		while (at < end && isxdigit((unsigned char)*at))
			at++;
		if (at - start == DIGITS)
			found = start;
	}
	return found;
}

static const char *find_lxc(const struct prb_cgroup *group, size_t *length)
{
	static const char *const before[] = {"/lxc/", "/lxc.payload.", "/lxc.payload/"};

	for (size_t i = 0; i < PRB_ARRAY_SIZE(before); i++) {
		const char *at =
			memmem(group->path, group->path_length, before[i], strlen(before[i]));

		if (!at)
			continue;
		at += strlen(before[i]);
		*length = strcspn(at, "/\n");
		if (*length)
			return at;
	}
	return NULL;
}

void prb_cgroup_container(const char *text, struct prb_str *ret)
{
	struct prb_cgroup group;

	while (prb_cgroup_next(&text, &group)) {
		size_t length = 64;
		const char *id = find_digits(&group);

		if (!id)
			id = find_lxc(&group, &length);
		if (id) {
			prb_str_append(ret, id, length);
			return;
		}
	}
}

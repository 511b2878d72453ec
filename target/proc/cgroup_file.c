/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The files of a control group: its limits and what it uses. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "target/proc/cgroup.h"

/** The line at *text, which moves behind it; false at the end. */
static bool next_line(const char **text, const char **line, size_t *length)
{
	if (!**text)
		return false;
	*line = *text;
	*length = strcspn(*line, "\n");
	*text += *length + ((*line)[*length] == '\n');
	return true;
}

/** These files are the kernel's, and short. */
static bool read_whole(const char *path, struct prb_str *ret)
{
	prb_auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[4096];
	ssize_t n;

	if (fd < 0)
		return false;
	do
		n = read(fd, text, sizeof(text));
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return false;
	prb_str_append(ret, text, (size_t)n);
	return true;
}

/** Where a hierarchy is mounted on this machine. */
struct mount {
	struct prb_str root; /**< which of its groups is mounted */
	struct prb_str point;
};

static void mount_deinit(struct mount *mount)
{
	prb_str_deinit(&mount->root);
	prb_str_deinit(&mount->point);
}

static bool has_word(const char *list, size_t length, const char *word, size_t word_length)
{
	for (const char *at = list, *end = list + length; at < end;) {
		size_t part = PRB_MIN(strcspn(at, ", \n"), (size_t)(end - at));

		if (part == word_length && !strncmp(at, word, part))
			return true;
		at += part + 1;
	}
	return false;
}

/** "31 23 0:28 /ROOT /POINT OPTIONS - cgroup SOURCE rw,memory" */
static bool is_mount_of(const char *line, size_t length, const struct prb_cgroup *group)
{
	static const char one[] = " - cgroup ", two[] = " - cgroup2 ";

	if (!group->hierarchy)
		return memmem(line, length, two, sizeof(two) - 1);
	const char *type = memmem(line, length, one, sizeof(one) - 1);
	if (!type)
		return false;
	const char *options = memchr(type + sizeof(one) - 1, ' ',
				     length - (size_t)(type - line) - (sizeof(one) - 1));
	size_t first = 0;

	while (first < group->controllers_length && group->controllers[first] != ',')
		first++;
	return options && has_word(options + 1, length - (size_t)(options + 1 - line),
				   group->controllers, first);
}

static bool find_mount(const char *mounts, const struct prb_cgroup *group, struct mount *ret)
{
	const char *line;
	size_t length;

	while (next_line(&mounts, &line, &length)) {
		const char *field = line;

		if (!is_mount_of(line, length, group))
			continue;
		for (unsigned i = 0; i < 3; i++) {
			field += strcspn(field, " \n");
			field += *field == ' ';
		}
		prb_str_append(&ret->root, field, strcspn(field, " \n"));
		field += strcspn(field, " \n");
		field += *field == ' ';
		prb_str_append(&ret->point, field, strcspn(field, " \n"));
		return ret->root.length && ret->point.length;
	}
	return false;
}

/** The file of a group, as text; false if it is not there, as the root's are not. */
static bool read_file(const struct mount *mount, const struct prb_cgroup *group, const char *file,
		      struct prb_str *ret)
{
	prb_auto_str struct prb_str path = {};
	const char *below = group->path;
	size_t length = group->path_length, root = mount->root.length;

	/* The mounted group may be the container's own. */
	if (root > 1) {
		if (length < root || strncmp(below, mount->root.data, root) != 0)
			return false;
		below += root;
		length -= root;
	}
	/* A group outside of what our namespace shows has no file that we could name. */
	if (memmem(below, length, "/..", 3))
		return false;
	prb_str_printf(&path, "%s%.*s/%s", prb_str_text(&mount->point), (int)length, below, file);
	return read_whole(prb_str_text(&path), ret);
}

bool prb_cgroup_file(const char *mounts, const struct prb_cgroup *group, const char *file,
		     struct prb_str *ret)
{
	__attribute__((cleanup(mount_deinit))) struct mount mount = {};

	return find_mount(mounts, group, &mount) && read_file(&mount, group, file, ret);
}

bool prb_cgroup_mounts(struct prb_str *ret)
{
	enum { MOUNTS_MAX = 1 << 20 };
	prb_auto_close int fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	char part[4096];
	ssize_t n;

	if (fd < 0)
		return false;
	while (ret->length < MOUNTS_MAX && (n = read(fd, part, sizeof(part))) > 0)
		prb_str_append(ret, part, (size_t)n);
	return true;
}

bool prb_cgroup_own_file(const char *mounts, const char *text, const char *controller,
			 const char *two, const char *one, struct prb_str *ret)
{
	struct prb_cgroup group;

	while (prb_cgroup_next(&text, &group)) {
		if (group.hierarchy && !has_word(group.controllers, group.controllers_length,
						 controller, strlen(controller)))
			continue;
		if (prb_cgroup_file(mounts, &group, group.hierarchy ? one : two, ret))
			return true;
	}
	return false;
}

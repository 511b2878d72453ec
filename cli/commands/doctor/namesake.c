/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The older tool of the same name, which an index of packages has at 0.2: its package, start-up
 * hook and command are called as ours are. It is known by its library, probing/_core.abi3.so.
 */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "cli/commands/doctor/doctor.h"

enum { PREFIXES = 64, MOST_OF_RECORD = 8 << 20 };

/* Below a prefix of Python: of system packages, and of all others. */
static const char *const places[] = {
	"lib/python3*/site-packages/probing/_core.abi3.so",
	"lib/python3*/dist-packages/probing/_core.abi3.so",
};

static void add_package(struct prb_doctor *d, const char *name, const char *library)
{
	int folder = (int)(strrchr(library, '/') - library);

	prb_remarks_add(
		&d->report, name, PRB_VERDICT_LIMITED,
		"%.*s is another tool of this name, or both in one folder: 'import probing' "
		"and the start-up hook may be its",
		folder, library);
	prb_remarks_advise(&d->report, "pip uninstall probing, then install this one again");
}

static bool find_packages(struct prb_doctor *d, const char *name, const char *prefix)
{
	bool found = false;

	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		char pattern[4096];
		glob_t files = {};

		if ((size_t)snprintf(pattern, sizeof(pattern), "%s/%s", prefix, places[i]) <
			    sizeof(pattern) &&
		    !glob(pattern, GLOB_NOSORT, NULL, &files))
			for (size_t at = 0; at < files.gl_pathc; at++, found = true)
				add_package(d, name, files.gl_pathv[at]);
		globfree(&files);
	}
	return found;
}

/** The name of the distribution in whose folder *.dist-info a file is. */
static const char *distribution(const char *record, int *length)
{
	const char *end = strrchr(record, '/'), *start = end;

	while (start[-1] != '/')
		start--;
	*length = (int)(end - start - (long)strlen(".dist-info"));
	return start;
}

/** True if the list of a distribution's files has the package. */
static bool owns_package(const char *record)
{
	static const char file[] = "probing/__init__.py,";
	prb_auto_close int fd = -1;
	prb_auto_error struct prb_error *err = prb_file_open(-1, record, &fd);
	prb_auto_free char *text = err ? NULL : malloc(MOST_OF_RECORD + 1);
	ssize_t length = text ? pread(fd, text, MOST_OF_RECORD, 0) : -1;

	if (length < 0)
		return false;
	text[length] = '\0';
	for (const char *at = strstr(text, file); at; at = strstr(at + 1, file))
		if (at == text || at[-1] == '\n')
			return true;
	return false;
}

/** Two that own the package, as a publisher's other name for it and the usual one. */
static bool find_owners(struct prb_doctor *d, const char *name, const char *pattern)
{
	const char *first = NULL;
	bool found = false;
	glob_t files = {};

	if (!glob(pattern, 0, NULL, &files))
		for (size_t at = 0; at < files.gl_pathc && !found; at++) {
			const char *one, *two;
			int length, more;

			if (!owns_package(files.gl_pathv[at]))
				continue;
			two = distribution(files.gl_pathv[at], &more);
			one = first ? distribution(first, &length) : NULL;
			found = one && one - first == two - files.gl_pathv[at] &&
				!strncmp(first, files.gl_pathv[at], (size_t)(one - first));
			first = files.gl_pathv[at];
			if (found)
				prb_remarks_add(&d->report, name, PRB_VERDICT_LIMITED,
						"%.*s and %.*s both own %.*sprobing", length, one,
						more, two, (int)(one - first), first);
		}
	globfree(&files);
	return found;
}

static bool find_all_owners(struct prb_doctor *d, const char *name, const char *prefix)
{
	static const char *const records[] = {"lib/python3*/site-packages/*.dist-info/RECORD",
					      "lib/python3*/dist-packages/*.dist-info/RECORD"};
	bool found = false;

	for (size_t i = 0; i < sizeof(records) / sizeof(*records); i++) {
		prb_auto_free char *pattern = prb_format("%s/%s", prefix, records[i]);

		found |= pattern && find_owners(d, name, pattern);
	}
	if (found)
		prb_remarks_advise(&d->report, "pip uninstall both, then install one again");
	return found;
}

/** The beginning of a small file; "" if it cannot be read. */
static void read_start(const char *path, char ret[4096])
{
	prb_auto_close int fd = -1;
	prb_auto_error struct prb_error *err = prb_file_open(-1, path, &fd);
	ssize_t length = err ? -1 : pread(fd, ret, 4095, 0);

	ret[length > 0 ? length : 0] = '\0';
}

/** True for the script that pip writes for that tool's command. */
static bool is_its_command(const char *path)
{
	char text[4096];

	read_start(path, text);
	return !strncmp(text, "#!", 2) && strstr(text, "probing.cli");
}

static bool find_commands(struct prb_doctor *d, const char *name)
{
	prb_auto_free char *folders = strdup(getenv("PATH") ?: "");
	struct stat ours = {};
	bool found = false, reached = false;
	char *rest = folders;

	if (stat("/proc/self/exe", &ours))
		ours.st_ino = 0;

	while (rest && !reached) {
		const char *folder = strsep(&rest, ":");
		struct stat st;
		char path[4096];

		if (*folder != '/' ||
		    (size_t)snprintf(path, sizeof(path), "%s/probing", folder) >= sizeof(path))
			continue;
		/* Behind this program nothing is found by a shell. */
		reached = !stat(path, &st) && st.st_ino == ours.st_ino && st.st_dev == ours.st_dev;
		if (reached || !is_its_command(path))
			continue;
		prb_remarks_add(&d->report, name, PRB_VERDICT_LIMITED,
				"%s is the command of another tool of this name", path);
		prb_remarks_advise(&d->report, "pip uninstall probing there, or put ours first in "
					       "PATH");
		found = true;
	}
	return found;
}

/** Appends a prefix unless the list has it already. NULL and relative paths are ignored. */
static void add_prefix(char *prefixes[PREFIXES], const char *prefix)
{
	size_t i = 0;

	if (!prefix || *prefix != '/')
		return;
	while (i < PREFIXES && prefixes[i] && strcmp(prefixes[i], prefix) != 0)
		i++;
	if (i < PREFIXES && !prefixes[i])
		prefixes[i] = strdup(prefix);
}

/** The prefix of a program in PREFIX/bin. */
static void add_prefix_of(char *prefixes[PREFIXES], const char *folder)
{
	prb_auto_free char *prefix = strdup(folder);
	size_t length = prefix ? strlen(prefix) : 0;

	if (length <= 4 || strcmp(prefix + length - 4, "/bin") != 0)
		return;
	prefix[length - 4] = '\0';
	add_prefix(prefixes, prefix);
}

/** Of a virtual environment that has its interpreter's packages, too: that one's. */
static void add_shared_prefix(char *prefixes[PREFIXES], const char *prefix)
{
	prb_auto_free char *path = prb_format("%s/pyvenv.cfg", prefix);
	char text[4096] = "", *home, *end;

	if (path)
		read_start(path, text);
	home = strstr(text, "home = ");
	if (!home || !strstr(text, "include-system-site-packages = true"))
		return;
	home += strlen("home = ");
	end = home + strcspn(home, "\n");
	*end = '\0';
	add_prefix_of(prefixes, home);
}

/* Where Pythons of this shell are, and the one that this program was installed for. */
static void find_prefixes(char *prefixes[PREFIXES])
{
	prb_auto_free char *folders = strdup(getenv("PATH") ?: "");
	prb_auto_free char *local = getenv("HOME") ? prb_format("%s/.local", getenv("HOME")) : NULL;
	char *rest = folders, own[4096];
	ssize_t length = readlink("/proc/self/exe", own, sizeof(own) - 1);

	add_prefix(prefixes, getenv("VIRTUAL_ENV"));
	add_prefix(prefixes, getenv("CONDA_PREFIX"));
	if (length > 0) {
		own[length] = '\0';
		*strrchr(own, '/') = '\0';
		add_prefix_of(prefixes, own);
	}
	add_prefix(prefixes, local);
	add_prefix(prefixes, "/usr/local");
	add_prefix(prefixes, "/usr");
	while (rest)
		add_prefix_of(prefixes, strsep(&rest, ":"));
	for (size_t i = 0; i < PREFIXES && prefixes[i]; i++)
		add_shared_prefix(prefixes, prefixes[i]);
}

void prb_doctor_namesake(struct prb_doctor *d, const struct prb_check *check)
{
	char *prefixes[PREFIXES] = {};
	bool found = find_commands(d, check->name);

	find_prefixes(prefixes);
	for (size_t i = 0; i < PREFIXES && prefixes[i]; i++) {
		bool both = find_packages(d, check->name, prefixes[i]);

		found |= both || find_all_owners(d, check->name, prefixes[i]);
		free(prefixes[i]);
	}
	if (!found)
		prb_remarks_add(&d->report, check->name, PRB_VERDICT_OK,
				"no other tool of this name was found");
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/commands/script/start_python.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/package_place.h"
#include "base/str.h"
#include "command/start.h"

/* In place of the current folder, from which nothing is imported. */
static const char start[] = "import sys; sys.path[0] = sys.argv[1]; "
			    "from probing._script import main; main(sys.argv[2:])";
static const char name_letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_-";
static const size_t extension_max = 1 << 20; /* bytes that are looked at for a name */

/** The folder that the package is in, and the library that belongs to it, which may not exist. */
static struct prb_error *find_package(char **ret, char **ret_library)
{
	char folder[4096];

	prb_program_folder(folder, sizeof(folder));
	PRB_TRY(prb_package_find(folder, ret));
	*ret_library = prb_format("%s/libprobing.so", *ret);
	if (*ret_library && access(*ret_library, R_OK)) {
		free(*ret_library);
		*ret_library = prb_format("%s/libprobing.so", folder);
	}
	*strrchr(*ret, '/') = '\0';
	return *ret_library ? NULL : prb_error_nomem();
}

/* The package asks the program for what the library does not do. */
static void name_program(void)
{
	char path[4096];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (length > 0) {
		path[length] = '\0';
		setenv("PROBING_PROGRAM", path, 1);
	}
}

struct prb_error *prb_script_start(const char *const *words)
{
	prb_auto_free char *package = NULL, *library = NULL;
	const char *chosen = getenv("PYTHON"), *python = chosen && *chosen ? chosen : "python3";
	const char *all[PRB_SCRIPT_WORDS + 5] = {python, "-c", start};
	size_t count = 4;

	PRB_TRY(find_package(&package, &library));
	all[3] = package;
	for (; *words && count < PRB_SCRIPT_WORDS + 4; words++)
		all[count++] = *words;
	if (*words)
		return prb_error_create(PRB_ERROR_USAGE, "more than %d words", PRB_SCRIPT_WORDS);
	if (!access(library, R_OK))
		setenv("PROBING_LIBRARY", library, 0);
	name_program();
	return prb_error_hint(
		prb_error_os(prb_start_become((char **)all), "cannot start %s", python),
		"scripts need Python 3.6 or later; $PYTHON names one");
}

bool prb_script_is_ours(const char *name)
{
	prb_auto_free char *package = NULL, *library = NULL, *path = NULL;
	prb_auto_error struct prb_error *err = find_package(&package, &library);

	if (err || strspn(name, name_letters) != strlen(name))
		return false;
	path = prb_format("%s/probing/scripts/%s.py", package, name);
	return path && !access(path, R_OK);
}

/** True if the file has the text in it; Python will look again, and check whose it is. */
static bool mentions(const char *path, bool named, const char *wanted)
{
	int flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC | (named ? 0 : O_NOFOLLOW);
	prb_auto_close int fd = open(path, flags);
	prb_auto_free char *text = malloc(extension_max);
	struct stat st;
	ssize_t length;

	if (!text || fd < 0 || fstat(fd, &st) || (!named && !S_ISREG(st.st_mode)) ||
	    (!named && st.st_uid != geteuid()))
		return false;
	length = read(fd, text, extension_max);
	return length > 0 && memmem(text, (size_t)length, wanted, strlen(wanted));
}

bool prb_script_mentioned(const struct prb_texts *scripts, const char *wanted)
{
	const char *base = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	prb_auto_free char *pattern =
		base && *base ? prb_format("%s/probing/*.py", base)
			      : prb_format("%s/.config/probing/*.py", home ? home : "");
	glob_t found = {};
	bool result = false;

	for (size_t i = 0; scripts && i < scripts->count && !result; i++)
		result = mentions(scripts->items[i], true, wanted) ||
			 access(scripts->items[i], R_OK);
	if (result || !pattern || glob(pattern, GLOB_NOSORT, NULL, &found))
		return result;
	for (size_t i = 0; i < found.gl_pathc && !result; i++)
		result = mentions(found.gl_pathv[i], false, wanted);
	globfree(&found);
	return result;
}

/** True if a file may make a command of that name. */
static bool extensions_mention(const char *name)
{
	/* A function has _ where the command has -. */
	prb_auto_free char *other = strdup(name);

	for (char *c = other; c && *c; c++)
		*c = *c == '-' ? '_' : *c;
	return prb_script_mentioned(NULL, name) || (other && prb_script_mentioned(NULL, other));
}

struct prb_error *prb_script_external(char **words, size_t count, size_t at)
{
	const char *name = words[at];
	const char *all[PRB_SCRIPT_WORDS + 1] = {"-x", name};
	prb_auto_free char *program = prb_format("probing-%s", name);
	size_t length = 2;
	int why;

	if (!program || count + 2 > PRB_SCRIPT_WORDS || name[0] == '-' ||
	    strspn(name, name_letters) != strlen(name))
		return NULL;
	for (size_t i = 0; i < count; i++)
		if (i != at)
			all[length++] = words[i];
	all[1] = program;
	why = prb_start_become((char **)all + 1);
	if (why != ENOENT && why != EACCES)
		return prb_error_os(why, "cannot start %s", program);
	all[1] = name;
	return extensions_mention(name) ? prb_script_start(all) : NULL;
}

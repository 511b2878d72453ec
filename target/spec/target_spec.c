/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "target/spec/target_spec.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "target/spec/command_line.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "target/core/core.h"
#include "target/proc/instance.h"
#include "target/recorded/left.h"
#include "target/recorded/recorded.h"
#include "target/snapshot/bundle.h"
#include "target/snapshot/snapshot.h"

static bool is_number(const char *text)
{
	return *text && strspn(text, "0123456789") == strlen(text);
}

/** "host:9922", "10.0.0.3:9922", "[::1]:9922". */
static bool is_address(const char *text)
{
	const char *colon = strrchr(text, ':');

	return colon && colon > text && is_number(colon + 1) && strlen(colon + 1) <= 5 &&
	       !strpbrk(text, "/ ");
}

static bool is_member(const char *text)
{
	prb_auto_free char *path = NULL;
	long rank;
	prb_auto_error struct prb_error *err = prb_bundle_divide(text, &path, &rank);

	return !err && path;
}

enum prb_spec_kind prb_spec_kind(const char *text)
{
	size_t length = strlen(text);
	uint64_t start;
	struct stat st;
	pid_t pid;

	if (is_number(text) || prb_instance_parse(text, &pid, &start))
		return PRB_SPEC_PID;
	if (length > 2 && text[0] == '/' && text[length - 1] == '/')
		return PRB_SPEC_REGEX;
	if (!stat(text, &st)) {
		if (S_ISSOCK(st.st_mode))
			return PRB_SPEC_SOCKET;
		if (S_ISREG(st.st_mode) && prb_snapshot_probe(text))
			return PRB_SPEC_SNAPSHOT;
		if (S_ISREG(st.st_mode) && prb_bundle_probe(text))
			return PRB_SPEC_BUNDLE;
		if (S_ISREG(st.st_mode) &&
		    (prb_recorded_probe(text) || prb_recorded_probe_ring(text)))
			return PRB_SPEC_RECORDED;
		if (S_ISDIR(st.st_mode) && prb_recorded_probe_folder(text))
			return PRB_SPEC_RECORDED;
		if (S_ISREG(st.st_mode) && prb_core_probe(text))
			return PRB_SPEC_CORE;
		/* A script in this folder is also what its process is called by. */
		if (strchr(text, '/'))
			return PRB_SPEC_OTHER_FILE;
	}
	if (is_member(text))
		return PRB_SPEC_MEMBER;
	if (is_address(text))
		return PRB_SPEC_REMOTE;
	return strchr(text, '/') ? PRB_SPEC_OTHER_FILE : PRB_SPEC_NAME;
}

static struct prb_error *open_member(const char *text, struct prb_target **ret)
{
	prb_auto_bundle struct prb_bundle bundle = PRB_NO_BUNDLE;
	const struct prb_bundle_member *member;
	prb_auto_free char *path = NULL;
	long rank;

	PRB_TRY(prb_bundle_divide(text, &path, &rank));
	if (!path)
		return prb_error_create(PRB_ERROR_FAILED, "'%.200s' has changed meanwhile", text);
	PRB_TRY(prb_bundle_open(path, &bundle));
	member = prb_bundle_find(&bundle, PRB_BUNDLE_SNAPSHOT, rank);
	if (!member)
		return prb_error_create(PRB_ERROR_NOT_FOUND, "%s has no snapshot of rank %ld", path,
					rank);
	return prb_bundle_target(&bundle, member, ret);
}

/** A bundle with one rank needs no choice. */
static struct prb_error *open_bundle(const char *text, struct prb_target **ret)
{
	prb_auto_bundle struct prb_bundle bundle = PRB_NO_BUNDLE;
	const struct prb_bundle_member *member, *found = NULL;
	size_t count = 0;

	PRB_TRY(prb_bundle_open(text, &bundle));
	prb_vec_each (member, &bundle.members) {
		if (member->kind != PRB_BUNDLE_SNAPSHOT)
			continue;
		found = found ? found : member;
		count++;
	}
	if (count == 1)
		return prb_bundle_target(&bundle, found, ret);
	if (!count)
		return prb_error_create(PRB_ERROR_NOT_FOUND, "%s has no snapshot", text);
	return prb_error_hint(
		prb_error_create(PRB_ERROR_USAGE, "%s has snapshots of %zu ranks", text, count),
		"choose one by '%s/%ld', or 'query' all", text, found->number);
}

/** Another process may get the pid at any time: what was opened is its own if it is there after. */
static struct prb_error *open_instance(pid_t pid, uint64_t start, struct prb_target **ret)
{
	struct prb_error *err;

	PRB_TRY(prb_instance_check(pid, start));
	PRB_TRY(prb_target_open_process(pid, ret));
	err = prb_instance_check(pid, start);
	if (err) {
		prb_target_destroy(*ret);
		*ret = NULL;
	}
	return err;
}

static struct prb_error *open_pid(const char *text, struct prb_target **ret)
{
	uint64_t start;
	pid_t instance;

	if (prb_instance_parse(text, &instance, &start))
		return open_instance(instance, start, ret);
	errno = 0;
	long pid = strtol(text, NULL, 10);

	if (errno || pid < 1 || pid > INT_MAX)
		return prb_error_create(PRB_ERROR_USAGE, "'%.100s' is not a process id", text);
	return prb_target_open_process((pid_t)pid, ret);
}

/** Matches command lines: contained text, or the expression between the slashes. */
static struct prb_error *open_match(const char *text, bool regex, struct prb_target **ret)
{
	prb_auto_str struct prb_str pattern = {};
	pid_t pid;

	prb_str_append(&pattern, text + regex, strlen(text) - 2 * regex);
	if (pattern.failed)
		return prb_error_nomem();
	PRB_TRY(prb_command_line_find(prb_str_text(&pattern), regex, &pid));
	return prb_target_open_process(pid, ret);
}

/** A path to a file may also be part of a command line: "bin/train.py". Not that of a device. */
static struct prb_error *open_other_file(const char *text, struct prb_target **ret)
{
	struct prb_error *err;
	struct stat st;

	if (!stat(text, &st) && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return prb_error_hint(prb_error_create(PRB_ERROR_UNSUPPORTED,
						       "'%.200s' is no file that can be read",
						       text),
				      "give a process, a core file, a snapshot or a recording");
	err = open_match(text, false, ret);
	if (!prb_error_catch(&err, PRB_ERROR_NO_PROCESS))
		return err;
	if (access(text, F_OK))
		return prb_error_hint(
			prb_error_create(
				PRB_ERROR_NO_PROCESS,
				"there is no file '%.200s', and no Python process has that "
				"in its command line",
				text),
			"'probing list' shows the command lines");
	return prb_error_hint(
		prb_error_create(PRB_ERROR_UNSUPPORTED,
				 "'%.200s' is neither a core file, a snapshot nor a recording, "
				 "and in no Python process's command line",
				 text),
		"'probing list' shows the command lines");
}

/** A name that files of ours have: a missing one is what is meant then. */
static bool is_file_name(const char *text)
{
	static const char *const ends[] = {".snapshot", ".snap", ".core",   ".profile",
					   ".ring",	".cold", ".probing"};
	size_t length = strlen(text);

	for (size_t i = 0; i < PRB_ARRAY_SIZE(ends); i++)
		if (length > strlen(ends[i]) && !strcmp(text + length - strlen(ends[i]), ends[i]))
			return true;
	return !strncmp(text, "core.", strlen("core."));
}

/** The kernel names the listening process. */
static struct prb_error *open_socket(const char *path, struct prb_target **ret)
{
	prb_auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct ucred peer;
	socklen_t length = sizeof(peer);

	if (strlen(path) >= sizeof(address.sun_path))
		return prb_error_hint(prb_error_create(PRB_ERROR_USAGE,
						       "the path '%.200s' is too long for a socket",
						       path),
				      "give the pid of the process instead");
	strcpy(address.sun_path, path);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)))
		return errno == ECONNREFUSED
			       ? prb_error_hint(prb_error_create(PRB_ERROR_NO_PROCESS,
								 "nobody listens at '%.200s'",
								 path),
						"give the pid of the process instead")
			       : prb_error_os(errno, "cannot connect to %.200s", path);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) || peer.pid <= 0)
		return prb_error_hint(
			prb_error_create(PRB_ERROR_UNSUPPORTED,
					 "who listens at '%.200s' is not to be seen from here",
					 path),
			"give the pid of the process instead");
	return prb_target_open_process(peer.pid, ret);
}

struct prb_error *prb_spec_open(const char *text, const char *exe, struct prb_target **ret)
{
	return prb_spec_open_in(text, &(struct prb_core_places){.exe = exe}, ret);
}

struct prb_error *prb_spec_refuse_places(const char *text, const struct prb_core_places *places)
{
	const char *option = places->exe	    ? "--exe"
			     : places->sysroot	    ? "--sysroot"
			     : places->library_path ? "--library-path"
						    : NULL;

	return option ? prb_error_create(PRB_ERROR_USAGE,
					 "%s is for core files, and '%.200s' is none", option, text)
		      : NULL;
}

struct prb_error *prb_spec_open_in(const char *text, const struct prb_core_places *places,
				   struct prb_target **ret)
{
	enum prb_spec_kind kind = prb_spec_kind(text);

	if (!strncmp(text, "clickhouse://", 13) || !strncmp(text, "clickhouses://", 14))
		return prb_error_create(PRB_ERROR_UNSUPPORTED,
					"a ClickHouse database is a target of 'query' only");
	if (kind != PRB_SPEC_CORE)
		PRB_TRY(prb_spec_refuse_places(text, places));
	switch (kind) {
	case PRB_SPEC_PID:
		return open_pid(text, ret);
	case PRB_SPEC_CORE:
		return prb_target_open_core_in(text, places, ret);
	case PRB_SPEC_SNAPSHOT:
		return prb_target_open_snapshot(text, ret);
	case PRB_SPEC_BUNDLE:
		return open_bundle(text, ret);
	case PRB_SPEC_MEMBER:
		return open_member(text, ret);
	case PRB_SPEC_RECORDED:
		return prb_target_open_recorded(text, ret);
	case PRB_SPEC_REGEX:
		return open_match(text, true, ret);
	case PRB_SPEC_OTHER_FILE:
		return open_other_file(text, ret);
	case PRB_SPEC_NAME:
		return is_file_name(text) ? open_other_file(text, ret)
					  : open_match(text, false, ret);
	case PRB_SPEC_SOCKET:
		return open_socket(text, ret);
	case PRB_SPEC_REMOTE:
		break;
	}
	return prb_error_hint(
		prb_error_create(PRB_ERROR_UNSUPPORTED,
				 "'%.200s' is a served process: only 'probing -t' can reach it",
				 text),
		"or make a snapshot of it and read that here");
}

struct prb_error *prb_spec_open_rows(const char *text, const struct prb_core_places *places,
				     struct prb_target **ret, bool *left)
{
	struct prb_error *err = prb_spec_open_in(text, places, ret), *none;
	prb_auto_free char *path = NULL;
	uint64_t start = 0;
	pid_t pid;
	int fd;

	*left = false;
	if (!err || err->code != PRB_ERROR_NO_PROCESS || prb_spec_kind(text) != PRB_SPEC_PID)
		return err;
	if (!prb_instance_parse(text, &pid, &start))
		pid = (pid_t)strtol(text, NULL, 10);
	none = prb_left_open(pid, start, &fd, &path);
	if (none) {
		prb_error_destroy(none);
		return err;
	}
	prb_error_destroy(err);
	*left = true;
	return prb_target_open_rings(fd, path, ret);
}

struct prb_error *prb_spec_find_all(const char *text, struct prb_pids *ret)
{
	enum prb_spec_kind kind = prb_spec_kind(text);
	bool regex = kind == PRB_SPEC_REGEX;
	prb_auto_str struct prb_str pattern = {};

	if (!regex && kind != PRB_SPEC_NAME && kind != PRB_SPEC_OTHER_FILE)
		return prb_error_create(PRB_ERROR_USAGE,
					"--all is for names and /regex/, and '%.200s' is neither",
					text);
	prb_str_append(&pattern, text + regex, strlen(text) - 2 * regex);
	if (pattern.failed)
		return prb_error_nomem();
	return prb_command_line_find_all(prb_str_text(&pattern), regex, ret);
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/commands/keep_crashes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/own_file.h"
#include "base/str.h"
#include "clickhouse/state.h"
#include "command/exit.h"

enum { MAX_RECORD = 1100 << 20, MAX_NAMES = 1000, DEFAULT_MIB = 1024, MIB = 1 << 20, MODE = 0700 };

struct keeper {
	int folder; /* "crashes" of the state */
	uint64_t most;
};

/** "crash-SECONDS-PID.core"; the seconds. */
static bool parse_name(const char *name, unsigned long long *seconds)
{
	int pid, end = 0;

	return sscanf(name, "crash-%20llu-%10d.core%n", seconds, &pid, &end) == 2 && end &&
	       !name[end] && pid > 0;
}

/** Whole, or not at all. */
static struct prb_error *copy(int from, uint64_t size, int folder, const char *name)
{
	static const char temporary[] = "new";
	prb_auto_close int to = openat(folder, temporary,
				       O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	uint64_t done = 0;

	if (to < 0)
		return prb_error_os(errno, "cannot keep a crash record");
	while (done < size) {
		ssize_t got = sendfile(to, from, NULL, size - done);

		if (got < 0)
			return prb_error_os(errno, "cannot keep the crash record %s", name);
		if (!got)
			break;
		done += (uint64_t)got;
	}
	if (fsync(to) || renameat(folder, temporary, folder, name))
		return prb_error_os(errno, "cannot keep the crash record %s", name);
	return NULL;
}

/** Removes the oldest until the others have @p most bytes. */
static struct prb_error *prune(int folder, uint64_t most)
{
	for (;;) {
		int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		prb_auto_closedir DIR *stream = again < 0 ? NULL : fdopendir(again);
		unsigned long long seconds, oldest = ULLONG_MAX;
		char name[NAME_MAX + 1] = "";
		struct dirent *entry;
		uint64_t sum = 0;
		struct stat st;

		while (stream && (entry = readdir(stream))) {
			if (!parse_name(entry->d_name, &seconds) ||
			    fstatat(folder, entry->d_name, &st, AT_SYMLINK_NOFOLLOW))
				continue;
			sum += (uint64_t)st.st_size;
			if (seconds >= oldest)
				continue;
			oldest = seconds;
			snprintf(name, sizeof(name), "%s", entry->d_name);
		}
		if (sum <= most || !*name)
			return NULL;
		if (unlinkat(folder, name, 0))
			return prb_error_os(errno, "cannot remove the crash record %s", name);
	}
}

static struct prb_error *keep_from(const struct keeper *keeper, int from, uid_t uid)
{
	prb_auto_closedir DIR *stream = fdopendir(from);
	prb_auto_close int into = -1;
	struct dirent *entry;
	unsigned names = 0;
	char own[16];

	if (!stream)
		return prb_error_nomem();
	snprintf(own, sizeof(own), "%u", (unsigned)uid);
	while ((entry = readdir(stream)) && names < MAX_NAMES) {
		prb_auto_close int fd = -1;
		unsigned long long seconds;
		uint64_t size;
		struct stat st;

		if (!parse_name(entry->d_name, &seconds))
			continue;
		names++;
		if (into < 0) {
			mkdirat(keeper->folder, own, MODE);
			into = openat(keeper->folder, own,
				      O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		}
		if (into < 0)
			return prb_error_os(errno, "cannot make a folder for crash records");
		if (!fstatat(into, entry->d_name, &st, AT_SYMLINK_NOFOLLOW))
			continue;
		fd = prb_own_file_open(dirfd(stream), entry->d_name, O_RDONLY, uid, &size);
		if (fd >= 0 && size <= MAX_RECORD && size <= keeper->most)
			PRB_TRY(copy(fd, size, into, entry->d_name));
	}
	return into < 0 ? NULL : prune(into, keeper->most);
}

static struct prb_error *keep_path(const struct keeper *keeper, const char *path, uid_t uid)
{
	int fd = path ? prb_own_folder_open(path, uid) : -1;

	if (!path)
		return prb_error_nomem();
	return fd < 0 ? NULL : keep_from(keeper, fd, uid);
}

/** /tmp/probing-UID/crashes of each user: root keeps them all. */
static struct prb_error *keep_users(const struct keeper *keeper)
{
	prb_auto_closedir DIR *stream = opendir("/tmp");
	struct dirent *entry;

	while (stream && (entry = readdir(stream))) {
		prb_auto_free char *base = NULL, *path = NULL;
		prb_auto_close int fd = -1;
		unsigned uid;
		int end = 0;

		if (sscanf(entry->d_name, "probing-%10u%n", &uid, &end) != 1 ||
		    entry->d_name[end] || (geteuid() && uid != geteuid()))
			continue;
		base = prb_format("/tmp/probing-%u", uid);
		path = prb_format("/tmp/probing-%u/crashes", uid);
		if (!base || !path)
			return prb_error_nomem();
		/* The folder above must be that user's, too, or another could lead us elsewhere. */
		fd = prb_own_folder_open(base, uid);
		if (fd < 0)
			continue;
		int crashes =
			openat(fd, "crashes", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		struct stat st;

		if (crashes >= 0 && !fstat(crashes, &st) && st.st_uid == uid && !(st.st_mode & 022))
			PRB_TRY(keep_from(keeper, crashes, uid));
		else if (crashes >= 0)
			close(crashes);
	}
	return NULL;
}

static struct prb_error *keep_own(const struct keeper *keeper)
{
	const struct {
		const char *variable, *below;
	} places[] = {{"PROBING_DATA_DIR", "/crashes"},
		      {"XDG_STATE_HOME", "/probing/crashes"},
		      {"HOME", "/.local/state/probing/crashes"}};

	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		const char *base = getenv(places[i].variable);
		prb_auto_free char *path = NULL;
		struct stat here, there;

		if (!base || *base != '/')
			continue;
		path = prb_format("%s%s", base, places[i].below);
		/* Not the folder that they are kept in. */
		if (path && (stat(path, &here) || fstat(keeper->folder, &there) ||
			     (here.st_ino == there.st_ino && here.st_dev == there.st_dev)))
			continue;
		PRB_TRY(keep_path(keeper, path, geteuid()));
	}
	return NULL;
}

struct prb_error *prb_crashes_keep(const char *state, int most)
{
	struct keeper keeper = {.most = (uint64_t)(most ? most : DEFAULT_MIB) * MIB};
	prb_auto_close int folder = -1, crashes = -1;
	prb_auto_free char *path = NULL;

	PRB_TRY(prb_state_folder_open(state, &folder, &path));
	if (mkdirat(folder, "crashes", MODE) && errno != EEXIST)
		return prb_error_os(errno, "cannot make %s/crashes", path);
	crashes = openat(folder, "crashes", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (crashes < 0)
		return prb_error_os(errno, "cannot open %s/crashes", path);
	keeper.folder = crashes;
	PRB_TRY(keep_own(&keeper));
	return keep_users(&keeper);
}

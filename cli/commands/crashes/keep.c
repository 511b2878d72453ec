/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A round lists what is kept and what there is, chooses from both what fits, removes the rest of
 * what is kept, and only then copies: so the bound is never passed, and what a round has removed
 * the next one does not copy again.
 */
#include "cli/commands/crashes/keep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/new_file.h"
#include "base/own_file.h"
#include "base/room.h"
#include "base/str.h"
#include "base/vec.h"
#include "clickhouse/state.h"
#include "command/exit.h"

enum {
	MAX_RECORD = 1100 << 20,
	MAX_NAMES = 1000,   /* of a folder, the newest */
	MAX_KEPT = 4096,    /* of a user */
	MAX_FOLDERS = 400,  /* that are read, each an open descriptor */
	MAX_LOOKS = 100000, /* names read of a folder */
	DEFAULT_MIB = 1024,
	MIB = 1 << 20,
	BLOCK = 4096,
	MODE = 0700,
};

struct record {
	char name[48];
	unsigned long long seconds;
	uint64_t bytes; /* whole blocks of the full length: a copy has no holes */
	uid_t uid;
	int from; /* its folder; -1: it is kept */
	bool chosen;
};

/** The records of a user: neighbours in the list, newest first. */
struct share {
	size_t begin, end;
	uint64_t bytes;
};

struct keeper {
	int folder; /* "crashes" of the state */
	uint64_t most;
	PRB_VEC(struct record) records;
	PRB_VEC(int) folders;
	PRB_VEC(struct share) shares;
	struct prb_error *failed; /* the first that could not be kept */
};

static void keeper_deinit(struct keeper *keeper)
{
	const int *fd;

	prb_vec_each (fd, &keeper->folders)
		close(*fd);
	prb_vec_free(&keeper->folders);
	prb_vec_free(&keeper->records);
	prb_vec_free(&keeper->shares);
	prb_close_guard(&keeper->folder);
	prb_error_destroy(keeper->failed);
}

/** "crash-SECONDS-PID.core"; the seconds. */
static bool parse_name(const char *name, unsigned long long *seconds)
{
	int pid, end = 0;

	return strlen(name) < sizeof(((struct record *)0)->name) &&
	       sscanf(name, "crash-%20llu-%10d.core%n", seconds, &pid, &end) == 2 && end &&
	       !name[end] && pid > 0;
}

/** By user, newest first; what is kept before what has the same name. */
static int by_age(const void *a, const void *b)
{
	const struct record *x = a, *y = b;
	int names = strcmp(y->name, x->name);

	if (x->uid != y->uid)
		return x->uid < y->uid ? -1 : 1;
	if (x->seconds != y->seconds)
		return x->seconds < y->seconds ? 1 : -1;
	return names ? names : (x->from > y->from) - (x->from < y->from);
}

static void sort(struct keeper *keeper, size_t from)
{
	if (keeper->records.count > from)
		qsort(keeper->records.items + from, keeper->records.count - from,
		      sizeof(*keeper->records.items), by_age);
}

/** The records of a folder, @p most of them at most, the newest. */
static struct prb_error *list(struct keeper *keeper, int folder, uid_t uid, int from, size_t most)
{
	int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	prb_auto_closedir DIR *stream = copy < 0 ? NULL : fdopendir(copy);
	const size_t before = keeper->records.count;
	struct dirent *entry;

	for (unsigned n = 0; stream && n < MAX_LOOKS && (entry = readdir(stream)); n++) {
		struct record *record, found = {.uid = uid, .from = from};

		if (!parse_name(entry->d_name, &found.seconds))
			continue;
		strcpy(found.name, entry->d_name);
		record = prb_vec_push(&keeper->records);
		if (!record)
			return prb_error_nomem();
		*record = found;
		if (keeper->records.count - before < 2 * most)
			continue;
		sort(keeper, before);
		keeper->records.count = before + most;
	}
	sort(keeper, before);
	keeper->records.count = PRB_MIN(keeper->records.count, before + most);
	return NULL;
}

/** Looks at the sizes of what was listed since; what cannot be kept is taken from the list. */
static void measure(struct keeper *keeper, int folder, uid_t uid, size_t since)
{
	size_t kept = since;

	for (size_t i = since; i < keeper->records.count; i++) {
		struct record record = keeper->records.items[i];
		struct stat st;

		if (fstatat(folder, record.name, &st, AT_SYMLINK_NOFOLLOW) ||
		    !S_ISREG(st.st_mode) || st.st_uid != uid || st.st_size < 0 ||
		    st.st_size > MAX_RECORD)
			continue;
		record.bytes = ((uint64_t)st.st_size + BLOCK - 1) / BLOCK * BLOCK;
		/* A record that is larger than the bound would leave no room for any other. */
		if (record.from < 0 || record.bytes <= keeper->most)
			keeper->records.items[kept++] = record;
	}
	keeper->records.count = kept;
}

/** Takes over @p folder, which is only @p uid's to write to. */
static struct prb_error *add_folder(struct keeper *keeper, int folder, uid_t uid)
{
	const size_t since = keeper->records.count;
	int *place = keeper->folders.count < MAX_FOLDERS ? prb_vec_push(&keeper->folders) : NULL;

	if (!place) {
		close(folder);
		return keeper->folders.count < MAX_FOLDERS ? prb_error_nomem() : NULL;
	}
	*place = folder;
	PRB_TRY(list(keeper, folder, uid, (int)keeper->folders.count - 1, MAX_NAMES));
	measure(keeper, folder, uid, since);
	return NULL;
}

/** /tmp/probing-UID/crashes of each user: root keeps them all. */
static struct prb_error *find_users(struct keeper *keeper)
{
	prb_auto_closedir DIR *stream = opendir("/tmp");
	struct dirent *entry;
	uid_t uid;

	while (stream && (entry = readdir(stream))) {
		prb_auto_free char *base = NULL;
		prb_auto_close int fd = -1;
		struct stat st;
		int crashes;

		if (!prb_tmp_folder_parse(entry->d_name, &uid) || (geteuid() && uid != geteuid()))
			continue;
		base = prb_format("/tmp/%s", entry->d_name);
		if (!base)
			return prb_error_nomem();
		/* The folder above must be that user's, too, or another could lead us elsewhere. */
		fd = prb_own_folder_open(base, uid);
		if (fd < 0)
			continue;
		crashes = openat(fd, "crashes", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (crashes >= 0 && !fstat(crashes, &st) && st.st_uid == uid && !(st.st_mode & 022))
			PRB_TRY(add_folder(keeper, crashes, uid));
		else if (crashes >= 0)
			close(crashes);
	}
	return NULL;
}

static struct prb_error *find_own(struct keeper *keeper)
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
		int fd;

		if (!base || *base != '/')
			continue;
		path = prb_format("%s%s", base, places[i].below);
		if (!path)
			return prb_error_nomem();
		/* Not the folder that they are kept in. */
		if (stat(path, &here) || fstat(keeper->folder, &there) ||
		    (here.st_ino == there.st_ino && here.st_dev == there.st_dev))
			continue;
		fd = prb_own_folder_open(path, geteuid());
		if (fd >= 0)
			PRB_TRY(add_folder(keeper, fd, geteuid()));
	}
	return NULL;
}

/** Removes unfinished files of a killed round. */
static void remove_unfinished(int folder)
{
	int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	prb_auto_closedir DIR *stream = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *entry;

	while (stream && (entry = readdir(stream)))
		if (!strncmp(entry->d_name, PRB_NEW_FILE_PREFIX, strlen(PRB_NEW_FILE_PREFIX)))
			unlinkat(folder, entry->d_name, 0);
}

static struct prb_error *find_kept(struct keeper *keeper)
{
	int copy = openat(keeper->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	prb_auto_closedir DIR *stream = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *entry;

	if (!stream)
		return prb_error_os(errno, "cannot list what is kept");
	while ((entry = readdir(stream))) {
		const size_t since = keeper->records.count;
		prb_auto_close int fd = -1;
		unsigned uid;
		int end = 0;

		if (sscanf(entry->d_name, "%10u%n", &uid, &end) != 1 || entry->d_name[end])
			continue;
		fd = openat(keeper->folder, entry->d_name,
			    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0)
			continue;
		remove_unfinished(fd);
		PRB_TRY(list(keeper, fd, uid, -1, SIZE_MAX / 4));
		measure(keeper, fd, geteuid(), since);
	}
	return NULL;
}

/** Sorts the list, takes out what it has twice, and adds up what each user has. */
static struct prb_error *share(struct keeper *keeper)
{
	size_t kept = 0;

	sort(keeper, 0);
	for (size_t i = 0; i < keeper->records.count; i++) {
		const struct record *record = &keeper->records.items[i];
		const struct record *last = kept ? &keeper->records.items[kept - 1] : NULL;
		struct share *share;

		if (last && last->uid == record->uid && !strcmp(last->name, record->name))
			continue;
		if (!last || last->uid != record->uid) {
			share = prb_vec_push(&keeper->shares);
			if (!share)
				return prb_error_nomem();
			*share = (struct share){.begin = kept, .end = kept};
		}
		share = &keeper->shares.items[keeper->shares.count - 1];
		keeper->records.items[kept++] = *record;
		share->end = kept;
		share->bytes += record->bytes;
	}
	keeper->records.count = kept;
	return NULL;
}

static int by_bytes(const void *a, const void *b)
{
	const struct share *x = a, *y = b;

	return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

/**
 * Chooses the newest records of each user. All users have the same share of the room; what a user
 * does not need of it, the others share.
 */
static void choose(struct keeper *keeper)
{
	uint64_t left = keeper->most;
	size_t users = keeper->shares.count;

	if (users)
		qsort(keeper->shares.items, users, sizeof(*keeper->shares.items), by_bytes);
	for (size_t i = 0; i < users; i++) {
		const struct share *share = &keeper->shares.items[i];
		uint64_t mine = left / (users - i);

		for (size_t n = share->begin; n < share->end; n++) {
			struct record *record = &keeper->records.items[n];

			if (record->bytes > mine || n - share->begin >= MAX_KEPT)
				continue;
			record->chosen = true;
			mine -= record->bytes;
			left -= record->bytes;
		}
	}
}

/** Whole, or not at all. */
static struct prb_error *copy(int from, uint64_t size, int folder, const char *name)
{
	prb_auto_new_file struct prb_new_file file = PRB_NO_FILE;

	PRB_TRY(prb_new_file_open_in(&file, folder, name));
	for (uint64_t done = 0; done < size;) {
		ssize_t got = sendfile(file.fd, from, NULL, size - done);

		if (got < 0)
			return prb_error_os(errno, "cannot keep the crash record %s", name);
		if (!got)
			break;
		done += (uint64_t)got;
	}
	return prb_new_file_finish(&file);
}

static struct prb_error *keep(const struct keeper *keeper, const struct record *record)
{
	prb_auto_close int fd = -1, into = -1;
	char own[16];
	uint64_t size;

	fd = prb_own_file_open(keeper->folders.items[record->from], record->name, O_RDONLY,
			       record->uid, &size);
	/* A larger file has taken its name since it was measured. */
	if (fd < 0 || size > record->bytes)
		return NULL;
	if (prb_room(keeper->folder) < record->bytes)
		return prb_error_create(PRB_ERROR_FAILED,
					"there is no room to keep the crash record %s of user %u",
					record->name, (unsigned)record->uid);
	snprintf(own, sizeof(own), "%u", (unsigned)record->uid);
	into = prb_own_folder_in(keeper->folder, own, MODE);
	if (into < 0)
		return prb_error_os(errno, "cannot make a folder for crash records");
	return copy(fd, size, into, record->name);
}

static void note(struct keeper *keeper, struct prb_error *err)
{
	if (keeper->failed)
		prb_error_destroy(err);
	else
		keeper->failed = err;
}

/** Removes what was not chosen, and then copies what is not kept yet. */
static void move(struct keeper *keeper)
{
	const struct record *record;

	prb_vec_each (record, &keeper->records) {
		prb_auto_free char *name = NULL;

		if (record->chosen || record->from >= 0)
			continue;
		name = prb_format("%u/%s", (unsigned)record->uid, record->name);
		if (name && unlinkat(keeper->folder, name, 0))
			note(keeper, prb_error_os(errno, "cannot remove the crash record %s",
						  record->name));
	}
	prb_vec_each (record, &keeper->records)
		if (record->chosen && record->from >= 0)
			note(keeper, keep(keeper, record));
}

struct prb_error *prb_crashes_keep(const char *state, int most, struct prb_error **ret_failed)
{
	__attribute__((cleanup(keeper_deinit))) struct keeper keeper = {
		.folder = -1, .most = (uint64_t)(most ? most : DEFAULT_MIB) * MIB};
	prb_auto_close int folder = -1;
	prb_auto_free char *path = NULL;

	*ret_failed = NULL;
	PRB_TRY(prb_state_folder_open(state, &folder, &path));
	keeper.folder = prb_own_folder_in(folder, "crashes", MODE);
	if (keeper.folder < 0)
		return prb_error_os(errno, "cannot use %s/crashes", path);
	PRB_TRY(find_kept(&keeper));
	PRB_TRY(find_own(&keeper));
	PRB_TRY(find_users(&keeper));
	PRB_TRY(share(&keeper));
	choose(&keeper);
	move(&keeper);
	*ret_failed = prb_steal(&keeper.failed);
	return NULL;
}

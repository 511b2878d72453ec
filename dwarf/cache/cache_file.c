/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dwarf/cache/cache_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/own_file.h"
#include "base/str.h"
#include "dwarf/cache/cache.h"

enum {
	LOCK_TRIES = 20, /* of a millisecond: others hold the lock for less */
	REPLACE_TRIES = 3,
};

struct prb_cache_header prb_cache_header(void)
{
	struct prb_cache_header header = {
		.magic = {'p', 'r', 'b', 'c', 'a', 'c', 'h', 'e'},
		.format = PRB_CACHE_FORMAT,
		.heads = PRB_CACHE_HEADS,
	};

	snprintf(header.version, sizeof(header.version), "%s", PRB_VERSION);
	return header;
}

int prb_cache_folder(void)
{
	const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	int fd = -1;

	if (xdg && *xdg)
		fd = prb_own_folder_make(xdg, "", true);
	else if (home && *home)
		fd = prb_own_folder_make(home, "/.cache", false);
	if (fd >= 0)
		return fd;

	prb_auto_free char *path = NULL;

	return prb_tmp_folder_open(geteuid(), true, &path);
}

int prb_cache_open_file(int folder, const char *name, int flags, uint64_t *size)
{
	return prb_own_file_open(folder, name, flags, geteuid(), size);
}

/* Never waits long: the holder may have been stopped. */
static bool lock(int fd)
{
	const struct timespec millisecond = {.tv_nsec = 1000 * 1000};

	for (int i = 0; i < LOCK_TRIES; i++) {
		if (!flock(fd, LOCK_EX | LOCK_NB))
			return true;
		if (errno != EWOULDBLOCK && errno != EINTR)
			return false;
		nanosleep(&millisecond, NULL);
	}
	return false;
}

/* True if @name still leads to the file that @fd has open: another writer may have replaced it. */
static bool is_current(int folder, const char *name, int fd)
{
	struct stat opened, named;

	return !fstat(fd, &opened) && !fstatat(folder, name, &named, AT_SYMLINK_NOFOLLOW) &&
	       opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

static bool write_all(int fd, const void *data, size_t length, uint64_t offset)
{
	for (size_t done = 0; done < length;) {
		ssize_t n = pwrite(fd, (const char *)data + done, length - done,
				   (off_t)(offset + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		done += (size_t)n;
	}
	return true;
}

static bool read_all(int fd, void *data, size_t length)
{
	return pread(fd, data, length, 0) == (ssize_t)length;
}

static size_t record_length(const struct prb_cache_record *record)
{
	size_t length = sizeof(*record) + record->key_length + record->value_length;

	return (length + PRB_CACHE_ALIGN - 1) / PRB_CACHE_ALIGN * PRB_CACHE_ALIGN;
}

/* Links the records, which will lie at offset @start, into the chains. */
static void link_records(void *records, size_t length, uint32_t start, uint32_t *heads)
{
	for (size_t at = 0; at < length;) {
		struct prb_cache_record *record = (struct prb_cache_record *)((char *)records + at);
		uint32_t *head = &heads[record->hash % PRB_CACHE_HEADS];

		record->next = *head;
		*head = start + (uint32_t)at;
		at += record_length(record);
	}
}

struct beginning {
	struct prb_cache_header header;
	uint32_t heads[PRB_CACHE_HEADS];
};
_Static_assert(sizeof(struct beginning) == PRB_CACHE_FIRST, "the records follow the heads");

enum outcome { DONE, CREATE, REPLACE, AGAIN, FAILED };

static enum outcome append(int folder, const char *name, void *records, size_t length)
{
	const struct prb_cache_header wanted = prb_cache_header();
	struct beginning beginning;
	struct stat st;
	uint64_t size;
	prb_auto_close int fd = prb_cache_open_file(folder, name, O_RDWR, &size);

	if (fd < 0)
		return errno == ENOENT ? CREATE : REPLACE;
	if (!lock(fd))
		return FAILED;
	if (!is_current(folder, name, fd) || fstat(fd, &st))
		return AGAIN;
	if (!read_all(fd, &beginning, sizeof(beginning)) ||
	    memcmp(&beginning.header, &wanted, sizeof(wanted)))
		return REPLACE;

	size = (uint64_t)st.st_size;
	size = (size + PRB_CACHE_ALIGN - 1) / PRB_CACHE_ALIGN * PRB_CACHE_ALIGN;
	if (size > PRB_CACHE_MAX_FILE || length > PRB_CACHE_MAX_FILE - size)
		return REPLACE;
	link_records(records, length, (uint32_t)size, beginning.heads);
	if (!write_all(fd, records, length, size) ||
	    !write_all(fd, beginning.heads, sizeof(beginning.heads), sizeof(beginning.header)))
		return FAILED;
	return DONE;
}

/* A file that another writer created meanwhile has that writer's records, and is kept. */
static enum outcome move_into_place(int folder, const char *fresh, const char *name,
				    enum outcome why)
{
	if (why == CREATE) {
		if (!prb_own_file_rename(folder, fresh, name, true))
			return DONE;
		if (errno == EEXIST)
			return AGAIN;
	}
	return prb_own_file_rename(folder, fresh, name, false) ? FAILED : DONE;
}

/*
 * Makes a new file and moves it into place. A killed writer's leftover is used again. Hence the
 * lock, and the check that the locked file has not become the live one.
 */
static enum outcome replace(int folder, const char *name, void *records, size_t length,
			    enum outcome why)
{
	prb_auto_free char *fresh = prb_format("%s.new", name);
	struct beginning beginning = {.header = prb_cache_header()};
	uint64_t size;

	if (!fresh)
		return FAILED;

	prb_auto_close int fd = prb_own_file_use(folder, fresh, O_RDWR, &size);
	if (fd < 0 || !lock(fd))
		return FAILED;
	if (!is_current(folder, fresh, fd))
		return AGAIN;
	link_records(records, length, PRB_CACHE_FIRST, beginning.heads);
	if (ftruncate(fd, 0) || !write_all(fd, records, length, PRB_CACHE_FIRST) ||
	    !write_all(fd, &beginning, sizeof(beginning), 0))
		return FAILED;
	return move_into_place(folder, fresh, name, why);
}

struct prb_error *prb_cache_write(int folder, const char *name, void *records, size_t length)
{
	enum outcome outcome = AGAIN;

	for (int i = 0; i < REPLACE_TRIES && outcome == AGAIN; i++) {
		errno = 0;
		outcome = append(folder, name, records, length);
		if (outcome == CREATE || outcome == REPLACE)
			outcome = replace(folder, name, records, length, outcome);
	}
	if (outcome == DONE)
		return NULL;
	return prb_error_os(errno ? errno : EBUSY, "cannot write the cache file %s", name);
}

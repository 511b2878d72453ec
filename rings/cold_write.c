/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/own_file.h"
#include "base/pack.h"
#include "base/str.h"
#include "base/vec.h"
#include "rings/cold.h"
#include "rings/ring_private.h"

enum {
	LEVEL = 3,
	FILE_BYTES = 16 << 20, /* then another file begins: what is old goes by files */
	FILE_MODE = 0600,
};

void prb_cold_deinit(struct prb_cold *cold)
{
	prb_close_guard(&cold->fd);
	free(cold->stem);
}

static struct prb_error *put(struct prb_cold *cold, const void *data, size_t length)
{
	while (length > 0) {
		ssize_t done = write(cold->fd, data, length);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return prb_error_os(done ? errno : EIO, "cannot write %s", cold->stem);
		data = (const char *)data + done;
		length -= (size_t)done;
		cold->written += (uint64_t)done;
		cold->bytes += (uint64_t)done;
	}
	return NULL;
}

/** All of it or nothing: what a full disk has left half is cut off again. */
static struct prb_error *put_whole(struct prb_cold *cold, const void *head, size_t head_size,
				   const void *data, size_t size)
{
	uint64_t before = cold->written;
	struct prb_error *err = put(cold, head, head_size);

	if (!err)
		err = put(cold, data, size);
	if (!err)
		return NULL;
	cold->bytes -= cold->written - before;
	cold->written = before;
	if (ftruncate(cold->fd, (off_t)before) || lseek(cold->fd, (off_t)before, SEEK_SET) < 0)
		prb_close_guard(&cold->fd);
	return err;
}

/** Begins a file with the present chunk, if there is none or it is long. */
static struct prb_error *begin(struct prb_cold *cold, const struct prb_ring *ring)
{
	static const char zeros[PRB_RING_HEADER];
	struct prb_ring_header header = ring->header;
	prb_auto_free char *name =
		prb_format("%s.%016llu" PRB_COLD_END, cold->stem, (unsigned long long)cold->next);
	const uint64_t most = cold->file_bytes ? cold->file_bytes : FILE_BYTES;
	struct prb_error *err;
	struct stat st;

	if (cold->fd >= 0 && cold->written < most && !fstat(cold->fd, &st) && st.st_nlink)
		return NULL;
	if (!name)
		return prb_error_nomem();
	prb_close_guard(&cold->fd);
	cold->fd = prb_own_file_new(cold->folder, name, O_WRONLY, FILE_MODE);
	if (cold->fd < 0)
		return prb_error_os(errno, "cannot make %s", name);
	cold->written = 0;
	cold->strings = 0;
	memcpy(header.magic, PRB_COLD_MAGIC, sizeof(header.magic));
	err = put_whole(cold, &header, sizeof(header), zeros, PRB_RING_HEADER - sizeof(header));
	if (!err)
		err = put(cold, ring->columns, header.column_count * sizeof(*ring->columns));
	if (err) {
		prb_close_guard(&cold->fd);
		unlinkat(cold->folder, name, 0);
	}
	return err;
}

static struct prb_error *put_part(struct prb_cold *cold, struct prb_cold_part *part,
				  const char *data, size_t size)
{
	prb_auto_free char *packed = NULL;
	size_t length;

	PRB_TRY(prb_pack(data, size, LEVEL, &packed, &length));
	part->size = (uint32_t)length;
	return put_whole(cold, part, sizeof(*part), packed, length);
}

/** The strings that rows of the chunk may name, if there are more than the file has. */
static struct prb_error *put_strings(struct prb_cold *cold, const struct prb_ring *ring)
{
	struct prb_cold_part part = {.kind = PRB_COLD_STRINGS};
	uint64_t used = ring->header.string_head;

	if (used > ring->header.string_bytes)
		used = ring->header.string_bytes;
	if (used <= cold->strings)
		return NULL;
	PRB_TRY(put_part(cold, &part, ring->strings, used));
	cold->strings = used;
	return NULL;
}

/** True if a writer is in the chunk that the ring holds a copy of, and may still leave it. */
static bool is_written(const struct prb_ring *ring)
{
	for (uint32_t i = 0; i < ring->slots; i++) {
		uint64_t state;

		memcpy(&state, ring->states + (uint64_t)i * ring->header.slot_size, sizeof(state));
		if (state == prb_ring_state(ring->first + i, PRB_RING_BUSY))
			return true;
	}
	return false;
}

static struct prb_error *put_chunk(struct prb_cold *cold, struct prb_ring *ring)
{
	struct prb_cold_part part = {.kind = PRB_COLD_CHUNK, .number = ring->chunk - 1};
	bool there;

	PRB_TRY(prb_ring_read_bounds(ring, part.number, &part.bounds, &there));
	if (!there)
		part.bounds = (struct prb_ring_bounds){};
	PRB_TRY(begin(cold, ring));
	PRB_TRY(put_strings(cold, ring));
	PRB_TRY(put_part(cold, &part, ring->data, (size_t)ring->slots * ring->header.slot_size));
	cold->chunks++;
	return NULL;
}

/** The number behind the last chunk of a cold file, if that is of the ring. */
static struct prb_error *look_into(const char *name, int folder,
				   const struct prb_ring_header *header, uint64_t *next)
{
	const struct prb_ring_range never = {INT64_MAX, INT64_MIN};
	prb_auto_ring struct prb_ring *ring = NULL;
	struct prb_error *err;
	bool more = true;
	uint64_t size;
	int fd = prb_own_file_open(folder, name, O_RDONLY, geteuid(), &size);

	if (fd < 0)
		return NULL;
	err = prb_ring_open(fd, name, &ring);
	if (err && err->code == PRB_ERROR_NOMEM)
		return err;
	prb_error_destroy(err);
	if (err || !ring->cold || !prb_ring_is_same(&ring->header, header))
		return NULL;
	while (more)
		PRB_TRY(prb_ring_next_chunk(ring, &never, &more));
	*next = PRB_MAX(*next, ring->chunk);
	return NULL;
}

struct prb_error *prb_cold_continue(struct prb_cold *cold, const struct prb_ring_header *ring)
{
	int copy = openat(cold->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	prb_auto_closedir DIR *stream = copy < 0 ? NULL : fdopendir(copy);
	size_t length = strlen(cold->stem);
	struct dirent *entry;

	if (!stream)
		return prb_error_os(errno, "cannot list the folder");
	while ((entry = readdir(stream)))
		if (prb_cold_is_name(entry->d_name) &&
		    !strncmp(entry->d_name, cold->stem, length) && entry->d_name[length] == '.')
			PRB_TRY(look_into(entry->d_name, cold->folder, ring, &cold->next));
	return NULL;
}

struct prb_error *prb_cold_store(struct prb_cold *cold, int fd, bool ended)
{
	const struct prb_ring_range always = PRB_RING_ALWAYS;
	prb_auto_ring struct prb_ring *ring = NULL;
	uint64_t full;
	bool more;

	fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return prb_error_os(errno, "cannot read the ring again");
	PRB_TRY(prb_ring_open(fd, cold->stem, &ring));
	full = ring->end >> ring->header.chunk_shift;
	if (!cold->begun)
		PRB_TRY(prb_cold_continue(cold, &ring->header));
	cold->missed += cold->begun && ring->chunk > cold->next ? ring->chunk - cold->next : 0;
	cold->begun = true;
	prb_ring_skip(ring, cold->next);
	for (;;) {
		cold->next = ring->chunk;
		if (!ended && ring->chunk >= full)
			return NULL;
		PRB_TRY(prb_ring_next_chunk(ring, &always, &more));
		if (!more)
			return NULL;
		cold->missed += ring->chunk - 1 - cold->next;
		cold->next = ring->chunk - 1;
		/* Writers in the chunk have time until half of the ring was written since. */
		if (!ended && (ring->chunk > full ||
			       (is_written(ring) && full - ring->chunk < ring->header.chunks / 2)))
			return NULL;
		PRB_TRY(put_chunk(cold, ring));
	}
}

struct old {
	char *name;
	int64_t time;
	uint64_t bytes;
};

static int by_time(const void *a, const void *b)
{
	const struct old *x = a, *y = b;

	return x->time != y->time ? (x->time > y->time) - (x->time < y->time)
				  : strcmp(x->name, y->name);
}

struct prb_error *prb_cold_prune(int folder, int64_t oldest, uint64_t most, uint64_t *ret_removed)
{
	PRB_VEC(struct old) all = {};
	int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	prb_auto_closedir DIR *stream = copy < 0 ? NULL : fdopendir(copy);
	struct prb_error *err = stream ? NULL : prb_error_os(errno, "cannot list the folder");
	struct dirent *entry;
	struct old *one;
	uint64_t sum = 0;
	struct stat st;

	while (!err && (entry = readdir(stream))) {
		if (!prb_cold_is_name(entry->d_name) ||
		    fstatat(folder, entry->d_name, &st, AT_SYMLINK_NOFOLLOW))
			continue;
		one = prb_vec_push(&all);
		if (one)
			*one = (struct old){strdup(entry->d_name), st.st_mtime,
					    (uint64_t)st.st_blocks * 512};
		if (!one || !one->name)
			err = prb_error_nomem();
		else
			sum += one->bytes;
	}
	if (!err && all.count)
		qsort(all.items, all.count, sizeof(*all.items), by_time);
	if (ret_removed)
		*ret_removed = 0;
	prb_vec_each (one, &all) {
		if (!err && (one->time < oldest || sum > most) && !unlinkat(folder, one->name, 0)) {
			if (ret_removed && one->time >= oldest)
				*ret_removed += one->bytes;
			sum -= one->bytes;
		}
		free(one->name);
	}
	prb_vec_free(&all);
	return err;
}

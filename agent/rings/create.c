/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Making rings: their folder, their file and its header. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "agent/inside/config.h"
#include "agent/inside/environment.h"
#include "agent/inside/libc.h"
#include "agent/inside/own_folder.h"
#include "agent/inside/status.h"
#include "agent/rings/history.h"
#include "agent/rings/limits.h"
#include "agent/rings/private.h"
#include "agent/rings/write.h"

enum { DEFAULT_BYTES = 4 << 20, MAX_BYTES = 1 << 30, CHUNK_SHIFT = 9, MIN_CHUNKS = 4 };

static struct prba_ring rings[PRBA_RINGS];
static _Atomic int ring_count;
static char role[PRB_RING_ROLE]; /* of later rings, too; while `making` */
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
static uint32_t swept_by; /* the pid that has looked at what others have left */
static uint32_t made_by;  /* the pid that `rings` are of: a child makes its own */

struct prba_ring *prba_ring_of(intptr_t handle)
{
	return handle > 0 && handle <= __atomic_load_n((int *)&ring_count, __ATOMIC_ACQUIRE)
		       ? &rings[handle - 1]
		       : NULL;
}

PRBA_EXPORT const char *probing_ring_path(intptr_t handle)
{
	const struct prba_ring *ring = prba_ring_of(handle);

	return ring ? ring->path : NULL;
}

/** A name of letters, digits and underscores; gives what is behind it, or NULL. */
static const char *take_name(const char *text, char ret[PRB_RING_NAME])
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
	size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
				     "0123456789");

	if (!length || length >= PRB_RING_NAME || !strchr(letters, *text))
		return NULL;
	memcpy(ret, text, length);
	ret[length] = '\0';
	return text + length;
}

static bool take_type(const char **at, uint32_t *ret)
{
	static const char *const names[PRB_RING_TYPES] = {"integer", "real", "text"};

	for (uint32_t i = 0; i < PRB_RING_TYPES; i++) {
		size_t length = strlen(names[i]);

		if (!strncmp(*at, names[i], length)) {
			*at += length;
			*ret = i;
			return true;
		}
	}
	return false;
}

static bool take_unit(const char **at, char ret[PRB_RING_UNIT])
{
	size_t length;

	*at += strspn(*at, " ");
	if (**at != '[')
		return true;
	length = strcspn(*at + 1, "]");
	if (!(*at)[1 + length] || length >= PRB_RING_UNIT)
		return false;
	memcpy(ret, *at + 1, length);
	*at += length + 2;
	*at += strspn(*at, " ");
	return true;
}

/** "NAME TYPE [UNIT], …": how many, or a negative errno value. */
static int parse_columns(const char *at, struct prb_ring_column ret[PRB_RING_COLUMNS])
{
	for (int count = 0; count < PRB_RING_COLUMNS; count++) {
		struct prb_ring_column *column = &ret[count];

		at = take_name(at + strspn(at, " "), column->name);
		if (!at || *at != ' ')
			return -EINVAL;
		at += strspn(at, " ");
		if (!take_type(&at, &column->type) || !take_unit(&at, column->unit))
			return -EINVAL;
		if (!*at)
			return count + 1;
		if (*at++ != ',')
			return -EINVAL;
	}
	return -E2BIG;
}

/** Field 22 of /proc/self/stat. */
static uint64_t start_time(void)
{
	char text[1024];
	const char *at;

	prba_status_text("/proc/self/stat", text, sizeof(text));
	at = strrchr(text, ')');
	for (int i = 0; at && i < 20; i++)
		at = strchr(at + 1, ' ');
	return at ? strtoul(at + 1, NULL, 10) : 0;
}

/** The folder of all processes, with its path. */
static int open_base(char *path, size_t size)
{
	const char *chosen, *runtime = prba_environment("XDG_RUNTIME_DIR");
	int fd;

	prba_config_read(); /* which finds a Python that ignores the environment */
	chosen = prba_environment("PROBING_DATA_DIR");
	if (chosen && *chosen) {
		if (*chosen != '/' || strlen(chosen) >= size)
			return -EINVAL;
		snprintf(path, size, "%s", chosen);
		return prba_own_folder(AT_FDCWD, path, true);
	}
	if (runtime && *runtime == '/' && strlen(runtime) < size - 10) {
		snprintf(path, size, "%s/probing", runtime);
		fd = prba_own_folder(AT_FDCWD, path, true);
		if (fd >= 0)
			return fd;
	}
	return prba_tmp_folder(path, size);
}

/** PID-STARTTIME in it. */
static int open_folder(const struct prb_ring_header *header, char *path, size_t size)
{
	char name[64];
	size_t length;
	int base = open_base(path, size - sizeof(name)), fd;

	if (base < 0)
		return base;
	if (swept_by != header->pid)
		prba_ring_sweep(base);
	swept_by = header->pid;
	snprintf(name, sizeof(name), "%u-%llu", header->pid,
		 (unsigned long long)header->start_time);
	fd = prba_own_folder(base, name, true);
	close(base);
	length = strlen(path);
	snprintf(path + length, size - length, "/%s", name);
	return fd;
}

static uint32_t power_of_two(uint64_t number)
{
	uint32_t result = MIN_CHUNKS;

	while (result < number && result < MAX_BYTES)
		result <<= 1;
	return result;
}

/** Its rank plus one, by what launchers put into the environment; 0: it has none. */
static uint32_t find_rank(void)
{
	static const char *const names[] = {"RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK",
					    "PMIX_RANK", "PMI_RANK"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const char *value = prba_environment(names[i]);
		char *end;
		unsigned long rank = value ? strtoul(value, &end, 10) : 0;

		if (value && *value >= '0' && *value <= '9' && !*end && rank < INT32_MAX)
			return (uint32_t)rank + 1;
	}
	return 0;
}

static void fill_header(struct prb_ring_header *header, uint32_t columns, uint64_t bytes)
{
	uint64_t slot = sizeof(struct prb_ring_row) + columns * sizeof(uint64_t);

	memcpy(header->magic, PRB_RING_MAGIC, sizeof(header->magic));
	header->version = PRB_RING_VERSION;
	header->header_size = PRB_RING_HEADER;
	header->column_count = columns;
	header->slot_size = (uint32_t)((slot + 31) & ~31ull);
	header->chunk_shift = CHUNK_SHIFT;
	header->chunks = power_of_two(bytes / header->slot_size >> CHUNK_SHIFT);
	header->string_places = PRB_RING_STRINGS;
	header->string_bytes = PRB_RING_STRING_BYTES;
	header->string_head = 8;
	header->realtime = prba_clock_ns(CLOCK_REALTIME);
	header->monotonic = prba_clock_ns(CLOCK_MONOTONIC);
	header->boottime = prba_clock_ns(CLOCK_BOOTTIME);
	header->pid = (uint32_t)syscall(SYS_getpid);
	header->start_time = start_time();
	header->rank = find_rank();
	header->pid_namespace = prba_ring_namespace();
	header->file_size = prb_ring_parts(header).end;
}

/** Allocates the file and writes its beginning. */
static int fill_file(int fd, const struct prb_ring_header *header,
		     const struct prb_ring_column *columns)
{
	struct prb_ring_parts parts = prb_ring_parts(header);
	long bytes = (long)(header->column_count * sizeof(*columns));

	/* A hole would be filled when a row is written, and a full disk would kill the process. */
	if (syscall(SYS_fallocate, fd, 0, 0L, (long)parts.end))
		return -errno;
	if (syscall(SYS_pwrite64, fd, header, sizeof(*header), 0L) != (long)sizeof(*header) ||
	    syscall(SYS_pwrite64, fd, columns, bytes, (long)parts.columns) != bytes)
		return -EIO;
	return 0;
}

/** By the name that it keeps: /proc/PID/maps shows it, by which readers find the ring. */
static int map_file(int folder, const struct prb_ring_header *header, struct prba_ring *ring)
{
	struct prb_ring_parts parts = prb_ring_parts(header);
	int fd = openat(folder, strrchr(ring->path, '/') + 1, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	char *map;
	int rc;

	if (fd < 0)
		return -errno;
	map = mmap(NULL, parts.end, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	rc = map == MAP_FAILED ? -errno : 0;
	close(fd);
	if (rc)
		return rc;
	ring->header = (struct prb_ring_header *)map;
	ring->bounds = (struct prb_ring_bounds *)(map + parts.bounds);
	ring->string_index = (uint64_t *)(map + parts.string_index);
	ring->strings = map + parts.strings;
	ring->slots = map + parts.slots;
	return 0;
}

/** A name that no ring has: a program that the process ran before may have left one. */
static int give_name(int folder, const char *temporary, const struct prb_ring_header *header,
		     struct prba_ring *ring)
{
	size_t length = strlen(ring->path);

	for (int i = 0; i < PRBA_RINGS; i++) {
		char name[2 * PRB_RING_NAME + 16], number[8] = "";

		if (i)
			snprintf(number, sizeof(number), ".%d", i);
		snprintf(name, sizeof(name), "%s.%s%s.ring", header->schema, header->name, number);
		if (!syscall(SYS_linkat, folder, temporary, folder, name, 0)) {
			snprintf(ring->path + length, sizeof(ring->path) - length, "/%s", name);
			return 0;
		}
		if (errno != EEXIST)
			return -errno;
	}
	return -EEXIST;
}

/** The file gets its name when it is complete, so that readers never see half of it. */
static int make_file(const struct prb_ring_header *header, const struct prb_ring_column *columns,
		     struct prba_ring *ring)
{
	int folder = open_folder(header, ring->path, sizeof(ring->path) - 2 * PRB_RING_NAME - 16);
	char temporary[32];
	int fd, rc;

	if (folder < 0)
		return folder;
	snprintf(temporary, sizeof(temporary), ".new-%u", (unsigned)syscall(SYS_gettid));
	unlinkat(folder, temporary, 0);
	fd = openat(folder, temporary, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	rc = fd < 0 ? -errno : fill_file(fd, header, columns);
	if (!rc)
		rc = give_name(folder, temporary, header, ring);
	if (fd >= 0) {
		close(fd);
		unlinkat(folder, temporary, 0);
	}
	if (!rc)
		rc = map_file(folder, header, ring);
	close(folder);
	return rc;
}

static bool has_columns(const struct prba_ring *ring, const struct prb_ring_column *columns,
			int count)
{
	const char *there = (const char *)ring->header + PRB_RING_HEADER;

	return ring->column_count == (uint32_t)count &&
	       !memcmp(there, columns, (size_t)count * sizeof(*columns));
}

/** The handle of the process's own ring of this table, or 0. */
static intptr_t find(const struct prb_ring_header *header)
{
	for (int i = 0; i < ring_count; i++)
		if (rings[i].header->pid == header->pid &&
		    !strcmp(rings[i].header->schema, header->schema) &&
		    !strcmp(rings[i].header->name, header->name))
			return i + 1;
	return 0;
}

/** Bytes of the process's own rings. */
static uint64_t memory_used(uint32_t pid)
{
	uint64_t sum = 0;

	for (int i = 0; i < ring_count; i++)
		if (rings[i].header->pid == pid)
			sum += rings[i].bytes;
	return sum;
}

/** While `making`. */
static intptr_t make(const struct prb_ring_header *header, const struct prb_ring_column *columns)
{
	int count = (int)header->column_count, rc = prba_ring_threads_init();
	intptr_t known = find(header);
	struct prba_ring *ring = &rings[ring_count];

	if (rc)
		return -rc;
	if (known)
		return has_columns(prba_ring_of(known), columns, count) ? known : -EEXIST;
	if (ring_count == PRBA_RINGS)
		return -EMFILE;
	rc = prba_ring_check_memory(memory_used(header->pid), header->file_size);
	if (rc)
		return rc;
	memset(ring, 0, sizeof(*ring));
	rc = make_file(header, columns, ring);
	if (rc)
		return rc;
	memcpy(ring->header->roles[0], role, sizeof(role));
	ring->bytes = header->file_size;
	ring->slot_size = header->slot_size;
	ring->chunk_shift = header->chunk_shift;
	ring->chunks = header->chunks;
	ring->column_count = header->column_count;
	ring->string_places = header->string_places;
	ring->string_bytes = header->string_bytes;
	ring->clock = header->realtime;
	for (int i = 0; i < count; i++)
		ring->types[i] = (uint8_t)columns[i].type;
	return __atomic_add_fetch((int *)&ring_count, 1, __ATOMIC_RELEASE);
}

/** The rings of a new ring's history, while `making`: here, since a signal handler may append. */
static void make_history(struct prba_ring *ring, const struct prb_ring_header *base,
			 const struct prb_ring_column *columns)
{
	struct prba_history *history = prba_history_create(base, columns);
	struct prb_ring_column own[PRB_RING_COLUMNS] = {};
	unsigned rows = 1;
	int count;

	if (!history)
		return;
	count = prba_history_columns(history, columns, own);
	for (unsigned level = 0; level < PRBA_HISTORY_LEVELS; level++) {
		struct prb_ring_header header = {};

		memcpy(header.schema, base->schema, sizeof(header.schema));
		rows *= PRBA_HISTORY_BASE;
		snprintf(header.name, sizeof(header.name), "%.40s_per_%u", base->name, rows);
		fill_header(&header, (uint32_t)count, 0);
		header.chunks = PRBA_HISTORY_CHUNKS;
		header.file_size = prb_ring_parts(&header).end;
		if (!prba_ring_check_memory(0, header.file_size * PRBA_HISTORY_SHARE))
			prba_history_set(history, level, make(&header, own));
	}
	__atomic_store_n(&ring->history, history, __ATOMIC_RELEASE);
}

/** A thread of the parent may have held the lock when it forked us. */
static void lock_making(uint32_t pid)
{
	if (made_by != pid && made_by)
		making = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	pthread_mutex_lock(&making);
	made_by = pid;
}

PRBA_EXPORT int probing_ring_set_role(const char *text)
{
	size_t length = strlen(text);

	if (length >= sizeof(role))
		return -ENAMETOOLONG;
	lock_making((uint32_t)syscall(SYS_getpid));
	memset(role, 0, sizeof(role));
	memcpy(role, text, length + 1);
	for (int i = 0; i < ring_count; i++) {
		struct prb_ring_header *header = rings[i].header;
		uint32_t next = (header->role + 1) & 1;

		if (header->pid != made_by)
			continue;
		memcpy(header->roles[next], role, sizeof(role));
		__atomic_store_n(&header->role, next, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&making);
	return 0;
}

PRBA_EXPORT intptr_t probing_ring_create(const char *table, const char *columns, uint64_t bytes)
{
	struct prb_ring_column parsed[PRB_RING_COLUMNS] = {};
	struct prb_ring_header header = {};
	const char *at = take_name(table, header.schema);
	int count = parse_columns(columns, parsed);
	uint32_t pid = (uint32_t)syscall(SYS_getpid);
	intptr_t result;
	int before;

	if (!at || *at != '.')
		return -EINVAL;
	at = take_name(at + 1, header.name);
	if (!at || *at || bytes > MAX_BYTES)
		return -EINVAL;
	if (count < 0)
		return count;
	fill_header(&header, (uint32_t)count, bytes ? bytes : DEFAULT_BYTES);
	lock_making(pid);
	before = ring_count;
	result = make(&header, parsed);
	if (ring_count > before)
		make_history(prba_ring_of(result), &header, parsed);
	pthread_mutex_unlock(&making);
	return result;
}

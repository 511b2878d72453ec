/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile/native/perf_map.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/str.h"
#include "dump/tasks/tasks.h"

enum {
	MOST_BYTES = 32 << 20,
	MOST_SYMBOLS = 1 << 19,
	LINE_MOST = 4096, /* a longer one makes no sense */
	NAME_MOST = 500,
	LOOKED_BACK = 64, /* symbols that begin before an address and may reach to it */
};

void prb_perf_map_init(struct prb_perf_map *map)
{
	*map = (struct prb_perf_map){.fd = -1};
}

void prb_perf_map_deinit(struct prb_perf_map *map)
{
	prb_close_guard(&map->fd);
	prb_vec_free(&map->symbols);
	prb_vec_free(&map->text);
	prb_vec_free(&map->rest);
	free(map->path);
}

/* A number in hexadecimal, behind which *@at then points; false if there is none. */
static bool read_number(const char **at, const char *end, uint64_t *ret)
{
	enum { DIGITS = 16 };
	const char *start;

	*ret = 0;
	if (end - *at > 2 && (*at)[0] == '0' && ((*at)[1] | 0x20) == 'x')
		*at += 2;
	for (start = *at; *at < end && *at - start <= DIGITS; (*at)++) {
		char c = **at;
		unsigned digit = c >= '0' && c <= '9' ? (unsigned)(c - '0')
				 : (c | 0x20) >= 'a' && (c | 0x20) <= 'f'
					 ? (unsigned)((c | 0x20) - 'a' + 10)
					 : 16;
		if (digit > 15)
			break;
		*ret = *ret << 4 | digit;
	}
	return *at > start && *at - start <= DIGITS;
}

static bool skip_space(const char **at, const char *end)
{
	const char *start = *at;

	while (*at < end && **at == ' ')
		(*at)++;
	return *at > start;
}

/* Said once. */
static void say_full(const struct prb_perf_map *map)
{
	prb_log("profile", 1, "%s is too long: later functions of it have no names",
		map->path ? map->path : "a map");
}

static struct prb_error *add_name(struct prb_perf_map *map, const char *name, size_t length)
{
	length = PRB_MIN(length, (size_t)NAME_MOST);
	if (!prb_vec_reserve(&map->text, length + 1))
		return prb_error_nomem();
	for (size_t i = 0; i < length; i++)
		map->text.items[map->text.count++] = name[i] ? name[i] : '?';
	map->text.items[map->text.count++] = '\0';
	if (map->text.count >= MOST_BYTES)
		say_full(map);
	return NULL;
}

static bool takes(const struct prb_perf_map *map, uint64_t start, uint64_t size)
{
	uint64_t behind;

	return size && prb_add(start, size, &behind) && map->symbols.count < MOST_SYMBOLS;
}

struct prb_error *prb_perf_map_add_named(struct prb_perf_map *map, uint64_t start, uint64_t size,
					 uint32_t name)
{
	struct prb_perf_symbol *symbol;

	if (!takes(map, start, size))
		return NULL;
	symbol = prb_vec_push(&map->symbols);
	if (!symbol)
		return prb_error_nomem();
	*symbol = (struct prb_perf_symbol){
		.start = start,
		.size = size,
		.number = (uint32_t)map->symbols.count,
		.name = name,
	};
	if (map->symbols.count == MOST_SYMBOLS)
		say_full(map);
	return NULL;
}

struct prb_error *prb_perf_map_add(struct prb_perf_map *map, uint64_t start, uint64_t size,
				   const char *name, size_t length)
{
	const uint32_t place = (uint32_t)map->text.count;

	if (map->text.count >= MOST_BYTES || !takes(map, start, size))
		return NULL;
	PRB_TRY(add_name(map, name, length));
	return prb_perf_map_add_named(map, start, size, place);
}

static struct prb_error *add_line(struct prb_perf_map *map, const char *at, const char *end)
{
	uint64_t start, size;

	if (!read_number(&at, end, &start) || !skip_space(&at, end) ||
	    !read_number(&at, end, &size) || !skip_space(&at, end) || at == end)
		return NULL;
	return prb_perf_map_add(map, start, size, at, (size_t)(end - at));
}

/* Keeps what has no end yet, unless it can be no line any more. */
static struct prb_error *keep_rest(struct prb_perf_map *map, const char *text, size_t length)
{
	size_t room = LINE_MOST - PRB_MIN(map->rest.count, (size_t)LINE_MOST);

	length = PRB_MIN(length, room);
	if (!prb_vec_reserve(&map->rest, length + 1))
		return prb_error_nomem();
	if (length)
		memcpy(map->rest.items + map->rest.count, text, length);
	map->rest.count += length;
	return NULL;
}

static struct prb_error *feed_line(struct prb_perf_map *map, const char *text, size_t length)
{
	struct prb_error *err;

	if (!map->rest.count)
		return length < LINE_MOST ? add_line(map, text, text + length) : NULL;
	PRB_TRY(keep_rest(map, text, length));
	err = map->rest.count < LINE_MOST
		      ? add_line(map, map->rest.items, map->rest.items + map->rest.count)
		      : NULL;
	map->rest.count = 0;
	return err;
}

static int by_start(const void *a, const void *b)
{
	const struct prb_perf_symbol *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->number > y->number) - (x->number < y->number);
}

static struct prb_error *feed(struct prb_perf_map *map, const char *text, size_t length)
{
	const char *end = text + length, *line;

	while ((line = memchr(text, '\n', (size_t)(end - text)))) {
		PRB_TRY(feed_line(map, text, (size_t)(line - text)));
		text = line + 1;
	}
	return keep_rest(map, text, (size_t)(end - text));
}

void prb_perf_map_sort(struct prb_perf_map *map)
{
	if (map->symbols.count)
		qsort(map->symbols.items, map->symbols.count, sizeof(*map->symbols.items),
		      by_start);
}

struct prb_error *prb_perf_map_feed(struct prb_perf_map *map, const char *text, size_t length)
{
	PRB_TRY(feed(map, text, length));
	prb_perf_map_sort(map);
	return NULL;
}

/* True if only the user of the process, or root, could have written it. */
static bool may_be_believed(int fd, uid_t user)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode) && (st.st_uid == user || !st.st_uid) &&
	       !(st.st_mode & (S_IWGRP | S_IWOTH));
}

static struct prb_error *find_user(struct prb_target *target, uid_t *ret)
{
	prb_auto_str struct prb_str status = {};
	const char *line;
	unsigned real, effective;

	PRB_TRY(prb_target_read_file(target, &status, "status"));
	line = strstr(prb_str_text(&status), "\nUid:");
	if (!line || sscanf(line, "\nUid: %u %u", &real, &effective) != 2)
		return prb_error_create(PRB_ERROR_BAD_DATA, "nothing tells whose process it is");
	*ret = effective;
	return NULL;
}

struct prb_error *prb_perf_map_check(struct prb_target *target, const char *path, int fd)
{
	uid_t user;

	PRB_TRY(find_user(target, &user));
	if (may_be_believed(fd, user))
		return NULL;
	return prb_error_create(PRB_ERROR_PERMISSION,
				"%s is not written by the process's user alone", path);
}

static struct prb_error *open_map(struct prb_perf_map *map, struct prb_target *target)
{
	prb_auto_close int fd = -1;

	if (!map->path)
		map->path = prb_format("/tmp/perf-%d.map",
				       (int)prb_task_inner_tid(target, target->pid));
	if (!map->path)
		return prb_error_nomem();
	PRB_TRY(prb_target_open_file(target, map->path, &fd));
	PRB_TRY(prb_perf_map_check(target, map->path, fd));
	map->fd = fd;
	fd = -1;
	return NULL;
}

static struct prb_error *read_new(struct prb_perf_map *map)
{
	enum { MUCH = 1 << 16 };
	prb_auto_free char *buffer = malloc(MUCH);
	ssize_t n;

	if (!buffer)
		return prb_error_nomem();
	while (map->read < MOST_BYTES && (n = pread(map->fd, buffer, MUCH, (off_t)map->read)) > 0) {
		PRB_TRY(feed(map, buffer, (size_t)n));
		map->read += (uint64_t)n;
	}
	if (map->read >= MOST_BYTES)
		say_full(map);
	prb_perf_map_sort(map);
	return NULL;
}

struct prb_error *prb_perf_map_update(struct prb_perf_map *map, struct prb_target *target)
{
	struct stat st;
	struct prb_error *err = map->fd < 0 ? open_map(map, target) : NULL;

	if (err && err->code == PRB_ERROR_NOMEM)
		return err;
	if (err)
		prb_log("profile", 1, "%s", err->message);
	prb_error_destroy(err);
	if (map->fd < 0 || fstat(map->fd, &st) || (uint64_t)st.st_size <= map->read ||
	    map->read >= MOST_BYTES)
		return NULL;
	return read_new(map);
}

const char *prb_perf_map_find(const struct prb_perf_map *map, uint64_t address)
{
	const struct prb_perf_symbol *found = NULL;
	size_t low = 0, high = map->symbols.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (map->symbols.items[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	for (size_t i = low; i-- > 0 && low - i <= LOOKED_BACK;) {
		const struct prb_perf_symbol *symbol = &map->symbols.items[i];

		if (address - symbol->start < symbol->size &&
		    (!found || symbol->number > found->number))
			found = symbol;
	}
	return found ? map->text.items + found->name : NULL;
}

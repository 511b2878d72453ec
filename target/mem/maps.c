/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "target/mem/maps.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

/* Hexadecimal number at *p, which moves behind it and the @p stop character after it. */
static bool take_hex(const char **p, char stop, uint64_t *ret)
{
	uint64_t value = 0;
	const char *s = *p;

	for (;; s++) {
		unsigned digit;

		if (*s >= '0' && *s <= '9')
			digit = (unsigned)(*s - '0');
		else if (*s >= 'a' && *s <= 'f')
			digit = (unsigned)(*s - 'a') + 10;
		else
			break;
		if (value >> 60)
			return false;
		value = value << 4 | digit;
	}
	if (s == *p || *s != stop)
		return false;
	*p = s + 1;
	*ret = value;
	return true;
}

static bool take_decimal(const char **p, uint64_t *ret)
{
	char *end;

	if (**p < '0' || **p > '9')
		return false;
	*ret = strtoull(*p, &end, 10);
	*p = end;
	return true;
}

/* The kernel writes a newline in a path as \012. */
static char *unescape_path(const char *text, size_t length)
{
	char *path = malloc(length + 1), *out = path;

	if (!path)
		return NULL;
	for (size_t i = 0; i < length; i++) {
		if (text[i] == '\\' && length - i >= 4 && !strncmp(text + i, "\\012", 4)) {
			*out++ = '\n';
			i += 3;
		} else {
			*out++ = text[i];
		}
	}
	*out = '\0';
	return path;
}

static bool parse_line(const char *line, size_t length, struct prb_map *map)
{
	static const char deleted[] = " (deleted)";
	const char *p = line, *end = line + length;
	uint64_t major, minor;

	if (!take_hex(&p, '-', &map->start) || !take_hex(&p, ' ', &map->end) ||
	    map->start >= map->end || end - p < 5)
		return false;
	map->read = p[0] == 'r';
	map->write = p[1] == 'w';
	map->exec = p[2] == 'x';
	map->shared = p[3] == 's';
	p += 5;
	if (!take_hex(&p, ' ', &map->offset) || !take_hex(&p, ':', &major) ||
	    !take_hex(&p, ' ', &minor) || !take_decimal(&p, &map->inode))
		return false;
	map->major = (uint32_t)major;
	map->minor = (uint32_t)minor;
	while (p < end && *p == ' ')
		p++;

	size_t path = (size_t)(end - p);
	if (path > sizeof(deleted) - 1 &&
	    !memcmp(end - (sizeof(deleted) - 1), deleted, sizeof(deleted) - 1)) {
		map->deleted = true;
		path -= sizeof(deleted) - 1;
	}
	map->path = unescape_path(p, path);
	return map->path != NULL;
}

struct prb_error *prb_maps_parse(const char *text, struct prb_maps *ret)
{
	*ret = (struct prb_maps){};
	for (unsigned number = 1; *text; number++) {
		size_t length = strcspn(text, "\n");
		struct prb_map *map = prb_vec_push(&ret->list);

		if (!map) {
			prb_maps_deinit(ret);
			return prb_error_nomem();
		}
		bool good = parse_line(text, length, map);
		if (good && ret->list.count > 1 && map[-1].end > map->start)
			good = false;
		if (!good) {
			prb_maps_deinit(ret);
			return prb_error_create(PRB_ERROR_BAD_DATA,
						"line %u of the memory map is malformed", number);
		}
		text += length;
		text += *text == '\n';
	}
	return NULL;
}

void prb_maps_deinit(struct prb_maps *maps)
{
	struct prb_map *map;

	prb_vec_each (map, &maps->list)
		free(map->path);
	prb_vec_free(&maps->list);
}

const struct prb_map *prb_maps_find(const struct prb_maps *maps, uint64_t address)
{
	size_t low = 0, high = maps->list.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct prb_map *map = &maps->list.items[middle];

		if (address < map->start)
			high = middle;
		else if (address >= map->end)
			low = middle + 1;
		else
			return map;
	}
	return NULL;
}

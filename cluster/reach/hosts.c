/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cluster/reach/hosts.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"

enum { MAX_DIGITS = 9 };

void prb_hosts_deinit(struct prb_hosts *hosts)
{
	char **host;

	prb_vec_each (host, &hosts->list)
		free(*host);
	prb_vec_free(&hosts->list);
}

static struct prb_error *wrong(const char *text)
{
	return prb_error_hint(
		prb_error_create(PRB_ERROR_USAGE, "'%.200s' is no list of hosts", text),
		"for example login,node[01-16,20]; at most %d", PRB_MAX_HOSTS);
}

/** Takes over @p name, which may be NULL for want of memory. */
static struct prb_error *add(struct prb_hosts *hosts, char *name, const char *text)
{
	char **place;

	if (!name)
		return prb_error_nomem();
	/* Files of schedulers have a line for each processor of a host. */
	if (hosts->list.count && !strcmp(hosts->list.items[hosts->list.count - 1], name)) {
		free(name);
		return NULL;
	}
	/* A name that begins with a dash would be an option of ssh. */
	if (!*name || *name == '-' || hosts->list.count == PRB_MAX_HOSTS) {
		free(name);
		return wrong(text);
	}
	place = prb_vec_push(&hosts->list);
	if (!place) {
		free(name);
		return prb_error_nomem();
	}
	*place = name;
	return NULL;
}

/** Reads digits; their count is the width, zeros included. */
static bool read_number(const char **at, long *value, int *width)
{
	size_t digits = strspn(*at, "0123456789");

	if (!digits || digits > MAX_DIGITS)
		return false;
	*value = strtol(*at, NULL, 10);
	*width = (int)digits;
	*at += digits;
	return true;
}

/** Adds "PREFIX" + each number between the brackets + "SUFFIX". */
static struct prb_error *add_range(struct prb_hosts *hosts, const char *prefix,
				   size_t prefix_length, const char *inside, const char *suffix,
				   size_t suffix_length, const char *text)
{
	for (const char *at = inside; *at != ']'; at += *at == ',') {
		long first, last;
		int width, unused;

		if (!read_number(&at, &first, &width))
			return wrong(text);
		last = first;
		if (*at == '-') {
			at++;
			if (!read_number(&at, &last, &unused) || last < first)
				return wrong(text);
		}
		if (*at != ',' && *at != ']')
			return wrong(text);
		for (long n = first; n <= last; n++)
			PRB_TRY(add(hosts,
				    prb_format("%.*s%0*ld%.*s", (int)prefix_length, prefix, width,
					       n, (int)suffix_length, suffix),
				    text));
	}
	return NULL;
}

/** Adds one item of the list, which has at most one pair of brackets. */
static struct prb_error *add_item(struct prb_hosts *hosts, const char *item, size_t length,
				  const char *text)
{
	const char *open = memchr(item, '[', length);
	const char *close = memchr(item, ']', length);

	if (!open && !close)
		return add(hosts, strndup(item, length), text);
	if (!open || !close || close < open || close == open + 1)
		return wrong(text);
	return add_range(hosts, item, (size_t)(open - item), open + 1, close + 1,
			 (size_t)(item + length - close - 1), text);
}

struct prb_error *prb_hosts_parse(const char *text, struct prb_hosts *ret)
{
	const char *item = text;
	bool inside = false;

	for (const char *at = text;; at++) {
		if (*at == '[')
			inside = true;
		else if (*at == ']')
			inside = false;
		if (*at && (*at != ',' || inside))
			continue;
		PRB_TRY(add_item(ret, item, (size_t)(at - item), text));
		if (!*at)
			return NULL;
		item = at + 1;
	}
}

struct named {
	const char *name;
	size_t place;
};

static int by_name(const void *a, const void *b)
{
	const struct named *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	return order ? order : (x->place > y->place) - (x->place < y->place);
}

struct prb_error *prb_hosts_unite(struct prb_hosts *hosts)
{
	size_t count = hosts->list.count, kept = 0;
	prb_auto_free struct named *named = calloc(count + 1, sizeof(*named));

	if (!named)
		return prb_error_nomem();
	for (size_t i = 0; i < count; i++)
		named[i] = (struct named){hosts->list.items[i], i};
	qsort(named, count, sizeof(*named), by_name);
	/* Backwards: the name that it is compared with is not freed yet. */
	for (size_t i = count; i-- > 1;)
		if (!strcmp(named[i].name, named[i - 1].name))
			free(prb_steal(&hosts->list.items[named[i].place]));
	for (size_t i = 0; i < count; i++)
		if (hosts->list.items[i])
			hosts->list.items[kept++] = hosts->list.items[i];
	hosts->list.count = kept;
	return NULL;
}

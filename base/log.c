/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DOMAINS = 16, MAX_NAME = 24 };

static struct {
	prb_log_sink *sink;
	void *context;
	int all;
	size_t count;
	struct {
		char name[MAX_NAME];
		int level;
	} domains[MAX_DOMAINS];
} state;

static struct prb_error *bad_filter(const char *filter)
{
	return prb_error_hint(prb_error_create(PRB_ERROR_USAGE, "bad log filter '%s'", filter),
			      "use a level 0-3 or DOMAIN=LEVEL,…, for example 'stop=3,elf=1'");
}

static bool parse_level(const char *text, size_t length, int *level)
{
	if (length != 1 || text[0] < '0' || text[0] > '3')
		return false;
	*level = text[0] - '0';
	return true;
}

struct prb_error *prb_log_set(prb_log_sink *sink, void *context, const char *filter)
{
	state.sink = sink;
	state.context = context;
	state.all = 0;
	state.count = 0;

	for (const char *p = filter; p && *p;) {
		size_t length = strcspn(p, ",");
		const char *equals = memchr(p, '=', length);

		if (!equals) {
			if (!parse_level(p, length, &state.all))
				return bad_filter(filter);
		} else {
			size_t name = (size_t)(equals - p);

			if (state.count == MAX_DOMAINS || name >= MAX_NAME ||
			    !parse_level(equals + 1, length - name - 1,
					 &state.domains[state.count].level))
				return bad_filter(filter);
			memcpy(state.domains[state.count].name, p, name);
			state.domains[state.count++].name[name] = '\0';
		}
		p += length;
		p += *p == ',';
	}
	return NULL;
}

int prb_log_level(const char *domain)
{
	if (!state.sink)
		return 0;
	for (size_t i = 0; i < state.count; i++)
		if (!strcmp(state.domains[i].name, domain))
			return state.domains[i].level;
	return state.all;
}

void prb_log(const char *domain, int level, const char *format, ...)
{
	if (!state.sink || level > prb_log_level(domain))
		return;

	char *message;
	va_list args;

	va_start(args, format);
	int rc = vasprintf(&message, format, args);
	va_end(args);
	if (rc < 0)
		return;
	state.sink(state.context, domain, level, message);
	free(message);
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A connection of SQLite that finds its database locked sleeps again and again, for 0.1 s at most,
 * until it gets the lock or its time-out is over. The kernel's list of file locks has the holder.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "dump/waits/wait_private.h"

enum {
	MOST_FILES = 1024,
	/* Bytes that SQLite locks: of a database, and of the shared memory of its log. */
	FIRST = 0x40000000,
	LAST = FIRST + 512,
	FIRST_OF_LOG = 120,
	LAST_OF_LOG = 127,
};

struct holder {
	int fd;
	pid_t pid; /* 0: nobody */
	bool writes, other;
};

/* True if the left one is rather what is waited for. */
static bool is_likelier(const struct holder *a, const struct holder *b)
{
	if (a->other != b->other)
		return a->other;
	return !b->pid || (a->writes && !b->writes);
}

static void find_holder(struct prb_wait_context *c, int fd, const char *key, bool of_log,
			struct holder *best)
{
	prb_auto_fclose FILE *locks = fopen("/proc/locks", "re");
	char line[256];

	while (locks && fgets(line, sizeof(line), locks)) {
		unsigned long long first;
		char file[64], mode[16];
		int pid;

		/* Lines with an arrow are waiters. */
		if (sscanf(line, "%*d: %*[A-Z] %*s %15s %d %63s %llu", mode, &pid, file, &first) !=
			    4 ||
		    pid <= 0 || strcmp(file, key) != 0 || first < (of_log ? FIRST_OF_LOG : FIRST) ||
		    first > (of_log ? LAST_OF_LOG : LAST))
			continue;
		const struct holder found = {.fd = fd,
					     .pid = pid,
					     .writes = !strcmp(mode, "WRITE"),
					     .other = pid != c->target->pid};
		if (is_likelier(&found, best))
			*best = found;
	}
}

static void look_through(struct prb_wait_context *c, struct holder *best, struct prb_str *s)
{
	prb_auto_str struct prb_str names = {};
	char *end;

	if (!prb_wait_ok(s, prb_target_list(c->target, &names, "fd")))
		return;
	end = (char *)prb_str_text(&names);
	for (unsigned n = 0; n < MOST_FILES; n++) {
		prb_auto_str struct prb_str link = {};
		const char *at = end;
		int fd = (int)strtol(at, &end, 10);
		char key[64];

		if (end == at)
			return;
		if (!prb_wait_ok(s, prb_target_read_link(c->target, &link, "fd/%d", fd)) ||
		    *prb_str_text(&link) != '/' || !prb_lock_key(c, fd, key, sizeof(key), s))
			continue;
		find_holder(c, fd, key, prb_text_ends(prb_str_text(&link), "-shm"), best);
	}
}

static bool has_sqlite(const struct prb_wait_context *c)
{
	const struct prb_map *map;

	prb_vec_each (map, &c->target->maps.list)
		if (map->exec && strstr(map->path, "sqlite3"))
			return true;
	return false;
}

void prb_describe_sqlite(struct prb_wait_context *c, struct prb_str *s)
{
	struct holder holder = {};
	struct prb_enders *enders;

	if (!has_sqlite(c) ||
	    (!prb_is_called_by(c, "libsqlite3", s) && !prb_is_called_by(c, "_sqlite3", s)))
		return;
	look_through(c, &holder, s);
	prb_str_puts(s, ", for a lock of SQLite");
	if (!holder.pid)
		return;
	prb_str_puts(s, " on ");
	enders = prb_steal(&c->enders);
	prb_describe_fd(c, holder.fd, PRB_EITHER_WAY, s);
	c->enders = enders;
	prb_enders_object(c, "file lock");
	prb_enders_add(c, holder.pid);
	prb_str_puts(s, " held by ");
	if (holder.other)
		prb_describe_process(holder.pid, s);
	else
		prb_str_puts(s, "another connection of this process");
}

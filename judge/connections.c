/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "judge/connections.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "target/proc/inet_line.h"
#include "target/proc/pids.h"

struct table {
	PRB_VEC(struct prb_inet_line) list;
	struct prb_number_map own, below; /* inodes of the process, and of its descendants */
};

static void table_deinit(struct table *t)
{
	prb_vec_free(&t->list);
	prb_number_map_deinit(&t->own);
	prb_number_map_deinit(&t->below);
}

static struct prb_error *add_sockets(struct prb_target *target, struct prb_number_map *ret)
{
	prb_auto_str struct prb_str names = {};
	char *end;

	PRB_TRY(prb_target_list(target, &names, "fd"));
	for (const char *at = prb_str_text(&names);; at = end) {
		prb_auto_str struct prb_str link = {};
		unsigned long long inode;
		long fd = strtol(at, &end, 10);

		if (end == at)
			return NULL;
		prb_error_destroy(prb_target_read_link(target, &link, "fd/%ld", fd));
		if (sscanf(prb_str_text(&link), "socket:[%llu]", &inode) == 1 &&
		    !prb_number_map_put(ret, inode, 0))
			return prb_error_nomem();
	}
}

static struct prb_error *add_descendant(pid_t pid, struct prb_number_map *ret)
{
	prb_auto_target struct prb_target *target = NULL;

	PRB_TRY(prb_target_open_process(pid, &target));
	return add_sockets(target, ret);
}

/* All connections of the network namespace. */
static struct prb_error *add_connections(struct prb_target *target, const char *name,
					 struct table *t)
{
	prb_auto_str struct prb_str text = {};

	PRB_TRY(prb_target_read_file(target, &text, "net/%s", name));
	for (const char *line = strchr(prb_str_text(&text), '\n'); line;
	     line = strchr(line + 1, '\n')) {
		struct prb_inet_line each, *place;

		if (!prb_inet_line_parse(line, &each))
			continue;
		place = prb_vec_push(&t->list);
		if (!place)
			return prb_error_nomem();
		*place = each;
	}
	return NULL;
}

static bool is_in(const struct prb_number_map *map, uint64_t inode)
{
	size_t unused;

	return prb_number_map_get(map, inode, &unused);
}

/* True if a client has made it, or its other end is in the family. */
static bool is_known(const struct table *t, const struct prb_inet_line *connection)
{
	const struct prb_inet_line *each;

	prb_vec_each (each, &t->list) {
		if (each->state == PRB_INET_LISTENING && each->near.port == connection->near.port &&
		    is_in(&t->own, each->inode))
			return true;
		if (prb_inet_ends_equal(&each->near, &connection->far) &&
		    prb_inet_ends_equal(&each->far, &connection->near) &&
		    (is_in(&t->own, each->inode) || is_in(&t->below, each->inode)))
			return true;
	}
	return false;
}

static struct prb_error *fill(const struct prb_case *c, const struct prb_subprocesses *descendants,
			      struct table *t)
{
	const struct prb_process *process;

	PRB_TRY(add_sockets(c->target, &t->own));
	prb_vec_each (process, &descendants->list)
		PRB_TRY(prb_error_tolerate(add_descendant(process->pid, &t->below), NULL));
	PRB_TRY(add_connections(c->target, "tcp", t));
	/* A kernel without IPv6 has no such file. */
	return prb_error_tolerate(add_connections(c->target, "tcp6", t), NULL);
}

struct prb_error *prb_case_count_connections(const struct prb_case *c,
					     const struct prb_subprocesses *descendants,
					     size_t *ret)
{
	__attribute__((cleanup(table_deinit))) struct table t = {};
	const struct prb_inet_line *each;
	struct prb_error *err = fill(c, descendants, &t);

	*ret = 1;
	if (err)
		return prb_error_tolerate(err, NULL);
	*ret = 0;
	prb_vec_each (each, &t.list)
		*ret += each->state == PRB_INET_ESTABLISHED && is_in(&t.own, each->inode) &&
			!is_known(&t, each);
	return NULL;
}

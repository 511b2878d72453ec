/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "python/repr/core/repr.h"
#include "sql/tables/shared/interpreters.h"
#include "values/expression.h"
#include "values/environment.h"

enum {
	RANK,
	LOCAL_RANK,
	WORLD_SIZE,
	ROLE,
	MASTER,
	GROUP,
	BACKEND,
	GROUP_SIZE,
	PID,
};

static const struct prb_column columns[] = {
	[RANK] = {"rank", PRB_COLUMN_INTEGER, "RANK of its environment"},
	[LOCAL_RANK] = {"local_rank", PRB_COLUMN_INTEGER, "LOCAL_RANK of its environment"},
	[WORLD_SIZE] = {"world_size", PRB_COLUMN_INTEGER, "WORLD_SIZE of its environment"},
	[ROLE] = {"role", PRB_COLUMN_TEXT, "ROLE_NAME of its environment"},
	[MASTER] = {"master", PRB_COLUMN_TEXT, "MASTER_ADDR and MASTER_PORT of its environment"},
	[GROUP] = {"group_name", PRB_COLUMN_TEXT,
		   "Name of a process group of torch.distributed; NULL if there is none"},
	[BACKEND] = {"backend", PRB_COLUMN_TEXT, "Backend of that group, as gloo or nccl"},
	[GROUP_SIZE] = {"group_size", PRB_COLUMN_INTEGER, "How many processes are in that group"},
	[PID] = {"pid", PRB_COLUMN_INTEGER, "The process"},
	{},
};

struct groups {
	struct prb_scan *scan;
	struct prb_python *py;
	struct prb_mem *mem;
	const char *environ;
	size_t length;
	uint64_t names, ranks;	/* dicts of the groups; 0: there is none */
	uint64_t wanted, found; /* of a look-up by key */
	int64_t count;
	bool any;
	struct prb_error *err;
};

/* A variable of the environment, or NULL. */
static const char *variable(const struct groups *g, const char *name)
{
	size_t length = strlen(name);

	for (size_t at = 0; at < g->length; at += strlen(g->environ + at) + 1)
		if (!strncmp(g->environ + at, name, length) && g->environ[at + length] == '=')
			return g->environ + at + length + 1;
	return NULL;
}

static void put_number(struct groups *g, unsigned column, const char *name)
{
	const char *text = variable(g, name);
	char *end;
	long value = text ? strtol(text, &end, 10) : 0;

	if (text && end != text && !*end)
		prb_put_integer(g->scan, column, value);
}

static bool match(void *context, uint64_t key, uint64_t value)
{
	struct groups *g = context;

	if (key == g->wanted)
		g->found = value;
	return key != g->wanted;
}

/* The value of the very object @p key; 0 if there is none. */
static uint64_t look_up(struct groups *g, uint64_t dict, uint64_t key)
{
	g->wanted = key;
	g->found = 0;
	if (!dict)
		return 0;

	prb_auto_error struct prb_error *err = prb_object_dict_each(g->py, g->mem, dict, match, g);

	return err ? 0 : g->found;
}

static bool count_rank(void *context, uint64_t key __attribute__((unused)),
		       uint64_t value __attribute__((unused)))
{
	((struct groups *)context)->count++;
	return true;
}

static void put_text(struct groups *g, unsigned column, uint64_t object)
{
	enum { TEXT_MAX = 200 };
	prb_auto_str struct prb_str text = {};
	prb_auto_error struct prb_error *err =
		object ? prb_object_str(g->py, g->mem, object, TEXT_MAX, &text) : NULL;

	if (object && !err)
		prb_put_text(g->scan, column, prb_str_text(&text));
}

static struct prb_error *begin_row(struct groups *g)
{
	const char *address = variable(g, "MASTER_ADDR"), *port = variable(g, "MASTER_PORT");

	g->any = true;
	PRB_TRY(prb_scan_row(g->scan));
	put_number(g, RANK, "RANK");
	put_number(g, LOCAL_RANK, "LOCAL_RANK");
	put_number(g, WORLD_SIZE, "WORLD_SIZE");
	prb_put_text(g->scan, ROLE, variable(g, "ROLE_NAME"));
	if (address)
		prb_put_format(g->scan, MASTER, "%s:%s", address, port ? port : "?");
	prb_put_integer(g->scan, PID, prb_instant_target(g->scan->instant)->pid);
	return NULL;
}

/* A group, and (backend, store). */
static bool visit_group(void *context, uint64_t group, uint64_t value)
{
	struct groups *g = context;
	uint64_t backend, ranks;

	g->err = begin_row(g);
	if (g->err)
		return false;
	put_text(g, GROUP, look_up(g, g->names, group));

	prb_auto_error struct prb_error *err =
		prb_mem_read_u64(g->mem, value + (uint64_t)g->py->layout.tuple_items, &backend);

	if (!err)
		put_text(g, BACKEND, backend);
	ranks = look_up(g, g->ranks, group);
	g->count = 0;
	if (!err && ranks)
		err = prb_object_dict_each(g->py, g->mem, ranks, count_rank, g);
	if (!err && g->count)
		prb_put_integer(g->scan, GROUP_SIZE, g->count);
	return true;
}

static uint64_t find(struct groups *g, const struct prb_interpreter *i, const char *name)
{
	const struct prb_py_scope scope = {.interp = i->state.address};
	prb_auto_str struct prb_str expression = {};
	struct prb_py_value value;

	prb_str_printf(&expression, "sys.modules['torch.distributed.distributed_c10d'].%s", name);

	prb_auto_error struct prb_error *err =
		prb_python_find(g->py, g->mem, &scope, prb_str_text(&expression), NULL, &value);

	if (err)
		return 0;
	prb_str_deinit(&value.text);
	return value.object;
}

static struct prb_error *scan(struct prb_scan *scan)
{
	prb_auto_str struct prb_str variables = {};
	prb_auto_error struct prb_error *unknown =
		prb_environment_read(prb_instant_target(scan->instant), &variables, NULL);
	const struct prb_interpreters *interpreters;
	const struct prb_interpreter *i;
	struct groups g = {
		.scan = scan, .environ = prb_str_text(&variables), .length = variables.length};

	(void)unknown; /* then nothing is known of its environment */
	PRB_TRY(prb_interpreters_read(scan, &interpreters));
	prb_vec_each (i, &interpreters->list) {
		uint64_t groups;

		g.py = i->py;
		g.mem = i->mem;
		groups = find(&g, i, "_pg_map");
		g.names = find(&g, i, "_pg_names");
		g.ranks = find(&g, i, "_pg_group_ranks");

		prb_auto_error struct prb_error *err =
			groups ? prb_object_dict_each(g.py, g.mem, groups, visit_group, &g) : NULL;

		(void)err; /* a dict that cannot be read has no groups */
		if (g.err)
			return g.err;
	}
	if (!g.any && variable(&g, "RANK"))
		return begin_row(&g);
	if (!g.any)
		prb_scan_note(scan, "torch.processes is empty: torch has no process group, and the "
				    "environment no rank");
	return NULL;
}

const struct prb_table prb_table_torch_processes = {
	.schema = "torch",
	.name = "processes",
	.doc = "Rank of the process in its job, a row for each process group of torch.distributed",
	.columns = columns,
	.flags = PRB_TABLE_COSTLY,
	.rows = 2,
	.scan = scan,
};

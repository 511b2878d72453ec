/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <strings.h>

#include "base/checked.h"
#include "sql/spec/table.h"

const struct prb_schema prb_schemas[] = {
	{"python", "The Python interpreters of the target: stacks, threads, objects"},
	{"native", "Its C and C++ code: frames and symbols"},
	{"process", "The target as the kernel sees it"},
	{"wait", "What the target's threads wait for, in other processes, too"},
	{"ipc", "Memory that the target shares with other processes"},
	{"zmq", "ZeroMQ's sockets in the target, read from the objects of libzmq"},
	{"system", "The machine the target runs on"},
	{"torch", "Modules, tensors, optimizers and process groups of torch, read from outside"},
	{"inference", "What the target has as a process of an inference server"},
	{"cpu", "What the target's threads take of the processors"},
	{"gpu", "The machine's GPUs"},
	{"profile", "A recording that 'probing perf -o FILE.profile' made"},
	{"information_schema", "The tables themselves"},
	{"main", "Tables that can be named without a schema"},
	{},
};

/* build/sql/tables/tables.inc is written by build-aux/gen-registry: an X() for each table. */
#define X(name) extern const struct prb_table prb_table_##name;
#include "sql/tables/tables.inc"
#undef X

#define X(name) &prb_table_##name,
const struct prb_table *const prb_tables[] = {
#include "sql/tables/tables.inc"
	NULL,
};
#undef X

const size_t prb_table_count = PRB_ARRAY_SIZE(prb_tables) - 1;

const struct prb_table *prb_table_find(const char *schema, const char *name)
{
	for (const struct prb_table *const *t = prb_tables; *t; t++)
		if (!strcasecmp((*t)->name, name) && (!schema || !strcasecmp((*t)->schema, schema)))
			return *t;
	return NULL;
}

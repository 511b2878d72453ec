/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <string.h>
#include <strings.h>

#include "base/checked.h"
#include "sql/spec/table.h"

#define PRB_LISTS_TABLES "'probing tables' lists the tables"

const struct prb_schema prb_schemas[] = {
	{"python", "The Python interpreters of the target: stacks, threads, objects"},
	{"native", "Its C and C++ code: frames and symbols"},
	{"process", "The target as the kernel sees it"},
	{"system", "The machine the target runs on"},
	{"torch", "Modules, tensors, optimizers and process groups of torch, read from outside"},
	{"cpu", "What the target's threads take of the processors"},
	{"gpu", "The machine's GPUs"},
	{"profile", "A recording that 'probing perf -o FILE.profile' made"},
	{"information_schema", "The tables themselves"},
	{"main", "Tables that can be named without a schema"},
	{},
};

/* build/tables/tables.inc is written by build-aux/gen-registry: an X() for each table. */
#define X(name) extern const struct prb_table prb_table_##name;
#include "tables/tables.inc"
#undef X

#define X(name) &prb_table_##name,
const struct prb_table *const prb_tables[] = {
#include "tables/tables.inc"
	NULL,
};
#undef X

/** Tables of later versions: their names are known already, and asked for. */
static const struct {
	const char *schema, *name, *hint;
} unrecorded[] = {
	{"main", "memory_allocations", "'probing PID memory --sites 30s' fills it"},
};

const char *prb_table_unrecorded(const char *name)
{
	const char *dot = strchr(name, '.');
	size_t schema = dot ? (size_t)(dot - name) : 0;

	for (size_t i = 0; i < PRB_ARRAY_SIZE(unrecorded); i++)
		if (!strcasecmp(dot ? dot + 1 : name, unrecorded[i].name) &&
		    (!dot || (strlen(unrecorded[i].schema) == schema &&
			      !strncasecmp(name, unrecorded[i].schema, schema))))
			return unrecorded[i].hint;
	return NULL;
}

const struct prb_table *prb_table_find(const char *schema, const char *name)
{
	for (const struct prb_table *const *t = prb_tables; *t; t++)
		if (!strcasecmp((*t)->name, name) && (!schema || !strcasecmp((*t)->schema, schema)))
			return *t;
	return NULL;
}

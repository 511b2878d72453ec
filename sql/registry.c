/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <strings.h>

#include "sql/table.h"
#include "sql/tables/tables.h"

const struct prb_schema prb_schemas[] = {
	{"python", "The Python interpreters of the target: stacks, threads, objects"},
	{"native", "Its C and C++ code: frames and symbols"},
	{"process", "The target as the kernel sees it"},
	{"system", "The machine the target runs on"},
	{"cpu", "What the target's threads take of the processors"},
	{"gpu", "The machine's GPUs"},
	{"information_schema", "The tables themselves"},
	{"main", "Tables that can be named without a schema"},
	{},
};

/* clang-format off: one a line, so that adding one changes one line. */
const struct prb_table *const prb_tables[] = {
	&prb_table_python_backtrace,
	&prb_table_python_stacks,
	&prb_table_python_threads,
	&prb_table_python_locals,
	&prb_table_native_backtrace,
	&prb_table_main_generate_series,
	NULL,
};
/* clang-format on */

const struct prb_table *prb_table_find(const char *schema, const char *name)
{
	for (const struct prb_table *const *t = prb_tables; *t; t++)
		if (!strcasecmp((*t)->name, name) && (!schema || !strcasecmp((*t)->schema, schema)))
			return *t;
	return NULL;
}

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
	&prb_table_python_interpreters,
	&prb_table_python_modules,
	&prb_table_python_gc,
	&prb_table_python_types,
	&prb_table_python_objects,
	&prb_table_python_tasks,
	&prb_table_python_task_frames,
	&prb_table_python_torch_trace,
	&prb_table_python_torch_step_timing,
	&prb_table_python_comm_collective,
	&prb_table_python_trace_event,
	&prb_table_python_variables,
	&prb_table_python_memory,
	&prb_table_native_backtrace,
	&prb_table_native_modules,
	&prb_table_native_symbols,
	&prb_table_process_info,
	&prb_table_process_threads,
	&prb_table_process_fds,
	&prb_table_process_maps,
	&prb_table_process_environ,
	&prb_table_process_envs,
	&prb_table_process_limits,
	&prb_table_process_io,
	&prb_table_process_cgroups,
	&prb_table_process_signals,
	&prb_table_system_process,
	&prb_table_system_info,
	&prb_table_cpu_tasks,
	&prb_table_cpu_utilization,
	&prb_table_gpu_devices,
	&prb_table_gpu_utilization,
	&prb_table_gpu_processes,
	&prb_table_information_schema_schemata,
	&prb_table_information_schema_tables,
	&prb_table_information_schema_columns,
	&prb_table_information_schema_df_settings,
	&prb_table_memory_usage,
	&prb_table_memory_allocations,
	&prb_table_profiling_data,
	&prb_table_training_logs,
	&prb_table_comm_metrics,
	&prb_table_gpu_metrics,
	&prb_table_generate_series,
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

/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file The specs, one per file of this folder; registry.c lists them. */
#ifndef PRB_SQL_TABLES_TABLES_H
#define PRB_SQL_TABLES_TABLES_H

#include "sql/spec/table.h"

extern const struct prb_table prb_table_cpu_tasks;
extern const struct prb_table prb_table_cpu_utilization;
extern const struct prb_table prb_table_generate_series;
extern const struct prb_table prb_table_gpu_devices;
extern const struct prb_table prb_table_gpu_processes;
extern const struct prb_table prb_table_gpu_utilization;
extern const struct prb_table prb_table_information_schema_columns;
extern const struct prb_table prb_table_information_schema_df_settings;
extern const struct prb_table prb_table_information_schema_schemata;
extern const struct prb_table prb_table_information_schema_tables;
extern const struct prb_table prb_table_native_backtrace;
extern const struct prb_table prb_table_native_modules;
extern const struct prb_table prb_table_native_symbols;
extern const struct prb_table prb_table_process_cgroups;
extern const struct prb_table prb_table_process_environ;
extern const struct prb_table prb_table_process_envs;
extern const struct prb_table prb_table_process_fds;
extern const struct prb_table prb_table_process_info;
extern const struct prb_table prb_table_process_io;
extern const struct prb_table prb_table_process_limits;
extern const struct prb_table prb_table_process_maps;
extern const struct prb_table prb_table_process_signals;
extern const struct prb_table prb_table_process_threads;
extern const struct prb_table prb_table_python_backtrace;
extern const struct prb_table prb_table_python_gc;
extern const struct prb_table prb_table_python_interpreters;
extern const struct prb_table prb_table_python_locals;
extern const struct prb_table prb_table_python_modules;
extern const struct prb_table prb_table_python_objects;
extern const struct prb_table prb_table_python_stacks;
extern const struct prb_table prb_table_python_task_frames;
extern const struct prb_table prb_table_python_tasks;
extern const struct prb_table prb_table_python_threads;
extern const struct prb_table prb_table_python_types;
extern const struct prb_table prb_table_system_info;
extern const struct prb_table prb_table_system_process;

#endif

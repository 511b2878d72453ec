/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Tables of what the agent records in the target. Their schemas stand whether it is loaded or not,
 * so that a query can be written before; without the agent they are empty, and say why.
 */
#include "dwarf/base/cleanup.h"
#include "sql/instant.h"
#include "sql/tables/tables.h"

static struct prb_error *scan(struct prb_scan *scan)
{
	const struct prb_target *target = prb_instant_target(scan->instant);

	if (target->kind == PRB_TARGET_PROCESS)
		prb_scan_note(scan,
			      "nothing recorded: the agent is not loaded in %d (probing -t %d "
			      "inject)",
			      target->pid, target->pid);
	else
		prb_scan_note(scan, "nothing recorded: the agent was not loaded in this %s",
			      prb_target_kind_name(target->kind));
	return NULL;
}

#define INTEGER PRB_COLUMN_INTEGER
#define REAL PRB_COLUMN_REAL
#define TEXT PRB_COLUMN_TEXT

#define AGENT_TABLE(variable, in, table, words, ...)                   \
	const struct prb_table prb_table_##variable = {                \
		.schema = (in),                                        \
		.name = (table),                                       \
		.doc = (words),                                        \
		.columns = (const struct prb_column[]){__VA_ARGS__{}}, \
		.flags = PRB_TABLE_AGENT,                              \
		.rows = 10000,                                         \
		.scan = scan,                                          \
	}

#define TIMESTAMP                                                                                \
	{                                                                                        \
		"timestamp", REAL, "When it was recorded, since the epoch", "s", PRB_COLUMN_TIME \
	}
#define RANK                                                                           \
	{                                                                              \
		"rank", INTEGER, "Rank of the process in its job; NULL if it has none" \
	}
#define STEP                                             \
	{                                                \
		"step", INTEGER, "Training step, from 0" \
	}

/* clang-format off: one column a line */

AGENT_TABLE(python_torch_trace, "python", "torch_trace",
	    "Modules of a torch model: when each ran, for how long, and memory at that time",
	    TIMESTAMP, RANK, STEP, {"seq", INTEGER, "Number of the record within its step, from 0"},
	    {"module", TEXT, "Path of the module in the model, as in named_modules()"},
	    {"stage", TEXT,
	     "When in the step: pre forward, post forward, pre backward, post backward, or of the "
	     "optimizer"},
	    {"operation_name", TEXT, "Module and stage in one name, to group by"},
	    {"duration", REAL, "How long the stage took; NULL at its beginning", "s"},
	    {"duration_ms", REAL, "The same in milliseconds", "ms"},
	    {"time_offset", REAL, "Time since the step began", "s"},
	    {"allocated", REAL, "Memory of the GPU in use by tensors", "MB"},
	    {"max_allocated", REAL, "Most that was in use since the process began", "MB"},
	    {"cached", REAL, "Memory of the GPU that torch holds, in use or not", "MB"},
	    {"max_cached", REAL, "Most that it held since the process began", "MB"}, );

AGENT_TABLE(python_torch_step_timing, "python", "torch_step_timing",
	    "Training steps and where their time went", TIMESTAMP, RANK, STEP,
	    {"duration_ms", REAL, "The whole step", "ms"},
	    {"data_ms", REAL, "Waiting for the next batch", "ms"},
	    {"forward_ms", REAL, "Forward pass", "ms"},
	    {"backward_ms", REAL, "Backward pass", "ms"},
	    {"optimizer_ms", REAL, "Step of the optimizer", "ms"},
	    {"comm_ms", REAL, "Collectives, as far as nothing else ran meanwhile", "ms"},
	    {"other_ms", REAL, "All the rest", "ms"}, );

AGENT_TABLE(python_comm_collective, "python", "comm_collective",
	    "Collectives of torch.distributed, one row a call", TIMESTAMP, RANK, STEP,
	    {"seq", INTEGER, "Number of the call within its process group, the same on all ranks"},
	    {"op", TEXT, "all_reduce, all_gather, broadcast, …"},
	    {"group_name", TEXT, "Name of the process group"},
	    {"group_size", INTEGER, "Ranks in the group"}, {"backend", TEXT, "nccl, gloo or mpi"},
	    {"bytes", INTEGER, "Size of what this rank gives", "bytes"},
	    {"dtype", TEXT, "Type of the elements"}, {"shape", TEXT, "Shape of the tensor"},
	    {"async_op", INTEGER, "1 if the call returned before it was done"},
	    {"start_time", REAL, "When it was called, since the epoch", "s", PRB_COLUMN_TIME},
	    {"end_time", REAL, "When it was done, since the epoch; NULL while it is not", "s",
	     PRB_COLUMN_TIME},
	    {"duration_ms", REAL, "How long it took; NULL while it is not done", "ms"},
	    {"file", TEXT, "Source file that called it"},
	    {"lineno", INTEGER, "Line that called it"}, );

AGENT_TABLE(python_trace_event, "python", "trace_event",
	    "Spans and events that the program marked itself", TIMESTAMP, RANK,
	    {"record_type", TEXT, "span_start, span_end or event"},
	    {"trace_id", INTEGER, "Groups what belongs together"},
	    {"span_id", INTEGER, "The span; of an event the one around it"},
	    {"parent_id", INTEGER, "The span around it; NULL for the outermost"},
	    {"name", TEXT, "Name of the span or event"},
	    {"kind", TEXT, "Kind that the program gave it"},
	    {"tid", INTEGER, "Thread it was recorded on"},
	    {"duration_ms", REAL, "Of a span that ended: how long it took", "ms"},
	    {"attributes", TEXT, "What the program added, as JSON"},
	    {"file", TEXT, "Source file that recorded it"},
	    {"lineno", INTEGER, "Line that recorded it"}, );

AGENT_TABLE(python_variables, "python", "variables",
	    "Values of variables that are watched, one row a change", TIMESTAMP, RANK, STEP,
	    {"func", TEXT, "Function whose variable it is"},
	    {"file", TEXT, "Source file of the function"},
	    {"lineno", INTEGER, "Line that ran when the change was seen"},
	    {"name", TEXT, "Name of the variable"}, {"type", TEXT, "Type of its value"},
	    {"value", TEXT, "repr() of its value"}, );

AGENT_TABLE(python_memory, "python", "memory", "Objects and memory of the interpreter over time",
	    TIMESTAMP, RANK, {"rss", INTEGER, "Memory of the process in RAM", "bytes"},
	    {"blocks", INTEGER, "Blocks that Python's allocator has given out"},
	    {"traced", INTEGER, "Memory that tracemalloc knows of; NULL if it is not on", "bytes"},
	    {"traced_peak", INTEGER, "Most that it knew of", "bytes"},
	    {"gc_objects", INTEGER, "Objects that the collector follows"},
	    {"gc_collections", INTEGER, "Collections so far, of all generations"},
	    {"gc_seconds", REAL, "Time in collections so far", "s"}, );

AGENT_TABLE(memory_usage, "main", "memory_usage", "Memory of the process over time", TIMESTAMP,
	    RANK, {"memory_mb", REAL, "Memory of the process in RAM", "MB"},
	    {"rss_mb", REAL, "The same", "MB"}, {"vms_mb", REAL, "Address space", "MB"},
	    {"swap_mb", REAL, "Memory that was swapped out", "MB"},
	    {"gpu_allocated_mb", REAL, "Memory of the GPU in use by tensors", "MB"},
	    {"gpu_cached_mb", REAL, "Memory of the GPU that torch holds", "MB"}, );

AGENT_TABLE(memory_allocations, "main", "memory_allocations",
	    "Allocations by the code that made them, summed since the row before", TIMESTAMP, RANK,
	    {"function_name", TEXT, "Function that allocated"}, {"file", TEXT, "Its source file"},
	    {"lineno", INTEGER, "Line that allocated"},
	    {"allocated_bytes", INTEGER, "What was allocated", "bytes"},
	    {"freed_bytes", INTEGER, "What of it was freed again", "bytes"},
	    {"count", INTEGER, "How many allocations"},
	    {"domain", TEXT, "Which allocator: python, native or gpu"}, );

AGENT_TABLE(profiling_data, "main", "profiling_data", "Operations that were timed, one row each",
	    TIMESTAMP, RANK, STEP, {"operation_name", TEXT, "What ran"},
	    {"category", TEXT, "module, collective, span or function"},
	    {"duration_ms", REAL, "How long it took", "ms"}, {"tid", INTEGER, "Thread it ran on"},
	    {"file", TEXT, "Source file of the code"}, {"lineno", INTEGER, "Line of the code"}, );

AGENT_TABLE(training_logs, "main", "training_logs", "What the training loop reported of each step",
	    TIMESTAMP, RANK, {"epoch", INTEGER, "Pass over the data, from 0"}, STEP,
	    {"loss", REAL, "Loss of the step"}, {"acc", REAL, "Accuracy, from 0 to 1"},
	    {"lr", REAL, "Learning rate"}, {"grad_norm", REAL, "Norm of the gradients"},
	    {"samples", INTEGER, "Samples in the step"},
	    {"step_ms", REAL, "How long the step took", "ms"}, );

AGENT_TABLE(comm_metrics, "main", "comm_metrics",
	    "Communication between ranks, one row a message or collective", TIMESTAMP,
	    {"src_rank", INTEGER, "Rank that sends; for collectives the one that recorded it"},
	    {"dst_rank", INTEGER, "Rank that receives; NULL for collectives"},
	    {"op", TEXT, "send, recv, all_reduce, …"}, {"bytes", INTEGER, "Size", "bytes"},
	    {"latency_ms", REAL, "From the call to its end", "ms"},
	    {"bandwidth_mbps", REAL, "Size by time", "MB/s"},
	    {"group_name", TEXT, "Name of the process group"}, );

AGENT_TABLE(gpu_metrics, "main", "gpu_metrics", "GPUs over time, as seen by the process", TIMESTAMP,
	    RANK, {"gpu", INTEGER, "Number of the GPU, as NVML counts"},
	    {"gpu_util", REAL, "Share of the time that a kernel ran", "%"},
	    {"memory_util", REAL, "Share of the time that memory was read or written", "%"},
	    {"memory_used", INTEGER, "Memory in use by all processes", "bytes"},
	    {"memory_total", INTEGER, "Memory there is", "bytes"},
	    {"temperature", REAL, "Temperature of the chip", "°C"},
	    {"power_watts", REAL, "Power drawn", "W"},
	    {"sm_clock_mhz", INTEGER, "Clock of the processors", "MHz"}, );

/* clang-format on */

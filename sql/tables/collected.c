/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sql/spec/collected.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Columns of tables with a history. */
#define STEPS                                                                             \
	{                                                                                 \
		"steps", "1, or how many steps an older row is of: numbers are means of " \
			 "them, NULL if one was NaN; others are the last one's"           \
	}
#define EXTREMES(name)                                                                   \
	{name "_min", "Its least value in an older row's steps; NULL in others"},        \
	{                                                                                \
		name "_max", "Its highest value in an older row's steps; NULL in others" \
	}

static const struct prb_collected_column trace_event[] = {
	{"record", "event, span_begin or span_end"},
	{"name", "What the program calls it"},
	{"span_id", "Number of the span, of which no two processes at a time use the same"},
	{"parent_id", "The span in which this happened"},
	{"step", "Number of the last step"},
	{"duration", "Of a span, at its end"},
	{"attributes", "JSON of what else the program tells"},
	{},
};

static const struct prb_collected_column training_logs[] = {
	{"epoch", "As the program gives it"},
	{"step", "Number of the step"},
	{"loss", "As the program gives it"},
	{"lr", "Learning rate"},
	{"grad_norm", "Norm of the gradients"},
	{"duration", "Time since the step before"},
	{"metrics", "JSON of what else the program tells; NULL in rows of several steps"},
	STEPS,
	EXTREMES("loss"),
	EXTREMES("lr"),
	EXTREMES("grad_norm"),
	EXTREMES("duration"),
	{},
};

static const struct prb_collected_column profiling_data[] = {
	{"operation_name", "Name of the span", "name"},
	{"duration_ms", "How long it took", "duration", "ms"},
	{"step", "Number of the last step at its end", "step"},
	{"span_id", "Number of the span", "span_id"},
	{"parent_id", "The span in which this one was", "parent_id"},
	{"attributes", "JSON: error is the type of the exception that ended it", "attributes"},
	{},
};

static const struct prb_collected_column memory_usage[] = {
	{"memory_mb", "Resident memory"},
	{"peak_mb", "Its highest value since the process started"},
	{"virtual_mb", "Address space"},
	{"python_blocks", "Blocks that Python's allocator has given out"},
	{"step", "Number of the last step"},
	{},
};

static const struct prb_collected_column memory_allocations[] = {
	{"function_name", "Function that allocated, as Python calls it"},
	{"file", "Its source file; NULL: unknown"},
	{"lineno", "Line that allocated; NULL: unknown"},
	{"allocated_bytes", "What was allocated in the time of the sampling: an estimate"},
	{"allocations", "In how many blocks"},
	{"alive_bytes", "Of it, what was not freed by the end"},
	{"alive", "In how many blocks"},
	{"stack", "Functions from the outermost to the innermost, divided by semicolons"},
	{},
};

static const struct prb_collected_column variables[] = {
	{"name", "What is watched, as the program gives it"},
	{"function", "The function in which it was found"},
	{"number", "Its value, if float() converts it"},
	{"value", "Its value as text; up to 200 characters"},
	{"type", "Its type, or that of the exception that evaluating it raised"},
	{"step", "Number of the step"},
	STEPS,
	EXTREMES("number"),
	{},
};

#define PRB_START_TORCH                                                                          \
	"'probing PID config probing.torch.profiling=on' times some of torch's training steps, " \
	"and "                                                                                   \
	"'probing PID perf --torch --exact' a few now; see docs/training.md"

static const struct prb_collected_column torch_calls[] = {
	{"step", "Number of the training step, as the optimizer or probing.step() counts"},
	{"local_step", "The same, counted since recording began"},
	{"micro_step", "Which call of the model in this step; above 1 with gradient accumulation"},
	{"seq", "Number of the call in its step, in the order of their beginnings"},
	{"parent", "The seq of the call that it was called from; NULL: of none"},
	{"depth", "How many calls of modules it was called from"},
	{"module", "Path of the module; of other stages what was done"},
	{"class", "Class of the module; NULL: it is no module"},
	{"stage", "forward, evaluation (without gradients), recompute (forward again while "
		  "gradients are computed), backward, optimizer or data"},
	{"duration", "How long it took, with what it called, without the agent's functions"},
	{"time_offset",
	 "When it began, since the step began, without the time of the agent's functions"},
	{"allocated", "Memory of torch on the GPU at its end; without a GPU resident memory of "
		      "the process"},
	{"max_allocated", "The highest value of that so far; NULL without a GPU"},
	{"cached", "What torch keeps of the GPU's memory; NULL without a GPU"},
	{"allocated_delta", "How much more that is than when it began; of forward only"},
	{"world_size", "Processes in the job"},
	{},
};

static const struct prb_collected_column torch_gpu[] = {
	{"step", "Number of the training step, as in python.torch_trace"},
	{"local_step", "The same, counted since recording began"},
	{"seq", "Number of the call in its step, as in python.torch_trace"},
	{"module", "Path of the module; NULL: it is no module"},
	{"stage", "forward, evaluation, recompute, backward, optimizer, or step: all of it"},
	{"duration", "From when the GPU came to the call's work until it had done it; gaps in "
		     "which it waited for the program are part of it"},
	{},
};

/* As people ask for it: some columns have two names. */
static const struct prb_collected_column torch_trace[] = {
	{"step", "Number of the training step, as the optimizer or probing.step() counts", "step"},
	{"local_step", "The same, counted since recording began", "local_step"},
	{"micro_step", "Which call of the model in this step; above 1 with gradient accumulation",
	 "micro_step"},
	{"seq", "Number of the call in its step, in the order of their beginnings", "seq"},
	{"parent", "The seq of the call that it was called from; NULL: of none", "parent"},
	{"depth", "How many calls of modules it was called from", "depth"},
	{"module", "Path of the module; of other stages what was done", "module"},
	{"operation_name", "The same as module", "module"},
	{"class", "Class of the module; NULL: it is no module", "class"},
	{"stage",
	 "forward, evaluation (without gradients), recompute (forward again while gradients are "
	 "computed), backward, optimizer or data",
	 "stage"},
	{"duration", "How long it took, with what it called", "duration", "ms"},
	{"duration_ms", "The same as duration", "duration", "ms"},
	{"time_offset",
	 "When it began, since the step began, without the time of the agent's functions",
	 "time_offset", "ms"},
	{"allocated",
	 "Memory of torch on the GPU at its end; without a GPU resident memory of the process",
	 "allocated", "bytes"},
	{"max_allocated", "The highest value of that so far; NULL without a GPU", "max_allocated",
	 "bytes"},
	{"cached", "What torch keeps of the GPU's memory; NULL without a GPU", "cached", "bytes"},
	{"allocated_delta", "How much more allocated is than when it began; of forward only",
	 "allocated_delta", "bytes"},
	{"world_size", "Processes in the job", "world_size"},
	{},
};

static const struct prb_collected_column torch_step_timing[] = {
	{"step", "Number of the training step, as the optimizer or probing.step() counts"},
	{"local_step", "The same, counted since recording began"},
	{"kind", "sampled: modules were hooked; discovery: the same, and they got their names; "
		 "unsampled"},
	{"micro_steps", "Calls of the model; NULL if unsampled"},
	{"calls", "Calls of modules; NULL if unsampled"},
	{"duration", "From the end of the step before to its own"},
	{"data", "In data loaders; without one, until the first call of a module"},
	{"forward",
	 "In calls of modules, without the parts below; this, evaluation and backward are "
	 "NULL until a sampled step has shown the outermost modules, and under "
	 "torch.compile"},
	{"evaluation", "In calls of modules without gradients"},
	{"backward", "In torch.autograd.backward()"},
	{"optimizer", "In optimizers, without their closures; NULL if a closure was not seen"},
	{"communication",
	 "In calls of torch.distributed and waits for them; what DDP does by itself "
	 "is in backward"},
	{"checkpoint", "In torch.save() and its like"},
	{"own", "In functions of the agent"},
	{"allocated", "As in python.torch_trace, at its end; NULL if unsampled"},
	{"world_size", "Processes in the job"},
	STEPS,
	EXTREMES("duration"),
	EXTREMES("data"),
	EXTREMES("forward"),
	EXTREMES("evaluation"),
	EXTREMES("backward"),
	EXTREMES("optimizer"),
	EXTREMES("communication"),
	EXTREMES("checkpoint"),
	EXTREMES("own"),
	{},
};

static const struct prb_collected_column torch_nan[] = {
	{"step", "Number of the training step"},
	{"kind",
	 "loss: it is no finite number from this step on, or again one; output: of a module"},
	{"module", "Path of the module"},
	{"class", "Class of the module"},
	{"nan", "How many elements are NaN; 0 and no infinite ones: the loss is a number again"},
	{"inf", "How many are infinite"},
	{"elements", "How many there are"},
	{"inputs_odd", "How many of the inputs have NaN or infinity"},
	{"inputs", "Types and shapes of the inputs, with their bounds, or counts of NaN"},
	{"parameters", "Parameters of the module that have NaN or infinity"},
	{},
};

#define PRB_START_OPS                                                                       \
	"'probing PID perf --torch --ops' records some steps by torch's own profiler; see " \
	"docs/training.md"

static const struct prb_collected_column torch_ops[] = {
	{"step", "Number of the training step, as the optimizer counts", "step"},
	{"name", "Operator of torch, or node of autograd", "name"},
	{"part", "forward, backward, optimizer or data loading; NULL: none of these", "part"},
	{"module", "Path of the innermost module; of backward, that whose forward it is of",
	 "module"},
	{"class", "Class of the module", "class"},
	{"file", "Source file in which the program calls the module", "file"},
	{"lineno", "Line of that call", "lineno"},
	{"shapes", "JSON: shapes of the inputs", "shapes"},
	{"flops", "Operations on numbers, of products of matrices and convolutions", "flops"},
	{"duration", "How long it took, with what it called", "duration", "ms"},
	{"self", "Without the operators that it called", "self", "ms"},
	{"time_offset", "When it began, since the first recorded step began", "time_offset", "ms"},
	{"thread", "Number of the thread, as torch's profiler has it", "thread"},
	{"depth", "How many operators it was called from", "depth"},
	{"op", "Number of the operator in this recording", "op"},
	{},
};

static const struct prb_collected_column torch_kernels[] = {
	{"step", "Number of the training step, as the optimizer counts", "step"},
	{"name", "Kernel, or what was copied", "name"},
	{"kind", "kernel, collective (of NCCL), copy or set (of memory)", "kind"},
	{"part", "Part of the step that launched it, as in torch.ops", "part"},
	{"module", "Path of the module that launched it", "module"},
	{"operator", "Operator that launched it", "operator"},
	{"op", "Its number in torch.ops, of the same recording", "op"},
	{"duration", "How long it ran", "duration", "ms"},
	{"time_offset", "When it began, since the first recorded step began", "time_offset", "ms"},
	{"device", "Number of the GPU", "device"},
	{"stream", "Number of the stream", "stream"},
	{"correlation", "Number that the GPU's library gives it and the call that launched it",
	 "correlation"},
	{},
};

static const struct prb_collected_column comm_collective[] = {
	{"record", "begin: the rank arrived; end: it went on"},
	{"operation",
	 "Method of c10d's process group; ddp_backward: DDP begins to reduce gradients, in "
	 "operations that are not seen one by one"},
	{"group_name", "Name of the process group"},
	{"dtype", "Type of its tensors"},
	{"group_size", "Processes in the group"},
	{"group_rank", "Rank in the group"},
	{"seq", "torch's number of the operation in its group, the same on all ranks"},
	{"bytes", "Of the tensors that it is given first"},
	{"src", "Rank in the group where data comes from; NULL: all, or any"},
	{"dst", "Rank in the group where data goes to; NULL: all"},
	{"duration", "From begin to end; NULL at the begin"},
	{"step", "Number of the training step; NULL: it is not known"},
	{},
};

static const struct prb_collected_column comm_metrics[] = {
	{"operation", "Method of c10d's process group", "operation"},
	{"group_name", "Name of the process group", "group_name"},
	{"seq", "torch's number of the operation in its group, the same on all ranks", "seq"},
	{"src_rank", "Rank in the group where data comes from; NULL: all, or any", "src"},
	{"dst_rank", "Rank in the group where data goes to; NULL: all", "dst"},
	{"bytes", "Of the tensors that it is given first", "bytes", "bytes"},
	{"latency_ms", "From its begin until the program went on", "duration", "ms"},
	{"step", "Number of the training step; NULL: it is not known", "step"},
	{},
};

const struct prb_collected prb_collected_tables[] = {
	{"python", "trace_event", "Events and spans of the program",
	 "the program records them with probing.event() and probing.span(); see docs/python-api.md",
	 trace_event},
	{"main", "training_logs", "Steps of a training",
	 "with 'probing PID config probing.torch.profiling=on' steps of torch are recorded, with "
	 "variables such as epoch and loss; or the program calls probing.step()",
	 training_logs, .history = true},
	{"main", "profiling_data", "Spans that have ended, with their durations",
	 "the program records them with probing.span(); see docs/python-api.md", profiling_data,
	 "python", "trace_event", "record", "span_end"},
	{"main", "memory_usage", "Memory of the process over time",
	 "probing.event(), span() and step() sample it, at most once a second; without them, "
	 "'probing "
	 "PID config probing.memory.interval=1' starts it. process.info has the memory as it is "
	 "now",
	 memory_usage},
	{"main", "memory_allocations", "Sampled allocations of Python, by stack",
	 "'probing PID memory --sites 30s' samples them; python.types has the objects as they are "
	 "now",
	 memory_allocations},
	{"python", "memory", "Memory of the process over time: memory_usage under another name",
	 "see memory_usage; python.types and python.gc have the objects as they are now",
	 (const struct prb_collected_column[]){
		 {"memory_mb", "Resident memory", "memory_mb", "MB"},
		 {"peak_mb", "Its highest value since the process started", "peak_mb", "MB"},
		 {"virtual_mb", "Address space", "virtual_mb", "MB"},
		 {"python_blocks", "Blocks that Python's allocator has given out", "python_blocks"},
		 {"step", "Number of the last step", "step"},
		 {},
	 },
	 "main", "memory_usage"},
	{"python", "variables", "Watched variables at each step",
	 "the program names them with probing.watch(\"loss\") or PROBE_TORCH_EXPRS=\"loss@train\", "
	 "and "
	 "calls probing.step() or trains with torch; python.locals has the variables of all frames "
	 "as they are now",
	 variables, .history = true},
	{"python", "torch_calls", "Calls of torch's modules in sampled training steps",
	 PRB_START_TORCH, torch_calls},
	{"python", "torch_trace",
	 "Calls of torch's modules in sampled training steps, with the usual names of columns",
	 PRB_START_TORCH, torch_trace, "python", "torch_calls"},
	{"python", "torch_gpu", "How long the GPU took for calls in sampled training steps",
	 PRB_START_TORCH, torch_gpu},
	{"python", "torch_step_timing", "Training steps of torch", PRB_START_TORCH,
	 torch_step_timing, .history = true},
	{"python", "comm_collective",
	 "Operations of torch.distributed, as this rank begins and ends them", PRB_START_TORCH,
	 comm_collective},
	{"python", "torch_nan", "Losses and outputs of modules with NaN or infinity",
	 "'probing PID config probing.torch.nan=on' checks them; no row: all were finite",
	 torch_nan},
	{"torch", "ops", "Calls of torch's operators in recorded training steps", PRB_START_OPS,
	 torch_ops, "python", "torch_ops"},
	{"torch", "kernels", "What ran on GPUs in recorded training steps", PRB_START_OPS,
	 torch_kernels, "python", "torch_kernels"},
	{"main", "comm_metrics", "Operations of torch.distributed that have ended", PRB_START_TORCH,
	 comm_metrics, "python", "comm_collective", "record", "end"},
	{},
};

const struct prb_collected *prb_collected_find(const char *schema, const char *name)
{
	for (const struct prb_collected *c = prb_collected_tables; c->name; c++)
		if (!strcasecmp(c->name, name) && (!schema || !strcasecmp(c->schema, schema)))
			return c;
	return NULL;
}

const struct prb_collected *prb_collected_find_qualified(const char *word)
{
	const char *dot = strchr(word, '.');
	char schema[32];

	snprintf(schema, sizeof(schema), "%.*s", dot ? (int)(dot - word) : 0, word);
	return prb_collected_find(dot ? schema : NULL, dot ? dot + 1 : word);
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sql/spec/collected.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

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
	{"duration", "Time since the step before"},
	{"metrics", "JSON of what else the program tells"},
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

static const struct prb_collected_column variables[] = {
	{"name", "What is watched, as the program gives it"},
	{"function", "The function in which it was found"},
	{"number", "Its value, if float() converts it"},
	{"value", "Its value as text; up to 200 characters"},
	{"type", "Its type, or that of the exception that evaluating it raised"},
	{"step", "Number of the step"},
	{},
};

const struct prb_collected prb_collected_tables[] = {
	{"python", "trace_event", "Events and spans of the program",
	 "the program records them with probing.event() and probing.span(); see docs/python-api.md",
	 trace_event},
	{"main", "training_logs", "Steps of a training",
	 "the program records them with probing.step(); see docs/python-api.md", training_logs},
	{"main", "profiling_data", "Spans that have ended, with their durations",
	 "the program records them with probing.span(); see docs/python-api.md", profiling_data,
	 "python", "trace_event", "record", "span_end"},
	{"main", "memory_usage", "Memory of the process over time",
	 "probing.event(), span() and step() sample it, at most once a second; without them, "
	 "'probing "
	 "PID config probing.memory.interval=1' starts it. process.info has the memory as it is "
	 "now",
	 memory_usage},
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
	 "calls probing.step(); python.locals has the variables of all frames as they are now",
	 variables},
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

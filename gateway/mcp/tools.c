/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/mcp/tools.h"

#include <math.h>
#include <string.h>

#include "base/cleanup.h"

/** Longer texts would fill an assistant's context. */
static const char SHORT[] = "--max-value=200";

void prb_tool_call_deinit(struct prb_tool_call *call)
{
	prb_words_deinit(&call->words);
	prb_str_deinit(&call->input);
}

static const json_t *argument(const struct prb_tool_call *call, const char *name)
{
	return call->arguments ? json_object_get(call->arguments, name) : NULL;
}

static const char *text(const struct prb_tool_call *call, const char *name)
{
	return json_string_value(argument(call, name));
}

static bool flag(const struct prb_tool_call *call, const char *name)
{
	return json_is_true(argument(call, name));
}

/** Adds a fixed word. */
static struct prb_error *add(struct prb_tool_call *call, const char *word)
{
	return prb_words_add_ours(&call->words, (const char *const[]){word, NULL});
}

/** Adds a word that the assistant chose. */
static struct prb_error *add_chosen(struct prb_tool_call *call, const char *word)
{
	return prb_words_add(&call->words, "%s", word);
}

static struct prb_error *add_flag(struct prb_tool_call *call, const char *name)
{
	return flag(call, name) ? prb_words_add(&call->words, "--%s", name) : NULL;
}

static struct prb_error *add_number(struct prb_tool_call *call, const char *name)
{
	const json_t *value = argument(call, name);

	return json_is_number(value)
		       ? prb_words_add(&call->words, "--%s=%.0f", name, json_number_value(value))
		       : NULL;
}

static struct prb_error *add_target(struct prb_tool_call *call)
{
	const char *target = text(call, "target");

	return prb_served_words(call->served, target ? target : "", &call->words);
}

static void give_input(struct prb_tool_call *call, const char *name)
{
	prb_str_puts(&call->input, text(call, name));
	call->has_input = true;
}

static struct prb_error *prepare_list(struct prb_tool_call *call)
{
	PRB_TRY(add(call, "list"));
	return add(call, "--json");
}

/** Of all processes, if none is named here. */
static struct prb_error *prepare_why(struct prb_tool_call *call)
{
	if (text(call, "target"))
		PRB_TRY(add_target(call));
	else if (call->served->named.count)
		PRB_TRY(prb_served_words_all(call->served, &call->words));
	PRB_TRY(add(call, "why"));
	return add(call, "--json");
}

static struct prb_error *prepare_dump(struct prb_tool_call *call)
{
	static const char *const FLAGS[] = {"locals", "native", "json"};

	PRB_TRY(add_target(call));
	PRB_TRY(add(call, "debug"));
	PRB_TRY(add(call, "--dump"));
	for (size_t i = 0; i < sizeof(FLAGS) / sizeof(*FLAGS); i++)
		PRB_TRY(add_flag(call, FLAGS[i]));
	if (flag(call, "locals"))
		PRB_TRY(add(call, SHORT));
	PRB_TRY(add(call, "--full-paths"));
	return add_number(call, "tid");
}

static struct prb_error *prepare_query(struct prb_tool_call *call)
{
	PRB_TRY(add_target(call));
	PRB_TRY(add(call, "query"));
	PRB_TRY(add(call, "--format=json"));
	PRB_TRY(add(call, "--timeout=30s"));
	PRB_TRY(add(call, "-"));
	give_input(call, "sql");
	return NULL;
}

static struct prb_error *prepare_tables(struct prb_tool_call *call)
{
	const char *table = text(call, "table");

	PRB_TRY(add(call, "tables"));
	PRB_TRY(add(call, "--"));
	return table ? add_chosen(call, table) : NULL;
}

static struct prb_error *prepare_print(struct prb_tool_call *call)
{
	PRB_TRY(add_target(call));
	PRB_TRY(add(call, "print"));
	PRB_TRY(add(call, "--json"));
	PRB_TRY(add_number(call, "tid"));
	PRB_TRY(add_number(call, "frame"));
	PRB_TRY(add(call, "--"));
	return add_chosen(call, text(call, "expression"));
}

static struct prb_error *prepare_perf(struct prb_tool_call *call)
{
	const json_t *duration = argument(call, "duration");
	const char *mode = text(call, "mode");
	double seconds = duration ? json_number_value(duration) : 5;

	if (!(seconds > 0) || seconds > 300)
		return prb_error_create(PRB_ERROR_USAGE, "'duration' is over 0 and at most 300 s");
	if (mode && strcmp(mode, "cpu") != 0 && strcmp(mode, "wall") != 0)
		return prb_error_create(PRB_ERROR_USAGE, "the mode is cpu or wall, not '%.20s'",
					mode);
	PRB_TRY(add_target(call));
	PRB_TRY(add(call, "performance"));
	PRB_TRY(prb_words_add(&call->words, "--duration=%.3fs", seconds));
	if (mode)
		PRB_TRY(prb_words_add(&call->words, "--mode=%s", mode));
	if (flag(call, "native"))
		PRB_TRY(add(call, "--cc"));
	call->seconds += seconds;
	return NULL;
}

static struct prb_error *prepare_memory(struct prb_tool_call *call)
{
	const json_t *growth = argument(call, "growth");
	double seconds = json_number_value(growth);

	if (growth && (!(seconds > 0) || seconds > 600))
		return prb_error_create(PRB_ERROR_USAGE, "'growth' is over 0 and at most 600 s");
	PRB_TRY(add_target(call));
	PRB_TRY(add(call, "memory"));
	if (growth)
		PRB_TRY(prb_words_add(&call->words, "--growth=%.3fs", seconds));
	call->seconds += seconds;
	return NULL;
}

/** Its name is chosen by the command, so that no assistant can overwrite a file. */
static struct prb_error *prepare_snapshot(struct prb_tool_call *call)
{
	PRB_TRY(add_target(call));
	PRB_TRY(add(call, "snapshot"));
	return add_flag(call, "redact");
}

static struct prb_error *prepare_skill(struct prb_tool_call *call)
{
	PRB_TRY(add_target(call));
	PRB_TRY(add(call, "skill"));
	PRB_TRY(add(call, "run"));
	PRB_TRY(add(call, "--"));
	return add_chosen(call, text(call, "name"));
}

static struct prb_error *prepare_server(struct prb_tool_call *call)
{
	PRB_TRY(add_target(call));
	PRB_TRY(add(call, "server"));
	return add(call, "--exit-zero");
}

static struct prb_error *prepare_eval(struct prb_tool_call *call)
{
	PRB_TRY(add_target(call));
	PRB_TRY(add(call, "eval"));
	PRB_TRY(add(call, "--timeout=20s"));
	PRB_TRY(add(call, "-"));
	give_input(call, "code");
	return NULL;
}

#define TARGET                                                                                    \
	{                                                                                         \
		"target", PRB_TOOL_TEXT, false,                                                   \
			"Pid of a process, as list_processes tells it, or the id of a file that " \
			"is served; may be left out if only one is"                               \
	}

const struct prb_tool prb_tools[] = {
	{"list_processes",
	 "List Python processes",
	 "Python processes of this machine: pid, version, threads, rank in a distributed job, "
	 "command line, and why one cannot be read.",
	 {},
	 false,
	 20,
	 prepare_list},
	{"why",
	 "What is wrong",
	 "What is wrong with a process, the worst first, or that nothing is: each finding with its "
	 "evidence, its confidence, what would refute it, and the next step. Start here when a "
	 "program hangs or is slow. Only what is proven is certain; 'unknown' is an answer.",
	 {{"target", PRB_TOOL_TEXT, false,
	   "Pid of a process, or the id of a file that is served; all, if it is left out"}},
	 false,
	 60,
	 prepare_why,
	 .judges = true},
	{"dump",
	 "Stacks of all threads",
	 "Stacks of all threads of a process, exact, without stopping it: what each thread does or "
	 "waits for, who holds the GIL, functions with files and lines.",
	 {TARGET,
	  {"tid", PRB_TOOL_NUMBER, false, "Only this thread"},
	  {"locals", PRB_TOOL_FLAG, false, "Variables of each frame too"},
	  {"native", PRB_TOOL_FLAG, false, "C and C++ frames too"},
	  {"json", PRB_TOOL_FLAG, false, "As JSON, nothing folded: much longer"}},
	 false,
	 30,
	 prepare_dump},
	{"query",
	 "SQL over a process",
	 "Rows of SQL (SQLite) over a process: python.threads, python.stacks, python.locals, "
	 "python.types, process.info, cpu.tasks and others; 'tables' lists them. Only reads. "
	 "Use LIMIT.",
	 {TARGET, {"sql", PRB_TOOL_TEXT, true, "One statement or several"}},
	 false,
	 35,
	 prepare_query},
	{"tables",
	 "Tables and columns",
	 "Tables that 'query' can read, or the columns of one with their meaning.",
	 {{"table", PRB_TOOL_TEXT, false, "Such as python.threads, or a schema: python"}},
	 false,
	 10,
	 prepare_tables},
	{"print_value",
	 "Value of an expression",
	 "Value of names, attributes, constant indexes, len() and type() in a frame, such as "
	 "self.layers[3].name, read from outside without running code.",
	 {TARGET,
	  {"expression", PRB_TOOL_TEXT, true, "The expression"},
	  {"tid", PRB_TOOL_NUMBER, false, "Thread; the main one"},
	  {"frame", PRB_TOOL_NUMBER, false, "Python frame; 0, the innermost"}},
	 false,
	 30,
	 prepare_print},
	{"perf",
	 "Where the time goes",
	 "Samples a process for some seconds from outside, and tells which functions use the "
	 "processors, with bounds.",
	 {TARGET,
	  {"duration", PRB_TOOL_NUMBER, false, "Seconds; 5, at most 300"},
	  {"mode", PRB_TOOL_TEXT, false, "cpu (the default), or wall: time that passed"},
	  {"native", PRB_TOOL_FLAG, false, "C and C++ functions too"}},
	 false,
	 30,
	 prepare_perf},
	{"memory",
	 "What takes the memory",
	 "Memory of a process: the kernel's figures, Python objects by type, tensors with what "
	 "holds "
	 "them. With 'growth': what grew in so many seconds, and which objects hold it.",
	 {TARGET, {"growth", PRB_TOOL_NUMBER, false, "Seconds, at most 600"}},
	 false,
	 150,
	 prepare_memory},
	{"snapshot",
	 "Save what can be read",
	 "Writes all that can be read of a process to a new file probing-PID.snapshot in the "
	 "current folder, for later and for other machines: 'probing FILE dump'. It contains "
	 "values "
	 "of variables.",
	 {TARGET, {"redact", PRB_TOOL_FLAG, false, "Leave out values of variables"}},
	 false,
	 120,
	 prepare_snapshot},
	{"skill",
	 "Diagnosis",
	 "A named diagnosis, with what its rows mean: hang, deadlock, gil (who holds it), slow, "
	 "leak, server (of inference).",
	 {TARGET, {"name", PRB_TOOL_TEXT, true, "hang, deadlock, gil, slow, leak or server"}},
	 false,
	 60,
	 prepare_skill},
	{"server",
	 "Inference server",
	 "What keeps the requests of an inference server (vLLM, SGLang), in one sentence, and its "
	 "processes with their queues and KV cache. Any of its processes may be the target. Start "
	 "here when a server is healthy by its port and answers nothing, or logs \"No available "
	 "shared memory broadcast block\".",
	 {TARGET},
	 false,
	 30,
	 prepare_server},
	{"eval",
	 "Run code in a process",
	 "Runs Python code in the process, in the namespace of __main__, and tells what it prints "
	 "and its value. This changes the process.",
	 {TARGET, {"code", PRB_TOOL_TEXT, true, "The code"}},
	 true,
	 30,
	 prepare_eval},
	{},
};

static struct prb_error *check(const struct prb_tool_param *param, const json_t *value)
{
	static const char *const NAMES[] = {[PRB_TOOL_TEXT] = "a text",
					    [PRB_TOOL_FLAG] = "true or false",
					    [PRB_TOOL_NUMBER] = "a number that is not negative"};
	bool right = param->type == PRB_TOOL_TEXT   ? json_is_string(value)
		     : param->type == PRB_TOOL_FLAG ? json_is_boolean(value)
						    : json_is_number(value);

	if (right && param->type == PRB_TOOL_NUMBER)
		right = json_number_value(value) >= 0 && json_number_value(value) < 1e9;
	if (right && param->type == PRB_TOOL_TEXT)
		right = strlen(json_string_value(value)) == json_string_length(value);
	return right ? NULL
		     : prb_error_create(PRB_ERROR_USAGE, "'%s' is %s", param->name,
					NAMES[param->type]);
}

static const struct prb_tool_param *find_param(const struct prb_tool *tool, const char *name)
{
	for (const struct prb_tool_param *p = tool->params; p->name; p++)
		if (!strcmp(p->name, name))
			return p;
	return NULL;
}

struct prb_error *prb_tool_prepare(struct prb_tool_call *call)
{
	const struct prb_tool *tool = call->tool;
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)(uintptr_t)call->arguments, name, value)
	{
		const struct prb_tool_param *param = find_param(tool, name);

		if (!param)
			return prb_error_create(PRB_ERROR_USAGE, "'%s' has no argument '%.50s'",
						tool->name, name);
		PRB_TRY(check(param, value));
	}
	for (const struct prb_tool_param *p = tool->params; p->name; p++)
		if (p->required && !argument(call, p->name))
			return prb_error_create(PRB_ERROR_USAGE, "the argument '%s' is missing",
						p->name);
	call->seconds = tool->seconds;
	return tool->prepare(call);
}

static void put_schema(struct prb_json *json, const struct prb_tool *tool)
{
	static const char *const TYPES[] = {[PRB_TOOL_TEXT] = "string",
					    [PRB_TOOL_FLAG] = "boolean",
					    [PRB_TOOL_NUMBER] = "number"};

	prb_json_open(json, "inputSchema", '{');
	prb_json_text(json, "type", "object");
	prb_json_open(json, "properties", '{');
	for (const struct prb_tool_param *p = tool->params; p->name; p++) {
		prb_json_open(json, p->name, '{');
		prb_json_text(json, "type", TYPES[p->type]);
		prb_json_text(json, "description", p->help);
		prb_json_close(json, '}');
	}
	prb_json_close(json, '}');
	prb_json_open(json, "required", '[');
	for (const struct prb_tool_param *p = tool->params; p->name; p++)
		if (p->required)
			prb_json_text(json, NULL, p->name);
	prb_json_close(json, ']');
	prb_json_bool(json, "additionalProperties", false);
	prb_json_close(json, '}');
}

void prb_tools_list(struct prb_json *json, bool allow_write)
{
	prb_json_open(json, "tools", '[');
	for (const struct prb_tool *tool = prb_tools; tool->name; tool++) {
		if (tool->writes && !allow_write)
			continue;
		prb_json_open(json, NULL, '{');
		prb_json_text(json, "name", tool->name);
		prb_json_text(json, "title", tool->title);
		prb_json_text(json, "description", tool->description);
		put_schema(json, tool);
		prb_json_open(json, "annotations", '{');
		prb_json_bool(json, "readOnlyHint", !tool->writes);
		prb_json_bool(json, "destructiveHint", tool->writes);
		prb_json_close(json, '}');
		prb_json_close(json, '}');
	}
	prb_json_close(json, ']');
}

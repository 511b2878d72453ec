/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/mcp/tools.h"
#include "gateway/choices.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
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

/** The id of the target that this argument names, or "". */
static struct prb_error *target_of(const struct prb_tool_call *call, const char *name,
				   struct prb_str *ret)
{
	const json_t *target = argument(call, name);

	if (json_is_integer(target))
		prb_str_printf(ret, "%lld", (long long)json_integer_value(target));
	else if (target)
		prb_str_puts(ret, json_string_value(target));
	return ret->failed ? prb_error_nomem() : NULL;
}

static struct prb_error *add_target(struct prb_tool_call *call)
{
	prb_auto_str struct prb_str id = {};

	PRB_TRY(target_of(call, "target", &id));
	return prb_served_words(call->served, prb_str_text(&id), &call->words);
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
static struct prb_error *add_targets(struct prb_tool_call *call)
{
	if (argument(call, "target"))
		return add_target(call);
	return call->served->named.count ? prb_served_words_all(call->served, &call->words) : NULL;
}

static struct prb_error *prepare_why(struct prb_tool_call *call)
{
	PRB_TRY(add_targets(call));
	PRB_TRY(add(call, "why"));
	return add(call, "--json");
}

static struct prb_error *prepare_overview(struct prb_tool_call *call)
{
	PRB_TRY(add_targets(call));
	return add(call, "overview");
}

/** What reads all ranks of a job reads processes that nobody has named. */
static struct prb_error *prepare_job(struct prb_tool_call *call, const char *action)
{
	prb_auto_str struct prb_str id = {};

	if (call->served->named.count)
		return prb_error_hint(
			prb_error_create(PRB_ERROR_PERMISSION,
					 "only named processes may be read here, and a job has "
					 "others"),
			"the user has to start 'probing mcp' without targets");
	PRB_TRY(target_of(call, "target", &id));
	PRB_TRY(add(call, "cluster"));
	PRB_TRY(add(call, action));
	PRB_TRY(add(call, "--json"));
	PRB_TRY(add(call, "--"));
	return id.length ? add_chosen(call, prb_str_text(&id)) : NULL;
}

static struct prb_error *prepare_hang(struct prb_tool_call *call)
{
	return prepare_job(call, "hang");
}

static struct prb_error *prepare_slow(struct prb_tool_call *call)
{
	return prepare_job(call, "slow");
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
	PRB_TRY(add(call, "--format=ndjson"));
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

/** The file that the tool "snapshot" writes of a process. */
static struct prb_error *add_snapshot(struct prb_tool_call *call, const char *id)
{
	const struct prb_served *served = call->served;
	const char *only = served->named.count == 1 ? served->named.items[0].id : id;
	pid_t pid = prb_served_pid(served, *id ? id : only);

	return pid > 0 ? prb_words_add(&call->words, "probing-%d.snapshot", (int)pid)
		       : prb_error_create(PRB_ERROR_USAGE, "the argument 'before' is missing");
}

static struct prb_error *prepare_diff(struct prb_tool_call *call)
{
	prb_auto_str struct prb_str id = {}, before = {};

	PRB_TRY(target_of(call, "target", &id));
	PRB_TRY(prb_served_check(call->served, prb_str_text(&id)));
	PRB_TRY(target_of(call, "before", &before));
	PRB_TRY(add(call, "diff"));
	PRB_TRY(add(call, "--"));
	PRB_TRY(before.length ? prb_served_word(call->served, prb_str_text(&before), &call->words)
			      : add_snapshot(call, prb_str_text(&id)));
	return prb_served_word(call->served, prb_str_text(&id), &call->words);
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

#define TARGET                                                                               \
	{                                                                                    \
		"target", PRB_TOOL_TARGET, false,                                            \
			"Pid of a process, or the id of a file that is served; may be left " \
			"out if only one is"                                                 \
	}
#define TARGETS                                                                                \
	{                                                                                      \
		"target", PRB_TOOL_TARGET, false,                                              \
			"Pid of a process, or the id of a file that is served; all, if it is " \
			"left out"                                                             \
	}
#define JOB                                                                                 \
	{                                                                                   \
		"target", PRB_TOOL_TARGET, false,                                           \
			"Pid of any rank, or a part of the job's name; may be left out if " \
			"there is one job"                                                  \
	}
#define SKILLS "hang deadlock gil slow leak server"

const struct prb_tool prb_tools[] = {
	{"list_processes",
	 "List Python processes",
	 "Python processes of this machine: pid, version, threads, rank in a distributed job, "
	 "command line, and why one cannot be read.",
	 {},
	 false,
	 20,
	 prepare_list,
	 .output = PRB_TOOL_JSON},
	{"why",
	 "What is wrong",
	 "What is wrong with a process, the worst first, or that nothing is: each finding with its "
	 "evidence, its confidence, what would refute it, and the next step. Start here when a "
	 "program hangs or is slow. Only what is proven is certain; 'unknown' is an answer.",
	 {TARGETS},
	 false,
	 60,
	 prepare_why,
	 .judges = true,
	 .output = PRB_TOOL_JSON},
	{"overview",
	 "What all processes do",
	 "What is wrong with all processes and jobs of this machine in one sentence each, and a "
	 "few "
	 "lines for each process: what its main thread does, processor, memory. Start here when it "
	 "is not known which process is meant.",
	 {TARGETS},
	 false,
	 60,
	 prepare_overview},
	{"hang",
	 "Why a distributed job hangs",
	 "The verdict on a job of several ranks (torchrun, MPI, Slurm, Ray): which rank the others "
	 "wait for and what it does instead, with evidence and confidence; or that it moves.",
	 {JOB},
	 false,
	 60,
	 prepare_hang,
	 .judges = true,
	 .output = PRB_TOOL_JSON},
	{"slow",
	 "Which rank slows a job",
	 "Looks for ten seconds at a job that moves: which rank the others wait for, and in which "
	 "functions it spends more time than they do.",
	 {JOB},
	 false,
	 90,
	 prepare_slow,
	 .judges = true,
	 .output = PRB_TOOL_JSON,
	 .once = true},
	{"dump",
	 "Stacks of all threads",
	 "Stacks of all threads of a process, exact: what each thread does or waits for, who holds "
	 "the GIL, functions with files and lines. Only threads that run are stopped, for "
	 "microseconds.",
	 {TARGET,
	  {"tid", PRB_TOOL_INTEGER, false, "Only this thread"},
	  {"locals", PRB_TOOL_FLAG, false, "Variables of each frame too"},
	  {"native", PRB_TOOL_FLAG, false, "C and C++ frames too"},
	  {"json", PRB_TOOL_FLAG, false, "As JSON, nothing folded: much longer"}},
	 false,
	 30,
	 prepare_dump},
	{"query",
	 "SQL over a process",
	 "Rows of SQL (SQLite) over a process: python.threads, python.stacks, python.locals, "
	 "python.types, process.info, cpu.tasks and others; 'tables' lists them. Only reads.",
	 {TARGET,
	  {"sql", PRB_TOOL_TEXT, true, "One statement or several"},
	  {"limit", PRB_TOOL_INTEGER, false, "Rows of this answer; 100", .least = 1,
	   .most = 10000}},
	 false,
	 35,
	 prepare_query,
	 .output = PRB_TOOL_ROWS},
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
	  {"tid", PRB_TOOL_INTEGER, false, "Thread; the main one"},
	  {"frame", PRB_TOOL_INTEGER, false, "Python frame; 0, the innermost"}},
	 false,
	 30,
	 prepare_print,
	 .output = PRB_TOOL_JSON},
	{"perf",
	 "Where the time goes",
	 "Samples a process for some seconds from outside, and tells which functions use the "
	 "processors, with bounds.",
	 {TARGET,
	  {"duration", PRB_TOOL_SECONDS, false, "Seconds; 5", .most = 300},
	  {"mode", PRB_TOOL_TEXT, false, "cpu (the default), or wall: time that passed",
	   .choices = "cpu wall"},
	  {"native", PRB_TOOL_FLAG, false, "C and C++ functions too"}},
	 false,
	 30,
	 prepare_perf,
	 .once = true},
	{"memory",
	 "What takes the memory",
	 "Memory of a process: the kernel's figures, Python objects by type, tensors with what "
	 "holds "
	 "them. With 'growth': what grew in so many seconds, and which objects hold it.",
	 {TARGET, {"growth", PRB_TOOL_SECONDS, false, "Seconds", .most = 600}},
	 false,
	 150,
	 prepare_memory,
	 .once = true},
	{"snapshot",
	 "Save what can be read",
	 "Writes all that can be read of a process to a new file probing-PID.snapshot in the "
	 "current folder, for later and for other machines: 'probing FILE dump'. It contains "
	 "values "
	 "of variables.",
	 {TARGET, {"redact", PRB_TOOL_FLAG, false, "Leave out values of variables"}},
	 false,
	 120,
	 prepare_snapshot,
	 .once = true,
	 .saves = true},
	{"diff",
	 "What has changed",
	 "Which threads have moved, started and ended since the tool snapshot was called for the "
	 "process, and which of their variables have another value. A thread that has not moved "
	 "may hang, or only be idle: ask 'why'.",
	 {TARGET,
	  {"before", PRB_TOOL_TARGET, false,
	   "Id of a file that is served; what snapshot wrote of the process, if it is left out"}},
	 false,
	 60,
	 prepare_diff},
	{"skill",
	 "Diagnosis",
	 "A named diagnosis, with what its rows mean: hang, deadlock, gil (who holds it), slow, "
	 "leak, server (of inference).",
	 {TARGET, {"name", PRB_TOOL_TEXT, true, "Which one", .choices = SKILLS}},
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
	 prepare_eval,
	 .once = true},
	{},
};

/** Arguments of all tools; the first one only where the output can be asked for again. */
static const struct prb_tool_param COMMON[] = {
	{"cursor", PRB_TOOL_TEXT, false, "To go on: what the answer before gave for it"},
	{"max_bytes", PRB_TOOL_INTEGER, false, "Of the answer; 8000", .least = 1000,
	 .most = 200000},
	{},
};
enum { USUAL_BYTES = 8000, USUAL_ROWS = 100 };

static const struct prb_tool_param *common_of(const struct prb_tool *tool)
{
	return tool->once ? COMMON + 1 : COMMON;
}

static double most_of(const struct prb_tool_param *param)
{
	return param->most > 0 ? param->most : 1e9;
}

static struct prb_error *check_text(const struct prb_tool_param *param, const json_t *value)
{
	const char *given = json_string_value(value);

	if (!given || strlen(given) != json_string_length(value))
		return prb_error_create(PRB_ERROR_USAGE, "'%s' is a text", param->name);
	return param->choices ? prb_choices_check(param->name, param->choices, given) : NULL;
}

static struct prb_error *check_number(const struct prb_tool_param *param, const json_t *value)
{
	bool whole = param->type == PRB_TOOL_INTEGER;
	double number = json_number_value(value);

	if (json_is_number(value) && number <= most_of(param) &&
	    (whole ? number >= param->least && number == floor(number) : number > 0))
		return NULL;
	return prb_error_create(PRB_ERROR_USAGE, "'%s' is %s%g and at most %g", param->name,
				whole ? "a whole number, at least " : "a number over ",
				param->least, most_of(param));
}

static struct prb_error *check(const struct prb_tool_param *param, const json_t *value)
{
	switch (param->type) {
	case PRB_TOOL_TEXT:
		return check_text(param, value);
	case PRB_TOOL_TARGET:
		return json_is_integer(value) && json_integer_value(value) > 0
			       ? NULL
			       : check_text(param, value);
	case PRB_TOOL_FLAG:
		return json_is_boolean(value)
			       ? NULL
			       : prb_error_create(PRB_ERROR_USAGE, "'%s' is true or false",
						  param->name);
	case PRB_TOOL_INTEGER:
	case PRB_TOOL_SECONDS:
		return check_number(param, value);
	}
	return NULL;
}

static const struct prb_tool_param *find_param(const struct prb_tool *tool, const char *name)
{
	for (const struct prb_tool_param *p = tool->params; p->name; p++)
		if (!strcmp(p->name, name))
			return p;
	for (const struct prb_tool_param *p = common_of(tool); p->name; p++)
		if (!strcmp(p->name, name))
			return p;
	return NULL;
}

/** Names all that a tool takes, in one line. */
static struct prb_error *no_argument(const struct prb_tool *tool, const char *name)
{
	prb_auto_str struct prb_str known = {};

	for (const struct prb_tool_param *p = tool->params; p->name; p++)
		prb_str_printf(&known, "%s, ", p->name);
	for (const struct prb_tool_param *p = common_of(tool); p->name; p++)
		prb_str_printf(&known, "%s%s", p->name, p[1].name ? ", " : "");
	return prb_error_hint(
		prb_error_create(PRB_ERROR_USAGE, "'%s' has no argument '%.50s'", tool->name, name),
		"it takes: %s", prb_str_text(&known));
}

/** Which part of its output is answered. */
static struct prb_error *take_part(struct prb_tool_call *call)
{
	const char *cursor = text(call, "cursor");
	const json_t *bytes = argument(call, "max_bytes"), *rows = argument(call, "limit");

	call->part = (struct prb_answer_part){
		.rows = rows ? (size_t)json_number_value(rows) : USUAL_ROWS,
		.most = bytes ? (size_t)json_number_value(bytes) : USUAL_BYTES,
		.pages = !call->tool->once};
	if (!cursor)
		return NULL;
	if (!*cursor || strlen(cursor) > 8 || strspn(cursor, "0123456789") != strlen(cursor))
		return prb_error_create(PRB_ERROR_USAGE,
					"'cursor' is what an answer gave as next_cursor");
	call->part.first = (size_t)atol(cursor);
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
			return no_argument(tool, name);
		PRB_TRY(check(param, value));
	}
	for (const struct prb_tool_param *p = tool->params; p->name; p++)
		if (p->required && !argument(call, p->name))
			return prb_error_create(PRB_ERROR_USAGE, "the argument '%s' is missing",
						p->name);
	PRB_TRY(take_part(call));
	call->seconds = tool->seconds;
	return tool->prepare(call);
}

const char *prb_tool_hint(const char *hint)
{
	static const char *const HINTS[][2] = {
		{"/v1/targets lists them", "the tool list_processes lists them"},
		{"say which process is meant: pid=PID",
		 "say which process is meant by the argument target"},
		{"'probing tables' lists them", "the tool tables lists them"},
		{"allow more with --timeout, or ask for less", "ask for less: it may take 30 s"},
	};

	for (size_t i = 0; i < PRB_ARRAY_SIZE(HINTS); i++)
		if (!strcmp(hint, HINTS[i][0]))
			return HINTS[i][1];
	return hint;
}

static void put_type(struct prb_json *json, const struct prb_tool_param *p)
{
	static const char *const TYPES[] = {[PRB_TOOL_TEXT] = "string",
					    [PRB_TOOL_FLAG] = "boolean",
					    [PRB_TOOL_INTEGER] = "integer",
					    [PRB_TOOL_SECONDS] = "number"};

	if (p->type == PRB_TOOL_TARGET) {
		prb_json_open(json, "type", '[');
		prb_json_text(json, NULL, "integer");
		prb_json_text(json, NULL, "string");
		prb_json_close(json, ']');
		return;
	}
	prb_json_text(json, "type", TYPES[p->type]);
	if (p->choices)
		prb_choices_put(json, p->choices);
	if (p->type == PRB_TOOL_INTEGER)
		prb_json_real(json, "minimum", p->least, 0);
	if (p->type == PRB_TOOL_SECONDS)
		prb_json_real(json, "exclusiveMinimum", 0, 0);
	if (p->most > 0)
		prb_json_real(json, "maximum", p->most, 0);
}

static void put_param(struct prb_json *json, const struct prb_tool_param *p)
{
	prb_json_open(json, p->name, '{');
	put_type(json, p);
	prb_json_text(json, "description", p->help);
	prb_json_close(json, '}');
}

static void put_schema(struct prb_json *json, const struct prb_tool *tool)
{
	prb_json_open(json, "inputSchema", '{');
	prb_json_text(json, "type", "object");
	prb_json_open(json, "properties", '{');
	for (const struct prb_tool_param *p = tool->params; p->name; p++)
		put_param(json, p);
	for (const struct prb_tool_param *p = common_of(tool); p->name; p++)
		put_param(json, p);
	prb_json_close(json, '}');
	prb_json_open(json, "required", '[');
	for (const struct prb_tool_param *p = tool->params; p->name; p++)
		if (p->required)
			prb_json_text(json, NULL, p->name);
	prb_json_close(json, ']');
	prb_json_bool(json, "additionalProperties", false);
	prb_json_close(json, '}');
}

/** What its structured content is. */
static void put_output(struct prb_json *json, const struct prb_tool *tool)
{
	static const char ROWS[] = "{\"type\":\"object\",\"properties\":{\"rows\":{\"type\":"
				   "\"array\",\"items\":{\"type\":\"object\"}},\"next_cursor\":"
				   "{\"type\":[\"string\",\"null\"]}},\"required\":[\"rows\","
				   "\"next_cursor\"]}";

	if (tool->output == PRB_TOOL_LINES)
		return;
	prb_str_printf(json->out, ",\"outputSchema\":%s",
		       tool->output == PRB_TOOL_ROWS ? ROWS : "{\"type\":\"object\"}");
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
		put_output(json, tool);
		prb_json_open(json, "annotations", '{');
		prb_json_bool(json, "readOnlyHint", !tool->writes && !tool->saves);
		prb_json_bool(json, "destructiveHint", tool->writes);
		prb_json_close(json, '}');
		prb_json_close(json, '}');
	}
	prb_json_close(json, ']');
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The requests that a gateway answers: one table. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "gateway/gateway_private.h"
#include "gateway/skills/skills.h"
#include "target/proc/process.h"

static struct prb_error *target_words(struct prb_request *r)
{
	return prb_served_words(&r->gateway->served, r->id, &r->words);
}

static struct prb_error *answer_server(struct prb_request *r)
{
	struct prb_json json = {&r->reply};

	prb_json_open(&json, NULL, '{');
	prb_json_text(&json, "version", PRB_VERSION);
	prb_json_bool(&json, "allow_write", prb_may_write(r));
	prb_json_bool(&json, "all", !r->gateway->served.named.count);
	prb_json_close(&json, '}');
	return NULL;
}

static struct prb_error *make_list(struct prb_request *r)
{
	return prb_served_list(&r->gateway->served, &r->reply);
}

static struct prb_error *answer_targets(struct prb_request *r)
{
	PRB_TRY(prb_words_add(&r->words, "list"));
	PRB_TRY(prb_words_add(&r->words, "--json"));
	r->finish = make_list;
	prb_request_start(r);
	return NULL;
}

/**
 * Source files are opened with the rights of the target's user: clients with the token are trusted.
 */
static struct prb_error *check_source(struct prb_request *r)
{
	pid_t pid = prb_served_pid(&r->gateway->served, r->id);
	struct prb_process process = {};

	if (!prb_param_flag(r, "source") || !pid)
		return NULL;
	PRB_TRY(prb_process_describe(pid, &process));
	uid_t uid = process.uid;
	prb_process_deinit(&process);
	if (uid == geteuid())
		return NULL;
	return prb_error_hint(
		prb_error_create(PRB_ERROR_PERMISSION,
				 "source lines are shown of processes of user %u only", geteuid()),
		"leave out 'source', or serve as the user of the process");
}

struct prb_error *prb_stacks_words(struct prb_request *r)
{
	static const char *const FLAGS[] = {"native", "locals", "source", "nonblocking", "freeze"};

	PRB_TRY(check_source(r));
	PRB_TRY(target_words(r));
	PRB_TRY(prb_words_add(&r->words, "debug"));
	PRB_TRY(prb_words_add(&r->words, "--dump"));
	PRB_TRY(prb_words_add(&r->words, "--json"));
	for (size_t i = 0; i < sizeof(FLAGS) / sizeof(*FLAGS); i++)
		PRB_TRY(prb_param_flag_word(r, FLAGS[i]));
	return prb_param_word(r, "tid", "tid");
}

static struct prb_error *answer_stacks(struct prb_request *r)
{
	PRB_TRY(prb_stacks_words(r));
	prb_request_start(r);
	return NULL;
}

static struct prb_error *choose_format(struct prb_request *r)
{
	static const char *const FORMATS[][2] = {
		{"json", "application/json"},
		{"ndjson", "application/x-ndjson"},
		{"csv", "text/csv; charset=utf-8"},
		{"tsv", "text/tab-separated-values; charset=utf-8"},
	};
	const char *format = prb_param(r, "format");

	for (size_t i = 0; i < sizeof(FORMATS) / sizeof(*FORMATS); i++)
		if (!strcmp(format ? format : "json", FORMATS[i][0])) {
			r->media = FORMATS[i][1];
			return prb_words_add(&r->words, "--format=%s", FORMATS[i][0]);
		}
	return NULL;
}

/** The words of `query` behind those of its targets. */
static struct prb_error *query(struct prb_request *r)
{
	const char *sql = prb_param(r, "sql"), *timeout = prb_param(r, "timeout");
	double seconds = timeout ? atof(timeout) : 30;

	PRB_TRY(choose_format(r));
	PRB_TRY(prb_words_add(&r->words, "--timeout=%.3fs", seconds));
	PRB_TRY(prb_words_add(&r->words, "-"));
	prb_str_puts(&r->input, sql);
	r->has_input = true;
	r->limit = seconds + 2;
	prb_request_start(r);
	return NULL;
}

static struct prb_error *answer_query(struct prb_request *r)
{
	PRB_TRY(target_words(r));
	PRB_TRY(prb_words_add(&r->words, "query"));
	return query(r);
}

static struct prb_error *answer_query_all(struct prb_request *r)
{
	PRB_TRY(prb_words_add(&r->words, "query"));
	PRB_TRY(prb_served_words_all(&r->gateway->served, &r->words));
	return query(r);
}

static struct prb_error *answer_tables(struct prb_request *r)
{
	PRB_TRY(prb_words_add(&r->words, "tables"));
	PRB_TRY(prb_words_add(&r->words, "--json"));
	prb_request_start(r);
	return NULL;
}

static struct prb_error *answer_skills(struct prb_request *r)
{
	PRB_TRY(prb_words_add(&r->words, "skill"));
	PRB_TRY(prb_words_add(&r->words, "list"));
	PRB_TRY(prb_words_add(&r->words, "--json"));
	prb_request_start(r);
	return NULL;
}

static struct prb_error *answer_skill(struct prb_request *r)
{
	if (!prb_skill_find(r->name))
		return prb_error_hint(
			prb_error_create(PRB_ERROR_NOT_FOUND, "there is no skill '%s'", r->name),
			"/v1/skills lists them");
	PRB_TRY(target_words(r));
	PRB_TRY(prb_words_add(&r->words, "skill"));
	PRB_TRY(prb_words_add(&r->words, "--json"));
	PRB_TRY(prb_words_add(&r->words, "run"));
	PRB_TRY(prb_words_add(&r->words, "%s", r->name));
	r->limit = 60;
	prb_request_start(r);
	return NULL;
}

static struct prb_error *answer_value(struct prb_request *r)
{
	static const char *const NUMBERS[] = {"tid", "frame", "depth", "max-items", "max-value"};
	const char *expression = prb_param(r, "expression");

	PRB_TRY(target_words(r));
	PRB_TRY(prb_words_add(&r->words, "print"));
	PRB_TRY(prb_words_add(&r->words, "--json"));
	for (size_t i = 0; i < sizeof(NUMBERS) / sizeof(*NUMBERS); i++)
		PRB_TRY(prb_param_word(r, NUMBERS[i], NUMBERS[i]));
	PRB_TRY(prb_words_add(&r->words, "--"));
	PRB_TRY(prb_words_add(&r->words, "%s", expression));
	prb_request_start(r);
	return NULL;
}

static struct prb_error *answer_snapshot(struct prb_request *r)
{
	pid_t pid = prb_served_pid(&r->gateway->served, r->id);

	PRB_TRY(target_words(r));
	PRB_TRY(prb_words_add(&r->words, "snapshot"));
	PRB_TRY(prb_words_add(&r->words, "--output=-"));
	PRB_TRY(prb_param_flag_word(r, "redact"));
	r->file = pid ? prb_format("probing-%d.snapshot", (int)pid)
		      : prb_format("probing-%s.snapshot", r->id);
	r->limit = 120;
	prb_request_start(r);
	return NULL;
}

/** The walk over all objects has a limit of its own. */
static struct prb_error *answer_memory(struct prb_request *r)
{
	const char *growth = prb_param(r, "growth");

	PRB_TRY(target_words(r));
	PRB_TRY(prb_words_add(&r->words, "memory"));
	PRB_TRY(prb_words_add(&r->words, "--json"));
	if (growth)
		PRB_TRY(prb_words_add(&r->words, "--growth=%ss", growth));
	r->limit = (growth ? atof(growth) : 0) + 150;
	prb_request_start(r);
	return NULL;
}

static struct prb_error *answer_inference(struct prb_request *r)
{
	PRB_TRY(target_words(r));
	PRB_TRY(prb_words_add(&r->words, "server"));
	PRB_TRY(prb_words_add(&r->words, "--json"));
	PRB_TRY(prb_words_add(&r->words, "--exit-zero"));
	prb_request_start(r);
	return NULL;
}

static struct prb_error *answer_config(struct prb_request *r)
{
	PRB_TRY(target_words(r));
	PRB_TRY(prb_words_add(&r->words, "config"));
	PRB_TRY(prb_words_add(&r->words, "--json"));
	prb_request_start(r);
	return NULL;
}

/** Where the user of the gateway says that the job is; a request has no say in that. */
static struct prb_error *far_job_words(struct prb_request *r, const char *const *flags)
{
	const struct prb_words *job = r->gateway->options.job;

	PRB_TRY(prb_served_words_merge(&r->words, "dump", flags));
	return prb_words_add_ours(&r->words, (const char *const *)job->list.items);
}

static struct prb_error *answer_job(struct prb_request *r)
{
	const char *flags[3] = {}, *target = prb_param(r, "target");
	size_t n = 0;

	if (prb_param_flag(r, "all"))
		flags[n++] = "--all";
	if (prb_param_flag(r, "native"))
		flags[n++] = "--native";
	PRB_TRY(r->gateway->options.job
			? far_job_words(r, flags)
			: prb_served_words_job(&r->gateway->served, target ? target : "", flags,
					       &r->words));
	r->limit = 60;
	r->alone = true;
	prb_request_start(r);
	return NULL;
}

#define QUERY_PARAMS                                                                          \
	{"sql", PRB_PARAM_TEXT, "SQL; `/v1/tables` lists the tables", true, .least = 1},      \
		{"format", PRB_PARAM_TEXT, "json (the default), ndjson, csv or tsv",          \
		 .choices = "json ndjson csv tsv"},                                           \
	{                                                                                     \
		"timeout", PRB_PARAM_SECONDS, "Seconds after which it ends; 30, at most 600", \
			.most = 600                                                           \
	}
#define STACK_PARAMS                                                                          \
	{"native", PRB_PARAM_FLAG, "C and C++ frames too"},                                   \
		{"locals", PRB_PARAM_FLAG, "Variables of each frame"},                        \
		{"source", PRB_PARAM_FLAG, "Source lines, of processes of the same user"},    \
		{"nonblocking", PRB_PARAM_FLAG, "Stop no thread, not even for microseconds"}, \
		{"freeze", PRB_PARAM_FLAG, "Stop all that run, at one instant"},              \
	{                                                                                     \
		"tid", PRB_PARAM_NUMBER, "Only this thread", .least = 1                       \
	}
#define RECORD_PARAMS                                                               \
	{"duration", PRB_PARAM_SECONDS, "Seconds; 10, at most 3600", .most = 3600}, \
		{"rate", PRB_PARAM_NUMBER, "Samples a second; 100", .least = 1},    \
		{"mode", PRB_PARAM_TEXT, "cpu (the default), wall or runqueue",     \
		 .choices = "cpu wall runqueue"},                                   \
	{                                                                           \
		"native", PRB_PARAM_FLAG, "C and C++ frames too"                    \
	}
#define PID_PARAM                                                                \
	{                                                                        \
		"pid", PRB_PARAM_TEXT, "Id of the target, if several are served" \
	}

const struct prb_route prb_routes[] = {
	{"GET", "/v1", "What this gateway is", .schema = "server", .answer = answer_server},
	{"GET", "/v1/targets", "Processes and files that are served; docs/json.md has the members",
	 .shared = 0.1, .schema = "targets", .answer = answer_targets},
	{"GET", "/v1/overview",
	 "What all targets do now, and what is wrong with them; docs/json.md has the members. It "
	 "is "
	 "read anew every 2 seconds while somebody asks, and 'time' says when",
	 .params = {{"early", PRB_PARAM_FLAG, "Answer before all are judged: see 'pending'"}},
	 .schema = "overview", .answer = prb_answer_overview},
	{"GET", "/v1/targets/{id}/stacks", "Stacks of all threads; docs/json.md has the members",
	 .params = {STACK_PARAMS}, .schema = "dump", .answer = answer_stacks},
	{"GET",
	 "/v1/targets/{id}/events",
	 "Stacks again and again, as Server-Sent Events: each event 'stacks' is what "
	 "/v1/targets/{id}/stacks answers; 'failure' has the error, and is the last",
	 "text/event-stream",
	 {STACK_PARAMS,
	  {"every", PRB_PARAM_SECONDS, "Seconds between two; 2, at least 0.2", .least = 0.2,
	   .most = 60}},
	 .answer = prb_answer_events},
	{"GET", "/v1/targets/{id}/query", "Rows of SQL", .params = {QUERY_PARAMS}, .schema = "rows",
	 .answer = answer_query},
	{"POST", "/v1/targets/{id}/query", "Rows of SQL", .params = {QUERY_PARAMS},
	 .schema = "rows", .answer = answer_query},
	{"GET", "/v1/query", "Rows of SQL over all targets that are served",
	 .params = {QUERY_PARAMS}, .schema = "rows", .answer = answer_query_all},
	{"POST", "/v1/query", "Rows of SQL over all targets that are served",
	 .params = {QUERY_PARAMS}, .schema = "rows", .answer = answer_query_all},
	{"GET", "/v1/job", "Stacks of all ranks of a job as one tree; docs/json.md has the members",
	 .params = {{"target", PRB_PARAM_TEXT,
		     "Id of one of its ranks, if several jobs are served; not with --hosts"},
		    {"all", PRB_PARAM_FLAG, "All threads, not only main threads"},
		    {"native", PRB_PARAM_FLAG, "C and C++ frames too"}},
	 .schema = "job", .answer = answer_job},
	{"POST", "/v1/jobs",
	 "What 'probing node --watch-jobs --to' of another machine reports of its ranks",
	 .whole = "report", .schema = "reported", .answer = prb_answer_report},
	{"GET", "/v1/tables", "Tables of SQL with their columns", .schema = "tables",
	 .answer = answer_tables},
	{"GET", "/v1/skills", "Named diagnoses", .schema = "skills", .answer = answer_skills},
	{"GET", "/v1/targets/{id}/skills/{skill}",
	 "A diagnosis of the target: sections with text, SQL and rows", .schema = "sections",
	 .answer = answer_skill},
	{"GET", "/v1/targets/{id}/value", "Value of an expression, read without running code",
	 .params = {{"expression", PRB_PARAM_TEXT, "Such as self.layers[0]", true, .least = 1},
		    {"tid", PRB_PARAM_NUMBER, "Thread; the main one", .least = 1},
		    {"frame", PRB_PARAM_NUMBER, "Python frame; 0, the innermost"},
		    {"depth", PRB_PARAM_NUMBER, "Levels of instances with attributes"},
		    {"max-items", PRB_PARAM_NUMBER, "Items and attributes of each object"},
		    {"max-value", PRB_PARAM_NUMBER, "Characters of a text"}},
	 .schema = "value", .answer = answer_value},
	{"GET",
	 "/v1/targets/{id}/snapshot",
	 "All that can be read, as a file for 'probing FILE'",
	 "application/octet-stream",
	 {{"redact", PRB_PARAM_FLAG, "Leave out values of variables"}},
	 .answer = answer_snapshot},
	{"GET", "/v1/targets/{id}/memory", "What takes the memory; docs/json.md has the members",
	 .params = {{"growth", PRB_PARAM_SECONDS, "What grows in so many seconds, at most 600",
		     .most = 600}},
	 .schema = "memory_or_growth", .answer = answer_memory},
	{"GET", "/v1/targets/{id}/server",
	 "The inference server that it is a process of, and what keeps the requests",
	 .schema = "inference_server", .answer = answer_inference},
	{"GET", "/v1/targets/{id}/config", "Settings of the process, with their values",
	 .schema = "settings", .answer = answer_config},
	{"POST", "/v1/targets/{id}/config", "Change a setting of the process",
	 .params = {{"key", PRB_PARAM_TEXT, "Such as probing.sample_rate", true, .least = 1},
		    {"value", PRB_PARAM_TEXT, "Its value", true}},
	 .writes = true, .schema = "settings", .answer = prb_answer_config},
	{"POST", "/v1/targets/{id}/eval",
	 "Run Python code in the process. An exception of the code is an answer too",
	 .params = {{"code", PRB_PARAM_TEXT, "The code", true},
		    {"thread", PRB_PARAM_TEXT, "agent (the default) or main",
		     .choices = "agent main"},
		    {"frame", PRB_PARAM_NUMBER,
		     "In this Python frame, in a pause; 0, the innermost"},
		    {"tid", PRB_PARAM_NUMBER, "With frame: of this thread, not the main one",
		     .least = 1}},
	 .writes = true, .schema = "evaluated", .answer = prb_answer_eval},
	{"POST",
	 "/v1/targets/{id}/repl",
	 "Open a Python prompt in the process: what its terminal shows, as it comes. The header "
	 "Probing-Terminal names the terminal, which ends at the latest when this client leaves",
	 "application/octet-stream",
	 {{"rows", PRB_PARAM_NUMBER, "Lines of the terminal; 24, at most 1000", .least = 1,
	   .most = 1000},
	  {"columns", PRB_PARAM_NUMBER, "Its columns; 80, at most 1000", .least = 1, .most = 1000},
	  {"thread", PRB_PARAM_TEXT, "Where code runs: agent (the default) or main",
	   .choices = "agent main"}},
	 .writes = true,
	 .answer = prb_answer_terminal},
	{"POST", "/v1/targets/{id}/dap",
	 "Debug the process: messages of the Debug Adapter Protocol as they come, with their "
	 "heads. "
	 "The header Probing-Terminal names where to POST its own; the session ends at the latest "
	 "when this client leaves, and the process runs on without breakpoints",
	 "application/octet-stream", .writes = true, .answer = prb_answer_dap},
	{"POST", "/v1/terminals/{terminal}",
	 "Type in a terminal, or give it another size; or send messages to a debugger",
	 .params = {{"input", PRB_PARAM_TEXT, "What is typed; at most 65536 bytes"},
		    {"rows", PRB_PARAM_NUMBER, "Lines", .least = 1, .most = 1000},
		    {"columns", PRB_PARAM_NUMBER, "Columns", .least = 1, .most = 1000}},
	 .writes = true, .quiet = true, .schema = "nothing", .answer = prb_answer_type},
	{"POST",
	 "/v1/targets/{id}/pause",
	 "Pause the process: a line of JSON when it is paused, and one when it runs again. It does "
	 "so at the latest when this client leaves",
	 "application/x-ndjson",
	 {{"max", PRB_PARAM_SECONDS, "It runs again after so many seconds; 60, at most 3600",
	   .most = 3600},
	  {"hard", PRB_PARAM_FLAG, "Stop every thread by ptrace, even in C code"}},
	 .writes = true,
	 .schema = "pause",
	 .answer = prb_answer_pause},
	{"POST", "/v1/targets/{id}/resume", "End a pause, whoever began it", .writes = true,
	 .schema = "resumed", .answer = prb_answer_resume},
	{"POST", "/v1/targets/{id}/step", "Run a paused process to its next line of Python",
	 .params = {{"over", PRB_PARAM_FLAG, "Not in functions that this one calls"},
		    {"out", PRB_PARAM_FLAG, "The next line of the caller"},
		    {"tid", PRB_PARAM_NUMBER, "Of this thread, not the main one", .least = 1},
		    {"time", PRB_PARAM_SECONDS, "Run for so many seconds instead, at most 20",
		     .most = 20}},
	 .writes = true, .schema = "stepped", .answer = prb_answer_step},
	{"POST", "/v1/targets/{id}/debugpy",
	 "Start debugpy in the process, on the loopback; the answer is a launch.json for an editor",
	 .params = {{"port", PRB_PARAM_NUMBER, "Its port; 5678; 0: any that is free",
		     .most = 65535}},
	 .writes = true, .schema = "launch", .answer = prb_answer_debugpy},
	{"GET", "/v1/targets/{id}/recorders", "Recorders of its last minutes",
	 .schema = "recorders", .answer = prb_answer_recorders},
	{"GET",
	 "/v1/targets/{id}/recent",
	 "Flame graph of its last minutes",
	 "text/html",
	 {{"last", PRB_PARAM_SECONDS, "Seconds; 600, at most 3600", .most = 3600}},
	 .answer = prb_answer_recent},
	{"POST", "/v1/targets/{id}/profiles", "Start a recording",
	 .params = {RECORD_PARAMS,
		    {"keep", PRB_PARAM_SECONDS,
		     "Until it is stopped; the last so many seconds stay", .least = 10,
		     .most = 3600}},
	 .made = true, .schema = "profile", .answer = prb_answer_record},
	{"GET", "/v1/profiles", "Recordings of this gateway", .schema = "profiles",
	 .answer = prb_answer_recordings},
	{"GET",
	 "/v1/profiles/{profile}",
	 "A recording, finished or not: the file itself, or made into another format",
	 "application/octet-stream",
	 {{"format", PRB_PARAM_TEXT,
	   "profile (the default), html, svg, collapsed, speedscope, pprof, trace, gecko or otlp",
	   .choices = "profile html svg collapsed speedscope pprof trace gecko otlp"},
	  {"before", PRB_PARAM_TEXT,
	   "Id of another recording, with html: what has changed since that one"}},
	 .answer = prb_answer_recording},
	{"POST", "/v1/profiles/{profile}", "Name a recording, or note something of it",
	 .params = {{"name", PRB_PARAM_TEXT, "Instead of its number and time; empty: none",
		     .most = PRB_RECORDINGS_MAX_NAME},
		    {"note", PRB_PARAM_TEXT, "For whoever looks at it; empty: none",
		     .most = PRB_RECORDINGS_MAX_NOTE}},
	 .schema = "profile", .answer = prb_answer_recording_name},
	{"DELETE", "/v1/profiles/{profile}", "Forget a recording", .schema = "nothing",
	 .answer = prb_answer_recording_delete},
	{"POST", "/v1/profiles/{profile}/stop", "Stop a recording before its time",
	 .schema = "profile", .answer = prb_answer_recording_stop},
	{"GET", "/v1/dashboards", "Names and titles of dashboards", .schema = "dashboards",
	 .answer = prb_answer_dashboards},
	{"GET", "/v1/dashboards/{dashboard}", "A dashboard: queries, and how they are shown",
	 .schema = "dashboard", .answer = prb_answer_dashboard},
	{"POST", "/v1/dashboards/{dashboard}", "Save a dashboard, with 'serve --dashboards'",
	 .params = {{"json", PRB_PARAM_TEXT, "The dashboard as text", true, .least = 1}},
	 .schema = "dashboard", .answer = prb_answer_dashboard_save},
	{"DELETE", "/v1/dashboards/{dashboard}", "Remove its file", .schema = "nothing",
	 .answer = prb_answer_dashboard_delete},
	{"POST", "/mcp", "A message of the Model Context Protocol, answered as docs/mcp.md says",
	 .whole = "message", .answer = prb_answer_mcp},
	{"GET", "/metrics", "Metrics for Prometheus", "text/plain; version=0.0.4; charset=utf-8",
	 .shared = 1, .answer = prb_answer_scrape},
	{"GET", "/v1/openapi.json", "This interface, for programs", .answer = prb_answer_openapi},
	{"GET", "/apis/callstack", "As /v1/targets/{id}/stacks",
	 .params = {STACK_PARAMS, PID_PARAM}, .alias = true, .schema = "dump",
	 .answer = answer_stacks},
	{"GET",
	 "/apis/flamegraph",
	 "Records, then shows the flame graph",
	 "text/html",
	 {RECORD_PARAMS, PID_PARAM},
	 .alias = true,
	 .answer = prb_answer_record},
	{"GET", "/config", "As /v1/targets/{id}/config", .params = {PID_PARAM}, .alias = true,
	 .schema = "settings", .answer = answer_config},
	{"GET", "/query", "As /v1/targets/{id}/query", .params = {QUERY_PARAMS, PID_PARAM},
	 .alias = true, .schema = "rows", .answer = answer_query},
	{"POST", "/query", "As /v1/targets/{id}/query", .params = {QUERY_PARAMS, PID_PARAM},
	 .alias = true, .schema = "rows", .answer = answer_query},
	{},
};

static bool is_name(const char *text, size_t length)
{
	static const char LETTERS[] = "abcdefghijklmnopqrstuvwxyz0123456789-";

	return length && *text != '-' && length < PRB_ROUTE_NAME && strspn(text, LETTERS) >= length;
}

/** Compares an address with that of a route; the names in it are put into the request. */
static bool matches(struct prb_request *r, const char *pattern)
{
	const char *at = r->path;

	while (*pattern) {
		if (*pattern != '{') {
			if (*pattern++ != *at++)
				return false;
			continue;
		}
		size_t length = strcspn(at, "/");
		char *place = !strncmp(pattern, "{id}", 4) ? r->id : r->name;

		if (!is_name(at, length))
			return false;
		snprintf(place, PRB_ROUTE_NAME, "%.*s", (int)length, at);
		at += length;
		pattern += strcspn(pattern, "}") + 1;
	}
	return !*at;
}

void prb_route_methods(struct prb_request *r, struct prb_str *ret)
{
	for (const struct prb_route *route = prb_routes; route->path; route++)
		if (matches(r, route->path))
			prb_str_printf(ret, "%s%s", ret->length ? ", " : "", route->method);
}

struct prb_error *prb_route_find(struct prb_request *r)
{
	bool known = false;

	for (const struct prb_route *route = prb_routes; route->path; route++) {
		if (!matches(r, route->path))
			continue;
		known = true;
		if (strcmp(route->method, r->method) != 0)
			continue;
		r->route = route;
		r->media = route->media;
		return NULL;
	}
	r->status = known ? 405 : 404;
	return known ? prb_error_create(PRB_ERROR_USAGE, "%.100s is not for %.10s", r->path,
					r->method)
		     : prb_error_hint(
			       prb_error_create(PRB_ERROR_NOT_FOUND, "there is no %.100s", r->path),
			       "/v1/openapi.json lists what there is");
}

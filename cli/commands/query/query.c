/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/commands/query/query.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands/script/extensions.h"
#include "cli/commands/query/clickhouse.h"
#include "clickhouse/url.h"
#include "command/command.h"
#include "command/exit.h"
#include "command/interrupt.h"
#include "command/output.h"
#include "base/cleanup.h"

struct query_settings {
	const char *format, *input, *relay;
	bool wide, all, nonblocking, freeze, allow_code;
	int limit;
	double timeout, watch;
	struct prb_value_limits values;
	struct prb_texts scripts;
};

static void warn(void *context, const char *text)
{
	(void)context;
	prb_warn(text);
}

static void query_deinit(struct prb_query *query)
{
	prb_interrupt_release();
	prb_session_destroy(query->session);
	prb_error_destroy(query->failure);
}

/* An address means something in one target only. */
static struct prb_error *load_extensions(struct prb_query *query, const struct query_settings *s,
					 const struct prb_cli *cli)
{
	const unsigned all = PRB_EXTENSION_PRINTERS | PRB_EXTENSION_WAITS | PRB_EXTENSION_TABLES;
	const struct prb_target *target = prb_session_target(query->session);
	const struct prb_custom *custom;

	if (query->targets != 1 || !target || (s->all && !target->live))
		return NULL;
	PRB_TRY(prb_extensions_load(cli, &s->scripts, all, target, &custom));
	prb_session_set_custom(query->session, custom);
	return NULL;
}

static bool is_typed(const struct prb_cli *cli)
{
	return cli->argument_count && strcmp(cli->arguments[0], "-") != 0;
}

/** SQL that was typed for a named target may change it; piped SQL needs --allow-code. */
static bool may_change(const struct query_settings *s, const struct prb_cli *cli, bool typed)
{
	return !s->all && cli->targets.count <= 1 && (typed || s->allow_code);
}

static struct prb_error *query_init(struct prb_query *query, const struct query_settings *s,
				    const struct prb_cli *cli, bool typed)
{
	PRB_TRY(prb_query_format(s->format ? s->format : "table", &query->format));
	query->wide = s->wide;
	query->rows = (uint64_t)s->limit;
	PRB_TRY(prb_session_create(&query->session));
	prb_session_on_warning(query->session, warn, NULL);
	prb_session_set_timeout(query->session, s->timeout);
	prb_session_set_mode(query->session, s->nonblocking ? PRB_DUMP_NONBLOCKING
					     : s->freeze    ? PRB_DUMP_FREEZE
							    : PRB_DUMP_DEFAULT);
	prb_session_set_values(query->session, &s->values);
	if (may_change(s, cli, typed))
		prb_session_allow_changes(query->session);
	PRB_TRY(prb_query_open(query, cli, s->all));
	return load_extensions(query, s, cli);
}

/** Where the SQL is; @p read: in @p script, else in the words. Or, with neither, at a prompt. */
static struct prb_error *choose_source(const struct query_settings *s, const struct prb_cli *cli,
				       struct prb_str *script, bool *prompt)
{
	const char *word = cli->argument_count ? cli->arguments[0] : NULL;
	bool from_stdin = word ? !strcmp(word, "-") : !isatty(STDIN_FILENO);

	if (s->relay && (s->input || word))
		return prb_error_create(PRB_ERROR_USAGE,
					"--relay reads its queries from stdin, and another one is "
					"given");
	*prompt = s->relay || (!s->input && !word && !from_stdin);
	if (s->relay)
		return NULL;
	if (s->input && word)
		return prb_error_create(
			PRB_ERROR_USAGE,
			"--input and a query on the command line exclude each other");
	if (s->input)
		return prb_query_read(s->input, script);
	if (from_stdin)
		return prb_query_read(NULL, script);
	if (word)
		prb_str_puts(script, word);
	return script->failed ? prb_error_nomem() : NULL;
}

/** The query went well; but were all targets read? */
static struct prb_error *lost_targets(const struct prb_query *query)
{
	const struct prb_error *failure =
		query->failure ? query->failure : prb_session_failure(query->session);

	if (!failure)
		return NULL;
	return prb_error_hint(prb_error_create(failure->code, "not all targets could be read"),
			      "the warnings say which, and why; the result is without them");
}

static struct prb_error *check(const struct query_settings *s, const struct prb_cli *cli,
			       bool prompt)
{
	if (s->allow_code && (s->all || cli->targets.count > 1))
		return prb_error_create(PRB_ERROR_USAGE,
					"--allow-code is for one target that is named");
	if (s->nonblocking && s->freeze)
		return prb_error_create(PRB_ERROR_USAGE,
					"--nonblocking and --freeze exclude each other");
	if (prompt && s->watch > 0)
		return prb_error_create(PRB_ERROR_USAGE, "--watch needs a query");
	return prb_value_check(&s->values);
}

/** The target is a database: the statement goes there. */
static struct prb_error *run_there(const struct prb_cli *cli, const struct query_settings *s,
				   const struct prb_str *script, bool prompt)
{
	struct prb_query query = {.wide = s->wide, .rows = (uint64_t)s->limit};

	if (cli->targets.count > 1)
		return prb_error_create(PRB_ERROR_USAGE,
					"a ClickHouse database is queried alone, and %zu targets "
					"are given",
					cli->targets.count);
	if (prompt || s->relay || s->watch > 0 || s->all || s->nonblocking || s->freeze ||
	    s->allow_code || s->scripts.count || prb_value_limited(&s->values))
		return prb_error_create(PRB_ERROR_USAGE,
					"a ClickHouse database takes one statement and --format, "
					"--wide, --limit, --timeout");
	PRB_TRY(prb_query_format(s->format ? s->format : "table", &query.format));
	return prb_query_clickhouse(&query, cli->target, script, s->timeout);
}

static struct prb_error *run_query(const struct prb_cli *cli, const struct query_settings *s)
{
	__attribute__((cleanup(query_deinit))) struct prb_query query = {};
	prb_auto_str struct prb_str script = {};
	bool prompt = false;

	PRB_TRY(choose_source(s, cli, &script, &prompt));
	for (size_t i = 0; i < cli->targets.count; i++)
		if (prb_clickhouse_is_url(cli->targets.items[i]))
			return run_there(cli, s, &script, prompt);
	PRB_TRY(check(s, cli, prompt));
	PRB_TRY(query_init(&query, s, cli, prompt || is_typed(cli)));
	prb_interrupt_catch(query.session);
	if (s->relay)
		return prb_query_relay(&query, s->relay);
	if (prompt)
		return prb_query_prompt(&query);
	if (s->watch > 0)
		PRB_TRY(prb_query_watch(&query, prb_str_text(&script), script.length, s->watch));
	else
		PRB_TRY(prb_query_run(&query, prb_str_text(&script), script.length));
	return lost_targets(&query);
}

static struct prb_error *run(const struct prb_cli *cli, const void *settings)
{
	struct prb_error *err = run_query(cli, settings);

	/* The rows read so far are shown and the targets are released. */
	if (err && err->code == PRB_ERROR_CANCELLED && prb_interrupted())
		prb_interrupt_end();
	return err;
}

const struct prb_command prb_command_query = {
	.rank = 50,
	.for_clients = true,
	.name = "query",
	.aliases = {"q"},
	.summary = "Run SQL over one target or several",
	.description =
		"Runs SQL statements and prints their results. 'probing tables' lists the "
		"tables. Without SQL, statements are read at a prompt with history and "
		"completion. With '-', or if stdin is not a terminal, they are read from "
		"stdin.\n\n"
		"FORMAT is table (aligned columns that fit the terminal), json (one array "
		"of objects per statement), ndjson (one object per line), csv, or tsv "
		"(tabs, line ends and backslashes as \\t \\n \\\\, NULL as \\N).\n\n"
		"All tables of a statement show the same instant. With several targets, "
		"each row begins with _target, _pid and _rank. A target that cannot be "
		"read is skipped with a warning, and its error decides the exit code. "
		"Ctrl-C ends a query and prints the rows read so far.\n\n"
		"Queries read. Only SQL that is typed, for one target that is named, may run "
		"code in it (python.`EXPRESSION`) or SET its settings; --allow-code lets SQL "
		"from a file or pipe do so.\n\n"
		"The target clickhouse://[USER@]HOST[:PORT]/DATABASE[/JOB] is a database "
		"that 'probing cluster ship' or 'probing node' fills: statements are "
		"translated and run there. The password is $PROBING_CLICKHOUSE_PASSWORD.",
	.options =
		(const struct prb_option[]){
			{"format", 'f', PRB_OPTION_TEXT, "FORMAT",
			 "table, json, ndjson, csv or tsv", PRB_COMPLETE_FORMAT,
			 offsetof(struct query_settings, format), .for_clients = true},
			{"wide", 'w', PRB_OPTION_FLAG, NULL, "Do not fit tables to the terminal",
			 PRB_COMPLETE_NOTHING, offsetof(struct query_settings, wide),
			 .for_clients = true},
			{"input", 'i', PRB_OPTION_TEXT, "FILE", "Read the SQL from FILE",
			 PRB_COMPLETE_FILE, offsetof(struct query_settings, input)},
			PRB_EXTENSION_OPTION(struct query_settings, scripts),
			{"allow-code", 0, PRB_OPTION_FLAG, NULL,
			 "Let SQL from a file or pipe run code and SET, as typed SQL may",
			 PRB_COMPLETE_NOTHING, offsetof(struct query_settings, allow_code),
			 .for_clients = true},
			{"limit", 0, PRB_OPTION_NUMBER, "N", "Show at most N rows of each result",
			 PRB_COMPLETE_NOTHING, offsetof(struct query_settings, limit),
			 .for_clients = true},
			{"timeout", 0, PRB_OPTION_SECONDS, "TIME",
			 "End a statement after TIME: 5, 5s, 500ms", PRB_COMPLETE_NOTHING,
			 offsetof(struct query_settings, timeout), .for_clients = true},
			{"watch", 0, PRB_OPTION_SECONDS, "TIME", "Repeat every TIME until Ctrl-C",
			 PRB_COMPLETE_NOTHING, offsetof(struct query_settings, watch),
			 .for_clients = true},
			{"all", 0, PRB_OPTION_FLAG, NULL,
			 "All matching Python processes; all there are without a target",
			 PRB_COMPLETE_NOTHING, offsetof(struct query_settings, all)},
			{"relay", 0, PRB_OPTION_TEXT, "MARK",
			 "For a remote prompt: run stdin up to each NUL, then print MARK",
			 PRB_COMPLETE_NOTHING, offsetof(struct query_settings, relay),
			 .for_clients = true},
			{"nonblocking", 0, PRB_OPTION_FLAG, NULL, "Never stop a thread",
			 PRB_COMPLETE_NOTHING, offsetof(struct query_settings, nonblocking),
			 .for_clients = true},
			{"freeze", 0, PRB_OPTION_FLAG, NULL,
			 "Stop all threads that run, at one instant", PRB_COMPLETE_NOTHING,
			 offsetof(struct query_settings, freeze), .for_clients = true},
			{"depth", 0, PRB_OPTION_NUMBER, "N",
			 "Values: levels of instances with attributes", PRB_COMPLETE_NOTHING,
			 offsetof(struct query_settings, values.depth), .for_clients = true},
			{"max-value", 0, PRB_OPTION_NUMBER, "N", "Values: characters of a text",
			 PRB_COMPLETE_NOTHING, offsetof(struct query_settings, values.max_value),
			 .for_clients = true},
			{"max-items", 0, PRB_OPTION_NUMBER, "N",
			 "Values: items and attributes of each", PRB_COMPLETE_NOTHING,
			 offsetof(struct query_settings, values.max_items), .for_clients = true},
			{"secrets", 0, PRB_OPTION_FLAG, NULL,
			 "Values: what the class of an object hides, too", PRB_COMPLETE_NOTHING,
			 offsetof(struct query_settings, values.secrets), .for_clients = true},
			{}},
	.settings_size = sizeof(struct query_settings),
	.target_use = PRB_TARGET_ANY,
	.argument = "[SQL | -]",
	.max_arguments = 1,
	.examples =
		(const struct prb_example[]){
			{"probing 4242 query \"SELECT * FROM python.threads\"",
			 "What is each thread doing?"},
			{"probing 4242 q -f csv \"SELECT * FROM python.stacks\" >stacks.csv",
			 "All stacks, for a spreadsheet"},
			{"probing -t train.py q --all \"SELECT * FROM python.threads\"",
			 "All processes of a job"},
			{}},
	.run = run,
};

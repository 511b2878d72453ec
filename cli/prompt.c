/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `probing query` without a query: statements are typed. */
#include "cli/prompt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/exit.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/query.h"
#include "cli/tables.h"
#include "dwarf/base/checked.h"
#include "dwarf/base/cleanup.h"

const struct prb_prompt_command prb_prompt_commands[] = {
	{".tables", NULL, "The tables"},
	{".schema", "TABLE", "The columns of a table"},
	{".format", "FORMAT", "How results are shown: table, json, ndjson, csv, tsv"},
	{".help", NULL, "This list"},
	{".quit", NULL, "End; Ctrl-D does too"},
	{},
};

static void begin(void)
{
	prb_prompt_begin("history", -1);
	prb_prompt_complete_begin();
	if (isatty(STDERR_FILENO))
		fputs("SQL, ended by a semicolon; .help lists what else there is\n", stderr);
}

/** Skips a quoted text from its quote on; the address of the NUL if it does not end. */
static const char *skip_quoted(const char *p)
{
	char quote = *p == '[' ? ']' : *p;
	const char *end = strchr(p + 1, quote);

	return end ? end + 1 : p + strlen(p);
}

bool prb_prompt_is_complete(const char *sql)
{
	bool ended = false;

	for (const char *p = sql; *p;) {
		if (strchr("'\"`[", *p)) {
			const char *end = skip_quoted(p);

			ended = false;
			if (!*end)
				return false;
			p = end;
		} else if (!strncmp(p, "--", 2)) {
			p += strcspn(p, "\n");
		} else if (!strncmp(p, "/*", 2)) {
			const char *end = strstr(p + 2, "*/");

			if (!end)
				return false;
			p = end + 2;
		} else {
			if (!strchr(" \t\r\n\f", *p))
				ended = *p == ';';
			p++;
		}
	}
	return ended;
}

static struct prb_error *show_help(void)
{
	prb_auto_str struct prb_str text = {};

	for (const struct prb_prompt_command *c = prb_prompt_commands; c->name; c++)
		prb_str_printf(&text, "%-8s %-8s %s\n", c->name, c->argument ? c->argument : "",
			       c->does);
	return prb_output(&text);
}

static struct prb_error *show_tables(const char *pattern)
{
	prb_auto_str struct prb_str text = {};

	PRB_TRY(prb_tables_text(pattern, &text));
	return prb_output(&text);
}

static struct prb_error *change_format(struct prb_query *query, const char *name)
{
	prb_auto_str struct prb_str text = {};

	if (name)
		return prb_query_format(name, &query->format);
	prb_str_printf(&text, "%s\n", query->format->name);
	return prb_output(&text);
}

/** One of the prompt's own commands; *quit: it was the last one. */
static struct prb_error *run_command(struct prb_query *query, char *line, bool *quit)
{
	char *rest;
	const char *name = strtok_r(line, " \t\n;", &rest);
	const char *argument = strtok_r(NULL, " \t\n;", &rest);

	if (!strcmp(name, ".quit") || !strcmp(name, ".exit")) {
		*quit = true;
		return NULL;
	}
	if (!strcmp(name, ".help"))
		return show_help();
	if (!strcmp(name, ".tables"))
		return show_tables(argument);
	if (!strcmp(name, ".schema"))
		return show_tables(argument ? argument : "*");
	if (!strcmp(name, ".format"))
		return change_format(query, argument);
	return prb_error_hint(prb_error_create(PRB_ERROR_USAGE, "there is no '%.100s'", name),
			      ".help lists what there is");
}

static bool is_blank(const char *text)
{
	return !text[strspn(text, " \t\r\n\f")];
}

/** Words that mean one of our commands to people, though they are no SQL. */
static char *plain_word(const char *line)
{
	static const char *const words[] = {"quit", "exit", "help"};

	for (size_t i = 0; i < PRB_ARRAY_SIZE(words); i++)
		if (!strncmp(line, words[i], 4) && !line[4 + strspn(line + 4, " ;")])
			return prb_format(".%s", words[i]);
	return NULL;
}

/** Runs what is complete; an error is told, and ends nothing. */
static bool run_line(struct prb_query *query, struct prb_str *sql, const char *line)
{
	prb_auto_free char *command = NULL;
	struct prb_error *err = NULL;
	bool quit = false;

	if (!sql->length && is_blank(line))
		return true;
	if (!sql->length)
		command = line[0] == '.' ? prb_format("%s", line) : plain_word(line);
	if (command) {
		prb_prompt_history_add(line);
		err = run_command(query, command, &quit);
	} else {
		prb_str_printf(sql, "%s%s", sql->length ? "\n" : "", line);
		if (!prb_prompt_is_complete(prb_str_text(sql)))
			return true;
		/* On one line, a comment would take the rest with it. */
		if (!strstr(prb_str_text(sql), "--") || !strchr(prb_str_text(sql), '\n'))
			prb_prompt_history_add(prb_str_text(sql));
		query->results = 0;
		err = prb_query_run(query, prb_str_text(sql), sql->length);
		prb_str_truncate(sql, 0);
	}
	if (err && err->code == PRB_ERROR_CANCELLED && prb_interrupted())
		fputc('\n', stderr);
	prb_exit_report(err);
	return !quit;
}

struct prb_error *prb_query_prompt(struct prb_query *query)
{
	prb_auto_str struct prb_str sql = {};
	bool go_on = true;

	begin();
	while (go_on) {
		/* What ends the line does not end the next query too. */
		prb_interrupt_aim(NULL);
		prb_interrupt_forget();
		prb_prompt_complete_after(prb_str_text(&sql));

		prb_auto_free char *line = NULL;
		enum prb_prompt_read read =
			prb_prompt_read(sql.length ? "    ...> " : "probing> ", &line);

		prb_interrupt_aim(query->session);
		if (read == PRB_PROMPT_END)
			break;
		if (read == PRB_PROMPT_GIVEN_UP)
			prb_str_truncate(&sql, 0);
		else
			go_on = run_line(query, &sql, line);
		if (sql.failed)
			return prb_error_nomem();
	}
	return prb_output_flush();
}

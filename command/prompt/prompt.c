/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The prompt of SQL: reads statements, and runs them by the caller's callback. */
#include "command/prompt/prompt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command/interrupt.h"
#include "command/output.h"
#include "base/checked.h"
#include "base/cleanup.h"

const struct prb_prompt_command prb_prompt_commands[] = {
	{".tables", NULL, "The tables"},
	{".schema", "TABLE", "The columns of a table"},
	{".format", "FORMAT", "How results are shown: table, json, ndjson, csv, tsv"},
	{".help", NULL, "This list"},
	{".quit", NULL, "End; Ctrl-D does too"},
	{},
};

static void begin(int watched)
{
	prb_prompt_begin("history", watched);
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

/** ".quit" and ".help" are ours; false for what is not. */
static bool run_own(const char *command, bool *quit, struct prb_error **err)
{
	size_t length = strcspn(command, " \t\n;");
	prb_auto_free char *name = strndup(command, length);

	*quit = name && (!strcmp(name, ".quit") || !strcmp(name, ".exit"));
	if (*quit)
		return true;
	if (!name || strcmp(name, ".help") != 0)
		return false;
	*err = show_help();
	return true;
}

/** A command of the prompt, which is one line. */
static struct prb_error *run_command(const struct prb_prompt_runner *runner, const char *line,
				     const char *command, bool *quit)
{
	struct prb_error *err = NULL;

	prb_prompt_history_add(line);
	if (run_own(command, quit, &err))
		return err;
	return runner->run(runner->context, command, strlen(command));
}

/** Runs what is complete. */
static struct prb_error *run_line(const struct prb_prompt_runner *runner, struct prb_str *sql,
				  const char *line, bool *quit)
{
	prb_auto_free char *command = NULL;

	if (!sql->length && is_blank(line))
		return NULL;
	if (!sql->length)
		command = line[0] == '.' ? prb_format("%s", line) : plain_word(line);
	if (command)
		return run_command(runner, line, command, quit);
	prb_str_printf(sql, "%s%s", sql->length ? "\n" : "", line);
	if (sql->failed)
		return prb_error_nomem();
	if (!prb_prompt_is_complete(prb_str_text(sql)))
		return NULL;
	/* On one line, a comment would take the rest with it. */
	if (!strstr(prb_str_text(sql), "--") || !strchr(prb_str_text(sql), '\n'))
		prb_prompt_history_add(prb_str_text(sql));

	struct prb_error *err = runner->run(runner->context, prb_str_text(sql), sql->length);

	prb_str_truncate(sql, 0);
	return err;
}

struct prb_error *prb_prompt_sql(const struct prb_prompt_runner *runner)
{
	prb_auto_str struct prb_str sql = {};
	bool quit = false;

	begin(runner->watched);
	while (!quit) {
		/* A Ctrl-C that ends the line must not end the next query too. */
		prb_interrupt_forget();
		prb_prompt_complete_after(prb_str_text(&sql));

		prb_auto_free char *line = NULL;
		enum prb_prompt_read read =
			prb_prompt_read(sql.length ? "    ...> " : "probing> ", &line);

		if (prb_prompt_is_lost())
			PRB_TRY(runner->look(runner->context));
		else if (read == PRB_PROMPT_END)
			break;
		else if (read == PRB_PROMPT_GIVEN_UP)
			prb_str_truncate(&sql, 0);
		else
			PRB_TRY(run_line(runner, &sql, line, &quit));
	}
	return prb_output_flush();
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `probing query` without a query: statements are typed, at a prompt here or elsewhere. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "command/exit.h"
#include "command/interrupt.h"
#include "command/output.h"
#include "command/prompt/prompt.h"
#include "cli/commands/query/query.h"
#include "cli/commands/query/tables.h"
#include "base/cleanup.h"

enum { MAX_TEXT = 16 << 20 };

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

/** One of the prompt's own commands. */
static struct prb_error *run_command(struct prb_query *query, const char *text)
{
	prb_auto_free char *line = prb_format("%s", text);
	char *rest;

	if (!line)
		return prb_error_nomem();

	const char *name = strtok_r(line, " \t\n;", &rest);
	const char *argument = strtok_r(NULL, " \t\n;", &rest);

	if (!strcmp(name, ".tables"))
		return show_tables(argument);
	if (!strcmp(name, ".schema"))
		return show_tables(argument ? argument : "*");
	if (!strcmp(name, ".format"))
		return change_format(query, argument);
	return prb_error_hint(prb_error_create(PRB_ERROR_USAGE, "there is no '%.100s'", name),
			      ".help lists the commands");
}

void prb_query_typed(struct prb_query *query, const char *text, size_t length)
{
	struct prb_error *err;

	prb_interrupt_aim(query->session);
	query->results = 0;
	err = *text == '.' ? run_command(query, text) : prb_query_run(query, text, length);
	prb_interrupt_aim(NULL);
	prb_session_settle(query->session);
	if (err && err->code == PRB_ERROR_CANCELLED && prb_interrupted())
		fputc('\n', stderr);
	prb_exit_report(err);
}

static struct prb_error *run_here(void *context, const char *text, size_t length)
{
	prb_query_typed(context, text, length);
	return NULL;
}

struct prb_error *prb_query_prompt(struct prb_query *query)
{
	prb_interrupt_aim(NULL);
	return prb_prompt_sql(&(const struct prb_prompt_runner){
		.run = run_here, .context = query, .watched = -1});
}

/**
 * Reads more of what is typed elsewhere; *ended at its end. Ctrl-C interrupts the running
 * statement.
 */
static struct prb_error *read_more(struct prb_str *text, bool *ended)
{
	char chunk[4096];
	ssize_t got;

	do
		got = read(STDIN_FILENO, chunk, sizeof(chunk));
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return prb_error_os(errno, "cannot read stdin");
	*ended = !got;
	prb_str_append(text, chunk, (size_t)got);
	if (text->failed)
		return prb_error_nomem();
	if (text->length > MAX_TEXT)
		return prb_error_create(PRB_ERROR_USAGE, "over %d MiB are no statement",
					MAX_TEXT >> 20);
	return NULL;
}

/** Runs one text; a Ctrl-C that was meant for those before it is over with an empty one. */
static struct prb_error *answer(struct prb_query *query, const char *text, const char *mark)
{
	if (*text)
		prb_query_typed(query, text, strlen(text));
	else
		prb_interrupt_forget();
	fputs(mark, stdout);
	PRB_TRY(prb_output_flush());
	fputs(mark, stderr);
	return NULL;
}

struct prb_error *prb_query_relay(struct prb_query *query, const char *mark)
{
	prb_auto_str struct prb_str text = {};
	bool ended = false;

	prb_interrupt_aim(NULL);
	while (!ended) {
		char *nul = text.length ? memchr(text.data, '\0', text.length) : NULL;

		if (!nul) {
			PRB_TRY(read_more(&text, &ended));
			continue;
		}
		PRB_TRY(answer(query, text.data, mark));
		prb_str_remove(&text, 0, (size_t)(nul - text.data) + 1);
	}
	return NULL;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/commands.h"
#include "cli/exit.h"
#include "sql/target_spec.h"
#include "dwarf/base/cleanup.h"
#include "sql/session.h"

struct settings {
	const char *format;
};

static void warn(void *context, const char *text)
{
	(void)context;
	prb_warn(text);
}

static struct prb_error *run(const struct prb_cli *cli, const void *settings)
{
	struct prb_session *session;
	struct prb_target *target;
	struct prb_statement *st;
	size_t used = 0;
	bool row;
	(void)settings;
	PRB_TRY(prb_session_create(&session));
	prb_session_on_warning(session, warn, NULL);
	if (cli->target) {
		PRB_TRY(prb_spec_open(cli->target, cli->exe, &target));
		PRB_TRY(prb_session_add_target(session, cli->target, target));
	}
	const char *sql = cli->arguments[0];
	PRB_TRY(prb_session_prepare(session, sql, strlen(sql), &used, &st));
	for (;;) {
		PRB_TRY(prb_statement_next(st, &row));
		if (!row)
			break;
		for (unsigned i = 0; i < prb_statement_columns(st); i++) {
			struct prb_value v;
			prb_statement_value(st, i, &v);
			if (v.kind == PRB_VALUE_INTEGER)
				printf("%ld", v.integer);
			else if (v.kind == PRB_VALUE_REAL)
				printf("%g", v.real);
			else
				printf("%s", v.text ? v.text : "NULL");
			putchar('|');
		}
		putchar('\n');
	}
	return NULL;
}

const struct prb_command prb_command_query = {
	.name = "query",
	.aliases = {"q"},
	.summary = "SQL",
	.description = "x",
	.options = (const struct prb_option[]){{}},
	.target_use = PRB_TARGET_ANY,
	.settings_size = sizeof(struct settings),
	.argument = "SQL",
	.max_arguments = 1,
	.examples = (const struct prb_example[]){{}},
	.run = run,
};

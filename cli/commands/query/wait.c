/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Waiting for the first rows of a table that the process has begun to record. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/commands/query/query.h"
#include "command/interrupt.h"
#include "control/config.h"
#include "sql/spec/collected.h"

enum { STEPS = 50, STEP_MS = 100, SECONDS = STEPS * STEP_MS / 1000 };

/** The setting that says whether the process records the table; PRB_CONFIG_KEYS: none. */
static enum prb_config_index setting_of(const struct prb_collected *table)
{
	if (!strncmp(table->name, "torch_", strlen("torch_")) && strcmp(table->name, "torch_gpu"))
		return PRB_CONFIG_TORCH_PROFILING;
	return !strcmp(table->name, "memory_usage") || !strcmp(table->name, "memory")
		       ? PRB_CONFIG_MEMORY_INTERVAL
		       : PRB_CONFIG_KEYS;
}

static bool is_recorded(struct prb_target *target, enum prb_config_index setting)
{
	__attribute__((cleanup(prb_config_deinit))) struct prb_config config = {};
	prb_auto_error struct prb_error *err = prb_config_read(target, &config);

	return !err && config.loaded && atof(prb_str_text(&config.values[setting])) > 0;
}

static bool has_rows(struct prb_query *query, const struct prb_collected *table)
{
	prb_auto_statement struct prb_statement *statement = NULL;
	prb_auto_str struct prb_str sql = {};
	size_t at = 0;
	bool row = false;

	prb_str_printf(&sql, "SELECT 1 FROM %s.%s LIMIT 1", table->schema, table->name);
	prb_auto_error struct prb_error *err = prb_session_prepare(
		query->session, prb_str_text(&sql), sql.length, &at, &statement);
	if (!err)
		err = prb_statement_next(statement, &row);
	return !err && row;
}

static void wait_for(struct prb_query *query, const struct prb_collected *table)
{
	enum prb_config_index setting = setting_of(table);
	unsigned step = 0;

	if (has_rows(query, table) || !is_recorded(prb_session_target(query->session), setting))
		return;
	fprintf(stderr, "probing: %s.%s has no rows yet; waiting up to %d s for the first\n",
		table->schema, table->name, SECONDS);
	do {
		poll(NULL, 0, STEP_MS);
		prb_session_end_instants(query->session);
	} while (!has_rows(query, table) && ++step < STEPS && !prb_interrupted());
	if (step == STEPS && setting == PRB_CONFIG_TORCH_PROFILING)
		fprintf(stderr,
			"probing: none came in %d s: one does when a sampled step of an "
			"optimizer of torch has ended\n",
			SECONDS);
}

void prb_query_wait(struct prb_query *query, const char *sql, size_t length)
{
	struct prb_target *target = prb_session_target(query->session);
	prb_auto_str struct prb_str text = {};

	prb_str_append(&text, sql, length);
	if (query->capture || prb_session_target_count(query->session) != 1 || !target ||
	    !target->live || text.failed)
		return;
	for (const struct prb_collected *table = prb_collected_tables; table->name; table++)
		if (setting_of(table) != PRB_CONFIG_KEYS &&
		    prb_sql_mentions(prb_str_text(&text), table->name))
			wait_for(query, table);
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a row says of its process beside the threads. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/commands/overview/overview.h"
#include "inference/server.h"
#include "rings/last_step.h"

struct prb_error *prb_overview_read_texts(struct prb_overview_row *row)
{
	free(prb_steal(&row->error));
	free(prb_steal(&row->version));
	if (row->dump->python_version)
		PRB_TRY(prb_str_copy(row->dump->python_version, &row->version));
	return NULL;
}

static struct prb_error *read_groups(struct prb_overview_row *row)
{
	prb_auto_str struct prb_str groups = {};

	prb_error_destroy(prb_target_read_file(row->target, &groups, "cgroup"));
	free(row->groups);
	row->groups = strdup(prb_str_text(&groups));
	return row->groups ? NULL : prb_error_nomem();
}

/** Looks for rings only now and then, since that needs the whole map. */
static struct prb_error *read_step(struct prb_overview_row *row, bool seldom)
{
	struct prb_last_step last;

	if (row->step < 0 && !seldom)
		return NULL;
	struct prb_error *err = prb_last_step(row->target, INT64_MAX, &last);

	row->step = last.number;
	row->rings = last.rings;
	if (!err || err->code == PRB_ERROR_NOMEM)
		return err;
	prb_error_destroy(err);
	return NULL;
}

/** As the kernel has it: each word with its end. */
static void put_words(struct prb_str *s, const struct prb_process *process)
{
	char **word;

	prb_vec_each (word, &process->argv)
		prb_str_append(s, *word, strlen(*word) + 1);
}

/** A command line that the process has changed since it was described. */
static struct prb_error *read_command(struct prb_overview_row *row)
{
	prb_auto_str struct prb_str text = {};
	struct prb_process now;
	struct prb_error *err = prb_target_read_file(row->target, &text, "cmdline");

	if (!row->command.length)
		put_words(&row->command, &row->info.process);
	if (!err && text.length == row->command.length &&
	    !memcmp(prb_str_text(&text), prb_str_text(&row->command), text.length))
		return NULL;
	prb_str_deinit(&row->command);
	row->command = text;
	text = (struct prb_str){};
	if (!err)
		err = prb_process_describe(row->info.process.pid, &now);
	if (err) {
		if (err->code == PRB_ERROR_NOMEM)
			return err;
		prb_error_destroy(err);
		return NULL;
	}
	prb_process_deinit(&row->info.process);
	row->info.process = now;
	return NULL;
}

struct prb_error *prb_overview_read_facts(struct prb_overview_row *row,
					  const struct prb_engines *engines)
{
	if (engines) {
		PRB_TRY(read_groups(row));
		PRB_TRY(prb_server_is_one(engines, row->target, &row->found.pythons, &row->server));
	}
	PRB_TRY(read_step(row, engines));
	return read_command(row);
}

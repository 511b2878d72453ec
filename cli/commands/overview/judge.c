/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Derives a process's state and its troubles from its threads. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/commands/overview/overview.h"
#include "judge/threads.h"

static void forget_findings(struct prb_overview_row *row)
{
	char **text;

	prb_vec_each (text, &row->troubles)
		free(*text);
	prb_vec_free(&row->troubles);
	prb_findings_deinit(&row->findings);
	row->judged = false;
}

void prb_overview_row_clear(struct prb_overview_row *row)
{
	free(row->main.waits_for);
	free(row->main.func);
	free(row->main.qualname);
	free(row->main.file);
	row->main = (struct prb_overview_main){.idle_seconds = -1};
	row->gil_holder = 0;
	row->gil_waiters = 0;
	forget_findings(row);
}

static struct prb_error *copy(const char *text, char **ret)
{
	return text ? prb_str_copy(text, ret) : NULL;
}

static struct prb_error *take_main(struct prb_overview_row *row,
				   const struct prb_dump_thread *thread)
{
	const struct prb_dump_frame *frame;

	row->main.tid = thread->tid;
	row->main.state = thread->state;
	row->main.idle_seconds = thread->idle_seconds;
	PRB_TRY(copy(thread->waits_for, &row->main.waits_for));
	prb_vec_each (frame, &thread->frames) {
		if (frame->kind != PRB_FRAME_PYTHON)
			continue;
		row->main.line = frame->line;
		PRB_TRY(copy(frame->func, &row->main.func));
		PRB_TRY(copy(frame->qualname, &row->main.qualname));
		return copy(frame->file, &row->main.file);
	}
	return NULL;
}

struct prb_error *prb_overview_judge(struct prb_overview_row *row)
{
	const struct prb_dump_thread *thread;

	prb_overview_row_clear(row);
	prb_vec_each (thread, &row->dump->threads) {
		if (prb_thread_holds_gil(thread))
			row->gil_holder = thread->tid;
		row->gil_waiters += prb_thread_waits_for_gil(thread);
	}
	if (!row->dump->threads.count)
		return prb_str_copy("no thread of it runs Python", &row->error);
	/* The main thread is first, if it runs Python. */
	return take_main(row, row->dump->threads.items);
}

static struct prb_error *add(struct prb_overview_row *row, char *text)
{
	char **place = text ? prb_vec_push(&row->troubles) : NULL;

	if (!place) {
		free(text);
		return prb_error_nomem();
	}
	*place = text;
	return NULL;
}

static struct prb_error *judge(struct prb_overview_row *row, double now, struct prb_walks *walks,
			       struct prb_glances *glances)
{
	struct prb_case *c = &row->rules;
	struct prb_error *err;

	c->target = row->target;
	c->dump = row->dump;
	c->found = &row->found;
	c->no_rings = !row->rings && row->target && row->target->live;
	c->no_server = !row->server && !row->file;
	c->unreadable = row->info.refusal ? row->info.refusal : row->error;
	c->pid = row->file ? 0 : row->info.process.pid;
	c->words = row->words;
	c->since = now - row->read;
	c->memory = (struct prb_case_memory){true, row->limit, row->limit_used, row->swap};
	c->memories = row->trend.items;
	c->memory_count = row->trend.count;
	c->glances = glances;
	c->walks = walks;
	c->again = false;
	err = prb_judge(c, PRB_OVERVIEW_OFFERS, &row->findings);
	c->glances = NULL;
	c->walks = NULL;
	prb_case_renew(c);
	row->judged = !err;
	return err;
}

struct prb_error *prb_overview_trouble(struct prb_overview_row *row, double now,
				       struct prb_walks *walks, struct prb_glances *glances)
{
	bool readable = !row->info.refusal && !row->error;
	struct prb_finding **finding;

	forget_findings(row);
	if (row->ended)
		return add(row, prb_format("has ended%s%s", row->end.length ? ": " : "",
					   prb_str_text(&row->end)));
	if (!readable && !row->named)
		return add(row, strdup("cannot be read"));
	PRB_TRY(judge(row, now, walks, glances));
	prb_vec_each (finding, &row->findings.list)
		PRB_TRY(add(row, strdup(prb_str_text(&(*finding)->brief))));
	return NULL;
}

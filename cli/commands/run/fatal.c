/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What threads cannot come out of, and where a chain of processes ends. */
#include "base/cleanup.h"
#include "cli/commands/run/standstill.h"
#include "cluster/looks/thread_text.h"
#include "dump/idle.h"

struct prb_error *prb_standstill_fill_idle(const struct prb_standstill *s)
{
	struct prb_why_one *const *one;

	prb_vec_each (one, &s->why.list)
		if (prb_why_main(*one))
			PRB_TRY(prb_idle_fill((*one)->target, (*one)->dump, NULL));
	return NULL;
}

static bool is_fatal(const struct prb_finding *f)
{
	return f->confidence == PRB_CONFIDENCE_HIGH &&
	       (f->kind == PRB_FINDING_DEADLOCK || f->kind == PRB_FINDING_ORPHAN ||
		f->kind == PRB_FINDING_GIL);
}

static bool all_slept(const struct prb_why_one *one, const struct prb_finding *f, double seconds)
{
	const struct prb_dump_thread *thread;

	prb_vec_each (thread, &one->dump->threads)
		for (size_t i = 0; i < f->tids.count; i++)
			if (f->tids.items[i] == thread->tid && thread->idle_seconds < seconds)
				return false;
	return true;
}

const struct prb_finding *prb_standstill_fatal(const struct prb_standstill *s, pid_t pid,
					       double seconds)
{
	struct prb_why_one *const *one;

	prb_vec_each (one, &s->why.list)
		for (size_t i = 0; i < (*one)->findings.list.count; i++)
			if ((*one)->process.pid == pid && (*one)->dump &&
			    is_fatal((*one)->findings.list.items[i]) &&
			    all_slept(*one, (*one)->findings.list.items[i], seconds))
				return (*one)->findings.list.items[i];
	return NULL;
}

const struct prb_finding *prb_standstill_server(const struct prb_standstill *s, double seconds)
{
	struct prb_why_one *const *one;

	prb_vec_each (one, &s->why.list)
		for (size_t i = 0; i < (*one)->findings.list.count; i++) {
			const struct prb_finding *f = (*one)->findings.list.items[i];

			if (f->kind == PRB_FINDING_SERVER &&
			    f->confidence >= PRB_CONFIDENCE_MEDIUM && f->lasted >= seconds)
				return f;
		}
	return NULL;
}

void prb_standstill_put_end(struct prb_str *s, const struct prb_standstill *still)
{
	pid_t last = still->chain.count ? still->chain.items[still->chain.count - 1] : 0;
	const struct prb_still_process *process;

	prb_vec_each (process, &still->list) {
		if (process->pid != last)
			continue;
		prb_str_printf(s, "%d is ", (int)last);
		if (prb_why_main(process->one)) {
			prb_str_puts(s, "at ");
			prb_put_thread(s, prb_why_main(process->one));
		} else {
			prb_str_puts(s, "idle in ");
			prb_str_puts(s, process->words ? process->words : "an unknown call");
		}
	}
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/commands/list/job.h"

#include "base/text.h"

pid_t prb_list_launcher(const struct prb_job *job, const struct prb_python_processes *all)
{
	const struct prb_python_process *p;
	const struct prb_rank *rank;
	pid_t launcher = 0;

	prb_vec_each (rank, &job->ranks)
		prb_vec_each (p, &all->list) {
			if (!rank->pid || p->process.pid != rank->pid)
				continue;
			if (launcher && launcher != p->process.ppid)
				return 0;
			launcher = p->process.ppid;
		}
	return launcher > 1 ? launcher : 0;
}

static size_t count_present(const struct prb_job *job)
{
	const struct prb_rank *rank;
	size_t count = 0;

	prb_vec_each (rank, &job->ranks)
		count += rank->pid != 0;
	return count;
}

/** Ranks that follow each other are one range: "3, 5-7". */
static void put_missing(const struct prb_job *job, struct prb_str *s)
{
	const char *before = "  no process here has rank ";

	for (size_t i = 0; i < job->ranks.count; i++) {
		const struct prb_rank *first = &job->ranks.items[i];
		size_t last = i;

		if (first->pid)
			continue;
		while (last + 1 < job->ranks.count && !job->ranks.items[last + 1].pid &&
		       job->ranks.items[last + 1].rank == job->ranks.items[last].rank + 1)
			last++;
		prb_str_printf(s, "%s%ld", before, first->rank);
		if (last > i)
			prb_str_printf(s, "-%ld", job->ranks.items[last].rank);
		before = ", ";
		i = last;
	}
	if (*before == ',')
		prb_str_putc(s, '\n');
}

void prb_list_job_text(const struct prb_job *job, pid_t launcher, struct prb_str *s)
{
	size_t present = count_present(job);

	prb_text_escape(s, job->name);
	if (job->world_size >= 0)
		prb_str_printf(s, " · %zu of %ld ranks", present, job->world_size);
	else
		prb_str_printf(s, " · %zu rank%s", present, present == 1 ? "" : "s");
	prb_str_printf(s, " · uid %u", (unsigned)job->uid);
	if (launcher)
		prb_str_printf(s, " · started by %d", (int)launcher);
	prb_str_putc(s, '\n');
	put_missing(job, s);
}

void prb_list_job_json(const struct prb_job *job, pid_t launcher, struct prb_json *json)
{
	const struct prb_rank *rank;

	prb_json_text(json, "job", job->name);
	prb_json_integer(json, "uid", job->uid);
	prb_json_natural(json, "world_size", job->world_size);
	prb_json_bool(json, "complete", job->complete);
	prb_json_natural(json, "launcher", launcher ? launcher : -1);
	prb_json_open(json, "missing", '[');
	prb_vec_each (rank, &job->ranks)
		if (!rank->pid)
			prb_json_integer(json, NULL, rank->rank);
	prb_json_close(json, ']');
}

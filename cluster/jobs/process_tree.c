/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cluster/jobs/process_tree.h"

#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "target/proc/process.h"
#include "target/proc/subprocesses.h"
#include "target/spec/command_line.h"

enum { MOST = 256 /* processes */ };

/** True for processes of Ray and multiprocessing that run no code of the user. */
static bool is_daemon(const struct prb_process *process)
{
	static const char *const scripts[] = {
		"/ray/dashboard/", "/ray/autoscaler/", "/ray/_private/log_monitor.py",
		"multiprocessing.resource_tracker", "multiprocessing.forkserver"};
	static const char *const names[] = {"ray::IDLE", "ray::DashboardAgent",
					    "ray::RuntimeEnvAgent", "ray::"};

	for (size_t i = 0; i < PRB_ARRAY_SIZE(scripts); i++)
		if (prb_process_has_word(process, scripts[i]))
			return true;
	for (size_t i = 0; i < PRB_ARRAY_SIZE(names); i++)
		if (process->argv.count && !strcmp(process->argv.items[0], names[i]))
			return true;
	return false;
}

static struct prb_error *add(struct prb_job *job, struct prb_python_judge *judge,
			     const struct prb_process *process)
{
	struct prb_python_processes python = {};
	prb_auto_str struct prb_str command = {}, cut = {};
	struct prb_error *err = prb_process_judge(judge, process->pid, &python);
	const bool is_python = !err && python.list.count;
	struct prb_rank *rank;

	prb_python_processes_deinit(&python);
	PRB_TRY(prb_error_tolerate(err, NULL));
	if (!is_python || is_daemon(process) || job->ranks.count == MOST)
		return NULL;
	prb_command_line_text(&command, process);
	prb_command_line_cut(&cut, process);
	rank = prb_vec_push(&job->ranks);
	if (!rank)
		return prb_error_nomem();
	*rank = (struct prb_rank){.rank = (long)job->ranks.count - 1,
				  .local_rank = -1,
				  .pid = process->pid,
				  .command = prb_str_take(&command),
				  .cut = prb_str_take(&cut)};
	return rank->command && rank->cut ? NULL : prb_error_nomem();
}

static struct prb_error *add_all(pid_t pid, struct prb_python_judge *judge,
				 struct prb_subprocesses *children, struct prb_job *ret)
{
	struct prb_process root = {};
	const struct prb_process *child;
	struct prb_error *err = prb_process_describe(pid, &root);

	if (!err) {
		ret->uid = root.uid;
		err = add(ret, judge, &root);
	}
	if (!err && ret->ranks.count)
		err = prb_subprocesses_find(pid, children);
	prb_vec_each (child, &children->list)
		if (!err)
			err = add(ret, judge, child);
	prb_process_deinit(&root);
	return err;
}

struct prb_error *prb_job_of_processes(pid_t pid, struct prb_job *ret)
{
	struct prb_python_judge judge = {};
	struct prb_subprocesses children = {};
	struct prb_error *err;

	ret->name = prb_format("processes of %d", (int)pid);
	if (!ret->name)
		return prb_error_nomem();
	err = add_all(pid, &judge, &children, ret);
	prb_subprocesses_deinit(&children);
	prb_python_judge_deinit(&judge);
	ret->world_size = (long)ret->ranks.count;
	ret->complete = true;
	return err;
}

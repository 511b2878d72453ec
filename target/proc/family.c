/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "target/proc/family.h"

#include <stdbool.h>

#include "base/cleanup.h"
#include "target/proc/process.h"

enum { GENERATIONS = 64 };

static bool is_ancestor(pid_t ancestor, pid_t pid)
{
	for (unsigned i = 0; i < GENERATIONS && pid > 1; i++) {
		struct prb_process process = {};
		prb_auto_error struct prb_error *err = prb_process_describe(pid, &process);

		pid = err ? 0 : process.ppid;
		if (!err)
			prb_process_deinit(&process);
		if (pid == ancestor)
			return true;
	}
	return false;
}

struct prb_error *prb_family_parent(const struct prb_pids *pids, pid_t *ret)
{
	__attribute__((cleanup(prb_python_processes_deinit))) struct prb_python_processes all = {};
	__attribute__((cleanup(prb_python_judge_deinit))) struct prb_python_judge judge = {};
	const struct prb_python_process *parent, *other;
	const pid_t *pid;

	*ret = 0;
	prb_vec_each (pid, &pids->list)
		PRB_TRY(prb_process_judge(&judge, *pid, &all));
	prb_vec_each (parent, &all.list) {
		bool of_all = true;

		prb_vec_each (other, &all.list)
			of_all &= other->process.pid == parent->process.pid ||
				  is_ancestor(parent->process.pid, other->process.pid);
		if (of_all)
			*ret = parent->process.pid;
	}
	return NULL;
}

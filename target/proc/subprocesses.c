/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "target/proc/subprocesses.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "target/proc/pids.h"

void prb_subprocesses_deinit(struct prb_subprocesses *subprocesses)
{
	struct prb_process *p;

	prb_vec_each (p, &subprocesses->list)
		prb_process_deinit(p);
	prb_vec_free(&subprocesses->list);
}

static int by_pid(const void *a, const void *b)
{
	const struct prb_process *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

/** Describes all processes there are, by pid. */
static struct prb_error *describe_all(struct prb_subprocesses *ret)
{
	prb_auto_pids struct prb_pids pids = {};
	const pid_t *pid;

	PRB_TRY(prb_pids_of_all(&pids));
	prb_vec_each (pid, &pids.list) {
		struct prb_process *p = prb_vec_push(&ret->list);

		if (!p)
			return prb_error_nomem();

		struct prb_error *err = prb_process_describe(*pid, p);
		if (err)
			ret->list.count--;
		if (!prb_error_catch(&err, PRB_ERROR_NO_PROCESS) && err)
			return err;
	}
	if (ret->list.count)
		qsort(ret->list.items, ret->list.count, sizeof(*ret->list.items), by_pid);
	return NULL;
}

/** Moves the children of @p parent from @p all to @p ret. */
static struct prb_error *take_children(struct prb_subprocesses *all, pid_t parent,
				       struct prb_subprocesses *ret)
{
	struct prb_process *p;

	prb_vec_each (p, &all->list) {
		struct prb_process *place;

		if (p->ppid != parent || p->kind != PRB_PROCESS_PROGRAM || p->pid <= 0)
			continue;
		place = prb_vec_push(&ret->list);
		if (!place)
			return prb_error_nomem();
		*place = *p;
		*p = (struct prb_process){};
	}
	return NULL;
}

struct prb_error *prb_subprocesses_find(pid_t pid, struct prb_subprocesses *ret)
{
	__attribute__((cleanup(prb_subprocesses_deinit))) struct prb_subprocesses all = {};

	PRB_TRY(describe_all(&all));
	PRB_TRY(take_children(&all, pid, ret));
	/* The list grows while it is walked; each process is taken out of `all` at most once. */
	for (size_t i = 0; i < ret->list.count; i++)
		PRB_TRY(take_children(&all, ret->list.items[i].pid, ret));
	return NULL;
}

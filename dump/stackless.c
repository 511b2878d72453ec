/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A dump of a process without Python: its threads as the kernel has them. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/pool.h"
#include "dump/dump.h"
#include "target/proc/text.h"
#include "target/task.h"

static void wait_context_guard(struct prb_wait_context **waits)
{
	prb_wait_context_destroy(*waits);
}
#define auto_waits __attribute__((cleanup(wait_context_guard)))

static struct prb_error *describe(struct prb_wait_context *waits, struct prb_target *t,
				  const struct prb_task *task, struct prb_dump_thread *ret)
{
	struct prb_wait wait;
	struct prb_error *err;

	*ret = (struct prb_dump_thread){
		.tid = task->tid,
		.os_name = strdup(task->name),
		.interpreter = -1,
		.state = prb_state_name(task->state),
		.idle_seconds = -1,
	};
	if (!ret->os_name)
		return prb_error_nomem();
	PRB_TRY(prb_wait_describe(waits, t->mem, task, &wait));
	ret->enders = wait.enders;
	err = prb_wait_words(&wait, &ret->waits_for);
	prb_wait_deinit(&wait);
	return err;
}

static struct prb_error *add_threads(struct prb_wait_context *waits, struct prb_target *t,
				     struct prb_dump *dump)
{
	prb_auto_str struct prb_str tasks = {};
	char *end;

	PRB_TRY(prb_target_list(t, &tasks, "task"));
	for (const char *at = prb_str_text(&tasks);; at = end) {
		struct prb_dump_thread *place;
		struct prb_task task;
		pid_t tid = (pid_t)strtol(at, &end, 10);

		if (end == at)
			return NULL;
		struct prb_error *err = prb_task_read(t, tid, &task);
		if (prb_error_catch(&err, PRB_ERROR_NO_PROCESS))
			continue;
		PRB_TRY(err);
		place = prb_vec_push(&dump->threads);
		if (!place)
			return prb_error_nomem();
		*place = (struct prb_dump_thread){};
		PRB_TRY(describe(waits, t, &task, place));
	}
}

struct prb_error *prb_dump_create_stackless(struct prb_target *t, bool all_enders,
					    struct prb_search *search, struct prb_dump **ret)
{
	prb_auto_dump struct prb_dump *dump = calloc(1, sizeof(*dump));
	auto_waits struct prb_wait_context *waits = NULL;

	if (!dump)
		return prb_error_nomem();
	PRB_TRY(prb_pool_create(&dump->pool));
	PRB_TRY(prb_wait_context_create(t, &waits));
	if (all_enders)
		PRB_TRY(prb_wait_context_search_all(waits, search));
	dump->kind = t->kind;
	dump->pid = dump->main_tid = t->pid;
	PRB_TRY(add_threads(waits, t, dump));
	*ret = prb_steal(&dump);
	return NULL;
}

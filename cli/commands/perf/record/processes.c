/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/commands/perf/record/processes.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "command/descriptors.h"
#include "command/exit.h"
#include "cli/commands/perf/show/performance.h"
#include "target/proc/subprocesses.h"
#include "target/spec/target_spec.h"

void prb_performance_targets_deinit(struct prb_performance_targets *targets)
{
	struct prb_target **target;

	prb_vec_each (target, &targets->list)
		prb_target_destroy(*target);
	prb_vec_free(&targets->list);
}

static struct prb_error *open_one(pid_t pid, struct prb_performance_targets *ret)
{
	prb_auto_target struct prb_target *target = NULL;
	struct prb_target **slot;

	PRB_TRY(prb_target_open_process(pid, &target));
	slot = prb_vec_push(&ret->list);
	if (!slot)
		return prb_error_nomem();
	*slot = prb_steal(&target);
	return NULL;
}

/*
 * Some processes may have ended since they were listed, or belong to other users: the rest is
 * opened.
 */
static struct prb_error *open_each(const struct prb_pids *pids, struct prb_performance_targets *ret)
{
	struct prb_error *failure = NULL;
	const pid_t *pid;

	prb_vec_each (pid, &pids->list) {
		struct prb_error *err = open_one(*pid, ret);

		if (!err)
			continue;
		if (err->code != PRB_ERROR_NO_PROCESS && err->code != PRB_ERROR_NOMEM)
			prb_warn(err->message);
		prb_error_destroy(failure);
		failure = err;
		if (err->code == PRB_ERROR_NOMEM)
			return err;
	}
	if (!ret->list.count)
		return failure;
	prb_error_destroy(failure);
	return NULL;
}

static struct prb_error *open_several(const struct prb_performance_several *several,
				      struct prb_performance_targets *ret)
{
	for (size_t i = 0; i < several->count; i++)
		PRB_TRY(open_one(several->pids[i], ret));
	return NULL;
}

static struct prb_error *open_all(const char *text, struct prb_performance_targets *ret)
{
	struct prb_pids pids = {};
	struct prb_error *err = text ? prb_spec_find_all(text, &pids)
				     : prb_error_create(PRB_ERROR_USAGE, "--all is for a name");

	if (!err)
		err = open_each(&pids, ret);
	prb_pids_deinit(&pids);
	return err;
}

struct prb_error *prb_performance_open(const struct prb_cli *cli,
				       const struct prb_performance_settings *s,
				       struct prb_performance_targets *ret)
{
	struct prb_target **slot;

	prb_descriptors_raise();
	if (s->record.several)
		return open_several(s->record.several, ret);
	if (s->record.all)
		return open_all(cli->target, ret);
	slot = prb_vec_push(&ret->list);
	if (!slot)
		return prb_error_nomem();
	*slot = NULL;
	return prb_spec_open_in(cli->target, &cli->places, slot);
}

struct prb_error *prb_performance_command_line(const struct prb_target *target, char **ret)
{
	prb_auto_str struct prb_str text = {};
	struct prb_process process;

	PRB_TRY(prb_process_describe(target->pid, &process));
	prb_command_line_text(&text, &process);
	prb_process_deinit(&process);
	*ret = prb_str_take(&text);
	return *ret ? NULL : prb_error_nomem();
}

struct prb_error *prb_performance_children(void *context, pid_t pid, pid_t **ret, size_t *ret_count)
{
	struct prb_subprocesses children = {};
	struct prb_error *err = prb_subprocesses_find(pid, &children);

	(void)context;
	if (!err)
		*ret = calloc(children.list.count + 1, sizeof(**ret));
	for (size_t i = 0; !err && *ret && i < children.list.count; i++)
		(*ret)[(*ret_count)++] = children.list.items[i].pid;
	if (!err && !*ret)
		err = prb_error_nomem();
	prb_subprocesses_deinit(&children);
	return err;
}

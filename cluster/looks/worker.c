/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cluster/looks/worker.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "cluster/looks/thread_text.h"
#include "dump/dump.h"
#include "dump/idle.h"
#include "target/proc/subprocesses.h"
#include "target/target.h"

/* A worker that has nothing to do is below its loop, one at work also in here. */
static const char LOADER[] = "torch.utils.data.", LOOP[] = "torch.utils.data._utils.worker",
		  FETCH[] = "torch.utils.data._utils.fetch";

enum { MAX_WORKERS = 256 /* that are looked at */ };

/** Workers that were looked at. */
struct workers {
	struct prb_dump *at_work; /**< the main thread of the first that is, or NULL */
	pid_t pid;		  /**< of that */
	unsigned count;		  /**< that are at work */
};

static bool is_in(const struct prb_dump_thread *thread, const char *module)
{
	const struct prb_dump_frame *frame;

	prb_vec_each (frame, &thread->frames)
		if (frame->module && !strncmp(frame->module, module, strlen(module)))
			return true;
	return false;
}

static struct prb_error *read_worker(pid_t pid, struct prb_dump **ret)
{
	const struct prb_dump_options options = {.main_only = true, .no_command = true};
	prb_auto_target struct prb_target *target = NULL;

	PRB_TRY(prb_target_open_process(pid, &target));
	PRB_TRY(prb_dump_create(target, &options, ret));
	return prb_idle_fill(target, *ret, NULL);
}

static struct prb_error *consider(struct workers *workers, pid_t pid)
{
	prb_auto_dump struct prb_dump *dump = NULL;
	prb_auto_error struct prb_error *err = read_worker(pid, &dump);

	if (err && err->code == PRB_ERROR_NOMEM)
		return prb_steal(&err);
	/* Other descendants are no workers. Workers of a fork server are not our children. */
	if (err || !dump->threads.count || !is_in(&dump->threads.items[0], LOOP) ||
	    !is_in(&dump->threads.items[0], FETCH))
		return NULL;
	if (!workers->count++) {
		workers->pid = pid;
		workers->at_work = prb_steal(&dump);
	}
	return NULL;
}

static struct prb_error *put_worker(const struct workers *workers, char **ret)
{
	prb_auto_str struct prb_str s = {};

	prb_str_printf(&s, "worker %d, which is at ", (int)workers->pid);
	prb_put_thread(&s, &workers->at_work->threads.items[0]);
	if (workers->count > 1)
		prb_str_printf(&s, " (and %u more are at work)", workers->count - 1);
	*ret = prb_str_take(&s);
	return *ret ? NULL : prb_error_nomem();
}

struct prb_error *prb_worker_describe(pid_t pid, const struct prb_dump_thread *thread, char **ret)
{
	struct prb_subprocesses children = {};
	struct workers workers = {};
	struct prb_error *err;

	*ret = NULL;
	if (!is_in(thread, LOADER))
		return NULL;
	err = prb_subprocesses_find(pid, &children);
	if (err && err->code != PRB_ERROR_NOMEM) {
		prb_error_destroy(err);
		err = NULL;
	}
	for (size_t i = 0; i < children.list.count && i < MAX_WORKERS && !err; i++)
		err = consider(&workers, children.list.items[i].pid);
	if (!err && workers.count)
		err = put_worker(&workers, ret);
	prb_dump_destroy(workers.at_work);
	prb_subprocesses_deinit(&children);
	return err;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cluster/worker.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "cluster/thread_text.h"
#include "dump/idle.h"
#include "target/target.h"

/* An arrow, before the process at the other end of a pipe: "pipe 7 <- 4251 (python3)". */
static const char FROM[] = "\xe2\x86\x90 ";

static bool is_in_loader(const struct prb_dump_thread *thread)
{
	static const char modules[] = "torch.utils.data.";
	const struct prb_dump_frame *frame;

	prb_vec_each (frame, &thread->frames)
		if (frame->module && !strncmp(frame->module, modules, sizeof(modules) - 1))
			return true;
	return false;
}

static struct prb_error *read_worker(pid_t pid, struct prb_dump **ret)
{
	const struct prb_dump_options options = {.main_only = true};
	prb_auto_target struct prb_target *target = NULL;

	PRB_TRY(prb_target_open_process(pid, &target));
	PRB_TRY(prb_dump_create(target, &options, ret));
	return prb_idle_fill(target, *ret, NULL);
}

struct prb_error *prb_worker_describe(const struct prb_dump_thread *thread, char **ret)
{
	prb_auto_str struct prb_str s = {};
	prb_auto_dump struct prb_dump *dump = NULL;
	long pid = prb_number_behind(thread->waits_for, FROM);

	*ret = NULL;
	if (pid <= 0 || !is_in_loader(thread))
		return NULL;
	prb_auto_error struct prb_error *err = read_worker((pid_t)pid, &dump);
	if (err && err->code == PRB_ERROR_NOMEM)
		return prb_steal(&err);
	prb_str_printf(&s, "worker %ld, which ", pid);
	if (err || !dump->threads.count) {
		prb_str_puts(&s, "cannot be read: ");
		prb_str_puts(&s, err ? err->message : "it has no thread");
	} else {
		prb_str_puts(&s, "is at ");
		prb_put_thread(&s, &dump->threads.items[0]);
	}
	*ret = prb_str_take(&s);
	return *ret ? NULL : prb_error_nomem();
}

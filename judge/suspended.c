/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "judge/suspended.h"

#include <string.h>

#include "base/text.h"
#include "dump/dump.h"
#include "dump/model/program_frame.h"
#include "dump/waiting.h"
#include "judge/facts.h"
#include "judge/threads.h"

bool prb_task_is_main(const struct prb_dump_task *task)
{
	size_t count = task->frames.count;
	const char *func = count ? task->frames.items[count - 1].func : NULL;

	return !strcmp(task->kind, "greenlet") && func && !strcmp(func, "<module>");
}

void prb_case_put_task(struct prb_str *s, const struct prb_dump_task *task)
{
	const size_t end = prb_dump_own_frames(task);
	size_t at = 0;

	prb_str_puts(s, prb_task_is_main(task) ? "the main greenlet" : task->kind);
	if (task->name) {
		prb_str_putc(s, ' ');
		prb_text_escape(s, task->name);
	}
	while (at < end && prb_dump_is_library(&task->frames.items[at]))
		at++;
	if (at < end) {
		prb_str_puts(s, " in ");
		prb_case_put_frame(s, &task->frames.items[at]);
	}
	if (!task->waits_for)
		return;
	prb_str_puts(s, ", in ");
	prb_text_escape(s, task->waits_for);
}

struct prb_error *prb_case_read_tasks(const struct prb_case *c, struct prb_dump **ret)
{
	const struct prb_dump_options options = {
		.no_values = true, .no_command = true, .no_waits = true};
	struct prb_dump_found own = {}, *found = prb_case_found(c, &own);
	struct prb_error *err = prb_dump_create_with(c->target, &options, found, ret);

	if (!err)
		err = prb_dump_add_tasks(c->target, options.mode, found, *ret);
	prb_dump_found_deinit(&own);
	return prb_error_tolerate(err, NULL);
}

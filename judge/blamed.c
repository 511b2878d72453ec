/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "judge/blamed.h"

#include "base/text.h"
#include "target/proc/process.h"

/* False, and a process without anything known, if it cannot be described. */
static bool describe(pid_t pid, struct prb_process *ret)
{
	struct prb_error *err = prb_process_describe(pid, ret);
	const bool known = !err;

	prb_error_destroy(err);
	return known;
}

bool prb_case_is_of_user(const struct prb_case *c, pid_t pid)
{
	struct prb_process own = {}, other = {};
	const bool known = describe(c->pid, &own) && describe(pid, &other);
	const bool same = known && own.uid == other.uid;

	prb_process_deinit(&own);
	prb_process_deinit(&other);
	return same;
}

void prb_put_process(struct prb_str *s, pid_t pid)
{
	struct prb_process process = {};

	prb_str_printf(s, "%d", (int)pid);
	if (describe(pid, &process) && process.comm) {
		prb_str_putc(s, ' ');
		prb_text_escape(s, process.comm);
	}
	prb_process_deinit(&process);
}

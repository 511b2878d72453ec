/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The test that pytest runs: it notes it in os.environ, which is read from outside. */
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cli/commands/run/report.h"
#include "target/proc/text.h"
#include "values/environment.h"

const struct prb_dump_thread *prb_report_tester(const struct prb_why_one *one)
{
	const struct prb_dump_thread *thread;
	const struct prb_dump_frame *frame;

	if (one && one->dump)
		prb_vec_each (thread, &one->dump->threads)
			prb_vec_each (frame, &thread->frames)
				if (frame->func && !strcmp(frame->func, "pytest_runtest_protocol"))
					return thread;
	return NULL;
}

struct prb_error *prb_report_test(const struct prb_why_one *one, struct prb_str *ret)
{
	prb_auto_str struct prb_str environment = {};
	const char *test;

	/* Children inherit the variable: where pytest's own frame is, it is this process's test. */
	if (!one->target || !prb_report_tester(one))
		return NULL;
	PRB_TRY(prb_environment_inside(one->target, &environment));
	test = prb_text_variable(&environment, "PYTEST_CURRENT_TEST");
	if (test)
		prb_text_escape(ret, test);
	return NULL;
}

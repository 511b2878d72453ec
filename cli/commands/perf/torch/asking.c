/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/commands/perf/torch/asking.h"

#include <stdio.h>

#include "base/cleanup.h"
#include "command/interrupt.h"
#include "command/term.h"

/** The interval of looks at Ctrl-C. */
static const double LOOK_SECONDS = 0.2;

static int interruptions(void *context __attribute__((unused)))
{
	unsigned count = prb_interrupt_count();

	return count > 1 ? -1 : (int)count;
}

struct prb_error *prb_torch_ask(struct prb_target *target, struct prb_agent *agent,
				struct prb_eval *how, const struct prb_str *code, const char *doing,
				const char *then, struct prb_eval_result *ret)
{
	struct prb_error *err;

	if (code->failed)
		return prb_error_nomem();
	how->flags |= PRB_WIRE_TORCH;
	how->interruptions = interruptions;
	how->look = LOOK_SECONDS;
	if (prb_term_is(stderr))
		fprintf(stderr, "%s of %d; Ctrl-C ends it%s\n", doing, (int)target->pid, then);
	prb_interrupt_catch_ends();
	err = prb_eval_run(agent, how, "<probing>", code, ret);
	prb_interrupt_release();
	return err;
}

struct prb_error *prb_torch_refusal(struct prb_str *said, const char *what, const char *hint)
{
	while (said->length && said->data[said->length - 1] == '\n')
		prb_str_truncate(said, said->length - 1);
	return prb_error_hint(prb_error_create(PRB_ERROR_UNSUPPORTED, "%s there: %.400s", what,
					       prb_str_text(said)),
			      "%s", hint);
}

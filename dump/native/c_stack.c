/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dump/native/c_stack.h"

#include "base/cleanup.h"

enum { MAX_FRAMES = 200000 };

void prb_c_stack_deinit(struct prb_c_stack *stack)
{
	prb_vec_free(&stack->frames);
}

struct prb_error *prb_c_stack_walk(struct prb_unwinder *unwinder, struct prb_mem *mem,
				   const struct prb_regs *start, struct prb_c_stack *ret)
{
	struct prb_regs regs = *start;
	bool exact = true;

	ret->frames.count = 0;
	ret->reason = ret->trouble = NULL;
	while (ret->frames.count < MAX_FRAMES) {
		struct prb_c_frame *frame = prb_vec_push(&ret->frames);
		struct prb_unwind_step step = {};

		if (!frame)
			return prb_error_nomem();
		*frame = (struct prb_c_frame){.pc = regs.pc, .exact = exact};
		prb_regs_get(&regs, prb_regs_sp(regs.machine), &frame->low);
		PRB_TRY(prb_unwind_step(unwinder, mem, exact, &regs, &step));
		ret->reason = step.reason;
		ret->trouble = step.trouble;
		if (step.reason)
			return NULL;
		frame->high = step.cfa;
		frame->signal = step.signal_frame;
		frame->trampoline = step.trampoline;
		frame->guess = step.guess;
		if (step.end)
			return NULL;
		exact = step.signal_frame;
	}
	ret->reason = ret->trouble = "the C stack has too many frames";
	return NULL;
}

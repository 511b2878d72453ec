/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * CPython's trampolines for perf (-X perf): each Python function gets a copy of a few instructions
 * that call the eval loop, in memory without a file and without call frame information.
 */
#include <string.h>

#include "dwarf/unwind/cfi.h"
#include "dwarf/unwind/recover.h"

enum { BEFORE = 6, AFTER = 5, MACHINE_X86_64 = 62 };

/** The instructions in front of the return address and behind it; what lies on the stack there. */
static const struct trampoline {
	uint8_t before[BEFORE], after[AFTER], after_length;
	bool saves_frame_pointer;
} trampolines[] = {
	/* sub $8, %rsp; call *%rcx | add $8, %rsp; ret */
	{{0x48, 0x83, 0xec, 0x08, 0xff, 0xd1}, {0x48, 0x83, 0xc4, 0x08, 0xc3}, 5, false},
	/* push %rbp; mov %rsp, %rbp; call *%rcx | pop %rbp; ret */
	{{0x55, 0x48, 0x89, 0xe5, 0xff, 0xd1}, {0x5d, 0xc3}, 2, true},
	{{0x55, 0x48, 0x8b, 0xec, 0xff, 0xd1}, {0x5d, 0xc3}, 2, true},
};

static const struct trampoline *find(const uint8_t code[BEFORE + AFTER])
{
	for (size_t i = 0; i < sizeof(trampolines) / sizeof(*trampolines); i++) {
		const struct trampoline *t = &trampolines[i];

		if (!memcmp(code, t->before, BEFORE) &&
		    !memcmp(code + BEFORE, t->after, t->after_length))
			return t;
	}
	return NULL;
}

enum prb_cfi_status prb_cfi_leave_trampoline(const struct prb_cfi_memory *memory,
					     struct prb_regs *regs, uint64_t *cfa)
{
	uint8_t code[BEFORE + AFTER];
	uint64_t sp, words[2]; /* its own, return address */
	const struct trampoline *t;

	if (regs->machine != MACHINE_X86_64 || !prb_regs_get(regs, prb_regs_sp(regs->machine), &sp))
		return PRB_CFI_NOT_FOUND;
	if (!memory->read(memory->context, regs->pc - BEFORE, code, sizeof(code)))
		return PRB_CFI_NOT_FOUND;
	t = find(code);
	if (!t)
		return PRB_CFI_NOT_FOUND;
	if (!memory->read(memory->context, sp, words, sizeof(words)))
		return PRB_CFI_UNREADABLE_STACK;
	if (t->saves_frame_pointer)
		prb_regs_set(regs, prb_regs_fp(regs->machine), words[0]);
	*cfa = sp + sizeof(words);
	prb_regs_set(regs, prb_regs_sp(regs->machine), *cfa);
	regs->pc = words[1];
	return PRB_CFI_OK;
}

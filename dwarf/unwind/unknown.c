/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dwarf/unwind/unknown.h"

#include <elf.h>
#include <string.h>

#include "base/checked.h"
#include "dwarf/unwind/code.h"
#include "dwarf/unwind/recover.h"

enum {
	FRAME_MOST = 1 << 20, /* bytes of a frame that is believed */
	WORD = 8,
};

static bool fetch(const struct prb_cfi_memory *memory, uint64_t address, uint64_t *ret)
{
	return memory->read(memory->context, address, ret, sizeof(*ret));
}

/* The code that CPython writes: a call with code before and behind it, and a frame of two words. */
struct trampoline {
	uint8_t code[11], size;
	uint8_t call;	    /* bytes up to behind the call */
	bool frame_pointer; /* it has saved that */
};

static const struct trampoline trampolines[] = {
	/* sub $8,%rsp; call *%rcx; add $8,%rsp; ret */
	{{0x48, 0x83, 0xec, 0x08, 0xff, 0xd1, 0x48, 0x83, 0xc4, 0x08, 0xc3}, 11, 6, false},
	/* push %rbp; mov %rsp,%rbp; call *%rcx; pop %rbp; ret */
	{{0x55, 0x48, 0x89, 0xe5, 0xff, 0xd1, 0x5d, 0xc3}, 8, 6, true},
};

/* The one whose call @regs are in, or NULL. */
static const struct trampoline *find_trampoline(const struct prb_cfi_memory *memory,
						const struct prb_regs *regs)
{
	uint8_t code[sizeof(trampolines[0].code)];

	for (size_t i = 0; regs->machine == EM_X86_64 && i < PRB_ARRAY_SIZE(trampolines); i++) {
		const struct trampoline *one = &trampolines[i];

		if (memory->read(memory->context, regs->pc - one->call, code, one->size) &&
		    !memcmp(code, one->code, one->size))
			return one;
	}
	return NULL;
}

static bool behind_call(const struct prb_cfi_memory *memory, uint16_t machine, uint64_t address)
{
	struct prb_call call;

	prb_code_call_before(memory, machine, address, &call);
	return call.kind != PRB_CALL_NONE;
}

static void set_caller(struct prb_regs *regs, uint64_t pc, uint64_t sp)
{
	regs->pc = pc;
	prb_regs_set(regs, prb_regs_sp(regs->machine), sp);
}

/* It changes no register that functions preserve but the frame pointer. */
static enum prb_cfi_status leave_trampoline(const struct prb_cfi_memory *memory,
					    const struct trampoline *trampoline,
					    struct prb_regs *regs, uint64_t *cfa)
{
	uint64_t sp = 0, saved, pc;

	if (!prb_regs_get(regs, prb_regs_sp(regs->machine), &sp) || !fetch(memory, sp, &saved) ||
	    !fetch(memory, sp + WORD, &pc) || !behind_call(memory, regs->machine, pc))
		return PRB_CFI_NOT_FOUND;
	if (trampoline->frame_pointer)
		prb_regs_set(regs, prb_regs_fp(regs->machine), saved);
	*cfa = sp + 2 * WORD;
	set_caller(regs, pc, *cfa);
	return PRB_CFI_OK;
}

static enum prb_cfi_status by_frame_pointer(const struct prb_cfi_memory *memory,
					    struct prb_regs *regs, uint64_t *cfa)
{
	unsigned number = prb_regs_fp(regs->machine);
	uint64_t sp = 0, frame = 0, saved, pc;

	if (!prb_regs_get(regs, prb_regs_sp(regs->machine), &sp) ||
	    !prb_regs_get(regs, number, &frame) || frame % WORD || frame < sp ||
	    frame - sp > FRAME_MOST || !fetch(memory, frame, &saved) ||
	    !fetch(memory, frame + WORD, &pc) || !behind_call(memory, regs->machine, pc))
		return PRB_CFI_NOT_FOUND;
	*cfa = frame + 2 * WORD;
	for (unsigned i = 0; i < PRB_REG_COUNT; i++)
		prb_regs_forget(regs, i);
	prb_regs_set(regs, number, saved);
	set_caller(regs, pc, *cfa);
	return PRB_CFI_OK;
}

enum prb_cfi_status prb_cfi_leave_unknown(const struct prb_cfi_memory *memory, bool exact_pc,
					  struct prb_regs *regs, uint64_t *cfa, bool *guess)
{
	const struct trampoline *trampoline = exact_pc ? NULL : find_trampoline(memory, regs);

	*guess = !trampoline;
	if (trampoline)
		return leave_trampoline(memory, trampoline, regs, cfa);
	return by_frame_pointer(memory, regs, cfa);
}

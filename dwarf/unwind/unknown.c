/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dwarf/unwind/unknown.h"

#include <elf.h>
#include <string.h>

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

/* Whether @regs are in a call that this code makes: sub $8,%rsp; call *%rcx. */
static bool in_trampoline(const struct prb_cfi_memory *memory, const struct prb_regs *regs)
{
	static const uint8_t call[] = {0x48, 0x83, 0xec, 0x08, 0xff, 0xd1};
	static const uint8_t after[] = {0x48, 0x83, 0xc4, 0x08, 0xc3};
	uint8_t code[sizeof(call) + sizeof(after)];

	return regs->machine == EM_X86_64 &&
	       memory->read(memory->context, regs->pc - sizeof(call), code, sizeof(code)) &&
	       !memcmp(code, call, sizeof(call)) &&
	       !memcmp(code + sizeof(call), after, sizeof(after));
}

static bool behind_call(const struct prb_cfi_memory *memory, uint16_t machine, uint64_t address)
{
	struct prb_call call;

	prb_code_call_before(memory, machine, address, &call);
	return call.kind != PRB_CALL_NONE;
}

/* Registers that functions preserve were left alone by code that has none but a frame pointer. */
static void set_caller(struct prb_regs *regs, uint64_t pc, uint64_t sp)
{
	regs->pc = pc;
	prb_regs_set(regs, prb_regs_sp(regs->machine), sp);
}

static enum prb_cfi_status leave_trampoline(const struct prb_cfi_memory *memory,
					    struct prb_regs *regs, uint64_t *cfa)
{
	uint64_t sp = 0, pc;

	if (!prb_regs_get(regs, prb_regs_sp(regs->machine), &sp) ||
	    !fetch(memory, sp + WORD, &pc) || !behind_call(memory, regs->machine, pc))
		return PRB_CFI_NOT_FOUND;
	*cfa = sp + 2 * WORD;
	set_caller(regs, pc, *cfa);
	return PRB_CFI_OK;
}

static enum prb_cfi_status by_frame_pointer(const struct prb_cfi_memory *memory,
					    struct prb_regs *regs, uint64_t *cfa)
{
	unsigned number = prb_regs_frame_pointer(regs->machine);
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
	*guess = false;
	if (!exact_pc && in_trampoline(memory, regs))
		return leave_trampoline(memory, regs, cfa);
	*guess = true;
	return by_frame_pointer(memory, regs, cfa);
}

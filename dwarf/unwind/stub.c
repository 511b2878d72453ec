/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Stubs that linkers make and that often have no CFI: entries of the PLT, long branches.
 *
 * They end in a jump to a function and do little before it, so what they will do is carried out:
 * afterwards the pc is in the function, which has CFI, and the frame is the same. Their pushes are
 * for the dynamic linker and read by no rule, so only the stack pointer is moved.
 */
#include <string.h>

#include "dwarf/unwind/cfi.h"

enum { MACHINE_AARCH64 = 183, MAX_INSTRUCTIONS = 16, X16 = 16, X17 = 17 };

static int32_t number_at(const uint8_t *bytes)
{
	int32_t number;

	memcpy(&number, bytes, sizeof(number));
	return number;
}

/* As many of @max bytes of code as there are before memory ends. */
static size_t read_code(const struct prb_cfi_memory *memory, uint64_t pc, uint8_t *code, size_t max)
{
	while (max > 0 && !memory->read(memory->context, pc, code, max))
		max--;
	return max;
}

static bool starts_with(const uint8_t *code, size_t length, const char *bytes, size_t count)
{
	return length >= count && memcmp(code, bytes, count) == 0;
}

static void push(struct prb_regs *regs)
{
	regs->value[PRB_REG_X86_64_RSP] -= 8;
}

/* Carries out one instruction; *jumped: it was the jump through memory that ends a stub. */
static bool run_x86_64(const struct prb_cfi_memory *memory, struct prb_regs *regs, bool *jumped)
{
	uint8_t code[6];
	size_t length = read_code(memory, regs->pc, code, sizeof(code));

	if (starts_with(code, length, "\xf3\x0f\x1e\xfa", 4)) { /* endbr64 */
		regs->pc += 4;
	} else if (starts_with(code, length, "\xf2", 1)) { /* bnd, in front of a jump */
		regs->pc += 1;
	} else if (length == 6 && starts_with(code, length, "\x41\xbb", 2)) { /* mov $n, %r11d */
		prb_regs_set(regs, 11, (uint32_t)number_at(code + 2));
		regs->pc += 6;
	} else if (length == 6 && starts_with(code, length, "\xff\x35", 2)) { /* push n(%rip) */
		push(regs);
		regs->pc += 6;
	} else if (length >= 5 && code[0] == 0x68) { /* push $n */
		push(regs);
		regs->pc += 5;
	} else if (length >= 5 && code[0] == 0xe9) { /* jmp n */
		regs->pc += 5 + (uint64_t)(int64_t)number_at(code + 1);
	} else if (length == 6 && starts_with(code, length, "\xff\x25", 2)) { /* jmp *n(%rip) */
		uint64_t at = regs->pc + 6 + (uint64_t)(int64_t)number_at(code + 2);

		*jumped = true;
		return memory->read(memory->context, at, &regs->pc, sizeof(regs->pc));
	} else {
		return false;
	}
	return true;
}

static uint64_t page_of(uint32_t code, uint64_t pc)
{
	int64_t pages = (int64_t)((uint64_t)(code >> 5 & 0x7ffff) << 2 | (code >> 29 & 3));

	pages = (int64_t)((uint64_t)pages << 43) >> 43;
	return (pc & ~0xfffULL) + ((uint64_t)pages << 12);
}

static bool run_aarch64(const struct prb_cfi_memory *memory, struct prb_regs *regs, bool *jumped)
{
	uint64_t value = 0, x16 = 0;
	bool known = prb_regs_get(regs, X16, &x16);
	uint32_t code;

	if (!memory->read(memory->context, regs->pc, &code, sizeof(code)))
		return false;
	if ((code & 0x9f00001f) == 0x90000010) { /* adrp x16, page */
		prb_regs_set(regs, X16, page_of(code, regs->pc));
	} else if ((code & 0xffc003ff) == 0xf9400211) { /* ldr x17, [x16, #n] */
		if (!known || !memory->read(memory->context, x16 + (code >> 10 & 0xfff) * 8, &value,
					    sizeof(value)))
			return false;
		prb_regs_set(regs, X17, value);
	} else if ((code & 0xffc003ff) == 0x91000210) { /* add x16, x16, #n */
		if (!known)
			return false;
		prb_regs_set(regs, X16, x16 + (code >> 10 & 0xfff));
	} else if (code == 0xd61f0200 || code == 0xd61f0220) { /* br x16, br x17 */
		*jumped = true;
		return prb_regs_get(regs, code == 0xd61f0200 ? X16 : X17, &regs->pc);
	} else if (code != 0xd503245f && code != 0xd503201f) { /* bti c, nop */
		return false;
	}
	regs->pc += 4;
	return true;
}

enum prb_cfi_status prb_cfi_leave_stub(const struct prb_cfi_memory *memory, struct prb_regs *regs)
{
	bool aarch64 = regs->machine == MACHINE_AARCH64, jumped = false;
	struct prb_regs after = *regs;

	if (!(regs->known >> prb_regs_sp(regs->machine) & 1))
		return PRB_CFI_UNKNOWN_REGISTER;
	for (unsigned i = 0; i < MAX_INSTRUCTIONS && !jumped; i++) {
		bool ok = aarch64 ? run_aarch64(memory, &after, &jumped)
				  : run_x86_64(memory, &after, &jumped);

		if (!ok)
			return PRB_CFI_NOT_FOUND;
	}
	if (!jumped)
		return PRB_CFI_NOT_FOUND;
	*regs = after;
	return PRB_CFI_OK;
}

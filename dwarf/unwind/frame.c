/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file From a row to the registers of the caller.
 */
#include <string.h>

#include "dwarf/unwind/cfi.h"

enum { MACHINE_X86_64 = 62, MACHINE_AARCH64 = 183 };

/* Saved registers that lie one behind the other are read at once, up to so many bytes. */
enum { MAX_BLOCK = 256 };

/* Registers that functions must preserve: rbx rbp r12–r15; x19–x29. */
static uint64_t callee_saved(uint16_t machine)
{
	if (machine == MACHINE_AARCH64)
		return 0x7ffULL << 19;
	return 1ULL << 3 | 1ULL << 6 | 0xfULL << 12;
}

/* The part of the stack around the CFA where a row has saved its registers. */
struct block {
	int64_t low, high; /* offsets from the CFA: [low, high) */
	bool ok;
	uint8_t bytes[MAX_BLOCK];
};

static void read_block(const struct prb_cfi_memory *memory, const struct prb_cfi_row *row,
		       uint64_t cfa, struct block *block)
{
	int64_t saved = 0;

	block->low = INT64_MAX;
	block->high = INT64_MIN;
	block->ok = false;
	for (unsigned i = 0; i < row->count; i++) {
		int64_t offset = row->rules[i].value;

		if (row->rules[i].kind != PRB_CFI_OFFSET)
			continue;
		saved += 8;
		if (offset < block->low)
			block->low = offset;
		if (offset + 8 > block->high)
			block->high = offset + 8;
	}
	/* Words in gaps are not needed, and may have any value. */
	if (saved && saved <= MAX_BLOCK && block->high - block->low == saved)
		block->ok = memory->read(memory->context, cfa + (uint64_t)block->low, block->bytes,
					 (size_t)(block->high - block->low));
}

static enum prb_cfi_status load(const struct prb_cfi_memory *memory, uint64_t address,
				uint64_t *ret)
{
	if (!memory->read(memory->context, address, ret, sizeof(*ret)))
		return PRB_CFI_UNREADABLE_STACK;
	return PRB_CFI_OK;
}

/* Everything that rules are applied to. */
struct frame {
	const struct prb_cfi_section *section;
	const struct prb_cfi_memory *memory;
	const struct prb_regs *regs;
	uint64_t cfa;
	struct block block;
};

static enum prb_cfi_status register_value(const struct prb_regs *regs, unsigned number,
					  uint64_t *ret)
{
	return prb_regs_get(regs, number, ret) ? PRB_CFI_OK : PRB_CFI_UNKNOWN_REGISTER;
}

/* Value in the caller of register @number, for which there is @rule. */
static enum prb_cfi_status apply_rule(const struct frame *f, unsigned number,
				      const struct prb_cfi_rule *rule, uint64_t *ret)
{
	enum prb_cfi_status status;
	uint64_t address;

	switch (rule->kind) {
	case PRB_CFI_SAME:
		return register_value(f->regs, number, ret);
	case PRB_CFI_OFFSET:
		if (f->block.ok) {
			memcpy(ret, f->block.bytes + (rule->value - f->block.low), sizeof(*ret));
			return PRB_CFI_OK;
		}
		return load(f->memory, f->cfa + (uint64_t)(int64_t)rule->value, ret);
	case PRB_CFI_VAL_OFFSET:
		*ret = f->cfa + (uint64_t)(int64_t)rule->value;
		return PRB_CFI_OK;
	case PRB_CFI_REGISTER:
		return register_value(f->regs, rule->reg, ret);
	case PRB_CFI_EXPRESSION:
		status = prb_cfi_evaluate(f->section, f->memory, rule, f->regs, &f->cfa, &address);
		return status == PRB_CFI_OK ? load(f->memory, address, ret) : status;
	case PRB_CFI_VAL_EXPRESSION:
		return prb_cfi_evaluate(f->section, f->memory, rule, f->regs, &f->cfa, ret);
	default:
		return PRB_CFI_UNKNOWN_REGISTER;
	}
}

static enum prb_cfi_status find_cfa(struct frame *f, const struct prb_cfi_row *row)
{
	if (row->cfa.kind == PRB_CFI_VAL_EXPRESSION)
		return prb_cfi_evaluate(f->section, f->memory, &row->cfa, f->regs, NULL, &f->cfa);
	if (!prb_regs_get(f->regs, row->cfa.reg, &f->cfa))
		return PRB_CFI_UNKNOWN_REGISTER;
	f->cfa += (uint64_t)(int64_t)row->cfa.value;
	return PRB_CFI_OK;
}

/* The return address as it was saved. */
static enum prb_cfi_status find_return_address(const struct frame *f, const struct prb_cfi_row *row,
					       uint64_t *ret)
{
	struct prb_cfi_rule rule = prb_cfi_row_rule(row, row->ra);

	if (rule.kind == PRB_CFI_UNDEFINED)
		return PRB_CFI_END;
	if (rule.kind == PRB_CFI_UNSPECIFIED) {
		/* On aarch64 it is in the link register until a function saves it. */
		if (f->regs->machine != MACHINE_AARCH64)
			return PRB_CFI_NO_RULE;
		rule.kind = PRB_CFI_SAME;
	}
	return apply_rule(f, row->ra, &rule, ret);
}

static bool is_signed(const struct frame *f, const struct prb_cfi_row *row)
{
	struct prb_cfi_rule rule = prb_cfi_row_rule(row, PRB_REG_AARCH64_SIGN_STATE);
	uint64_t state;

	if (f->regs->machine != MACHINE_AARCH64)
		return false;
	if (rule.kind != PRB_CFI_UNSPECIFIED &&
	    apply_rule(f, PRB_REG_AARCH64_SIGN_STATE, &rule, &state) == PRB_CFI_OK)
		return state & PRB_CFI_SIGNED;
	return row->sign_state & PRB_CFI_SIGNED;
}

enum prb_cfi_status prb_cfi_apply(const struct prb_cfi_section *section,
				  const struct prb_cfi_memory *memory,
				  const struct prb_cfi_row *row, uint64_t pac_mask,
				  struct prb_regs *regs, uint64_t *cfa)
{
	struct frame f = {.section = section, .memory = memory, .regs = regs};
	unsigned sp = prb_regs_sp(regs->machine);
	struct prb_regs caller;
	enum prb_cfi_status status;
	uint64_t value, pending;

	status = find_cfa(&f, row);
	if (status != PRB_CFI_OK)
		return status;
	read_block(memory, row, f.cfa, &f.block);
	status = find_return_address(&f, row, &caller.pc);
	if (status != PRB_CFI_OK)
		return status;
	if (is_signed(&f, row))
		caller.pc &= ~pac_mask;

	caller.machine = regs->machine;
	memcpy(caller.value, regs->value, sizeof(caller.value));
	caller.known = regs->known & callee_saved(regs->machine);
	prb_regs_set(&caller, sp, f.cfa);
	pending = row->mask;
	for (unsigned i = 0; i < row->count; i++, pending &= pending - 1) {
		unsigned number = (unsigned)__builtin_ctzll(pending);

		if (apply_rule(&f, number, &row->rules[i], &value) == PRB_CFI_OK)
			prb_regs_set(&caller, number, value);
		else
			prb_regs_forget(&caller, number);
	}
	prb_regs_forget(&caller, regs->machine == MACHINE_AARCH64 ? PRB_REG_AARCH64_SIGN_STATE
								  : PRB_REG_X86_64_RA);
	*regs = caller;
	*cfa = f.cfa;
	return PRB_CFI_OK;
}

/* mov $15, %rax; syscall, as in glibc and the kernel's own tests; and mov $15, %eax. */
static const uint8_t x86_64_wide[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
static const uint8_t x86_64_narrow[] = {0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05};
/* mov x8, #139; svc #0 */
static const uint8_t aarch64_code[] = {0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4};

/* True if the code at @pc is @code, or its last @tail bytes (the first instruction has run). */
static bool code_is(const struct prb_cfi_memory *memory, uint64_t pc, const uint8_t *code,
		    size_t length, size_t tail)
{
	uint8_t bytes[16];

	if (memory->read(memory->context, pc, bytes, length) && memcmp(bytes, code, length) == 0)
		return true;
	if (!memory->read(memory->context, pc - (length - tail), bytes, length))
		return false;
	return memcmp(bytes, code, length) == 0;
}

/* The stack pointer points at a ucontext, whose registers begin at byte 40. */
static enum prb_cfi_status leave_x86_64(const struct prb_cfi_memory *memory, struct prb_regs *regs)
{
	/* r8–r15 rdi rsi rbp rbx rdx rax rcx rsp by their DWARF numbers, then rip */
	static const uint8_t order[] = {8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0, 2, 7};
	uint64_t saved[17], sp;

	if (!prb_regs_get(regs, PRB_REG_X86_64_RSP, &sp))
		return PRB_CFI_UNKNOWN_REGISTER;
	if (!memory->read(memory->context, sp + 40, saved, sizeof(saved)))
		return PRB_CFI_UNREADABLE_STACK;
	regs->known = 0;
	for (unsigned i = 0; i < 16; i++)
		prb_regs_set(regs, order[i], saved[i]);
	regs->pc = saved[16];
	return PRB_CFI_OK;
}

/* At the stack pointer lie a siginfo (128 bytes) and a ucontext: x0 to x30, sp and pc at 184. */
static enum prb_cfi_status leave_aarch64(const struct prb_cfi_memory *memory, struct prb_regs *regs)
{
	uint64_t saved[33], sp;

	if (!prb_regs_get(regs, PRB_REG_AARCH64_SP, &sp))
		return PRB_CFI_UNKNOWN_REGISTER;
	if (!memory->read(memory->context, sp + 128 + 184, saved, sizeof(saved)))
		return PRB_CFI_UNREADABLE_STACK;
	regs->known = 0;
	for (unsigned i = 0; i <= PRB_REG_AARCH64_SP; i++)
		prb_regs_set(regs, i, saved[i]);
	regs->pc = saved[32];
	return PRB_CFI_OK;
}

enum prb_cfi_status prb_cfi_sigreturn(const struct prb_cfi_memory *memory, struct prb_regs *regs,
				      uint64_t *cfa)
{
	enum prb_cfi_status status;

	if (regs->machine == MACHINE_AARCH64) {
		if (!code_is(memory, regs->pc, aarch64_code, sizeof(aarch64_code), 4))
			return PRB_CFI_NOT_FOUND;
		status = leave_aarch64(memory, regs);
	} else if (regs->machine == MACHINE_X86_64) {
		if (!code_is(memory, regs->pc, x86_64_wide, sizeof(x86_64_wide), 2) &&
		    !code_is(memory, regs->pc, x86_64_narrow, sizeof(x86_64_narrow), 2))
			return PRB_CFI_NOT_FOUND;
		status = leave_x86_64(memory, regs);
	} else {
		return PRB_CFI_UNSUPPORTED;
	}
	if (status == PRB_CFI_OK)
		*cfa = regs->value[prb_regs_sp(regs->machine)];
	return status;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file DWARF expressions, as far as they occur in call frame information: a stack machine.
 */
#include "base/checked.h"
#include "dwarf/unwind/cfi.h"
#include "dwarf/unwind/cursor.h"

/* Real expressions have some ten operations; the bound is for loops made of branches. */
enum { MAX_STACK = 64, MAX_OPERATIONS = 4096 };

enum {
	PC_X86_64 = 16,
	PC_AARCH64 = 32,
	MACHINE_AARCH64 = 183,
};

enum {
	DW_OP_addr = 0x03,
	DW_OP_deref = 0x06,
	DW_OP_const1u = 0x08,
	DW_OP_const1s = 0x09,
	DW_OP_const2u = 0x0a,
	DW_OP_const2s = 0x0b,
	DW_OP_const4u = 0x0c,
	DW_OP_const4s = 0x0d,
	DW_OP_const8u = 0x0e,
	DW_OP_const8s = 0x0f,
	DW_OP_constu = 0x10,
	DW_OP_consts = 0x11,
	DW_OP_dup = 0x12,
	DW_OP_drop = 0x13,
	DW_OP_over = 0x14,
	DW_OP_pick = 0x15,
	DW_OP_swap = 0x16,
	DW_OP_rot = 0x17,
	DW_OP_abs = 0x19,
	DW_OP_and = 0x1a,
	DW_OP_div = 0x1b,
	DW_OP_minus = 0x1c,
	DW_OP_mod = 0x1d,
	DW_OP_mul = 0x1e,
	DW_OP_neg = 0x1f,
	DW_OP_not = 0x20,
	DW_OP_or = 0x21,
	DW_OP_plus = 0x22,
	DW_OP_plus_uconst = 0x23,
	DW_OP_shl = 0x24,
	DW_OP_shr = 0x25,
	DW_OP_shra = 0x26,
	DW_OP_xor = 0x27,
	DW_OP_bra = 0x28,
	DW_OP_eq = 0x29,
	DW_OP_ge = 0x2a,
	DW_OP_gt = 0x2b,
	DW_OP_le = 0x2c,
	DW_OP_lt = 0x2d,
	DW_OP_ne = 0x2e,
	DW_OP_skip = 0x2f,
	DW_OP_lit0 = 0x30,
	DW_OP_lit31 = 0x4f,
	DW_OP_reg0 = 0x50,
	DW_OP_reg31 = 0x6f,
	DW_OP_breg0 = 0x70,
	DW_OP_breg31 = 0x8f,
	DW_OP_regx = 0x90,
	DW_OP_bregx = 0x92,
	DW_OP_deref_size = 0x94,
	DW_OP_nop = 0x96,
	DW_OP_GNU_encoded_addr = 0xf1,
};

struct evaluation {
	struct prb_cursor c;
	const struct prb_regs *regs;
	uint64_t stack[MAX_STACK];
	unsigned depth;
	enum prb_cfi_status status;
};

static void stop(struct evaluation *e, enum prb_cfi_status status)
{
	if (e->status == PRB_CFI_OK)
		e->status = status;
}

static void push(struct evaluation *e, uint64_t value)
{
	if (e->depth < MAX_STACK)
		e->stack[e->depth++] = value;
	else
		stop(e, PRB_CFI_BAD);
}

static uint64_t pop(struct evaluation *e)
{
	if (e->depth > 0)
		return e->stack[--e->depth];
	stop(e, PRB_CFI_BAD);
	return 0;
}

/* Pushes what lies @below entries under the top. */
static void pick(struct evaluation *e, unsigned below)
{
	if (below < e->depth)
		push(e, e->stack[e->depth - 1 - below]);
	else
		stop(e, PRB_CFI_BAD);
}

static void push_register(struct evaluation *e, uint64_t reg, int64_t offset)
{
	uint64_t value;

	if (reg == (e->regs->machine == MACHINE_AARCH64 ? PC_AARCH64 : PC_X86_64))
		push(e, e->regs->pc + (uint64_t)offset);
	else if (reg < PRB_REG_COUNT && prb_regs_get(e->regs, (unsigned)reg, &value))
		push(e, value + (uint64_t)offset);
	else
		stop(e, PRB_CFI_UNKNOWN_REGISTER);
}

static void dereference(struct evaluation *e, unsigned size)
{
	uint64_t address = pop(e), value = 0;

	if (size < 1 || size > sizeof(value)) {
		stop(e, PRB_CFI_BAD);
		return;
	}
	if (e->status != PRB_CFI_OK)
		return;
	if (e->c.memory->read(e->c.memory->context, address, &value, size))
		push(e, value);
	else
		stop(e, PRB_CFI_UNREADABLE_STACK);
}

/* Moves by a signed offset from behind the operand, within the expression. */
static void branch(struct evaluation *e, uint64_t start, bool taken)
{
	int64_t offset = prb_cursor_fixed_signed(&e->c, 2);
	uint64_t target = prb_cursor_address(&e->c) + (uint64_t)offset;

	if (!taken || e->c.failed)
		return;
	if (target < start || target > e->c.end)
		stop(e, PRB_CFI_BAD);
	else
		prb_cursor_seek(&e->c, target);
}

/* Constants and registers; false if @op is none. */
static bool run_value(struct evaluation *e, uint8_t op)
{
	struct prb_cursor *c = &e->c;
	uint64_t reg;

	if (op >= DW_OP_lit0 && op <= DW_OP_lit31) {
		push(e, op - DW_OP_lit0);
	} else if (op >= DW_OP_breg0 && op <= DW_OP_breg31) {
		push_register(e, op - DW_OP_breg0, prb_cursor_sleb(c));
	} else if (op >= DW_OP_reg0 && op <= DW_OP_reg31) {
		push_register(e, op - DW_OP_reg0, 0);
	} else if (op == DW_OP_regx) {
		push_register(e, prb_cursor_uleb(c), 0);
	} else if (op == DW_OP_bregx) {
		reg = prb_cursor_uleb(c);
		push_register(e, reg, prb_cursor_sleb(c));
	} else if (op >= DW_OP_const1u && op <= DW_OP_const8s) {
		unsigned width = 1U << ((op - DW_OP_const1u) / 2);

		push(e, (op - DW_OP_const1u) % 2 ? (uint64_t)prb_cursor_fixed_signed(c, width)
						 : prb_cursor_fixed(c, width));
	} else if (op == DW_OP_constu) {
		push(e, prb_cursor_uleb(c));
	} else if (op == DW_OP_consts) {
		push(e, (uint64_t)prb_cursor_sleb(c));
	} else if (op == DW_OP_addr) {
		push(e, prb_cursor_pointer(c, DW_EH_PE_absptr));
	} else if (op == DW_OP_GNU_encoded_addr) {
		uint8_t encoding = prb_cursor_u8(c);

		push(e, prb_cursor_pointer(c, encoding));
	} else {
		return false;
	}
	return true;
}

static uint64_t shift_right_signed(uint64_t value, uint64_t by)
{
	return (uint64_t)((int64_t)value >> (by < 63 ? by : 63));
}

static void divide(struct evaluation *e, uint64_t a, uint64_t b)
{
	if (b == 0)
		stop(e, PRB_CFI_BAD);
	else if ((int64_t)b == -1)
		push(e, -a); /* the most negative number has no counterpart */
	else
		push(e, (uint64_t)((int64_t)a / (int64_t)b));
}

static void modulo(struct evaluation *e, uint64_t a, uint64_t b)
{
	if (b == 0)
		stop(e, PRB_CFI_BAD);
	else
		push(e, a % b);
}

/* Operations on the two topmost entries: @b was on top of @a. */
static void run_binary(struct evaluation *e, uint8_t op)
{
	uint64_t b = pop(e), a = pop(e);

	switch (op) {
	case DW_OP_and:
		return push(e, a & b);
	case DW_OP_div:
		return divide(e, a, b);
	case DW_OP_minus:
		return push(e, a - b);
	case DW_OP_mod:
		return modulo(e, a, b);
	case DW_OP_mul:
		return push(e, a * b);
	case DW_OP_or:
		return push(e, a | b);
	case DW_OP_plus:
		return push(e, a + b);
	case DW_OP_shl:
		return push(e, b < 64 ? a << b : 0);
	case DW_OP_shr:
		return push(e, b < 64 ? a >> b : 0);
	case DW_OP_shra:
		return push(e, shift_right_signed(a, b));
	case DW_OP_xor:
		return push(e, a ^ b);
	case DW_OP_eq:
		return push(e, a == b);
	case DW_OP_ge:
		return push(e, (int64_t)a >= (int64_t)b);
	case DW_OP_gt:
		return push(e, (int64_t)a > (int64_t)b);
	case DW_OP_le:
		return push(e, (int64_t)a <= (int64_t)b);
	case DW_OP_lt:
		return push(e, (int64_t)a < (int64_t)b);
	case DW_OP_ne:
		return push(e, a != b);
	case DW_OP_swap:
		push(e, b);
		return push(e, a);
	default:
		stop(e, PRB_CFI_UNSUPPORTED);
	}
}

static void rotate(struct evaluation *e)
{
	uint64_t top = pop(e), second = pop(e), third = pop(e);

	push(e, top);
	push(e, third);
	push(e, second);
}

/* Operations on the topmost entry, on memory and on the order of the stack; then the binary. */
static void run_operation(struct evaluation *e, uint8_t op)
{
	uint64_t value;

	switch (op) {
	case DW_OP_nop:
		break;
	case DW_OP_deref:
		dereference(e, 8);
		break;
	case DW_OP_deref_size:
		dereference(e, prb_cursor_u8(&e->c));
		break;
	case DW_OP_dup:
		pick(e, 0);
		break;
	case DW_OP_drop:
		pop(e);
		break;
	case DW_OP_over:
		pick(e, 1);
		break;
	case DW_OP_pick:
		pick(e, prb_cursor_u8(&e->c));
		break;
	case DW_OP_rot:
		rotate(e);
		break;
	case DW_OP_abs:
		value = pop(e);
		push(e, (int64_t)value < 0 ? -value : value);
		break;
	case DW_OP_neg:
		push(e, -pop(e));
		break;
	case DW_OP_not:
		push(e, ~pop(e));
		break;
	case DW_OP_plus_uconst:
		value = pop(e);
		push(e, value + prb_cursor_uleb(&e->c));
		break;
	default:
		run_binary(e, op);
		break;
	}
}

enum prb_cfi_status prb_cfi_evaluate(const struct prb_cfi_section *section,
				     const struct prb_cfi_memory *memory,
				     const struct prb_cfi_rule *rule, const struct prb_regs *regs,
				     const uint64_t *initial, uint64_t *ret)
{
	struct evaluation e;
	uint64_t start = section->address + rule->expression;

	e.regs = regs;
	e.depth = 0;
	e.status = PRB_CFI_OK;
	if (initial)
		push(&e, *initial);
	prb_cursor_init(&e.c, section, memory, start, start + rule->length);

	for (unsigned i = 0; !prb_cursor_at_end(&e.c) && e.status == PRB_CFI_OK; i++) {
		uint8_t op = prb_cursor_u8(&e.c);

		if (i >= MAX_OPERATIONS)
			stop(&e, PRB_CFI_BAD);
		else if (op == DW_OP_skip)
			branch(&e, start, true);
		else if (op == DW_OP_bra)
			branch(&e, start, pop(&e) != 0);
		else if (!run_value(&e, op))
			run_operation(&e, op);
	}
	if (e.c.failed)
		return prb_cursor_status(&e.c);
	*ret = pop(&e);
	return e.status;
}

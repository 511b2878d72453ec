/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The interpreter of call frame instructions.
 */
#include "dwarf/unwind/cfi.h"

#include <string.h>

#include "base/checked.h"
#include "dwarf/unwind/cursor.h"

/* Compilers nest one deep; hand-written code two. */
enum { MAX_REMEMBERED = 8 };

/* Machines, as in an ELF header. */
enum { MACHINE_AARCH64 = 183 };

/* Call frame instructions: the first three have an operand in their low six bits. */
enum {
	DW_CFA_advance_loc = 0x40,
	DW_CFA_offset = 0x80,
	DW_CFA_restore = 0xc0,

	DW_CFA_nop = 0x00,
	DW_CFA_set_loc = 0x01,
	DW_CFA_advance_loc1 = 0x02,
	DW_CFA_advance_loc2 = 0x03,
	DW_CFA_advance_loc4 = 0x04,
	DW_CFA_offset_extended = 0x05,
	DW_CFA_restore_extended = 0x06,
	DW_CFA_undefined = 0x07,
	DW_CFA_same_value = 0x08,
	DW_CFA_register = 0x09,
	DW_CFA_remember_state = 0x0a,
	DW_CFA_restore_state = 0x0b,
	DW_CFA_def_cfa = 0x0c,
	DW_CFA_def_cfa_register = 0x0d,
	DW_CFA_def_cfa_offset = 0x0e,
	DW_CFA_def_cfa_expression = 0x0f,
	DW_CFA_expression = 0x10,
	DW_CFA_offset_extended_sf = 0x11,
	DW_CFA_def_cfa_sf = 0x12,
	DW_CFA_def_cfa_offset_sf = 0x13,
	DW_CFA_val_offset = 0x14,
	DW_CFA_val_offset_sf = 0x15,
	DW_CFA_val_expression = 0x16,
	DW_CFA_MIPS_advance_loc8 = 0x1d,
	DW_CFA_AARCH64_negate_ra_state_with_pc = 0x2c,
	DW_CFA_GNU_window_save = 0x2d, /* aarch64: DW_CFA_AARCH64_negate_ra_state */
	DW_CFA_GNU_args_size = 0x2e,
	DW_CFA_GNU_negative_offset_extended = 0x2f,
};

/* A row in the making: rules by register number. */
struct state {
	struct prb_cfi_rule cfa;
	uint8_t sign_state;
	struct prb_cfi_rule rules[PRB_REG_COUNT];
};

struct interpreter {
	struct prb_cursor c;
	const struct prb_cfi_cie *cie;
	uint16_t machine;
	uint64_t location; /* where the row in the making starts */
	struct state now, initial;
	struct state remembered[MAX_REMEMBERED];
	unsigned depth;
	enum prb_cfi_status status;
};

const char *prb_cfi_status_text(enum prb_cfi_status status)
{
	switch (status) {
	case PRB_CFI_OK:
		return "no failure";
	case PRB_CFI_END:
		return "the outermost frame";
	case PRB_CFI_NOT_FOUND:
		return "no unwind information";
	case PRB_CFI_UNREADABLE:
		return "unwind information cannot be read";
	case PRB_CFI_UNREADABLE_STACK:
		return "the stack cannot be read";
	case PRB_CFI_BAD:
		return "bad unwind information";
	case PRB_CFI_UNSUPPORTED:
		return "unsupported unwind information";
	case PRB_CFI_UNKNOWN_REGISTER:
		return "a register that is not known is needed";
	case PRB_CFI_NO_RULE:
		return "unwind information has no return address";
	}
	return "unknown failure";
}

struct prb_cfi_rule prb_cfi_row_rule(const struct prb_cfi_row *row, unsigned number)
{
	uint64_t bit = 1ULL << (number & 63);

	if (number >= PRB_REG_COUNT || !(row->mask & bit))
		return (struct prb_cfi_rule){.kind = PRB_CFI_UNSPECIFIED};
	return row->rules[__builtin_popcountll(row->mask & (bit - 1))];
}

static void bad(struct interpreter *in, enum prb_cfi_status status)
{
	if (in->status == PRB_CFI_OK)
		in->status = status;
}

static int32_t to_offset(struct interpreter *in, int64_t value)
{
	if (value != (int32_t)value)
		bad(in, PRB_CFI_BAD);
	return (int32_t)value;
}

/* An offset in units of the CIE's data alignment. */
static int32_t factored(struct interpreter *in, int64_t value)
{
	int64_t offset;

	if (__builtin_mul_overflow(value, in->cie->data_align, &offset)) {
		bad(in, PRB_CFI_BAD);
		return 0;
	}
	return to_offset(in, offset);
}

static int32_t read_offset(struct interpreter *in)
{
	uint64_t value = prb_cursor_uleb(&in->c);

	if (value > INT64_MAX) {
		bad(in, PRB_CFI_BAD);
		return 0;
	}
	return factored(in, (int64_t)value);
}

static int32_t read_offset_signed(struct interpreter *in)
{
	return factored(in, prb_cursor_sleb(&in->c));
}

/* Vector registers are passed over: nothing is found by them. */
static void set_rule(struct interpreter *in, uint64_t reg, uint8_t kind, int32_t value)
{
	if (reg < PRB_REG_COUNT)
		in->now.rules[reg] = (struct prb_cfi_rule){.kind = kind, .value = value};
}

static void set_register_rule(struct interpreter *in, uint64_t reg, uint64_t source)
{
	if (reg >= PRB_REG_COUNT)
		return;
	if (source >= PRB_REG_COUNT)
		in->now.rules[reg] = (struct prb_cfi_rule){.kind = PRB_CFI_UNDEFINED};
	else
		in->now.rules[reg] =
			(struct prb_cfi_rule){.kind = PRB_CFI_REGISTER, .reg = (uint8_t)source};
}

/* Notes where an expression lies and steps over it. */
static struct prb_cfi_rule read_expression(struct interpreter *in, uint8_t kind)
{
	uint64_t length = prb_cursor_uleb(&in->c);
	uint64_t start = prb_cursor_address(&in->c) - in->c.section->address;

	prb_cursor_skip(&in->c, length);
	if (length > UINT16_MAX || start > UINT32_MAX) {
		bad(in, PRB_CFI_UNSUPPORTED);
		length = start = 0;
	}
	return (struct prb_cfi_rule){
		.kind = kind, .length = (uint16_t)length, .expression = (uint32_t)start};
}

static void set_expression(struct interpreter *in, uint8_t kind)
{
	uint64_t reg = prb_cursor_uleb(&in->c);
	struct prb_cfi_rule rule = read_expression(in, kind);

	if (reg < PRB_REG_COUNT)
		in->now.rules[reg] = rule;
}

static void set_cfa(struct interpreter *in, uint64_t reg, int32_t value)
{
	if (reg >= PRB_REG_COUNT) {
		bad(in, PRB_CFI_UNSUPPORTED);
		return;
	}
	in->now.cfa = (struct prb_cfi_rule){
		.kind = PRB_CFI_REGISTER, .reg = (uint8_t)reg, .value = value};
}

/* Changes one half of a CFA rule, which must be of the kind that has halves. */
static void change_cfa(struct interpreter *in, const uint64_t *reg, const int32_t *value)
{
	struct prb_cfi_rule old = in->now.cfa;

	if (old.kind == PRB_CFI_REGISTER)
		set_cfa(in, reg ? *reg : old.reg, value ? *value : old.value);
	else
		bad(in, PRB_CFI_BAD);
}

static void restore(struct interpreter *in, uint64_t reg)
{
	if (reg < PRB_REG_COUNT)
		in->now.rules[reg] = in->initial.rules[reg];
}

static void remember(struct interpreter *in)
{
	if (in->depth < MAX_REMEMBERED)
		in->remembered[in->depth++] = in->now;
	else
		bad(in, PRB_CFI_UNSUPPORTED);
}

static void recall(struct interpreter *in)
{
	if (in->depth > 0)
		in->now = in->remembered[--in->depth];
	else
		bad(in, PRB_CFI_BAD);
}

/* Instructions about the CFA; false if @op is none. */
static bool run_cfa(struct interpreter *in, uint8_t op)
{
	struct prb_cursor *c = &in->c;
	uint64_t reg;
	int32_t value;

	switch (op) {
	case DW_CFA_def_cfa:
		reg = prb_cursor_uleb(c);
		set_cfa(in, reg, to_offset(in, (int64_t)prb_cursor_uleb(c)));
		return true;
	case DW_CFA_def_cfa_sf:
		reg = prb_cursor_uleb(c);
		set_cfa(in, reg, read_offset_signed(in));
		return true;
	case DW_CFA_def_cfa_register:
		reg = prb_cursor_uleb(c);
		change_cfa(in, &reg, NULL);
		return true;
	case DW_CFA_def_cfa_offset:
		value = to_offset(in, (int64_t)prb_cursor_uleb(c));
		change_cfa(in, NULL, &value);
		return true;
	case DW_CFA_def_cfa_offset_sf:
		value = read_offset_signed(in);
		change_cfa(in, NULL, &value);
		return true;
	case DW_CFA_def_cfa_expression:
		in->now.cfa = read_expression(in, PRB_CFI_VAL_EXPRESSION);
		return true;
	default:
		return false;
	}
}

/* Instructions about one register; false if @op is none. */
static bool run_rule(struct interpreter *in, uint8_t op)
{
	struct prb_cursor *c = &in->c;
	uint64_t reg;

	if (op == DW_CFA_expression || op == DW_CFA_val_expression) {
		set_expression(in, op == DW_CFA_expression ? PRB_CFI_EXPRESSION
							   : PRB_CFI_VAL_EXPRESSION);
		return true;
	}
	switch (op) {
	case DW_CFA_offset_extended:
		reg = prb_cursor_uleb(c);
		set_rule(in, reg, PRB_CFI_OFFSET, read_offset(in));
		return true;
	case DW_CFA_offset_extended_sf:
		reg = prb_cursor_uleb(c);
		set_rule(in, reg, PRB_CFI_OFFSET, read_offset_signed(in));
		return true;
	case DW_CFA_GNU_negative_offset_extended:
		reg = prb_cursor_uleb(c);
		set_rule(in, reg, PRB_CFI_OFFSET, to_offset(in, -(int64_t)read_offset(in)));
		return true;
	case DW_CFA_val_offset:
		reg = prb_cursor_uleb(c);
		set_rule(in, reg, PRB_CFI_VAL_OFFSET, read_offset(in));
		return true;
	case DW_CFA_val_offset_sf:
		reg = prb_cursor_uleb(c);
		set_rule(in, reg, PRB_CFI_VAL_OFFSET, read_offset_signed(in));
		return true;
	case DW_CFA_restore_extended:
		restore(in, prb_cursor_uleb(c));
		return true;
	case DW_CFA_undefined:
		set_rule(in, prb_cursor_uleb(c), PRB_CFI_UNDEFINED, 0);
		return true;
	case DW_CFA_same_value:
		set_rule(in, prb_cursor_uleb(c), PRB_CFI_SAME, 0);
		return true;
	case DW_CFA_register:
		reg = prb_cursor_uleb(c);
		set_register_rule(in, reg, prb_cursor_uleb(c));
		return true;
	default:
		return false;
	}
}

/* Runs all opcodes but the ones that move the location. */
static void run_other(struct interpreter *in, uint8_t op)
{
	bool aarch64 = in->machine == MACHINE_AARCH64;

	switch (op) {
	case DW_CFA_nop:
		break;
	case DW_CFA_remember_state:
		remember(in);
		break;
	case DW_CFA_restore_state:
		recall(in);
		break;
	case DW_CFA_GNU_args_size:
		prb_cursor_uleb(&in->c);
		break;
	case DW_CFA_GNU_window_save:
		if (aarch64)
			in->now.sign_state ^= PRB_CFI_SIGNED;
		break;
	case DW_CFA_AARCH64_negate_ra_state_with_pc:
		if (aarch64)
			in->now.sign_state ^= PRB_CFI_SIGNED | PRB_CFI_SIGNED_WITH_PC;
		else
			bad(in, PRB_CFI_UNSUPPORTED);
		break;
	default:
		bad(in, PRB_CFI_UNSUPPORTED);
		break;
	}
}

/* Where the next row starts if @op moves there; else the location as it is. */
static uint64_t new_location(struct interpreter *in, uint8_t op)
{
	struct prb_cursor *c = &in->c;
	uint64_t delta, location;

	if ((op & 0xc0) == DW_CFA_advance_loc)
		delta = op & 0x3f;
	else if (op == DW_CFA_advance_loc1)
		delta = prb_cursor_u8(c);
	else if (op == DW_CFA_advance_loc2)
		delta = prb_cursor_fixed(c, 2);
	else if (op == DW_CFA_advance_loc4)
		delta = prb_cursor_fixed(c, 4);
	else if (op == DW_CFA_MIPS_advance_loc8)
		delta = prb_cursor_fixed(c, 8);
	else
		delta = 0;

	if (op == DW_CFA_set_loc)
		location = prb_cursor_pointer(c, in->cie->encoding);
	else if (!prb_mul(delta, in->cie->code_align, &delta) ||
		 !prb_add(in->location, delta, &location))
		location = 0;
	if (location < in->location) {
		bad(in, PRB_CFI_BAD);
		return in->location;
	}
	return location;
}

static bool moves(uint8_t op)
{
	return (op & 0xc0) == DW_CFA_advance_loc ||
	       (op >= DW_CFA_set_loc && op <= DW_CFA_advance_loc4) ||
	       op == DW_CFA_MIPS_advance_loc8;
}

static void run_one(struct interpreter *in, uint8_t op)
{
	if ((op & 0xc0) == DW_CFA_offset)
		set_rule(in, op & 0x3f, PRB_CFI_OFFSET, read_offset(in));
	else if ((op & 0xc0) == DW_CFA_restore)
		restore(in, op & 0x3f);
	else if (!run_cfa(in, op) && !run_rule(in, op))
		run_other(in, op);
}

/* Runs instructions until one moves past @pc; *end is then where it moves, else unchanged. */
static enum prb_cfi_status run(struct interpreter *in, const struct prb_cfi_section *section,
			       const struct prb_cfi_memory *memory, uint64_t program,
			       uint64_t program_end, uint64_t pc, uint64_t *end)
{
	prb_cursor_init(&in->c, section, memory, program, program_end);
	while (!prb_cursor_at_end(&in->c) && in->status == PRB_CFI_OK) {
		uint8_t op = prb_cursor_u8(&in->c);

		if (moves(op)) {
			uint64_t location = new_location(in, op);

			if (location > pc && !in->c.failed) {
				*end = location;
				break;
			}
			in->location = location;
		} else {
			run_one(in, op);
		}
	}
	if (in->c.failed)
		return prb_cursor_status(&in->c);
	return in->status;
}

static void pack(const struct state *state, struct prb_cfi_row *row)
{
	row->cfa = state->cfa;
	row->sign_state = state->sign_state;
	row->mask = 0;
	row->count = 0;
	for (unsigned i = 0; i < PRB_REG_COUNT; i++) {
		if (state->rules[i].kind == PRB_CFI_UNSPECIFIED)
			continue;
		row->mask |= 1ULL << i;
		row->rules[row->count++] = state->rules[i];
	}
}

enum prb_cfi_status prb_cfi_row_at(const struct prb_cfi_section *section,
				   const struct prb_cfi_memory *memory,
				   const struct prb_cfi_fde *fde, uint16_t machine, uint64_t pc,
				   struct prb_cfi_row *ret)
{
	struct interpreter in;
	enum prb_cfi_status status;
	uint64_t end = fde->end;

	if (pc < fde->start || pc >= fde->end)
		return PRB_CFI_NOT_FOUND;
	in.cie = &fde->cie;
	in.machine = machine;
	in.location = 0;
	in.depth = 0;
	in.status = PRB_CFI_OK;
	memset(&in.now, 0, sizeof(in.now));
	memset(&in.initial, 0, sizeof(in.initial));

	status =
		run(&in, section, memory, fde->cie.program, fde->cie.program_end, UINT64_MAX, &end);
	if (status != PRB_CFI_OK)
		return status;
	in.initial = in.now;
	in.location = fde->start;
	status = run(&in, section, memory, fde->program, fde->program_end, pc, &end);
	if (status != PRB_CFI_OK)
		return status;
	if (in.now.cfa.kind == PRB_CFI_UNSPECIFIED)
		return PRB_CFI_BAD;

	ret->start = in.location;
	ret->end = PRB_MIN(end, fde->end);
	ret->ra = (uint8_t)fde->cie.ra;
	ret->signal_frame = fde->cie.signal_frame;
	pack(&in.now, ret);
	return PRB_CFI_OK;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The core of the unwinder on call frame information that is written by hand, for both machines on
 * any host: valid input must be understood, invalid input refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "dwarf/unwind/cfi.h"
#include "tests/unit/cfi_builder.h"

enum {
	BASE = 0x100000,
	CODE = 0x5000,
	STACK = 0x7000,
	CFA = STACK + 128,
	RBX = 3,
	RBP = 6,
	RSP = 7,
	R8 = 8,
	R12 = 12,
	RIP = 16,
	X0 = 0,
	X19 = 19,
	FP = 29,
	LR = 30,
	SP = 31,
};

#define BYTES(...) (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})

/* The initial instructions of CIEs: def_cfa rsp+8, return address at cfa-8; def_cfa sp+0. */
static const uint8_t initial_x86_64[] = {0x0c, RSP, 8, 0x90, 1};
static const uint8_t initial_aarch64[] = {0x0c, SP, 0};

static struct fake_memory memory;
static const struct prb_cfi_memory reader = {.read = read_fake, .context = &memory};
static uint64_t stack[64]; /* at STACK, which makes stack[16] lie at CFA */

static int clear(void **state)
{
	(void)state;
	memory = (struct fake_memory){};
	memory.pieces[0].address = STACK;
	memory.pieces[0].size = sizeof(stack);
	memory.pieces[0].data = stack;
	for (unsigned i = 0; i < PRB_ARRAY_SIZE(stack); i++)
		stack[i] = 0x1000 + i;
	return 0;
}

/* The bytes as a section in our memory, or to be read from the target's. */
static struct prb_cfi_section section_of(const struct builder *b, bool mapped)
{
	memory.pieces[1].address = b->base;
	memory.pieces[1].size = b->length;
	memory.pieces[1].data = b->bytes;
	return (struct prb_cfi_section){
		.address = b->base, .size = b->length, .data = mapped ? NULL : b->bytes};
}

static struct prb_regs regs_of(uint16_t machine, uint64_t sp)
{
	struct prb_regs regs = {.machine = machine, .pc = CODE};

	for (unsigned i = 0; i < PRB_REG_AARCH64_SIGN_STATE; i++)
		prb_regs_set(&regs, i, 0x100 + i);
	prb_regs_set(&regs, prb_regs_sp(machine), sp);
	return regs;
}

/* One CIE and one FDE with this program for 256 bytes of code; its row at @pc. */
struct made {
	struct builder b;
	struct prb_cfi_section section;
	struct prb_cfi_fde fde;
	struct prb_cfi_row row;
};

static enum prb_cfi_status make(struct made *m, uint16_t machine, uint64_t pc,
				const uint8_t *program, size_t length)
{
	struct cie_spec spec = {
		.ra = RIP, .program = initial_x86_64, .program_length = sizeof(initial_x86_64)};

	if (machine == EM_AARCH64)
		spec = (struct cie_spec){.ra = LR,
					 .program = initial_aarch64,
					 .program_length = sizeof(initial_aarch64)};
	m->b = (struct builder){.base = BASE};
	m->fde = (struct prb_cfi_fde){};
	size_t cie = put_cie(&m->b, &spec);
	size_t fde = put_fde(&m->b, &spec, cie, CODE, 256, program, length);

	m->section = section_of(&m->b, false);
	assert_int_equal(prb_cfi_fde_read(&m->section, &reader, BASE + fde, &m->fde), PRB_CFI_OK);
	return prb_cfi_row_at(&m->section, &reader, &m->fde, machine, pc, &m->row);
}

static void assert_rule(const struct prb_cfi_row *row, unsigned number, uint8_t kind, int32_t value)
{
	struct prb_cfi_rule rule = prb_cfi_row_rule(row, number);

	assert_int_equal(rule.kind, kind);
	if (kind == PRB_CFI_REGISTER)
		assert_int_equal(rule.reg, value);
	else if (kind == PRB_CFI_OFFSET || kind == PRB_CFI_VAL_OFFSET)
		assert_int_equal(rule.value, value);
}

static void assert_cfa(const struct prb_cfi_row *row, unsigned reg, int32_t value)
{
	assert_int_equal(row->cfa.kind, PRB_CFI_REGISTER);
	assert_int_equal(row->cfa.reg, reg);
	assert_int_equal(row->cfa.value, value);
}

/* push %rbp; mov %rsp, %rbp; …; leave; ret */
static void test_rows_of_a_function(void **state)
{
	const uint8_t program[] = {0x41, 0x0e, 16,  0x86, 2,	0x43, 0x0d,
				   RBP,	 0x02, 100, 0xc6, 0x0c, RSP,  8};
	struct made m;

	(void)state;
	assert_int_equal(make(&m, EM_X86_64, CODE, program, sizeof(program)), PRB_CFI_OK);
	assert_int_equal(m.row.start, CODE);
	assert_int_equal(m.row.end, CODE + 1);
	assert_cfa(&m.row, RSP, 8);
	assert_rule(&m.row, RBP, PRB_CFI_UNSPECIFIED, 0);
	assert_rule(&m.row, RIP, PRB_CFI_OFFSET, -8);

	assert_int_equal(make(&m, EM_X86_64, CODE + 3, program, sizeof(program)), PRB_CFI_OK);
	assert_int_equal(m.row.start, CODE + 1);
	assert_int_equal(m.row.end, CODE + 4);
	assert_cfa(&m.row, RSP, 16);
	assert_rule(&m.row, RBP, PRB_CFI_OFFSET, -16);

	assert_int_equal(make(&m, EM_X86_64, CODE + 4, program, sizeof(program)), PRB_CFI_OK);
	assert_cfa(&m.row, RBP, 16);

	assert_int_equal(make(&m, EM_X86_64, CODE + 255, program, sizeof(program)), PRB_CFI_OK);
	assert_int_equal(m.row.start, CODE + 104);
	assert_int_equal(m.row.end, CODE + 256);
	assert_cfa(&m.row, RSP, 8);
	assert_rule(&m.row, RBP, PRB_CFI_UNSPECIFIED, 0);

	assert_int_equal(make(&m, EM_X86_64, CODE + 256, program, sizeof(program)),
			 PRB_CFI_NOT_FOUND);
	assert_int_equal(make(&m, EM_X86_64, CODE - 1, program, sizeof(program)),
			 PRB_CFI_NOT_FOUND);
}

static const struct {
	uint8_t program[12];
	size_t length;
	uint8_t kind;
	int32_t value;
} register_instructions[] = {
	{{0x83, 2}, 2, PRB_CFI_OFFSET, -16},
	{{0x05, 3, 0x80, 1}, 4, PRB_CFI_OFFSET, -1024},
	{{0x11, 3, 0x7f}, 3, PRB_CFI_OFFSET, 8},
	{{0x2f, 3, 2}, 3, PRB_CFI_OFFSET, 16},
	{{0x14, 3, 2}, 3, PRB_CFI_VAL_OFFSET, -16},
	{{0x15, 3, 0x7e}, 3, PRB_CFI_VAL_OFFSET, 16},
	{{0x07, 3}, 2, PRB_CFI_UNDEFINED, 0},
	{{0x08, 3}, 2, PRB_CFI_SAME, 0},
	{{0x09, 3, 12}, 3, PRB_CFI_REGISTER, 12},
	{{0x09, 3, 100}, 3, PRB_CFI_UNDEFINED, 0},
	{{0x10, 3, 1, 0x30}, 4, PRB_CFI_EXPRESSION, 0},
	{{0x16, 3, 1, 0x30}, 4, PRB_CFI_VAL_EXPRESSION, 0},
	{{0x83, 2, 0xc3}, 3, PRB_CFI_UNSPECIFIED, 0},
	{{0x83, 2, 0x06, 3}, 4, PRB_CFI_UNSPECIFIED, 0},
	{{0x83, 2, 0x0a, 0x83, 3, 0x0b}, 6, PRB_CFI_OFFSET, -16},
	{{0x2e, 100, 0x83, 2}, 4, PRB_CFI_OFFSET, -16}, /* GNU_args_size */
	{{0x2d, 0x83, 2}, 3, PRB_CFI_OFFSET, -16},	/* GNU_window_save: not for us */
	{{0x91, 9, 0x83, 2}, 4, PRB_CFI_OFFSET, -16},	/* a vector register: passed over */
	{{0x05, 0x80, 0x80, 4, 1, 0x83, 2}, 7, PRB_CFI_OFFSET, -16},
};

static void test_register_instructions(void **state)
{
	struct made m;

	(void)state;
	for (size_t i = 0; i < PRB_ARRAY_SIZE(register_instructions); i++) {
		assert_int_equal(make(&m, EM_X86_64, CODE, register_instructions[i].program,
				      register_instructions[i].length),
				 PRB_CFI_OK);
		assert_rule(&m.row, RBX, register_instructions[i].kind,
			    register_instructions[i].value);
	}
}

/* Restoring uses the CIE's rules. */
static void test_restored_rules(void **state)
{
	struct made m;

	(void)state;
	assert_int_equal(make(&m, EM_X86_64, CODE, BYTES(0x08, RIP, 0xc0 | RIP)), PRB_CFI_OK);
	assert_rule(&m.row, RIP, PRB_CFI_OFFSET, -8);
	assert_int_equal(make(&m, EM_X86_64, CODE, BYTES(0x07, RIP, 0x06, RIP)), PRB_CFI_OK);
	assert_rule(&m.row, RIP, PRB_CFI_OFFSET, -8);
}

static void test_cfa_instructions(void **state)
{
	struct made m;

	(void)state;
	assert_int_equal(make(&m, EM_X86_64, CODE, BYTES(0x0c, 6, 0x90, 3)), PRB_CFI_OK);
	assert_cfa(&m.row, RBP, 400);
	assert_int_equal(make(&m, EM_X86_64, CODE, BYTES(0x12, 6, 0x7e)), PRB_CFI_OK);
	assert_cfa(&m.row, RBP, 16);
	assert_int_equal(make(&m, EM_X86_64, CODE, BYTES(0x13, 0x7d)), PRB_CFI_OK);
	assert_cfa(&m.row, RSP, 24);
	assert_int_equal(make(&m, EM_X86_64, CODE, BYTES(0x0a, 0x0e, 64, 0x0d, 6, 0x0b)),
			 PRB_CFI_OK);
	assert_cfa(&m.row, RSP, 8);

	assert_int_equal(make(&m, EM_X86_64, CODE, BYTES(0x0f, 2, 0x77, 16)), PRB_CFI_OK);
	assert_int_equal(m.row.cfa.kind, PRB_CFI_VAL_EXPRESSION);
	assert_int_equal(m.row.cfa.length, 2);
	assert_memory_equal(m.b.bytes + m.row.cfa.expression, ((uint8_t[]){0x77, 16}), 2);
	/* An expression has no offset that could be changed. */
	assert_int_equal(make(&m, EM_X86_64, CODE, BYTES(0x0f, 2, 0x77, 16, 0x0e, 8)), PRB_CFI_BAD);
	assert_int_equal(make(&m, EM_X86_64, CODE, BYTES(0x0c, 60, 8)), PRB_CFI_UNSUPPORTED);
	assert_int_equal(
		make(&m, EM_X86_64, CODE, BYTES(0x0e, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1)),
		PRB_CFI_BAD);
}

static void test_locations(void **state)
{
	const uint8_t all[] = {
		0x41, 0x0e, 16,					       /* advance_loc */
		0x02, 1,    0x0e, 24,				       /* advance_loc1 */
		0x03, 1,    0,	  0x0e, 32,			       /* advance_loc2 */
		0x04, 1,    0,	  0,	0,  0x0e, 40,		       /* advance_loc4 */
		0x1d, 1,    0,	  0,	0,  0,	  0,  0, 0, 0x0e, 48,  /* advance_loc8 */
		0x01, 0x06, 0x50, 0,	0,  0,	  0,  0, 0, 0x0e, 56}; /* set_loc CODE+6 */
	struct made m;

	(void)state;
	for (int i = 0; i < 6; i++) {
		assert_int_equal(
			make(&m, EM_X86_64, (uint64_t)CODE + (uint64_t)i, all, sizeof(all)),
			PRB_CFI_OK);
		assert_cfa(&m.row, RSP, 8 + 8 * i);
		assert_int_equal(m.row.start, CODE + i);
		assert_int_equal(m.row.end, CODE + i + 1);
	}
	assert_int_equal(make(&m, EM_X86_64, CODE + 6, all, sizeof(all)), PRB_CFI_OK);
	assert_cfa(&m.row, RSP, 56);
	/* A location never goes back. */
	assert_int_equal(make(&m, EM_X86_64, CODE + 6, BYTES(0x01, 1, 0, 0, 0, 0, 0, 0, 0)),
			 PRB_CFI_BAD);
	assert_int_equal(make(&m, EM_X86_64, CODE + 6,
			      BYTES(0x1d, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)),
			 PRB_CFI_BAD);
}

static void test_remembered_states(void **state)
{
	uint8_t program[64];
	struct made m;

	(void)state;
	memset(program, 0x0a, 8);
	memset(program + 8, 0x0b, 8);
	assert_int_equal(make(&m, EM_X86_64, CODE, program, 16), PRB_CFI_OK);
	memset(program, 0x0a, 9);
	assert_int_equal(make(&m, EM_X86_64, CODE, program, 9), PRB_CFI_UNSUPPORTED);
	assert_int_equal(make(&m, EM_X86_64, CODE, BYTES(0x0b)), PRB_CFI_BAD);
	assert_int_equal(make(&m, EM_X86_64, CODE, BYTES(0x0a, 0x0b, 0x0b)), PRB_CFI_BAD);
	assert_int_equal(make(&m, EM_X86_64, CODE, BYTES(0x3f)), PRB_CFI_UNSUPPORTED);
	assert_int_equal(make(&m, EM_X86_64, CODE, BYTES(0x2c)), PRB_CFI_UNSUPPORTED);
	assert_int_equal(make(&m, EM_X86_64, CODE, BYTES(0x0f, 0x7f)), PRB_CFI_BAD);
}

static void test_apply_x86_64(void **state)
{
	struct prb_regs regs, before;
	uint64_t cfa, value;
	struct made m;

	(void)state;
	/* rbx at cfa-16, rbp = cfa-24, r12 from r8; all else by the ABI */
	assert_int_equal(
		make(&m, EM_X86_64, CODE, BYTES(0x0e, 32, 0x83, 2, 0x14, 6, 3, 0x09, 12, 8)),
		PRB_CFI_OK);
	before = regs = regs_of(EM_X86_64, CFA - 32);
	assert_int_equal(prb_cfi_apply(&m.section, &reader, &m.row, 0, &regs, &cfa), PRB_CFI_OK);
	assert_int_equal(cfa, CFA);
	assert_int_equal(regs.pc, 0x1000 + 15);
	assert_int_equal(regs.value[RBX], 0x1000 + 14);
	assert_int_equal(regs.value[RBP], CFA - 24);
	assert_int_equal(regs.value[RSP], CFA);
	assert_int_equal(regs.value[R12], 0x100 + R8);
	assert_int_equal(regs.value[13], 0x100 + 13);
	assert_int_equal(regs.known, 1 << RBX | 1 << RBP | 1 << RSP | 0xf << 12);
	assert_false(prb_regs_get(&regs, R8, &value));

	/* If r8 is unknown, so is the caller's r12, which alone stops nothing. */
	regs = before;
	prb_regs_forget(&regs, R8);
	assert_int_equal(prb_cfi_apply(&m.section, &reader, &m.row, 0, &regs, &cfa), PRB_CFI_OK);
	assert_false(prb_regs_get(&regs, R12, &value));

	/* An unreadable saved register is unknown; the return address must be readable. */
	regs = regs_of(EM_X86_64, STACK - 24);
	assert_int_equal(prb_cfi_apply(&m.section, &reader, &m.row, 0, &regs, &cfa), PRB_CFI_OK);
	assert_int_equal(regs.pc, 0x1000);
	assert_false(prb_regs_get(&regs, RBX, &value));
	before = regs = regs_of(EM_X86_64, STACK - 32);
	assert_int_equal(prb_cfi_apply(&m.section, &reader, &m.row, 0, &regs, &cfa),
			 PRB_CFI_UNREADABLE_STACK);
	prb_regs_forget(&regs, RSP);
	before = regs;
	assert_int_equal(prb_cfi_apply(&m.section, &reader, &m.row, 0, &regs, &cfa),
			 PRB_CFI_UNKNOWN_REGISTER);
	assert_memory_equal(&regs, &before, sizeof(regs));
}

static void test_ends_of_stacks(void **state)
{
	struct prb_regs regs = regs_of(EM_X86_64, CFA - 8), before = regs;
	uint64_t cfa;
	struct made m;

	(void)state;
	assert_int_equal(make(&m, EM_X86_64, CODE, BYTES(0x07, RIP)), PRB_CFI_OK);
	assert_int_equal(prb_cfi_apply(&m.section, &reader, &m.row, 0, &regs, &cfa), PRB_CFI_END);
	assert_memory_equal(&regs, &before, sizeof(regs));
	m.row.mask = 0;
	m.row.count = 0;
	assert_int_equal(prb_cfi_apply(&m.section, &reader, &m.row, 0, &regs, &cfa),
			 PRB_CFI_NO_RULE);
}

/* The frame of a signal: rsp, rip and the CFA are read from the saved context. */
static void test_apply_expressions(void **state)
{
	struct prb_regs regs = regs_of(EM_X86_64, STACK);
	uint64_t cfa, value;
	struct made m;

	(void)state;
	stack[5] = 0x7654;
	stack[6] = STACK + 8;
	/* cfa: deref(rsp+40); rsp: at rsp+40; rip: at rsp+48; rbx: cfa+1 */
	assert_int_equal(make(&m, EM_X86_64, CODE,
			      BYTES(0x0f, 3, 0x77, 40, 0x06, 0x10, RSP, 2, 0x77, 40, 0x10, RIP, 2,
				    0x77, 48, 0x16, RBX, 2, 0x23, 1, 0x16, RBP, 1, 0x12)),
			 PRB_CFI_OK);
	assert_int_equal(prb_cfi_apply(&m.section, &reader, &m.row, 0, &regs, &cfa), PRB_CFI_OK);
	assert_int_equal(cfa, 0x7654);
	assert_int_equal(regs.value[RSP], 0x7654);
	assert_int_equal(regs.pc, STACK + 8);
	assert_int_equal(regs.value[RBX], 0x7655);
	assert_true(prb_regs_get(&regs, RBP, &value));
	assert_int_equal(value, 0x7654);
}

/* paciasp; stp x29, x30, [sp, #-32]!; …; autiasp */
static const uint8_t signs[] = {0x41, 0x2d, 0x41, 0x0e, 32, 0x9d, 4, 0x9e, 3, 0x41, 0x2d};

static void test_signed_return_addresses(void **state)
{
	const uint64_t mask = 0xff7f000000000000, plain = 0x0000aaaabbbbcccc;
	struct prb_regs regs = regs_of(EM_AARCH64, CFA - 32);
	uint64_t cfa, value;
	struct made m;

	(void)state;
	stack[13] = plain | 0x0055000000000000;
	assert_int_equal(make(&m, EM_AARCH64, CODE + 2, signs, sizeof(signs)), PRB_CFI_OK);
	assert_int_equal(m.row.sign_state, PRB_CFI_SIGNED);
	assert_int_equal(prb_cfi_apply(&m.section, &reader, &m.row, mask, &regs, &cfa), PRB_CFI_OK);
	assert_int_equal(cfa, CFA);
	assert_int_equal(regs.pc, plain);
	assert_int_equal(regs.value[SP], CFA);
	assert_int_equal(regs.value[FP], 0x1000 + 12);
	assert_int_equal(regs.value[LR], stack[13]);
	assert_int_equal(regs.value[X19], 0x100 + X19);
	assert_false(prb_regs_get(&regs, X0, &value));
	assert_false(prb_regs_get(&regs, 18, &value));

	/* The mask is the caller's: here of a kernel with addresses of 39 bits. */
	regs = regs_of(EM_AARCH64, CFA - 32);
	assert_int_equal(
		prb_cfi_apply(&m.section, &reader, &m.row, 0xff7fff8000000000, &regs, &cfa),
		PRB_CFI_OK);
	assert_int_equal(regs.pc, 0x2abbbbcccc);

	/* Before the signature and after its check the address is unchanged. */
	for (uint64_t pc = CODE; pc < CODE + 4; pc += 3) {
		regs = regs_of(EM_AARCH64, pc == CODE ? CFA : CFA - 32);
		prb_regs_set(&regs, LR, stack[13]);
		assert_int_equal(make(&m, EM_AARCH64, pc, signs, sizeof(signs)), PRB_CFI_OK);
		assert_int_equal(m.row.sign_state, 0);
		assert_int_equal(prb_cfi_apply(&m.section, &reader, &m.row, mask, &regs, &cfa),
				 PRB_CFI_OK);
		assert_int_equal(regs.pc, stack[13]);
	}
}

static void test_other_sign_states(void **state)
{
	struct prb_regs regs = regs_of(EM_AARCH64, CFA);
	uint64_t cfa;
	struct made m;

	(void)state;
	assert_int_equal(make(&m, EM_AARCH64, CODE, BYTES(0x2c)), PRB_CFI_OK);
	assert_int_equal(m.row.sign_state, PRB_CFI_SIGNED | PRB_CFI_SIGNED_WITH_PC);
	assert_int_equal(make(&m, EM_AARCH64, CODE, BYTES(0x0a, 0x2d, 0x0b)), PRB_CFI_OK);
	assert_int_equal(m.row.sign_state, 0);
	assert_int_equal(make(&m, EM_X86_64, CODE, BYTES(0x2d)), PRB_CFI_OK);
	assert_int_equal(m.row.sign_state, 0);

	/* The state can also be given as the value of a register. */
	prb_regs_set(&regs, LR, 0xff00000000001234);
	assert_int_equal(make(&m, EM_AARCH64, CODE, BYTES(0x16, 34, 1, 0x31)), PRB_CFI_OK);
	assert_int_equal(
		prb_cfi_apply(&m.section, &reader, &m.row, 0xff00000000000000, &regs, &cfa),
		PRB_CFI_OK);
	assert_int_equal(regs.pc, 0x1234);
}

/* A leaf function: the return address is in the link register, which the caller's state lacks. */
static void test_leaf_aarch64(void **state)
{
	struct prb_regs regs = regs_of(EM_AARCH64, CFA);
	uint64_t cfa, value;
	struct made m;

	(void)state;
	assert_int_equal(make(&m, EM_AARCH64, CODE, BYTES(0x00)), PRB_CFI_OK);
	assert_int_equal(prb_cfi_apply(&m.section, &reader, &m.row, 0, &regs, &cfa), PRB_CFI_OK);
	assert_int_equal(cfa, CFA);
	assert_int_equal(regs.pc, 0x100 + LR);
	assert_false(prb_regs_get(&regs, LR, &value));
	assert_int_equal(prb_cfi_apply(&m.section, &reader, &m.row, 0, &regs, &cfa),
			 PRB_CFI_UNKNOWN_REGISTER);
}

static void test_pc_in_expressions(void **state)
{
	const uint16_t machines[] = {EM_X86_64, EM_AARCH64};
	/* The program that linkers write for an entry of the PLT. */
	const uint8_t plt[] = {0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22};
	struct prb_cfi_section section = {.address = BASE, .size = sizeof(plt), .data = plt};
	struct prb_cfi_rule rule = {.length = sizeof(plt)};
	struct prb_regs regs = regs_of(EM_X86_64, STACK);
	uint64_t value;

	(void)state;
	regs.known &= ~(1ULL << RIP);
	regs.pc = 0x5006;
	assert_int_equal(prb_cfi_evaluate(&section, &reader, &rule, &regs, NULL, &value),
			 PRB_CFI_OK);
	assert_int_equal(value, STACK + 8);
	regs.pc = 0x500b;
	assert_int_equal(prb_cfi_evaluate(&section, &reader, &rule, &regs, NULL, &value),
			 PRB_CFI_OK);
	assert_int_equal(value, STACK + 16);

	for (unsigned i = 0; i < 2; i++) {
		const uint8_t pc_plus_one[] = {0x92, i ? 32 : 16, 1};

		regs = regs_of(machines[i], STACK);
		section.data = pc_plus_one;
		section.size = rule.length = sizeof(pc_plus_one);
		assert_int_equal(prb_cfi_evaluate(&section, &reader, &rule, &regs, NULL, &value),
				 PRB_CFI_OK);
		assert_int_equal(value, CODE + 1);
	}
}

static const struct {
	uint8_t bytes[16];
	size_t length;
	uint64_t value;
	enum prb_cfi_status status;
} expressions[] = {
	{{0x30}, 1, 0, PRB_CFI_OK},
	{{0x4f}, 1, 31, PRB_CFI_OK},
	{{0x03, 1, 2, 3, 4, 5, 6, 7, 8}, 9, 0x0807060504030201, PRB_CFI_OK},
	{{0x08, 0xff}, 2, 255, PRB_CFI_OK},
	{{0x09, 0xff}, 2, UINT64_MAX, PRB_CFI_OK},
	{{0x0a, 0xfe, 0xff}, 3, 0xfffe, PRB_CFI_OK},
	{{0x0b, 0xfe, 0xff}, 3, -2ULL, PRB_CFI_OK},
	{{0x0c, 1, 0, 0, 0x80}, 5, 0x80000001, PRB_CFI_OK},
	{{0x0d, 1, 0, 0, 0x80}, 5, 0xffffffff80000001, PRB_CFI_OK},
	{{0x0e, 1, 0, 0, 0, 0, 0, 0, 0x80}, 9, 0x8000000000000001, PRB_CFI_OK},
	{{0x10, 0x80, 1}, 3, 128, PRB_CFI_OK},
	{{0x11, 0x7f}, 2, UINT64_MAX, PRB_CFI_OK},
	{{0x35, 0x12, 0x1e}, 3, 25, PRB_CFI_OK},
	{{0x35, 0x36, 0x13}, 3, 5, PRB_CFI_OK},
	{{0x35, 0x36, 0x14}, 3, 5, PRB_CFI_OK},
	{{0x35, 0x36, 0x37, 0x15, 2}, 5, 5, PRB_CFI_OK},
	{{0x35, 0x36, 0x16, 0x1c}, 4, 1, PRB_CFI_OK},
	{{0x31, 0x32, 0x33, 0x17, 0x35, 0x1e, 0x22, 0x35, 0x1e, 0x22}, 10, 63 - 5, PRB_CFI_OK},
	{{0x11, 0x7b, 0x19}, 3, 5, PRB_CFI_OK},
	{{0x3c, 0x3a, 0x1a}, 3, 8, PRB_CFI_OK},
	{{0x11, 0x79, 0x32, 0x1b}, 4, -3ULL, PRB_CFI_OK},
	{{0x37, 0x33, 0x1d}, 3, 1, PRB_CFI_OK},
	{{0x35, 0x1f}, 2, -5ULL, PRB_CFI_OK},
	{{0x30, 0x20}, 2, UINT64_MAX, PRB_CFI_OK},
	{{0x3c, 0x33, 0x21}, 3, 15, PRB_CFI_OK},
	{{0x35, 0x23, 0x80, 1}, 4, 133, PRB_CFI_OK},
	{{0x35, 0x34, 0x24}, 3, 80, PRB_CFI_OK},
	{{0x35, 0x08, 64, 0x24}, 4, 0, PRB_CFI_OK},
	{{0x11, 0x70, 0x34, 0x25}, 4, 0x0fffffffffffffff, PRB_CFI_OK},
	{{0x11, 0x70, 0x34, 0x26}, 4, UINT64_MAX, PRB_CFI_OK},
	{{0x11, 0x70, 0x08, 200, 0x26}, 5, UINT64_MAX, PRB_CFI_OK},
	{{0x3c, 0x3a, 0x27}, 3, 6, PRB_CFI_OK},
	{{0x11, 0x7f, 0x31, 0x2d}, 4, 1, PRB_CFI_OK},
	{{0x11, 0x7f, 0x31, 0x2b}, 4, 0, PRB_CFI_OK},
	{{0x31, 0x31, 0x2a}, 3, 1, PRB_CFI_OK},
	{{0x31, 0x31, 0x2c}, 3, 1, PRB_CFI_OK},
	{{0x31, 0x31, 0x29}, 3, 1, PRB_CFI_OK},
	{{0x31, 0x31, 0x2e}, 3, 0, PRB_CFI_OK},
	{{0x31, 0x31, 0x28, 1, 0, 0x35, 0x32}, 7, 2, PRB_CFI_OK},
	{{0x31, 0x2f, 1, 0, 0x35, 0x96}, 6, 1, PRB_CFI_OK},
	{{0x77, 0x10, 0x06}, 3, 0x1002, PRB_CFI_OK},
	{{0x77, 0x10, 0x94, 1}, 4, 2, PRB_CFI_OK},
	{{0x53}, 1, 0x103, PRB_CFI_OK},
	{{0x90, 3}, 2, 0x103, PRB_CFI_OK},
	{{0x92, 3, 0x7f}, 3, 0x102, PRB_CFI_OK},
	{{0xf1, 0x1b, 4, 0, 0, 0}, 6, BASE + 6, PRB_CFI_OK},

	{{0}, 0, 0, PRB_CFI_BAD},
	{{0x22}, 1, 0, PRB_CFI_BAD},
	{{0x14}, 1, 0, PRB_CFI_BAD},
	{{0x31, 0x15, 9}, 3, 0, PRB_CFI_BAD},
	{{0x31, 0x30, 0x1b}, 3, 0, PRB_CFI_BAD},
	{{0x31, 0x30, 0x1d}, 3, 0, PRB_CFI_BAD},
	{{0x03, 1, 2}, 3, 0, PRB_CFI_BAD},
	{{0x2f, 0xfd, 0xff}, 3, 0, PRB_CFI_BAD},       /* endless */
	{{0x31, 0x2f, 0xfc, 0xff}, 4, 0, PRB_CFI_BAD}, /* until the stack is full */
	{{0x31, 0x2f, 0, 1}, 4, 0, PRB_CFI_BAD},       /* out of the expression */
	{{0x31, 0x2f, 0, 0xf0}, 4, 0, PRB_CFI_BAD},
	{{0x31, 0x94, 9}, 3, 0, PRB_CFI_BAD},
	{{0x31, 0x06}, 2, 0, PRB_CFI_UNREADABLE_STACK},
	{{0x92, 40, 0}, 3, 0, PRB_CFI_UNKNOWN_REGISTER},
	{{0x31, 0x31, 0xff}, 3, 0, PRB_CFI_UNSUPPORTED},
};

static void test_expressions(void **state)
{
	(void)state;
	for (size_t i = 0; i < PRB_ARRAY_SIZE(expressions); i++) {
		struct builder b = {.base = BASE};
		struct prb_cfi_rule rule = {.length = (uint16_t)expressions[i].length};
		struct prb_regs regs = regs_of(EM_X86_64, STACK);
		struct prb_cfi_section section;
		uint64_t value = 0;

		put(&b, expressions[i].bytes, expressions[i].length);
		for (int mapped = 0; mapped < 2; mapped++) {
			enum prb_cfi_status status;

			section = section_of(&b, mapped);
			status = prb_cfi_evaluate(&section, &reader, &rule, &regs, NULL, &value);
			if (status != expressions[i].status ||
			    (status == PRB_CFI_OK && value != expressions[i].value))
				fail_msg("expression %zu: status %d, value %#lx", i, status,
					 (unsigned long)value);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_rows_of_a_function, clear),
		cmocka_unit_test_setup(test_register_instructions, clear),
		cmocka_unit_test_setup(test_restored_rules, clear),
		cmocka_unit_test_setup(test_cfa_instructions, clear),
		cmocka_unit_test_setup(test_locations, clear),
		cmocka_unit_test_setup(test_remembered_states, clear),
		cmocka_unit_test_setup(test_apply_x86_64, clear),
		cmocka_unit_test_setup(test_ends_of_stacks, clear),
		cmocka_unit_test_setup(test_apply_expressions, clear),
		cmocka_unit_test_setup(test_signed_return_addresses, clear),
		cmocka_unit_test_setup(test_other_sign_states, clear),
		cmocka_unit_test_setup(test_leaf_aarch64, clear),
		cmocka_unit_test_setup(test_pc_in_expressions, clear),
		cmocka_unit_test_setup(test_expressions, clear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

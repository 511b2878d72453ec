/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Length of an x86_64 instruction: prefixes, opcode map, ModRM with SIB and displacement,
 * immediate. Its effect does not matter here.
 */
#include <stdbool.h>

#include "dwarf/unwind/code.h"

enum { MAX_LENGTH = 15 };

/* The operands that follow an opcode. */
enum {
	NONE = 0,
	MODRM = 1,
	IMM8 = 2,
	IMM32 = 4, /* 16 bits with an operand size prefix */
	IMM16 = 8,
	SPECIAL = 16, /* depends on more than the opcode */
	BAD = 32,
};

struct decoder {
	const uint8_t *code;
	size_t size, at;
	bool short_operand, wide; /* prefix 66, REX.W */
	bool failed;
};

static uint8_t next_byte(struct decoder *d)
{
	if (d->at >= d->size || d->at >= MAX_LENGTH) {
		d->failed = true;
		return 0;
	}
	return d->code[d->at++];
}

static void skip(struct decoder *d, size_t count)
{
	while (count-- && !d->failed)
		next_byte(d);
}

/* ModRM, SIB and displacement; gives the ModRM byte. */
static uint8_t take_modrm(struct decoder *d)
{
	uint8_t modrm = next_byte(d), mode = modrm >> 6, rm = modrm & 7;

	if (mode == 3)
		return modrm;
	if (rm == 4) {
		uint8_t sib = next_byte(d);

		if (mode == 0 && (sib & 7) == 5)
			skip(d, 4);
	} else if (mode == 0 && rm == 5) {
		skip(d, 4);
	}
	skip(d, mode == 1 ? 1 : mode == 2 ? 4 : 0);
	return modrm;
}

/* Single opcodes of the first map, as opposed to ranges. */
static unsigned first_map_single(uint8_t opcode)
{
	switch (opcode) {
	case 0x63:
	case 0xd0 ... 0xd3:
	case 0xfe:
	case 0xff:
		return MODRM;
	case 0x68:
	case 0xa9:
		return IMM32;
	case 0x69:
	case 0x81:
	case 0xc7:
		return MODRM | IMM32;
	case 0x6a:
	case 0xa8:
		return IMM8;
	case 0x6b:
	case 0x80:
	case 0x83:
	case 0xc0:
	case 0xc1:
	case 0xc6:
		return MODRM | IMM8;
	case 0xc2:
		return IMM16;
	case 0xc8:
		return IMM16 | IMM8;
	case 0xa0 ... 0xa3:
	case 0xb8 ... 0xbf:
	case 0xe8:
	case 0xe9:
	case 0xf6:
	case 0xf7:
		return SPECIAL;
	case 0xa4 ... 0xa7:
	case 0xaa ... 0xaf:
	case 0xc3:
	case 0xc9:
	case 0xcc:
	case 0xf4:
	case 0xf5:
	case 0xf8 ... 0xfd:
	case 0x6c ... 0x6f:
	case 0xec ... 0xef:
		return NONE;
	default:
		return BAD;
	}
}

static unsigned first_map(uint8_t opcode)
{
	if (opcode < 0x40) /* arithmetic: four with ModRM, two with an immediate, two not there */
		return (opcode & 7) < 4	   ? MODRM
		       : (opcode & 7) == 4 ? IMM8
		       : (opcode & 7) == 5 ? IMM32
					   : BAD;
	if (opcode < 0x60) /* push, pop; prefixes were taken before */
		return opcode < 0x50 ? BAD : NONE;
	if (opcode >= 0x70 && opcode < 0x80)
		return IMM8;
	if (opcode >= 0x84 && opcode < 0x90)
		return MODRM;
	if (opcode >= 0x90 && opcode < 0xa0)
		return opcode == 0x9a ? BAD : NONE;
	if (opcode >= 0xb0 && opcode < 0xb8)
		return IMM8;
	if (opcode >= 0xd8 && opcode < 0xe0)
		return MODRM;
	if ((opcode >= 0xe0 && opcode < 0xe8) || opcode == 0xeb || opcode == 0xcd)
		return IMM8;
	return first_map_single(opcode);
}

static void take_special(struct decoder *d, uint8_t opcode)
{
	if (opcode >= 0xa0 && opcode <= 0xa3)
		skip(d, 8);
	else if (opcode >= 0xb8 && opcode <= 0xbf)
		skip(d, d->wide ? 8 : d->short_operand ? 2 : 4);
	else if (opcode == 0xe8 || opcode == 0xe9)
		skip(d, 4);
	else if (!(take_modrm(d) & 0x30)) /* only test has an immediate */
		skip(d, opcode == 0xf6 ? 1 : d->short_operand ? 2 : 4);
}

static unsigned second_map(uint8_t opcode)
{
	if (opcode >= 0x80 && opcode < 0x90)
		return SPECIAL; /* jcc, always 32 bits */
	switch (opcode) {
	case 0x05:
	case 0x06:
	case 0x08:
	case 0x09:
	case 0x0b:
	case 0x30 ... 0x35:
	case 0x77:
	case 0xa0 ... 0xa2:
	case 0xa8 ... 0xaa:
	case 0xc8 ... 0xcf:
		return NONE;
	case 0x70 ... 0x73:
	case 0xa4:
	case 0xac:
	case 0xba:
	case 0xc2:
	case 0xc4 ... 0xc6:
		return MODRM | IMM8;
	case 0x04:
	case 0x07:
	case 0x0a:
	case 0x0c:
	case 0x0e:
	case 0x0f:
	case 0x24 ... 0x27:
	case 0x36 ... 0x37:
		return BAD;
	default:
		return MODRM;
	}
}

static void take_operands(struct decoder *d, unsigned what)
{
	if (what & BAD)
		d->failed = true;
	if (what & MODRM)
		take_modrm(d);
	skip(d, (what & IMM8 ? 1 : 0) + (what & IMM16 ? 2 : 0));
	if (what & IMM32)
		skip(d, d->short_operand ? 2 : 4);
}

static void take_escaped(struct decoder *d)
{
	uint8_t opcode = next_byte(d);

	if (opcode == 0x38 || opcode == 0x3a) {
		next_byte(d);
		take_operands(d, opcode == 0x38 ? MODRM : MODRM | IMM8);
	} else if (second_map(opcode) == SPECIAL) {
		skip(d, 4);
	} else {
		take_operands(d, second_map(opcode));
	}
}

/* VEX (c4, c5) and EVEX (62): the prefix says the opcode map. */
static void take_vex(struct decoder *d, uint8_t prefix)
{
	uint8_t map = 1, opcode;

	if (prefix != 0xc5)
		map = next_byte(d) & (prefix == 0x62 ? 7 : 31);
	skip(d, prefix == 0x62 ? 2 : 1);
	opcode = next_byte(d);
	if (map == 1)
		take_operands(d, second_map(opcode) & (unsigned)~SPECIAL);
	else
		take_operands(d, map == 2 ? MODRM : map == 3 ? MODRM | IMM8 : BAD);
}

static bool is_prefix(uint8_t byte)
{
	return byte == 0x66 || byte == 0x67 || byte == 0xf0 || byte == 0xf2 || byte == 0xf3 ||
	       byte == 0x2e || byte == 0x36 || byte == 0x3e || byte == 0x26 || byte == 0x64 ||
	       byte == 0x65;
}

unsigned prb_code_x86_64_length(const uint8_t *code, size_t size)
{
	struct decoder d = {.code = code, .size = size};
	uint8_t opcode = next_byte(&d);

	while (is_prefix(opcode) && !d.failed) {
		d.short_operand = d.short_operand || opcode == 0x66;
		opcode = next_byte(&d);
	}
	if ((opcode & 0xf0) == 0x40) { /* REX */
		d.wide = opcode & 8;
		d.short_operand = d.short_operand && !d.wide;
		opcode = next_byte(&d);
	}
	if (opcode == 0x0f)
		take_escaped(&d);
	else if (opcode == 0xc4 || opcode == 0xc5 || opcode == 0x62)
		take_vex(&d, opcode);
	else if (first_map(opcode) == SPECIAL)
		take_special(&d, opcode);
	else
		take_operands(&d, first_map(opcode));
	return d.failed ? 0 : (unsigned)d.at;
}

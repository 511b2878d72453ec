/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Registers of x86_64 with unique values, and its red zone. */
#ifndef PRB_TEST_FAULT_REGISTERS_H
#define PRB_TEST_FAULT_REGISTERS_H

#include "fault.h"

enum { REGISTERS = 32, BYTES = 64, RED_ZONE_WORDS = 16 };

struct registers {
	unsigned char vector[REGISTERS][BYTES];
	uint64_t red_zone[RED_ZONE_WORDS];
	uint32_t mxcsr, pad;
};

static struct registers values, seen;

/* Fills all of them, waits, and reads them back. Written for a leaf: the red zone is its own. */
extern void spin_ymm(const struct registers *from, struct registers *to, long turns);
extern void spin_zmm(const struct registers *from, struct registers *to, long turns);

#define SPIN(name, move, step, count)                                  \
	__asm__(".text\n"                                              \
		".globl " name "\n"                                    \
		".type " name ", @function\n" name ":\n"               \
		".cfi_startproc\n"                                     \
		".set at, 0\n"                                         \
		".set number, 0\n"                                     \
		".altmacro\n"                                          \
		".macro load_one n, place\n"                           \
		"	" move "	\\place(%rdi), %" step "\\n\n" \
		".endm\n"                                              \
		".macro store_one n, place\n"                          \
		"	" move "	%" step "\\n, \\place(%rsi)\n" \
		".endm\n"                                              \
		".rept " count "\n"                                    \
		"	load_one %number, %at\n"                             \
		"	.set number, number + 1\n"                           \
		"	.set at, at + 64\n"                                  \
		".endr\n"                                              \
		".set at, 0\n"                                         \
		".rept 16\n"                                           \
		"	movq	2048+at(%rdi), %rax\n"                          \
		"	movq	%rax, -128+at(%rsp)\n"                          \
		"	.set at, at + 8\n"                                   \
		".endr\n"                                              \
		"	ldmxcsr	2176(%rdi)\n"                                \
		"1:	pause\n"                                           \
		"	decq	%rdx\n"                                         \
		"	jnz	1b\n"                                            \
		"	stmxcsr	2176(%rsi)\n"                                \
		".set at, 0\n"                                         \
		".rept 16\n"                                           \
		"	movq	-128+at(%rsp), %rax\n"                          \
		"	movq	%rax, 2048+at(%rsi)\n"                          \
		"	.set at, at + 8\n"                                   \
		".endr\n"                                              \
		".set at, 0\n"                                         \
		".set number, 0\n"                                     \
		".rept " count "\n"                                    \
		"	store_one %number, %at\n"                            \
		"	.set number, number + 1\n"                           \
		"	.set at, at + 64\n"                                  \
		".endr\n"                                              \
		"	vzeroupper\n"                                        \
		"	ret\n"                                               \
		".cfi_endproc\n"                                       \
		".purgem load_one\n"                                   \
		".purgem store_one\n"                                  \
		".noaltmacro\n")

SPIN("spin_ymm", "vmovdqu", "ymm", "16");
SPIN("spin_zmm", "vmovdqu64", "zmm", "32");

static void check_registers(const char *kind, const char *length)
{
	const int wide = !strcmp(kind, "zmm");
	const size_t bytes = wide ? 64 : 32;
	const unsigned count = wide ? 32 : 16;
	unsigned usual = __builtin_ia32_stmxcsr();

	(void)length;
	for (size_t i = 0; i < sizeof(values.vector); i++)
		values.vector[i / BYTES][i % BYTES] = (unsigned char)(i * 7 + i / 64);
	for (size_t i = 0; i < RED_ZONE_WORDS; i++)
		values.red_zone[i] = 0x1122334455667788 * (i + 1);
	values.mxcsr = 0x7f80; /* rounds toward zero, which is never the default */
	fault_ready();
	while (!shared->stop) {
		(wide ? spin_zmm : spin_ymm)(&values, &seen, 20000);
		__builtin_ia32_ldmxcsr(usual);
		for (unsigned i = 0; i < count; i++)
			if (memcmp(values.vector[i], seen.vector[i], bytes))
				fault_wrong(100 + i);
		if (memcmp(values.red_zone, seen.red_zone, sizeof(seen.red_zone)))
			fault_wrong(200);
		if (seen.mxcsr != values.mxcsr)
			fault_wrong(300);
		fault_round();
	}
}

#endif

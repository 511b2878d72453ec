/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Registers of aarch64 with unique values. There is no red zone there. */
#ifndef PRB_TEST_FAULT_REGISTERS_H
#define PRB_TEST_FAULT_REGISTERS_H

#include <sys/prctl.h>

#include "fault.h"

enum { VECTORS = 32, VECTOR_MOST = 256, PREDICATES = 17, CALLEE_SAVED = 8 };

struct registers {
	unsigned char vector[VECTORS * VECTOR_MOST], predicate[PREDICATES * VECTOR_MOST / 8];
	uint64_t general[CALLEE_SAVED], control;
};

/* Fill all of them, wait, and read them back. */
extern void spin_neon(const struct registers *from, struct registers *to, long turns);
extern void spin_sve(const struct registers *from, struct registers *to, long turns);

#define SPIN(name, before, fill, read)                                                \
	__asm__(".text\n"                                                             \
		".globl " name "\n"                                                   \
		".type " name ", @function\n" name ":\n"                              \
		".cfi_startproc\n"                                                    \
		"	sub	sp, sp, #160\n"                                                 \
		".cfi_def_cfa_offset 160\n"                                           \
		"	stp	x19, x20, [sp]\n"                                               \
		"	stp	x21, x22, [sp, #16]\n"                                          \
		"	stp	x23, x24, [sp, #32]\n"                                          \
		"	stp	x25, x26, [sp, #48]\n"                                          \
		"	stp	d8, d9, [sp, #64]\n"                                            \
		"	stp	d10, d11, [sp, #80]\n"                                          \
		"	stp	d12, d13, [sp, #96]\n"                                          \
		"	stp	d14, d15, [sp, #112]\n"                                         \
		"	mrs	x9, fpcr\n"                                                     \
		"	str	x9, [sp, #128]\n" before fill "	add	x10, x0, #8192\n" \
		"	add	x10, x10, #544\n"                                               \
		"	ldp	x19, x20, [x10]\n"                                              \
		"	ldp	x21, x22, [x10, #16]\n"                                         \
		"	ldp	x23, x24, [x10, #32]\n"                                         \
		"	ldp	x25, x26, [x10, #48]\n"                                         \
		"	ldr	x9, [x10, #64]\n"                                               \
		"	msr	fpcr, x9\n"                                                     \
		"1:	yield\n"                                                          \
		"	subs	x2, x2, #1\n"                                                  \
		"	b.ne	1b\n"                                                          \
		"	add	x10, x1, #8192\n"                                               \
		"	add	x10, x10, #544\n"                                               \
		"	stp	x19, x20, [x10]\n"                                              \
		"	stp	x21, x22, [x10, #16]\n"                                         \
		"	stp	x23, x24, [x10, #32]\n"                                         \
		"	stp	x25, x26, [x10, #48]\n"                                         \
		"	mrs	x9, fpcr\n"                                                     \
		"	str	x9, [x10, #64]\n" read "	ldr	x9, [sp, #128]\n"        \
		"	msr	fpcr, x9\n"                                                     \
		"	ldp	x19, x20, [sp]\n"                                               \
		"	ldp	x21, x22, [sp, #16]\n"                                          \
		"	ldp	x23, x24, [sp, #32]\n"                                          \
		"	ldp	x25, x26, [sp, #48]\n"                                          \
		"	ldp	d8, d9, [sp, #64]\n"                                            \
		"	ldp	d10, d11, [sp, #80]\n"                                          \
		"	ldp	d12, d13, [sp, #96]\n"                                          \
		"	ldp	d14, d15, [sp, #112]\n"                                         \
		"	add	sp, sp, #160\n"                                                 \
		".cfi_def_cfa_offset 0\n"                                             \
		"	ret\n"                                                              \
		".cfi_endproc\n")

#define ALL(line)                                                                                 \
	".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29" \
	",30,31\n" line ".endr\n"
#define HALF(line) ".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n" line ".endr\n"

SPIN("spin_neon", "", ALL("	ldr	q\\n, [x0, #16 * \\n]\n"),
     ALL("	str	q\\n, [x1, #16 * \\n]\n"));

/* The first-fault register goes through p0. */
SPIN("spin_sve",
     ".arch armv8-a+sve\n"
     "	setffr\n"
     "	add	x11, x0, #8192\n"
     "	add	x12, x1, #8192\n",
     ALL("	ldr	z\\n, [x0, #\\n, mul vl]\n") "	ldr	p0, [x11, #16, mul vl]\n"
						     "	wrffr	p0.b\n" HALF(
							     "	ldr	p\\n, [x11, #\\n, mul "
							     "vl]\n"),
     ALL("	str	z\\n, [x1, #\\n, mul vl]\n")
	     HALF("	str	p\\n, [x12, #\\n, mul vl]\n") "	rdffr	p0.b\n"
							      "	str	p0, [x12, #16, mul vl]\n"
							      ".arch armv8-a\n");

static struct registers values, seen;

/* As much of the vectors as there is: "sve LENGTH" sets how long they are to be. */
static void check_registers(const char *kind, const char *length)
{
	const int sve = !strcmp(kind, "sve");
	long bytes = 16;

	if (sve && length && *length && prctl(PR_SVE_SET_VL, atol(length)) < 0)
		fault_wrong(1);
	if (sve)
		bytes = prctl(PR_SVE_GET_VL) & PR_SVE_VL_LEN_MASK;
	for (size_t i = 0; i < sizeof(values.vector); i++)
		values.vector[i] = (unsigned char)(i * 7 + i / 64);
	/* From the first-fault register's first 0 on there may be nothing but 0. */
	for (size_t i = 0; i < 16 * (size_t)bytes / 8; i++)
		values.predicate[i] = (unsigned char)(i * 5 + 3);
	memset(values.predicate + 16 * bytes / 8, 0xff, (size_t)bytes / 16);
	for (size_t i = 0; i < CALLEE_SAVED; i++)
		values.general[i] = 0x1122334455667788 * (i + 1);
	values.control = 3 << 22; /* rounds toward zero, which is never the default */
	fault_ready();
	while (!shared->stop) {
		(sve ? spin_sve : spin_neon)(&values, &seen, 20000);
		for (long i = 0; i < VECTORS; i++)
			if (memcmp(values.vector + i * bytes, seen.vector + i * bytes,
				   (size_t)bytes))
				fault_wrong(100 + i);
		if (sve && memcmp(values.predicate, seen.predicate, PREDICATES * (size_t)bytes / 8))
			fault_wrong(200);
		if (memcmp(values.general, seen.general, sizeof(seen.general)))
			fault_wrong(300);
		if (seen.control != values.control)
			fault_wrong(400);
		fault_round();
	}
}

#endif

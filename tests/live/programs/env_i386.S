/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A 32-bit program that only waits, and needs no library. */
	.globl _start
_start:
	mov $29, %eax
	int $0x80
	jmp _start
	.section .note.GNU-stack, "", @progbits

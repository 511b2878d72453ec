/* SPDX-License-Identifier: GPL-3.0-or-later */
/* control/expression.py as a text, for control/expression.c. */

__asm__(".pushsection .rodata\n"
	".globl prb_expression_code\n"
	".hidden prb_expression_code\n"
	"prb_expression_code:\n"
	".incbin \"control/expression.py\"\n"
	".byte 0\n"
	".popsection\n");

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The agent's library within the program of `make static`: see control/embedded.h. */
	.section .rodata
	.global prb_embedded_agent
	.global prb_embedded_agent_end
prb_embedded_agent:
	.incbin AGENT
prb_embedded_agent_end:
	.byte 0
	.section .note.GNU-stack, "", %progbits

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Any bytes as frames of the agent's protocol, as either side reads them. */
#include "agent/protocol.h"
#include "tests/fuzz/input.h"

static void read_all(const char *text, size_t length)
{
	volatile char last = 0;

	for (size_t i = 0; i < length; i++)
		last = text[i];
	(void)last;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct prb_wire_frame frame;

	while (prb_wire_next(data, size, PRB_WIRE_MAX_REQUEST, &frame) == 1) {
		struct prb_wire_hello hello;
		struct prb_wire_eval eval;

		if (frame.length > size - PRB_WIRE_HEADER_SIZE)
			abort();
		(void)prb_wire_agree(&frame);
		if (prb_wire_get_hello(&frame, &hello)) {
			read_all(hello.agent, strlen(hello.agent));
			read_all(hello.python, strlen(hello.python));
		}
		if (prb_wire_get_eval(&frame, &eval)) {
			read_all(eval.name, eval.name_length);
			read_all(eval.code, eval.code_length);
		}
		data += PRB_WIRE_HEADER_SIZE + frame.length;
		size -= PRB_WIRE_HEADER_SIZE + frame.length;
	}
	return 0;
}

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

/** A valid step request must survive reading and writing unchanged. */
static void check_step(const struct prb_wire_frame *frame)
{
	uint8_t payload[PRB_WIRE_STEP_SIZE];
	struct prb_wire_step step;

	if (!prb_wire_get_step(frame, &step))
		return;
	prb_wire_put_step(payload, &step);
	if (memcmp(payload, frame->payload, frame->length < sizeof(payload) ? 4 : sizeof(payload)))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct prb_wire_frame frame;

	while (prb_wire_next(data, size, PRB_WIRE_MAX_REQUEST, &frame) == 1) {
		struct prb_wire_hello hello;
		struct prb_wire_eval eval;
		struct prb_wire_frozen frozen, again;
		uint32_t number;
		uint64_t wide;

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
		if (prb_wire_get_pause(&frame, &eval) && (eval.name_length || eval.code_length))
			abort();
		if (prb_wire_get_frozen(&frame, &frozen)) {
			uint8_t payload[PRB_WIRE_FROZEN_SIZE];
			const struct prb_wire_frame same = {.type = PRB_WIRE_FROZEN,
							    .length = sizeof(payload),
							    .payload = payload};

			prb_wire_put_frozen(payload, &frozen);
			if (!prb_wire_get_frozen(&same, &again) || frozen.mutex != again.mutex ||
			    frozen.condition != again.condition ||
			    frozen.running != again.running ||
			    frozen.switch_condition != again.switch_condition)
				abort();
		}
		check_step(&frame);
		(void)prb_wire_get_number32(&frame, frame.type, &number);
		(void)prb_wire_get_number64(&frame, frame.type, &wide);
		data += PRB_WIRE_HEADER_SIZE + frame.length;
		size -= PRB_WIRE_HEADER_SIZE + frame.length;
	}
	return 0;
}

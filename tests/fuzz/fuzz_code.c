/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Any bytes as machine code: lengths of instructions, calls, jumps, frames. The first byte chooses
 * the machine, the next two are the end of the first of two functions, then four for a pc in it;
 * the rest is the code.
 */
#include "tests/fuzz/input.h"

#include "dwarf/unwind/code.h"

enum { BASE = 0x10000, AARCH64 = 1, ELSEWHERE = 2 };

static bool read_code(void *context, uint64_t address, void *buffer, size_t length)
{
	const struct input *code = context;

	if (address < BASE || !prb_inside(address - BASE, length, code->size))
		return false;
	memcpy(buffer, code->data + (address - BASE), length);
	return true;
}

/* The code is at the very end of its block, so that sanitizers see a read of one byte too many. */
static void measure(const struct input *code)
{
	for (size_t at = 0; at < code->size; at++) {
		size_t left = PRB_MIN(code->size - at, (size_t)20);
		prb_auto_free uint8_t *copy = malloc(left);

		if (!copy)
			abort();
		memcpy(copy, code->data + at, left);

		unsigned length = prb_code_x86_64_length(copy, left);
		if (length > left || length > 15)
			abort();
		if (at == 64)
			return;
	}
}

static void ask(const struct input *code, uint16_t machine, const struct prb_code_range *function,
		const struct prb_code_range *other, uint64_t pc)
{
	struct prb_cfi_memory memory = {.read = read_code, .context = (void *)code};
	struct prb_frame_size frame;
	struct prb_call call;
	uint64_t bytes;

	prb_code_call_before(&memory, machine, pc, &call);
	prb_code_frame_size(&memory, machine, function, &frame);
	if (frame.known)
		(void)prb_code_pushed_arguments(&memory, machine, function, &frame, pc, &bytes);

	uint64_t target = prb_code_jump_into(&memory, machine, function, other);
	if (target && (target < other->start || target >= other->end))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input code = {data, size};
	uint8_t flags = input_u8(&code);
	uint16_t length = (uint16_t)(input_u8(&code) | input_u8(&code) << 8);
	uint16_t machine = flags & AARCH64 ? EM_AARCH64 : EM_X86_64;
	uint64_t pc = BASE + input_u32(&code);
	struct prb_code_range first = {BASE, BASE + length}, second = {BASE + length, BASE + 65536};

	if (flags & ELSEWHERE)
		first.end = UINT64_MAX;
	measure(&code);
	ask(&code, machine, &first, &second, pc);
	ask(&code, machine, &second, &first, pc);
	return 0;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dwarf/unwind/code.h"

#include <string.h>

enum {
	MACHINE_AARCH64 = 183,
	PROLOGUE = 320,		 /* bytes in which a prologue must be over */
	MAX_FUNCTION = 1 << 20,	 /* code that is looked through whole */
	MAX_DECODED = 128 << 10, /* the same, instruction by instruction */
	MAX_ARGUMENTS = 4096,
	CHUNK = 4096,
	OVERLAP = 8, /* longer than every pattern that is looked for */
};

static int32_t number_at(const uint8_t *bytes)
{
	int32_t number;

	memcpy(&number, bytes, sizeof(number));
	return number;
}

static uint32_t word_at(const uint8_t *bytes)
{
	return (uint32_t)number_at(bytes);
}

static bool fetch(const struct prb_cfi_memory *memory, uint64_t address, void *buffer, size_t size)
{
	return memory->read(memory->context, address, buffer, size);
}

/* The function behind a stub of the linker, @target itself if there is none. */
static uint64_t pass_stub(const struct prb_cfi_memory *memory, uint16_t machine, uint64_t target)
{
	struct prb_regs regs = {.machine = machine, .pc = target};

	prb_regs_set(&regs, prb_regs_sp(machine), 0);
	return prb_cfi_leave_stub(memory, &regs) == PRB_CFI_OK ? regs.pc : target;
}

/* Bytes of an indirect near call from its opcode FF on, 0 if it is none. */
static unsigned indirect_length(const uint8_t *code, size_t size)
{
	if (size < 2 || code[0] != 0xff || (code[1] & 0x38) != 0x10)
		return 0;
	return prb_code_x86_64_length(code, size);
}

static void call_before_x86_64(const struct prb_cfi_memory *memory, uint64_t end,
			       struct prb_call *ret)
{
	uint8_t code[7];
	uint64_t slot;

	if (!fetch(memory, end - sizeof(code), code, sizeof(code)))
		return;
	for (unsigned length = 2; length <= sizeof(code); length++)
		if (indirect_length(code + sizeof(code) - length, length) == length)
			ret->indirect = true;
	if (ret->indirect)
		ret->kind = PRB_CALL_INDIRECT;
	if (code[2] == 0xe8) { /* call n */
		ret->kind = PRB_CALL_DIRECT;
		ret->target = end + (uint64_t)(int64_t)number_at(code + 3);
		ret->target = pass_stub(memory, 62, ret->target);
	} else if (code[1] == 0xff && code[2] == 0x15) { /* call *n(%rip) */
		slot = end + (uint64_t)(int64_t)number_at(code + 3);
		if (fetch(memory, slot, &ret->target, sizeof(ret->target)))
			ret->kind = PRB_CALL_DIRECT;
	}
}

/* Target of b, bl with its 26 bits of words. */
static uint64_t branch_target(uint32_t code, uint64_t pc)
{
	return pc + (uint64_t)((int64_t)((uint64_t)code << 38) >> 36);
}

static void call_before_aarch64(const struct prb_cfi_memory *memory, uint64_t end,
				struct prb_call *ret)
{
	uint32_t code;

	if (end & 3 || !fetch(memory, end - 4, &code, sizeof(code)))
		return;
	if (code >> 26 == 0x25) { /* bl */
		ret->kind = PRB_CALL_DIRECT;
		ret->target = pass_stub(memory, MACHINE_AARCH64, branch_target(code, end - 4));
	} else if ((code & 0xfefff000) == 0xd63f0000) { /* blr, blraa and the like */
		ret->kind = PRB_CALL_INDIRECT;
		ret->indirect = true;
	}
}

void prb_code_call_before(const struct prb_cfi_memory *memory, uint16_t machine,
			  uint64_t return_address, struct prb_call *ret)
{
	*ret = (struct prb_call){.kind = PRB_CALL_NONE};
	if (machine == MACHINE_AARCH64)
		call_before_aarch64(memory, return_address, ret);
	else
		call_before_x86_64(memory, return_address, ret);
}

/* Reads as much of a function's beginning as there is. */
static size_t read_start(const struct prb_cfi_memory *memory, const struct prb_code_range *function,
			 uint8_t *code, size_t max)
{
	uint64_t size = function->end - function->start;

	if (size < max)
		max = (size_t)size;
	return fetch(memory, function->start, code, max) ? max : 0;
}

static bool is_call(const uint8_t *code)
{
	while (*code == 0xf2 || *code == 0x3e || (*code & 0xf0) == 0x40)
		code++;
	return *code == 0xe8 || (*code == 0xff && (code[1] & 0x38) == 0x10);
}

static bool is_jump_or_call(const uint8_t *code)
{
	/* bnd, notrack, and the prefix of the upper eight registers */
	while (*code == 0xf2 || *code == 0x3e || (*code & 0xf0) == 0x40)
		code++;
	if (code[0] == 0xff)
		return (code[1] >> 3 & 7) >= 2 && (code[1] >> 3 & 7) <= 5;
	return (code[0] >= 0x70 && code[0] < 0x80) || (code[0] >= 0xe0 && code[0] <= 0xe3) ||
	       (code[0] >= 0xe8 && code[0] <= 0xeb) || code[0] == 0xc2 || code[0] == 0xc3 ||
	       (code[0] == 0x0f && (code[1] & 0xf0) == 0x80);
}

/* sub $n, %rsp and, wrapped, add $n, %rsp; 0: it is something else. */
static uint64_t taken_from_sp(const uint8_t *code, unsigned length)
{
	if (length == 4 && !memcmp(code, "\x48\x83\xec", 3))
		return (uint64_t)(int64_t)(int8_t)code[3];
	if (length == 7 && !memcmp(code, "\x48\x81\xec", 3))
		return (uint64_t)(int64_t)number_at(code + 3);
	if (length == 4 && !memcmp(code, "\x48\x83\xc4", 3))
		return -(uint64_t)(int64_t)(int8_t)code[3];
	if (length == 7 && !memcmp(code, "\x48\x81\xc4", 3))
		return -(uint64_t)(int64_t)number_at(code + 3);
	return 0;
}

static bool is_frame_pointer_set(const uint8_t *code, unsigned length)
{
	return length == 3 &&
	       (!memcmp(code, "\x48\x89\xe5", 3) || !memcmp(code, "\x48\x8b\xec", 3));
}

static bool is_push(const uint8_t *code, unsigned length)
{
	return (length == 1 && (code[0] & 0xf8) == 0x50) ||
	       (length == 2 && code[0] == 0x41 && (code[1] & 0xf8) == 0x50);
}

/*
 * @code can be read for 16 bytes more than @size.
 *
 * push %rbp; mov %rsp, %rbp; pushes of others; sub $n, %rsp; with instructions in between that
 * have nothing to do with it. A test for the quick way out may come first. Where pages are probed
 * one by one (orq $0, (%rsp) after each step) it takes several steps, or a loop that we leave be.
 */
static void frame_size_x86_64(const uint8_t *code, size_t size, struct prb_frame_size *ret)
{
	uint64_t bytes = 16;
	bool framed = false, over = false, probed = false;
	unsigned length;

	for (size_t at = 0; at < size && !over; at += length) {
		const uint8_t *here = code + at;
		uint64_t taken;

		length = prb_code_x86_64_length(here, size - at);
		if (!length)
			return;
		taken = taken_from_sp(here, length);
		if (!framed) {
			framed = is_frame_pointer_set(here, length);
		} else if (is_push(here, length)) {
			bytes += 8;
		} else if (taken) {
			bytes += taken;
			probed = taken == 4096 && !memcmp(here + length, "\x48\x83\x0c\x24", 4);
			over = !probed;
		} else {
			over = is_jump_or_call(here);
			continue;
		}
		ret->body = at + length;
	}
	ret->known = over && !probed && bytes % 16 == 0 && bytes < 1 << 30;
	ret->bytes = bytes;
}

/*
 * Bytes that an instruction subtracts from sp: sub sp, sp, #n; stp and str with a write back of -n.
 */
static uint64_t taken_aarch64(uint32_t code)
{
	bool vector = code & 1 << 26;
	unsigned scale = vector ? 4U << (code >> 30) : 4U << (code >> 31);

	if ((code & 0xff8003ff) == 0xd10003ff)
		return (uint64_t)(code >> 10 & 0xfff) << (code & 1 << 22 ? 12 : 0);
	if ((code & 0x3bc003e0) == 0x298003e0)
		return scale * (uint64_t) - ((int64_t)((uint64_t)code << 42) >> 57);
	if ((code & 0x3b200fe0) == 0x38000fe0)
		return (uint64_t) - ((int64_t)((uint64_t)code << 43) >> 55);
	return 0;
}

static bool branches_aarch64(uint32_t code)
{
	return (code & 0x7c000000) == 0x14000000 || (code & 0xfe000000) == 0x54000000 ||
	       (code & 0x7c000000) == 0x34000000 || (code & 0xfe000000) == 0xd6000000;
}

/* Everything up to the first branch; sp is the CFA when a function begins. */
static void frame_size_aarch64(const uint8_t *code, size_t size, struct prb_frame_size *ret)
{
	for (size_t at = 0; at + 4 <= size && !ret->known; at += 4) {
		uint64_t taken = taken_aarch64(word_at(code + at));

		if (taken >> 30)
			return;
		ret->bytes += taken;
		ret->known = branches_aarch64(word_at(code + at)) && ret->bytes;
	}
}

/* sub %reg, %rsp; mov %reg, %rsp; and $n, %rsp, wherever they may begin. */
static bool moves_sp_x86_64(const uint8_t *code)
{
	bool reversed = code[1] == 0x29 || code[1] == 0x89,
	     plain = code[1] == 0x2b || code[1] == 0x8b;

	if (reversed && (code[0] == 0x48 || code[0] == 0x4c))
		return (code[2] & 0xc7) == 0xc4;
	if (plain && (code[0] == 0x48 || code[0] == 0x49))
		return (code[2] & 0xf8) == 0xe0;
	return code[0] == 0x48 && (code[1] == 0x83 || code[1] == 0x81) && code[2] == 0xe4;
}

/* sub sp, sp, x; mov sp, x */
static bool moves_sp_aarch64(const uint8_t *code)
{
	uint32_t word = word_at(code);

	return (word & 0xffe003ff) == 0xcb2003ff ||
	       ((word & 0xfffffc1f) == 0x9100001f && word != 0x910003bf);
}

typedef uint64_t matcher(const uint8_t *code, uint64_t pc, const void *context);

/*
 * The first thing but 0 that @match answers, in the whole of a function; @unreadable if that
 * cannot be looked through.
 */
static uint64_t look_through(const struct prb_cfi_memory *memory, uint16_t machine,
			     const struct prb_code_range *function, matcher *match,
			     const void *context, uint64_t unreadable)
{
	uint8_t code[CHUNK + OVERLAP];
	size_t step = machine == MACHINE_AARCH64 ? 4 : 1;

	if (function->end < function->start || function->end - function->start > MAX_FUNCTION)
		return unreadable;
	for (uint64_t pc = function->start; pc < function->end; pc += CHUNK) {
		uint64_t left = function->end - pc;
		size_t size = left < sizeof(code) ? (size_t)left : sizeof(code);

		memset(code + size, 0, sizeof(code) - size);
		if (!fetch(memory, pc, code, size))
			return unreadable;
		for (size_t at = 0; at < CHUNK && at < size; at += step) {
			uint64_t answer = match(code + at, pc + at, context);

			if (answer)
				return answer;
		}
	}
	return 0;
}

static uint64_t match_move(const uint8_t *code, uint64_t pc, const void *context)
{
	(void)pc;
	return *(const uint16_t *)context == MACHINE_AARCH64 ? moves_sp_aarch64(code)
							     : moves_sp_x86_64(code);
}

void prb_code_frame_size(const struct prb_cfi_memory *memory, uint16_t machine,
			 const struct prb_code_range *function, struct prb_frame_size *ret)
{
	uint8_t code[PROLOGUE + 16] = {};
	size_t size = read_start(memory, function, code, PROLOGUE);

	*ret = (struct prb_frame_size){.dynamic = true};
	if (machine == MACHINE_AARCH64)
		frame_size_aarch64(code, size, ret);
	else
		frame_size_x86_64(code, size, ret);
	ret->body += function->start;
	if (ret->known)
		ret->dynamic = look_through(memory, machine, function, match_move, &machine, 1);
}

/* By how much an instruction lowers the stack pointer, wrapped if it raises it. */
static uint64_t lowers_sp(const uint8_t *code, unsigned length)
{
	uint64_t taken = taken_from_sp(code, length);

	if (taken)
		return taken;
	while ((*code & 0xf0) == 0x40)
		code++;
	if ((*code & 0xf8) == 0x50 || *code == 0x68 || *code == 0x6a ||
	    (*code == 0xff && (code[1] & 0x38) == 0x30)) /* push */
		return 8;
	if ((*code & 0xf8) == 0x58 || (*code == 0x8f && (code[1] & 0x38) == 0)) /* pop */
		return (uint64_t)-8;
	return 0;
}

bool prb_code_pushed_arguments(const struct prb_cfi_memory *memory, uint16_t machine,
			       const struct prb_code_range *function,
			       const struct prb_frame_size *frame, uint64_t pc, uint64_t *bytes)
{
	uint8_t code[CHUNK];
	uint64_t here = frame->body;

	*bytes = 0;
	if (machine == MACHINE_AARCH64)
		return true; /* room for arguments is part of the frame there */
	if (pc < here || pc >= function->end || pc - here > MAX_DECODED)
		return false;
	while (here <= pc) {
		uint64_t left = function->end - here;
		size_t size = left < sizeof(code) ? (size_t)left : sizeof(code), at = 0;

		if (!fetch(memory, here, code, size))
			return false;
		/* An instruction that the chunk cuts off begins the next one. */
		while (at < size && (left == size || at + 16 <= size)) {
			unsigned length = prb_code_x86_64_length(code + at, size - at);

			if (!length)
				return false;
			if (pc - here < at + length)
				return *bytes < MAX_ARGUMENTS && *bytes % 16 == 0;
			if (is_jump_or_call(code + at) && !is_call(code + at))
				*bytes = 0;
			else
				*bytes += lowers_sp(code + at, length);
			at += length;
		}
		here += at;
	}
	return false;
}

struct jump_search {
	uint16_t machine;
	const struct prb_code_range *into;
};

static uint64_t match_jump(const uint8_t *code, uint64_t pc, const void *context)
{
	const struct jump_search *search = context;
	uint64_t target;

	if (search->machine == MACHINE_AARCH64) {
		uint32_t word = word_at(code);

		if (word >> 26 == 5) /* b */
			target = branch_target(word, pc);
		else if ((word & 0xff000010) == 0x54000000 || (word & 0x7e000000) == 0x34000000)
			target = pc + 4 * (uint64_t)((int64_t)((uint64_t)word << 40) >> 45);
		else
			return 0;
	} else if (code[0] == 0xe9) {
		target = pc + 5 + (uint64_t)(int64_t)number_at(code + 1);
	} else if (code[0] == 0x0f && (code[1] & 0xf0) == 0x80) {
		target = pc + 6 + (uint64_t)(int64_t)number_at(code + 2);
	} else {
		return 0;
	}
	return target >= search->into->start && target < search->into->end ? target : 0;
}

uint64_t prb_code_jump_into(const struct prb_cfi_memory *memory, uint16_t machine,
			    const struct prb_code_range *from, const struct prb_code_range *into)
{
	struct jump_search search = {machine, into};

	return look_through(memory, machine, from, match_jump, &search, 0);
}

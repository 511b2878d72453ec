/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Frame pointers of sleeping threads, recovered from the code on stacks made by hand, with stale
 * frames between the present ones; and the length of all instructions in libc.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <elf.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "dwarf/unwind/recover.h"
#include "tests/unit/in_range.h"

enum { CODE = 0x400000, STACK = 0x7f000000, WORDS = 512, MAX_FUNCTIONS = 8, X86_64 = 62 };

/* A process made by hand. */
static struct world {
	uint8_t code[4096];
	uint64_t stack[WORDS];
	struct prb_code_range functions[MAX_FUNCTIONS];
	size_t count, used;
} world;

static bool read_world(void *context, uint64_t address, void *buffer, size_t length)
{
	(void)context;
	if (address >= CODE && prb_inside(address - CODE, length, sizeof(world.code)))
		memcpy(buffer, world.code + (address - CODE), length);
	else if (address >= STACK && prb_inside(address - STACK, length, sizeof(world.stack)))
		memcpy(buffer, (const uint8_t *)world.stack + (address - STACK), length);
	else
		return false;
	return true;
}

static bool find_function(void *context, uint64_t pc, struct prb_code_range *ret)
{
	(void)context;
	for (size_t i = 0; i < world.count; i++) {
		*ret = world.functions[i];
		if (pc >= ret->start && pc < ret->end)
			return true;
	}
	return false;
}

/* All callers have frame pointers. */
static bool leave_call(void *context, struct prb_regs *regs, uint64_t *cfa, bool *end)
{
	uint64_t frame[2], pointer;

	if (!prb_regs_get(regs, 6, &pointer) || !read_world(context, pointer, frame, sizeof(frame)))
		return false;
	*cfa = pointer + 16;
	prb_regs_set(regs, 6, frame[0]);
	prb_regs_set(regs, PRB_REG_X86_64_RSP, *cfa);
	regs->pc = frame[1];
	*end = regs->pc == 0;
	return true;
}

static const struct prb_cfi_memory memory = {.read = read_world};

static int set_up(void **state)
{
	(void)state;
	memset(&world, 0, sizeof(world));
	memset(world.code, 0x90, sizeof(world.code));
	return 0;
}

/* Adds a function; returns its address. */
static uint64_t add_function(const char *code, size_t length)
{
	uint64_t start = CODE + world.used;

	memcpy(world.code + world.used, code, length);
	world.functions[world.count++] = (struct prb_code_range){start, start + length};
	world.used += (length + 31) & ~(size_t)15;
	return start;
}

/*
 * A function with a call of (or, with another opcode, a jump to) @target; *after: the address after
 * it.
 */
static uint64_t add_caller(uint8_t opcode, uint64_t target, uint64_t *after)
{
	uint64_t start = add_function("\x55\x48\x89\xe5\xe8\0\0\0\0\x5d\xc3", 11);
	int32_t distance = (int32_t)(int64_t)(target - (start + 9));

	world.code[start + 4 - CODE] = opcode;
	memcpy(world.code + (start + 5 - CODE), &distance, sizeof(distance));
	*after = start + 9;
	return start;
}

static void put_word(uint64_t address, uint64_t value)
{
	world.stack[(address - STACK) / 8] = value;
}

/* The frame pointer and the return address below @cfa. */
static void put_frame(uint64_t cfa, uint64_t pointer, uint64_t return_address)
{
	put_word(cfa - 16, pointer);
	put_word(cfa - 8, return_address);
}

/* Frame address recovered for code at @pc with the stack at @sp; 0 if none. */
static uint64_t recover_as(uint16_t machine, int32_t frame_offset, uint64_t pc, uint64_t sp)
{
	bool aarch64 = machine == EM_AARCH64;
	struct prb_recovery recovery = {&memory, 0, NULL, find_function, leave_call};
	struct prb_cfi_row row = {.cfa = {.kind = PRB_CFI_REGISTER}, .count = 2};
	struct prb_regs regs = {.machine = machine, .pc = pc};
	uint64_t pointer;

	row.cfa.reg = aarch64 ? 29 : 6;
	row.cfa.value = frame_offset;
	row.ra = aarch64 ? 30 : 16;
	row.mask = 1ULL << row.cfa.reg | 1ULL << row.ra;
	row.rules[0] = (struct prb_cfi_rule){.kind = PRB_CFI_OFFSET,
					     .value = aarch64 ? -frame_offset : -16};
	row.rules[1] = (struct prb_cfi_rule){.kind = PRB_CFI_OFFSET,
					     .value = aarch64 ? 8 - frame_offset : -8};
	prb_regs_set(&regs, prb_regs_sp(machine), sp);
	if (prb_recover_frame_pointer(&recovery, &row, pc, &regs) != PRB_CFI_OK)
		return 0;
	assert_true(prb_regs_get(&regs, row.cfa.reg, &pointer));
	return pointer + (uint64_t)frame_offset;
}

static uint64_t recover(uint64_t pc, uint64_t sp)
{
	return recover_as(X86_64, 16, pc, sp);
}

/* push %rbp; mov %rsp, %rbp; push %r12; push %rbx; mov %rdi, %rbx; sub $32, %rsp; call at +14 */
#define FIXED "\x55\x48\x89\xe5\x41\x54\x53\x48\x89\xfb\x48\x83\xec\x20\xe8\0\0\0\0\xc3"
enum { FIXED_CALL = 14, FIXED_SIZE = 64 };

static void test_fixed_size(void **state)
{
	uint64_t f = add_function(FIXED, 20), after, sp = STACK + 64;

	(void)state;
	add_caller(0xe8, f, &after);
	put_frame(sp + FIXED_SIZE, sp + 512, after);
	/* Frames of earlier calls and of outer ones. */
	put_frame(sp + 32, sp + 512, after);
	put_frame(sp + FIXED_SIZE + 16, sp + 512, after);
	put_frame(sp + 256, sp + 512, after);
	assert_int_equal(recover(f + FIXED_CALL, sp), sp + FIXED_SIZE);
	/* Missing there, it is not searched elsewhere. */
	put_frame(sp + FIXED_SIZE, sp + 512, after + 1);
	assert_int_equal(recover(f + FIXED_CALL, sp), 0);
	put_frame(sp + FIXED_SIZE, sp + 512, STACK);
	assert_int_equal(recover(f + FIXED_CALL, sp), 0);
	assert_int_equal(recover(f + FIXED_CALL, STACK + sizeof(world.stack) - 16), 0);
	assert_int_equal(recover(f + FIXED_CALL, 0), 0);
	assert_int_equal(recover(f + FIXED_CALL, UINT64_MAX - 8), 0);
	assert_int_equal(recover(CODE - 64, sp), 0);
}

/* The same with two arguments pushed before one of its two calls. */
static void test_pushed_arguments(void **state)
{
	uint64_t f = add_function("\x55\x48\x89\xe5\x48\x83\xec\x20\x6a\x00\x50\xe8\0\0\0\0"
				  "\x48\x83\xc4\x10\xe8\0\0\0\0\x72\x02\x6a\x01\xe8\0\0\0\0\xc3",
				  35);
	uint64_t after, sp = STACK + 64;

	(void)state;
	add_caller(0xe8, f, &after);
	put_frame(sp + 48, sp + 512, after);
	put_frame(sp + 64, sp + 512, after);
	assert_int_equal(recover(f + 11, sp), sp + 64);
	assert_int_equal(recover(f + 20, sp), sp + 48);
	/* An odd number of words: the code was misread. */
	assert_int_equal(recover(f + 29, sp), 0);
}

/* A call through a pointer proves less: the callers must follow each other, behind calls. */
static void test_called_through_pointer(void **state)
{
	uint64_t f = add_function(FIXED, 20), sp = STACK + 64, other;
	uint64_t caller = add_function("\x55\x48\x89\xe5\xff\x50\x18\x5d\xc3", 9);

	(void)state;
	add_caller(0xe8, caller, &other);
	put_frame(sp + FIXED_SIZE, sp + 256, caller + 7);
	put_frame(sp + 256 + 16, sp + 512, other);
	put_frame(sp + 512 + 16, 0, 0);
	assert_int_equal(recover(f + FIXED_CALL, sp), sp + FIXED_SIZE);
	put_frame(sp + 256 + 16, sp + 512, other + 1); /* not behind a call */
	assert_int_equal(recover(f + FIXED_CALL, sp), 0);
	put_frame(sp + 256 + 16, sp + 128, other); /* down again */
	assert_int_equal(recover(f + FIXED_CALL, sp), 0);
	put_frame(sp + FIXED_SIZE, 12345, caller + 7); /* nowhere */
	assert_int_equal(recover(f + FIXED_CALL, sp), 0);
}

/* Another function jumps to ours at its end. */
static void test_called_in_tail_position(void **state)
{
	uint64_t f = add_function(FIXED, 20), sp = STACK + 64, ignored, after;
	uint64_t g = add_caller(0xe9, f, &ignored);

	(void)state;
	add_caller(0xe8, g, &after);
	put_frame(sp + FIXED_SIZE, 12345, after);
	assert_int_equal(recover(f + FIXED_CALL, sp), sp + FIXED_SIZE);
}

/* push %rbp; mov %rsp, %rbp; sub $16, %rsp; sub %rax, %rsp; call at +11 */
static void test_size_made_at_run_time(void **state)
{
	uint64_t f =
		add_function("\x55\x48\x89\xe5\x48\x83\xec\x10\x48\x29\xc4\xe8\0\0\0\0\xc3", 17);
	uint64_t after, sp = STACK + 64;

	(void)state;
	add_caller(0xe8, f, &after);
	assert_int_equal(recover(f + 11, sp), 0);
	put_frame(sp + 320, sp + 512, after);
	put_frame(sp + 136, sp + 512, after); /* no frame ends there */
	assert_int_equal(recover(f + 11, sp), sp + 320);
	put_frame(sp + 160, sp + 512, after); /* stale, or the present one? */
	assert_int_equal(recover(f + 11, sp), 0);
}

/* A part split off by the compiler: only its parent function has a prologue. */
static void test_split_off(void **state)
{
	uint64_t part = add_function("\x31\xc0\xe8\0\0\0\0\xc3", 8), sp = STACK + 64, after;
	uint64_t whole =
		add_function("\x55\x48\x89\xe5\x48\x83\xec\x30\x0f\x84\0\0\0\0\xc9\xc3", 16);
	int32_t distance = (int32_t)(int64_t)(part + 2 - (whole + 14));

	(void)state;
	memcpy(world.code + (whole + 10 - CODE), &distance, sizeof(distance));
	add_caller(0xe8, whole, &after);
	put_frame(sp + 64, sp + 512, after);
	put_frame(sp + 32, sp + 512, after);  /* too small */
	put_frame(sp + 256, sp + 512, after); /* too large */
	assert_int_equal(recover(part + 2, sp), sp + 64);
}

/* More than the usual two words at the frame pointer, and nothing else on the stack: as libffi. */
static void test_hand_written(void **state)
{
	uint64_t f = add_function("\x48\x89\xc5\xff\xd0\x48\x89\xec\xc3", 9), sp = STACK + 64,
		 after;

	(void)state;
	add_caller(0xe8, f, &after);
	put_frame(sp + 320, sp + 512, after);
	put_frame(sp + 32, sp + 512, after);
	assert_int_equal(recover_as(X86_64, 32, f + 3, sp), sp + 32);
	/* With arguments on the stack the first match may be stale. */
	put_frame(sp + 32, 0, 0);
	put_frame(sp + 40, sp + 512, after);
	assert_int_equal(recover_as(X86_64, 32, f + 3, sp), 0);
	put_frame(sp + 320, 0, 0);
	assert_int_equal(recover_as(X86_64, 32, f + 3, sp), sp + 40);
}

static void test_aarch64(void **state)
{
	/* stp x29, x30, [sp, #-48]!; mov x29, sp; sub sp, sp, #32; bl; ret */
	uint64_t f = add_function("\xfd\x7b\xbd\xa9\xfd\x03\x00\x91\xff\x83\x00\xd1"
				  "\x00\x00\x00\x94\xc0\x03\x5f\xd6",
				  20);
	uint64_t caller = add_function("\x00\x00\x00\x94\xc0\x03\x5f\xd6", 8), sp = STACK + 64;
	uint32_t call = 0x94000000 | (((uint32_t)(f - caller) >> 2) & 0x3ffffff);

	(void)state;
	memcpy(world.code + (caller - CODE), &call, sizeof(call));
	put_word(sp + 32, sp + 512);
	put_word(sp + 40, caller + 4);
	assert_int_equal(recover_as(EM_AARCH64, 48, f + 12, sp), sp + 80);
	put_word(sp + 40, caller + 8);
	assert_int_equal(recover_as(EM_AARCH64, 48, f + 12, sp), 0);
}

/* Misleading prologues. */
static void test_sizes(void **state)
{
	static const struct {
		const char *code;
		size_t length;
		bool known;
		uint64_t bytes;
	} cases[] = {
		/* a test for an early return first */
		{"\x48\x85\xff\x74\x10\x55\x48\x89\xe5\x53\x48\x83\xec\x18\xc3", 15, true, 48},
		/* saved by moves */
		{"\x55\x48\x89\xe5\x48\x83\xec\x20\x48\x89\x5d\xf8\xc3", 13, true, 48},
		/* pages probed by steps, and by a loop */
		{"\x55\x48\x89\xe5\x48\x81\xec\0\x10\0\0\x48\x83\x0c\x24\0\x48\x83\xec\x20\xc3", 21,
		 true, 4096 + 48},
		{"\x55\x48\x89\xe5\x48\x81\xec\0\x10\0\0\x48\x83\x0c\x24\0\x75\xf2\xc3", 19, false,
		 0},
		/* calls need a multiple of 16 */
		{"\x55\x48\x89\xe5\x53\xe8\0\0\0\0\xc3", 11, false, 0},
		{"\x55\x48\x89\xe5\xe8\0\0\0\0\x5d\xc3", 11, true, 16},
		/* no frame pointer; no end; nothing */
		{"\x53\x48\x83\xec\x20\xe8\0\0\0\0\xc3", 11, false, 0},
		{"\x55\x48\x89\xe5\x90\x90", 6, false, 0},
		{"\x06\x06", 2, false, 0},
		{"", 0, false, 0},
	};

	for (size_t i = 0; i < PRB_ARRAY_SIZE(cases); i++) {
		struct prb_frame_size frame;
		uint8_t padded[64] = {};

		set_up(state);
		memcpy(padded, cases[i].code, cases[i].length);
		uint64_t start = add_function((const char *)padded, cases[i].length + 16);
		prb_code_frame_size(&memory, X86_64, &(struct prb_code_range){start, start + 48},
				    &frame);
		assert_int_equal(frame.known, cases[i].known);
		if (frame.known)
			assert_int_equal(frame.bytes, cases[i].bytes);
		assert_true(!frame.known || !frame.dynamic);
	}
}

#if defined(__x86_64__)
struct lengths {
	size_t functions, whole;
};

static bool read_own(void *context, uint64_t address, void *buffer, size_t length)
{
	(void)context;
	memcpy(buffer, (const void *)(uintptr_t)address, length);
	return true;
}

/* Decoded one after another, the instructions of a function must fill it. */
static bool fills(const struct prb_cfi_fde *fde)
{
	const uint8_t *code = (const uint8_t *)(uintptr_t)fde->start;
	size_t size = fde->end - fde->start, at = 0;

	while (at < size) {
		unsigned length = prb_code_x86_64_length(code + at, size - at);

		if (!length)
			return false;
		at += length;
	}
	return true;
}

static int check_lengths(struct dl_phdr_info *info, size_t size, void *data)
{
	static const struct prb_cfi_memory own = {.read = read_own};
	struct lengths *lengths = data;
	struct prb_cfi_section header = {}, section = {};
	struct prb_cfi_index index;
	uint64_t end = 0;

	(void)size;
	if (!strstr(info->dlpi_name, "libc.so"))
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *s = &info->dlpi_phdr[i];

		if (s->p_type == PT_GNU_EH_FRAME)
			header = (struct prb_cfi_section){.address = info->dlpi_addr + s->p_vaddr,
							  .size = s->p_memsz};
		if (s->p_type == PT_LOAD && info->dlpi_addr + s->p_vaddr <= header.address)
			end = info->dlpi_addr + s->p_vaddr + s->p_memsz;
	}
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *s = &info->dlpi_phdr[i];
		uint64_t start = info->dlpi_addr + s->p_vaddr;

		if (s->p_type == PT_LOAD && header.address >= start &&
		    header.address < start + s->p_memsz)
			end = start + s->p_memsz;
	}
	assert_int_equal(prb_cfi_index_read(&header, &own, &index), PRB_CFI_OK);
	section = (struct prb_cfi_section){.address = index.eh_frame,
					   .size = end - index.eh_frame,
					   .data = (const void *)(uintptr_t)index.eh_frame};

	struct prb_cfi_fde fde = {};
	uint64_t address = section.address;
	while (prb_cfi_fde_next(&section, &own, &address, &fde) == PRB_CFI_OK) {
		lengths->functions++;
		lengths->whole += fills(&fde);
	}
	return 1;
}

static void test_lengths(void **state)
{
	struct lengths lengths = {};

	(void)state;
	dl_iterate_phdr(check_lengths, &lengths);
	print_message("%zu of %zu functions of libc decoded whole\n", lengths.whole,
		      lengths.functions);
	assert_uint_in_range(lengths.functions, 1000, SIZE_MAX);
	assert_true(lengths.whole * 1000 >= lengths.functions * 995);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_fixed_size, set_up),
		cmocka_unit_test_setup(test_pushed_arguments, set_up),
		cmocka_unit_test_setup(test_called_through_pointer, set_up),
		cmocka_unit_test_setup(test_called_in_tail_position, set_up),
		cmocka_unit_test_setup(test_size_made_at_run_time, set_up),
		cmocka_unit_test_setup(test_split_off, set_up),
		cmocka_unit_test_setup(test_hand_written, set_up),
		cmocka_unit_test_setup(test_aarch64, set_up),
		cmocka_unit_test_setup(test_sizes, set_up),
#if defined(__x86_64__)
		cmocka_unit_test(test_lengths),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

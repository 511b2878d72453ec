/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "target/restarted_call.h"

#include <elf.h>
#include <string.h>

#include "base/checked.h"
#include "target/task.h"

enum {
	CODE_BYTES = 64, /* before the system call that are looked at */
	STACK_WORDS = 16,
	CALL_BYTES = 5, /* call with a relative address */
	A64_SVC = 0xd4000001,
	A64_MOVZ_W8 = 0x52800008, /* with the number in bits 5 to 20 */
	A64_MOVZ_MASK = 0x7fe0001f,
};

/* The only calls that the kernel restarts under that name. */
static bool is_restartable(uint16_t machine, uint64_t number)
{
	static const char *const names[] = {"nanosleep", "clock_nanosleep", "futex", "poll"};
	const char *name = number < 1000 ? prb_syscall_name(machine, (long)number) : NULL;

	for (size_t i = 0; name && i < PRB_ARRAY_SIZE(names); i++) {
		if (!strcmp(name, names[i]))
			return true;
	}
	return false;
}

static bool ends_with(const uint8_t *code, const char *bytes, size_t length)
{
	return memcmp(code + CODE_BYTES - length, bytes, length) == 0;
}

static long in_code_x86_64(const uint8_t *code)
{
	if (!ends_with(code, "\x0f\x05", 2))
		return -1;
	for (size_t at = CODE_BYTES - 6; at-- > 0;) {
		uint32_t number;

		if (code[at] != 0xb8) /* mov $NUMBER, %eax */
			continue;
		memcpy(&number, code + at + 1, sizeof(number));
		if (is_restartable(EM_X86_64, number))
			return number;
	}
	return -1;
}

static long in_code_aarch64(const uint8_t *code)
{
	uint32_t word;

	memcpy(&word, code + CODE_BYTES - sizeof(word), sizeof(word));
	if (word != A64_SVC)
		return -1;
	for (size_t at = CODE_BYTES - sizeof(word); at > 0;) {
		at -= sizeof(word);
		memcpy(&word, code + at, sizeof(word));
		if ((word & A64_MOVZ_MASK) == A64_MOVZ_W8) {
			long number = word >> 5 & 0xffff;

			return is_restartable(EM_AARCH64, (uint64_t)number) ? number : -1;
		}
	}
	return -1;
}

/*
 * glibc makes such a call in __internal_syscall_cancel(), which has the number as its seventh
 * argument, or in __syscall_cancel_arch(), which that function calls.
 */
static bool takes_from_stack(const uint8_t *code)
{
	/* mov N(%rsp), %rax or mov N(%rbp), %rax; syscall */
	bool loads = !memcmp(code + CODE_BYTES - 7, "\x48\x8b\x44\x24", 4) ||
		     !memcmp(code + CODE_BYTES - 6, "\x48\x8b\x45", 3);

	/* mov %r11, 8(%rsp); syscall */
	return (loads && ends_with(code, "\x0f\x05", 2)) ||
	       ends_with(code, "\x4c\x89\x5c\x24\x08\x0f\x05", 7);
}

/* Behind a call instruction? */
static bool is_return_address(uint64_t address, prb_restarted_read *read, void *context)
{
	uint8_t code[CALL_BYTES];

	return address > CALL_BYTES && read(context, address - CALL_BYTES, code, sizeof(code)) &&
	       code[0] == 0xe8;
}

long prb_restarted_call_on_stack(uint64_t pc, uint64_t sp, prb_restarted_read *read, void *context)
{
	uint8_t code[CODE_BYTES];
	uint64_t words[STACK_WORDS];

	if (pc < CODE_BYTES || !read(context, pc - CODE_BYTES, code, sizeof(code)) ||
	    !takes_from_stack(code) || !read(context, sp, words, sizeof(words)))
		return -1;
	/* The first argument on the stack lies above the address that its function returns to. */
	for (size_t i = 1; i < STACK_WORDS; i++)
		if (is_restartable(EM_X86_64, words[i]) &&
		    is_return_address(words[i - 1], read, context))
			return (long)words[i];
	return -1;
}

long prb_restarted_call(uint16_t machine, uint64_t pc, uint64_t sp, prb_restarted_read *read,
			void *context)
{
	uint8_t code[CODE_BYTES];

	if (machine == EM_X86_64) {
		long number = prb_restarted_call_on_stack(pc, sp, read, context);

		if (number >= 0)
			return number;
	}
	if (pc < CODE_BYTES || !read(context, pc - CODE_BYTES, code, sizeof(code)))
		return -1;
	return machine == EM_X86_64 ? in_code_x86_64(code) : in_code_aarch64(code);
}

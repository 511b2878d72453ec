/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The way back of a hijacked thread: what the kernel writes for a signal handler to return by. */
#ifdef __x86_64__

#include <cpuid.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/checked.h"
#include "injector/arch/x86_64.h"
#include "injector/arch/scratch.h"
#include "target/ptrace/arch/x86_64.h"

enum {
	RED_ZONE = 128,
	SYSCALL_BYTES = 2,
	XSAVE_SOFTWARE = 464, /* where the kernel keeps notes in the legacy area */
	WORD = 8,
	STORE_WORDS_MAX = 16, /* of the stack that code which stores may take away */
};

/* struct rt_sigframe of the kernel, as far as it is read on the way back. */
struct signal_frame {
	uint64_t trampoline;
	uint64_t flags, link, stack;
	uint32_t stack_flags, pad;
	uint64_t stack_size;
	uint64_t r8, r9, r10, r11, r12, r13, r14, r15, di, si, bp, bx, dx, ax, cx, sp, ip, eflags;
	uint16_t cs, gs, fs, ss;
	uint64_t err, trapno, oldmask, cr2, extended, reserved[8];
	uint64_t mask;
};

/* The kernel's note in the vector registers of a signal frame. */
struct software_bytes {
	uint32_t magic, extended_size;
	uint64_t features;
	uint32_t size, padding[7];
};

enum {
	FLAG_EXTENDED = 1,
	FLAG_SEGMENT = 2,
	FLAG_STRICT_SEGMENT = 4,
	STACK_UNCHANGED = 0x7f, /* flags that make no sense: the alternate stack stays what it is */
};
static const uint32_t magic_begin = 0x46505853, magic_end = 0x46505845;

/*
 * Bytes of the vector registers that this thread may have in a frame: the kernel refuses what is
 * larger than the thread's own. Tile registers need a permission, which shows when they are used;
 * all others every thread has. The processor is asked only if there are tiles: in a virtual machine
 * each answer takes as long as a stop.
 */
static size_t frame_extended_size(const struct prb_thread_state *state, uint64_t *features)
{
	const uint64_t tiles = UINT64_C(3) << 17;
	size_t size = PRB_XSAVE_LEGACY + PRB_XSAVE_HEADER;
	uint64_t used;

	memcpy(features, state->extended + XSAVE_SOFTWARE, sizeof(*features));
	memcpy(&used, state->extended + PRB_XSAVE_LEGACY, sizeof(used));
	if (!(*features & tiles & ~used))
		return state->extended_size;
	*features &= ~tiles | used;
	for (unsigned i = 2; i < 63; i++) {
		unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;

		if (!(*features >> i & 1))
			continue;
		__cpuid_count(0xd, i, eax, ebx, ecx, edx);
		size = PRB_MAX(size, (size_t)eax + ebx);
	}
	return PRB_MIN(size, state->extended_size);
}

static void put(struct prb_return_frame *ret, uint64_t address, const void *data, size_t size)
{
	memcpy(ret->bytes + (address - ret->address), data, size);
}

/* The frame that brings everything back; the trampoline is what a handler would return to. */
static struct signal_frame last_frame(const struct prb_thread_state *state, uint64_t trampoline,
				      uint64_t extended)
{
	struct user_regs_struct r = *prb_x86_64_general(state);

	if (prb_x86_64_restarts(&r)) {
		r.rax = state->resumed ? (unsigned long long)state->resumed : r.orig_rax;
		r.rip -= SYSCALL_BYTES;
	}
	return (struct signal_frame){
		.trampoline = trampoline,
		.flags = FLAG_EXTENDED | FLAG_SEGMENT | FLAG_STRICT_SEGMENT,
		.stack_flags = STACK_UNCHANGED,
		.r8 = r.r8,
		.r9 = r.r9,
		.r10 = r.r10,
		.r11 = r.r11,
		.r12 = r.r12,
		.r13 = r.r13,
		.r14 = r.r14,
		.r15 = r.r15,
		.di = r.rdi,
		.si = r.rsi,
		.bp = r.rbp,
		.bx = r.rbx,
		.dx = r.rdx,
		.ax = r.rax,
		.cx = r.rcx,
		.sp = r.rsp,
		.ip = r.rip,
		.eflags = r.eflags,
		.cs = (uint16_t)r.cs,
		.ss = (uint16_t)r.ss,
		.extended = extended,
		.mask = state->mask,
	};
}

/*
 * A frame that makes a munmap() and leads to the last frame. No signal may arrive in between; the
 * vector registers are unused until the last frame sets them.
 */
static struct signal_frame unmapping_frame(const struct prb_thread_state *state,
					   const struct prb_target_code *code, uint64_t back)
{
	const struct user_regs_struct *r = prb_x86_64_general(state);

	return (struct signal_frame){
		.trampoline = code->trampoline,
		.flags = FLAG_SEGMENT | FLAG_STRICT_SEGMENT,
		.stack_flags = STACK_UNCHANGED,
		.si = PRB_SCRATCH_SIZE,
		.ax = SYS_munmap,
		.sp = back,
		.ip = code->gadget,
		.eflags = r->eflags,
		.cs = (uint16_t)r->cs,
		.ss = (uint16_t)r->ss,
		.mask = UINT64_MAX,
	};
}

/* Where a frame lies that ends at @end: its stack pointer is a multiple of 16 when it is left. */
static uint64_t below(uint64_t end)
{
	return ((end - sizeof(struct signal_frame)) & ~UINT64_C(15)) - WORD;
}

void prb_x86_64_frame(const struct prb_thread_state *state, const struct prb_target_code *code,
		      struct prb_return_frame *ret)
{
	static const struct prb_nap nap = {.nanoseconds = PRB_HIJACK_NAP_NS};
	uint64_t sp = prb_x86_64_general(state)->rsp, features;
	size_t size = frame_extended_size(state, &features);
	uint64_t extended = (sp - RED_ZONE - size - sizeof(magic_end)) & ~UINT64_C(63);
	struct software_bytes note = {.magic = magic_begin,
				      .extended_size = (uint32_t)(size + sizeof(magic_end)),
				      .features = features,
				      .size = (uint32_t)size};

	*ret = (struct prb_return_frame){.trampoline = code->trampoline, .store_code = code->store};
	ret->back = ret->next = below(extended);
	ret->stack = ret->back + WORD;
	ret->nap = ret->back - sizeof(nap);
	ret->unmap = below(ret->nap);
	ret->slot = ret->unmap + offsetof(struct signal_frame, di);
	ret->address = ret->unmap;
	if (code->store.address) {
		ret->store = ret->unmap - (uint64_t)(code->store.words + 1) * WORD;
		ret->address = ret->store;
	}
	ret->size = extended + size + sizeof(magic_end) - ret->address;

	struct signal_frame last = last_frame(state, code->trampoline, extended);
	struct signal_frame unmapping = unmapping_frame(state, code, ret->back);
	if (ret->store)
		put(ret, ret->store, &code->store.address, WORD);
	put(ret, ret->unmap, &unmapping, sizeof(unmapping));
	put(ret, ret->nap, &nap, sizeof(nap));
	put(ret, ret->back, &last, sizeof(last));
	put(ret, extended, state->extended, size);
	put(ret, extended + XSAVE_SOFTWARE, &note, sizeof(note));
	put(ret, extended + size, &magic_end, sizeof(magic_end));
}

void prb_x86_64_set_store(const struct prb_return_frame *frame, struct user_regs_struct *regs)
{
	uint64_t value = frame->slot - (uint64_t)(int64_t)frame->store_code.offset;

	switch (frame->store_code.base) {
	case PRB_X86_64_RBX:
		regs->rbx = value;
		break;
	case PRB_X86_64_RBP:
		regs->rbp = value;
		break;
	}
}

/* The end of a function: it may set rax to 0, takes words from the stack and returns. */
static bool is_end(const uint8_t *at, const uint8_t *end, uint8_t *words)
{
	size_t taken = 0;

	while (end - at >= 4 && *at != 0xc3) {
		if (at[0] == 0x31 && at[1] == 0xc0) { /* xor %eax, %eax */
			at += 2;
		} else if (at[0] >= 0x58 && at[0] <= 0x5f && at[0] != 0x5c) { /* pop */
			taken++;
			at++;
		} else if (at[0] == 0x41 && at[1] >= 0x58 && at[1] <= 0x5f) { /* pop %r8 … */
			taken++;
			at += 2;
		} else if (at[0] == 0x48 && at[1] == 0x83 && at[2] == 0xc4 && at[3] < 0x80 &&
			   at[3] % WORD == 0) { /* add $…, %rsp */
			taken += at[3] / WORD;
			at += 4;
		} else {
			return false;
		}
	}
	*words = (uint8_t)taken;
	return end - at >= 4 && taken <= STORE_WORDS_MAX;
}

/* mov %rax, (%rbx) or OFFSET(%rbx) or OFFSET(%rbp), at the end of a function. */
static bool is_store(const uint8_t *at, const uint8_t *end, struct prb_store_code *ret)
{
	enum { LONGEST = 4 }; /* bytes of it */
	bool plain = at[2] == 0x03;

	if (at[0] != 0x48 || at[1] != 0x89 || (!plain && at[2] != 0x43 && at[2] != 0x45) ||
	    !is_end(at + LONGEST - plain, end, &ret->words))
		return false;
	ret->base = at[2] == 0x45 ? PRB_X86_64_RBP : PRB_X86_64_RBX;
	ret->offset = plain ? 0 : (int8_t)at[LONGEST - 1];
	return true;
}

/* Returns are far rarer than moves: it is looked for before each of them. */
bool prb_x86_64_find_store(const uint8_t *code, size_t length, struct prb_store_code *ret)
{
	enum { RETURN = 0xc3, SHORTEST = 3, FARTHEST = 32 };
	const uint8_t *end = code + length, *at = code;

	while ((at = memchr(at, RETURN, (size_t)(end - at)))) {
		for (ptrdiff_t back = SHORTEST; back <= FARTHEST && back <= at - code; back++) {
			if (is_store(at - back, end, ret)) {
				ret->address = (uint64_t)(at - back - code);
				return true;
			}
		}
		at++;
	}
	return false;
}

#endif

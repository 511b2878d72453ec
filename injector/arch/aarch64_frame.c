/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The way back of a hijacked thread: what the kernel writes for a signal handler to return by. */
#ifdef __aarch64__

#include <string.h>
#include <sys/syscall.h>

#include "base/checked.h"
#include "injector/arch/aarch64.h"
#include "injector/arch/scratch.h"

/* struct rt_sigframe of the kernel. */
struct signal_frame {
	uint8_t info[128];
	uint64_t flags, link, stack;
	uint32_t stack_flags, pad;
	uint64_t stack_size;
	uint64_t mask, unused[16];
	uint64_t fault_address, regs[31], sp, pc, pstate, pad2;
	uint8_t records[4096];
};
_Static_assert(offsetof(struct signal_frame, fault_address) == 304, "as the kernel has it");
_Static_assert(offsetof(struct signal_frame, records) == 592, "as the kernel has it");

struct record {
	uint32_t magic, size;
};
struct simd_record {
	struct record head;
	uint32_t status, control;
	uint8_t registers[512];
};
struct scalable_record {
	struct record head;
	uint16_t length, flags, reserved[2];
};
struct extra_record {
	struct record head;
	uint64_t data;
	uint32_t size, reserved[3];
};

enum {
	WORD = 8,
	STORE_WORDS_MAX = 16, /* of the stack that code which stores may take away */
	MAGIC_SIMD = 0x46508001,
	MAGIC_SCALABLE = 0x53564501,
	MAGIC_EXTRA = 0x45585401,
	END_RECORD = 16,	/* bytes of zero behind the last record */
	STACK_UNCHANGED = 0x7f, /* flags that make no sense: the alternate stack stays what it is */
};

/* Bytes of a frame's record of the long registers; 0 if they are not in use. */
static size_t long_size(const struct prb_aarch64_vectors *v)
{
	size_t length = v->scalable.length;

	if (!(v->scalable.flags & PRB_AARCH64_LONG))
		return 0;
	/* Z0–Z31, then P0–P15 and the first-fault register, which have a bit for each byte */
	return (sizeof(struct scalable_record) + 32 * length + 17 * length / 8 + 15) & ~15ul;
}

/* Long registers that do not fit follow behind a record that says so. */
static uint8_t *add_extra(uint8_t *at, uint64_t address, size_t size)
{
	struct extra_record extra = {
		.head = {MAGIC_EXTRA, sizeof(extra)},
		.data = address + sizeof(extra) + END_RECORD,
		.size = (uint32_t)(size + END_RECORD),
	};

	memcpy(at, &extra, sizeof(extra));
	return at + sizeof(extra) + END_RECORD;
}

static void add_records(const struct prb_aarch64_vectors *v, uint8_t *records, uint64_t address)
{
	const size_t size = long_size(v);
	struct simd_record simd = {{MAGIC_SIMD, sizeof(simd)}, v->simd.status, v->simd.control, {}};
	struct scalable_record scalable = {{MAGIC_SCALABLE, (uint32_t)size}, v->scalable.length};
	uint8_t *at = records + sizeof(simd);

	memcpy(simd.registers, v->simd.registers, sizeof(simd.registers));
	memcpy(records, &simd, sizeof(simd));
	if (!size)
		return;
	if (sizeof(simd) + size + END_RECORD > sizeof(((struct signal_frame *)NULL)->records))
		at = add_extra(at, address + sizeof(simd), size);
	memcpy(at, &scalable, sizeof(scalable));
	memcpy(at + sizeof(scalable), &v->scalable + 1, size - sizeof(scalable));
}

uint64_t prb_aarch64_plain(uint64_t state)
{
	enum {
		BTYPE = 3 << 10, /* of an indirect jump, whose target is still to be met */
		STEP = 1 << 21,
	};

	return state & ~(uint64_t)(BTYPE | STEP);
}

/*
 * A frame that makes a munmap() and comes to the last frame after it. No signal may arrive in
 * between; the vector registers, which the kernel requires in a frame, are unused until then.
 */
struct unmapping_frame {
	uint8_t fixed[offsetof(struct signal_frame, records)];
	struct simd_record simd;
	uint8_t end[END_RECORD];
};
_Static_assert(sizeof(struct unmapping_frame) % 16 == 0, "what follows may be a stack pointer");
_Static_assert(sizeof(struct unmapping_frame) + STORE_WORDS_MAX * WORD + sizeof(struct prb_nap) +
			       offsetof(struct signal_frame, records) + sizeof(struct simd_record) +
			       sizeof(struct extra_record) + 4 * END_RECORD +
			       PRB_THREAD_EXTENDED_MAX - sizeof(struct prb_aarch64_vectors) <=
		       PRB_FRAME_MAX,
	       "room for all of it");

static struct unmapping_frame unmapping_frame(const struct prb_thread_state *state,
					      const struct prb_target_code *code, uint64_t back)
{
	struct signal_frame f = {
		.stack_flags = STACK_UNCHANGED,
		.mask = UINT64_MAX,
		.sp = back,
		.pc = code->gadget,
		.pstate = prb_aarch64_plain(prb_aarch64_general(state)->regs.pstate),
	};
	struct unmapping_frame ret = {.simd.head = {MAGIC_SIMD, sizeof(ret.simd)}};

	f.regs[1] = PRB_SCRATCH_SIZE;
	f.regs[PRB_AARCH64_NUMBER] = SYS_munmap;
	f.regs[PRB_AARCH64_LINK] = code->trampoline;
	memcpy(ret.fixed, &f, sizeof(ret.fixed));
	return ret;
}

static void put(struct prb_return_frame *ret, uint64_t address, const void *data, size_t size)
{
	memcpy(ret->bytes + (address - ret->address), data, size);
}

/*
 * From the stack pointer of the thread downwards: the last frame, a time, the frame that unmaps,
 * and what code that stores takes from the stack, among which is where it returns to.
 */
static void place(uint64_t sp, size_t last_size, const struct prb_target_code *code,
		  struct prb_return_frame *ret)
{
	*ret = (struct prb_return_frame){.trampoline = code->trampoline, .store_code = code->store};
	ret->back = ret->next = ret->stack = (sp - last_size) & ~UINT64_C(15);
	ret->nap = ret->back - sizeof(struct prb_nap);
	ret->unmap = ret->nap - sizeof(struct unmapping_frame);
	ret->slot = ret->unmap + offsetof(struct signal_frame, regs);
	ret->address = ret->unmap;
	if (code->store.address)
		ret->address = ret->store = ret->unmap - (uint64_t)code->store.words * WORD;
	ret->size = ret->back + last_size - ret->address;
	memset(ret->bytes, 0, ret->size);
}

void prb_aarch64_frame(const struct prb_thread_state *state, const struct prb_target_code *code,
		       struct prb_return_frame *ret)
{
	static const struct prb_nap nap = {.nanoseconds = PRB_HIJACK_NAP_NS};
	const struct user_regs_struct *r = &prb_aarch64_general(state)->regs;
	const struct prb_aarch64_vectors *v = prb_aarch64_vectors(state);
	size_t fixed = offsetof(struct signal_frame, records);
	size_t room = sizeof(struct simd_record) + sizeof(struct extra_record) + 2 * END_RECORD +
		      long_size(v);
	struct signal_frame f = {
		.stack_flags = STACK_UNCHANGED,
		.mask = state->mask,
		.sp = r->sp,
		.pc = r->pc,
		.pstate = r->pstate,
	};

	memcpy(f.regs, r->regs, sizeof(f.regs));
	if (state->resumed)
		f.regs[PRB_AARCH64_NUMBER] = (uint64_t)state->resumed;
	place(r->sp, PRB_MAX(sizeof(f), fixed + room), code, ret);

	struct unmapping_frame unmapping = unmapping_frame(state, code, ret->back);
	if (ret->store)
		put(ret, ret->store + WORD, &code->trampoline, WORD);
	put(ret, ret->unmap, &unmapping, sizeof(unmapping));
	put(ret, ret->nap, &nap, sizeof(nap));
	put(ret, ret->back, &f, fixed);
	add_records(v, ret->bytes + (ret->back - ret->address) + fixed, ret->back + fixed);
}

/* The end of a function: it may set its result, takes registers from the stack and returns. */
static bool is_end(const uint32_t *at, const uint32_t *end, uint8_t *words)
{
	const uint32_t code_return = 0xd65f03c0;

	for (; end - at >= 2; at++) {
		if ((*at & 0xffe07fff) == 0xa8c07bfd) { /* ldp x29, x30, [sp], #… */
			*words = *at >> 15 & 0x3f;
			return at[1] == code_return && *words && *words % 2 == 0 &&
			       *words <= STORE_WORDS_MAX;
		}
		if ((*at & 0xffc003e0) != 0xa94003e0 && /* ldp x…, x…, [sp, #…] */
		    (*at & 0xffc003e0) != 0xf94003e0 && /* ldr x…, [sp, #…] */
		    (*at & 0xffe0001f) != 0x52800000)	/* mov w0, #… */
			break;
	}
	return false;
}

/*
 * str x0, [x19 to x28, #…] at the end of a function. (A function that authenticates its return
 * address is of no use: only the kernel has the key.)
 */
bool prb_aarch64_find_store(const uint8_t *code, size_t length, struct prb_store_code *ret)
{
	enum { LONGEST = 8 };
	uint32_t words[LONGEST];

	for (size_t at = 0; at + sizeof(*words) <= length; at += sizeof(*words)) {
		size_t size = PRB_MIN(sizeof(words), length - at);

		memcpy(words, code + at, size);
		unsigned base = *words >> 5 & 31, offset = (*words >> 10 & 0xfff) * WORD;
		if ((*words & 0xffc0001f) != 0xf9000000 || base < 19 || base > 28 ||
		    offset > INT8_MAX ||
		    !is_end(words + 1, words + size / sizeof(*words), &ret->words))
			continue;
		ret->address = at;
		ret->base = (uint8_t)base;
		ret->offset = (int8_t)offset;
		return true;
	}
	return false;
}

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The way back of a borrowed thread: what the kernel writes for a signal handler to return by. */
#ifdef __aarch64__

#include <string.h>

#include "dwarf/base/checked.h"
#include "injector/arch/aarch64_inject.h"

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

void prb_aarch64_frame(const struct prb_thread_state *state, const struct prb_target_code *code,
		       struct prb_return_frame *ret)
{
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

	*ret = (struct prb_return_frame){.trampoline = code->trampoline};
	ret->size = PRB_MAX(sizeof(f), fixed + room);
	ret->address = (r->sp - ret->size) & ~UINT64_C(15);
	ret->stack = ret->back = ret->next = ret->address;
	memcpy(f.regs, r->regs, sizeof(f.regs));
	if (state->resumed)
		f.regs[PRB_AARCH64_NUMBER] = (uint64_t)state->resumed;
	memset(ret->bytes, 0, ret->size);
	memcpy(ret->bytes, &f, fixed);
	add_records(v, ret->bytes + fixed, ret->address + fixed);
}

#endif

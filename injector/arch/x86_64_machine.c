/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <elf.h>

#include "base/cleanup.h"
#include "injector/arch/machine.h"

enum {
	FUTEX = 202, /* number of the call */
	CALL = 0xe8, /* call with a distance of 4 bytes */
	CALL_INDIRECT = 0xff,
};

/* The indirect forms have 2, 3, 6 or 7 bytes; the second one says that it is a call. */
static bool ends_in_call(const uint8_t *before, size_t length)
{
	static const uint8_t lengths[] = {2, 3, 6, 7};
	const uint8_t *end = before + length;

	if (length < 8)
		return false;
	if (end[-5] == CALL)
		return true;
	for (size_t i = 0; i < sizeof(lengths); i++)
		if (end[-lengths[i]] == CALL_INDIRECT && (end[1 - lengths[i]] >> 3 & 7) == 2)
			return true;
	return false;
}

/* The thread pointer of both C libraries points to itself; raw threads have none of their own. */
static struct prb_error *thread(uint64_t pointer, struct prb_mem *mem, bool musl, uint64_t *ret)
{
	uint64_t self = 0;
	struct prb_error *err = prb_mem_read_u64(mem, pointer, &self);

	(void)musl;
	*ret = !err && self == pointer ? pointer : 0;
	return prb_error_catch(&err, PRB_ERROR_FAULT) ? NULL : err;
}

static const uint8_t enter_code[] = {0x0f, 0x05};
static const uint8_t sigreturn_code[] = {0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05};
static const uint8_t trap[] = {0xcc};

const struct prb_machine prb_machine_x86_64 = {
	.machine = EM_X86_64,
	.enter_code = enter_code,
	.enter_length = sizeof(enter_code),
	.sigreturn_code = sigreturn_code,
	.sigreturn_length = sizeof(sigreturn_code),
	.trap = trap,
	.trap_length = sizeof(trap),
	.sys_futex = FUTEX,
	.ends_in_call = ends_in_call,
	.thread = thread,
	.musl_neighbours = 16,
};

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <elf.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "injector/arch/machine.h"

enum {
	FUTEX = 98, /* number of the call */
	LINK = 30,
	DTV_MOST = 1 << 20, /* libraries with variables of threads */
	MUSL_LEAST = 128,   /* bytes of its note of a thread, by its version */
	MUSL_MOST = 512,
};

/* bl or blr */
static bool ends_in_call(const uint8_t *before, size_t length)
{
	uint32_t code;

	if (length < sizeof(code))
		return false;
	memcpy(&code, before + length - sizeof(code), sizeof(code));
	return code >> 26 == 0x25 || (code & 0xfffffc1f) == 0xd63f0000;
}

/* musl's note of a thread ends where the thread pointer points, and begins with its own address. */
static struct prb_error *find_musl_thread(struct prb_mem *mem, uint64_t pointer, uint64_t *ret)
{
	uint64_t words[MUSL_MOST / 8];
	struct prb_error *err = prb_mem_read(mem, pointer - sizeof(words), words, sizeof(words));

	for (size_t i = 0; !err && i < PRB_ARRAY_SIZE(words) - MUSL_LEAST / 8; i++)
		if (words[i] == pointer - sizeof(words) + i * 8)
			*ret = words[i];
	return prb_error_catch(&err, PRB_ERROR_FAULT) ? NULL : err;
}

/*
 * The thread pointer of glibc points to the address of a table with a length before it, which has
 * an entry for each library with variables of threads.
 */
static struct prb_error *thread(uint64_t pointer, struct prb_mem *mem, bool musl, uint64_t *ret)
{
	uint64_t table, length = 0;

	*ret = 0;
	if (musl)
		return find_musl_thread(mem, pointer, ret);
	struct prb_error *err = prb_mem_read_u64(mem, pointer, &table);
	if (!err)
		err = prb_mem_read_u64(mem, table - 16, &length);
	if (length && length < DTV_MOST)
		*ret = pointer;
	return prb_error_catch(&err, PRB_ERROR_FAULT) ? NULL : err;
}

static const uint8_t enter_code[] = {0x01, 0x00, 0x00, 0xd4}; /* svc #0 */
static const uint8_t sigreturn_code[] = {0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4};
static const uint8_t trap[] = {0x00, 0x00, 0x20, 0xd4}; /* brk #0 */

const struct prb_machine prb_machine_aarch64 = {
	.machine = EM_AARCH64,
	.enter_code = enter_code,
	.enter_length = sizeof(enter_code),
	.sigreturn_code = sigreturn_code,
	.sigreturn_length = sizeof(sigreturn_code),
	.trap = trap,
	.trap_length = sizeof(trap),
	.sys_futex = FUTEX,
	.sets_back = true,
	.link = LINK,
	.ends_in_call = ends_in_call,
	.thread = thread,
	.musl_neighbours = 8,
};

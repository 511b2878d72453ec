/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Names of system calls; tests/tools/gen-syscalls generates the tables. */
#include <elf.h>

#include "base/checked.h"
#include "target/task.h"

static const char *const x86_64_names[] = {
#include "dump/waits/syscall_names_x86_64.inc"
};

static const char *const aarch64_names[] = {
#include "dump/waits/syscall_names_aarch64.inc"
};

const char *prb_syscall_name(uint16_t machine, long number)
{
	if (number < 0)
		return NULL;
	if (machine == EM_X86_64 && (size_t)number < PRB_ARRAY_SIZE(x86_64_names))
		return x86_64_names[number];
	if (machine == EM_AARCH64 && (size_t)number < PRB_ARRAY_SIZE(aarch64_names))
		return aarch64_names[number];
	return NULL;
}

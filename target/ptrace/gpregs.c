/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "target/ptrace/gpregs.h"

#include <elf.h>
#include <errno.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

#include "target/ptrace/fault_step.h"

struct prb_error *prb_gpregs_read(pid_t tid, struct user_regs_struct *ret)
{
	struct iovec io = {ret, sizeof(*ret)};

	if (ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &io))
		return prb_error_os(errno, "cannot read the registers of thread %d", tid);
	return NULL;
}

struct prb_error *prb_gpregs_write(pid_t tid, const struct user_regs_struct *regs)
{
	struct iovec io = {(void *)regs, sizeof(*regs)};

	prb_fault_step();
	if (ptrace(PTRACE_SETREGSET, tid, NT_PRSTATUS, &io))
		return prb_error_os(errno, "cannot set the registers of thread %d", tid);
	return NULL;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifdef __aarch64__

#include <elf.h>
#include <errno.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

#include "injector/arch.h"

struct prb_error *prb_arch_registers(pid_t tid, struct prb_regs *ret)
{
	struct user_regs_struct r;
	struct iovec io = {&r, sizeof(r)};

	if (ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &io))
		return prb_error_os(errno, "cannot read the registers of thread %d", tid);
	*ret = (struct prb_regs){.machine = EM_AARCH64, .pc = r.pc};
	for (unsigned i = 0; i < 31; i++)
		prb_regs_set(ret, i, r.regs[i]);
	prb_regs_set(ret, PRB_REG_AARCH64_SP, r.sp);
	return NULL;
}

/*
 * The first argument's register also carries the result, so a call that returned EINTR cannot be
 * told to start again: its argument is gone.
 */
bool prb_arch_call_interrupted(pid_t tid)
{
	(void)tid;
	return false;
}

void prb_arch_restart_call(pid_t tid)
{
	(void)tid;
}

#endif

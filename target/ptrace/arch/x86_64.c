/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifdef __x86_64__

#include <elf.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

#include "target/ptrace/arch.h"
#include "target/ptrace/arch/x86_64.h"

static int get(pid_t tid, struct user_regs_struct *regs)
{
	struct iovec io = {regs, sizeof(*regs)};

	return ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &io);
}

struct prb_error *prb_arch_registers(pid_t tid, struct prb_regs *ret)
{
	struct user_regs_struct r;

	if (get(tid, &r))
		return prb_error_os(errno, "cannot read the registers of thread %d", tid);

	/* DWARF numbers of the psABI: rax rdx rcx rbx rsi rdi rbp rsp r8–r15. */
	const uint64_t values[] = {r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp,
				   r.r8,  r.r9,	 r.r10, r.r11, r.r12, r.r13, r.r14, r.r15};

	*ret = (struct prb_regs){.machine = EM_X86_64, .pc = r.rip};
	for (unsigned i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		prb_regs_set(ret, i, values[i]);
	return NULL;
}

bool prb_arch_in_call(pid_t tid)
{
	(void)tid;
	return false;
}

/* Results of system calls that the kernel turns into a restart (include/linux/errno.h). */
enum {
	ERESTARTSYS = 512,
	ERESTARTNOINTR = 513,
	ERESTARTNOHAND = 514,
	ERESTART_RESTARTBLOCK = 516,
};

/* orig_rax is negative outside of system calls. */
bool prb_x86_64_restarts(const struct user_regs_struct *r)
{
	if ((long)r->orig_rax < 0)
		return false;
	switch (-(long)r->rax) {
	case ERESTARTSYS:
	case ERESTARTNOINTR:
	case ERESTARTNOHAND:
	case ERESTART_RESTARTBLOCK:
		return true;
	}
	return false;
}

static bool is_interrupted(const struct user_regs_struct *r)
{
	return (long)r->orig_rax >= 0 && (long)r->rax == -EINTR;
}

bool prb_arch_slept(pid_t tid, bool in_call)
{
	struct user_regs_struct r;

	(void)in_call;
	return !get(tid, &r) && (prb_x86_64_restarts(&r) || is_interrupted(&r));
}

bool prb_arch_call(pid_t tid, bool in_call, struct prb_task *ret)
{
	struct user_regs_struct r;

	(void)in_call;
	if (get(tid, &r) || !(prb_x86_64_restarts(&r) || is_interrupted(&r)))
		return false;

	const uint64_t arguments[] = {r.rdi, r.rsi, r.rdx, r.r10, r.r8, r.r9};

	ret->in_syscall = true;
	ret->syscall = (long)r.orig_rax;
	memcpy(ret->args, arguments, sizeof(ret->args));
	ret->sp = r.rsp;
	ret->pc = r.rip;
	return true;
}

bool prb_arch_call_interrupted(pid_t tid, bool in_call)
{
	struct user_regs_struct r;

	(void)in_call;
	return !get(tid, &r) && is_interrupted(&r);
}

bool prb_arch_call_resumes(pid_t tid)
{
	struct user_regs_struct r;

	return !get(tid, &r) && (long)r.orig_rax >= 0 && (long)r.rax == -ERESTART_RESTARTBLOCK;
}

bool prb_arch_restart_call(pid_t tid)
{
	enum { SYSCALL_BYTES = 2 };
	struct user_regs_struct r;
	struct iovec io = {&r, sizeof(r)};

	if (get(tid, &r))
		return false;
	r.rax = r.orig_rax;
	r.rip -= SYSCALL_BYTES;
	r.orig_rax = (unsigned long long)-1;
	return !ptrace(PTRACE_SETREGSET, tid, NT_PRSTATUS, &io);
}

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifdef __aarch64__

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

#include "base/cleanup.h"
#include "target/ptrace/arch.h"
#include "target/ptrace/fault_step.h"

enum {
	NUMBER = 8, /* register that has the number of a system call */
	INSTRUCTION = 4,
	SYSTEM_CALL = 0x404, /* regset: what the kernel takes for that number; -1: none */
};
static const uint32_t SVC = 0xd4000001; /* svc #0 */

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

static int get(pid_t tid, struct user_regs_struct *regs)
{
	struct iovec io = {regs, sizeof(*regs)};

	return ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &io);
}

/* "NUMBER ARGUMENT…" in a call, "-1 …" asleep elsewhere, "running". */
static bool read_call(pid_t tid, long *number, uint64_t *argument)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/syscall", tid);
	prb_auto_fclose FILE *file = fopen(path, "re");
	return file && fscanf(file, "%ld %" SCNx64, number, argument) == 2 && *number >= 0;
}

bool prb_arch_in_call(pid_t tid)
{
	uint64_t argument;
	long number;

	return read_call(tid, &number, &argument);
}

/*
 * Has a handler just returned there? Then what the kernel puts above the registers of a signal
 * frame, for unwinders, lies below the stack pointer.
 */
static bool handler_returned(pid_t tid, const struct user_regs_struct *r)
{
	enum { FRAME = 29, LINK = 30 };

	for (unsigned i = 0; i < 2; i++) {
		errno = 0;
		long word = ptrace(PTRACE_PEEKDATA, tid, r->sp - 16 + i * sizeof(word), NULL);
		if (errno || (unsigned long long)word != r->regs[i ? LINK : FRAME])
			return false;
	}
	return true;
}

static bool is_call(pid_t tid, uint64_t address)
{
	return (uint32_t)ptrace(PTRACE_PEEKTEXT, tid, address, NULL) == SVC;
}

/* A call that returns what it would if a signal had come has lost its first argument. */
static bool is_interrupted(pid_t tid, const struct user_regs_struct *r)
{
	return (long)r->regs[0] == -EINTR && is_call(tid, r->pc - INSTRUCTION);
}

bool prb_arch_slept(pid_t tid, bool in_call)
{
	struct user_regs_struct r;

	return in_call && !get(tid, &r) && (is_call(tid, r.pc) || is_interrupted(tid, &r));
}

/* A call that restarts has its arguments back, and the pc is at its instruction. */
bool prb_arch_call(pid_t tid, bool in_call, struct prb_task *ret)
{
	struct user_regs_struct r;

	if (!in_call || get(tid, &r) || !is_call(tid, r.pc))
		return false;
	ret->in_syscall = true;
	ret->syscall = (long)r.regs[NUMBER];
	memcpy(ret->args, r.regs, sizeof(ret->args));
	ret->sp = r.sp;
	ret->pc = r.pc + INSTRUCTION;
	return true;
}

/*
 * An interrupted call shows in its result only. Where the thread slept in it after we began to
 * trace it, no handler has run since; else one may have, whose interruption is not ours.
 */
bool prb_arch_call_interrupted(pid_t tid, bool in_call)
{
	struct user_regs_struct r;

	return !get(tid, &r) && is_interrupted(tid, &r) && (in_call || !handler_returned(tid, &r));
}

/* The kernel has set it back to its call already, without a trace. */
bool prb_arch_call_resumes(pid_t tid)
{
	(void)tid;
	return false;
}

static void set_number(pid_t tid, int number)
{
	struct iovec io = {&number, sizeof(number)};

	prb_fault_step();
	ptrace(PTRACE_SETREGSET, tid, SYSTEM_CALL, &io);
}

/*
 * The result has taken the place of the first argument, of which only the kernel has a copy. It
 * tells it in /proc, of a thread that is in a system call, which by its number this one is.
 */
bool prb_arch_restart_call(pid_t tid)
{
	struct user_regs_struct r;
	struct iovec io = {&r, sizeof(r)};
	uint64_t argument;
	long number;

	if (get(tid, &r))
		return false;
	set_number(tid, (int)r.regs[NUMBER]);
	bool known = read_call(tid, &number, &argument);
	set_number(tid, -1);
	if (!known || number != (long)r.regs[NUMBER])
		return false;
	r.regs[0] = argument;
	r.pc -= INSTRUCTION;
	prb_fault_step();
	return !ptrace(PTRACE_SETREGSET, tid, NT_PRSTATUS, &io);
}

#endif

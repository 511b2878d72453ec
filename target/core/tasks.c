/* SPDX-License-Identifier: GPL-3.0-or-later */
/* /proc/PID/task of the threads of a core, reconstructed. */
#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "target/core/file.h"

/* The system call a thread was in. */
struct call {
	int64_t number;	 /* -1: in none; -2: unknown */
	bool first_lost; /* the first argument is not known any more */
	uint64_t pc;	 /* behind the instruction, as in /proc */
};

enum { AARCH64_X8 = 8, AARCH64_SVC_SIZE = 4 };
static const uint32_t aarch64_svc = 0xd4000001;

struct prb_error *core_not_told(const char *name)
{
	return prb_error_create(PRB_ERROR_NOT_FOUND, "the core file does not contain '%s'", name);
}

static bool is_svc(struct core *core, uint64_t address)
{
	uint32_t instruction = 0;
	prb_auto_error struct prb_error *err =
		prb_mem_read_u32(core->target.mem, address, &instruction);

	return !err && instruction == aarch64_svc;
}

/*
 * Before the kernel of aarch64 dumps, it winds a call that is to be restarted back to its svc
 * instruction, with its arguments, and forgets that there was one. A call that is not restarted
 * has returned EINTR in place of its first argument.
 */
static void find_aarch64_call(struct core *core, const struct core_thread *thread,
			      struct call *call)
{
	int64_t result = (int64_t)thread->args[0];

	if (is_svc(core, thread->regs.pc)) {
		call->number = (int64_t)thread->regs.value[AARCH64_X8];
		call->pc = thread->regs.pc + AARCH64_SVC_SIZE;
	} else if (call->number >= 0 ||
		   (result == -EINTR && is_svc(core, thread->regs.pc - AARCH64_SVC_SIZE))) {
		call->number = (int64_t)thread->regs.value[AARCH64_X8];
		call->first_lost = true;
	}
}

static struct call find_call(struct core *core, const struct core_thread *thread)
{
	struct call call = {.number = thread->syscall, .pc = thread->regs.pc};

	/*
	 * The thread that was hit by the signal ran, even if it was in a call that sent the signal.
	 */
	if (thread->tid == core->info.signal_tid)
		call.number = -1;
	else if (core->target.machine == EM_AARCH64)
		find_aarch64_call(core, thread, &call);
	return call;
}

static char thread_state(struct core *core, const struct core_thread *thread)
{
	struct call call = find_call(core, thread);

	if (call.number >= 0)
		return 'S';
	return call.number == -1 ? 'R' : '?';
}

struct prb_error *core_task_stat(struct core *core, pid_t tid, struct prb_str *ret)
{
	const struct core_thread *thread = core_thread(core, tid);

	if (!thread)
		return prb_error_create(PRB_ERROR_NO_PROCESS, "the core file has no thread %d",
					tid);
	/* The core has one name only, and threads may have others. */
	const char *name = thread->tid == core->target.pid ? core->name : "";
	/* gdb leaves these out of the threads' notes. */
	bool own = thread->ppid || thread->pgrp || thread->sid;

	/* 24 fields of 52; the kernel's other numbers are not in a core. */
	prb_str_printf(
		ret,
		"%d (%s) %c %d %d %d 0 -1 0 0 0 0 0 %" PRIu64 " %" PRIu64 " 0 0 20 0 %zu 0 0 0 0",
		thread->tid, name, thread_state(core, thread), own ? thread->ppid : core->ppid,
		own ? thread->pgrp : core->pgrp, own ? thread->sid : core->sid, thread->utime,
		thread->stime, core->threads.count);
	for (unsigned field = 25; field <= 52; field++)
		prb_str_puts(ret, " 0");
	prb_str_putc(ret, '\n');
	return NULL;
}

/* Number, arguments, sp, pc; or "running". */
static struct prb_error *put_syscall(struct core *core, const struct core_thread *thread,
				     const char *name, struct prb_str *ret)
{
	struct call call = find_call(core, thread);
	uint64_t sp = 0;

	if (call.number < -1 || (call.number >= 0 && call.first_lost))
		return core_not_told(name);
	if (call.number == -1) {
		prb_str_puts(ret, "running\n");
		return NULL;
	}
	prb_str_printf(ret, "%" PRId64, call.number);
	for (unsigned i = 0; i < PRB_ARRAY_SIZE(thread->args); i++)
		prb_str_printf(ret, " 0x%" PRIx64, thread->args[i]);
	prb_regs_get(&thread->regs, prb_regs_sp(core->target.machine), &sp);
	prb_str_printf(ret, " 0x%" PRIx64 " 0x%" PRIx64 "\n", sp, call.pc);
	return NULL;
}

struct prb_error *core_task_fact(struct core *core, const char *name, struct prb_str *ret)
{
	char *fact;
	long tid = strtol(name + strlen("task/"), &fact, 10);

	if (*fact++ != '/')
		return core_not_told(name);
	const struct core_thread *thread =
		tid > 0 && tid <= INT_MAX ? core_thread(core, (pid_t)tid) : NULL;
	if (!thread)
		return prb_error_create(PRB_ERROR_NO_PROCESS, "the core file has no thread %ld",
					tid);
	if (!strcmp(fact, "stat"))
		return core_task_stat(core, thread->tid, ret);
	if (!strcmp(fact, "syscall"))
		return put_syscall(core, thread, name, ret);
	if (!strcmp(fact, "comm") && thread->tid == core->target.pid && core->have_info) {
		prb_str_printf(ret, "%s\n", core->name);
		return NULL;
	}
	return core_not_told(name);
}

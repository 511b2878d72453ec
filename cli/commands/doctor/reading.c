/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tries which accesses to a process of our own the kernel allows. */
#include <errno.h>
#include <fcntl.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/commands/doctor/doctor.h"
#include "cli/commands/doctor/trial.h"
#include "base/cleanup.h"

/* The patient was forked from us: it has the same value at the same address. */
static const volatile uint64_t mark = 0x70726f62696e6721;

static int try_readv(pid_t pid, const char *name)
{
	uint64_t value = 0;
	struct iovec local = {&value, sizeof(value)}, remote = {(void *)&mark, sizeof(mark)};

	(void)name;
	if (process_vm_readv(pid, &local, 1, &remote, 1, 0) < 0)
		return errno;
	return value == mark ? 0 : EIO;
}

static int try_mem(pid_t pid, const char *name)
{
	uint64_t value = 0;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	prb_auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || pread(fd, &value, sizeof(value), (off_t)(uintptr_t)&mark) < 0)
		return errno;
	return value == mark ? 0 : EIO;
}

/* Stops the patient and lets it go on. If we are killed, the kernel lets it go. */
static int try_ptrace(pid_t pid, const char *name)
{
	int status;

	(void)name;
	if (ptrace(PTRACE_SEIZE, pid, 0, 0) || ptrace(PTRACE_INTERRUPT, pid, 0, 0))
		return errno;
	while (waitpid(pid, &status, __WALL) < 0)
		if (errno != EINTR)
			return errno;
	return WIFSTOPPED(status) && !ptrace(PTRACE_DETACH, pid, 0, 0) ? 0 : EIO;
}

static int try_pidfd(pid_t pid, const char *name)
{
	prb_auto_close int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	(void)name;
	return fd < 0 ? errno : 0;
}

/* The patient has our stderr, or nothing there. */
static int try_getfd(pid_t pid, const char *name)
{
	prb_auto_close int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	prb_auto_close int fd =
		pidfd < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, pidfd, STDERR_FILENO, 0);

	(void)name;
	return fd < 0 && errno != EBADF ? errno : 0;
}

static int try_event(pid_t pid, struct perf_event_attr *attr)
{
	attr->size = sizeof(*attr);
	attr->disabled = attr->exclude_kernel = attr->exclude_hv = 1;
	prb_auto_close int fd =
		(int)syscall(SYS_perf_event_open, attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? errno : 0;
}

static int try_clock(pid_t pid, const char *name)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .config = PERF_COUNT_SW_TASK_CLOCK};

	(void)name;
	return try_event(pid, &attr);
}

static int try_breakpoint(pid_t pid, const char *name)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_BREAKPOINT,
				       .bp_type = HW_BREAKPOINT_X,
				       .bp_addr = (uintptr_t)&try_breakpoint,
				       .bp_len = sizeof(long)};

	(void)name;
	return try_event(pid, &attr);
}

/* Names the rule that is most likely, in the order in which the kernel asks. */
static void advise_reading(struct prb_doctor *d)
{
	int scope = prb_process_ptrace_scope();

	if (scope == 3)
		prb_remarks_advise(&d->report, "remove kernel.yama.ptrace_scope from /etc/sysctl.d "
					       "and reboot");
	else if (scope > 0 && !prb_process_in_container())
		prb_remarks_advise(&d->report,
				   "sudo probing ..., or for all users: echo 0 | sudo tee "
				   "/proc/sys/kernel/yama/ptrace_scope");
	else if (prb_process_in_container())
		prb_remarks_advise(&d->report,
				   "start the container with --cap-add SYS_PTRACE (Kubernetes: "
				   "securityContext.capabilities.add: [SYS_PTRACE])");
	else
		prb_remarks_advise(&d->report, "sudo probing ...");
}

int prb_doctor_try(struct prb_doctor *d, int (*attempt)(pid_t pid, const char *name),
		   const char *name)
{
	int result = prb_trial_run(d->trial, attempt, name);

	d->killed |= result == PRB_TRIAL_KILLED;
	return result;
}

static void check_memory(struct prb_doctor *d, const struct prb_check *check)
{
	int call, file;

	if (!d->trial) {
		prb_remarks_add(&d->report, check->name, PRB_VERDICT_UNKNOWN,
				"no process could be started to try it on");
		return;
	}
	call = prb_doctor_try(d, try_readv, NULL);
	file = prb_doctor_try(d, try_mem, "mem");
	/* The memory of others is read in the first way, or not at all if that is deadly. */
	d->readable = !call || (!file && call != PRB_TRIAL_KILLED);
	if (!call) {
		prb_remarks_add(&d->report, check->name, PRB_VERDICT_OK, "%s", check->with);
		return;
	}
	if (d->readable) {
		prb_remarks_add(&d->report, check->name, PRB_VERDICT_OK,
				"%s, through /proc/PID/mem", check->with);
		return;
	}
	prb_remarks_add(&d->report, check->name, PRB_VERDICT_NO, "%s: %s", check->without,
			prb_trial_text(call));
	advise_reading(d);
}

static void check_attempt(struct prb_doctor *d, const struct prb_check *check)
{
	int result;

	if (!d->trial)
		return;
	result = prb_doctor_try(d, check->attempt, check->name);
	if (!result) {
		prb_remarks_add(&d->report, check->name, PRB_VERDICT_OK, "%s", check->with);
		return;
	}
	prb_remarks_add(&d->report, check->name, PRB_VERDICT_LIMITED, "%s: %s", check->without,
			prb_trial_text(result));
	if (check->todo)
		prb_remarks_advise(&d->report, "%s", check->todo);
}

#define FILTER_TODO                                                                     \
	"if a container's filter of system calls forbids it: start the container with " \
	"--security-opt seccomp=unconfined, or --cap-add SYS_PTRACE"

static const struct prb_check checks[] = {
	{"own processes", check_memory, .with = "their memory can be read",
	 .without = "their memory may not be read"},
	{"process_vm_readv", check_attempt, try_readv, .with = "reads many places in one call",
	 .without = "memory is read through /proc/PID/mem, a call for each place",
	 .todo = FILTER_TODO},
	{"mem", check_attempt, try_mem, .with = "/proc/PID/mem can be read",
	 .without = "/proc/PID/mem is no way to read memory"},
	{"ptrace", check_attempt, try_ptrace,
	 .with = "running threads can be stopped; the agent can be loaded",
	 .without = "running threads are read without a stop ('unstable'); --freeze, inject, eval, "
		    "repl and debug --pause --hard are refused",
	 .todo = FILTER_TODO},
	{"pidfd_open", check_attempt, try_pidfd, .with = "a process can be held by a descriptor",
	 .without = "sockets are looked up in tables of the kernel, which is slower",
	 .todo = "a kernel from 5.3 on has it"},
	{"pidfd_getfd", check_attempt, try_getfd, .with = "sockets can be asked for their peers",
	 .without = "sockets are looked up in tables of the kernel, which is slower",
	 .todo = "a kernel from 5.6 on has it"},
	{"perf breakpoints", check_attempt, try_breakpoint,
	 .with = "threads in malloc() can be led out of it before a library is loaded",
	 .without = "a thread in malloc() is looked at again instead of led out, which may take "
		    "longer",
	 .todo = "sudo sysctl kernel.perf_event_paranoid=2"},
	{"perf clocks", check_attempt, try_clock,
	 .with = "software events of processes can be opened",
	 .without = "samplers cannot use software events of processes",
	 .todo = "sudo sysctl kernel.perf_event_paranoid=2"},
	{},
};

const struct prb_section prb_section_reading = {"Reading, tried on a process started for that",
						checks};

/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Runs a command that may not use some system calls, as containers do: each gives EPERM, or kills
 * the caller.
 *
 *   env_filter process_vm_readv,ptrace,... COMMAND...
 *   env_filter kill:process_vm_readv,... COMMAND...
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
	const char *name;
	unsigned number;
} calls[] = {
	{"process_vm_readv", SYS_process_vm_readv},
	{"ptrace", SYS_ptrace},
	{"perf_event_open", SYS_perf_event_open},
	{"kcmp", SYS_kcmp},
};

static void forbid(unsigned number, unsigned answer)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, answer),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		_exit(99);
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 99;
	unsigned answer =
		strncmp(argv[1], "kill:", 5) ? SECCOMP_RET_ERRNO | EPERM : SECCOMP_RET_KILL_PROCESS;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (strstr(argv[1], calls[i].name))
			forbid(calls[i].number, answer);
	execv(argv[2], argv + 2);
	return 99;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Targets that may not do everything: fault_limits SHARED kernel|kill|errno|full|descriptors|KIB
 *
 * The first three never have what can be written and executed, now or later: the kernel sees to it,
 * or a filter like that of systemd's MemoryDenyWriteExecute=, with what it does to those who try.
 * "full" has as many mappings as there may be, "descriptors" as many open files, and with a number
 * it may have that much more memory.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "fault.h"

#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65
#define PR_MDWE_REFUSE_EXEC_GAIN 1
#endif

#define ARGUMENT(n) offsetof(struct seccomp_data, args[n])

/* mprotect() with PROT_EXEC, and mmap() with PROT_WRITE | PROT_EXEC. */
static int filter(unsigned action)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 2),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ARGUMENT(2)),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 4, 5),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 4),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ARGUMENT(2)),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, PROT_WRITE | PROT_EXEC),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PROT_WRITE | PROT_EXEC, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, action),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* One more can be mapped, but nothing of it be made different. */
static int fill(void)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *last = NULL, *more = NULL;

	for (int n = 0; more != MAP_FAILED; n++) {
		last = more;
		more = mmap(NULL, page, n % 2 ? PROT_NONE : PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
	}
	return errno != ENOMEM || munmap(last, page);
}

static int open_all(void)
{
	const struct rlimit few = {64, 64};

	if (setrlimit(RLIMIT_NOFILE, &few))
		return 1;
	while (dup(0) >= 0)
		;
	return errno != EMFILE;
}

/* Nothing more is mapped than so many KiB. */
static int limit(long more)
{
	FILE *file = fopen("/proc/self/statm", "r");
	unsigned long pages;

	if (!file || fscanf(file, "%lu", &pages) != 1 || fclose(file))
		return 1;
	unsigned long most =
		pages * (unsigned long)sysconf(_SC_PAGESIZE) + (unsigned long)more * 1024;

	return setrlimit(RLIMIT_AS, &(struct rlimit){most, most});
}

static int restrict_to(const char *kind)
{
	if (!strcmp(kind, "kernel"))
		return prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0);
	if (!strcmp(kind, "full"))
		return fill();
	if (!strcmp(kind, "descriptors"))
		return open_all();
	if (*kind >= '0' && *kind <= '9')
		return limit(atol(kind));
	return filter(strcmp(kind, "kill") ? SECCOMP_RET_ERRNO | EPERM : SECCOMP_RET_KILL_PROCESS);
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	fault_open(argv[1]);
	setbuf(stdout, NULL); /* which would need memory */
	if (restrict_to(argv[2])) {
		perror(argv[2]);
		return 1;
	}
	fault_ready();
	fault_work(5000000);
	return fault_end();
}

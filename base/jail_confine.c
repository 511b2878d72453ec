/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/jail_private.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"

enum {
	NOBODY = 65534, /* the user and group that own nothing, by custom */
	CLOSE_RANGE = 436,
	FACCESSAT2 = 439,
	OPENAT2 = 437,
	FILTER_MAX = 300, /* instructions */
};

static const uint64_t MEMORY = 3ULL << 30; /* bytes on top of what the process has */

#ifdef __x86_64__
static const uint32_t audit_arch = AUDIT_ARCH_X86_64;
#else
static const uint32_t audit_arch = AUDIT_ARCH_AARCH64;
#endif

static struct prb_error *failed(const char *what)
{
	return prb_error_os(errno, "cannot give up rights: %s", what);
}

/** Closes all descriptors from @p first to before @p end. */
static void close_between(unsigned first, unsigned end)
{
	if (first < end)
		syscall(CLOSE_RANGE, first, end - 1, 0);
}

static void close_others(int socket, int file)
{
	unsigned low = (unsigned)PRB_MIN(socket, file < 0 ? socket : file);
	unsigned high = (unsigned)PRB_MAX(socket, file);

	close_between(0, low);
	close_between(low + 1, high);
	close_between(high + 1, UINT32_MAX);
}

/** Never raises a limit that is lower already. */
static bool limit(int resource, uint64_t soft, uint64_t hard)
{
	struct rlimit now, wanted;

	if (getrlimit((__rlimit_resource_t)resource, &now))
		return false;
	wanted.rlim_cur = PRB_MIN((uint64_t)now.rlim_max, soft);
	wanted.rlim_max = PRB_MIN((uint64_t)now.rlim_max, hard);
	return !setrlimit((__rlimit_resource_t)resource, &wanted);
}

/** The bytes of address space that this process has; 0 if that is unknown. */
static uint64_t address_space(void)
{
	prb_auto_close int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	char text[32] = {};
	unsigned long long pages = 0;

	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0 || sscanf(text, "%llu", &pages) != 1)
		return 0;
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static struct prb_error *set_limits(unsigned cpu_seconds)
{
	uint64_t now = address_space();

	if (!now)
		return prb_error_create(PRB_ERROR_FAILED,
					"cannot give up rights: our own size is unknown");
	if (!limit(RLIMIT_AS, now + MEMORY, now + MEMORY) ||
	    !limit(RLIMIT_CPU, cpu_seconds, cpu_seconds + 1) || !limit(RLIMIT_CORE, 0, 0) ||
	    !limit(RLIMIT_FSIZE, 0, 0) || !limit(RLIMIT_NOFILE, 0, 0) || !limit(RLIMIT_NPROC, 0, 0))
		return failed("setrlimit");
	return NULL;
}

/** Removes all capabilities. capset() alone decides; clearing ambient ones may be unsupported. */
static bool drop_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {};

	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	return !syscall(SYS_capset, &header, none);
}

/**
 * In a user namespace that user may have no number, and without CAP_SETUID a process cannot change
 * its user. The child then keeps its user, and the other limits must suffice.
 */
static struct prb_error *become_nobody(pid_t parent)
{
	syscall(SYS_setgroups, 0, NULL);
	syscall(SYS_setresgid, NOBODY, NOBODY, NOBODY);
	syscall(SYS_setresuid, NOBODY, NOBODY, NOBODY);
	if (!drop_capabilities())
		return failed("capset");
	/* Changing the user has cleared this, so it comes last. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL))
		return failed("PR_SET_PDEATHSIG");
	if (getppid() != parent)
		return prb_error_create(PRB_ERROR_FAILED, "the parent has ended");
	if (prctl(PR_SET_DUMPABLE, 0))
		return failed("PR_SET_DUMPABLE");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return failed("PR_SET_NO_NEW_PRIVS");
	return NULL;
}

/** The arguments that a system call may have. */
enum rule {
	ALLOW,	   /* anything */
	REFUSE,	   /* nothing: it fails with EACCES, which libraries cope with */
	SOCKET,	   /* the socket as its first argument */
	FILE_ONLY, /* the file as its first argument */
	NO_EXEC,   /* memory that cannot be executed */
	ANONYMOUS, /* the same, and no file */
};

static const struct {
	int call;
	enum rule rule;
} rules[] = {
	{SYS_read, SOCKET},
	{SYS_write, SOCKET},
	{SYS_pread64, FILE_ONLY},
	{SYS_lseek, FILE_ONLY},
	{SYS_mmap, ANONYMOUS},
	{SYS_mprotect, NO_EXEC},
	{SYS_mremap, ALLOW},
	{SYS_munmap, ALLOW},
	{SYS_madvise, ALLOW},
	{SYS_brk, ALLOW},
	{SYS_futex, ALLOW},
	{SYS_sched_yield, ALLOW},
	{SYS_fstat, ALLOW},
	{SYS_close, ALLOW},
	{SYS_clock_gettime, ALLOW},
	{SYS_gettimeofday, ALLOW},
	{SYS_getrandom, ALLOW},
	{SYS_sysinfo, ALLOW}, /* qsort() wants to know how much memory there is */
	{SYS_restart_syscall, ALLOW},
	{SYS_rt_sigreturn, ALLOW},
	{SYS_exit_group, ALLOW},
	/* libbfd looks for files that the debug information names. */
	{SYS_openat, REFUSE},
	{OPENAT2, REFUSE},
	{SYS_newfstatat, REFUSE},
	{SYS_statx, REFUSE},
	{SYS_readlinkat, REFUSE},
	{SYS_faccessat, REFUSE},
	{FACCESSAT2, REFUSE},
	{SYS_getcwd, REFUSE},
	{SYS_sched_getaffinity, REFUSE},
#ifdef __x86_64__
	{SYS_open, REFUSE},
	{SYS_stat, REFUSE},
	{SYS_lstat, REFUSE},
	{SYS_readlink, REFUSE},
	{SYS_access, REFUSE},
#endif
};

struct filter {
	struct sock_filter code[FILTER_MAX];
	unsigned short length;
};

static void add(struct filter *f, uint16_t code, uint32_t k, uint8_t yes, uint8_t no)
{
	if (f->length < FILTER_MAX)
		f->code[f->length] = (struct sock_filter){code, yes, no, k};
	f->length++;
}

static void load(struct filter *f, size_t offset)
{
	add(f, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

/** The low half of an argument, on little-endian machines: what counts of descriptors and flags. */
static void load_argument(struct filter *f, unsigned index)
{
	load(f, offsetof(struct seccomp_data, args) + index * sizeof(uint64_t));
}

static void answer(struct filter *f, uint32_t action)
{
	add(f, BPF_RET | BPF_K, action, 0, 0);
}

/** Kills unless the argument has none of @p without and all bits of @p with. */
static void check_bits(struct filter *f, unsigned index, uint32_t without, uint32_t with)
{
	load_argument(f, index);
	if (without) {
		add(f, BPF_JMP | BPF_JSET | BPF_K, without, 0, 1);
		answer(f, SECCOMP_RET_KILL_PROCESS);
	}
	if (with) {
		add(f, BPF_JMP | BPF_JSET | BPF_K, with, 1, 0);
		answer(f, SECCOMP_RET_KILL_PROCESS);
	}
}

static void check_descriptor(struct filter *f, int only)
{
	load_argument(f, 0);
	add(f, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)only, 1, 0);
	answer(f, SECCOMP_RET_KILL_PROCESS);
}

/** Adds the filter's instructions for a call of this rule. */
static void add_rule(struct filter *f, enum rule rule, int socket, int file)
{
	enum { PROT = 2, FLAGS = 3 /* arguments of mmap() */ };

	if (rule == SOCKET || (rule == FILE_ONLY && file >= 0))
		check_descriptor(f, rule == SOCKET ? socket : file);
	if (rule == NO_EXEC || rule == ANONYMOUS)
		check_bits(f, PROT, PROT_EXEC, 0);
	if (rule == ANONYMOUS)
		check_bits(f, FLAGS, 0, MAP_ANONYMOUS);
	if (rule == FILE_ONLY && file < 0)
		answer(f, SECCOMP_RET_KILL_PROCESS);
	else
		answer(f, rule == REFUSE ? SECCOMP_RET_ERRNO | EACCES : SECCOMP_RET_ALLOW);
}

static struct prb_error *filter_calls(int socket, int file)
{
	struct filter f = {};
	struct sock_fprog program = {.filter = f.code};

	load(&f, offsetof(struct seccomp_data, arch));
	add(&f, BPF_JMP | BPF_JEQ | BPF_K, audit_arch, 1, 0);
	answer(&f, SECCOMP_RET_KILL_PROCESS);
	for (size_t i = 0; i < PRB_ARRAY_SIZE(rules); i++) {
		load(&f, offsetof(struct seccomp_data, nr));

		unsigned short jump = f.length;
		add(&f, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)rules[i].call, 0, 0);
		add_rule(&f, rules[i].rule, socket, file);
		if (f.length <= FILTER_MAX)
			f.code[jump].jf = (uint8_t)(f.length - jump - 1);
	}
	answer(&f, SECCOMP_RET_KILL_PROCESS);
	program.len = f.length;
	if (f.length > FILTER_MAX)
		return prb_error_create(PRB_ERROR_FAILED, "the filter of system calls is too long");
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) ? failed("seccomp") : NULL;
}

struct prb_error *prb_jail_confine(pid_t parent, int socket, int file, unsigned cpu_seconds)
{
	PRB_TRY(set_limits(cpu_seconds));
	close_others(socket, file);
	PRB_TRY(become_nobody(parent));
	return filter_calls(socket, file);
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A target behind the kind of filter that container runtimes install by default: everything is
 * forbidden but a list of calls, some of which depend on their arguments: fault_container SHARED
 */
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "fault.h"

#ifdef __x86_64__
static const unsigned ARCHITECTURE = AUDIT_ARCH_X86_64;
#else
static const unsigned ARCHITECTURE = AUDIT_ARCH_AARCH64;
#endif

enum {
	LAST_OLD = 334, /* numbers that each architecture had of its own */
	FIRST_COMMON = 424,
	LAST_COMMON = 450,
	CODE_MAX = 1024,
	NAMESPACES = CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |
		     CLONE_NEWNET | CLONE_NEWCGROUP,
};

static const int forbidden[] = {
#ifdef __x86_64__
	SYS_create_module,
	SYS_get_kernel_syms,
	SYS_ioperm,
	SYS_iopl,
	SYS_query_module,
	SYS_sysfs,
	SYS__sysctl,
	SYS_uselib,
	SYS_ustat,
#endif
	SYS_acct,
	SYS_add_key,
	SYS_bpf,
	SYS_clock_adjtime,
	SYS_clock_settime,
	SYS_delete_module,
	SYS_finit_module,
	SYS_get_mempolicy,
	SYS_init_module,
	SYS_kcmp,
	SYS_kexec_file_load,
	SYS_kexec_load,
	SYS_keyctl,
	SYS_lookup_dcookie,
	SYS_mbind,
	SYS_mount,
	SYS_move_pages,
	SYS_nfsservctl,
	SYS_perf_event_open,
	SYS_pivot_root,
	SYS_quotactl,
	SYS_reboot,
	SYS_request_key,
	SYS_set_mempolicy,
	SYS_setns,
	SYS_settimeofday,
	SYS_swapon,
	SYS_swapoff,
	SYS_umount2,
	SYS_unshare,
	SYS_userfaultfd,
	SYS_vhangup,
	SYS_open_by_handle_at,
	SYS_io_uring_setup,
	SYS_io_uring_enter,
	SYS_io_uring_register,
	SYS_clone,
	SYS_clone3,
	SYS_personality,
	SYS_socket,
	SYS_fsopen,
	SYS_move_mount,
	SYS_open_tree,
	SYS_fsconfig,
	SYS_fsmount,
	SYS_fspick,
	SYS_mount_setattr,
};

static struct sock_filter code[CODE_MAX];
static unsigned short length;

static void add(struct sock_filter instruction)
{
	code[length++] = instruction;
}

static void load(size_t offset)
{
	add((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)offset));
}

static void give(unsigned action)
{
	add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action));
}

static void give_if(unsigned short test, unsigned value, unsigned action)
{
	add((struct sock_filter)BPF_JUMP((unsigned short)(BPF_JMP | test | BPF_K), value, 0, 1));
	give(action);
}

/* For one call: decided by its first argument; all others forbidden or allowed. */
static void decide(int number, unsigned short test, unsigned value, unsigned then,
		   unsigned otherwise)
{
	add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 4));
	load(offsetof(struct seccomp_data, args));
	give_if(test, value, then);
	give(otherwise);
}

static int is_forbidden(int number)
{
	for (size_t i = 0; i < sizeof(forbidden) / sizeof(forbidden[0]); i++)
		if (forbidden[i] == number)
			return 1;
	return 0;
}

static void allow(int first, int last)
{
	for (int number = first; number <= last; number++)
		if (!is_forbidden(number))
			give_if(BPF_JEQ, (unsigned)number, SECCOMP_RET_ALLOW);
}

int main(int argc, char **argv)
{
	const unsigned no = SECCOMP_RET_ERRNO | EPERM, yes = SECCOMP_RET_ALLOW;
	struct sock_fprog program = {.filter = code};

	if (argc < 2)
		return 2;
	fault_open(argv[1]);
	load(offsetof(struct seccomp_data, arch));
	add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0));
	give(SECCOMP_RET_KILL_PROCESS);
	load(offsetof(struct seccomp_data, nr));
	give_if(BPF_JGE, 0x40000000, no); /* the x32 calls */
	decide(SYS_clone, BPF_JSET, NAMESPACES, no, yes);
	give_if(BPF_JEQ, SYS_clone3, SECCOMP_RET_ERRNO | ENOSYS);
	decide(SYS_personality, BPF_JEQ, PER_LINUX, yes, no);
	decide(SYS_socket, BPF_JEQ, AF_VSOCK, no, yes);
	allow(0, LAST_OLD);
	allow(FIRST_COMMON, LAST_COMMON);
	give(no);
	program.len = length;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
		perror("filter");
		return 1;
	}
	fault_ready();
	fault_work(2000000);
	return fault_end();
}

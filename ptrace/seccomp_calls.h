/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file All system calls that are made in a program because a library is loaded into it: what its
 * seccomp filters have to allow before anything is done there.
 *
 * What is here is what was seen: tests/live/injector/test_faults_filters.py watches programs under
 * every command that loads the agent, and fails if one of the calls is missing here.
 */
#ifndef PRB_PTRACE_SECCOMP_CALLS_H
#define PRB_PTRACE_SECCOMP_CALLS_H

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

/** Who makes calls, as a set of bits: which depends on the C library too. */
enum prb_call_maker {
	PRB_CALL_LOADS = 1 << 0,   /**< loading any library */
	PRB_CALL_SERVES = 1 << 1,  /**< the agent, and the program's threads in its code */
	PRB_CALL_MUSL = 1 << 2,	   /**< either of them, on musl */
	PRB_CALL_OLD = 1 << 3,	   /**< either of them, on a glibc before 2.33 */
	PRB_CALL_OLDEST = 1 << 4,  /**< ... before 2.26 */
	PRB_CALL_CRASHES = 1 << 5, /**< the agent, if it is to write crash records */
};

/** Which descriptor it will be is not known yet. */
enum { PRB_CALL_DESCRIPTOR = 1000 };
/** The usual flags of pthread_create(). */
enum { PRB_CALL_CLONE = 0x3d0f00, PRB_CALL_CLONE_MUSL = 0x7d0f00 };
/** Those of the child that writes a crash record. */
enum { PRB_CALL_CLONE_RECORD = 0xa00300 };

/*
 * CALL(name, maker, may fail, deciding argument, arguments...): a call that may fail has something
 * else in its place. A filter that looks at arguments looks at the one that decides what the call
 * does: 1 is the first, 0 none.
 */
#define PRB_CALLS_LOADING(CALL)                                                                   \
	CALL(mmap, LOADS, false, 3, 0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS) \
	CALL(mmap, LOADS, false, 3, 0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS)  \
	CALL(mmap, LOADS, false, 3, 0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE)                  \
	CALL(mmap, LOADS, false, 3, 0, 4096, PROT_READ, MAP_PRIVATE)                              \
	CALL(mmap, LOADS, false, 3, 0, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK)  \
	CALL(mprotect, LOADS, true, 3, 0, 4096, PROT_READ | PROT_EXEC)                            \
	CALL(mprotect, LOADS, false, 3, 0, 4096, PROT_READ | PROT_WRITE)                          \
	CALL(mprotect, LOADS, false, 3, 0, 4096, PROT_READ)                                       \
	CALL(munmap, LOADS, false, 0)                                                             \
	CALL(ppoll, LOADS, false, 0)                                                              \
	CALL(restart_syscall, LOADS, false, 0)                                                    \
	CALL(rt_sigreturn, LOADS, false, 0)                                                       \
	CALL(rt_sigprocmask, LOADS, false, 0)                                                     \
	CALL(rt_sigaction, LOADS, false, 0)                                                       \
	CALL(clone, LOADS, false, 1, PRB_CALL_CLONE)                                              \
	CALL(nanosleep, LOADS, false, 0)                                                          \
	CALL(futex, LOADS, false, 0)                                                              \
	CALL(openat, LOADS, false, 0)                                                             \
	CALL(newfstatat, LOADS, false, 0)                                                         \
	CALL(fstat, LOADS, false, 0)                                                              \
	CALL(read, LOADS, false, 0)                                                               \
	CALL(close, LOADS, false, 0)                                                              \
	CALL(exit, LOADS, false, 0)                                                               \
	CALL(gettid, LOADS, false, 0)                                                             \
	CALL(clone3, LOADS, true, 0)                                                              \
	CALL(brk, LOADS, false, 0)                                                                \
	CALL(madvise, LOADS, true, 0)                                                             \
	CALL(set_robust_list, LOADS, true, 0)                                                     \
	CALL(rseq, LOADS, false, 0)                                                               \
	CALL(memfd_create, LOADS, true, 0)                                                        \
	CALL(write, LOADS, true, 0, PRB_CALL_DESCRIPTOR)

#define PRB_CALLS_SERVING(CALL)                                                             \
	CALL(socket, SERVES, false, 1, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK) \
	CALL(socket, SERVES, false, 1, AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK)  \
	CALL(bind, SERVES, false, 0, PRB_CALL_DESCRIPTOR)                                   \
	CALL(listen, SERVES, false, 0, PRB_CALL_DESCRIPTOR, 16)                             \
	CALL(accept4, SERVES, false, 0, PRB_CALL_DESCRIPTOR)                                \
	CALL(getsockname, SERVES, false, 0, PRB_CALL_DESCRIPTOR)                            \
	CALL(getsockopt, SERVES, false, 0, PRB_CALL_DESCRIPTOR, SOL_SOCKET, SO_PEERCRED)    \
	CALL(sendto, SERVES, false, 0, PRB_CALL_DESCRIPTOR)                                 \
	CALL(recvfrom, SERVES, false, 0, PRB_CALL_DESCRIPTOR)                               \
	CALL(shutdown, SERVES, false, 0, PRB_CALL_DESCRIPTOR, SHUT_RDWR)                    \
	CALL(fcntl, SERVES, true, 2, PRB_CALL_DESCRIPTOR, F_DUPFD_CLOEXEC)                  \
	CALL(fcntl, SERVES, true, 2, PRB_CALL_DESCRIPTOR, F_GETFL)                          \
	CALL(fcntl, SERVES, true, 2, PRB_CALL_DESCRIPTOR, F_SETFD, FD_CLOEXEC)              \
	CALL(ioctl, SERVES, true, 2, PRB_CALL_DESCRIPTOR, 0x5401 /* TCGETS */)              \
	CALL(lseek, SERVES, true, 0, PRB_CALL_DESCRIPTOR)                                   \
	CALL(getpid, SERVES, false, 0)                                                      \
	CALL(geteuid, SERVES, false, 0)                                                     \
	CALL(tgkill, SERVES, true, 0)                                                       \
	CALL(mprotect, SERVES, true, 3, 0, 4096, PROT_NONE)                                 \
	CALL(membarrier, SERVES, true, 0)                                                   \
	CALL(getrandom, SERVES, true, 0)                                                    \
	CALL(prctl, SERVES, true, 1, PR_SET_NAME)                                           \
	CALL(prctl, SERVES, true, 1, PR_SET_TIMERSLACK)                                     \
	CALL(sigaltstack, SERVES, true, 0)                                                  \
	CALL(sched_getaffinity, SERVES, true, 0)                                            \
	CALL(process_vm_readv, SERVES, true, 0)                                             \
	CALL(fallocate, SERVES, true, 0, PRB_CALL_DESCRIPTOR)                               \
	CALL(pwrite64, SERVES, true, 0, PRB_CALL_DESCRIPTOR)                                \
	CALL(getdents64, SERVES, false, 0, PRB_CALL_DESCRIPTOR)                             \
	CALL(linkat, SERVES, true, 0)                                                       \
	CALL(mkdirat, SERVES, true, 0)                                                      \
	CALL(unlinkat, SERVES, true, 0)

/* In a process that dies, and in the child that writes the record of it. */
#define PRB_CALLS_CRASHING(CALL)                             \
	CALL(clone, CRASHES, true, 1, PRB_CALL_CLONE_RECORD) \
	CALL(prctl, CRASHES, true, 1, PR_SET_PTRACER)        \
	CALL(prctl, CRASHES, true, 1, PR_SET_PDEATHSIG)      \
	CALL(wait4, CRASHES, true, 0)                        \
	CALL(kill, CRASHES, true, 0)                         \
	CALL(rt_tgsigqueueinfo, CRASHES, true, 0)            \
	CALL(ptrace, CRASHES, true, 0)                       \
	CALL(close_range, CRASHES, true, 0)                  \
	CALL(clock_gettime, CRASHES, true, 0)                \
	CALL(pread64, CRASHES, true, 0)                      \
	CALL(lseek, CRASHES, true, 0)                        \
	CALL(readlinkat, CRASHES, true, 0)                   \
	CALL(fchmod, CRASHES, true, 0)                       \
	CALL(ftruncate, CRASHES, true, 0)                    \
	CALL(renameat2, CRASHES, true, 0)                    \
	CALL(exit_group, CRASHES, true, 0)

/* What younger machines have one call less for. */
#ifdef __x86_64__
#define PRB_CALLS_OF_MACHINE(CALL)         \
	CALL(poll, SERVES, false, 0)       \
	CALL(chmod, SERVES, false, 0)      \
	CALL(unlink, SERVES, true, 0)      \
	CALL(mkdir, SERVES, true, 0)       \
	CALL(access, CRASHES, false, 0)    \
	CALL(arch_prctl, CRASHES, true, 0) \
	CALL(readlink, SERVES, true, 0)    \
	CALL(open, MUSL, false, 0)         \
	CALL(stat, MUSL, false, 0)         \
	CALL(stat, OLD, false, 0)          \
	CALL(open, OLDEST, false, 0)
#else
#define PRB_CALLS_OF_MACHINE(CALL)         \
	CALL(fchmodat, SERVES, false, 0)   \
	CALL(faccessat, CRASHES, false, 0) \
	CALL(readlinkat, SERVES, true, 0)
#endif

#define PRB_CALLS_ON_MUSL(CALL)                          \
	CALL(clone, MUSL, false, 1, PRB_CALL_CLONE_MUSL) \
	CALL(membarrier, MUSL, true, 0)

#define PRB_CALLS(CALL)         \
	PRB_CALLS_LOADING(CALL) \
	PRB_CALLS_ON_MUSL(CALL) \
	PRB_CALLS_SERVING(CALL) PRB_CALLS_CRASHING(CALL) PRB_CALLS_OF_MACHINE(CALL)

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file All system calls that are made in a program because a library is loaded into it: what its
 * seccomp filters have to allow before anything is done there.
 *
 * The list is from observation: tests/live/injector/test_faults_filters.py watches programs under
 * every command that loads the agent, and fails if one of the calls is missing here.
 */
#ifndef PRB_TARGET_PTRACE_SECCOMP_CALLS_H
#define PRB_TARGET_PTRACE_SECCOMP_CALLS_H

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/** The makers of calls, as a set of bits: they depend on the C library, too. */
enum prb_call_maker {
	PRB_CALL_LOADS = 1 << 0,   /**< loading any library */
	PRB_CALL_SERVES = 1 << 1,  /**< the agent, and the program's threads in its code */
	PRB_CALL_MUSL = 1 << 2,	   /**< either of them, on musl */
	PRB_CALL_OLD = 1 << 3,	   /**< either of them, on a glibc before 2.33 */
	PRB_CALL_OLDEST = 1 << 4,  /**< ... before 2.26 */
	PRB_CALL_CRASHES = 1 << 5, /**< the agent, if it is to write crash records */
	PRB_CALL_NEW = 1 << 6,	   /**< loading, on a glibc from 2.34 on */
};

/** The errors of a call that its caller copes with. */
enum prb_call_failure {
	PRB_CALL_NEEDED,   /**< none */
	PRB_CALL_MAY_FAIL, /**< all */
	PRB_CALL_MAY_LACK, /**< ENOSYS only */
};

/** All values that our calls pass in one argument: from low to high, or any value. */
struct prb_call_range {
	uint64_t low, high;
	bool bounded;
};

/** Any value: addresses, sizes, process numbers, arguments that the kernel ignores. */
#define PRB_CALL_ANY \
	{            \
		0    \
	}
#define PRB_CALL_FROM(low, high)                         \
	{                                                \
		(uint64_t)(low), (uint64_t)(high), true, \
	}
#define PRB_CALL_IS(value) PRB_CALL_FROM(value, value)
/** A pointer that is not NULL. */
#define PRB_CALL_POINTER PRB_CALL_FROM(1, UINT64_MAX)
/** A descriptor. The program may have closed the first three. */
#define PRB_CALL_FD PRB_CALL_FROM(0, INT_MAX)
/** Size of one mapping: glibc reserves 128 MiB for the heap of a thread. */
#define PRB_CALL_BYTES PRB_CALL_FROM(1, 1 << 30)
/** Number of descriptors in one poll(). */
#define PRB_CALL_POLLED PRB_CALL_FROM(0, 18)

/** The usual flags of pthread_create(). */
enum { PRB_CALL_CLONE = 0x3d0f00, PRB_CALL_CLONE_MUSL = 0x7d0f00 };
/** Flags of the child that writes a crash record. */
enum { PRB_CALL_CLONE_RECORD = 0xa00300 };
/** Operations of futex(): with memory of one process, or also of others. */
enum {
	PRB_CALL_WAIT = 0x80,
	PRB_CALL_WAKE = 0x81,
	PRB_CALL_WAIT_UNTIL = 0x89,
	PRB_CALL_WAIT_UNTIL_TIME = 0x189,
	PRB_CALL_WAIT_SHARED = 0,
	PRB_CALL_WAKE_SHARED = 1,
	PRB_CALL_WAIT_END = 0x109, /**< of a thread */
	PRB_CALL_REQUEUE = 0x84,
	PRB_CALL_WAKE_OP = 0x85,
};
/** To make a file that is not there yet. */
enum { PRB_CALL_NEW_FILE = 0300 };
/** musl's flag for every open(). */
enum { PRB_CALL_LARGE_FILE = 0100000 };

/*
 * CALL(name, maker, failure, ranges of the arguments...). Arguments that are left out at the end
 * may have any value. A fixed value, or a narrow range, is given where usual filters look at the
 * argument: flags, modes, kinds. One call may have several rows: all of them are made.
 */
#define PRB_CALLS_LOADING(CALL)                                                                    \
	CALL(mmap, LOADS, NEEDED, PRB_CALL_ANY, PRB_CALL_BYTES,                                    \
	     PRB_CALL_IS(PROT_READ | PROT_WRITE), PRB_CALL_IS(MAP_PRIVATE | MAP_ANONYMOUS),        \
	     PRB_CALL_IS(-1), PRB_CALL_IS(0))                                                      \
	CALL(mmap, LOADS, NEEDED, PRB_CALL_ANY, PRB_CALL_BYTES,                                    \
	     PRB_CALL_IS(PROT_READ | PROT_WRITE),                                                  \
	     PRB_CALL_IS(MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE), PRB_CALL_IS(-1),            \
	     PRB_CALL_IS(0))                                                                       \
	CALL(mmap, LOADS, NEEDED, PRB_CALL_ANY, PRB_CALL_BYTES, PRB_CALL_IS(PROT_NONE),            \
	     PRB_CALL_IS(MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE), PRB_CALL_IS(-1),            \
	     PRB_CALL_IS(0))                                                                       \
	CALL(mmap, LOADS, NEEDED, PRB_CALL_ANY, PRB_CALL_BYTES, PRB_CALL_IS(PROT_NONE),            \
	     PRB_CALL_IS(MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK), PRB_CALL_IS(-1),                \
	     PRB_CALL_IS(0))                                                                       \
	CALL(mmap, LOADS, NEEDED, PRB_CALL_ANY, PRB_CALL_BYTES,                                    \
	     PRB_CALL_IS(PROT_READ | PROT_WRITE),                                                  \
	     PRB_CALL_IS(MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK), PRB_CALL_IS(-1),                \
	     PRB_CALL_IS(0))                                                                       \
	CALL(mmap, LOADS, NEEDED, PRB_CALL_ANY, PRB_CALL_BYTES, PRB_CALL_IS(PROT_NONE),            \
	     PRB_CALL_IS(MAP_PRIVATE | MAP_ANONYMOUS), PRB_CALL_IS(-1), PRB_CALL_IS(0))            \
	CALL(mmap, LOADS, NEEDED, PRB_CALL_ANY, PRB_CALL_BYTES,                                    \
	     PRB_CALL_IS(PROT_READ | PROT_WRITE),                                                  \
	     PRB_CALL_IS(MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED), PRB_CALL_IS(-1),                \
	     PRB_CALL_IS(0))                                                                       \
	CALL(mmap, LOADS, NEEDED, PRB_CALL_ANY, PRB_CALL_BYTES,                                    \
	     PRB_CALL_IS(PROT_READ | PROT_EXEC), PRB_CALL_IS(MAP_PRIVATE | MAP_ANONYMOUS),         \
	     PRB_CALL_IS(-1), PRB_CALL_IS(0))                                                      \
	CALL(mmap, LOADS, NEEDED, PRB_CALL_ANY, PRB_CALL_BYTES, PRB_CALL_IS(PROT_READ),            \
	     PRB_CALL_IS(MAP_PRIVATE | MAP_DENYWRITE), PRB_CALL_FD, PRB_CALL_ANY)                  \
	CALL(mmap, LOADS, NEEDED, PRB_CALL_ANY, PRB_CALL_BYTES, PRB_CALL_IS(PROT_READ),            \
	     PRB_CALL_IS(MAP_PRIVATE | MAP_FIXED | MAP_DENYWRITE), PRB_CALL_FD, PRB_CALL_ANY)      \
	CALL(mmap, LOADS, NEEDED, PRB_CALL_ANY, PRB_CALL_BYTES,                                    \
	     PRB_CALL_IS(PROT_READ | PROT_EXEC),                                                   \
	     PRB_CALL_IS(MAP_PRIVATE | MAP_FIXED | MAP_DENYWRITE), PRB_CALL_FD, PRB_CALL_ANY)      \
	CALL(mmap, LOADS, NEEDED, PRB_CALL_ANY, PRB_CALL_BYTES,                                    \
	     PRB_CALL_IS(PROT_READ | PROT_WRITE),                                                  \
	     PRB_CALL_IS(MAP_PRIVATE | MAP_FIXED | MAP_DENYWRITE), PRB_CALL_FD, PRB_CALL_ANY)      \
	CALL(mprotect, LOADS, MAY_FAIL, PRB_CALL_POINTER, PRB_CALL_BYTES,                          \
	     PRB_CALL_IS(PROT_READ | PROT_EXEC))                                                   \
	CALL(mprotect, LOADS, NEEDED, PRB_CALL_POINTER, PRB_CALL_BYTES,                            \
	     PRB_CALL_IS(PROT_READ | PROT_WRITE))                                                  \
	CALL(mprotect, LOADS, NEEDED, PRB_CALL_POINTER, PRB_CALL_BYTES, PRB_CALL_IS(PROT_READ))    \
	CALL(munmap, LOADS, NEEDED, PRB_CALL_POINTER, PRB_CALL_BYTES)                              \
	CALL(ppoll, LOADS, NEEDED)                                                                 \
	CALL(restart_syscall, LOADS, NEEDED)                                                       \
	CALL(rt_sigreturn, LOADS, NEEDED)                                                          \
	CALL(rt_sigprocmask, LOADS, NEEDED, PRB_CALL_IS(SIG_BLOCK), PRB_CALL_ANY, PRB_CALL_ANY,    \
	     PRB_CALL_IS(8))                                                                       \
	CALL(rt_sigprocmask, LOADS, NEEDED, PRB_CALL_IS(SIG_UNBLOCK), PRB_CALL_ANY, PRB_CALL_ANY,  \
	     PRB_CALL_IS(8))                                                                       \
	CALL(rt_sigprocmask, LOADS, NEEDED, PRB_CALL_IS(SIG_SETMASK), PRB_CALL_ANY, PRB_CALL_ANY,  \
	     PRB_CALL_IS(8))                                                                       \
	CALL(rt_sigaction, LOADS, NEEDED, PRB_CALL_IS(33), PRB_CALL_POINTER, PRB_CALL_ANY,         \
	     PRB_CALL_IS(8))                                                                       \
	CALL(clone, LOADS, NEEDED, PRB_CALL_IS(PRB_CALL_CLONE))                                    \
	CALL(nanosleep, LOADS, NEEDED, PRB_CALL_POINTER)                                           \
	CALL(futex, LOADS, NEEDED, PRB_CALL_POINTER, PRB_CALL_IS(PRB_CALL_WAIT))                   \
	CALL(futex, LOADS, NEEDED, PRB_CALL_POINTER, PRB_CALL_IS(PRB_CALL_WAKE))                   \
	CALL(futex, LOADS, NEEDED, PRB_CALL_POINTER, PRB_CALL_IS(PRB_CALL_WAIT_UNTIL))             \
	CALL(futex, LOADS, NEEDED, PRB_CALL_POINTER, PRB_CALL_IS(PRB_CALL_WAIT_UNTIL_TIME))        \
	CALL(futex, LOADS, NEEDED, PRB_CALL_POINTER, PRB_CALL_IS(PRB_CALL_WAIT_END))               \
	CALL(openat, LOADS, NEEDED, PRB_CALL_IS(AT_FDCWD), PRB_CALL_POINTER,                       \
	     PRB_CALL_IS(O_CLOEXEC))                                                               \
	CALL(newfstatat, LOADS, NEEDED, PRB_CALL_IS(AT_FDCWD), PRB_CALL_POINTER, PRB_CALL_POINTER, \
	     PRB_CALL_IS(0))                                                                       \
	CALL(newfstatat, LOADS, NEEDED, PRB_CALL_IS(AT_FDCWD), PRB_CALL_POINTER, PRB_CALL_POINTER, \
	     PRB_CALL_IS(AT_SYMLINK_NOFOLLOW))                                                     \
	CALL(newfstatat, LOADS, NEEDED, PRB_CALL_FD, PRB_CALL_POINTER, PRB_CALL_POINTER,           \
	     PRB_CALL_IS(AT_EMPTY_PATH))                                                           \
	CALL(newfstatat, LOADS, NEEDED, PRB_CALL_FD, PRB_CALL_POINTER, PRB_CALL_POINTER,           \
	     PRB_CALL_IS(AT_SYMLINK_NOFOLLOW))                                                     \
	CALL(fstat, LOADS, NEEDED, PRB_CALL_FD, PRB_CALL_POINTER)                                  \
	CALL(read, LOADS, NEEDED, PRB_CALL_FD)                                                     \
	CALL(close, LOADS, NEEDED, PRB_CALL_FD)                                                    \
	CALL(exit, LOADS, NEEDED, PRB_CALL_IS(0))                                                  \
	CALL(gettid, LOADS, NEEDED)                                                                \
	CALL(clone3, NEW, MAY_LACK, PRB_CALL_POINTER, PRB_CALL_IS(88))                             \
	CALL(brk, LOADS, NEEDED)                                                                   \
	CALL(madvise, LOADS, MAY_FAIL, PRB_CALL_POINTER, PRB_CALL_BYTES,                           \
	     PRB_CALL_IS(MADV_DONTNEED))                                                           \
	CALL(madvise, LOADS, MAY_FAIL, PRB_CALL_POINTER, PRB_CALL_BYTES,                           \
	     PRB_CALL_IS(MADV_HUGEPAGE))                                                           \
	CALL(madvise, LOADS, MAY_FAIL, PRB_CALL_POINTER, PRB_CALL_BYTES,                           \
	     PRB_CALL_IS(102 /* MADV_GUARD_INSTALL */))                                            \
	CALL(madvise, LOADS, MAY_FAIL, PRB_CALL_POINTER, PRB_CALL_BYTES,                           \
	     PRB_CALL_IS(103 /* MADV_GUARD_REMOVE */))                                             \
	CALL(set_robust_list, LOADS, MAY_FAIL, PRB_CALL_POINTER, PRB_CALL_IS(24))                  \
	CALL(rseq, LOADS, NEEDED, PRB_CALL_POINTER, PRB_CALL_ANY, PRB_CALL_IS(0))                  \
	CALL(memfd_create, LOADS, MAY_FAIL, PRB_CALL_POINTER, PRB_CALL_IS(1 /* MFD_CLOEXEC */))    \
	CALL(memfd_create, LOADS, MAY_FAIL, PRB_CALL_POINTER,                                      \
	     PRB_CALL_IS(0x11 /* the same | MFD_EXEC */))                                          \
	CALL(write, LOADS, MAY_FAIL, PRB_CALL_FD)

#define PRB_CALLS_SERVING(CALL)                                                                    \
	CALL(socket, SERVES, NEEDED, PRB_CALL_IS(AF_UNIX),                                         \
	     PRB_CALL_IS(SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK), PRB_CALL_IS(0))              \
	CALL(socket, SERVES, NEEDED, PRB_CALL_IS(AF_UNIX),                                         \
	     PRB_CALL_IS(SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK), PRB_CALL_IS(0))               \
	CALL(bind, SERVES, NEEDED, PRB_CALL_FD, PRB_CALL_POINTER)                                  \
	CALL(listen, SERVES, NEEDED, PRB_CALL_FD, PRB_CALL_IS(16))                                 \
	CALL(accept4, SERVES, NEEDED, PRB_CALL_FD, PRB_CALL_IS(0), PRB_CALL_IS(0),                 \
	     PRB_CALL_IS(SOCK_CLOEXEC | SOCK_NONBLOCK))                                            \
	CALL(getsockname, SERVES, NEEDED, PRB_CALL_FD, PRB_CALL_POINTER, PRB_CALL_POINTER)         \
	CALL(getsockopt, SERVES, NEEDED, PRB_CALL_FD, PRB_CALL_IS(SOL_SOCKET),                     \
	     PRB_CALL_IS(SO_PEERCRED), PRB_CALL_POINTER, PRB_CALL_POINTER)                         \
	CALL(sendto, SERVES, NEEDED, PRB_CALL_FD, PRB_CALL_ANY, PRB_CALL_ANY,                      \
	     PRB_CALL_IS(MSG_NOSIGNAL | MSG_DONTWAIT))                                             \
	CALL(recvfrom, SERVES, NEEDED, PRB_CALL_FD, PRB_CALL_ANY, PRB_CALL_ANY,                    \
	     PRB_CALL_IS(MSG_DONTWAIT), PRB_CALL_IS(0), PRB_CALL_IS(0))                            \
	CALL(shutdown, SERVES, NEEDED, PRB_CALL_FD, PRB_CALL_IS(SHUT_RDWR))                        \
	CALL(fcntl, SERVES, MAY_FAIL, PRB_CALL_FD, PRB_CALL_IS(F_DUPFD_CLOEXEC), PRB_CALL_IS(200)) \
	CALL(fcntl, SERVES, MAY_FAIL, PRB_CALL_FD, PRB_CALL_IS(F_GETFL))                           \
	CALL(fcntl, SERVES, MAY_FAIL, PRB_CALL_FD, PRB_CALL_IS(F_SETFD), PRB_CALL_IS(FD_CLOEXEC))  \
	CALL(ioctl, SERVES, MAY_FAIL, PRB_CALL_FD, PRB_CALL_IS(0x5401 /* TCGETS */),               \
	     PRB_CALL_POINTER)                                                                     \
	CALL(lseek, SERVES, MAY_FAIL, PRB_CALL_FD, PRB_CALL_ANY, PRB_CALL_IS(SEEK_CUR))            \
	CALL(getpid, SERVES, NEEDED)                                                               \
	CALL(geteuid, SERVES, NEEDED)                                                              \
	CALL(tgkill, SERVES, MAY_FAIL, PRB_CALL_ANY, PRB_CALL_ANY, PRB_CALL_IS(0))                 \
	CALL(mmap, SERVES, MAY_FAIL, PRB_CALL_ANY, PRB_CALL_BYTES,                                 \
	     PRB_CALL_IS(PROT_READ | PROT_WRITE), PRB_CALL_IS(MAP_SHARED), PRB_CALL_FD,            \
	     PRB_CALL_ANY)                                                                         \
	CALL(mprotect, SERVES, MAY_FAIL, PRB_CALL_POINTER, PRB_CALL_BYTES, PRB_CALL_IS(PROT_NONE)) \
	CALL(madvise, SERVES, MAY_FAIL, PRB_CALL_POINTER, PRB_CALL_BYTES,                          \
	     PRB_CALL_IS(MADV_WIPEONFORK))                                                         \
	CALL(membarrier, SERVES, MAY_FAIL)                                                         \
	CALL(getrandom, SERVES, MAY_FAIL, PRB_CALL_POINTER, PRB_CALL_ANY, PRB_CALL_FROM(0, 1))     \
	CALL(prctl, SERVES, MAY_FAIL, PRB_CALL_IS(PR_SET_NAME), PRB_CALL_POINTER)                  \
	CALL(prctl, SERVES, MAY_FAIL, PRB_CALL_IS(PR_SET_TIMERSLACK), PRB_CALL_IS(1))              \
	CALL(sigaltstack, SERVES, MAY_FAIL)                                                        \
	CALL(sched_getaffinity, SERVES, MAY_FAIL)                                                  \
	CALL(process_vm_readv, SERVES, MAY_FAIL, PRB_CALL_ANY, PRB_CALL_POINTER,                   \
	     PRB_CALL_FROM(1, 2), PRB_CALL_POINTER, PRB_CALL_IS(1), PRB_CALL_IS(0))                \
	CALL(fallocate, SERVES, MAY_FAIL, PRB_CALL_FD, PRB_CALL_IS(0))                             \
	CALL(pwrite64, SERVES, MAY_FAIL, PRB_CALL_FD)                                              \
	CALL(getdents64, SERVES, NEEDED, PRB_CALL_FD)                                              \
	CALL(linkat, SERVES, MAY_FAIL, PRB_CALL_FD, PRB_CALL_POINTER, PRB_CALL_FD,                 \
	     PRB_CALL_POINTER, PRB_CALL_IS(0))                                                     \
	CALL(mkdirat, SERVES, MAY_FAIL, PRB_CALL_IS(AT_FDCWD), PRB_CALL_POINTER,                   \
	     PRB_CALL_IS(0700))                                                                    \
	CALL(mkdirat, SERVES, MAY_FAIL, PRB_CALL_FD, PRB_CALL_POINTER, PRB_CALL_IS(0700))          \
	CALL(unlinkat, SERVES, MAY_FAIL, PRB_CALL_FD, PRB_CALL_POINTER, PRB_CALL_IS(0))            \
	CALL(unlinkat, SERVES, MAY_FAIL, PRB_CALL_FD, PRB_CALL_POINTER, PRB_CALL_IS(AT_REMOVEDIR)) \
	CALL(openat, SERVES, NEEDED, PRB_CALL_IS(AT_FDCWD), PRB_CALL_POINTER,                      \
	     PRB_CALL_IS(O_CLOEXEC | O_DIRECTORY | O_NONBLOCK))                                    \
	CALL(openat, SERVES, NEEDED, PRB_CALL_IS(AT_FDCWD), PRB_CALL_POINTER,                      \
	     PRB_CALL_IS(O_CLOEXEC | O_DIRECTORY | O_PATH))                                        \
	CALL(openat, SERVES, NEEDED, PRB_CALL_FD, PRB_CALL_POINTER,                                \
	     PRB_CALL_IS(O_CLOEXEC | O_DIRECTORY | O_PATH))                                        \
	CALL(openat, SERVES, NEEDED, PRB_CALL_FD, PRB_CALL_POINTER,                                \
	     PRB_CALL_IS(O_CLOEXEC | O_NOFOLLOW | O_PATH))                                         \
	CALL(openat, SERVES, NEEDED, PRB_CALL_FD, PRB_CALL_POINTER,                                \
	     PRB_CALL_IS(O_CLOEXEC | O_DIRECTORY))                                                 \
	CALL(openat, SERVES, NEEDED, PRB_CALL_FD, PRB_CALL_POINTER,                                \
	     PRB_CALL_IS(O_CLOEXEC | O_DIRECTORY | O_NOFOLLOW))                                    \
	CALL(fstatfs, SERVES, MAY_FAIL, PRB_CALL_FD)                                               \
	CALL(readlinkat, SERVES, MAY_FAIL, PRB_CALL_FD)                                            \
	CALL(openat, SERVES, MAY_FAIL, PRB_CALL_IS(AT_FDCWD), PRB_CALL_POINTER,                    \
	     PRB_CALL_IS(O_CLOEXEC | O_DIRECTORY))                                                 \
	CALL(faccessat, SERVES, MAY_FAIL, PRB_CALL_FD, PRB_CALL_POINTER, PRB_CALL_IS(W_OK | X_OK)) \
	CALL(openat, SERVES, NEEDED, PRB_CALL_FD, PRB_CALL_POINTER,                                \
	     PRB_CALL_IS(O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK))                                     \
	CALL(openat, SERVES, NEEDED, PRB_CALL_FD, PRB_CALL_POINTER,                                \
	     PRB_CALL_IS(O_CLOEXEC | O_NOFOLLOW | O_RDWR))                                         \
	CALL(openat, SERVES, NEEDED, PRB_CALL_FD, PRB_CALL_POINTER,                                \
	     PRB_CALL_IS(O_CLOEXEC | O_NOFOLLOW | O_RDWR | PRB_CALL_NEW_FILE), PRB_CALL_IS(0600))

/* In a process that dies, and in the child that writes the record of it. */
#define PRB_CALLS_CRASHING(CALL)                                                               \
	CALL(clone, CRASHES, MAY_FAIL, PRB_CALL_IS(PRB_CALL_CLONE_RECORD))                     \
	CALL(rt_sigaction, CRASHES, NEEDED, PRB_CALL_IS(SIGILL), PRB_CALL_ANY, PRB_CALL_ANY,   \
	     PRB_CALL_IS(8))                                                                   \
	CALL(rt_sigaction, CRASHES, NEEDED, PRB_CALL_IS(SIGABRT), PRB_CALL_ANY, PRB_CALL_ANY,  \
	     PRB_CALL_IS(8))                                                                   \
	CALL(rt_sigaction, CRASHES, NEEDED, PRB_CALL_IS(SIGBUS), PRB_CALL_ANY, PRB_CALL_ANY,   \
	     PRB_CALL_IS(8))                                                                   \
	CALL(rt_sigaction, CRASHES, NEEDED, PRB_CALL_IS(SIGFPE), PRB_CALL_ANY, PRB_CALL_ANY,   \
	     PRB_CALL_IS(8))                                                                   \
	CALL(rt_sigaction, CRASHES, NEEDED, PRB_CALL_IS(SIGSEGV), PRB_CALL_ANY, PRB_CALL_ANY,  \
	     PRB_CALL_IS(8))                                                                   \
	CALL(madvise, CRASHES, MAY_FAIL, PRB_CALL_POINTER, PRB_CALL_BYTES,                     \
	     PRB_CALL_IS(MADV_DONTDUMP))                                                       \
	CALL(futex, CRASHES, MAY_FAIL, PRB_CALL_POINTER, PRB_CALL_IS(PRB_CALL_WAIT_SHARED))    \
	CALL(futex, CRASHES, MAY_FAIL, PRB_CALL_POINTER, PRB_CALL_IS(PRB_CALL_WAKE_SHARED))    \
	CALL(openat, CRASHES, MAY_FAIL, PRB_CALL_FD, PRB_CALL_POINTER, PRB_CALL_IS(O_CLOEXEC)) \
	CALL(prctl, CRASHES, MAY_FAIL, PRB_CALL_IS(PR_SET_PTRACER))                            \
	CALL(prctl, CRASHES, MAY_FAIL, PRB_CALL_IS(PR_SET_PDEATHSIG), PRB_CALL_IS(SIGKILL))    \
	CALL(wait4, CRASHES, MAY_FAIL, PRB_CALL_ANY, PRB_CALL_POINTER,                         \
	     PRB_CALL_IS((uint32_t)__WALL | WNOHANG))                                          \
	CALL(wait4, CRASHES, MAY_FAIL, PRB_CALL_ANY, PRB_CALL_IS(0),                           \
	     PRB_CALL_IS((uint32_t)__WALL))                                                    \
	CALL(kill, CRASHES, MAY_FAIL, PRB_CALL_ANY, PRB_CALL_IS(SIGKILL))                      \
	CALL(rt_tgsigqueueinfo, CRASHES, MAY_FAIL)                                             \
	CALL(ptrace, CRASHES, MAY_FAIL, PRB_CALL_IS(PTRACE_SEIZE))                             \
	CALL(ptrace, CRASHES, MAY_FAIL, PRB_CALL_IS(PTRACE_INTERRUPT))                         \
	CALL(ptrace, CRASHES, MAY_FAIL, PRB_CALL_IS(PTRACE_GETREGSET))                         \
	CALL(ptrace, CRASHES, MAY_FAIL, PRB_CALL_IS(PTRACE_DETACH))                            \
	CALL(close_range, CRASHES, MAY_FAIL, PRB_CALL_IS(3), PRB_CALL_IS(~0u), PRB_CALL_IS(0)) \
	CALL(clock_gettime, CRASHES, MAY_FAIL, PRB_CALL_IS(CLOCK_REALTIME), PRB_CALL_POINTER)  \
	CALL(clock_gettime, CRASHES, MAY_FAIL, PRB_CALL_IS(CLOCK_MONOTONIC), PRB_CALL_POINTER) \
	CALL(pread64, CRASHES, MAY_FAIL, PRB_CALL_FD)                                          \
	CALL(lseek, CRASHES, MAY_FAIL, PRB_CALL_FD, PRB_CALL_IS(0), PRB_CALL_IS(SEEK_SET))     \
	CALL(fchmod, CRASHES, MAY_FAIL, PRB_CALL_FD, PRB_CALL_FROM(0, 0777))                   \
	CALL(ftruncate, CRASHES, MAY_FAIL, PRB_CALL_FD)                                        \
	CALL(renameat2, CRASHES, MAY_FAIL, PRB_CALL_FD, PRB_CALL_POINTER, PRB_CALL_FD,         \
	     PRB_CALL_POINTER, PRB_CALL_IS(0))                                                 \
	CALL(faccessat2, CRASHES, MAY_FAIL, PRB_CALL_IS(AT_FDCWD), PRB_CALL_POINTER,           \
	     PRB_CALL_IS(W_OK), PRB_CALL_IS(AT_EACCESS))                                       \
	CALL(faccessat, CRASHES, MAY_FAIL, PRB_CALL_IS(AT_FDCWD), PRB_CALL_POINTER,            \
	     PRB_CALL_IS(W_OK))                                                                \
	CALL(write, CRASHES, MAY_FAIL, PRB_CALL_IS(2))                                         \
	CALL(exit_group, CRASHES, MAY_FAIL)

/* Calls that younger machines lack. */
#ifdef __x86_64__
#define PRB_CALLS_OF_MACHINE(CALL)                                                               \
	CALL(poll, SERVES, NEEDED, PRB_CALL_ANY, PRB_CALL_POLLED, PRB_CALL_FROM(0, INT_MAX))     \
	CALL(poll, SERVES, NEEDED, PRB_CALL_ANY, PRB_CALL_POLLED, PRB_CALL_IS(-1))               \
	CALL(chmod, SERVES, NEEDED, PRB_CALL_POINTER, PRB_CALL_IS(0600))                         \
	CALL(unlink, SERVES, MAY_FAIL, PRB_CALL_POINTER)                                         \
	CALL(mkdir, SERVES, MAY_FAIL, PRB_CALL_POINTER, PRB_CALL_FROM(0, 0777))                  \
	CALL(arch_prctl, CRASHES, MAY_FAIL, PRB_CALL_IS(0x1003 /* ARCH_GET_FS */),               \
	     PRB_CALL_POINTER)                                                                   \
	CALL(readlink, SERVES, MAY_FAIL, PRB_CALL_POINTER)                                       \
	CALL(open, MUSL, NEEDED, PRB_CALL_POINTER, PRB_CALL_IS(O_CLOEXEC))                       \
	CALL(open, MUSL, NEEDED, PRB_CALL_POINTER, PRB_CALL_IS(O_CLOEXEC | PRB_CALL_LARGE_FILE)) \
	CALL(stat, MUSL, NEEDED, PRB_CALL_POINTER)                                               \
	CALL(stat, OLD, NEEDED, PRB_CALL_POINTER)                                                \
	CALL(open, OLDEST, NEEDED, PRB_CALL_POINTER, PRB_CALL_IS(O_CLOEXEC))
#else
#define PRB_CALLS_OF_MACHINE(CALL)                                                        \
	CALL(fchmodat, SERVES, NEEDED, PRB_CALL_ANY, PRB_CALL_POINTER, PRB_CALL_IS(0600)) \
	CALL(readlinkat, SERVES, MAY_FAIL, PRB_CALL_ANY, PRB_CALL_POINTER)
#endif

#define PRB_CALLS_ON_MUSL(CALL)                                                                    \
	CALL(clone, MUSL, NEEDED, PRB_CALL_IS(PRB_CALL_CLONE_MUSL))                                \
	CALL(membarrier, MUSL, MAY_FAIL)                                                           \
	CALL(mmap, MUSL, NEEDED, PRB_CALL_ANY, PRB_CALL_BYTES, PRB_CALL_IS(PROT_READ),             \
	     PRB_CALL_IS(MAP_PRIVATE), PRB_CALL_FD, PRB_CALL_ANY)                                  \
	CALL(mmap, MUSL, NEEDED, PRB_CALL_ANY, PRB_CALL_BYTES, PRB_CALL_IS(PROT_READ),             \
	     PRB_CALL_IS(MAP_PRIVATE | MAP_FIXED), PRB_CALL_FD, PRB_CALL_ANY)                      \
	CALL(mmap, MUSL, NEEDED, PRB_CALL_ANY, PRB_CALL_BYTES, PRB_CALL_IS(PROT_READ | PROT_EXEC), \
	     PRB_CALL_IS(MAP_PRIVATE | MAP_FIXED), PRB_CALL_FD, PRB_CALL_ANY)                      \
	CALL(mmap, MUSL, NEEDED, PRB_CALL_ANY, PRB_CALL_BYTES,                                     \
	     PRB_CALL_IS(PROT_READ | PROT_WRITE), PRB_CALL_IS(MAP_PRIVATE | MAP_FIXED),            \
	     PRB_CALL_FD, PRB_CALL_ANY)                                                            \
	CALL(openat, MUSL, NEEDED, PRB_CALL_IS(AT_FDCWD), PRB_CALL_POINTER,                        \
	     PRB_CALL_IS(O_CLOEXEC | O_DIRECTORY | O_NOFOLLOW | PRB_CALL_LARGE_FILE))

#define PRB_CALLS_ON_OLD(CALL)                                                        \
	CALL(futex, OLD, NEEDED, PRB_CALL_POINTER, PRB_CALL_IS(PRB_CALL_WAIT_SHARED)) \
	CALL(futex, OLDEST, NEEDED, PRB_CALL_POINTER, PRB_CALL_IS(PRB_CALL_REQUEUE))  \
	CALL(futex, OLDEST, NEEDED, PRB_CALL_POINTER, PRB_CALL_IS(PRB_CALL_WAKE_OP))

#define PRB_CALLS(CALL)         \
	PRB_CALLS_LOADING(CALL) \
	PRB_CALLS_ON_MUSL(CALL) \
	PRB_CALLS_ON_OLD(CALL)  \
	PRB_CALLS_SERVING(CALL) PRB_CALLS_CRASHING(CALL) PRB_CALLS_OF_MACHINE(CALL)

#endif

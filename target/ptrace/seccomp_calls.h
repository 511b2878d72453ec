/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file All system calls that are made in a program because a library is loaded into it: what its
 * seccomp filters have to allow before anything is done there.
 *
 * What is here is what was seen: tests/live/injector/test_faults_filters.py watches programs under
 * every command that loads the agent, and fails if one of the calls is missing here.
 */
#ifndef PRB_TARGET_PTRACE_SECCOMP_CALLS_H
#define PRB_TARGET_PTRACE_SECCOMP_CALLS_H

#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/** Who makes calls, as a set of bits: which depends on the C library too. */
enum prb_call_maker {
	PRB_CALL_LOADS = 1 << 0,   /**< loading any library */
	PRB_CALL_SERVES = 1 << 1,  /**< the agent, and the program's threads in its code */
	PRB_CALL_MUSL = 1 << 2,	   /**< either of them, on musl */
	PRB_CALL_OLD = 1 << 3,	   /**< either of them, on a glibc before 2.33 */
	PRB_CALL_OLDEST = 1 << 4,  /**< ... before 2.26 */
	PRB_CALL_CRASHES = 1 << 5, /**< the agent, if it is to write crash records */
};

/*
 * Values that stand for all of their kind, as a filter may tell one kind from another; any other
 * value stands for itself.
 */
enum {
	PRB_CALL_DESCRIPTOR = 1000, /**< from 3 on */
	PRB_CALL_WHILE = 5000,	    /**< a wait with a limit, in milliseconds */
	PRB_CALL_MANY = 18,	    /**< up to so many descriptors to poll */
	PRB_CALL_SMALL = 8192,	    /**< up to PRB_CALL_SMALL_MAX bytes */
	PRB_CALL_LARGE = 128 << 20, /**< more, as glibc reserves for the heap of a thread */
	PRB_CALL_SOME = 0x7fff0000, /**< a pointer that is not NULL */
	PRB_CALL_SMALL_MAX = 1 << 20,
};
/** The usual flags of pthread_create(). */
enum { PRB_CALL_CLONE = 0x3d0f00, PRB_CALL_CLONE_MUSL = 0x7d0f00 };
/** Those of the child that writes a crash record. */
enum { PRB_CALL_CLONE_RECORD = 0xa00300 };
/** What futex() does: with memory of one process, or also of others. */
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
/** What musl opens all with. */
enum { PRB_CALL_LARGE_FILE = 0100000 };

/*
 * CALL(name, maker, may fail, deciding arguments, arguments...): a call that may fail has something
 * else in its place. Arguments of which others were not seen decide what the call does; a filter
 * may look at each. They are told by their digits: 1 is the first, 35 are the third and the fifth,
 * 0 none. A call is made with all that the rows of its name have.
 */
#define PRB_CALLS_LOADING(CALL)                                                                    \
	CALL(mmap, LOADS, false, 234, 0, PRB_CALL_SMALL, PROT_READ | PROT_WRITE,                   \
	     MAP_PRIVATE | MAP_ANONYMOUS, -1)                                                      \
	CALL(mmap, LOADS, false, 234, 0, PRB_CALL_LARGE, PROT_READ | PROT_WRITE,                   \
	     MAP_PRIVATE | MAP_ANONYMOUS, -1)                                                      \
	CALL(mmap, LOADS, false, 234, 0, PRB_CALL_SMALL, PROT_READ | PROT_WRITE,                   \
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1)                                      \
	CALL(mmap, LOADS, false, 234, 0, PRB_CALL_LARGE, PROT_READ | PROT_WRITE,                   \
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1)                                      \
	CALL(mmap, LOADS, false, 234, 0, PRB_CALL_SMALL, PROT_NONE,                                \
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1)                                      \
	CALL(mmap, LOADS, false, 234, 0, PRB_CALL_LARGE, PROT_NONE,                                \
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1)                                      \
	CALL(mmap, LOADS, false, 234, 0, PRB_CALL_SMALL, PROT_NONE,                                \
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1)                                          \
	CALL(mmap, LOADS, false, 234, 0, PRB_CALL_LARGE, PROT_NONE,                                \
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1)                                          \
	CALL(mmap, LOADS, false, 234, 0, PRB_CALL_SMALL, PROT_READ | PROT_WRITE,                   \
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1)                                          \
	CALL(mmap, LOADS, false, 234, 0, PRB_CALL_LARGE, PROT_READ | PROT_WRITE,                   \
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1)                                          \
	CALL(mmap, LOADS, false, 234, 0, PRB_CALL_SMALL, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,   \
	     -1)                                                                                   \
	CALL(mmap, LOADS, false, 234, 0, PRB_CALL_LARGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,   \
	     -1)                                                                                   \
	CALL(mmap, LOADS, false, 234, PRB_CALL_SOME, PRB_CALL_SMALL, PROT_READ | PROT_WRITE,       \
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1)                                          \
	CALL(mmap, LOADS, false, 234, PRB_CALL_SOME, PRB_CALL_LARGE, PROT_READ | PROT_WRITE,       \
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1)                                          \
	CALL(mmap, LOADS, false, 234, 0, PRB_CALL_SMALL, PROT_READ | PROT_EXEC,                    \
	     MAP_PRIVATE | MAP_ANONYMOUS, -1)                                                      \
	CALL(mmap, LOADS, false, 234, 0, PRB_CALL_SMALL, PROT_READ, MAP_PRIVATE | MAP_DENYWRITE,   \
	     PRB_CALL_DESCRIPTOR)                                                                  \
	CALL(mmap, LOADS, false, 234, 0, PRB_CALL_LARGE, PROT_READ, MAP_PRIVATE | MAP_DENYWRITE,   \
	     PRB_CALL_DESCRIPTOR)                                                                  \
	CALL(mmap, LOADS, false, 234, PRB_CALL_SOME, PRB_CALL_SMALL, PROT_READ,                    \
	     MAP_PRIVATE | MAP_FIXED | MAP_DENYWRITE, PRB_CALL_DESCRIPTOR)                         \
	CALL(mmap, LOADS, false, 234, PRB_CALL_SOME, PRB_CALL_SMALL, PROT_READ | PROT_EXEC,        \
	     MAP_PRIVATE | MAP_FIXED | MAP_DENYWRITE, PRB_CALL_DESCRIPTOR)                         \
	CALL(mmap, LOADS, false, 234, PRB_CALL_SOME, PRB_CALL_SMALL, PROT_READ | PROT_WRITE,       \
	     MAP_PRIVATE | MAP_FIXED | MAP_DENYWRITE, PRB_CALL_DESCRIPTOR)                         \
	CALL(mprotect, LOADS, true, 23, PRB_CALL_SOME, PRB_CALL_SMALL, PROT_READ | PROT_EXEC)      \
	CALL(mprotect, LOADS, false, 23, PRB_CALL_SOME, PRB_CALL_SMALL, PROT_READ | PROT_WRITE)    \
	CALL(mprotect, LOADS, false, 23, PRB_CALL_SOME, PRB_CALL_LARGE, PROT_READ | PROT_WRITE)    \
	CALL(mprotect, LOADS, false, 23, PRB_CALL_SOME, PRB_CALL_SMALL, PROT_READ)                 \
	CALL(munmap, LOADS, false, 2, PRB_CALL_SOME, PRB_CALL_SMALL)                               \
	CALL(munmap, LOADS, false, 2, PRB_CALL_SOME, PRB_CALL_LARGE)                               \
	CALL(ppoll, LOADS, false, 0)                                                               \
	CALL(restart_syscall, LOADS, false, 0)                                                     \
	CALL(rt_sigreturn, LOADS, false, 0)                                                        \
	CALL(rt_sigprocmask, LOADS, false, 1, SIG_BLOCK, PRB_CALL_SOME, 0, 8)                      \
	CALL(rt_sigprocmask, LOADS, false, 1, SIG_UNBLOCK, PRB_CALL_SOME, 0, 8)                    \
	CALL(rt_sigprocmask, LOADS, false, 1, SIG_SETMASK, PRB_CALL_SOME, 0, 8)                    \
	CALL(rt_sigprocmask, LOADS, false, 1, SIG_BLOCK, 0, PRB_CALL_SOME, 8)                      \
	CALL(rt_sigaction, LOADS, false, 1, 33, PRB_CALL_SOME, 0, 8)                               \
	CALL(clone, LOADS, false, 1, PRB_CALL_CLONE)                                               \
	CALL(nanosleep, LOADS, false, 1, PRB_CALL_SOME)                                            \
	CALL(futex, LOADS, false, 2, PRB_CALL_SOME, PRB_CALL_WAIT)                                 \
	CALL(futex, LOADS, false, 2, PRB_CALL_SOME, PRB_CALL_WAKE, 1)                              \
	CALL(futex, LOADS, false, 2, PRB_CALL_SOME, PRB_CALL_WAIT_UNTIL)                           \
	CALL(futex, LOADS, false, 2, PRB_CALL_SOME, PRB_CALL_WAIT_UNTIL_TIME)                      \
	CALL(futex, LOADS, false, 2, PRB_CALL_SOME, PRB_CALL_WAIT_END)                             \
	CALL(openat, LOADS, false, 13, AT_FDCWD, PRB_CALL_SOME, O_CLOEXEC)                         \
	CALL(newfstatat, LOADS, false, 14, AT_FDCWD, PRB_CALL_SOME, PRB_CALL_SOME, 0)              \
	CALL(newfstatat, LOADS, false, 14, AT_FDCWD, PRB_CALL_SOME, PRB_CALL_SOME,                 \
	     AT_SYMLINK_NOFOLLOW)                                                                  \
	CALL(newfstatat, LOADS, false, 14, PRB_CALL_DESCRIPTOR, PRB_CALL_SOME, PRB_CALL_SOME,      \
	     AT_EMPTY_PATH)                                                                        \
	CALL(newfstatat, LOADS, false, 14, PRB_CALL_DESCRIPTOR, PRB_CALL_SOME, PRB_CALL_SOME,      \
	     AT_SYMLINK_NOFOLLOW)                                                                  \
	CALL(fstat, LOADS, false, 1, PRB_CALL_DESCRIPTOR)                                          \
	CALL(read, LOADS, false, 1, PRB_CALL_DESCRIPTOR, PRB_CALL_SOME, PRB_CALL_SMALL)            \
	CALL(read, LOADS, false, 1, PRB_CALL_DESCRIPTOR, PRB_CALL_SOME, 64)                        \
	CALL(close, LOADS, false, 1, PRB_CALL_DESCRIPTOR)                                          \
	CALL(exit, LOADS, false, 0)                                                                \
	CALL(gettid, LOADS, false, 0)                                                              \
	CALL(clone3, LOADS, true, 0, PRB_CALL_SOME, 88)                                            \
	CALL(brk, LOADS, false, 0)                                                                 \
	CALL(madvise, LOADS, true, 23, PRB_CALL_SOME, PRB_CALL_SMALL, MADV_DONTNEED)               \
	CALL(madvise, LOADS, true, 23, PRB_CALL_SOME, PRB_CALL_LARGE, MADV_DONTNEED)               \
	CALL(madvise, LOADS, true, 23, PRB_CALL_SOME, PRB_CALL_SMALL,                              \
	     102 /* MADV_GUARD_INSTALL */)                                                         \
	CALL(madvise, LOADS, true, 23, PRB_CALL_SOME, PRB_CALL_SMALL, 103 /* MADV_GUARD_REMOVE */) \
	CALL(set_robust_list, LOADS, true, 2, PRB_CALL_SOME, 24)                                   \
	CALL(rseq, LOADS, false, 3, PRB_CALL_SOME, 32, 0)                                          \
	CALL(memfd_create, LOADS, true, 0, PRB_CALL_SOME)                                          \
	CALL(write, LOADS, true, 1, PRB_CALL_DESCRIPTOR)

#define PRB_CALLS_SERVING(CALL)                                                                    \
	CALL(socket, SERVES, false, 12, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK)       \
	CALL(socket, SERVES, false, 12, AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK)        \
	CALL(bind, SERVES, false, 1, PRB_CALL_DESCRIPTOR, PRB_CALL_SOME, 34)                       \
	CALL(listen, SERVES, false, 12, PRB_CALL_DESCRIPTOR, 16)                                   \
	CALL(accept4, SERVES, false, 1234, PRB_CALL_DESCRIPTOR, 0, 0,                              \
	     SOCK_CLOEXEC | SOCK_NONBLOCK)                                                         \
	CALL(getsockname, SERVES, false, 1, PRB_CALL_DESCRIPTOR, PRB_CALL_SOME, PRB_CALL_SOME)     \
	CALL(getsockopt, SERVES, false, 123, PRB_CALL_DESCRIPTOR, SOL_SOCKET, SO_PEERCRED,         \
	     PRB_CALL_SOME, PRB_CALL_SOME)                                                         \
	CALL(sendto, SERVES, false, 145, PRB_CALL_DESCRIPTOR, PRB_CALL_SOME, 64,                   \
	     MSG_NOSIGNAL | MSG_DONTWAIT, 0, 0)                                                    \
	CALL(sendto, SERVES, false, 145, PRB_CALL_DESCRIPTOR, PRB_CALL_SOME, PRB_CALL_SMALL,       \
	     MSG_NOSIGNAL | MSG_DONTWAIT, 0, 0)                                                    \
	CALL(sendto, SERVES, false, 145, PRB_CALL_DESCRIPTOR, PRB_CALL_SOME, 1,                    \
	     MSG_NOSIGNAL | MSG_DONTWAIT, PRB_CALL_SOME, 8)                                        \
	CALL(recvfrom, SERVES, false, 145, PRB_CALL_DESCRIPTOR, PRB_CALL_SOME, 64, MSG_DONTWAIT,   \
	     0, 0)                                                                                 \
	CALL(recvfrom, SERVES, false, 145, PRB_CALL_DESCRIPTOR, PRB_CALL_SOME, 2 * PRB_CALL_SMALL, \
	     MSG_DONTWAIT, 0, 0)                                                                   \
	CALL(shutdown, SERVES, false, 12, PRB_CALL_DESCRIPTOR, SHUT_RDWR)                          \
	CALL(fcntl, SERVES, true, 2, PRB_CALL_DESCRIPTOR, F_DUPFD_CLOEXEC, 200)                    \
	CALL(fcntl, SERVES, true, 2, PRB_CALL_DESCRIPTOR, F_GETFL)                                 \
	CALL(fcntl, SERVES, true, 2, PRB_CALL_DESCRIPTOR, F_SETFD, FD_CLOEXEC)                     \
	CALL(ioctl, SERVES, true, 12, PRB_CALL_DESCRIPTOR, 0x5401 /* TCGETS */, PRB_CALL_SOME)     \
	CALL(lseek, SERVES, true, 13, PRB_CALL_DESCRIPTOR, 0, SEEK_CUR)                            \
	CALL(getpid, SERVES, false, 0)                                                             \
	CALL(geteuid, SERVES, false, 0)                                                            \
	CALL(tgkill, SERVES, true, 3, 1, 1, 0)                                                     \
	CALL(mmap, SERVES, true, 234, 0, PRB_CALL_LARGE, PROT_READ | PROT_WRITE, MAP_SHARED,       \
	     PRB_CALL_DESCRIPTOR)                                                                  \
	CALL(mprotect, SERVES, true, 23, PRB_CALL_SOME, PRB_CALL_SMALL, PROT_NONE)                 \
	CALL(madvise, SERVES, true, 23, PRB_CALL_SOME, PRB_CALL_SMALL, MADV_WIPEONFORK)            \
	CALL(membarrier, SERVES, true, 0)                                                          \
	CALL(getrandom, SERVES, true, 0)                                                           \
	CALL(prctl, SERVES, true, 1, PR_SET_NAME, PRB_CALL_SOME)                                   \
	CALL(prctl, SERVES, true, 12, PR_SET_TIMERSLACK, 1)                                        \
	CALL(sigaltstack, SERVES, true, 0)                                                         \
	CALL(sched_getaffinity, SERVES, true, 0)                                                   \
	CALL(process_vm_readv, SERVES, true, 0, 0, PRB_CALL_SOME, 1, PRB_CALL_SOME, 1, 0)          \
	CALL(fallocate, SERVES, true, 12, PRB_CALL_DESCRIPTOR, 0)                                  \
	CALL(pwrite64, SERVES, true, 1, PRB_CALL_DESCRIPTOR)                                       \
	CALL(getdents64, SERVES, false, 1, PRB_CALL_DESCRIPTOR)                                    \
	CALL(linkat, SERVES, true, 5, PRB_CALL_DESCRIPTOR, PRB_CALL_SOME, PRB_CALL_DESCRIPTOR,     \
	     PRB_CALL_SOME, 0)                                                                     \
	CALL(mkdirat, SERVES, true, 13, AT_FDCWD, PRB_CALL_SOME, 0700)                             \
	CALL(mkdirat, SERVES, true, 13, PRB_CALL_DESCRIPTOR, PRB_CALL_SOME, 0700)                  \
	CALL(unlinkat, SERVES, true, 13, PRB_CALL_DESCRIPTOR, PRB_CALL_SOME, 0)                    \
	CALL(unlinkat, SERVES, true, 13, PRB_CALL_DESCRIPTOR, PRB_CALL_SOME, AT_REMOVEDIR)         \
	CALL(openat, SERVES, false, 13, AT_FDCWD, PRB_CALL_SOME,                                   \
	     O_CLOEXEC | O_DIRECTORY | O_NONBLOCK)                                                 \
	CALL(openat, SERVES, false, 13, AT_FDCWD, PRB_CALL_SOME, O_CLOEXEC | O_DIRECTORY | O_PATH) \
	CALL(openat, SERVES, false, 13, PRB_CALL_DESCRIPTOR, PRB_CALL_SOME,                        \
	     O_CLOEXEC | O_DIRECTORY | O_PATH)                                                     \
	CALL(openat, SERVES, false, 13, PRB_CALL_DESCRIPTOR, PRB_CALL_SOME,                        \
	     O_CLOEXEC | O_NOFOLLOW | O_PATH)                                                      \
	CALL(openat, SERVES, false, 13, PRB_CALL_DESCRIPTOR, PRB_CALL_SOME,                        \
	     O_CLOEXEC | O_DIRECTORY)                                                              \
	CALL(openat, SERVES, false, 13, PRB_CALL_DESCRIPTOR, PRB_CALL_SOME,                        \
	     O_CLOEXEC | O_DIRECTORY | O_NOFOLLOW)                                                 \
	CALL(fstatfs, SERVES, true, 1, PRB_CALL_DESCRIPTOR)                                        \
	CALL(readlinkat, SERVES, true, 1, PRB_CALL_DESCRIPTOR)                                     \
	CALL(openat, SERVES, false, 13, PRB_CALL_DESCRIPTOR, PRB_CALL_SOME,                        \
	     O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)                                                  \
	CALL(openat, SERVES, false, 13, PRB_CALL_DESCRIPTOR, PRB_CALL_SOME,                        \
	     O_CLOEXEC | O_NOFOLLOW | O_RDWR)                                                      \
	CALL(openat, SERVES, false, 13, PRB_CALL_DESCRIPTOR, PRB_CALL_SOME,                        \
	     O_CLOEXEC | O_NOFOLLOW | O_RDWR | PRB_CALL_NEW_FILE, 0600)

/* In a process that dies, and in the child that writes the record of it. */
#define PRB_CALLS_CRASHING(CALL)                                                                   \
	CALL(clone, CRASHES, true, 1, PRB_CALL_CLONE_RECORD)                                       \
	CALL(rt_sigaction, CRASHES, false, 1, SIGILL, PRB_CALL_SOME, 0, 8)                         \
	CALL(rt_sigaction, CRASHES, false, 1, SIGABRT, PRB_CALL_SOME, 0, 8)                        \
	CALL(rt_sigaction, CRASHES, false, 1, SIGBUS, PRB_CALL_SOME, 0, 8)                         \
	CALL(rt_sigaction, CRASHES, false, 1, SIGFPE, PRB_CALL_SOME, 0, 8)                         \
	CALL(rt_sigaction, CRASHES, false, 1, SIGSEGV, PRB_CALL_SOME, 0, 8)                        \
	CALL(rt_sigaction, CRASHES, false, 1, SIGSEGV, 0, PRB_CALL_SOME, 8)                        \
	CALL(madvise, CRASHES, true, 23, PRB_CALL_SOME, PRB_CALL_LARGE, MADV_DONTDUMP)             \
	CALL(futex, CRASHES, true, 2, PRB_CALL_SOME, PRB_CALL_WAIT_SHARED, 1, PRB_CALL_SOME)       \
	CALL(futex, CRASHES, true, 2, PRB_CALL_SOME, PRB_CALL_WAKE_SHARED, 1)                      \
	CALL(openat, CRASHES, true, 13, PRB_CALL_DESCRIPTOR, PRB_CALL_SOME, O_CLOEXEC)             \
	CALL(openat, CRASHES, true, 13, AT_FDCWD, PRB_CALL_SOME, O_CLOEXEC | O_DIRECTORY)          \
	CALL(prctl, CRASHES, true, 1, PR_SET_PTRACER)                                              \
	CALL(prctl, CRASHES, true, 12, PR_SET_PDEATHSIG, SIGKILL)                                  \
	CALL(wait4, CRASHES, true, 3, 1, PRB_CALL_SOME, (uint32_t)__WALL | WNOHANG)                \
	CALL(wait4, CRASHES, true, 3, 1, 0, (uint32_t)__WALL)                                      \
	CALL(kill, CRASHES, true, 0)                                                               \
	CALL(rt_tgsigqueueinfo, CRASHES, true, 0)                                                  \
	CALL(ptrace, CRASHES, true, 1, PTRACE_SEIZE, 1, 0)                                         \
	CALL(ptrace, CRASHES, true, 1, PTRACE_INTERRUPT, 1, 0)                                     \
	CALL(ptrace, CRASHES, true, 1, PTRACE_GETREGSET, 1, 1)                                     \
	CALL(ptrace, CRASHES, true, 1, PTRACE_DETACH, 1, 0)                                        \
	CALL(close_range, CRASHES, true, 1, 3, ~0u, 0)                                             \
	CALL(clock_gettime, CRASHES, true, 1, CLOCK_REALTIME)                                      \
	CALL(clock_gettime, CRASHES, true, 1, CLOCK_MONOTONIC)                                     \
	CALL(pread64, CRASHES, true, 1, PRB_CALL_DESCRIPTOR)                                       \
	CALL(lseek, CRASHES, true, 13, PRB_CALL_DESCRIPTOR, 0, SEEK_SET)                           \
	CALL(fchmod, CRASHES, true, 1, PRB_CALL_DESCRIPTOR)                                        \
	CALL(ftruncate, CRASHES, true, 1, PRB_CALL_DESCRIPTOR)                                     \
	CALL(renameat2, CRASHES, true, 5, PRB_CALL_DESCRIPTOR, PRB_CALL_SOME, PRB_CALL_DESCRIPTOR, \
	     PRB_CALL_SOME, 0)                                                                     \
	CALL(faccessat2, CRASHES, true, 134, AT_FDCWD, PRB_CALL_SOME, W_OK, AT_EACCESS)            \
	CALL(faccessat, CRASHES, true, 13, AT_FDCWD, PRB_CALL_SOME, W_OK)                          \
	CALL(write, CRASHES, true, 1, 2)                                                           \
	CALL(exit_group, CRASHES, true, 0)

/* What younger machines have one call less for. */
#ifdef __x86_64__
#define PRB_CALLS_OF_MACHINE(CALL)                                                  \
	CALL(poll, SERVES, false, 23, PRB_CALL_SOME, 1, PRB_CALL_WHILE)             \
	CALL(poll, SERVES, false, 23, PRB_CALL_SOME, 1, -1)                         \
	CALL(poll, SERVES, false, 23, PRB_CALL_SOME, PRB_CALL_MANY, PRB_CALL_WHILE) \
	CALL(poll, SERVES, false, 23, PRB_CALL_SOME, PRB_CALL_MANY, -1)             \
	CALL(poll, SERVES, false, 23, 0, 0, PRB_CALL_WHILE)                         \
	CALL(chmod, SERVES, false, 2, PRB_CALL_SOME, 0600)                          \
	CALL(unlink, SERVES, true, 0)                                               \
	CALL(mkdir, SERVES, true, 0)                                                \
	CALL(arch_prctl, CRASHES, true, 1, 0x1003 /* ARCH_GET_FS */)                \
	CALL(readlink, SERVES, true, 0)                                             \
	CALL(open, MUSL, false, 2, PRB_CALL_SOME, O_CLOEXEC)                        \
	CALL(open, MUSL, false, 2, PRB_CALL_SOME, O_CLOEXEC | PRB_CALL_LARGE_FILE)  \
	CALL(stat, MUSL, false, 0)                                                  \
	CALL(stat, OLD, false, 0)                                                   \
	CALL(open, OLDEST, false, 2, PRB_CALL_SOME, O_CLOEXEC)
#else
#define PRB_CALLS_OF_MACHINE(CALL)       \
	CALL(fchmodat, SERVES, false, 0) \
	CALL(readlinkat, SERVES, true, 0)
#endif

#define PRB_CALLS_ON_MUSL(CALL)                                                             \
	CALL(clone, MUSL, false, 1, PRB_CALL_CLONE_MUSL)                                    \
	CALL(membarrier, MUSL, true, 0)                                                     \
	CALL(mmap, MUSL, false, 234, 0, PRB_CALL_SMALL, PROT_READ, MAP_PRIVATE,             \
	     PRB_CALL_DESCRIPTOR)                                                           \
	CALL(mmap, MUSL, false, 234, 0, PRB_CALL_LARGE, PROT_READ, MAP_PRIVATE,             \
	     PRB_CALL_DESCRIPTOR)                                                           \
	CALL(mmap, MUSL, false, 234, PRB_CALL_SOME, PRB_CALL_SMALL, PROT_READ,              \
	     MAP_PRIVATE | MAP_FIXED, PRB_CALL_DESCRIPTOR)                                  \
	CALL(mmap, MUSL, false, 234, PRB_CALL_SOME, PRB_CALL_SMALL, PROT_READ | PROT_EXEC,  \
	     MAP_PRIVATE | MAP_FIXED, PRB_CALL_DESCRIPTOR)                                  \
	CALL(mmap, MUSL, false, 234, PRB_CALL_SOME, PRB_CALL_SMALL, PROT_READ | PROT_WRITE, \
	     MAP_PRIVATE | MAP_FIXED, PRB_CALL_DESCRIPTOR)                                  \
	CALL(mmap, MUSL, false, 234, PRB_CALL_SOME, PRB_CALL_LARGE, PROT_READ | PROT_WRITE, \
	     MAP_PRIVATE | MAP_FIXED, PRB_CALL_DESCRIPTOR)                                  \
	CALL(openat, MUSL, false, 13, AT_FDCWD, PRB_CALL_SOME,                              \
	     O_CLOEXEC | O_DIRECTORY | O_NOFOLLOW | PRB_CALL_LARGE_FILE)

#define PRB_CALLS_ON_OLD(CALL)                                             \
	CALL(futex, OLD, false, 2, PRB_CALL_SOME, PRB_CALL_WAIT_SHARED, 1) \
	CALL(futex, OLDEST, false, 2, PRB_CALL_SOME, PRB_CALL_REQUEUE, 1)  \
	CALL(futex, OLDEST, false, 2, PRB_CALL_SOME, PRB_CALL_WAKE_OP, 1)

#define PRB_CALLS(CALL)         \
	PRB_CALLS_LOADING(CALL) \
	PRB_CALLS_ON_MUSL(CALL) \
	PRB_CALLS_ON_OLD(CALL)  \
	PRB_CALLS_SERVING(CALL) PRB_CALLS_CRASHING(CALL) PRB_CALLS_OF_MACHINE(CALL)

#endif

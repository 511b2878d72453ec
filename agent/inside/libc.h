/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Compatibility with the C library of the process, which may be of any distribution and
 * older than the build machine's.
 *
 * Functions that glibc gave new versions since 2.17 are bound to the old ones, which every later
 * glibc has too; musl does not look at versions. A process of an old glibc that was not linked
 * with libpthread or libdl lacks some: they are weak, and prba_libc_complete() tells.
 */
#ifndef PRB_AGENT_INSIDE_LIBC_H
#define PRB_AGENT_INSIDE_LIBC_H

#include <dlfcn.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#if defined(__GLIBC__) && defined(__x86_64__)
#define PRBA_OLD(name) __asm__(".symver " #name "," #name "@GLIBC_2.2.5")
#elif defined(__GLIBC__) && defined(__aarch64__)
#define PRBA_OLD(name) __asm__(".symver " #name "," #name "@GLIBC_2.17")
#else
#define PRBA_OLD(name) struct prba_no_versions
#endif

PRBA_OLD(pthread_create);
PRBA_OLD(pthread_join);
PRBA_OLD(pthread_attr_setstacksize);
PRBA_OLD(pthread_key_create);
PRBA_OLD(pthread_getspecific);
PRBA_OLD(pthread_setspecific);
PRBA_OLD(dlsym);
PRBA_OLD(dlopen);
PRBA_OLD(dlclose);
#pragma weak pthread_create
#pragma weak pthread_join
#pragma weak pthread_attr_setstacksize
#pragma weak pthread_key_create
#pragma weak pthread_getspecific
#pragma weak pthread_setspecific
#pragma weak dlsym
#pragma weak dlopen
#pragma weak dlclose

static inline bool prba_libc_complete(void)
{
	return pthread_create && pthread_join && pthread_attr_setstacksize && dlsym && dlopen &&
	       dlclose;
}

/** Milliseconds of a clock that only goes forward. */
static inline int64_t prba_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/** Nanoseconds of a clock. */
static inline int64_t prba_clock_ns(int clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/** Sleeps while *word is @p value. */
static inline void prba_wait(_Atomic uint32_t *word, uint32_t value)
{
	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

/** As above, for @p us microseconds at most, 0: for as long as it takes. */
static inline void prba_wait_for(_Atomic uint32_t *word, uint32_t value, uint32_t us)
{
	struct timespec timeout = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};

	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, us ? &timeout : NULL, NULL, 0);
}

/** Changes *word and wakes its waiters. */
static inline void prba_wake(_Atomic uint32_t *word)
{
	__atomic_fetch_add((uint32_t *)word, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

#endif

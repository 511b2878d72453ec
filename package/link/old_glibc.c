/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Binds what is in a wheel to functions that glibc 2.28 has, however new the glibc of the
 * build machine is: the wheel then runs on Debian 10, RHEL 8 and all later ones.
 *
 * Each function is defined here, hidden, so that the static libraries find it as well, and calls
 * the oldest version of itself. Functions that glibc 2.28 lacks are made of system calls. Which
 * ones are needed is what `objdump -T` shows of a build without this file; a test looks at the
 * result.
 *
 * Threading and errors: those of the functions.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#define FIRST "GLIBC_2.2.5"
#define THIRD "GLIBC_2.3.3"
#else
#define FIRST "GLIBC_2.17"
#define THIRD "GLIBC_2.17"
#endif

/* OLD(result, name, version, parameters, arguments) */
#define OLD(result, name, version, parameters, arguments)            \
	__asm__(".symver prb_old_" #name "," #name "@" version);     \
	extern result prb_old_##name parameters;                     \
	result name parameters;                                      \
	__attribute__((visibility("hidden"))) result name parameters \
	{                                                            \
		return prb_old_##name arguments;                     \
	}

#pragma GCC diagnostic ignored "-Wredundant-decls"

OLD(double, exp, FIRST, (double x), (x))
OLD(double, exp2, FIRST, (double x), (x))
OLD(double, log, FIRST, (double x), (x))
OLD(double, log2, FIRST, (double x), (x))
OLD(double, pow, FIRST, (double x, double y), (x, y))
OLD(double, hypot, FIRST, (double x, double y), (x, y))
OLD(void *, dlopen, FIRST, (const char *file, int mode), (file, mode))
OLD(void *, dlsym, FIRST, (void *handle, const char *name), (handle, name))
OLD(int, dlclose, FIRST, (void *handle), (handle))
OLD(char *, dlerror, FIRST, (void), ())
#ifndef PRB_FOR_musl
OLD(int, dladdr1, THIRD, (const void *address, Dl_info *info, void **extra, int flags),
    (address, info, extra, flags))
#endif
OLD(int, pthread_create, FIRST,
    (pthread_t * thread, const pthread_attr_t *attr, void *(*run)(void *), void *argument),
    (thread, attr, run, argument))
OLD(int, pthread_join, FIRST, (pthread_t thread, void **ret), (thread, ret))
OLD(int, pthread_once, FIRST, (pthread_once_t * once, void (*run)(void)), (once, run))
OLD(int, pthread_attr_setstacksize, FIRST, (pthread_attr_t * attr, size_t size), (attr, size))
OLD(int, pthread_condattr_setclock, THIRD, (pthread_condattr_t * attr, clockid_t clock),
    (attr, clock))
OLD(int, pthread_mutexattr_init, FIRST, (pthread_mutexattr_t * attr), (attr))
OLD(int, pthread_mutexattr_destroy, FIRST, (pthread_mutexattr_t * attr), (attr))
OLD(int, pthread_mutexattr_settype, FIRST, (pthread_mutexattr_t * attr, int type), (attr, type))
OLD(int, pthread_mutex_trylock, FIRST, (pthread_mutex_t * mutex), (mutex))
OLD(int, pthread_sigmask, FIRST, (int how, const sigset_t *set, sigset_t *old), (how, set, old))

#define HIDDEN __attribute__((visibility("hidden")))

/* The next three were in librt; the id of a timer that sends a signal is the kernel's. */

HIDDEN int timer_create(clockid_t clock, struct sigevent *event, timer_t *ret)
{
	int number;

	if (syscall(SYS_timer_create, clock, event, &number))
		return -1;
	*ret = (timer_t)(intptr_t)number;
	return 0;
}

HIDDEN int timer_delete(timer_t timer)
{
	return (int)syscall(SYS_timer_delete, (int)(intptr_t)timer);
}

HIDDEN int timer_settime(timer_t timer, int flags, const struct itimerspec *value,
			 struct itimerspec *old)
{
	return (int)syscall(SYS_timer_settime, (int)(intptr_t)timer, flags, value, old);
}

HIDDEN pid_t gettid(void)
{
	return (pid_t)syscall(SYS_gettid);
}

/* The kernel's structure is glibc's on 64-bit machines. */
HIDDEN int fstatat(int folder, const char *path, struct stat *ret, int flags)
{
	return (int)syscall(SYS_newfstatat, folder, path, ret, flags);
}

HIDDEN int stat(const char *path, struct stat *ret)
{
	return fstatat(AT_FDCWD, path, ret, 0);
}

HIDDEN int lstat(const char *path, struct stat *ret)
{
	return fstatat(AT_FDCWD, path, ret, AT_SYMLINK_NOFOLLOW);
}

HIDDEN int fstat(int fd, struct stat *ret)
{
	return (int)syscall(SYS_fstat, fd, ret);
}

HIDDEN int fstatat64(int folder, const char *path, struct stat64 *ret, int flags)
{
	return (int)syscall(SYS_newfstatat, folder, path, ret, flags);
}

HIDDEN int stat64(const char *path, struct stat64 *ret)
{
	return fstatat64(AT_FDCWD, path, ret, 0);
}

HIDDEN int lstat64(const char *path, struct stat64 *ret)
{
	return fstatat64(AT_FDCWD, path, ret, AT_SYMLINK_NOFOLLOW);
}

HIDDEN int fstat64(int fd, struct stat64 *ret)
{
	return (int)syscall(SYS_fstat, fd, ret);
}

HIDDEN const char *strerrordesc_np(int number)
{
	return strerror(number);
}

/** "SEGV" of SIGSEGV. */
HIDDEN const char *sigabbrev_np(int number)
{
	static const char *const names[] = {
		[SIGHUP] = "HUP",	[SIGINT] = "INT",	[SIGQUIT] = "QUIT",
		[SIGILL] = "ILL",	[SIGTRAP] = "TRAP",	[SIGABRT] = "ABRT",
		[SIGBUS] = "BUS",	[SIGFPE] = "FPE",	[SIGKILL] = "KILL",
		[SIGUSR1] = "USR1",	[SIGSEGV] = "SEGV",	[SIGUSR2] = "USR2",
		[SIGPIPE] = "PIPE",	[SIGALRM] = "ALRM",	[SIGTERM] = "TERM",
		[SIGSTKFLT] = "STKFLT", [SIGCHLD] = "CHLD",	[SIGCONT] = "CONT",
		[SIGSTOP] = "STOP",	[SIGTSTP] = "TSTP",	[SIGTTIN] = "TTIN",
		[SIGTTOU] = "TTOU",	[SIGURG] = "URG",	[SIGXCPU] = "XCPU",
		[SIGXFSZ] = "XFSZ",	[SIGVTALRM] = "VTALRM", [SIGPROF] = "PROF",
		[SIGWINCH] = "WINCH",	[SIGPOLL] = "POLL",	[SIGPWR] = "PWR",
		[SIGSYS] = "SYS",
	};

	return number > 0 && (size_t)number < sizeof(names) / sizeof(*names) ? names[number] : NULL;
}

#ifdef PRB_FOR_program
typedef int prb_main(int, char **, char **);
typedef void prb_init(int, char **, char **);

extern prb_init *__preinit_array_start[], *__preinit_array_end[];
extern prb_init *__init_array_start[], *__init_array_end[];
extern void _init(void);

__asm__(".symver prb_old_start,__libc_start_main@" FIRST);
extern int prb_old_start(prb_main *main, int argc, char **argv, prb_init *init, void (*fini)(void),
			 void (*rtld_fini)(void), void *stack_end);
int __libc_start_main(prb_main *main, int argc, char **argv, prb_init *init, void (*fini)(void),
		      void (*rtld_fini)(void), void *stack_end);

/** Before 2.34 the program itself called its constructors. */
static void construct(int argc, char **argv, char **environment)
{
	size_t count = (size_t)(__preinit_array_end - __preinit_array_start);

	for (size_t i = 0; i < count; i++)
		__preinit_array_start[i](argc, argv, environment);
	_init();
	count = (size_t)(__init_array_end - __init_array_start);
	for (size_t i = 0; i < count; i++)
		__init_array_start[i](argc, argv, environment);
}

HIDDEN int __libc_start_main(prb_main *main, int argc, char **argv, prb_init *init,
			     void (*fini)(void), void (*rtld_fini)(void), void *stack_end)
{
	return prb_old_start(main, argc, argv, init ? init : construct, fini, rtld_fini, stack_end);
}
#endif

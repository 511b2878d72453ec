/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Targets that try to harm the injecting user: hostile SHARED KIND FILE
 *
 * In all of them dlopen() returns NULL at once, so that every way to give them the library is
 * tried. KIND:
 *   memfd    memfd_create() returns 0, and descriptor 0 is FILE, opened without any right to it
 *   copies   nothing else
 *   dup      a thread puts FILE in the place of each new descriptor of the process
 *   fork     a thread forks all the time
 *   tid      pthread_create() makes no thread, and claims that FILE, a number, is the new one
 */
#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "fault.h"

#ifdef __x86_64__
/* xor %eax,%eax; ret */
static const uint8_t return_zero[] = {0x31, 0xc0, 0xc3};
#else
/* mov x0, #0; ret */
static const uint32_t return_zero[] = {0xd2800000, 0xd65f03c0};
#endif

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void patch(const char *name, const void *code, size_t length)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	void *function = dlsym(RTLD_DEFAULT, name);
	void *start = (void *)((uintptr_t)function & -page);

	if (!function)
		return;
	if (mprotect(start, 2 * page, PROT_READ | PROT_WRITE | PROT_EXEC))
		fail("mprotect");
	memcpy(function, code, length);
	__builtin___clear_cache(function, (char *)function + length);
	mprotect(start, 2 * page, PROT_READ | PROT_EXEC);
}

/* In all names that the C library has for it. */
static void break_dlopen(void)
{
	patch("dlopen", return_zero, sizeof(return_zero));
	patch("__libc_dlopen_mode", return_zero, sizeof(return_zero));
}

static uint64_t claimed;

/* The mailbox has the number of the thread 104 bytes behind its pthread_t. */
static int claim(uint64_t *thread)
{
	enum { BEHIND = (128 - 24) / sizeof(uint64_t) };

	thread[BEHIND] = claimed;
	return 0;
}

static void break_pthread_create(void)
{
	/* Jumps to the address behind it. */
#ifdef __x86_64__
	uint8_t code[14] = {0xff, 0x25}; /* jmp *0(%rip) */
	const size_t at = 6;
#else
	uint8_t code[16] = {0x50, 0, 0, 0x58, 0, 2, 0x1f, 0xd6}; /* ldr x16, 8; br x16 */
	const size_t at = 8;
#endif
	const uintptr_t target = (uintptr_t)claim;

	memcpy(code + at, &target, sizeof(target));
	patch("pthread_create", code, sizeof(code));
}

static void *fork_all_the_time(void *unused)
{
	(void)unused;
	while (!shared->stop) {
		pid_t child = fork();

		if (!child)
			_exit(0);
		if (child > 0)
			waitpid(child, NULL, 0);
	}
	return NULL;
}

/* A descriptor that needs no right to the file itself. */
static int open_path(const char *path)
{
	int fd = open(path, O_PATH | O_CLOEXEC);

	if (fd < 0)
		fail(path);
	return fd;
}

/* memfd_create() "returns" descriptor 0: an error without a number. */
static void fake_memfd(int fd)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

	if (dup2(fd, 0) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		fail("the filter");
}

static void *replace_descriptors(void *argument)
{
	enum { FIRST = 3, LAST = 16 };
	int fd = *(int *)argument;

	while (!shared->stop)
		for (int i = FIRST; i < LAST; i++)
			if (i != fd && fcntl(i, F_GET_SEALS) >= 0)
				dup2(fd, i);
	return NULL;
}

int main(int argc, char **argv)
{
	static int fd;
	pthread_t thread;

	if (argc < 4)
		return 2;
	fault_open(argv[1]);
	break_dlopen();
	if (!strcmp(argv[2], "memfd")) {
		fd = open_path(argv[3]);
		fake_memfd(fd);
	} else if (!strcmp(argv[2], "dup")) {
		fd = open_path(argv[3]);
		pthread_create(&thread, NULL, replace_descriptors, &fd);
	} else if (!strcmp(argv[2], "fork")) {
		pthread_create(&thread, NULL, fork_all_the_time, NULL);
	} else if (!strcmp(argv[2], "tid")) {
		claimed = strtoul(argv[3], NULL, 10);
		break_pthread_create();
	}
	fault_ready();
	fault_work(5000000);
	return fault_end();
}

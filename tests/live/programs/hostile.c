/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Targets that want to harm whoever injects them: hostile SHARED KIND FILE
 *
 * In all of them dlopen() returns NULL at once, so that every way to give them the library is
 * tried. KIND:
 *   memfd    memfd_create() returns 0, and descriptor 0 is FILE, opened without any right to it
 *   copies   nothing else
 *   dup      a thread puts FILE in the place of each new descriptor of the process
 */
#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "fault.h"

#ifdef __x86_64__
static const uint8_t return_zero[] = {0x31, 0xc0, 0xc3}; /* xor %eax,%eax; ret */
#else
static const uint32_t return_zero[] = {0xd2800000, 0xd65f03c0}; /* mov x0, #0; ret */
#endif

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

/* In all names that the C library has for it. */
static void break_dlopen(void)
{
	static const char *const names[] = {"dlopen", "__libc_dlopen_mode"};
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		void *function = dlsym(RTLD_DEFAULT, names[i]);
		void *start = (void *)((uintptr_t)function & -page);

		if (!function)
			continue;
		if (mprotect(start, 2 * page, PROT_READ | PROT_WRITE | PROT_EXEC))
			fail("mprotect");
		memcpy(function, return_zero, sizeof(return_zero));
		__builtin___clear_cache(function, (char *)function + sizeof(return_zero));
		mprotect(start, 2 * page, PROT_READ | PROT_EXEC);
	}
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
	}
	fault_ready();
	fault_work(5000000);
	return fault_end();
}

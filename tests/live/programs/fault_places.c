/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Targets in unusual states: fault_places SHARED
 * idle|deep|leader|vfork|vfork-thread|shares [siblings]|unload LIBRARY|filter CALL kill|trap|errno
 */
#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "fault.h"

/* Also linked without libdl, where nothing is unloaded. */
#pragma weak dlopen
#pragma weak dlclose

static void work(void)
{
	fault_work(5000000);
}

/* Where the mapping of the stack begins. */
static uintptr_t stack_start(void)
{
	FILE *file = fopen("/proc/self/maps", "r");
	unsigned long start = 0;
	char line[512];

	while (file && fgets(line, sizeof(line), file))
		if (strstr(line, "[stack]"))
			sscanf(line, "%lx", &start);
	if (file)
		fclose(file);
	return start;
}

/* Works so near to the end of its stack, which the kernel extends, that a page is too much. */
static void work_deep(void)
{
	enum { ROOM = 1500 };

	/* Now: printing, and looking up a function for the first time, need more than that. */
	fault_ready();
	nanosleep(&(struct timespec){}, NULL);
	volatile char *down = alloca((uintptr_t)__builtin_frame_address(0) - stack_start() - ROOM);

	*down = 1;
	work();
}

static void *work_and_end(void *unused)
{
	(void)unused;
	fault_ready();
	work();
	exit(fault_end());
}

/* The first thread ends; the process lives on. */
static void leave_leader(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, work_and_end, NULL);
	pthread_exit(NULL);
}

/* Blocks in vfork() until the test stops the child, which counts for it. */
static void stand_in_vfork(void)
{
	volatile pid_t child = vfork();

	if (!child) {
		fault_ready();
		work();
		_exit(0);
	}
	waitpid(child, NULL, 0);
}

static void *work_beside(void *unused)
{
	work();
	return unused;
}

static int work_as_child(void *unused)
{
	(void)unused;
	work();
	_exit(0);
}

/* Two processes with one memory; both work. @flags: CLONE_PARENT makes them siblings. */
static void share_memory(int flags)
{
	enum { STACK = 65536 };
	static char stack[STACK] __attribute__((aligned(16)));
	pid_t child = clone(work_as_child, stack + STACK, CLONE_VM | SIGCHLD | flags, NULL);

	printf("%d\n", (int)child);
	fault_ready();
	work();
	if (!flags)
		waitpid(child, NULL, 0);
}

/* Unloads the library whenever `sent` is set. */
static void unload(const char *library)
{
	fault_ready();
	while (!shared->stop) {
		void *handle = shared->sent ? dlopen(library, RTLD_NOW | RTLD_NOLOAD) : NULL;

		if (handle && (dlclose(handle) || dlclose(handle)))
			fault_wrong(7);
		if (shared->sent && !handle)
			fault_wrong(8);
		shared->sent = 0;
		nanosleep(&(struct timespec){0, 1000000}, NULL);
		fault_round();
	}
}

/* A filter that answers one call with @action, and allows all others. */
static void filter(unsigned number, unsigned action)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, action),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
	fault_ready();
	work();
}

/* "CALL ACTION" */
static void filter_named(const char *call, const char *action)
{
	static const struct {
		const char *name;
		unsigned value;
	} calls[] = {{"mmap", SYS_mmap},
		     {"mprotect", SYS_mprotect},
		     {"clone3", SYS_clone3},
		     {"memfd_create", SYS_memfd_create},
		     {"restart_syscall", SYS_restart_syscall},
		     {"reboot", SYS_reboot}},
	  actions[] = {{"kill", SECCOMP_RET_KILL_PROCESS},
		       {"trap", SECCOMP_RET_TRAP},
		       {"errno", SECCOMP_RET_ERRNO | ENOSYS}};

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		for (size_t n = 0; n < sizeof(actions) / sizeof(actions[0]); n++)
			if (!strcmp(call, calls[i].name) && !strcmp(action, actions[n].name))
				filter(calls[i].value, actions[n].value);
}

int main(int argc, char **argv)
{
	const char *kind = argc > 2 ? argv[2] : "";
	pthread_t thread;

	fault_open(argv[1]);
	if (!strcmp(kind, "deep")) {
		work_deep();
	} else if (!strcmp(kind, "leader")) {
		leave_leader();
	} else if (!strcmp(kind, "vfork")) {
		stand_in_vfork();
	} else if (!strcmp(kind, "shares")) {
		share_memory(argc > 3 ? CLONE_PARENT : 0);
	} else if (!strcmp(kind, "vfork-thread")) {
		pthread_create(&thread, NULL, work_beside, NULL);
		stand_in_vfork();
		pthread_join(thread, NULL);
	} else if (!strcmp(kind, "unload")) {
		unload(argv[3]);
	} else if (!strcmp(kind, "filter")) {
		filter_named(argv[3], argv[4]);
	} else {
		fault_ready();
		work();
	}
	return fault_end();
}

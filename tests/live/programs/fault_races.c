/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Targets that change during the injection: fault_races SHARED KIND.
 *
 *   exec|fork|vfork|spawn   does that all the time, in the only thread
 *   churn                   ends its first thread, and has others that come and go
 *   at-exec|at-exit|at-fork|at-vfork|at-spawn|at-thread
 *                           does that when SIGUSR1 comes, in a second thread; the first one works
 */
#include <spawn.h>
#include <sys/wait.h>

#include "fault.h"

enum { EXIT_CODE = 7 };

static char **arguments;

static void nap(long ns)
{
	nanosleep(&(struct timespec){0, ns}, NULL);
}

static void work(void)
{
	while (!shared->stop) {
		nap(1000000);
		fault_round();
	}
}

static void do_exec(void)
{
	execv("/proc/self/exe", arguments);
	fault_wrong(1);
}

static void reap(pid_t child)
{
	int status;

	if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) ||
	    WEXITSTATUS(status) != EXIT_CODE)
		fault_wrong(2);
}

/* The child uses the heap: its locks were taken over in good order. */
static void do_fork(void)
{
	pid_t child = fork();

	if (!child) {
		for (int i = 0; i < 10; i++)
			free(malloc(1000 + (size_t)i * 1000));
		_exit(EXIT_CODE);
	}
	reap(child);
}

static void do_vfork(void)
{
	pid_t child = vfork();

	if (!child) {
		execl("/bin/sh", "sh", "-c", "exit 7", NULL);
		_exit(1);
	}
	reap(child);
}

static void do_spawn(void)
{
	char *const words[] = {"sh", "-c", "exit 7", NULL};
	pid_t child = -1;

	if (posix_spawn(&child, "/bin/sh", NULL, NULL, words, environ))
		fault_wrong(3);
	reap(child);
}

static void do_exit(void)
{
	_exit(EXIT_CODE);
}

static void *come_and_go(void *pointer)
{
	free(malloc(1000));
	return pointer;
}

static void do_thread(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, come_and_go, NULL) || pthread_join(thread, NULL))
		fault_wrong(4);
}

struct kind {
	const char *name;
	void (*act)(void);
};

static void *act_when_told(void *kind)
{
	sigset_t set;
	int number;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	for (;;) {
		sigwait(&set, &number);
		shared->received++;
		((const struct kind *)kind)->act();
	}
	return NULL;
}

static void *churn(void *unused)
{
	while (!shared->stop) {
		do_thread();
		fault_round();
	}
	exit(fault_end());
	return unused;
}

int main(int argc, char **argv)
{
	static const struct kind kinds[] = {{"exec", do_exec},	 {"fork", do_fork},
					    {"vfork", do_vfork}, {"spawn", do_spawn},
					    {"exit", do_exit},	 {"thread", do_thread}};
	const char *name = argc > 2 ? argv[2] : "";
	pthread_t thread;
	sigset_t set;

	fault_open(argv[1]);
	arguments = argv;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	if (!shared->rounds)
		fault_ready();
	fault_round();
	if (!strcmp(name, "churn")) {
		pthread_create(&thread, NULL, churn, NULL);
		pthread_exit(NULL);
	}
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (!strncmp(name, "at-", 3) && !strcmp(name + 3, kinds[i].name)) {
			pthread_create(&thread, NULL, act_when_told, (void *)&kinds[i]);
			work();
		}
		while (!strcmp(name, kinds[i].name) && !shared->stop) {
			nap(2000000);
			kinds[i].act();
			fault_round();
		}
	}
	return fault_end();
}

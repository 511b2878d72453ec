/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Runs a program as the process of a chosen number: with_pid PID PROGRAM ... */
#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	pid_t wanted = argc > 2 ? atoi(argv[1]) : 0, child;
	int status = 0;
	struct clone_args args = {
		.exit_signal = SIGCHLD,
		.set_tid = (uintptr_t)&wanted,
		.set_tid_size = 1,
	};

	child = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	if (!child)
		execvp(argv[2], argv + 2);
	if (child <= 0) {
		perror("with_pid");
		return 1;
	}
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

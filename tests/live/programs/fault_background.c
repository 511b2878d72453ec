/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A background job that its terminal stops: fault_background SHARED read|write. Its shell, the
 * parent, continues it in the foreground once `sent` is set.
 */
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <termios.h>

#include "fault.h"

/* Stops at its first touch of the terminal until it is in the foreground. */
static void job(const char *kind, int terminal)
{
	char byte;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setpgid(0, 0);
	fault_ready();
	if (!strcmp(kind, "read") ? read(terminal, &byte, 1) != 1 : write(terminal, "x", 1) != 1)
		fault_wrong(-errno);
	while (!shared->stop) {
		nanosleep(&(struct timespec){0, 5000000}, NULL);
		fault_round();
	}
	_exit(0);
}

int main(int argc, char **argv)
{
	int leader = posix_openpt(O_RDWR | O_NOCTTY), terminal, status;
	struct termios modes;
	pid_t child;

	fault_open(argv[1]);
	if (argc < 3 || leader < 0 || grantpt(leader) || unlockpt(leader) || setsid() < 0)
		return 1;
	terminal = open(ptsname(leader), O_RDWR);
	if (terminal < 0 || tcgetattr(terminal, &modes))
		return 1;
	modes.c_lflag |= TOSTOP;
	modes.c_lflag &= ~(tcflag_t)ICANON;
	tcsetattr(terminal, TCSANOW, &modes);
	signal(SIGTTOU, SIG_DFL);
	child = fork();
	if (!child)
		job(argv[2], terminal);
	while (!shared->sent && !shared->stop)
		nanosleep(&(struct timespec){0, 1000000}, NULL);
	signal(SIGTTOU, SIG_IGN);
	tcsetpgrp(terminal, child);
	if (write(leader, "y", 1) != 1)
		return 1;
	kill(child, SIGCONT);
	waitpid(child, &status, 0);
	return fault_end() || status;
}

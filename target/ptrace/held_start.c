/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "target/ptrace/held_start.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include "target/ptrace/unstopped.h"

bool prb_held_start_begin(pid_t child)
{
	return !ptrace(PTRACE_SEIZE, child, NULL, PTRACE_O_TRACEEXEC);
}

/* The next stop; an end is left to be waited for. */
static bool next_stop(pid_t child, siginfo_t *ret)
{
	const int ends = WEXITED | WSTOPPED | __WALL | WNOWAIT;

	do
		*ret = (siginfo_t){};
	while (waitid(P_PID, (id_t)child, ret, ends) && errno == EINTR);
	if (!ret->si_pid || (ret->si_code != CLD_TRAPPED && ret->si_code != CLD_STOPPED))
		return false;
	return !waitid(P_PID, (id_t)child, ret, WSTOPPED | __WALL | WNOHANG) && ret->si_pid;
}

bool prb_held_start_await(pid_t child)
{
	siginfo_t info;

	while (next_stop(child, &info)) {
		int event = info.si_status >> 8, number = info.si_status & 0x7f;

		if (event == PTRACE_EVENT_EXEC) {
			prb_unstopped_begin();
			return true;
		}
		/* It stays stopped by job control, which is not ours to end. */
		if (event) {
			ptrace(PTRACE_DETACH, child, NULL, 0);
			return false;
		}
		ptrace(PTRACE_CONT, child, NULL, number);
	}
	return false;
}

bool prb_held_start_lost_rights(pid_t child)
{
	char path[32];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)child);
	return stat(path, &st) || (st.st_mode & (S_ISUID | S_ISGID)) ||
	       getxattr(path, "security.capability", NULL, 0) >= 0;
}

void prb_held_start_release(pid_t child)
{
	ptrace(PTRACE_DETACH, child, NULL, 0);
	prb_unstopped_end();
}

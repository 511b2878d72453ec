/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "command/program.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "command/start.h"

enum { CANNOT_RUN = 127, STACK = 256 << 10 };

static void reset_signals(void)
{
	static const int numbers[] = {SIGPIPE, SIGINT, SIGTERM, SIGQUIT, SIGHUP};
	sigset_t none;

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		signal(numbers[i], SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/** In the child: becomes the program. */
static void become(const struct prb_program *program, const char *path, pid_t parent)
{
	int why = ENOENT;
	int in = program->in >= 0 ? program->in : open("/dev/null", O_RDONLY);

	if (program->terminal)
		setsid();
	else
		setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(CANNOT_RUN);
	reset_signals();
	if (dup2(in, 0) < 0 || dup2(program->out, 1) < 0 || dup2(program->err, 2) < 0)
		_exit(CANNOT_RUN);
	if (program->terminal && ioctl(0, TIOCSCTTY, 0))
		_exit(CANNOT_RUN);
	/* Our descriptors are closed by exec; inherited ones may not be. */
	syscall(SYS_close_range, 3, ~0u, CLOSE_RANGE_CLOEXEC);
	if (program->prepare)
		program->prepare(program->context);
	if (program->itself || path)
		why = prb_start_become_at(path, program->words);
	dprintf(2, "probing: cannot run %s: %s\n", program->itself ? "itself" : program->words[0],
		strerror(why));
	_exit(CANNOT_RUN);
}

/** The arguments of the child. */
struct child {
	const struct prb_program *program;
	const char *path;
	pid_t parent;
};

static int run_child(void *context)
{
	const struct child *child = context;

	become(child->program, child->path, child->parent);
	return CANNOT_RUN;
}

/**
 * Without copying our memory, which takes milliseconds for each of a thousand hosts: we go on when
 * the child has become the program. It must change nothing of ours until then.
 */
static pid_t start_fast(const struct prb_program *program, const char *path)
{
	struct child child = {program, path, getpid()};
	char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	int pid, why;

	if (stack == MAP_FAILED)
		return -1;
	pid = clone(run_child, stack + STACK, CLONE_VM | CLONE_VFORK | SIGCHLD, &child);
	why = errno;
	munmap(stack, STACK);
	errno = why;
	return pid;
}

struct prb_error *prb_program_start(const struct prb_program *program, pid_t *ret)
{
	prb_auto_free char *path = program->itself ? NULL : prb_start_find(program->words[0]);
	pid_t parent = getpid(), pid = program->prepare ? fork() : start_fast(program, path);

	if (pid < 0)
		return prb_error_os(errno, "cannot start %s",
				    program->itself ? "a command" : program->words[0]);
	if (!pid)
		become(program, path, parent);
	*ret = pid;
	return NULL;
}

struct prb_error *prb_program_text(const char *text, size_t length, int *ret)
{
	prb_auto_close int fd = memfd_create("probing-input", MFD_CLOEXEC);

	if (fd < 0 || write(fd, text, length) != (ssize_t)length || lseek(fd, 0, SEEK_SET))
		return prb_error_os(errno, "cannot hand a text to a command");
	*ret = prb_steal_fd(&fd);
	return NULL;
}

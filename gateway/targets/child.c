/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/targets/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/conflict.h"
#include "command/program.h"
#include "command/exit.h"
#include "command/exit_kind.h"

enum { MAX_LOG = 1 << 20 };

/** Seconds from SIGTERM to SIGKILL, and from that to giving up. */
static const double PATIENCE = 2, DYING = 0.3;

/** In the child. */
static void set_environment(const void *context)
{
	(void)context;
	unsetenv("PROBING_AUTH_TOKEN");
	unsetenv("PROBING_TARGET");
	setenv("NO_COLOR", "1", 1);
	setenv(PRB_EXIT_KINDS, "1", 1);
}

static void set_terminal_environment(const void *context)
{
	set_environment(context);
	unsetenv("NO_COLOR");
	setenv("TERM", "xterm-256color", 1);
}

/** A descriptor that holds all of @p input, with no writer needed. */
static struct prb_error *open_input(const struct prb_str *input, int *ret)
{
	if (!input) {
		*ret = open("/dev/null", O_RDONLY | O_CLOEXEC);
		return *ret < 0 ? prb_error_os(errno, "cannot open /dev/null") : NULL;
	}
	return prb_program_text(prb_str_text(input), input->length, ret);
}

/** "probing WORDS…" for exec; the words stay those of the list. */
static char **command_line(const struct prb_words *words)
{
	static char program[] = "probing";
	char **list = calloc(words->list.count + 2, sizeof(*list));

	if (!list)
		return NULL;
	list[0] = program;
	for (size_t i = 0; i < words->list.count; i++)
		list[i + 1] = words->list.items[i];
	return list;
}

/** A pipe from the child, of which our end does not block. */
static struct prb_error *open_pipe(int *ours, int *theirs)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return prb_error_os(errno, "cannot make a pipe");
	*ours = ends[0];
	*theirs = ends[1];
	fcntl(*ours, F_SETFL, O_NONBLOCK);
	return NULL;
}

struct prb_error *prb_child_start(struct prb_child *child, struct prb_words *words,
				  const struct prb_str *input, int out)
{
	prb_auto_close int in = -1, out_read = -1, out_write = -1, err_read = -1, err_write = -1;
	prb_auto_free char **list = command_line(words);

	if (!list)
		return prb_error_nomem();
	PRB_TRY(open_input(input, &in));
	if (out < 0)
		PRB_TRY(open_pipe(&out_read, &out_write));
	PRB_TRY(open_pipe(&err_read, &err_write));

	const struct prb_program program = {.words = list,
					    .itself = true,
					    .in = in,
					    .out = out < 0 ? out_write : out,
					    .err = err_write,
					    .prepare = set_environment};

	PRB_TRY(prb_program_start(&program, &child->pid));
	child->out = prb_steal_fd(&out_read);
	child->err = prb_steal_fd(&err_read);
	return NULL;
}

/** A new terminal: our end, and the command's. */
static struct prb_error *open_terminal(const struct winsize *size, int *ours, int *theirs)
{
	struct termios modes;

	*ours = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
	if (*ours < 0 || grantpt(*ours) || unlockpt(*ours))
		return prb_error_os(errno, "cannot make a terminal");
	/* By the descriptor: no path leads to another one. */
	*theirs = ioctl(*ours, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (*theirs < 0 || ioctl(*ours, TIOCSWINSZ, size) || tcgetattr(*theirs, &modes))
		return prb_error_os(errno, "cannot open a new terminal");
	modes.c_iflag = (modes.c_iflag & ~(tcflag_t)IXON) | IUTF8;
	modes.c_cc[VSUSP] = modes.c_cc[VQUIT] = _POSIX_VDISABLE;
	if (tcsetattr(*theirs, TCSANOW, &modes))
		return prb_error_os(errno, "cannot set up a terminal");
	return NULL;
}

struct prb_error *prb_child_start_terminal(struct prb_child *child, const struct prb_words *words,
					   const struct winsize *size)
{
	prb_auto_close int ours = -1, theirs = -1;
	prb_auto_free char **list = command_line(words);

	if (!list)
		return prb_error_nomem();
	PRB_TRY(open_terminal(size, &ours, &theirs));

	const struct prb_program program = {.words = list,
					    .itself = true,
					    .in = theirs,
					    .out = theirs,
					    .err = theirs,
					    .terminal = true,
					    .prepare = set_terminal_environment};

	PRB_TRY(prb_program_start(&program, &child->pid));
	child->out = prb_steal_fd(&ours);
	return NULL;
}

struct prb_error *prb_child_start_talk(struct prb_child *child, const struct prb_words *words)
{
	prb_auto_close int ours = -1, theirs = -1, err_read = -1, err_write = -1;
	prb_auto_free char **list = command_line(words);
	int ends[2];

	if (!list)
		return prb_error_nomem();
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return prb_error_os(errno, "cannot make a pair of sockets");
	ours = ends[0];
	theirs = ends[1];
	fcntl(ours, F_SETFL, O_NONBLOCK);
	PRB_TRY(open_pipe(&err_read, &err_write));

	const struct prb_program program = {.words = list,
					    .itself = true,
					    .in = theirs,
					    .out = theirs,
					    .err = err_write,
					    .prepare = set_environment};

	PRB_TRY(prb_program_start(&program, &child->pid));
	child->out = prb_steal_fd(&ours);
	child->err = prb_steal_fd(&err_read);
	return NULL;
}

static void read_log(struct prb_child *child)
{
	char chunk[4096];
	ssize_t got;

	while (child->err >= 0) {
		got = read(child->err, chunk, sizeof(chunk));
		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (got <= 0) {
			close(child->err);
			child->err = -1;
		} else if (child->log.length + (size_t)got <= MAX_LOG) {
			prb_str_append(&child->log, chunk, (size_t)got);
		}
	}
}

void prb_child_receive(struct prb_child *child, size_t most, struct prb_str *ret)
{
	char chunk[16 << 10];
	ssize_t got;

	while (child->out >= 0 && ret->length < most) {
		got = read(child->out, chunk, sizeof(chunk));
		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (got <= 0) {
			close(child->out);
			child->out = -1;
		} else {
			prb_str_append(ret, chunk, (size_t)got);
		}
	}
}

void prb_child_kill(struct prb_child *child, double now)
{
	if (!child->pid || child->killed)
		return;
	child->killed = now;
	kill(child->pid, SIGTERM);
}

void prb_child_tend(struct prb_child *child, double now)
{
	if (!child->pid)
		return;
	read_log(child);
	if (child->until > 0 && now > child->until && !child->killed) {
		child->late = true;
		prb_child_kill(child, now);
	}
	if (child->killed && now > child->killed + PATIENCE)
		kill(child->pid, SIGKILL);
	if (waitpid(child->pid, &child->status, WNOHANG) != child->pid)
		return;
	read_log(child);
	child->pid = 0;
	child->ended = true;
}

static void close_end(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void prb_child_end(struct prb_child *child)
{
	if (!child->pid || child->ended_by > 0)
		return;
	kill(child->pid, SIGKILL);
	child->ended_by = prb_clock_seconds() + DYING;
}

/** Reaps a killed child. One that hangs in the kernel, or is traced, may never end. */
static void reap(const struct prb_child *child)
{
	prb_auto_close int fd = (int)syscall(SYS_pidfd_open, child->pid, 0);
	struct pollfd end = {.fd = fd, .events = POLLIN};
	double left = child->ended_by - prb_clock_seconds();

	if (fd >= 0)
		poll(&end, 1, left > 0 ? (int)(left * 1000) : 0);
	waitpid(child->pid, NULL, fd >= 0 ? WNOHANG : 0);
}

void prb_child_deinit(struct prb_child *child)
{
	prb_child_end(child);
	if (child->pid)
		reap(child);
	child->pid = 0;
	close_end(&child->out);
	close_end(&child->err);
	prb_str_deinit(&child->log);
}

/** Takes the line that begins with @p mark, and what follows it indented by two spaces. */
static const char *take_message(const char *at, const char *mark, struct prb_str *line,
				struct prb_str *rest)
{
	size_t length = strcspn(at, "\n");

	prb_str_append(line, at + strlen(mark), length - strlen(mark));
	at += length;
	while (!strncmp(at, "\n  ", 3)) {
		length = strcspn(at + 3, "\n");
		if (rest->length)
			prb_str_putc(rest, '\n');
		prb_str_append(rest, at + 3, length);
		at += 3 + length;
	}
	return *at ? at + 1 : at;
}

static const char ERROR_MARK[] = "probing: ", WARNING_MARK[] = "probing: warning: ";

struct prb_error *prb_child_judge(const struct prb_child *child)
{
	prb_auto_str struct prb_str message = {}, hint = {}, other = {};
	const char *at = prb_str_text(&child->log);

	if (child->late)
		return prb_error_hint(
			prb_error_create(PRB_ERROR_TIMEOUT,
					 "the request took too long, and was ended"),
			"ask for less, or with a longer 'timeout' where the request has one");
	if (WIFEXITED(child->status) && !WEXITSTATUS(child->status))
		return NULL;
	if (WIFSIGNALED(child->status))
		return prb_error_create(PRB_ERROR_FAILED, "the command was ended by signal %d",
					WTERMSIG(child->status));
	while (*at && !message.length) {
		bool warning = !strncmp(at, WARNING_MARK, strlen(WARNING_MARK));

		if (!warning && !strncmp(at, ERROR_MARK, strlen(ERROR_MARK)))
			at = take_message(at, ERROR_MARK, &message, &hint);
		else
			at = take_message(at, "", &other, &other);
	}

	enum prb_error_code code;
	bool conflict;

	if (!prb_exit_kind_parse(WEXITSTATUS(child->status), &code, &conflict))
		code = PRB_ERROR_FAILED;

	struct prb_error *err = prb_error_create(
		code, "%s", message.length ? prb_str_text(&message) : "the command failed");

	if (conflict)
		err = prb_conflict_mark(err);
	return hint.length ? prb_error_hint(err, "%s", prb_str_text(&hint)) : err;
}

void prb_child_warnings(const struct prb_child *child, struct prb_str *ret)
{
	prb_auto_str struct prb_str other = {};

	for (const char *at = prb_str_text(&child->log); *at;) {
		bool warning = !strncmp(at, WARNING_MARK, strlen(WARNING_MARK));

		if (warning && ret->length)
			prb_str_putc(ret, '\n');
		at = take_message(at, warning ? WARNING_MARK : "", warning ? ret : &other, &other);
	}
}

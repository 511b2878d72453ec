/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "command/program.h"
#include "command/exit.h"

enum { MAX_LOG = 64 << 10 };

/** One that was told to end is made to, after so many seconds. */
static const double PATIENCE = 2;

/** In the child. */
static void set_environment(const void *context)
{
	(void)context;
	unsetenv("PROBING_AUTH_TOKEN");
	unsetenv("PROBING_TARGET");
	setenv("NO_COLOR", "1", 1);
}

/** A descriptor from which @p input can be read, whoever writes when. */
static struct prb_error *open_input(const struct prb_str *input, int *ret)
{
	if (!input) {
		*ret = open("/dev/null", O_RDONLY | O_CLOEXEC);
		return *ret < 0 ? prb_error_os(errno, "cannot open /dev/null") : NULL;
	}
	prb_auto_close int fd = memfd_create("probing-input", MFD_CLOEXEC);

	if (fd < 0 || write(fd, prb_str_text(input), input->length) != (ssize_t)input->length ||
	    lseek(fd, 0, SEEK_SET))
		return prb_error_os(errno, "cannot hand a text to a command");
	*ret = prb_steal_fd(&fd);
	return NULL;
}

struct prb_error *prb_child_start(struct prb_child *child, struct prb_words *words,
				  const struct prb_str *input, int out)
{
	prb_auto_close int in = -1, out_read = -1, out_write = -1, err_read = -1, err_write = -1;
	prb_auto_free char **list = calloc(words->list.count + 2, sizeof(*list));
	int pipes[2];

	if (!list)
		return prb_error_nomem();
	list[0] = (char[]){"probing"};
	for (size_t i = 0; i < words->list.count; i++)
		list[i + 1] = words->list.items[i];
	PRB_TRY(open_input(input, &in));
	if (out < 0) {
		if (pipe2(pipes, O_CLOEXEC))
			return prb_error_os(errno, "cannot make a pipe");
		out_read = pipes[0];
		out_write = pipes[1];
		fcntl(out_read, F_SETFL, O_NONBLOCK);
	}
	if (pipe2(pipes, O_CLOEXEC))
		return prb_error_os(errno, "cannot make a pipe");
	err_read = pipes[0];
	err_write = pipes[1];
	fcntl(err_read, F_SETFL, O_NONBLOCK);

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

void prb_child_deinit(struct prb_child *child)
{
	if (child->pid) {
		kill(child->pid, SIGKILL);
		waitpid(child->pid, NULL, 0);
		child->pid = 0;
	}
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

static enum prb_error_code code_of(int exit_code)
{
	switch (exit_code) {
	case PRB_EXIT_USAGE:
		return PRB_ERROR_USAGE;
	case PRB_EXIT_UNSUPPORTED:
		return PRB_ERROR_UNSUPPORTED;
	case PRB_EXIT_PERMISSION:
		return PRB_ERROR_PERMISSION;
	case PRB_EXIT_TIMEOUT:
		return PRB_ERROR_TIMEOUT;
	case PRB_EXIT_NO_PROCESS:
		return PRB_ERROR_NO_PROCESS;
	default:
		return PRB_ERROR_FAILED;
	}
}

struct prb_error *prb_child_judge(const struct prb_child *child)
{
	prb_auto_str struct prb_str message = {}, hint = {}, other = {};
	const char *at = prb_str_text(&child->log);

	if (child->late)
		return prb_error_create(PRB_ERROR_TIMEOUT,
					"the request took too long, and was ended");
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

	struct prb_error *err =
		prb_error_create(code_of(WEXITSTATUS(child->status)), "%s",
				 message.length ? prb_str_text(&message) : "the command failed");
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

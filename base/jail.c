/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/jail.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/jail_private.h"
#include "base/log.h"

enum {
	CPU_SECONDS = 10,
	ANSWER_MAX = 8 << 20,
	MESSAGE_MAX = 500, /* bytes of an error's message */
	REAP_TIME =
		1000, /* milliseconds; a file system may keep even a killed process for longer */
	PIDFD_OPEN = 434,
	PIDFD_SEND_SIGNAL = 424,
};

/** In front of what goes either way. The answer's status is 0 or, for an error, its code + 1. */
struct head {
	uint32_t status, length;
};

struct prb_jail {
	char *name;
	pid_t pid;  /* 0: reaped */
	int pidfd;  /* -1 on kernels before 5.3 */
	int socket; /* -1: it is over */
	unsigned cpu_seconds;
	size_t answer_max;
};

/* ---- The child ---- */

static bool read_all(int fd, void *data, size_t length)
{
	for (size_t done = 0; done < length;) {
		ssize_t n = read(fd, (char *)data + done, length - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		done += (size_t)n;
	}
	return true;
}

static bool write_all(int fd, const void *data, size_t length)
{
	for (size_t done = 0; done < length;) {
		ssize_t n = write(fd, (const char *)data + done, length - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		done += (size_t)n;
	}
	return true;
}

/** Sends an error, or the answer if there is none; ends the error. */
static bool reply(const struct prb_jail_spec *spec, int socket, struct prb_error *err,
		  const struct prb_str *answer)
{
	prb_auto_error struct prb_error *kept = err;
	const char *data = err ? err->message : answer->data;
	size_t length = err ? strnlen(err->message, MESSAGE_MAX) : answer->length;
	struct head head = {.status = err ? (uint32_t)err->code + 1 : 0, (uint32_t)length};

	(void)kept;
	if (length > spec->answer_max)
		return false;
	return write_all(socket, &head, sizeof(head)) && write_all(socket, data, length);
}

static void serve(const struct prb_jail_spec *spec, pid_t parent, int socket)
{
	struct prb_error *err = prb_jail_confine(parent, socket, spec->file, spec->cpu_seconds);
	uint8_t request[PRB_JAIL_REQUEST_MAX];
	struct head head;

	while (read_all(socket, &head, sizeof(head)) && head.length <= sizeof(request) &&
	       read_all(socket, request, head.length)) {
		prb_auto_str struct prb_str answer = {};
		bool confined = !err;

		if (confined)
			err = spec->work(spec->context, request, head.length, &answer);
		if (!err && answer.failed)
			err = prb_error_nomem();
		if (!reply(spec, socket, err, &answer) || !confined)
			return;
		err = NULL;
	}
}

static void be_child(const struct prb_jail_spec *spec, pid_t parent, int socket)
{
	/* The child runs none of our host's signal handlers, and only we end it. */
	sigset_t all;
	sigfillset(&all);
	sigdelset(&all, SIGXCPU);
	pthread_sigmask(SIG_SETMASK, &all, NULL);

	prb_error_destroy(prb_log_set(NULL, NULL, NULL));
	serve(spec, parent, socket);
	syscall(SYS_exit_group, 0);
}

/* ---- The parent ---- */

static int64_t now_ms(void)
{
	return prb_clock_ns() / 1000000;
}

/** Forks with all signals blocked, so that no handler of our host runs in the child. */
static pid_t fork_quietly(const struct prb_jail_spec *spec, int socket)
{
	pid_t parent = getpid();
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);

	pid_t pid = fork();

	if (!pid)
		be_child(spec, parent, socket);
	int os_errno = errno;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = os_errno;
	return pid;
}

struct prb_error *prb_jail_start(const struct prb_jail_spec *spec, struct prb_jail **ret)
{
	prb_auto_jail struct prb_jail *jail = calloc(1, sizeof(*jail));
	struct prb_jail_spec full = *spec;
	int sockets[2];

	if (!jail)
		return prb_error_nomem();
	jail->pidfd = jail->socket = -1;
	full.cpu_seconds = spec->cpu_seconds ? spec->cpu_seconds : CPU_SECONDS;
	full.answer_max = spec->answer_max ? spec->answer_max : ANSWER_MAX;
	jail->cpu_seconds = full.cpu_seconds;
	jail->answer_max = full.answer_max;
	PRB_TRY(prb_str_copy(spec->name, &jail->name));
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets))
		return prb_error_os(errno, "cannot start the parser of %s", spec->name);

	prb_auto_close int theirs = sockets[1];
	jail->socket = sockets[0];
	jail->pid = fork_quietly(&full, theirs);
	if (jail->pid < 0) {
		jail->pid = 0;
		return prb_error_os(errno, "cannot start the parser of %s", spec->name);
	}
	jail->pidfd = (int)syscall(PIDFD_OPEN, jail->pid, 0);
	*ret = prb_steal(&jail);
	return NULL;
}

/** Waits until the child has ended, or the time is over. */
static void await_end(struct prb_jail *jail, int64_t deadline)
{
	struct pollfd over = {.fd = jail->pidfd, .events = POLLIN};
	int64_t left = deadline - now_ms();

	poll(&over, 1, jail->pidfd >= 0 ? (int)PRB_MAX(left, 0) : 1);
}

/** Its wait status, -1 if it cannot be had: our host may have reaped it, or it does not end. */
static int reap(struct prb_jail *jail)
{
	int64_t deadline = now_ms() + REAP_TIME;
	int status = -1;
	pid_t done;

	if (!jail->pid)
		return -1;
	while ((done = waitpid(jail->pid, &status, WNOHANG | __WALL)) != jail->pid) {
		if ((done < 0 && errno != EINTR) || now_ms() >= deadline) {
			status = -1;
			break;
		}
		await_end(jail, deadline);
	}
	jail->pid = 0;
	return status;
}

static void kill_child(struct prb_jail *jail)
{
	if (!jail->pid)
		return;
	if (jail->pidfd >= 0)
		syscall(PIDFD_SEND_SIGNAL, jail->pidfd, SIGKILL, NULL, 0);
	else
		kill(jail->pid, SIGKILL);
}

/** Ends the child and all talk with it; its wait status as above. */
static int finish(struct prb_jail *jail)
{
	prb_close_guard(&jail->socket);
	/* A child that is already ending keeps its exit status. */
	kill_child(jail);

	int status = reap(jail);

	prb_close_guard(&jail->pidfd);
	return status;
}

void prb_jail_end(struct prb_jail *jail)
{
	if (!jail)
		return;
	finish(jail);
	free(jail->name);
	free(jail);
}

static struct prb_error *hinted(struct prb_jail *jail, struct prb_error *err)
{
	return prb_error_hint(err,
			      "%s is damaged or hostile; what it tells of lines and types is left "
			      "out",
			      jail->name);
}

static struct prb_error *bad(struct prb_jail *jail, const char *what)
{
	return hinted(jail, prb_error_create(PRB_ERROR_BAD_DATA, "the parser of %s %s", jail->name,
					     what));
}

/** Why the child hung up. */
static struct prb_error *ended(struct prb_jail *jail)
{
	static const struct {
		int number;
		const char *text;
	} signals[] = {
		{SIGSEGV, "crashed (SIGSEGV)"},
		{SIGBUS, "crashed (SIGBUS)"},
		{SIGILL, "crashed (SIGILL)"},
		{SIGFPE, "crashed (SIGFPE)"},
		{SIGABRT, "crashed (SIGABRT)"},
		{SIGTRAP, "crashed (SIGTRAP)"},
		{SIGSYS, "made a forbidden system call (SIGSYS)"},
		{SIGKILL, "was killed (SIGKILL)"},
	};
	int status = finish(jail);

	if (status == -1 || !WIFSIGNALED(status))
		return bad(jail, "ended without an answer");
	if (WTERMSIG(status) == SIGXCPU)
		return hinted(jail, prb_error_create(PRB_ERROR_TIMEOUT,
						     "the parser of %s took over %u s of processor "
						     "time",
						     jail->name, jail->cpu_seconds));
	for (size_t i = 0; i < PRB_ARRAY_SIZE(signals); i++)
		if (signals[i].number == WTERMSIG(status))
			return bad(jail, signals[i].text);
	return bad(jail, "was ended by a signal");
}

/** Fills @p data from the socket by the deadline. */
static struct prb_error *receive(struct prb_jail *jail, void *data, size_t length, int64_t start,
				 int patience)
{
	for (size_t done = 0; done < length;) {
		struct pollfd ready = {.fd = jail->socket, .events = POLLIN};
		int64_t left = start + patience - now_ms();

		if (left <= 0) {
			finish(jail);
			return hinted(jail, prb_error_create(PRB_ERROR_TIMEOUT,
							     "the parser of %s took over %d s",
							     jail->name, (patience + 999) / 1000));
		}
		if (poll(&ready, 1, (int)left) <= 0)
			continue;

		ssize_t n = recv(jail->socket, (char *)data + done, length - done, MSG_DONTWAIT);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n <= 0)
			return ended(jail);
		done += (size_t)n;
	}
	return NULL;
}

/**
 * The child's error, whose text is made harmless. Only codes that mean "this file does not tell"
 * are believed: others could end more than the reading of this file.
 */
static struct prb_error *error_of(struct prb_jail *jail, uint32_t status, const char *text,
				  size_t length)
{
	enum prb_error_code code = (enum prb_error_code)(status - 1);
	char message[MESSAGE_MAX + 1];

	if (code == PRB_ERROR_NOMEM)
		return bad(jail, "needs too much memory");
	if (code != PRB_ERROR_NOT_FOUND && code != PRB_ERROR_UNSUPPORTED)
		code = PRB_ERROR_BAD_DATA;
	for (size_t i = 0; i < length; i++)
		message[i] = text[i] >= ' ' && text[i] != 0x7f ? text[i] : '?';
	message[length] = '\0';
	return prb_error_create(code, "%s", message);
}

static struct prb_error *take_answer(struct prb_jail *jail, int64_t start, int patience,
				     struct prb_str *ret)
{
	prb_auto_free char *data = NULL;
	struct head head;

	PRB_TRY(receive(jail, &head, sizeof(head), start, patience));
	if (head.length > (head.status ? (size_t)MESSAGE_MAX : jail->answer_max)) {
		finish(jail);
		return bad(jail, "sent too much");
	}
	data = malloc(head.length + 1U);
	if (!data) {
		finish(jail);
		return prb_error_nomem();
	}
	PRB_TRY(receive(jail, data, head.length, start, patience));
	if (head.status)
		return error_of(jail, head.status, data, head.length);
	prb_str_append(ret, data, head.length);
	return ret->failed ? prb_error_nomem() : NULL;
}

/** Small enough for the buffer of the socket, which is empty: the child reads before it answers. */
static bool send_request(struct prb_jail *jail, const void *request, size_t length)
{
	const struct head head = {.length = (uint32_t)length};
	const int flags = MSG_NOSIGNAL | MSG_DONTWAIT;

	return send(jail->socket, &head, sizeof(head), flags) == (ssize_t)sizeof(head) &&
	       (!length || send(jail->socket, request, length, flags) == (ssize_t)length);
}

struct prb_error *prb_jail_ask(struct prb_jail *jail, const void *request, size_t length,
			       int *patience, struct prb_str *ret)
{
	int64_t start = now_ms();

	if (jail->socket < 0 || length > PRB_JAIL_REQUEST_MAX)
		return bad(jail, "has ended");
	if (*patience <= 0)
		return prb_error_create(PRB_ERROR_TIMEOUT,
					"the parser of %s gets no time: other files took it all",
					jail->name);
	if (!send_request(jail, request, length))
		return ended(jail);

	struct prb_error *err = take_answer(jail, start, *patience, ret);
	int64_t waited = now_ms() - start;

	*patience = waited < *patience ? *patience - (int)waited : 0;
	return err;
}

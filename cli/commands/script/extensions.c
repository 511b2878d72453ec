/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/commands/script/extensions.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/vec.h"
#include "cli/commands/script/start_python.h"
#include "command/exit.h"
#include "command/interrupt.h"

enum { MOST = 64 << 20 }; /* bytes of an answer */

/* The Python of this process: there is one at most. */
static struct {
	bool started;
	int socket; /* -1: it has ended */
	char pid[16];
	const char *target, *exe;
	/*
	 * The names of its parts, each with its kind in front: "c" classes, "w" functions, "t"
	 * tables, "r" rules.
	 */
	struct prb_str names;
	struct prb_custom custom;
} python = {.socket = -1};

/* Each side sends its length, four bytes, and then the text. */
static bool send_all(const void *data, size_t length)
{
	const char *at = data;

	while (length) {
		ssize_t n = send(python.socket, at, length, MSG_NOSIGNAL);

		if (n <= 0 && (errno != EINTR || prb_interrupted()))
			return false;
		at += n > 0 ? n : 0;
		length -= n > 0 ? (size_t)n : 0;
	}
	return true;
}

static bool receive_all(void *data, size_t length)
{
	char *at = data;

	while (length) {
		ssize_t n = read(python.socket, at, length);

		if (!n || (n < 0 && (errno != EINTR || prb_interrupted())))
			return false;
		at += n > 0 ? n : 0;
		length -= n > 0 ? (size_t)n : 0;
	}
	return true;
}

static bool receive(struct prb_str *ret)
{
	char part[4096];
	uint32_t length;

	if (!receive_all(&length, sizeof(length)) || length > MOST)
		return false;
	while (length) {
		size_t n = PRB_MIN(length, sizeof(part));

		if (!receive_all(part, n))
			return false;
		prb_str_append(ret, part, n);
		length -= (uint32_t)n;
	}
	return !ret->failed;
}

static void end(void)
{
	if (python.socket >= 0)
		close(python.socket);
	python.socket = -1;
}

/* "+" and the text, "-" or "!" and why not. '\0': Python has ended. */
static char ask(const struct prb_str *question, struct prb_str *ret)
{
	uint32_t length = (uint32_t)question->length;
	prb_auto_str struct prb_str answer = {};

	if (python.socket < 0 || question->failed)
		return '\0';
	if (!send_all(&length, sizeof(length)) || !send_all(question->data, question->length) ||
	    !receive(&answer) || !answer.length) {
		end();
		return '\0';
	}
	prb_str_append(ret, answer.data + 1, answer.length - 1);
	return answer.data[0];
}

/* The kind, and fields divided by NUL; each question names the target. */
static void begin(struct prb_str *question, char kind)
{
	prb_str_printf(question, "%c%s%c%s", kind, python.target, 0, python.exe ? python.exe : "");
}

static void add(struct prb_str *question, const char *field)
{
	prb_str_putc(question, '\0');
	prb_str_puts(question, field ? field : "");
}

/* The names of one kind, from @p at on; NULL after the last one. */
static const char *next_name(const char *at, char kind)
{
	const char *end = prb_str_text(&python.names) + python.names.length;

	for (at = at ? at + strlen(at) + 1 : prb_str_text(&python.names); at < end;
	     at += strlen(at) + 1)
		if (*at == kind)
			return at;
	return NULL;
}

static bool knows(char kind, const char *name)
{
	for (const char *at = next_name(NULL, kind); name && at; at = next_name(at, kind))
		if (!strcmp(at + 1, name))
			return true;
	return false;
}

/* "app.Matrix" is also "app.Outer.Matrix": Python looks again. */
static bool has_class(void *context, const char *name)
{
	(void)context;
	for (const char *at = next_name(NULL, 'c'); at; at = next_name(at, 'c')) {
		const char *own = strrchr(at, '.'), *last = strrchr(name, '.');

		if (!strcmp(at + 1, name) || (own && last && !strcmp(own, last) &&
					      !strncmp(at + 1, name, (size_t)(own - at))))
			return true;
	}
	return false;
}

static bool give_text(void *context, uint64_t address, uint64_t type, struct prb_str *ret)
{
	prb_auto_str struct prb_str question = {};
	char number[24];

	(void)context;
	(void)type;
	begin(&question, 'o');
	snprintf(number, sizeof(number), "%llu", (unsigned long long)address);
	add(&question, number);
	return ask(&question, ret) == '+';
}

static bool give_words(void *context, const struct prb_custom_frame *frame, struct prb_str *ret)
{
	prb_auto_str struct prb_str question = {};
	char number[24];

	(void)context;
	if (!knows('w', frame->qualname) && !knows('w', frame->func))
		return false;
	begin(&question, 'w');
	snprintf(number, sizeof(number), "%d", (int)frame->tid);
	add(&question, number);
	snprintf(number, sizeof(number), "%u", frame->depth);
	add(&question, number);
	add(&question, frame->file);
	add(&question, frame->func);
	add(&question, frame->qualname);
	return ask(&question, ret) == '+';
}

static struct prb_error *give_table(void *context, const char *name, struct prb_str *ret)
{
	prb_auto_str struct prb_str question = {};

	(void)context;
	if (!knows('t', name))
		return prb_error_create(PRB_ERROR_NOT_FOUND, "no extension has such a table");
	begin(&question, 't');
	add(&question, name);
	switch (ask(&question, ret)) {
	case '+':
		return NULL;
	case '!':
		return prb_error_create(PRB_ERROR_FAILED, "%s", prb_str_text(ret));
	default:
		return prb_error_create(prb_interrupted() ? PRB_ERROR_CANCELLED : PRB_ERROR_FAILED,
					"the Python of the extensions has ended");
	}
}

static bool give_findings(void *context, struct prb_str *ret)
{
	prb_auto_str struct prb_str question = {};

	(void)context;
	if (!next_name(NULL, 'r'))
		return false;
	begin(&question, 'r');
	return ask(&question, ret) == '+';
}

/* In the child. */
static void become_python(int socket, pid_t parent, const struct prb_texts *scripts)
{
	const char *words[2 * PRB_MAX_TEXTS + 3] = {};
	char number[16];
	size_t count = 0;
	int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);

	for (size_t i = 0; i < scripts->count; i++) {
		words[count++] = "--script";
		words[count++] = scripts->items[i];
	}
	snprintf(number, sizeof(number), "%d", socket);
	words[count++] = "-s";
	words[count++] = number;
	/* Output of extensions is no result of ours; and they do not outlive us. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent || nothing < 0 ||
	    dup2(nothing, STDIN_FILENO) < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0 ||
	    fcntl(socket, F_SETFD, 0))
		_exit(1);
	_exit((int)prb_exit_report(prb_script_start(words)));
}

static struct prb_error *start(const struct prb_texts *scripts)
{
	int pair[2];
	pid_t child, parent = getpid();

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return prb_error_os(errno, "cannot make a socket");
	fflush(stdout);
	child = fork();
	if (child < 0) {
		close(pair[0]);
		close(pair[1]);
		return prb_error_os(errno, "cannot start a process");
	}
	if (!child)
		become_python(pair[1], parent, scripts);
	close(pair[1]);
	python.socket = pair[0];
	if (!receive(&python.names))
		end();
	return NULL;
}

/* A file has a decorator of that kind, or loads packages, which may have any. */
static bool may_make(const struct prb_texts *scripts, unsigned use)
{
	static const char *const makers[] = {"printer(", "wait(", "table(", "rule("};

	for (size_t i = 0; i < PRB_ARRAY_SIZE(makers); i++)
		if (use >> i & 1 && prb_script_mentioned(scripts, makers[i]))
			return true;
	return prb_script_mentioned(scripts, "load_entry_points(");
}

struct prb_error *prb_extensions_load(const struct prb_cli *cli, const struct prb_texts *scripts,
				      unsigned use, const struct prb_target *target,
				      const struct prb_custom **ret)
{
	*ret = NULL;
	if (!python.started && may_make(scripts, use))
		PRB_TRY(start(scripts));
	python.started = true;
	if (python.socket < 0)
		return NULL;
	/* By pid: a pattern could match another process by then. */
	snprintf(python.pid, sizeof(python.pid), "%d", (int)target->pid);
	python.target = target->live && target->local ? python.pid : cli->target;
	python.exe = cli->places.exe;
	python.custom = (struct prb_custom){NULL,	has_class,  give_text,
					    give_words, give_table, give_findings};
	*ret = &python.custom;
	return NULL;
}

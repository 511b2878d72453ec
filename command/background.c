/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "command/background.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"

/** Moves the descriptors that are kept to the lowest numbers, and closes all others. */
static void close_others(const struct prb_background *b, int report)
{
	int count = (int)b->kept_count, from[PRB_BACKGROUND_MOST + 1];
	int nothing = open("/dev/null", O_RDWR);

	/* First out of the way of the numbers they are to have. */
	for (int i = 0; i <= count; i++)
		from[i] = fcntl(i < count ? b->kept[i] : report, F_DUPFD,
				PRB_BACKGROUND_KEPT + PRB_BACKGROUND_MOST + 10);
	for (int fd = 0; fd < PRB_BACKGROUND_KEPT; fd++)
		dup2(nothing, fd);
	for (int i = 0; i <= count; i++)
		dup3(from[i], PRB_BACKGROUND_KEPT + i, O_CLOEXEC);
	if (syscall(SYS_close_range, PRB_BACKGROUND_KEPT + count + 1, ~0u, 0))
		for (int fd = PRB_BACKGROUND_KEPT + count + 1; fd < 1024; fd++)
			close(fd);
}

/** In the child of the child: nothing ties it to the command that started it. */
static void detach(const struct prb_background *b, int report)
{
	setsid();
	if (fork())
		_exit(0);
	close_others(b, report);
	b->run(b->context, PRB_BACKGROUND_KEPT + (int)b->kept_count);
	_exit(0);
}

void prb_background_report(int report, const struct prb_error *err, const char *text)
{
	if (err)
		dprintf(report, "%d\n%s\n%s", (int)err->code, err->message,
			err->hint ? err->hint : "");
	else
		dprintf(report, "\n%s", text);
	close(report);
}

/** Reads its report: a number and an error, or an empty line and a text. */
static struct prb_error *read_report(const struct prb_background *b, int fd, struct prb_str *said)
{
	prb_auto_str struct prb_str text = {};
	char chunk[1024], *message, *hint;
	ssize_t got;

	while ((got = read(fd, chunk, sizeof(chunk))) > 0 || (got < 0 && errno == EINTR))
		prb_str_append(&text, chunk, got > 0 ? (size_t)got : 0);
	message = text.length ? strchr(text.data, '\n') : NULL;
	if (message == text.data && message) {
		prb_str_puts(said, message + 1);
		return NULL;
	}
	hint = message ? strchr(message + 1, '\n') : NULL;
	if (!hint)
		return prb_error_create(PRB_ERROR_FAILED, "%s did not start", b->name);
	*hint = 0;

	struct prb_error *err =
		prb_error_create((enum prb_error_code)atoi(text.data), "%s", message + 1);
	return hint[1] ? prb_error_hint(err, "%s", hint + 1) : err;
}

struct prb_error *prb_background_start(const struct prb_background *b, struct prb_str *said)
{
	int ends[2];
	pid_t child;

	if (pipe2(ends, O_CLOEXEC))
		return prb_error_os(errno, "cannot make a pipe");
	fflush(NULL);
	child = fork();
	if (!child) {
		close(ends[0]);
		detach(b, ends[1]);
	}
	close(ends[1]);

	struct prb_error *err = child < 0 ? prb_error_os(errno, "cannot start %s", b->name)
					  : read_report(b, ends[0], said);
	close(ends[0]);
	if (child > 0)
		waitpid(child, NULL, 0);
	return err;
}

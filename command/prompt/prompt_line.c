/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reading lines from the terminal. */
#include "command/prompt/prompt.h"

#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <readline/readline.h>

#include "command/interrupt.h"

static int watched_fd = -1;
static int terminal_fd = STDIN_FILENO;
static bool lost;
static bool (*look_at_watched)(void *context);
static void *looked_at;

bool prb_prompt_is_lost(void)
{
	return lost;
}

/**
 * Waits for the terminal; false with EINTR, or if what is watched has ended. A signal that arrived
 * before the wait ends it, too.
 */
static bool wait_for(int fd)
{
	struct pollfd wait[] = {{.fd = fd, .events = POLLIN}, {.fd = watched_fd, .events = POLLIN}};
	sigset_t interrupt, before;
	int ready = -1;

	sigemptyset(&interrupt);
	sigaddset(&interrupt, SIGINT);
	sigprocmask(SIG_BLOCK, &interrupt, &before);
	errno = EINTR;
	if (!rl_pending_signal() && !prb_interrupted())
		ready = ppoll(wait, 2, NULL, &before);
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (ready < 0)
		return false;
	errno = 0;
	lost = wait[1].revents && (!look_at_watched || look_at_watched(looked_at));
	if (!lost && !wait[0].revents)
		return wait_for(fd);
	return !lost;
}

void prb_prompt_watch(bool (*look)(void *context), void *context)
{
	look_at_watched = look;
	looked_at = context;
}

/**
 * The character that readline gets when there is none. A question of its own, such as whether to
 * show all possibilities, takes nothing but an answer and would repeat without end: Ctrl-G ends
 * that.
 */
static int no_char(int otherwise)
{
	enum { CTRL_G = 'G' & 0x1f };

	return RL_ISSTATE(RL_STATE_MOREINPUT) ? CTRL_G : otherwise;
}

/**
 * A character from the terminal. Ctrl-C gives up what was typed: readline itself would go on with
 * it.
 */
static int get_char(FILE *stream)
{
	(void)stream;
	for (;;) {
		unsigned char c;
		ssize_t got = -1;

		if (wait_for(terminal_fd))
			got = read(terminal_fd, &c, 1);
		if (got == 1)
			return c;
		/* Ctrl-C has the kernel forget what was there to be read. */
		if (got < 0 && errno == EAGAIN)
			continue;
		if (got == 0 || errno != EINTR)
			return no_char(EOF);
		rl_check_signals();
		if (prb_interrupted()) {
			rl_replace_line("", 0);
			return no_char('\n');
		}
	}
}

/**
 * The terminal, opened once more so that reading it never blocks; O_NONBLOCK on stdin itself would
 * affect other processes that share it. If it cannot be opened, stdin is used.
 */
static int open_terminal(void)
{
	int fd = open("/proc/self/fd/0", O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	return fd < 0 ? STDIN_FILENO : fd;
}

void prb_prompt_begin(const char *history, int watched)
{
	/* Input is UTF-8, whatever the locale says; the locale is used for nothing else. */
	setlocale(LC_CTYPE, "");
	if (strcmp(nl_langinfo(CODESET), "UTF-8") != 0)
		setlocale(LC_CTYPE, "C.UTF-8");
	rl_readline_name = "probing";
	rl_instream = stdin;
	rl_outstream = isatty(STDOUT_FILENO) ? stdout : stderr;
	rl_getc_function = get_char;
	watched_fd = watched;
	terminal_fd = open_terminal();
	prb_prompt_history_begin(history);
}

enum prb_prompt_read prb_prompt_read(const char *prompt, char **ret)
{
	*ret = readline(prompt);
	if (!*ret) {
		/* The shell's prompt begins on a line of its own. */
		fputc('\n', rl_outstream);
		return PRB_PROMPT_END;
	}
	return prb_interrupted() ? PRB_PROMPT_GIVEN_UP : PRB_PROMPT_LINE;
}

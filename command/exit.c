/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "command/exit.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/checked.h"
#include "base/str.h"
#include "base/text.h"
#include "command/exit_kind.h"

const char *prb_exit_program = "probing";
void (*prb_warn_first)(void);

static int passed = -1; /* a wait status; -1: none */

void prb_exit_pass(int status)
{
	passed = status;
}

void prb_exit_as_passed(void)
{
	const struct rlimit no_core = {};
	sigset_t all;

	if (passed < 0)
		return;
	if (WIFEXITED(passed))
		exit(WEXITSTATUS(passed));
	/* The core that there may be is the program's. */
	setrlimit(RLIMIT_CORE, &no_core);
	signal(WTERMSIG(passed), SIG_DFL);
	sigfillset(&all);
	sigprocmask(SIG_UNBLOCK, &all, NULL);
	raise(WTERMSIG(passed));
	exit(128 + WTERMSIG(passed));
}

enum prb_exit prb_exit_code(const struct prb_error *err)
{
	if (!err)
		return PRB_EXIT_OK;
	switch (err->code) {
	case PRB_ERROR_USAGE:
		return PRB_EXIT_USAGE;
	case PRB_ERROR_UNSUPPORTED:
		return PRB_EXIT_UNSUPPORTED;
	case PRB_ERROR_PERMISSION:
		return PRB_EXIT_PERMISSION;
	case PRB_ERROR_TIMEOUT:
		return PRB_EXIT_TIMEOUT;
	case PRB_ERROR_NO_PROCESS:
		return PRB_EXIT_NO_PROCESS;
	case PRB_ERROR_FAILED:
	case PRB_ERROR_NOMEM:
	case PRB_ERROR_OS:
	case PRB_ERROR_FAULT:
	case PRB_ERROR_BAD_DATA:
	case PRB_ERROR_NOT_FOUND:
	case PRB_ERROR_CANCELLED:
		break;
	}
	return PRB_EXIT_FAILED;
}

enum prb_exit prb_exit_report(struct prb_error *err)
{
	enum prb_exit code = prb_exit_code(err);

	if (err && prb_exit_kinds_are_wanted())
		code = (enum prb_exit)prb_exit_kind(err);
	if (err && *err->message) {
		prb_auto_str struct prb_str text = {};

		prb_str_printf(&text, "%s: ", prb_exit_program);
		prb_text_escape_lines(&text, err->message, "  ");
		if (err->hint) {
			prb_str_puts(&text, "\n  ");
			prb_text_escape_lines(&text, err->hint, "  ");
		}
		fprintf(stderr, "%s\n", prb_str_text(&text));
	}
	prb_error_destroy(err);
	return code;
}

void prb_warn(const char *text)
{
	prb_auto_str struct prb_str line = {};

	prb_text_escape_lines(&line, text, "  ");
	if (prb_warn_first)
		prb_warn_first();
	fprintf(stderr, "%s: warning: %s\n", prb_exit_program, prb_str_text(&line));
}

const char *prb_exit_meaning(int code)
{
	static const char *const meanings[] = {
		[PRB_EXIT_OK] = "Success",
		[PRB_EXIT_FAILED] = "Failure; the message gives the reason",
		[PRB_EXIT_USAGE] = "Wrong usage: see --help",
		[PRB_EXIT_UNSUPPORTED] = "Target not supported",
		[PRB_EXIT_PERMISSION] = "Permission denied",
		[PRB_EXIT_TIMEOUT] = "Timeout",
		[PRB_EXIT_NO_PROCESS] = "No such process or thread",
	};

	return code >= 0 && code < (int)PRB_ARRAY_SIZE(meanings) ? meanings[code] : NULL;
}

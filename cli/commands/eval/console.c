/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/commands/eval/console.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "command/exit.h"
#include "command/interrupt.h"
#include "control/who_blocks.h"

static struct prb_error *put(void *context, enum prb_wire_type what, const void *data,
			     size_t length)
{
	FILE *file = what == PRB_WIRE_STDERR || what == PRB_WIRE_TRACEBACK ? stderr : stdout;

	(void)context;
	/* Keep the order of both streams. */
	if (file == stderr)
		fflush(stdout);
	errno = 0;
	if (fwrite(data, 1, length, file) < length || fflush(file))
		return prb_error_os(errno ? errno : EIO, "cannot write the output");
	return NULL;
}

int prb_eval_console_interruptions(void *context)
{
	struct prb_eval_console *console = context;
	unsigned count;

	/* Ctrl-C gets through also if there is always a frame, when nothing is waited for. */
	prb_interrupt_pass();
	count = prb_interrupt_count();
	if (count > console->patience)
		return -1;
	if (count && count == console->patience && console->leaver && !console->said)
		fprintf(stderr, "%s\n", console->leaver);
	console->said = count == console->patience;
	return (int)count;
}

/** The first Ctrl-C has not ended the code yet: what it waits for, and what else can be done. */
static void goes_on(void *context, struct prb_target *t, bool on_main)
{
	const struct prb_eval_console *console = context;
	prb_auto_str struct prb_str text = {}, line = {};

	prb_agent_blame_code(t, on_main, &text);
	prb_str_printf(&line,
		       "the code was told to stop and is still running%s; Ctrl-C %s abandons it",
		       prb_str_text(&text),
		       console->patience == 1	? "again"
		       : console->patience == 2 ? "twice more"
						: "three times more");
	prb_warn(prb_str_text(&line));
}

void prb_eval_console_use(struct prb_eval_console *console, bool keep, struct prb_eval *eval)
{
	eval->put = keep ? NULL : put;
	eval->interruptions = prb_eval_console_interruptions;
	eval->goes_on = goes_on;
	eval->context = console;
}

struct prb_error *prb_eval_thread(const char *word, uint32_t *ret_flags)
{
	if (word && strcmp(word, "main") != 0 && strcmp(word, "agent") != 0)
		return prb_error_create(PRB_ERROR_USAGE,
					"--thread is 'main' or 'agent', not '%.100s'", word);
	*ret_flags = word && !strcmp(word, "main") ? PRB_WIRE_ON_MAIN : 0;
	return NULL;
}

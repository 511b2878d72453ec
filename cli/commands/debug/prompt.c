/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/commands/debug/prompt.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/commands/debug/session.h"
#include "command/exit.h"
#include "command/interrupt.h"
#include "command/output.h"
#include "command/prompt/prompt.h"
#include "dump/inspect.h"
#include "target/spec/target_spec.h"

enum { MAX_TEXT = 1 << 20 };

static const double MAX_SECONDS = 3600;

/** Runs a line; its error is shown. */
static void run_line(struct prb_debug *d, const char *line)
{
	struct prb_error *err = prb_debug_line(d, line);

	/* What ended the pause ends the session. */
	if (err && (err->code == PRB_ERROR_NO_PROCESS || err->code == PRB_ERROR_NOMEM))
		d->over = d->ended = true;
	prb_exit_report(err);
	err = d->drive && !d->over ? prb_drive_check(d->drive) : NULL;
	if (err) {
		d->ended = err->code == PRB_ERROR_NO_PROCESS;
		d->over = true;
		prb_exit_report(err);
	}
}

static const char *prompt_of(const struct prb_debug *d)
{
	return d->mode == PRB_DEBUG_INTERACTS  ? d->text.length ? "... " : ">>> "
	       : d->mode == PRB_DEBUG_COLLECTS ? "> "
					       : "(probing) ";
}

static bool look(void *context)
{
	return prb_debug_happened(context);
}

static struct prb_debug *completed; /* readline has no context */

/** Offers commands for the first word, and names of the frame for others. */
static void offer(const char *line, const char *word, bool first)
{
	struct prb_inspected found = {};
	struct prb_error *err;
	char *rest = NULL;

	(void)line;
	for (const struct prb_debug_command *c = prb_debug_all; first && c->name; c++)
		if (!strncmp(c->name, word, strlen(word)) && (!c->drives || completed->drive))
			prb_prompt_offer(strdup(c->name));
	if (first)
		return;
	err = prb_inspect_names(completed->target, completed->tid, completed->frame, word, &found);
	if (!err && found.value.length)
		for (char *name = strtok_r(found.value.data, "\n", &rest); name;
		     name = strtok_r(NULL, "\n", &rest))
			prb_prompt_offer(strdup(name));
	prb_error_destroy(err);
	prb_inspected_deinit(&found);
}

static struct prb_error *converse(struct prb_debug *d)
{
	completed = d;
	prb_prompt_begin("debug_history", d->ends[1]);
	prb_prompt_watch(look, d);
	prb_prompt_words_begin(offer);
	while (!d->over) {
		prb_auto_free char *line = NULL;
		enum prb_prompt_read got;

		prb_interrupt_forget();
		got = prb_prompt_read(prompt_of(d), &line);
		if (prb_prompt_is_lost())
			break;
		if (got == PRB_PROMPT_END && d->mode == PRB_DEBUG_INTERACTS) {
			d->mode = PRB_DEBUG_COMMANDS;
			continue;
		}
		if (got == PRB_PROMPT_END)
			break;
		if (got == PRB_PROMPT_GIVEN_UP) {
			prb_str_truncate(&d->text, 0);
			continue;
		}
		if (*line)
			prb_prompt_history_add(line);
		run_line(d, line);
	}
	return prb_output_flush();
}

/** Waits for input, and does meanwhile what the agent asks for. False: the session is over. */
static bool wait_for_input(struct prb_debug *d)
{
	struct pollfd waits[] = {{.fd = STDIN_FILENO, .events = POLLIN},
				 {.fd = d->ends[1], .events = POLLIN}};

	while (!d->over) {
		if (poll(waits, 2, -1) < 0 && errno != EINTR)
			return false;
		if (waits[1].revents && prb_debug_happened(d))
			return false;
		if (waits[0].revents)
			return true;
	}
	return false;
}

/** Lines of stdin, or texts that end with a NUL. */
static struct prb_error *read_all(struct prb_debug *d, char end, const char *mark)
{
	prb_auto_str struct prb_str text = {};
	bool ended = false;

	while (!d->over) {
		char *stop = text.length ? memchr(text.data, end, text.length) : NULL;
		char chunk[4096];
		ssize_t got;

		if (!stop && ended && text.length && !mark) {
			run_line(d, prb_str_text(&text));
			break;
		}
		if (!stop && ended)
			break;
		if (!stop) {
			if (!wait_for_input(d))
				break;
			got = read(STDIN_FILENO, chunk, sizeof(chunk));
			if (got < 0 && errno != EINTR)
				return prb_error_os(errno, "cannot read stdin");
			ended = !got;
			prb_str_append(&text, chunk, got > 0 ? (size_t)got : 0);
			if (text.failed)
				return prb_error_nomem();
			if (text.length > MAX_TEXT)
				return prb_error_create(PRB_ERROR_USAGE, "a line has over %d MiB",
							MAX_TEXT >> 20);
			continue;
		}
		*stop = '\0';
		if (*text.data || !mark)
			run_line(d, text.data);
		prb_interrupt_forget();
		prb_str_remove(&text, 0, (size_t)(stop - text.data) + 1);
		if (mark && !d->over)
			fputs(mark, stdout);
		PRB_TRY(prb_output_flush());
		if (mark && !d->over)
			fputs(mark, stderr);
	}
	return prb_output_flush();
}

static struct prb_error *talk(struct prb_debug *d, const char *mark)
{
	prb_exit_report(prb_debug_place(d));
	if (mark)
		return read_all(d, '\0', mark);
	return isatty(STDIN_FILENO) ? converse(d) : read_all(d, '\n', NULL);
}

static void end(struct prb_debug *d)
{
	prb_debug_end(d);
	prb_interrupt_release();
}

struct prb_error *prb_debug_prompt(const struct prb_cli *cli, double within, double max,
				   const char *mark)
{
	__attribute__((cleanup(end))) struct prb_debug d = {};
	struct prb_target *target = NULL;

	PRB_TRY(prb_spec_open_in(cli->target, &cli->places, &target));
	prb_interrupt_catch(NULL);
	PRB_TRY(prb_debug_begin(target, within, max > 0 ? max : MAX_SECONDS, &d));
	PRB_TRY(talk(&d, mark));
	/* It was said before. */
	return d.ended ? prb_error_create(PRB_ERROR_NO_PROCESS, "%s", "") : NULL;
}

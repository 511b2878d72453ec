/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Breakpoints of a pause: requests to the agent, whose answers are as untrusted as its memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "control/drive/private.h"

void prb_drive_breaks_deinit(struct prb_drive_breaks *breaks)
{
	struct prb_drive_break *each;

	prb_vec_each (each, &breaks->list)
		free(each->words);
	prb_vec_free(&breaks->list);
}

/** Reads "NUMBER\tLINE\tENABLED\tHITS\tIGNORE\tPLACES\tWORDS". */
static struct prb_error *take_row(const char *row, struct prb_drive_breaks *ret)
{
	struct prb_drive_break *each = prb_vec_push(&ret->list);
	prb_auto_str struct prb_str words = {};
	unsigned enabled = 0;
	int used = 0;

	if (!each)
		return prb_error_nomem();
	if (sscanf(row, "%u\t%u\t%u\t%u\t%u\t%u\t%n", &each->number, &each->line, &enabled,
		   &each->hits, &each->ignore, &each->places, &used) < 6 ||
	    !used)
		return prb_error_create(PRB_ERROR_BAD_DATA,
					"the agent describes a breakpoint in another way");
	each->enabled = enabled;
	prb_text_escape(&words, row + used);
	each->words = prb_str_take(&words);
	return each->words ? NULL : prb_error_nomem();
}

static struct prb_error *ask(struct prb_drive *d, const struct prb_str *request,
			     struct prb_drive_breaks *ret)
{
	static const char problem[] = "problem\t";
	prb_auto_str struct prb_str answer = {}, escaped = {};
	char *rest = NULL;

	PRB_TRY(prb_drive_request(d, request, &answer));
	if (!strncmp(prb_str_text(&answer), problem, strlen(problem))) {
		answer.data[strcspn(answer.data, "\n")] = '\0';
		prb_text_escape(&escaped, answer.data + strlen(problem));
		return prb_error_create(PRB_ERROR_UNSUPPORTED, "%.1000s", prb_str_text(&escaped));
	}
	for (char *row = answer.length ? strtok_r(answer.data, "\n", &rest) : NULL; row;
	     row = strtok_r(NULL, "\n", &rest))
		PRB_TRY(take_row(row, ret));
	return NULL;
}

/** The words are lines of the request. */
static struct prb_error *put(struct prb_str *request, const char *word)
{
	if (word && strchr(word, '\n'))
		return prb_error_create(PRB_ERROR_USAGE, "a place or condition is one line");
	prb_str_putc(request, '\n');
	prb_str_puts(request, word ? word : "");
	return NULL;
}

struct prb_error *prb_drive_add(struct prb_drive *d, const struct prb_drive_place *place,
				struct prb_drive_breaks *ret)
{
	prb_auto_str struct prb_str request = {};
	uint64_t ident;

	PRB_TRY(prb_drive_check(d));
	PRB_TRY(prb_drive_ident(d, place->tid, &ident));
	prb_str_puts(&request, "break\n");
	prb_str_puts(&request, place->catches ? "catch" : place->line ? "add" : "function");
	if (place->catches) {
		PRB_TRY(put(&request, place->name));
		PRB_TRY(put(&request, place->uncaught ? "1" : "0"));
	} else {
		PRB_TRY(put(&request, place->file));
		if (place->line)
			prb_str_printf(&request, "\n%u", place->line);
		else
			PRB_TRY(put(&request, place->name));
	}
	PRB_TRY(put(&request, place->condition));
	if (!place->catches) {
		PRB_TRY(put(&request, place->hits));
		prb_str_printf(&request, "\n%d\n%llu%s", place->once, (unsigned long long)ident,
			       place->waits ? "\n1" : "");
	}
	return ask(d, &request, ret);
}

struct prb_error *prb_drive_change(struct prb_drive *d, unsigned number, const char *what,
				   const char *value, struct prb_drive_breaks *ret)
{
	prb_auto_str struct prb_str request = {};

	PRB_TRY(prb_drive_check(d));
	prb_str_printf(&request, "break\nset\n%u\n%s", number, what);
	PRB_TRY(put(&request, value));
	return ask(d, &request, ret);
}

struct prb_error *prb_drive_delete(struct prb_drive *d, unsigned number,
				   struct prb_drive_breaks *ret)
{
	prb_auto_str struct prb_str request = {};

	prb_str_puts(&request, "break\ndelete\n");
	if (number)
		prb_str_printf(&request, "%u", number);
	return ask(d, &request, ret);
}

struct prb_error *prb_drive_raise(struct prb_drive *d, pid_t tid, const char *expression)
{
	__attribute__((cleanup(prb_drive_breaks_deinit))) struct prb_drive_breaks others = {};
	prb_auto_str struct prb_str request = {};
	uint64_t ident;

	PRB_TRY(prb_drive_check(d));
	PRB_TRY(prb_drive_ident(d, tid, &ident));
	prb_str_printf(&request, "break\nraise\n%llu", (unsigned long long)ident);
	PRB_TRY(put(&request, expression));
	return ask(d, &request, &others);
}

struct prb_error *prb_drive_list(struct prb_drive *d, struct prb_drive_breaks *ret)
{
	prb_auto_str struct prb_str request = {};

	PRB_TRY(prb_drive_check(d));
	prb_str_puts(&request, "break\nlist");
	return ask(d, &request, ret);
}

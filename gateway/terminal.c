/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * `probing TARGET repl` in a terminal of its own, and `probing TARGET dap`. One request is what is
 * shown, and lasts; what is typed comes in others. It ends with the request that shows it, as a
 * terminal's window does.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "gateway/gateway_private.h"

enum { MOST = 1000, ROWS = 24, COLUMNS = 80 };

/** Limit of a terminal's lifetime. */
static const double LIMIT_SECONDS = 24 * 3600;

/** Takes the size that is given; what is not stays as it is. */
static struct prb_error *take_size(const struct prb_request *r, struct winsize *size)
{
	const char *rows = prb_param(r, "rows"), *columns = prb_param(r, "columns");
	long height = rows ? atol(rows) : size->ws_row,
	     width = columns ? atol(columns) : size->ws_col;

	if (height < 1 || height > MOST || width < 1 || width > MOST)
		return prb_error_create(PRB_ERROR_USAGE, "'rows' and 'columns' are 1 to %d", MOST);
	size->ws_row = (unsigned short)height;
	size->ws_col = (unsigned short)width;
	return NULL;
}

struct prb_error *prb_terminal_begin(struct prb_request *r)
{
	struct winsize size = {.ws_row = ROWS, .ws_col = COLUMNS};

	if (r->talks)
		return prb_child_start_talk(&r->child, &r->words);
	PRB_TRY(take_size(r, &size));
	return prb_child_start_terminal(&r->child, &r->words, &size);
}

static void start(struct prb_request *r)
{
	r->limit = LIMIT_SECONDS;
	r->lasts = true;
	r->terminal = ++r->gateway->terminals;
	prb_request_start(r);
}

struct prb_error *prb_answer_terminal(struct prb_request *r)
{
	struct winsize size = {.ws_row = ROWS, .ws_col = COLUMNS};

	PRB_TRY(take_size(r, &size));
	PRB_TRY(prb_served_words(&r->gateway->served, r->id, &r->words));
	PRB_TRY(prb_words_add(&r->words, "repl"));
	PRB_TRY(prb_param_word(r, "thread", "thread"));
	start(r);
	return NULL;
}

struct prb_error *prb_answer_dap(struct prb_request *r)
{
	PRB_TRY(prb_served_words(&r->gateway->served, r->id, &r->words));
	PRB_TRY(prb_words_add(&r->words, "dap"));
	r->talks = true;
	start(r);
	return NULL;
}

static struct prb_request *find(const struct prb_gateway *g, const char *name)
{
	char own[16];

	for (size_t i = 0; i < g->waiting.count; i++) {
		struct prb_request *r = g->waiting.items[i];

		snprintf(own, sizeof(own), "t%u", r->terminal);
		if (r->terminal && r->child.out >= 0 && !strcmp(own, name))
			return r;
	}
	return NULL;
}

struct prb_error *prb_answer_type(struct prb_request *r)
{
	struct prb_request *terminal = find(r->gateway, r->name);
	const char *input = prb_param(r, "input");
	size_t length = input ? strlen(input) : 0;
	struct winsize size;

	if (!terminal)
		return prb_error_create(PRB_ERROR_NOT_FOUND, "terminal %.20s has ended", r->name);
	if (length > PRB_GATEWAY_MAX_TYPED - terminal->typed.length)
		return prb_error_create(PRB_ERROR_USAGE,
					"over %d bytes were typed that nothing has read yet",
					PRB_GATEWAY_MAX_TYPED);
	if (prb_param(r, "rows") || prb_param(r, "columns")) {
		if (ioctl(terminal->child.out, TIOCGWINSZ, &size))
			return prb_error_os(errno, "cannot tell the size of the terminal");
		PRB_TRY(take_size(r, &size));
		if (ioctl(terminal->child.out, TIOCSWINSZ, &size))
			return prb_error_os(errno, "cannot set the size of the terminal");
	}
	if (length)
		prb_str_append(&terminal->typed, input, length);
	prb_terminal_tend(terminal);
	prb_str_puts(&r->reply, "{}\n");
	return NULL;
}

void prb_terminal_tend(struct prb_request *r)
{
	struct prb_str *typed = &r->typed;
	ssize_t taken;

	if (!typed->length || r->child.out < 0)
		return;
	taken = write(r->child.out, typed->data, typed->length);
	if (taken <= 0)
		return;
	prb_str_remove(typed, 0, (size_t)taken);
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "control/expression.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "control/load.h"
#include "control/eval.h"

enum { MAX_ROWS = 100000, MAX_NAME = 100 };

/** control/expression.py (control/expression_code.c). */
extern const char prb_expression_code[];

void prb_expression_rows_deinit(struct prb_expression_rows *rows)
{
	for (unsigned i = 0; i < rows->columns; i++)
		free(rows->names[i]);
	prb_vec_free(&rows->cells);
	prb_str_deinit(&rows->text);
}

static void put_hex(struct prb_str *s, const char *text)
{
	for (; *text; text++)
		prb_str_printf(s, "%02x", (unsigned char)*text);
}

/** The code is one expression statement, which leaves no names in __main__. */
static void make_code(const char *expression, struct prb_str *ret)
{
	prb_str_puts(ret, "exec(compile(bytes.fromhex('");
	put_hex(ret, prb_expression_code);
	prb_str_puts(ret, "').decode('utf-8'), '<probing>', 'exec'), (lambda names: (names.update("
			  "text=bytes.fromhex('");
	put_hex(ret, expression);
	prb_str_puts(ret, "').decode('utf-8'), names=globals()), names)[1])({}))");
}

/** Appends a text with its escapes undone. */
static void unescape(const char *at, const char *end, struct prb_str *ret)
{
	static const char escapes[] = "t\tn\nr\r\\\\";

	for (; at < end; at++) {
		const char *known = at + 1 < end && *at == '\\' ? strchr(escapes, at[1]) : NULL;

		prb_str_putc(ret, known ? known[1] : *at);
		at += known != NULL;
	}
}

/** A name that a column can have: SQL quotes it, and none has a quote. */
static char *make_name(const char *at, const char *end, unsigned number)
{
	prb_auto_str struct prb_str name = {};

	for (; at < end && name.length < MAX_NAME; at++)
		if ((unsigned char)*at >= ' ' && !strchr("\"\x7f", *at))
			prb_str_putc(&name, *at);
	if (!name.length || *name.data == '_')
		return prb_format("c%u%s", number, prb_str_text(&name));
	return strdup(prb_str_text(&name));
}

static struct prb_error *take_names(struct prb_expression_rows *rows, const char *at,
				    const char *end)
{
	while (rows->columns < PRB_EXPRESSION_COLUMNS) {
		const char *tab = memchr(at, '\t', (size_t)(end - at));
		char *name = make_name(at, tab ? tab : end, rows->columns);

		for (unsigned i = 0; name && i < rows->columns; i++) {
			if (strcasecmp(rows->names[i], name) != 0)
				continue;
			free(name);
			name = prb_format("c%u", rows->columns);
			break;
		}
		if (!name)
			return prb_error_nomem();
		rows->names[rows->columns++] = name;
		if (!tab)
			break;
		at = tab + 1;
	}
	return NULL;
}

static void take_cell(struct prb_expression_rows *rows, const char *at, const char *end,
		      struct prb_expression_cell *ret)
{
	char number[64];

	snprintf(number, sizeof(number), "%.*s", (int)PRB_MIN(end - at, 63), at);
	switch (at < end ? *at : 'n') {
	case 'i':
		ret->kind = PRB_EXPRESSION_INTEGER;
		ret->integer = strtoll(number + 1, NULL, 10);
		break;
	case 'r':
		ret->kind = PRB_EXPRESSION_REAL;
		ret->real = strtod(number + 1, NULL);
		break;
	case 't':
		ret->kind = PRB_EXPRESSION_TEXT;
		ret->offset = rows->text.length;
		unescape(at + 1, end, &rows->text);
		ret->length = (uint32_t)(rows->text.length - ret->offset);
		break;
	default:
		break;
	}
}

static struct prb_error *take_row(struct prb_expression_rows *rows, const char *at, const char *end)
{
	for (unsigned i = 0; i < rows->columns; i++) {
		struct prb_expression_cell *cell = prb_vec_push(&rows->cells);
		const char *tab = at < end ? memchr(at, '\t', (size_t)(end - at)) : NULL;

		if (!cell)
			return prb_error_nomem();
		take_cell(rows, at, tab ? tab : end, cell);
		at = tab ? tab + 1 : end;
	}
	return rows->text.failed ? prb_error_nomem() : NULL;
}

static struct prb_error *parse(const struct prb_str *output, struct prb_expression_rows *ret)
{
	const char *at = prb_str_text(output), *end = at + output->length;

	while (at < end) {
		const char *line = memchr(at, '\n', (size_t)(end - at));

		line = line ? line : end;
		if (!ret->columns)
			PRB_TRY(take_names(ret, at, line));
		else if (ret->cells.count / ret->columns == MAX_ROWS)
			ret->more = true;
		else
			PRB_TRY(take_row(ret, at, line));
		at = line + 1;
	}
	return ret->columns ? NULL
			    : prb_error_create(PRB_ERROR_BAD_DATA, "the process gave no columns");
}

/** The last line of a traceback: the exception. */
static struct prb_error *tell_exception(const char *expression, struct prb_str *traceback)
{
	const char *text = prb_str_text(traceback), *last;

	while (traceback->length && traceback->data[traceback->length - 1] == '\n')
		prb_str_truncate(traceback, traceback->length - 1);
	last = strrchr(text, '\n');
	return prb_error_hint(prb_error_create(PRB_ERROR_FAILED, "%.200s: %.1000s", expression,
					       last ? last + 1 : text),
			      "the expression is evaluated in the namespace of __main__, as by "
			      "'probing PID eval'");
}

struct prb_error *prb_expression_evaluate(struct prb_target *t, const char *expression,
					  double timeout, struct prb_expression_rows *ret)
{
	__attribute__((cleanup(prb_eval_result_deinit))) struct prb_eval_result result = {};
	const struct prb_eval how = {.timeout = timeout};
	prb_auto_str struct prb_str code = {};
	struct prb_agent *agent;
	struct prb_error *err;

	make_code(expression, &code);
	if (code.failed)
		return prb_error_nomem();
	PRB_TRY(prb_agent_reach(t, true, &agent));
	err = prb_eval_run(agent, &how, "<probing>", &code, &result);
	prb_agent_close(agent);
	PRB_TRY(err);
	if (result.has_traceback)
		return tell_exception(expression, &result.traceback);
	PRB_TRY(prb_eval_judge(t, (int)t->pid, &how, &result));
	return parse(&result.out, ret);
}

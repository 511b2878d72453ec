/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Logpoints: breakpoints that say something and let the process go on. */
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "gateway/dap/private.h"

const struct prb_dap_break *prb_dap_logpoint(const struct prb_dap *d, unsigned number)
{
	const struct prb_dap_break *each;

	prb_vec_each (each, &d->breaks)
		if (number && each->number == number && each->log)
			return each;
	return NULL;
}

/** Text as a string of Python, which JSON is. */
static struct prb_error *put_text(struct prb_str *code, const char *text, size_t length)
{
	json_t *string = json_stringn(text, length);
	prb_auto_free char *quoted = string ? json_dumps(string, JSON_ENCODE_ANY) : NULL;

	json_decref(string);
	if (!quoted)
		return prb_error_nomem();
	prb_str_puts(code, quoted);
	prb_str_puts(code, ", ");
	return NULL;
}

/** The end of an expression in braces, which may have braces itself; NULL: it has none. */
static const char *end_of(const char *at)
{
	unsigned depth = 0;

	for (; *at; at++) {
		depth += *at == '{';
		if (*at == '}' && !--depth)
			return at;
	}
	return NULL;
}

/** "loss {loss}" as code that prints it. */
static struct prb_error *code_of(const char *log, struct prb_str *ret)
{
	prb_str_puts(ret, "print(\"\".join((");
	while (*log) {
		const char *open = strchrnul(log, '{'), *close = *open ? end_of(open) : NULL;

		if (!close || close == open + 1)
			open = close ? close + 1 : log + strlen(log);
		if (open > log)
			PRB_TRY(put_text(ret, log, (size_t)(open - log)));
		log = open;
		if (*open == '{' && close > open) {
			prb_str_puts(ret, "str(");
			prb_str_append(ret, open + 1, (size_t)(close - open - 1));
			prb_str_puts(ret, "), ");
			log = close + 1;
		}
	}
	prb_str_puts(ret, ")))");
	return ret->failed ? prb_error_nomem() : NULL;
}

struct prb_error *prb_dap_log(struct prb_dap *d, const struct prb_dap_break *log, pid_t tid)
{
	__attribute__((cleanup(prb_eval_result_deinit))) struct prb_eval_result result = {};
	prb_auto_str struct prb_str code = {};

	PRB_TRY(code_of(log->log, &code));
	PRB_TRY(prb_drive_eval(d->drive, tid, 0, prb_str_text(&code), PRB_DAP_SECONDS, NULL,
			       &result));
	PRB_TRY(prb_dap_output(d, "console", &result.out));
	return prb_dap_output(d, "stderr", &result.traceback);
}

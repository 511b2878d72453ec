/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/commands/inject/library.h"

#include <inttypes.h>
#include <stddef.h>

#include "command/output.h"
#include "base/json.h"
#include "base/text.h"

static void print_text(struct prb_str *s, const struct prb_target *t,
		       const struct prb_inject_settings *settings,
		       const struct prb_inject_result *r)
{
	prb_text_escape(s, settings->library);
	if (r->already) {
		prb_str_printf(s, ": already loaded in process %d", t->pid);
	} else {
		prb_str_printf(s, ": loaded into process %d %s", t->pid, r->way);
	}
	if (r->hijacked)
		prb_str_printf(s, "; thread %d paused for ", r->hijacked);
	else if (r->stops)
		prb_str_puts(s, "; all threads paused for ");
	if (r->stops)
		prb_text_duration(s, r->pause_us / 1e6);
	prb_str_putc(s, '\n');
	if (r->called) {
		prb_text_escape(s, settings->symbol);
		prb_str_printf(s, "() returned %" PRId64 "\n", r->value);
	}
}

static void print_json(struct prb_str *s, const struct prb_target *t,
		       const struct prb_inject_settings *settings,
		       const struct prb_inject_result *r)
{
	struct prb_json json = {s};

	prb_json_open(&json, NULL, '{');
	prb_json_integer(&json, "pid", t->pid);
	prb_json_text(&json, "library", settings->library);
	prb_json_bool(&json, "already", r->already);
	if (!r->already)
		prb_json_text(&json, "way", r->way);
	if (r->hijacked)
		prb_json_integer(&json, "tid", r->hijacked);
	if (r->stops) {
		prb_json_integer(&json, "stops", r->stops);
		prb_json_real(&json, "pause_us", r->pause_us, 1);
	}
	if (r->called)
		prb_json_integer(&json, "value", r->value);
	prb_json_close(&json, '}');
	prb_str_putc(s, '\n');
}

struct prb_error *prb_inject_check(const struct prb_inject_settings *s)
{
	if (!s->library && s->symbol)
		return prb_error_hint(
			prb_error_create(PRB_ERROR_USAGE, "inject: '--symbol' without '--library'"),
			"'--library PATH' names the shared library to load");
	if (s->argument && !s->symbol)
		return prb_error_hint(
			prb_error_create(PRB_ERROR_USAGE, "inject: '--arg' without '--symbol'"),
			"'--symbol NAME' names the function that gets it");
	return NULL;
}

struct prb_error *prb_inject_library(struct prb_target *t, const struct prb_inject_settings *s,
				     struct prb_inject_result *ret)
{
	const struct prb_inject_request request = {s->library, s->symbol, s->argument, s->timeout};

	return prb_inject(t, &request, ret);
}

struct prb_error *prb_inject_print(const struct prb_target *t,
				   const struct prb_inject_settings *settings,
				   const struct prb_inject_result *result)
{
	prb_auto_str struct prb_str text = {};

	if (settings->json)
		print_json(&text, t, settings, result);
	else
		print_text(&text, t, settings, result);
	return prb_output(&text);
}

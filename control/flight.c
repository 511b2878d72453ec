/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "control/flight.h"

#include <string.h>

#include "base/cleanup.h"
#include "control/load.h"
#include "control/eval.h"

enum { MOST_BYTES = 32 << 20 };

/** Each line is a document of its own. */
static struct prb_error *join(const struct prb_str *lines, struct prb_str *ret)
{
	const char *at = prb_str_text(lines), *end = at + lines->length;

	if (lines->length > MOST_BYTES)
		return prb_error_create(PRB_ERROR_FAILED,
					"the flight recorder says more than %d MiB",
					MOST_BYTES >> 20);
	prb_str_putc(ret, '[');
	for (bool first = true; at < end; first = false) {
		const char *line = memchr(at, '\n', (size_t)(end - at));

		if (!line)
			line = end;
		if (!first)
			prb_str_putc(ret, ',');
		prb_str_append(ret, at, (size_t)(line - at));
		at = line + (line < end);
	}
	prb_str_putc(ret, ']');
	return ret->failed ? prb_error_nomem() : NULL;
}

struct prb_error *prb_flight_dump(struct prb_target *target, double seconds, struct prb_str *ret)
{
	__attribute__((cleanup(prb_eval_result_deinit))) struct prb_eval_result result = {};
	const struct prb_eval how = {.flags = PRB_WIRE_TORCH, .timeout = seconds};
	prb_auto_str struct prb_str word = {};
	struct prb_agent *agent;
	struct prb_error *err;

	PRB_TRY(prb_agent_reach(target, false, &agent));
	prb_str_puts(&word, "flight");
	err = word.failed ? prb_error_nomem()
			  : prb_eval_run(agent, &how, "<probing>", &word, &result);
	prb_agent_close(agent);
	PRB_TRY(err);
	switch (result.outcome) {
	case PRB_WIRE_OK:
		return join(&result.out, ret);
	case PRB_WIRE_REFUSED:
		return prb_error_create(PRB_ERROR_UNSUPPORTED, "%.200s",
					prb_str_text(&result.text));
	case PRB_WIRE_TIMED_OUT:
		return prb_error_hint(
			prb_error_create(PRB_ERROR_TIMEOUT,
					 "the flight recorder did not answer within %g s: a thread "
					 "of the process may hold its mutex",
					 seconds),
			"'dump --native' shows what its threads do");
	default:
		return prb_error_create(PRB_ERROR_UNSUPPORTED,
					"the agent of that process is older and cannot ask the "
					"flight recorder");
	}
}

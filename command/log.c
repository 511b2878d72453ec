/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "command/log.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/str.h"
#include "base/text.h"
#include "command/exit.h"

static void log_line(void *context, const char *domain, int level, const char *message)
{
	prb_auto_str struct prb_str line = {};

	(void)context;
	if (!level) {
		prb_warn(message);
		return;
	}
	prb_text_escape_lines(&line, message, "    ");
	fprintf(stderr, "[%s] %s\n", domain, prb_str_text(&line));
}

struct prb_error *prb_log_start(unsigned verbose)
{
	const char *filter = getenv("PROBING_LOG");
	prb_auto_str struct prb_str text = {};

	if (filter && !*filter)
		filter = NULL;
	if (verbose)
		prb_str_printf(&text, "%u", verbose < 3 ? verbose : 3);
	if (filter)
		prb_str_printf(&text, "%s%s", verbose ? "," : "", filter);
	return prb_log_set(log_line, NULL, prb_str_text(&text));
}

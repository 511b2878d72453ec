/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file A dump as JSON, on a stream. */
#include "dump/text/render.h"
#include "dump/text/json.h"

static void put(void *stream, const char *text, size_t length)
{
	fwrite(text, 1, length, stream);
}

struct prb_error *prb_render_json(const struct prb_dump *dump,
				  const struct prb_render_options *options, FILE *out)
{
	const struct prb_dump_options asked = {
		.locals = options->locals, .source = options->source, .native = options->native};

	return prb_dump_json(dump, &asked, put, out);
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Renders a dump as text or JSON.
 *
 * Renderers only read the dump and write to the stream; errors of the stream appear when it is
 * flushed. JSON includes the warnings of a dump; with text, the caller prints them.
 */
#ifndef PRB_DUMP_TEXT_RENDER_H
#define PRB_DUMP_TEXT_RENDER_H

#include <stdbool.h>
#include <stdio.h>

#include "dump/model/dump.h"

struct prb_render_options {
	bool colour;
	bool fold;	    /**< recursion, and threads with the same stack, are shown once */
	bool numbers;	    /**< text: Python frames have their numbers, for --frame */
	bool full_paths;    /**< text: whole paths instead of the last part */
	bool full_names;    /**< text: complete names of C++ functions */
	bool locals;	    /**< were requested: an empty list means that there are none */
	bool all_names;	    /**< text: all variables of modules are shown */
	bool source;	    /**< was requested */
	bool native;	    /**< JSON: were requested */
	const char *paused; /**< text: note about the pause in the head; NULL or "": nothing */
	bool partial; /**< only some threads were read, so nothing is known about the others */
};

struct prb_error *prb_render_text(const struct prb_dump *dump,
				  const struct prb_render_options *options,
				  FILE *out) PRB_MUST_CHECK;

/** One JSON object, as docs/json.md has it, without a line feed at the end. */
struct prb_error *prb_render_json(const struct prb_dump *dump,
				  const struct prb_render_options *options,
				  FILE *out) PRB_MUST_CHECK;

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The part of a tool's output that one answer has: an assistant's context is small. What is
 * left out is told, with a cursor for the next call where the same output can be made again. JSON
 * is never cut: rows and items are left out whole.
 *
 * Threading: any thread.
 */
#ifndef PRB_GATEWAY_MCP_ANSWER_H
#define PRB_GATEWAY_MCP_ANSWER_H

#include "base/error.h"
#include "base/str.h"

enum prb_tool_output {
	PRB_TOOL_LINES, /**< text */
	PRB_TOOL_ROWS,	/**< lines of JSON: {"rows": […], "next_cursor": …} */
	PRB_TOOL_JSON,	/**< one value of JSON; its longest list is what may be continued */
};

struct prb_answer_part {
	size_t first; /**< lines, rows or items that are skipped */
	size_t rows;  /**< rows at most */
	size_t most;  /**< bytes */
	bool pages;   /**< the output can be asked for again: cursors make sense */
};

/**
 * Appends that part of @p output to @p text, and to @p structured as a JSON object if it is JSON.
 * @p more: the output went on.
 */
struct prb_error *prb_answer_part(enum prb_tool_output kind, const struct prb_str *output,
				  const struct prb_answer_part *part, bool more,
				  struct prb_str *text, struct prb_str *structured) PRB_MUST_CHECK;

#endif

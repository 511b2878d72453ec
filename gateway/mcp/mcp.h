/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The Model Context Protocol over stdin and stdout, for coding assistants.
 *
 * Messages are JSON-RPC 2.0, a line for each. Requests are answered one after the other; a tool is
 * a command of ours that runs as a child (gateway/targets/child.h), within a deadline. An assistant
 * cannot change a target, unless that was allowed; then each such call is logged on stderr.
 */
#ifndef PRB_GATEWAY_MCP_MCP_H
#define PRB_GATEWAY_MCP_MCP_H

#include <stdbool.h>

#include "base/error.h"
#include "command/command.h"

struct prb_mcp_options {
	const struct prb_texts *targets;      /**< none: all processes that may be read */
	const struct prb_core_places *places; /**< of core files among them, or NULL */
	bool allow_write;		      /**< tools may run code in targets */
	int in, out;
};

/** Until `in` ends. */
struct prb_error *prb_mcp_run(const struct prb_mcp_options *options) PRB_MUST_CHECK;

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file The tools that coding assistants are offered: one table. */
#ifndef PRB_GATEWAY_MCP_TOOLS_H
#define PRB_GATEWAY_MCP_TOOLS_H

#include <jansson.h>

#include "base/json.h"
#include "command/words.h"
#include "gateway/mcp/answer.h"
#include "gateway/targets/served.h"

enum { PRB_TOOL_MAX_PARAMS = 8 };

enum prb_tool_type {
	PRB_TOOL_TEXT,
	PRB_TOOL_FLAG,
	PRB_TOOL_INTEGER,
	PRB_TOOL_SECONDS,
	PRB_TOOL_TARGET, /**< a pid, as a number or as text, or the id of a file */
};

struct prb_tool_param {
	const char *name; /**< NULL in the entry that ends a table */
	enum prb_tool_type type;
	bool required;
	const char *help;
	const char *choices; /**< the words that a text may be, with spaces between them; or NULL */
	double least, most;  /**< of a number; `most` 0: 1e9; seconds are over 0 */
};

struct prb_tool_call;

struct prb_tool {
	const char *name, *title, *description;
	struct prb_tool_param params[PRB_TOOL_MAX_PARAMS + 1];
	bool writes;	/**< only if that was allowed */
	double seconds; /**< its deadline, without what its own duration adds */
	struct prb_error *(*prepare)(struct prb_tool_call *call);
	bool judges; /**< exit codes of findings are no failures */
	enum prb_tool_output output;
	bool once;  /**< another call has another output: no part of it can be asked for later */
	bool saves; /**< it makes a file, and changes no target */
};
/** The first one lists processes; ends with an entry without a name. */
extern const struct prb_tool prb_tools[];

/** One call; `words` and `input` are what is run. */
struct prb_tool_call {
	const struct prb_tool *tool;
	const struct prb_served *served;
	const json_t *arguments; /**< an object, or NULL */
	struct prb_words words;
	struct prb_str input;
	bool has_input;
	double seconds;
	struct prb_answer_part part; /**< of the output, that is answered */
};
void prb_tool_call_deinit(struct prb_tool_call *call);

/** Checks the arguments, and prepares what is to be run. PRB_ERROR_USAGE if they are wrong. */
struct prb_error *prb_tool_prepare(struct prb_tool_call *call) PRB_MUST_CHECK;

/** The words of a hint that an assistant can follow, for those of other interfaces. */
const char *prb_tool_hint(const char *hint);

/** Puts the tools as the protocol lists them; those that write only if @p allow_write. */
void prb_tools_list(struct prb_json *json, bool allow_write);

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file What coding assistants can read besides the answers of tools: skills, tables, pages. */
#ifndef PRB_GATEWAY_MCP_RESOURCES_H
#define PRB_GATEWAY_MCP_RESOURCES_H

#include <stdbool.h>

#include "base/json.h"
#include "command/words.h"

/** Puts the array "resources" as the protocol lists them; tables by the template alone. */
void prb_resources_list(struct prb_json *json);
void prb_resource_templates_list(struct prb_json *json);

/**
 * Finds the resource @p uri: either *text, NULL before, is what it says, static, or @p words are of
 * the command that prints it (none, if memory ran out). False if there is none.
 */
bool prb_resource_find(const char *uri, const char **text, struct prb_words *words);

#endif

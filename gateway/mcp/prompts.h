/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Prompts for assistants: one for each skill (gateway/skills/skills.h). Any thread. */
#ifndef PRB_GATEWAY_MCP_PROMPTS_H
#define PRB_GATEWAY_MCP_PROMPTS_H

#include "base/json.h"
#include "gateway/skills/skills.h"

/** Puts all, as the protocol lists them. */
void prb_prompts_list(struct prb_json *json);

/** Puts what a user asks with that skill. @p target: as the assistant gives it, or NULL. */
void prb_prompt_put(struct prb_json *json, const struct prb_skill *skill, const char *target);

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/mcp/prompts.h"

#include "base/cleanup.h"

static void put_title(struct prb_json *json, const char *key, const struct prb_skill *skill)
{
	prb_auto_str struct prb_str title = {};

	prb_skill_title(skill, &title);
	prb_json_text(json, key, prb_str_text(&title));
}

void prb_prompts_list(struct prb_json *json)
{
	prb_json_open(json, "prompts", '[');
	for (const struct prb_skill *skill = prb_skills; skill->name; skill++) {
		prb_json_open(json, NULL, '{');
		prb_json_text(json, "name", skill->name);
		put_title(json, "title", skill);
		prb_json_open(json, "arguments", '[');
		prb_json_open(json, NULL, '{');
		prb_json_text(json, "name", "target");
		prb_json_text(json, "description", "Pid of a process, or the id of a file");
		prb_json_bool(json, "required", false);
		prb_json_close(json, '}');
		prb_json_close(json, ']');
		prb_json_close(json, '}');
	}
	prb_json_close(json, ']');
}

void prb_prompt_put(struct prb_json *json, const struct prb_skill *skill, const char *target)
{
	prb_auto_str struct prb_str text = {};

	prb_str_printf(&text, "Use the tool skill with the name %s", skill->name);
	if (target)
		prb_str_printf(&text, " and the target %.64s", target);
	prb_str_puts(&text, ", and tell me what is wrong, with the evidence. Then try to refute it "
			    "with the tools dump, query and print_value. What the rows mean:\n\n");
	prb_str_puts(&text, skill->text);
	put_title(json, "description", skill);
	prb_json_open(json, "messages", '[');
	prb_json_open(json, NULL, '{');
	prb_json_text(json, "role", "user");
	prb_json_open(json, "content", '{');
	prb_json_text(json, "type", "text");
	prb_json_text(json, "text", prb_str_text(&text));
	prb_json_close(json, '}');
	prb_json_close(json, '}');
	prb_json_close(json, ']');
}

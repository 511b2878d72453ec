/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/skills/skills.h"

#include <string.h>

const struct prb_skill prb_skills[] = {
#include "gateway/skills/skills.inc"
	{},
};

const struct prb_skill *prb_skill_find(const char *name)
{
	for (const struct prb_skill *skill = prb_skills; skill->name; skill++)
		if (!strcmp(skill->name, name))
			return skill;
	return NULL;
}

void prb_skill_title(const struct prb_skill *skill, struct prb_str *ret)
{
	const char *title = skill->text + strspn(skill->text, "# ");

	prb_str_append(ret, title, strcspn(title, "\n"));
}

void prb_skill_part_deinit(struct prb_skill_part *part)
{
	prb_str_deinit(&part->title);
	prb_str_deinit(&part->text);
	prb_str_deinit(&part->sql);
}

/** Paragraphs are divided by one empty line. */
static void put_text(struct prb_skill_part *part, const char *line, size_t length)
{
	if (part->divided)
		prb_str_putc(&part->text, '\n');
	part->divided = false;
	prb_str_append(&part->text, line, length);
	prb_str_putc(&part->text, '\n');
}

bool prb_skill_next(const char **at, struct prb_skill_part *ret)
{
	bool sql = false;
	size_t length;

	if (!**at)
		return false;
	for (const char *line = *at; *line; line += length + (line[length] == '\n'), *at = line) {
		length = strcspn(line, "\n");
		if (!strncmp(line, "```", 3)) {
			sql = line[3] == 's';
			continue;
		}
		if (*line == '#' && !sql) {
			if (ret->title.length)
				return true;
			size_t mark = strspn(line, "# ");
			prb_str_append(&ret->title, line + mark, length - mark);
			continue;
		}
		if (!length && !sql) {
			ret->divided = ret->text.length;
		} else if (!sql) {
			put_text(ret, line, length);
		} else {
			prb_str_append(&ret->sql, line, length);
			prb_str_putc(&ret->sql, '\n');
		}
	}
	return true;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Skills: named diagnoses, each a file of text and SQL in gateway/skills/.
 *
 * A file begins with a title ("# …") and text. Sections ("## …") have text and one block of SQL,
 * between lines "```sql" and "```".
 */
#ifndef PRB_GATEWAY_SKILLS_SKILLS_H
#define PRB_GATEWAY_SKILLS_SKILLS_H

#include <stdbool.h>

#include "base/str.h"

struct prb_skill {
	const char *name;
	const char *text; /**< of the file */
};
extern const struct prb_skill prb_skills[]; /**< ends with an entry without a name */

/** NULL if there is none. */
const struct prb_skill *prb_skill_find(const char *name);

/** The title of a skill, without the mark in front of it. */
void prb_skill_title(const struct prb_skill *skill, struct prb_str *ret);

/** A part of a skill; all three start as {}, and are the caller's to free. */
struct prb_skill_part {
	struct prb_str title, text, sql; /**< `sql` is empty in the part before the first section */
	bool divided;			 /**< an empty line came behind the text so far */
};
void prb_skill_part_deinit(struct prb_skill_part *part);

/** Goes on at *at, which begins as the skill's text. False at the end. */
bool prb_skill_next(const char **at, struct prb_skill_part *ret);

#endif

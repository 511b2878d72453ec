/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Findings as text and as JSON.
 *
 * Threading: none of its own.
 */
#ifndef PRB_JUDGE_TEXT_H
#define PRB_JUDGE_TEXT_H

#include "base/json.h"
#include "base/str.h"
#include "judge/finding.h"

/** Appends lines of text below one name, which stands before the first: evidence, "rests on". */
void prb_put_lines(struct prb_str *s, const char *name, const char *lines);

/** Appends a finding: its sentence, and all that belongs to it below. */
void prb_finding_text(struct prb_str *s, const struct prb_finding *finding);
/** The members of an object: a finding about the process @p pid; 0: a file. */
void prb_finding_members(struct prb_json *json, const struct prb_finding *finding, pid_t pid);

#endif

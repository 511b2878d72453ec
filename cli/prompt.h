/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file What the parts of the prompt share; only they use readline. */
#ifndef PRB_CLI_PROMPT_H
#define PRB_CLI_PROMPT_H

#include <stdbool.h>
#include <stddef.h>

/** The prompt's own commands, with what they do; ends with a NULL name. */
struct prb_prompt_command {
	const char *name, *argument, *does;
};
extern const struct prb_prompt_command prb_prompt_commands[];

/** Lets Tab complete keywords, tables, columns and the prompt's commands. */
void prb_prompt_complete_begin(void);
/** What was typed on the lines before the present one: it may name tables. NULL: nothing. */
void prb_prompt_complete_after(const char *text);

/** Reads the history of earlier prompts; without a home there is none. */
void prb_prompt_history_begin(void);
/** Notes what was entered, and writes it to the history file at once. */
void prb_prompt_history_add(const char *text);

/** True if @p sql ends a statement: its last character that counts is a semicolon. */
bool prb_prompt_is_complete(const char *sql);

#endif

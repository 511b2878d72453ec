/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Completion at the prompt. */
#include "command/prompt/prompt.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <readline/readline.h>

#include "base/checked.h"
#include "base/str.h"
#include "sql/render/renderer.h"
#include "sql/spec/table.h"

static const char *const keywords[] = {
	"AND",	  "AS",	       "ASC",	    "BETWEEN",	"BY",	    "CASE",  "CAST",
	"COUNT",  "CROSS",     "DESC",	    "DESCRIBE", "DISTINCT", "ELSE",  "END",
	"EXCEPT", "EXISTS",    "EXPLAIN",   "FILTER",	"FROM",	    "GROUP", "HAVING",
	"IN",	  "INTERSECT", "INTERVAL",  "IS",	"JOIN",	    "LEFT",  "LIKE",
	"LIMIT",  "NOT",       "NULL",	    "OFFSET",	"ON",	    "OR",    "ORDER",
	"OVER",	  "PARTITION", "RECURSIVE", "REGEXP",	"SELECT",   "SET",   "SHOW",
	"TABLES", "THEN",      "UNION",	    "USING",	"VALUES",   "WHEN",  "WHERE",
	"WITH",
};

static const char *earlier_lines = "";

static bool begins(const char *text, const char *start)
{
	return !strncasecmp(text, start, strlen(start));
}

static void offer_if(const char *text, const char *word)
{
	if (begins(text, word))
		prb_prompt_offer(strdup(text));
}

/** Keywords in the case in which the word was begun. */
static void offer_keywords(const char *word)
{
	for (size_t i = 0; i < PRB_ARRAY_SIZE(keywords); i++) {
		char *text = begins(keywords[i], word) ? strdup(keywords[i]) : NULL;

		for (char *p = text; p && *p && !isupper((unsigned char)word[0]); p++)
			*p = (char)tolower((unsigned char)*p);
		prb_prompt_offer(text);
	}
}

static void offer_tables(const char *word)
{
	for (const struct prb_table *const *t = prb_tables; *t; t++) {
		char *name = prb_format("%s.%s", (*t)->schema, (*t)->name);
		bool whole = name && begins(name, word);

		prb_prompt_offer(whole ? strdup(name) : NULL);
		free(name);
		if (!strcmp((*t)->schema, "main"))
			offer_if((*t)->name, word);
	}
}

/** True if the statement names the table. */
static bool is_named(const struct prb_table *table)
{
	return strcasestr(earlier_lines, table->name) || strcasestr(rl_line_buffer, table->name);
}

/** Columns of the tables that the statement names, or of all; after "t." with that in front. */
static void offer_columns(const char *word)
{
	const char *dot = strrchr(word, '.');
	size_t qualifier = dot ? (size_t)(dot - word) + 1 : 0;
	bool any = false;

	for (const struct prb_table *const *t = prb_tables; *t; t++)
		any |= is_named(*t);
	for (const struct prb_table *const *t = prb_tables; *t; t++) {
		if (any && !is_named(*t))
			continue;
		for (const struct prb_column *c = (*t)->columns; c->name; c++)
			if (begins(c->name, word + qualifier))
				prb_prompt_offer(
					prb_format("%.*s%s", (int)qualifier, word, c->name));
	}
}

static void offer_for_command(const char *word)
{
	if (begins(rl_line_buffer, ".format"))
		for (const struct prb_renderer_format *f = prb_renderer_formats; f->name; f++)
			offer_if(f->name, word);
	else
		offer_tables(word);
}

/** True if only blanks precede it, in this line and in the earlier ones. */
static bool is_first_word(int start)
{
	return !earlier_lines[0] && strspn(rl_line_buffer, " \t") >= (size_t)start;
}

static void offer_all(const char *word, int start)
{
	if (word[0] == '.' && start == 0) {
		for (const struct prb_prompt_command *c = prb_prompt_commands; c->name; c++)
			offer_if(c->name, word);
		return;
	}
	if (rl_line_buffer[0] == '.') {
		offer_for_command(word);
		return;
	}
	if (word[0] && is_first_word(start)) {
		offer_keywords(word);
		if (prb_prompt_has_offers())
			return;
	}
	offer_tables(word);
	if (!prb_prompt_has_offers() || !strchr(word, '.'))
		offer_columns(word);
	if (word[0] && !strchr(word, '.'))
		offer_keywords(word);
}

static char **complete(const char *word, int start, int end)
{
	(void)end;
	offer_all(word, start);
	return prb_prompt_matches(word);
}

void prb_prompt_complete_begin(void)
{
	rl_attempted_completion_function = complete;
	rl_completer_word_break_characters = " \t\n\"'`(),;=<>+-*/%|~";
	rl_basic_word_break_characters = " \t\n\"'`(),;=<>+-*/%|~";
}

void prb_prompt_complete_after(const char *text)
{
	earlier_lines = text ? text : "";
}

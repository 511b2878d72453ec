/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * How values that are shown as repr() shows them compare: a text is equal to the same without its
 * quotes, so that one can type `value = 'chat-1'`. One that looks like another value keeps them:
 * '1' is not 1.
 */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "sql/functions/functions_private.h"

struct slice {
	const char *text;
	size_t length;
	bool escapes; /* a backslash begins one */
};

static bool is_number(const char *text, size_t length)
{
	enum { LONGEST = 64 }; /* of a number that somebody compares */
	char copy[LONGEST + 1], *end;

	if (!length || length > LONGEST)
		return false;
	memcpy(copy, text, length);
	copy[length] = 0;
	strtod(copy, &end);
	return !*end;
}

static bool looks_like_another(const char *text, size_t length)
{
	static const char *const words[] = {"None", "True", "False"};

	if (length && strchr("<[({'\"", text[0]))
		return true;
	for (size_t i = 0; i < PRB_ARRAY_SIZE(words); i++)
		if (length == strlen(words[i]) && !memcmp(text, words[i], length))
			return true;
	return is_number(text, length);
}

static struct slice bare(const char *text, size_t length)
{
	if (length < 2 || (text[0] != '\'' && text[0] != '"') || text[length - 1] != text[0] ||
	    looks_like_another(text + 1, length - 2))
		return (struct slice){text, length, false};
	return (struct slice){text + 1, length - 2, true};
}

/** The next character, of those escapes that a person would not type; 256 at the end. */
static unsigned next(struct slice *s)
{
	static const char letters[] = "\\'\"nrt", means[] = "\\'\"\n\r\t";
	const char *letter;

	if (!s->length)
		return 256;
	unsigned char c = (unsigned char)*s->text++;
	s->length--;
	if (c != '\\' || !s->escapes || !s->length)
		return c;
	letter = *s->text ? strchr(letters, *s->text) : NULL;
	if (!letter)
		return c;
	s->text++;
	s->length--;
	return (unsigned char)means[letter - letters];
}

int prb_repr_compare(void *unused, int a_length, const void *a_text, int b_length,
		     const void *b_text)
{
	struct slice a = bare(a_text, (size_t)a_length), b = bare(b_text, (size_t)b_length);
	unsigned x, y;

	(void)unused;
	do {
		x = next(&a);
		y = next(&b);
	} while (x == y && x != 256);
	/* The end comes before any character. */
	return x == y ? 0 : x == 256 ? -1 : y == 256 ? 1 : x < y ? -1 : 1;
}

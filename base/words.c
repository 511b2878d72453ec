/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/words.h"

#include <ctype.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>

#include "base/checked.h"

unsigned prb_word_distance(const char *a, const char *b)
{
	size_t m = strlen(a), n = strlen(b);
	unsigned d[PRB_MAX_WORD + 1][PRB_MAX_WORD + 1];

	if (m > PRB_MAX_WORD || n > PRB_MAX_WORD)
		return UINT_MAX;
	for (size_t i = 0; i <= m; i++)
		d[i][0] = (unsigned)i;
	for (size_t j = 0; j <= n; j++)
		d[0][j] = (unsigned)j;
	for (size_t i = 1; i <= m; i++) {
		for (size_t j = 1; j <= n; j++) {
			unsigned change = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);

			unsigned insert = PRB_MIN(d[i - 1][j], d[i][j - 1]) + 1;

			d[i][j] = PRB_MIN(change, insert);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				d[i][j] = PRB_MIN(d[i][j], d[i - 2][j - 2] + 1);
		}
	}
	return d[m][n];
}

bool prb_word_resembles(const char *typed, const char *name)
{
	char word[PRB_MAX_WORD + 1] = "";
	size_t length = strlen(typed);

	if (length > PRB_MAX_WORD)
		return false;
	/* Names are in small letters. */
	for (size_t i = 0; i < length; i++)
		word[i] = (char)tolower((unsigned char)typed[i]);
	if (length >= 2 && !strncmp(word, name, length))
		return true;
	return prb_word_distance(word, name) <= (strlen(name) > 5 ? 2 : 1) && strlen(name) > 2;
}

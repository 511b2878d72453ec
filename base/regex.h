/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Regular expressions: the one place that knows PCRE2.
 *
 * Patterns and texts are bytes of anyone's making. Where they are UTF-8 they are matched by
 * character; bytes that are not match nothing, and are no error. The cost of an expression is
 * bounded: a pattern in length, a match in steps, depth and memory. A match that would need more is
 * an error, never a wait.
 *
 * Threading: an expression belongs to one thread at a time. Errors: PRB_ERROR_USAGE for a pattern
 * that is wrong or too costly, PRB_ERROR_NOMEM.
 */
#ifndef PRB_BASE_REGEX_H
#define PRB_BASE_REGEX_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum {
	PRB_REGEX_CASELESS = 1 << 0,  /**< letters' case is ignored */
	PRB_REGEX_MULTILINE = 1 << 1, /**< ^ and $ at each line */
	PRB_REGEX_DOTALL = 1 << 2,    /**< . matches a line feed too */
	PRB_REGEX_EXTENDED = 1 << 3,  /**< spaces and comments in the pattern mean nothing */
};

struct prb_regex;

/** Compiles @p length bytes of @p pattern; prb_regex_destroy() ends what is returned. */
struct prb_error *prb_regex_compile(const char *pattern, size_t length, unsigned flags,
				    struct prb_regex **ret) PRB_MUST_CHECK;

void prb_regex_destroy(struct prb_regex *regex);

/** Bytes of a text: start is where the match begins, end just after it. */
struct prb_regex_span {
	size_t start, end;
};

/**
 * Looks for the first match in @p length bytes of @p text that begins at @p from or later, which is
 * at most @p length. *ret: whether there is one; prb_regex_group() returns its place.
 */
struct prb_error *prb_regex_match(struct prb_regex *regex, const char *text, size_t length,
				  size_t from, bool *ret) PRB_MUST_CHECK;

/**
 * Like prb_regex_match() just after a match that was empty: an empty match at @p from does not
 * count again.
 */
struct prb_error *prb_regex_match_again(struct prb_regex *regex, const char *text, size_t length,
					size_t from, bool *ret) PRB_MUST_CHECK;

/** Where group @p number of the last match is, 0 being all of it; false if it took no part. */
bool prb_regex_group(const struct prb_regex *regex, unsigned number, struct prb_regex_span *ret);

/** How many groups the pattern has, without group 0. */
unsigned prb_regex_group_count(const struct prb_regex *regex);

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sql/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdint.h>
#include <string.h>

#include "dwarf/base/cleanup.h"
#include "dwarf/base/str.h"
#include "dwarf/base/text.h"

enum {
	PATTERN_MAX = 64 * 1024,
	PARENTHESES_MAX = 200,
	/* Backtracking steps of one match: about 50 ms of them. */
	STEPS_MAX = 1000000,
	DEPTH_MAX = 20000,
	HEAP_MAX_KIB = 32 * 1024,
	STACK_MIN = 32 * 1024,
	STACK_MAX = 1024 * 1024,
	/* Machine code costs as much as some matches do. */
	MATCHES_BEFORE_JIT = 16,
	/* Of a pattern, in messages. */
	SHOWN_MAX = 200,
};

struct prb_regex {
	pcre2_code *code;
	pcre2_match_data *data;
	pcre2_match_context *context;
	pcre2_jit_stack *stack; /* NULL until it is compiled to machine code */
	unsigned matches;
	unsigned groups;
	char *shown; /* the pattern's beginning, safe to print */
};

/** The beginning of a pattern as it can stand in a message. */
static char *shown_pattern(const char *pattern, size_t length)
{
	prb_auto_free char *start = strndup(pattern, length < SHOWN_MAX ? length : SHOWN_MAX);
	prb_auto_str struct prb_str s = {};

	if (!start)
		return NULL;
	prb_text_escape(&s, start);
	if (length > SHOWN_MAX)
		prb_str_puts(&s, "…");
	return prb_str_take(&s);
}

static const char *reason(int code, char *buffer, size_t size)
{
	switch (code) {
	case PCRE2_ERROR_MATCHLIMIT:
		return "it takes too many steps";
	case PCRE2_ERROR_DEPTHLIMIT:
	case PCRE2_ERROR_HEAPLIMIT:
	case PCRE2_ERROR_JIT_STACKLIMIT:
	case PCRE2_ERROR_NOMEMORY:
		return "it takes too much memory";
	default:
		if (pcre2_get_error_message(code, (PCRE2_UCHAR *)buffer, size) < 0)
			return "unknown reason";
		return buffer;
	}
}

/** Characters in the first @p length bytes: what a person counts. */
static size_t characters(const char *text, size_t length)
{
	size_t count = 0;

	for (size_t i = 0; i < length; i++)
		count += ((unsigned char)text[i] & 0xc0) != 0x80;
	return count;
}

static struct prb_error *compile_code(struct prb_regex *regex, const char *pattern, size_t length,
				      unsigned flags)
{
	pcre2_compile_context *limits = pcre2_compile_context_create(NULL);
	uint32_t options = PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_NEVER_BACKSLASH_C;
	char buffer[128];
	PCRE2_SIZE offset;
	int code;

	if (!limits)
		return prb_error_nomem();
	options |= flags & PRB_REGEX_CASELESS ? PCRE2_CASELESS : 0;
	options |= flags & PRB_REGEX_MULTILINE ? PCRE2_MULTILINE : 0;
	options |= flags & PRB_REGEX_DOTALL ? PCRE2_DOTALL : 0;
	options |= flags & PRB_REGEX_EXTENDED ? PCRE2_EXTENDED : 0;
	pcre2_set_max_pattern_length(limits, PATTERN_MAX);
	pcre2_set_parens_nest_limit(limits, PARENTHESES_MAX);
	regex->code = pcre2_compile((PCRE2_SPTR)pattern, length, options, &code, &offset, limits);
	pcre2_compile_context_free(limits);
	if (regex->code)
		return NULL;
	return prb_error_create(PRB_ERROR_USAGE, "bad regular expression /%s/: %s at character %zu",
				regex->shown, reason(code, buffer, sizeof(buffer)),
				characters(pattern, offset < length ? offset : length));
}

struct prb_error *prb_regex_compile(const char *pattern, size_t length, unsigned flags,
				    struct prb_regex **ret)
{
	struct prb_regex *regex = calloc(1, sizeof(*regex));
	struct prb_error *err = NULL;
	uint32_t groups = 0;

	if (!regex)
		return prb_error_nomem();
	regex->shown = shown_pattern(pattern, length);
	err = regex->shown ? compile_code(regex, pattern, length, flags) : prb_error_nomem();
	if (!err) {
		regex->data = pcre2_match_data_create_from_pattern(regex->code, NULL);
		regex->context = pcre2_match_context_create(NULL);
		if (!regex->data || !regex->context)
			err = prb_error_nomem();
	}
	if (err) {
		prb_regex_destroy(regex);
		return err;
	}
	(void)pcre2_pattern_info(regex->code, PCRE2_INFO_CAPTURECOUNT, &groups);
	regex->groups = groups;
	pcre2_set_match_limit(regex->context, STEPS_MAX);
	pcre2_set_depth_limit(regex->context, DEPTH_MAX);
	pcre2_set_heap_limit(regex->context, HEAP_MAX_KIB);
	*ret = regex;
	return NULL;
}

void prb_regex_destroy(struct prb_regex *regex)
{
	if (!regex)
		return;
	pcre2_jit_stack_free(regex->stack);
	pcre2_match_context_free(regex->context);
	pcre2_match_data_free(regex->data);
	pcre2_code_free(regex->code);
	free(regex->shown);
	free(regex);
}

/** Machine code where that can be had; without it matches are slower, no different. */
static void make_fast(struct prb_regex *regex)
{
	if (pcre2_jit_compile(regex->code, PCRE2_JIT_COMPLETE))
		return;
	regex->stack = pcre2_jit_stack_create(STACK_MIN, STACK_MAX, NULL);
	if (regex->stack)
		pcre2_jit_stack_assign(regex->context, NULL, regex->stack);
}

static struct prb_error *match(struct prb_regex *regex, const char *text, size_t length,
			       size_t from, uint32_t options, bool *ret)
{
	PCRE2_SPTR subject = (PCRE2_SPTR)(text ? text : "");
	char buffer[128];
	int rc;

	*ret = false;
	if (from > length)
		return NULL;
	if (regex->matches <= MATCHES_BEFORE_JIT && regex->matches++ == MATCHES_BEFORE_JIT)
		make_fast(regex);
	rc = pcre2_match(regex->code, subject, length, from, options, regex->data, regex->context);
	/* The interpreter may use more than the stack of machine code. */
	if (rc == PCRE2_ERROR_JIT_STACKLIMIT)
		rc = pcre2_match(regex->code, subject, length, from, options | PCRE2_NO_JIT,
				 regex->data, regex->context);
	if (rc >= 0) {
		*ret = true;
		return NULL;
	}
	if (rc == PCRE2_ERROR_NOMATCH)
		return NULL;
	return prb_error_create(PRB_ERROR_USAGE, "regular expression /%s/ cannot be matched: %s",
				regex->shown, reason(rc, buffer, sizeof(buffer)));
}

struct prb_error *prb_regex_match(struct prb_regex *regex, const char *text, size_t length,
				  size_t from, bool *ret)
{
	return match(regex, text, length, from, 0, ret);
}

struct prb_error *prb_regex_match_again(struct prb_regex *regex, const char *text, size_t length,
					size_t from, bool *ret)
{
	return match(regex, text, length, from, PCRE2_NOTEMPTY_ATSTART, ret);
}

bool prb_regex_group(const struct prb_regex *regex, unsigned number, struct prb_regex_span *ret)
{
	const PCRE2_SIZE *pairs = pcre2_get_ovector_pointer(regex->data);

	if (number >= pcre2_get_ovector_count(regex->data) || pairs[2 * number] == PCRE2_UNSET ||
	    pairs[2 * number + 1] == PCRE2_UNSET || pairs[2 * number] > pairs[2 * number + 1])
		return false;
	*ret = (struct prb_regex_span){pairs[2 * number], pairs[2 * number + 1]};
	return true;
}

unsigned prb_regex_group_count(const struct prb_regex *regex)
{
	return regex->groups;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdint.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "base/text.h"

enum {
	/* Classes without case may cost some ms each, and compiling cannot be bounded otherwise. */
	PATTERN_MAX = 4096,
	TEXT_MAX = 64 * 1024 * 1024,
	PARENTHESES_MAX = 200,
	/* PCRE2 counts steps anew at each place where a match may begin: all places share these,
	 * some seconds. However long the text is, STEPS_MIN at one place are allowed. */
	STEPS_MAX = 200 * 1000 * 1000,
	STEPS_MIN = 20 * 1000,
	DEPTH_MAX = 20000,
	HEAP_MAX_KIB = 32 * 1024,
	/* Of a pattern, in messages. */
	SHOWN_MAX = 200,
};

struct prb_regex {
	pcre2_code *code;
	pcre2_match_data *data;
	pcre2_match_context *context;
	unsigned groups;
	char *shown; /* the pattern's beginning, safe to print */
};

/** The beginning of a pattern, safe for a message. */
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
		return "it takes too long";
	case PCRE2_ERROR_DEPTHLIMIT:
	case PCRE2_ERROR_HEAPLIMIT:
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
				      uint32_t options)
{
	pcre2_compile_context *limits = pcre2_compile_context_create(NULL);
	char buffer[128];
	PCRE2_SIZE offset;
	int code;

	if (!limits)
		return prb_error_nomem();
	pcre2_set_max_pattern_length(limits, PATTERN_MAX);
	pcre2_set_parens_nest_limit(limits, PARENTHESES_MAX);
	regex->code = pcre2_compile((PCRE2_SPTR)pattern, length, options, &code, &offset, limits);
	pcre2_compile_context_free(limits);
	if (regex->code)
		return NULL;
	return prb_error_create(PRB_ERROR_USAGE, "bad regular expression /%s/: %s at character %zu",
				regex->shown, reason(code, buffer, sizeof(buffer)),
				characters(pattern, PRB_MIN(offset, length)));
}

static uint32_t options_of(unsigned flags)
{
	return PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_NEVER_BACKSLASH_C |
	       (flags & PRB_REGEX_CASELESS ? PCRE2_CASELESS : 0) |
	       (flags & PRB_REGEX_MULTILINE ? PCRE2_MULTILINE : 0) |
	       (flags & PRB_REGEX_DOTALL ? PCRE2_DOTALL : 0) |
	       (flags & PRB_REGEX_EXTENDED ? PCRE2_EXTENDED : 0);
}

static struct prb_error *init(struct prb_regex *regex, const char *pattern, size_t length,
			      unsigned flags)
{
	uint32_t groups = 0;

	regex->shown = shown_pattern(pattern, length);
	if (!regex->shown)
		return prb_error_nomem();
	PRB_TRY(compile_code(regex, pattern, length, options_of(flags)));
	regex->data = pcre2_match_data_create_from_pattern(regex->code, NULL);
	regex->context = pcre2_match_context_create(NULL);
	if (!regex->data || !regex->context)
		return prb_error_nomem();
	(void)pcre2_pattern_info(regex->code, PCRE2_INFO_CAPTURECOUNT, &groups);
	regex->groups = groups;
	pcre2_set_depth_limit(regex->context, DEPTH_MAX);
	pcre2_set_heap_limit(regex->context, HEAP_MAX_KIB);
	return NULL;
}

struct prb_error *prb_regex_compile(const char *pattern, size_t length, unsigned flags,
				    struct prb_regex **ret)
{
	struct prb_regex *regex = calloc(1, sizeof(*regex));
	struct prb_error *err;

	if (!regex)
		return prb_error_nomem();
	err = init(regex, pattern, length, flags);
	if (err)
		prb_regex_destroy(regex);
	else
		*ret = regex;
	return err;
}

void prb_regex_destroy(struct prb_regex *regex)
{
	if (!regex)
		return;
	pcre2_match_context_free(regex->context);
	pcre2_match_data_free(regex->data);
	pcre2_code_free(regex->code);
	free(regex->shown);
	free(regex);
}

static struct prb_error *match(struct prb_regex *regex, const char *text, size_t length,
			       size_t from, uint32_t options, bool *ret)
{
	char buffer[128];
	int rc;

	*ret = false;
	if (from > length)
		return NULL;
	if (length > TEXT_MAX)
		return prb_error_create(PRB_ERROR_USAGE,
					"a text of %zu bytes is too long for a regular expression",
					length);
	pcre2_set_match_limit(regex->context,
			      PRB_MAX(STEPS_MAX / ((uint32_t)length + 1), (uint32_t)STEPS_MIN));
	rc = pcre2_match(regex->code, (PCRE2_SPTR)(text ? text : ""), length, from, options,
			 regex->data, regex->context);
	*ret = rc >= 0;
	if (rc >= 0 || rc == PCRE2_ERROR_NOMATCH)
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

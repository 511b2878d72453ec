/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sql/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "dwarf/base/checked.h"
#include "dwarf/base/cleanup.h"
#include "dwarf/base/str.h"
#include "dwarf/base/text.h"

/*
 * PCRE2 bounds the steps at each place where a match may begin, and a step may go over all of the
 * text: a bound on the time of a whole match it has none. So there are two ways to match:
 *
 * 1. The fast one, for short texts. So few steps are allowed that all of them together, at each
 *    place, over all of the text, are no more than WORK_MAX characters.
 * 2. The watched one, for long texts and for what the fast one did not finish: between all parts of
 *    the pattern a function of ours is called, which looks at the clock.
 */
enum {
	/* Classes without case may cost some ms each, and compiling cannot be watched. */
	PATTERN_MAX = 4096,
	TEXT_MAX = 64 * 1024 * 1024,
	PARENTHESES_MAX = 200,
	WORK_MAX = 100 * 1000 * 1000,
	FAST_TEXT_MAX = 2048,
	/* Characters that may be gone over between two looks at the clock. */
	UNWATCHED_MAX = 1 << 20,
	DEPTH_MAX = 20000,
	HEAP_MAX_KIB = 32 * 1024,
	STACK_MIN = 32 * 1024,
	STACK_MAX = 1024 * 1024,
	WATCHED_NS_MAX = 500 * 1000 * 1000,
	/* Machine code costs as much as some matches do. */
	MATCHES_BEFORE_JIT = 16,
	/* Of a pattern, in messages. */
	SHOWN_MAX = 200,
};

/** One compiled form of the pattern. */
struct program {
	pcre2_code *code; /* NULL until it is needed */
	unsigned matches;
};

struct prb_regex {
	struct program fast, watched;
	pcre2_match_data *data;
	pcre2_match_context *context;
	pcre2_jit_stack *stack; /* NULL until there is machine code */
	unsigned groups;
	uint32_t options;
	char *pattern;
	size_t length;
	char *shown; /* the pattern's beginning, safe to print */
};

/** When a watched match has to end. */
struct watch {
	unsigned calls, interval; /* looks at the clock every so many calls */
	uint64_t deadline;	  /* in time of this thread */
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
	case PCRE2_ERROR_CALLOUT:
		return "it takes too long";
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

static struct prb_error *compile_code(const struct prb_regex *regex, uint32_t options,
				      pcre2_code **ret)
{
	pcre2_compile_context *limits = pcre2_compile_context_create(NULL);
	char buffer[128];
	PCRE2_SIZE offset;
	int code;

	if (!limits)
		return prb_error_nomem();
	pcre2_set_max_pattern_length(limits, PATTERN_MAX);
	pcre2_set_parens_nest_limit(limits, PARENTHESES_MAX);
	*ret = pcre2_compile((PCRE2_SPTR)regex->pattern, regex->length, regex->options | options,
			     &code, &offset, limits);
	pcre2_compile_context_free(limits);
	if (*ret)
		return NULL;
	return prb_error_create(
		PRB_ERROR_USAGE, "bad regular expression /%s/: %s at character %zu", regex->shown,
		reason(code, buffer, sizeof(buffer)),
		characters(regex->pattern, offset < regex->length ? offset : regex->length));
}

static uint32_t options_of(unsigned flags)
{
	return PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_NEVER_BACKSLASH_C |
	       (flags & PRB_REGEX_CASELESS ? PCRE2_CASELESS : 0) |
	       (flags & PRB_REGEX_MULTILINE ? PCRE2_MULTILINE : 0) |
	       (flags & PRB_REGEX_DOTALL ? PCRE2_DOTALL : 0) |
	       (flags & PRB_REGEX_EXTENDED ? PCRE2_EXTENDED : 0);
}

static struct prb_error *init(struct prb_regex *regex, const char *pattern, size_t length)
{
	uint32_t groups = 0;

	regex->shown = shown_pattern(pattern, length);
	regex->pattern = malloc(length + 1);
	if (!regex->shown || !regex->pattern)
		return prb_error_nomem();
	memcpy(regex->pattern, pattern, length);
	regex->length = length;
	PRB_TRY(compile_code(regex, 0, &regex->fast.code));
	regex->data = pcre2_match_data_create_from_pattern(regex->fast.code, NULL);
	regex->context = pcre2_match_context_create(NULL);
	if (!regex->data || !regex->context)
		return prb_error_nomem();
	(void)pcre2_pattern_info(regex->fast.code, PCRE2_INFO_CAPTURECOUNT, &groups);
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
	regex->options = options_of(flags);
	err = init(regex, pattern, length);
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
	pcre2_jit_stack_free(regex->stack);
	pcre2_match_context_free(regex->context);
	pcre2_match_data_free(regex->data);
	pcre2_code_free(regex->fast.code);
	pcre2_code_free(regex->watched.code);
	free(regex->pattern);
	free(regex->shown);
	free(regex);
}

/** Machine code where that can be had; without it matches are slower, no different. */
static void make_machine_code(struct prb_regex *regex, struct program *program)
{
	if (pcre2_jit_compile(program->code, PCRE2_JIT_COMPLETE) || regex->stack)
		return;
	regex->stack = pcre2_jit_stack_create(STACK_MIN, STACK_MAX, NULL);
	if (regex->stack)
		pcre2_jit_stack_assign(regex->context, NULL, regex->stack);
}

/** What is matched, and from where on. */
struct subject {
	PCRE2_SPTR text;
	size_t length, from;
	uint32_t options;
};

static int run(struct prb_regex *regex, struct program *program, const struct subject *s)
{
	int rc;

	if (program->matches <= MATCHES_BEFORE_JIT && program->matches++ == MATCHES_BEFORE_JIT)
		make_machine_code(regex, program);
	rc = pcre2_match(program->code, s->text, s->length, s->from, s->options, regex->data,
			 regex->context);
	/* The interpreter may use more than the stack of machine code. */
	if (rc == PCRE2_ERROR_JIT_STACKLIMIT)
		rc = pcre2_match(program->code, s->text, s->length, s->from,
				 s->options | PCRE2_NO_JIT, regex->data, regex->context);
	return rc;
}

static int run_fast(struct prb_regex *regex, const struct subject *s)
{
	uint32_t size = (uint32_t)s->length + 1;

	pcre2_set_callout(regex->context, NULL, NULL);
	pcre2_set_match_limit(regex->context, WORK_MAX / (size * size));
	return run(regex, &regex->fast, s);
}

/** Nanoseconds that this thread ran: a busy machine makes no match fail. */
static uint64_t thread_time(void)
{
	struct timespec time = {};

	/* Cannot fail: the clock is there on each Linux. */
	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static int look_at_clock(pcre2_callout_block *block, void *data)
{
	struct watch *watch = data;

	(void)block;
	if (++watch->calls % watch->interval || thread_time() < watch->deadline)
		return 0;
	return PCRE2_ERROR_CALLOUT;
}

static int run_watched(struct prb_regex *regex, const struct subject *s)
{
	struct watch watch = {.interval = UNWATCHED_MAX / ((uint32_t)s->length + 1)};

	watch.interval = PRB_MAX(PRB_MIN(watch.interval, 1024u), 4u);
	watch.deadline = thread_time() + WATCHED_NS_MAX;
	pcre2_set_callout(regex->context, look_at_clock, &watch);
	pcre2_set_match_limit(regex->context, UINT32_MAX);
	return run(regex, &regex->watched, s);
}

static struct prb_error *match(struct prb_regex *regex, const struct subject *s, bool *ret)
{
	int rc = PCRE2_ERROR_MATCHLIMIT;
	char buffer[128];

	*ret = false;
	if (s->from > s->length)
		return NULL;
	if (s->length > TEXT_MAX)
		return prb_error_create(PRB_ERROR_USAGE,
					"a text of %zu bytes is too long for a regular expression",
					s->length);
	if (s->length <= FAST_TEXT_MAX)
		rc = run_fast(regex, s);
	if (rc == PCRE2_ERROR_MATCHLIMIT) {
		if (!regex->watched.code)
			PRB_TRY(compile_code(regex, PCRE2_AUTO_CALLOUT, &regex->watched.code));
		rc = run_watched(regex, s);
	}
	*ret = rc >= 0;
	if (rc >= 0 || rc == PCRE2_ERROR_NOMATCH)
		return NULL;
	return prb_error_create(PRB_ERROR_USAGE, "regular expression /%s/ cannot be matched: %s",
				regex->shown, reason(rc, buffer, sizeof(buffer)));
}

struct prb_error *prb_regex_match(struct prb_regex *regex, const char *text, size_t length,
				  size_t from, bool *ret)
{
	struct subject s = {(PCRE2_SPTR)(text ? text : ""), length, from, 0};

	return match(regex, &s, ret);
}

struct prb_error *prb_regex_match_again(struct prb_regex *regex, const char *text, size_t length,
					size_t from, bool *ret)
{
	struct subject s = {(PCRE2_SPTR)(text ? text : ""), length, from, PCRE2_NOTEMPTY_ATSTART};

	return match(regex, &s, ret);
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

/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Command line and environment of a core. The kernel lays out the top of the first stack as
 *
 *     argc, argv[0]…, NULL, envp[0]…, NULL, auxv, …, argv strings, envp strings, AT_EXECFN string
 *
 * and the core's notes hold a copy of auxv, by which its place is found and the rest from there.
 */
#include <elf.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "target/core/file.h"

enum {
	AUXV_WINDOW = 64 << 10,	 /* auxv lies at most so far below AT_RANDOM's bytes */
	AUXV_COMPARED = 64,	 /* bytes of it that must be the same */
	VECTOR_WINDOW = 4 << 20, /* of argv and envp together */
	STRINGS_MAX = 8 << 20,	 /* the kernel's own limit is 6 MiB */
};

struct stack_layout {
	uint64_t arguments, environment, end; /* of the strings */
};

static struct prb_error *unknown(void)
{
	return prb_error_create(PRB_ERROR_NOT_FOUND,
				"the core file does not contain the top of the first stack");
}

/*
 * Reads up to @p window bytes that end at @p end, from the one segment that they lie in. Their
 * number, a multiple of 8, goes to @p size.
 */
static struct prb_error *read_below(struct core *core, uint64_t end, size_t window, char **ret,
				    size_t *size)
{
	const struct core_segment *s = core_segment_at(core, end - 1);

	if (end % 8 || !s)
		return unknown();
	*size = PRB_MIN((uint64_t)window, end - s->address) & ~(size_t)7;
	*ret = malloc(*size + 1);
	if (!*ret)
		return prb_error_nomem();
	return prb_mem_read(&core->stored, end - *size, *ret, *size);
}

static struct prb_error *find_auxv(struct core *core, uint64_t *ret)
{
	prb_auto_free char *bytes = NULL;
	uint64_t random;
	size_t size;

	if (!core_auxv(core, AT_RANDOM, &random) || core->auxv_size < AUXV_COMPARED)
		return unknown();
	PRB_TRY(read_below(core, random & ~(uint64_t)7, AUXV_WINDOW, &bytes, &size));
	for (size_t at = size; at >= AUXV_COMPARED; at -= 8) {
		if (memcmp(bytes + at - AUXV_COMPARED, core->auxv, AUXV_COMPARED))
			continue;
		*ret = (random & ~(uint64_t)7) - size + at - AUXV_COMPARED;
		return NULL;
	}
	return unknown();
}

/* Index of the last NULL below @p end, or SIZE_MAX. */
static size_t null_below(const uint64_t *words, size_t end)
{
	while (end--)
		if (!words[end])
			return end;
	return SIZE_MAX;
}

static struct prb_error *find_layout(struct core *core, struct stack_layout *ret)
{
	prb_auto_free char *bytes = NULL;
	uint64_t auxv;
	size_t size;

	if (!core_auxv(core, AT_EXECFN, &ret->end))
		return unknown();
	PRB_TRY(find_auxv(core, &auxv));
	PRB_TRY(read_below(core, auxv, VECTOR_WINDOW, &bytes, &size));

	const uint64_t *words = (const uint64_t *)bytes;
	size_t count = size / sizeof(*words);
	if (!count || words[count - 1])
		return unknown();
	size_t argv_end = null_below(words, count - 1);
	if (argv_end == SIZE_MAX)
		return unknown();
	ret->environment = argv_end + 1 < count - 1 ? words[argv_end + 1] : ret->end;

	/* argc is the one word that equals the number of words between it and the NULL. */
	for (size_t i = argv_end; i-- > 0;) {
		if (words[i] != argv_end - i - 1)
			continue;
		ret->arguments = i + 1 < argv_end ? words[i + 1] : ret->environment;
		return NULL;
	}
	return unknown();
}

struct prb_error *core_stack_strings(struct core *core, bool environment, struct prb_str *ret)
{
	struct stack_layout layout;

	PRB_TRY(find_layout(core, &layout));

	uint64_t start = environment ? layout.environment : layout.arguments;
	uint64_t end = environment ? layout.end : layout.environment;
	/* A program may have set other pointers; then the strings are not where they were. */
	if (start > end || end - start > STRINGS_MAX)
		return unknown();
	prb_auto_free char *text = malloc(end - start + 1);
	if (!text)
		return prb_error_nomem();
	PRB_TRY(prb_mem_read(&core->stored, start, text, end - start));
	prb_str_append(ret, text, end - start);
	return ret->failed ? prb_error_nomem() : NULL;
}

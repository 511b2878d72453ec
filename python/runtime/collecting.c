/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "python/runtime/collecting.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "python/repr/core/repr.h"

enum {
	WORDS_AT_ONCE = 512,
	MAX_STACK = 1 << 20, /* bytes of a stack that are searched */
	FLAGS = 3,	     /* of the collector, in the low bits of both pointers */
};

struct list_head {
	uint64_t next, prev;
};

/* Only after both neighbours point back is an object looked at: few words get that far. */
static struct prb_error *check_head(struct prb_python *py, struct prb_mem *mem, uint64_t address,
				    struct list_head head, bool *ret)
{
	prb_auto_str struct prb_str type = {};
	struct list_head next, prev;

	PRB_TRY(prb_mem_read(mem, head.next, &next, sizeof(next)));
	if ((next.prev & ~(uint64_t)FLAGS) != address)
		return NULL;
	PRB_TRY(prb_mem_read(mem, head.prev, &prev, sizeof(prev)));
	if ((prev.next & ~(uint64_t)FLAGS) != address)
		return NULL;
	PRB_TRY(prb_object_type_name(py, mem, head.next + (uint64_t)py->layout.gc_head_size,
				     &type));
	*ret = type.length > 0;
	return NULL;
}

static struct prb_error *search(struct prb_python *py, struct prb_mem *mem, uint64_t address,
				const uint64_t *words, size_t count, bool *ret)
{
	for (size_t i = 0; i + 1 < count && !*ret; i++, address += sizeof(*words)) {
		struct list_head head = {words[i] & ~(uint64_t)FLAGS,
					 words[i + 1] & ~(uint64_t)FLAGS};

		/* The head of an empty list points to itself, like those of other lists. */
		if (head.next < 4096 || head.prev < 4096 || head.next % 8 || head.prev % 8 ||
		    head.next == address || head.next >> 52 || head.prev >> 52)
			continue;
		struct prb_error *err = check_head(py, mem, address, head, ret);
		if (err && err->code == PRB_ERROR_NOMEM)
			return err;
		prb_error_destroy(err);
	}
	return NULL;
}

struct prb_error *prb_python_collects(struct prb_python *py, struct prb_mem *mem, uint64_t start,
				      uint64_t end, bool *ret)
{
	uint64_t words[WORDS_AT_ONCE + 1];

	*ret = false;
	if (py->layout.free_threaded || py->layout.gc_head_size <= 0 || end < start)
		return NULL;
	start = (start + 7) & ~7ULL;
	end = PRB_MIN(end, start + MAX_STACK);
	while (start + 2 * sizeof(*words) <= end && !*ret) {
		size_t count =
			PRB_MIN((size_t)(end - start) / sizeof(*words), PRB_ARRAY_SIZE(words));

		PRB_TRY(prb_mem_read(mem, start, words, count * sizeof(*words)));
		PRB_TRY(search(py, mem, start, words, count, ret));
		start += (count - 1) * sizeof(*words);
	}
	return NULL;
}

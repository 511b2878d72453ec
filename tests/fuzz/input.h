/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Takes numbers and texts from the front of a fuzzer's input. Also parts of several fuzzers'
 * targets: memory that repeats the input, and /proc files from the input.
 */
#ifndef PRB_TESTS_FUZZ_INPUT_H
#define PRB_TESTS_FUZZ_INPUT_H

#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "target/mem/mem.h"
#include "target/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const uint8_t *data;
	size_t size;
};

/** The first @p length bytes; zeros beyond the end. */
static inline void input_take(struct input *input, void *ret, size_t length)
{
	size_t there = PRB_MIN(length, input->size);

	memset(ret, 0, length);
	if (there)
		memcpy(ret, input->data, there);
	input->data += there;
	input->size -= there;
}

static inline uint8_t input_u8(struct input *input)
{
	uint8_t value;

	input_take(input, &value, sizeof(value));
	return value;
}

static inline uint32_t input_u32(struct input *input)
{
	uint32_t value;

	input_take(input, &value, sizeof(value));
	return value;
}

static inline uint64_t input_u64(struct input *input)
{
	uint64_t value;

	input_take(input, &value, sizeof(value));
	return value;
}

/** Everything up to the next NUL, terminated, for the caller to free; never NULL. */
static inline char *input_text(struct input *input)
{
	size_t length = strnlen((const char *)input->data, input->size);
	char *text = calloc(1, length + 1);

	if (!text)
		abort();
	input_take(input, text, length);
	(void)input_u8(input);
	return text;
}

enum { REPEATED_MAX = 1 << 16, REPEATED_READS = 5000 };

/** Memory that repeats the same bytes, so that each pointer is valid. */
struct repeated_memory {
	struct prb_mem mem;
	const uint8_t *bytes;
	size_t size;	/* at most REPEATED_MAX */
	bool bounded;	/* nothing after the first copy */
	unsigned reads; /* limit of successful reads, to keep a run short */
};

static inline struct prb_error *repeated_read(struct prb_mem *mem, uint64_t address, void *buffer,
					      size_t length)
{
	struct repeated_memory *memory = (struct repeated_memory *)mem;
	uint8_t *to = buffer;

	if (length > REPEATED_MAX || !memory->reads || !memory->size ||
	    (memory->bounded && !prb_inside(address, length, memory->size)))
		return prb_error_fault(address, length);
	memory->reads--;
	for (size_t done = 0, part; done < length; done += part) {
		size_t from = (address + done) % memory->size;

		part = PRB_MIN(length - done, memory->size - from);
		memcpy(to + done, memory->bytes + from, part);
	}
	return NULL;
}

static inline void repeated_destroy(struct prb_mem *mem)
{
	(void)mem;
}

static const struct prb_mem_ops repeated_ops = {.read = repeated_read, .destroy = repeated_destroy};

static inline struct repeated_memory repeat(const struct input *input, bool bounded)
{
	return (struct repeated_memory){
		.mem = {&repeated_ops},
		.bytes = input->data,
		.size = PRB_MIN(input->size, (size_t)REPEATED_MAX),
		.bounded = bounded,
		.reads = REPEATED_READS,
	};
}

/** A target whose facts are pairs of name and text, each ended by a NUL. */
struct fact_target {
	struct prb_target target;
	struct input facts;
};

static inline bool fact_find(struct prb_target *t, const char *name, struct prb_str *ret)
{
	struct input facts = ((struct fact_target *)t)->facts;

	while (facts.size) {
		prb_auto_free char *key = input_text(&facts), *text = input_text(&facts);

		if (!strcmp(key, name)) {
			prb_str_puts(ret, text);
			return true;
		}
	}
	return false;
}

static inline struct prb_error *fact_read(struct prb_target *t, const char *name,
					  struct prb_str *ret)
{
	return fact_find(t, name, ret) ? NULL : prb_error_create(PRB_ERROR_NOT_FOUND, "%s", name);
}

static inline struct prb_error *fact_open_map(struct prb_target *t, const struct prb_map *map,
					      int *ret_fd)
{
	(void)t;
	*ret_fd = -1;
	return prb_error_create(PRB_ERROR_NOT_FOUND, "%s", map->path);
}

static inline struct prb_error *fact_open_file(struct prb_target *t, const char *path, int *ret_fd)
{
	(void)t;
	*ret_fd = -1;
	return prb_error_create(PRB_ERROR_NOT_FOUND, "%s", path);
}

static inline void fact_destroy(struct prb_target *t)
{
	(void)t;
}

/** Both are read as files, links, listings and derived facts. */
static const struct prb_target_ops fact_ops = {
	.read_file = fact_read,
	.read_link = fact_read,
	.list = fact_read,
	.open_file = fact_open_file,
	.open_map = fact_open_map,
	.recall = fact_find,
	.destroy = fact_destroy,
};

static inline struct fact_target fact_target(struct input facts, enum prb_target_kind kind,
					     struct prb_mem *mem)
{
	return (struct fact_target){
		.target = {.ops = &fact_ops,
			   .kind = kind,
			   .live = kind == PRB_TARGET_PROCESS,
			   .moves = kind == PRB_TARGET_PROCESS,
			   .local = kind == PRB_TARGET_PROCESS,
			   .loadable = kind == PRB_TARGET_PROCESS,
			   .replayed = kind == PRB_TARGET_SNAPSHOT,
			   .pid = 1,
			   .machine = EM_X86_64,
			   .mem = mem},
		.facts = facts,
	};
}

#endif

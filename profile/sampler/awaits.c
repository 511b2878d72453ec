/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile/sampler/awaits.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "python/asyncio/running.h"

enum {
	REFRESH_NS = 1000000000,
	MOST_NAMES = 1000, /* different ones: some programs name a task for each request */
	NAME_LENGTH = 100, /* bytes */
};

struct watched {
	struct prb_python *py;
	struct prb_asyncio_watch *watch;
};

struct prb_awaits {
	struct prb_subjects *subjects;
	PRB_VEC(struct watched) list;
	struct prb_asyncio_running running; /* of the last thread that was noted */
	size_t position;		    /* of its outermost frame among those noted */
	int64_t refresh_at;
	size_t names; /* different ones so far */
	PRB_VEC(uint32_t) path;
};

struct prb_error *prb_awaits_create(struct prb_subjects *subjects, struct prb_awaits **ret)
{
	struct prb_awaits *awaits = calloc(1, sizeof(*awaits));

	if (!awaits)
		return prb_error_nomem();
	awaits->subjects = subjects;
	*ret = awaits;
	return NULL;
}

static void forget(struct prb_awaits *awaits)
{
	struct watched *watched;

	prb_vec_each (watched, &awaits->list)
		prb_asyncio_watch_destroy(watched->watch);
	prb_vec_free(&awaits->list);
}

void prb_awaits_destroy(struct prb_awaits *awaits)
{
	if (!awaits)
		return;
	forget(awaits);
	prb_asyncio_running_deinit(&awaits->running);
	prb_vec_free(&awaits->path);
	free(awaits);
}

static struct prb_error *add(struct prb_awaits *awaits, struct prb_python *py)
{
	struct watched *slot = prb_vec_push(&awaits->list);

	if (!slot)
		return prb_error_nomem();
	*slot = (struct watched){.py = py};
	return prb_asyncio_watch_create(py, awaits->subjects->modules, &slot->watch);
}

/* Python may have come, gone or been found anew. */
static bool is_same(const struct prb_awaits *awaits)
{
	const struct prb_pythons *pythons = &awaits->subjects->pythons;

	if (pythons->list.count != awaits->list.count)
		return false;
	for (size_t i = 0; i < pythons->list.count; i++)
		if (pythons->list.items[i] != awaits->list.items[i].py)
			return false;
	return true;
}

struct prb_error *prb_awaits_refresh(struct prb_awaits *awaits, int64_t now)
{
	struct prb_subjects *s = awaits->subjects;
	struct watched *watched;

	if (now < awaits->refresh_at)
		return NULL;
	awaits->refresh_at = now + REFRESH_NS;
	if (!is_same(awaits)) {
		forget(awaits);
		for (size_t i = 0; i < s->pythons.list.count; i++)
			PRB_TRY(add(awaits, s->pythons.list.items[i]));
	}
	prb_vec_each (watched, &awaits->list)
		PRB_TRY(prb_asyncio_watch_refresh(watched->watch, s->target->mem));
	return NULL;
}

static struct prb_asyncio_watch *watch_of(const struct prb_awaits *awaits,
					  const struct prb_python *py)
{
	const struct watched *watched;

	prb_vec_each (watched, &awaits->list)
		if (watched->py == py)
			return watched->watch;
	return NULL;
}

static bool is_on_stack(void *context, uint64_t frame)
{
	return prb_codes_find(context, frame, NULL);
}

/* Notes the frames of all waiting tasks, in their order. */
static struct prb_error *note_frames(struct prb_awaits *awaits, struct prb_codes *codes,
				     struct prb_python *py, struct prb_mem *mem)
{
	const struct prb_py_frame *frame;

	prb_vec_each (frame, &awaits->running.frames)
		PRB_TRY(prb_codes_note_other(codes, py, mem, frame));
	return NULL;
}

struct prb_error *prb_awaits_note(struct prb_awaits *awaits, struct prb_codes *codes,
				  struct prb_mem *mem, const struct prb_subject *subject)
{
	struct prb_asyncio_running *running = &awaits->running;
	const struct prb_subject_state *state;

	prb_asyncio_running_deinit(running);
	prb_vec_each (state, &subject->states) {
		struct prb_asyncio_watch *watch = watch_of(awaits, state->py);

		if (!watch)
			continue;
		PRB_TRY(prb_asyncio_running_read(watch, mem, &state->thread, is_on_stack, codes,
						 running));
		if (running->tasks.count &&
		    prb_codes_find(codes, running->frame, &awaits->position))
			return note_frames(awaits, codes, state->py, mem);
		prb_asyncio_running_deinit(running);
	}
	return NULL;
}

static struct prb_error *add_marker(struct prb_awaits *awaits, const char *name, uint32_t *stack)
{
	struct prb_tree *tree = awaits->subjects->recording->tree;
	bool named = name && awaits->names < MOST_NAMES;
	prb_auto_free char *text =
		named ? prb_format("[task %.*s]", NAME_LENGTH, name) : strdup("[task]");
	size_t before = tree->functions.count;
	uint32_t function, frame;

	if (!text)
		return prb_error_nomem();
	PRB_TRY(prb_tree_function(
		tree, &(struct prb_tree_function){.kind = PRB_FUNCTION_TASK, .name = text},
		&function));
	awaits->names += named && tree->functions.count > before;
	PRB_TRY(prb_tree_frame(tree, function, 0, &frame));
	return prb_tree_call(tree, *stack, frame, stack);
}

/* Notes that waiters of the outermost task were not followed, or could not be read. */
static struct prb_error *add_end(struct prb_awaits *awaits, uint32_t *stack)
{
	const struct prb_asyncio_running *running = &awaits->running;
	struct prb_tree *tree = awaits->subjects->recording->tree;
	uint32_t function, frame;

	if (!running->awaiters && !running->broken)
		return NULL;
	PRB_TRY(prb_tree_function(
		tree,
		&(struct prb_tree_function){.kind = PRB_FUNCTION_TASK,
					    .name = running->broken ? "[awaited by: unreadable]"
								    : "[awaited by several tasks]"},
		&function));
	PRB_TRY(prb_tree_frame(tree, function, 0, &frame));
	return prb_tree_call(tree, *stack, frame, stack);
}

static struct prb_error *add_tasks(struct prb_awaits *awaits, const uint32_t *frames,
				   uint32_t *stack)
{
	const struct prb_asyncio_running *running = &awaits->running;
	struct prb_tree *tree = awaits->subjects->recording->tree;

	PRB_TRY(add_end(awaits, stack));
	for (size_t i = running->tasks.count; i-- > 0;) {
		const struct prb_asyncio_link *link = &running->tasks.items[i];

		PRB_TRY(add_marker(awaits, link->name, stack));
		for (size_t k = link->count; k-- > 0;)
			PRB_TRY(prb_tree_call(tree, *stack, frames[link->first + k], stack));
	}
	return NULL;
}

/* The stack that ends with the outermost frame of the task; 0 if it is not there. Between Python's
 * frames there may be others, but none that is equal to one of them. */
static uint32_t find_own(const struct prb_awaits *awaits, const uint32_t *frames, uint32_t stack)
{
	const struct prb_tree *tree = awaits->subjects->recording->tree;
	size_t skip = 0;

	for (size_t i = 0; i < awaits->position; i++)
		skip += frames[i] == frames[awaits->position];
	for (; stack; stack = tree->stacks.items[stack].parent)
		if (tree->stacks.items[stack].frame == frames[awaits->position] && !skip--)
			return stack;
	return 0;
}

struct prb_error *prb_awaits_insert(struct prb_awaits *awaits, struct prb_codes *codes,
				    uint32_t *stack)
{
	struct prb_tree *tree = awaits->subjects->recording->tree;
	const uint32_t *frames;
	uint32_t own, at;
	size_t others;

	if (!awaits->running.tasks.count)
		return NULL;
	frames = prb_codes_kept_frames(codes, &others);
	own = find_own(awaits, frames, *stack);
	if (!own)
		return NULL;
	awaits->path.count = 0;
	for (at = *stack; at != tree->stacks.items[own].parent;
	     at = tree->stacks.items[at].parent) {
		uint32_t *slot = prb_vec_push(&awaits->path);

		if (!slot)
			return prb_error_nomem();
		*slot = tree->stacks.items[at].frame;
	}
	PRB_TRY(add_tasks(awaits, frames + others, &at));
	for (size_t i = awaits->path.count; i-- > 0;)
		PRB_TRY(prb_tree_call(tree, at, awaits->path.items[i], &at));
	*stack = at;
	return NULL;
}

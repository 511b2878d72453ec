/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile/recording/tree.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/pool.h"
#include "base/text.h"

enum { MOST = INT32_MAX };

struct prb_error *prb_tree_create(struct prb_tree **ret)
{
	struct prb_tree *tree = calloc(1, sizeof(*tree));
	struct prb_error *err;

	if (!tree)
		return prb_error_nomem();
	err = prb_pool_create(&tree->pool);
	if (!err && !prb_vec_push(&tree->stacks)) /* the empty one */
		err = prb_error_nomem();
	if (err)
		prb_tree_destroy(tree);
	else
		*ret = tree;
	return err;
}

void prb_tree_destroy(struct prb_tree *tree)
{
	if (!tree)
		return;
	for (size_t i = 0; i < tree->images.count; i++)
		free(tree->images.items[i]);
	prb_vec_free(&tree->images);
	prb_vec_free(&tree->functions);
	prb_vec_free(&tree->frames);
	prb_vec_free(&tree->stacks);
	prb_number_map_deinit(&tree->function_numbers);
	prb_number_map_deinit(&tree->frame_numbers);
	prb_number_map_deinit(&tree->stack_numbers);
	prb_pool_destroy(tree->pool);
	free(tree);
}

const char *prb_function_kind_name(enum prb_function_kind kind)
{
	static const char *const names[] = {
		[PRB_FUNCTION_PYTHON] = "python",
		[PRB_FUNCTION_NATIVE] = "native",
		[PRB_FUNCTION_NOTE] = "note",
		[PRB_FUNCTION_TASK] = "task",
	};

	return names[kind];
}

const char *prb_tree_short_path(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!strcmp(path, "[vdso]"))
		return "vdso";
	return slash && slash[1] ? slash + 1 : path;
}

static struct prb_error *too_many(const char *what)
{
	return prb_error_create(PRB_ERROR_FAILED, "a recording of more than %d %s", MOST, what);
}

static bool same_function(const struct prb_tree_function *a, const struct prb_tree_function *b)
{
	return a->kind == b->kind && a->name == b->name && a->file == b->file &&
	       a->module == b->module && a->first_line == b->first_line &&
	       a->subject == b->subject && a->image == b->image;
}

/* The pool has each text once, so that addresses tell texts apart. */
static uint64_t function_key(const struct prb_tree_function *f)
{
	uint64_t key = (uint64_t)(uintptr_t)f->name * 0x9e3779b97f4a7c15u;

	key = (key ^ (uint64_t)(uintptr_t)f->file) * 0xff51afd7ed558ccdu;
	key = (key ^ (uint64_t)(uintptr_t)f->module) * 0xc4ceb9fe1a85ec53u;
	key = (key ^ f->subject ^ (uint64_t)(uintptr_t)f->image) * 0x9e3779b97f4a7c15u;
	return key ^ (uint64_t)(uint32_t)f->first_line << 3 ^ (uint64_t)f->kind;
}

static bool same_image(const struct prb_tree_image *a, const struct prb_tree_image *b)
{
	return a->address == b->address && a->size == b->size && a->offset == b->offset &&
	       !strcmp(a->build_id, b->build_id) && !strcmp(a->path, b->path);
}

struct prb_error *prb_tree_image(struct prb_tree *tree, const struct prb_tree_image *image,
				 const struct prb_tree_image **ret)
{
	struct prb_tree_image **slot, *copy;

	prb_vec_each (slot, &tree->images)
		if (*slot == image || same_image(*slot, image)) {
			*ret = *slot;
			return NULL;
		}
	slot = prb_vec_push(&tree->images);
	if (!slot)
		return prb_error_nomem();
	*slot = copy = malloc(sizeof(*copy));
	if (!copy) {
		tree->images.count--;
		return prb_error_nomem();
	}
	*copy = *image;
	copy->number = (uint32_t)tree->images.count - 1;
	*ret = copy;
	PRB_TRY(prb_pool_share(tree->pool, image->path, &copy->path));
	return prb_pool_share(tree->pool, image->build_id, &copy->build_id);
}

struct prb_error *prb_tree_function(struct prb_tree *tree, const struct prb_tree_function *function,
				    uint32_t *ret)
{
	struct prb_tree_function wanted = *function, *slot;
	uint64_t key;
	size_t number;

	PRB_TRY(prb_pool_share(tree->pool, function->name, &wanted.name));
	PRB_TRY(prb_pool_share(tree->pool, function->file, &wanted.file));
	PRB_TRY(prb_pool_share(tree->pool, function->module, &wanted.module));
	if (function->image)
		PRB_TRY(prb_tree_image(tree, function->image, &wanted.image));
	for (key = function_key(&wanted); prb_number_map_get(&tree->function_numbers, key, &number);
	     key++) {
		*ret = (uint32_t)number;
		if (same_function(&tree->functions.items[number], &wanted))
			return NULL;
	}
	if (tree->functions.count >= MOST)
		return too_many("functions");
	slot = prb_vec_push(&tree->functions);
	*ret = (uint32_t)tree->functions.count - 1;
	if (!slot || !prb_number_map_put(&tree->function_numbers, key, *ret))
		return prb_error_nomem();
	*slot = wanted;
	return NULL;
}

struct prb_error *prb_tree_frame(struct prb_tree *tree, uint32_t function, int32_t line,
				 uint32_t *ret)
{
	uint64_t key = (uint64_t)function << 32 | (uint32_t)line;
	struct prb_tree_frame *slot;
	size_t number;

	if (prb_number_map_get(&tree->frame_numbers, key, &number)) {
		*ret = (uint32_t)number;
		return NULL;
	}
	if (tree->frames.count >= MOST)
		return too_many("frames");
	slot = prb_vec_push(&tree->frames);
	*ret = (uint32_t)tree->frames.count - 1;
	if (!slot || !prb_number_map_put(&tree->frame_numbers, key, *ret))
		return prb_error_nomem();
	*slot = (struct prb_tree_frame){function, line};
	return NULL;
}

struct prb_error *prb_tree_call(struct prb_tree *tree, uint32_t stack, uint32_t frame,
				uint32_t *ret)
{
	uint64_t key = (uint64_t)stack << 32 | frame;
	struct prb_tree_stack *slot;
	size_t number;

	if (prb_number_map_get(&tree->stack_numbers, key, &number)) {
		*ret = (uint32_t)number;
		return NULL;
	}
	if (tree->stacks.count >= MOST)
		return too_many("stacks");
	slot = prb_vec_push(&tree->stacks);
	*ret = (uint32_t)tree->stacks.count - 1;
	if (!slot || !prb_number_map_put(&tree->stack_numbers, key, *ret))
		return prb_error_nomem();
	*slot = (struct prb_tree_stack){stack, frame, tree->stacks.items[stack].depth + 1};
	return NULL;
}

struct prb_error *prb_tree_note(struct prb_tree *tree, const char *text, uint32_t *ret)
{
	uint32_t function, frame;

	PRB_TRY(prb_tree_function(
		tree, &(struct prb_tree_function){.kind = PRB_FUNCTION_NOTE, .name = text},
		&function));
	PRB_TRY(prb_tree_frame(tree, function, 0, &frame));
	return prb_tree_call(tree, 0, frame, ret);
}

bool prb_function_lacks_name(const struct prb_tree_function *f)
{
	char by_start[32], by_place[32];
	size_t length = strlen(f->name);

	if (!f->image)
		return false;
	snprintf(by_start, sizeof(by_start), "fun_%" PRIx64, f->address);
	snprintf(by_place, sizeof(by_place), "+0x%" PRIx64, f->address);
	return !strcmp(f->name, by_start) || *f->name == '<' ||
	       (length > strlen(by_place) &&
		!strcmp(f->name + length - strlen(by_place), by_place));
}

enum { IMAGE_BITS = 40 };

uint64_t prb_image_base(const struct prb_tree_image *image)
{
	return ((uint64_t)image->number + 1) << IMAGE_BITS;
}

uint64_t prb_function_address(const struct prb_tree_function *f)
{
	return f->image && !(f->address >> IMAGE_BITS) ? prb_image_base(f->image) + f->address : 0;
}

void prb_function_put_place(struct prb_str *s, const struct prb_tree_function *f, int32_t line)
{
	bool file = f->file && (line > 0 || !f->module);

	if (file)
		prb_text_escape(s, prb_tree_short_path(f->file));
	if (file && line > 0)
		prb_str_printf(s, ":%d", line);
	if (!f->module)
		return;
	prb_str_puts(s, file ? " [" : "[");
	prb_text_escape(s, prb_tree_short_path(f->module));
	prb_str_putc(s, ']');
}

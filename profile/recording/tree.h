/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The call tree of a recording: functions, frames and stacks, each of which it has once.
 *
 * A frame is a function and a line in it; a stack is the stack of its caller and one frame more.
 * All have numbers, which stay; equal ones are equal things. Stack 0 is the empty one, which is its
 * own parent.
 *
 * Threading: one thread at a time. The tree owns its strings. Errors: PRB_ERROR_NOMEM, and
 * PRB_ERROR_FAILED when there are too many of a kind.
 */
#ifndef PRB_PROFILE_RECORDING_TREE_H
#define PRB_PROFILE_RECORDING_TREE_H

#include <stdint.h>

#include "base/error.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"

enum prb_function_kind {
	PRB_FUNCTION_PYTHON,
	PRB_FUNCTION_NATIVE,
	PRB_FUNCTION_NOTE, /**< no function: "<unreadable>", "<not in Python>" */
	PRB_FUNCTION_TASK, /**< here a task of asyncio begins (awaits.h); in no view of a recording
			    */
};

/**
 * An ELF file whose code ran, as it was mapped: so code without a name can get one later, by its
 * build-id and address. Addresses are the file's own.
 */
struct prb_tree_image {
	const char *path, *build_id; /**< the tree's; build_id "" if it has none */
	uint64_t address, size;	     /**< the mapping of code */
	uint64_t offset;	     /**< of that mapping in the file */
	uint32_t number;	     /**< the tree's */
};

struct prb_tree_function {
	enum prb_function_kind kind;
	const char *name, *file; /**< the tree's; file NULL if there is none */
	int32_t first_line;	 /**< where it is defined; 0 if unknown */
	const char *module;	 /**< of native ones: path of their ELF file; else NULL */
	uint64_t subject;	 /**< address of the module or optimizer of torch that it runs for;
				    0: none; or a number below */
	/** Of native ones: where their code comes from, NULL if unknown. Any tree's when given, the
	 * tree's own in it. */
	const struct prb_tree_image *image;
	uint64_t address; /**< where they begin, in that file; no part of what tells functions apart
			   */
};

/** Subjects that are no address: within a `with` statement that turns gradients off, or on. */
enum { PRB_SUBJECT_NO_GRADIENT = 1, PRB_SUBJECT_GRADIENT = 2 };

struct prb_tree_frame {
	uint32_t function;
	int32_t line; /**< 0 if unknown */
};

struct prb_tree_stack {
	uint32_t parent; /**< stack of the caller */
	uint32_t frame;	 /**< the innermost; of the empty stack none */
	uint32_t depth;	 /**< frames */
};

struct prb_tree {
	struct prb_pool *pool;
	PRB_VEC(struct prb_tree_function) functions;
	PRB_VEC(struct prb_tree_image *) images;
	PRB_VEC(struct prb_tree_frame) frames;
	PRB_VEC(struct prb_tree_stack) stacks;
	struct prb_number_map function_numbers, frame_numbers, stack_numbers;
};

struct prb_error *prb_tree_create(struct prb_tree **ret) PRB_MUST_CHECK;
void prb_tree_destroy(struct prb_tree *tree);

/** The tree's own copy of @p image. */
struct prb_error *prb_tree_image(struct prb_tree *tree, const struct prb_tree_image *image,
				 const struct prb_tree_image **ret) PRB_MUST_CHECK;
struct prb_error *prb_tree_function(struct prb_tree *tree, const struct prb_tree_function *function,
				    uint32_t *ret) PRB_MUST_CHECK;
struct prb_error *prb_tree_frame(struct prb_tree *tree, uint32_t function, int32_t line,
				 uint32_t *ret) PRB_MUST_CHECK;

/** The stack of a call from @p stack that is in @p frame. */
struct prb_error *prb_tree_call(struct prb_tree *tree, uint32_t stack, uint32_t frame,
				uint32_t *ret) PRB_MUST_CHECK;

/** The stack of one note alone. */
struct prb_error *prb_tree_note(struct prb_tree *tree, const char *text,
				uint32_t *ret) PRB_MUST_CHECK;

/** The note of a running thread that could not be read, as another tracer had it. */
#define PRB_NOTE_TRACED "<unreadable: another tracer>"

/** "python", "native", "note". */
const char *prb_function_kind_name(enum prb_function_kind kind);

/** Its source file, or the ELF file of a native function of which no source is known; or NULL. */
static inline const char *prb_function_file(const struct prb_tree_function *f)
{
	return f->file ? f->file : f->module;
}

/** Appends where it is: "loader.py:88", "fold.c:12 [libc.so.6]", "[libc.so.6]"; @p line 0: unknown.
 */
void prb_function_put_place(struct prb_str *s, const struct prb_tree_function *f, int32_t line);

/** True for native code that is named by its place, as nothing had a name for it. */
bool prb_function_lacks_name(const struct prb_tree_function *f);

/**
 * The address of a function among all images of a recording, for formats whose files have one
 * memory: each image gets a range of its own. 0: nothing is known of it.
 */
uint64_t prb_function_address(const struct prb_tree_function *f);
/** Where such a range begins: what is to be added to addresses in the image. */
uint64_t prb_image_base(const struct prb_tree_image *image);

/** "libc.so.6" of "/lib/libc.so.6": the end of @p path; "vdso" of "[vdso]". */
const char *prb_tree_short_path(const char *path);

/** The function that the innermost frame of a stack, not the empty one, is in. */
static inline const struct prb_tree_function *prb_tree_function_of(const struct prb_tree *tree,
								   uint32_t stack)
{
	return &tree->functions.items[tree->frames.items[tree->stacks.items[stack].frame].function];
}

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The C frames of samples, merged with Python's, at a rate.
 *
 * While a thread is stopped only registers and the bytes of its stack are copied
 * (prb_natives_copy()). They are unwound when it runs again (prb_natives_unwind()), and when it is
 * certain that what was read is one stack, it is put into the tree (prb_natives_keep()). There it
 * is kept as program counters; prb_natives_name() finds out the functions of all of them when the
 * recording is over, each once.
 *
 * The modules of the process are looked for anew when they are not what they were, at most so often
 * that it takes a small part of the time.
 *
 * Threading: one thread at a time. Borrows the target and the recording.
 */
#ifndef PRB_PROFILE_NATIVE_NATIVES_H
#define PRB_PROFILE_NATIVE_NATIVES_H

#include "base/error.h"
#include "python/python.h"
#include "target/target.h"
#include "dump/native/frame_order.h"
#include "profile/recording/recording.h"

struct prb_natives;
struct prb_native_place;

/** Code that was met, of all programs of a recording. It starts as {}. */
struct prb_native_places {
	PRB_VEC(struct prb_native_place) list;
	struct prb_number_map builds; /**< the first place in each file, by build-id */
};

/** Asked before each place gets its name: whether the rest is to stay without. */
typedef bool prb_natives_give_up(void *context);

/** Cache of a thread's C stack from earlier samples. It starts as {}. */
struct prb_native_thread {
	uint64_t top;	   /**< where its stack was seen to end; 0 if unknown */
	size_t room;	   /**< bytes to copy where that is unknown; 0: the usual */
	unsigned patience; /**< samples until more than that is tried again */
	enum prb_native_doubt doubt;
	unsigned doubts;
	uint64_t doubt_pc;
};

/** Outcomes of unwinding. */
enum prb_native_result {
	PRB_NATIVE_UNWOUND,
	PRB_NATIVE_SHORT,   /**< more of the stack is needed: the thread is to be read again */
	PRB_NATIVE_BETWEEN, /**< it was just entering a loop: it is to be read again */
	PRB_NATIVE_STALE,   /**< it runs Python, and none of the states that were given */
};

/** @p number: of the program that is sampled, among all that the recording is of; from 0 on. */
struct prb_error *prb_natives_create(struct prb_target *target, struct prb_recording *recording,
				     unsigned number, struct prb_natives **ret) PRB_MUST_CHECK;
/** All stacks are calls from @p stack from now on, which is none at first. */
void prb_natives_root(struct prb_natives *natives, uint32_t stack);
/** Code gets its name when it is met: that of its symbol, without lines and inlined calls. */
void prb_natives_name_at_once(struct prb_natives *natives);
void prb_natives_destroy(struct prb_natives *natives);

/** Looks whether libraries came or went, if that is due. To be called between samples. */
struct prb_error *prb_natives_refresh(struct prb_natives *natives, int64_t now) PRB_MUST_CHECK;

/** Copies the stack from @p regs on: the only work while the thread is stopped. */
struct prb_error *prb_natives_copy(struct prb_natives *natives,
				   const struct prb_native_thread *thread,
				   const struct prb_regs *regs) PRB_MUST_CHECK;

/**
 * Takes a copy that the program has made, of @p length bytes from the stack pointer of @p regs on.
 * The innermost function belongs to the code that copied: its frames, and its callers in the same
 * module, are left out.
 */
struct prb_error *prb_natives_give(struct prb_natives *natives, const struct prb_regs *regs,
				   const void *bytes, size_t length) PRB_MUST_CHECK;

/**
 * Unwinds the copy, and merges it with @p frames of @p py, which may be none and NULL. @p all: the
 * interpreters that there are.
 */
struct prb_error *prb_natives_unwind(struct prb_natives *natives, const struct prb_pythons *all,
				     const struct prb_python *py,
				     const struct prb_py_frames *frames,
				     struct prb_native_thread *thread,
				     enum prb_native_result *ret) PRB_MUST_CHECK;

/**
 * Puts what was unwound last into the tree. @p python: the tree's frames for those Python frames
 * that are not hidden.
 */
struct prb_error *prb_natives_keep(struct prb_natives *natives, const uint32_t *python,
				   uint32_t *ret_stack) PRB_MUST_CHECK;

/** Moves all places that were met so far to @p places. NULL for @p natives has none. */
struct prb_error *prb_natives_hand_over(struct prb_natives *natives,
					struct prb_native_places *places) PRB_MUST_CHECK;

/** True if places were handed over that get their names from here: it is to live until then. */
bool prb_natives_is_needed(const struct prb_natives *natives);

void prb_native_places_deinit(struct prb_native_places *places);

/**
 * Replaces the tree of the recording by one with functions for the program counters of all places.
 * @p give_up may be NULL; how many have no names for it is in the recording. *ret_renamed has the
 * new number of each stack of the old one, for the caller to free.
 */
struct prb_error *prb_natives_name(struct prb_recording *recording,
				   const struct prb_native_places *places,
				   prb_natives_give_up *give_up, void *context,
				   uint32_t **ret_renamed) PRB_MUST_CHECK;

#endif

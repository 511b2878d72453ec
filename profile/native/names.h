/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file From program counters to functions, when a recording is over.
 *
 * Threading: one thread at a time. Internal to profile/native/.
 */
#ifndef PRB_PROFILE_NATIVE_NAMES_H
#define PRB_PROFILE_NATIVE_NAMES_H

#include "base/error.h"
#include "base/map.h"
#include "base/str.h"
#include "dwarf/elf/module.h"
#include "dwarf/unwind/unwind.h"
#include "dump/native/frame_order.h"
#include "profile/native/natives.h"
#include "profile/native/perf_map.h"
#include "profile/recording/recording.h"

/** The memory map during a part of the recording. */
struct prb_native_images {
	struct prb_modules *modules;
	struct prb_unwinder *unwinder;
	struct prb_interleaver interleaver;
	PRB_VEC(struct prb_map) code;	    /**< what was mapped then, by address; without paths */
	struct prb_number_map frames;	    /**< the tree's, by address */
	const struct prb_perf_map *made[3]; /**< names of what was made at run time */
	int32_t number;			    /**< unique among the images of the recording */
};

/** Code that was met. */
struct prb_native_place {
	const struct prb_native_images *images;
	uint64_t code;	/**< an address in the instruction that ran, or that called */
	uint32_t frame; /**< the tree's, that stands for it */
	uint32_t
		region; /**< number of the memory with code made at run time; 0: unknown, or none */
};

/** Gives @p function the name and the file of code that was made at run time, if they are known. */
void prb_native_made_name(const struct prb_native_images *images, uint64_t code,
			  struct prb_tree_function *function);

/** Appends "libfoo.so+0x12", or the address alone: of an instruction, not of a function. */
void prb_native_place_text(const struct prb_native_images *images, uint64_t code,
			   struct prb_str *ret);

/**
 * Appends the name of code without a symbol: "fun_4900" after the start of its function in its
 * file, by the call frame information; or "jit_region_2". The same for all of a function, and
 * without addresses of the process, so that rows merge and match those of other recordings.
 */
struct prb_error *prb_native_unnamed(const struct prb_native_place *place,
				     struct prb_str *ret) PRB_MUST_CHECK;

/**
 * Sets where the code of a function comes from: its file, as it was mapped then, and the address
 * in it, of the place. @p image is room for that.
 */
void prb_native_origin(const struct prb_native_place *place, struct prb_tree_image *image,
		       struct prb_tree_function *ret);

/**
 * Adds a place that was met. Many processes run the same programs, whose debug information takes
 * long to open: a place in a file that an earlier place is in already becomes one in the images of
 * that. *ret_own is false then: the place's own images are not needed for it.
 */
struct prb_error *prb_native_places_add(struct prb_native_places *places,
					const struct prb_native_place *place,
					bool *ret_own) PRB_MUST_CHECK;

#endif

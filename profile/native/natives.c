/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile/native/natives.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "dump/native/c_stack.h"
#include "dwarf/lines/demangle.h"
#include "dwarf/lines/short_name.h"
#include "profile/native/jit_entries.h"
#include "profile/native/jitdump.h"
#include "profile/native/names.h"
#include "profile/native/perf_map.h"
#include "profile/native/stack_copy.h"
#include "target/mem/view.h"

enum {
	DOUBTS = 4,		 /* moments at which a thread seems to enter a loop */
	PATIENCE = 100,		 /* samples of a thread until more of its stack is tried again */
	REFRESH_NS = 1000000000, /* libraries are looked for at least so often */
	REFRESH_SHARE = 20,	 /* and at most so that it takes one part of so many */
};

struct prb_natives {
	struct prb_target *target;
	struct prb_recording *recording;
	PRB_VEC(struct prb_native_images *) images; /* the newest last */
	unsigned number;
	uint32_t root;
	struct prb_stack_copy copy;
	struct prb_regs regs;
	struct prb_c_stack stack;
	struct prb_places places;
	PRB_VEC(struct prb_native_place) met;
	struct prb_perf_map perf_map;
	struct prb_jit_entries jit;
	struct prb_jitdump dump;
	PRB_VEC(uint64_t)
	regions; /* starts of memory with code made at run time, as they were met */
	bool names_at_once;
	bool made_code; /* code was met that is in no module */
	bool lost;	/* code was met that is in no mapping we know */
	bool given;	/* the copy was made by the program, whose copying functions are on it */
	bool needed;	/* places that were handed over get their names from our images */
	int64_t refresh_from, refresh_until;
};

static struct prb_native_images *newest(const struct prb_natives *n)
{
	return n->images.items[n->images.count - 1];
}

static void images_destroy(struct prb_native_images *images)
{
	if (images->unwinder)
		prb_unwinder_destroy(images->unwinder);
	prb_interleaver_deinit(&images->interleaver);
	prb_vec_free(&images->code);
	prb_number_map_deinit(&images->frames);
	prb_modules_destroy(images->modules);
	free(images);
}

/* The next mapping of code that comes from a file, from @at on; NULL if there is none. */
static const struct prb_map *next_code(const struct prb_maps *maps, size_t *at)
{
	while (*at < maps->list.count) {
		const struct prb_map *map = &maps->list.items[(*at)++];

		if (map->exec && map->inode)
			return map;
	}
	return NULL;
}

static bool is_code_of(const struct prb_native_images *images, const struct prb_maps *maps)
{
	const struct prb_map *x, *y;
	size_t at = 0;

	prb_vec_each (x, &images->code) {
		y = next_code(maps, &at);
		if (!y || x->start != y->start || x->end != y->end || x->offset != y->offset ||
		    x->inode != y->inode || x->major != y->major || x->minor != y->minor)
			return false;
	}
	return !next_code(maps, &at);
}

static struct prb_error *note_code(struct prb_native_images *images, const struct prb_maps *maps)
{
	const struct prb_map *map;

	for (size_t at = 0; (map = next_code(maps, &at));) {
		struct prb_map *slot = prb_vec_push(&images->code);

		if (!slot)
			return prb_error_nomem();
		*slot = *map;
		slot->path = NULL;
	}
	return NULL;
}

/* Adds the present mappings. */
static struct prb_error *add_images(struct prb_natives *n)
{
	struct prb_native_images **slot = prb_vec_push(&n->images), *images;

	if (!slot)
		return prb_error_nomem();
	images = *slot = calloc(1, sizeof(*images));
	if (!images) {
		n->images.count--;
		return prb_error_nomem();
	}
	PRB_TRY(note_code(images, &n->target->maps));
	PRB_TRY(prb_modules_create(n->target, &images->modules));
	PRB_TRY(prb_unwinder_create(images->modules, &images->unwinder));
	prb_unwinder_prefer_files(images->unwinder);
	prb_unwinder_allow_guesses(images->unwinder);
	images->interleaver.modules = images->modules;
	images->made[0] = &n->perf_map;
	images->made[1] = &n->dump.names;
	images->made[2] = &n->jit.names;
	images->number = (int32_t)(n->number << 16) + (int32_t)n->images.count - 1;
	return NULL;
}

static struct prb_error *begin(struct prb_natives *n)
{
	PRB_TRY(prb_stack_copy_init(&n->copy, n->target));
	return add_images(n);
}

struct prb_error *prb_natives_create(struct prb_target *target, struct prb_recording *recording,
				     unsigned number, struct prb_natives **ret)
{
	struct prb_natives *n = calloc(1, sizeof(*n));
	struct prb_error *err;

	if (!n)
		return prb_error_nomem();
	n->target = target;
	n->recording = recording;
	n->number = number;
	prb_perf_map_init(&n->perf_map);
	prb_jit_entries_init(&n->jit);
	prb_jitdump_init(&n->dump);
	err = begin(n);
	if (err)
		prb_natives_destroy(n);
	else
		*ret = n;
	return err;
}

void prb_natives_root(struct prb_natives *n, uint32_t stack)
{
	n->root = stack;
}

void prb_natives_destroy(struct prb_natives *n)
{
	struct prb_native_images **images;

	if (!n)
		return;
	prb_vec_each (images, &n->images)
		if (*images)
			images_destroy(*images);
	prb_vec_free(&n->images);
	prb_vec_free(&n->met);
	prb_vec_free(&n->regions);
	prb_perf_map_deinit(&n->perf_map);
	prb_jit_entries_deinit(&n->jit);
	prb_jitdump_deinit(&n->dump);
	prb_c_stack_deinit(&n->stack);
	prb_places_deinit(&n->places);
	prb_stack_copy_deinit(&n->copy);
	free(n);
}

static struct prb_error *take_maps(struct prb_natives *n)
{
	struct prb_maps maps = {}, before = n->target->maps;

	PRB_TRY(prb_target_read_maps(n->target, &maps));
	n->target->maps = maps;
	prb_maps_deinit(&before);
	prb_view_new_epoch(n->copy.code);
	if (is_code_of(newest(n), &maps))
		return NULL;
	if (!newest(n)->frames.count)
		images_destroy(n->images.items[--n->images.count]);
	return add_images(n);
}

struct prb_error *prb_natives_refresh(struct prb_natives *n, int64_t now)
{
	int64_t used = prb_clock_thread_ns();
	struct prb_error *err;

	if (now < n->refresh_from || (!n->lost && now < n->refresh_until))
		return NULL;
	n->lost = false;
	err = take_maps(n);
	if (!err && n->made_code)
		err = prb_perf_map_update(&n->perf_map, n->target);
	if (!err && n->made_code)
		err = prb_jitdump_update(&n->dump, n->target);
	if (!err && n->made_code)
		err = prb_jit_entries_update(&n->jit, newest(n)->modules);
	n->refresh_from = now + (prb_clock_thread_ns() - used) * REFRESH_SHARE;
	n->refresh_until = now + REFRESH_NS;
	return err;
}

static size_t length_to_copy(const struct prb_native_thread *thread, uint64_t sp)
{
	if (thread->top > sp && thread->top - sp <= PRB_STACK_MOST)
		return thread->top - sp;
	return thread->room ? thread->room : PRB_STACK_FIRST;
}

struct prb_error *prb_natives_copy(struct prb_natives *n, const struct prb_native_thread *thread,
				   const struct prb_regs *regs)
{
	uint64_t sp = 0;

	n->regs = *regs;
	n->given = false;
	prb_regs_get(regs, prb_regs_sp(regs->machine), &sp);
	return prb_stack_copy_make(&n->copy, sp, length_to_copy(thread, sp));
}

struct prb_error *prb_natives_give(struct prb_natives *n, const struct prb_regs *regs,
				   const void *bytes, size_t length)
{
	uint64_t sp = 0;

	n->regs = *regs;
	n->given = true;
	prb_regs_get(regs, prb_regs_sp(regs->machine), &sp);
	return prb_stack_copy_give(&n->copy, sp, bytes, length);
}

/* Drops the frames of the code that made the copy; at least one is left. */
static void leave_out_givers(struct prb_natives *n)
{
	const struct prb_c_frame *frames = n->stack.frames.items;
	const struct prb_module *giver =
		n->stack.frames.count ? prb_modules_find(newest(n)->modules, frames[0].pc) : NULL;
	size_t theirs = 0;

	while (giver && theirs + 1 < n->stack.frames.count &&
	       prb_modules_find(newest(n)->modules, prb_c_frame_code(&frames[theirs])) == giver)
		theirs++;
	n->stack.frames.count -= theirs;
	memmove(n->stack.frames.items, frames + theirs, n->stack.frames.count * sizeof(*frames));
	if (n->stack.frames.count)
		n->regs.pc = n->stack.frames.items[0].pc;
}

/* More than was copied was asked for: true if that is to be tried. */
static bool wants_more(struct prb_natives *n, struct prb_native_thread *thread)
{
	enum { GROWTH = 8 };
	size_t had = n->copy.end - n->copy.begin;

	thread->top = 0;
	if (thread->patience) {
		thread->patience--;
		return false;
	}
	if (had < PRB_STACK_MOST) {
		thread->room = PRB_MIN(PRB_MAX(had, (size_t)PRB_STACK_FIRST / GROWTH) * GROWTH,
				       (size_t)PRB_STACK_MOST);
		return true;
	}
	thread->room = 0;
	thread->patience = PATIENCE;
	return false;
}

/* Code in no mapping: the process has loaded something, or what was read is no code. */
static void look_for_lost(struct prb_natives *n)
{
	const struct prb_c_frame *frames = n->stack.frames.items;
	size_t count = n->stack.frames.count;

	for (size_t i = 0; i < count; i++) {
		bool ends = i + 1 < count ? frames[i + 1].guess : n->stack.reason != NULL;

		if (ends && !prb_maps_find(&n->target->maps, prb_c_frame_code(&frames[i])))
			n->lost = true;
	}
}

/* The copy is unwound again if that was for want of a library that has just been loaded. */
static struct prb_error *walk(struct prb_natives *n)
{
	int64_t now = prb_clock_ns();

	PRB_TRY(prb_c_stack_walk(newest(n)->unwinder, &n->copy.mem, &n->regs, &n->stack));
	look_for_lost(n);
	if (!n->lost || now < n->refresh_from)
		return NULL;
	PRB_TRY(prb_natives_refresh(n, now));
	return prb_c_stack_walk(newest(n)->unwinder, &n->copy.mem, &n->regs, &n->stack);
}

static bool runs_python(struct prb_natives *n, const struct prb_pythons *all)
{
	const struct prb_c_frame *frame;
	struct prb_python **py;

	prb_vec_each (frame, &n->stack.frames)
		prb_vec_each (py, &all->list)
			if (prb_interleave_is_loop(&newest(n)->interleaver, *py,
						   prb_c_frame_code(frame)))
				return true;
	return false;
}

/* As long as it has not run on it is where it was. */
static bool is_between(const struct prb_natives *n, struct prb_native_thread *thread)
{
	if (thread->doubt != PRB_NATIVE_BARE_LOOP)
		return false;
	thread->doubts += thread->doubt_pc != n->regs.pc;
	thread->doubt_pc = n->regs.pc;
	if (thread->doubts >= DOUBTS)
		thread->doubt = PRB_NATIVE_SWITCHED;
	return true;
}

struct prb_error *prb_natives_unwind(struct prb_natives *n, const struct prb_pythons *all,
				     const struct prb_python *py,
				     const struct prb_py_frames *frames,
				     struct prb_native_thread *thread, enum prb_native_result *ret)
{
	struct prb_native_images *images;

	*ret = PRB_NATIVE_SHORT;
	PRB_TRY(walk(n));
	if (n->given)
		leave_out_givers(n);
	if (n->stack.reason && n->copy.ran_out && !n->given && wants_more(n, thread))
		return NULL;
	images = newest(n);
	if (!n->stack.reason) {
		thread->top = PRB_MAX(thread->top, n->copy.used);
		thread->room = 0;
	}
	PRB_TRY(prb_interleave(&images->interleaver, py, frames, &n->stack, &thread->doubt,
			       &n->places));
	*ret = is_between(n, thread) ? PRB_NATIVE_BETWEEN : PRB_NATIVE_UNWOUND;
	if (!frames->list.count && runs_python(n, all))
		*ret = PRB_NATIVE_STALE;
	return NULL;
}

/*
 * Code that was made at run time has the name that it has now: later there may be other code in its
 * place. *ret_found is false if it has none (yet).
 */
static struct prb_error *made_frame(struct prb_natives *n, uint64_t code, uint32_t *ret,
				    bool *ret_found)
{
	struct prb_tree_function function = {.kind = PRB_FUNCTION_NATIVE};
	uint32_t number;

	if (!n->made_code)
		n->refresh_until = 0;
	n->made_code = true;
	prb_native_made_name(newest(n), code, &function);
	if (!function.name && n->perf_map.fd >= 0) {
		PRB_TRY(prb_perf_map_update(&n->perf_map, n->target));
		prb_native_made_name(newest(n), code, &function);
	}
	if (!function.name && n->dump.names.fd >= 0) {
		PRB_TRY(prb_jitdump_update(&n->dump, n->target));
		prb_native_made_name(newest(n), code, &function);
	}
	*ret_found = function.name;
	if (!function.name)
		return NULL;
	PRB_TRY(prb_tree_function(n->recording->tree, &function, &number));
	return prb_tree_frame(n->recording->tree, number, 0, ret);
}

/* No call has led there, so that the code before the pc has nothing to do with it. */
static struct prb_error *trampoline_frame(struct prb_natives *n, const struct prb_c_frame *frame,
					  uint32_t *ret)
{
	const struct prb_module *module = prb_modules_find(newest(n)->modules, frame->pc);
	const struct prb_tree_function function = {
		.kind = PRB_FUNCTION_NATIVE,
		.name = "<signal handler called>",
		.module = module ? module->path : NULL,
	};
	uint32_t number;

	PRB_TRY(prb_tree_function(n->recording->tree, &function, &number));
	return prb_tree_frame(n->recording->tree, number, 0, ret);
}

/* *ret is the number of the memory that the code was made in, from 1 on; 0 if it is in none. */
static struct prb_error *find_region(struct prb_natives *n, uint64_t code, uint32_t *ret)
{
	const struct prb_map *map = prb_maps_find(&n->target->maps, code);
	uint64_t *slot;

	*ret = 0;
	if (!map || !map->exec)
		return NULL;
	while (*ret < n->regions.count)
		if (n->regions.items[(*ret)++] == map->start)
			return NULL;
	slot = prb_vec_push(&n->regions);
	if (!slot)
		return prb_error_nomem();
	*slot = map->start;
	*ret = (uint32_t)n->regions.count;
	return NULL;
}

static struct prb_error *find_place(struct prb_natives *n, uint64_t code,
				    struct prb_native_place *ret)
{
	*ret = (struct prb_native_place){.images = newest(n), .code = code};
	return prb_modules_find(newest(n)->modules, code) ? NULL
							  : find_region(n, code, &ret->region);
}

static struct prb_error *symbol_frame(struct prb_natives *n, uint64_t code, uint32_t *ret)
{
	struct prb_module *module = prb_modules_find(newest(n)->modules, code);
	struct prb_tree_function function = {.kind = PRB_FUNCTION_NATIVE,
					     .module = module ? module->path : NULL};
	prb_auto_str struct prb_str text = {};
	prb_auto_free char *readable = NULL, *brief = NULL;
	struct prb_error *err = module ? prb_module_symbol_at(module, code, &text, NULL) : NULL;
	struct prb_native_place place;
	uint32_t number;

	if (err && err->code == PRB_ERROR_NOMEM)
		return err;
	prb_error_destroy(err);
	if (text.length) {
		readable = prb_demangle(prb_str_text(&text));
		PRB_TRY(prb_short_name(readable ? readable : prb_str_text(&text), &brief));
	} else {
		PRB_TRY(find_place(n, code, &place));
		PRB_TRY(prb_native_unnamed(&place, &text));
	}
	if (text.failed)
		return prb_error_nomem();
	function.name = brief ? brief : readable ? readable : prb_str_text(&text);
	PRB_TRY(prb_tree_function(n->recording->tree, &function, &number));
	return prb_tree_frame(n->recording->tree, number, 0, ret);
}

/* Code of a file is identified by its place in it until it has a name. */
static struct prb_error *unnamed_frame(struct prb_natives *n, uint64_t code, uint32_t *ret)
{
	struct prb_native_images *images = newest(n);
	const struct prb_module *module = prb_modules_find(images->modules, code);
	prb_auto_str struct prb_str text = {};
	struct prb_tree_function function = {.kind = PRB_FUNCTION_NATIVE,
					     .module = module ? module->path : NULL};
	struct prb_native_place *place = prb_vec_push(&n->met);
	struct prb_tree_image image;
	uint32_t number;

	if (!place)
		return prb_error_nomem();
	PRB_TRY(find_place(n, code, place));
	prb_native_origin(place, &image, &function);
	prb_native_place_text(images, code, &text);
	if (text.failed)
		return prb_error_nomem();
	function.name = prb_str_text(&text);
	PRB_TRY(prb_tree_function(n->recording->tree, &function, &number));
	/* The same place may be other code in other images: its line tells them apart. */
	PRB_TRY(prb_tree_frame(n->recording->tree, number, images->number, ret));
	place->frame = *ret;
	return NULL;
}

static struct prb_error *frame_of(struct prb_natives *n, const struct prb_c_frame *frame,
				  uint32_t *ret)
{
	struct prb_native_images *images = newest(n);
	uint64_t code = prb_c_frame_code(frame);
	bool found = false;
	size_t number;

	if (frame->signal)
		return trampoline_frame(n, frame, ret);
	if (prb_number_map_get(&images->frames, code, &number)) {
		*ret = (uint32_t)number;
		return NULL;
	}
	if (!prb_modules_find(images->modules, code))
		PRB_TRY(made_frame(n, code, ret, &found));
	if (found)
		return NULL;
	PRB_TRY((n->names_at_once ? symbol_frame : unnamed_frame)(n, code, ret));
	return prb_number_map_put(&images->frames, code, *ret) ? NULL : prb_error_nomem();
}

static struct prb_error *note(struct prb_natives *n, const char *text, uint32_t stack,
			      uint32_t *ret)
{
	struct prb_tree *tree = n->recording->tree;
	uint32_t alone;

	PRB_TRY(prb_tree_note(tree, text, &alone));
	return prb_tree_call(tree, stack, tree->stacks.items[alone].frame, ret);
}

/*
 * Notes where and why the native frames end, or that the Python frames match none. The frame that
 * follows says where exactly; without an address the same reason is the same row.
 */
static struct prb_error *note_end(struct prb_natives *n, uint32_t stack, uint32_t *ret)
{
	prb_auto_str struct prb_str text = {};
	const struct prb_c_frame *last;
	const struct prb_module *module;

	if (n->stack.reason) {
		last = &n->stack.frames.items[n->stack.frames.count - 1];
		module = prb_modules_find(newest(n)->modules, prb_c_frame_code(last));
		prb_str_printf(&text, "[unwinding ended: %s in %s]", n->stack.trouble,
			       module && *module->path ? prb_tree_short_path(module->path)
						       : "code made at run time");
	} else {
		prb_str_puts(&text, "[Python frames that match no native frame]");
	}
	return text.failed ? prb_error_nomem() : note(n, prb_str_text(&text), stack, ret);
}

static struct prb_error *place_native(struct prb_natives *n, size_t index, uint32_t *stack,
				      uint32_t *ret_frame)
{
	const struct prb_c_frame *frame = &n->stack.frames.items[index];

	if (frame->guess)
		PRB_TRY(note(n, "[callers by frame pointer, a guess]", *stack, stack));
	return frame_of(n, frame, ret_frame);
}

struct prb_error *prb_natives_keep(struct prb_natives *n, const uint32_t *python,
				   uint32_t *ret_stack)
{
	const struct prb_places *places = &n->places;
	bool ends = n->stack.reason || places->placed < places->list.count;
	size_t unused = 0;
	uint32_t stack = n->root, frame;

	for (size_t i = 0; i < places->list.count; i++)
		unused += places->list.items[i].python;
	for (size_t i = places->list.count; i-- > 0;) {
		const struct prb_place *place = &places->list.items[i];

		if (i + 1 == places->placed && ends)
			PRB_TRY(note_end(n, stack, &stack));
		if (place->python)
			frame = python[--unused];
		else
			PRB_TRY(place_native(n, place->index, &stack, &frame));
		PRB_TRY(prb_tree_call(n->recording->tree, stack, frame, &stack));
	}
	*ret_stack = stack;
	return NULL;
}

void prb_natives_name_at_once(struct prb_natives *n)
{
	n->names_at_once = true;
}

struct prb_error *prb_natives_hand_over(struct prb_natives *n, struct prb_native_places *places)
{
	const struct prb_native_place *place;
	bool own;

	if (!n)
		return NULL;
	prb_vec_each (place, &n->met) {
		PRB_TRY(prb_native_places_add(places, place, &own));
		n->needed |= own;
	}
	prb_vec_free(&n->met);
	return NULL;
}

bool prb_natives_is_needed(const struct prb_natives *n)
{
	return n && n->needed;
}

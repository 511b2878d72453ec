/* SPDX-License-Identifier: GPL-3.0-or-later */
/* C frames of sampled allocations: unwound from the copied stacks, merged, and named at the end. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/commands/memory/sites/sites.h"
#include "profile/native/natives.h"

struct prb_site_natives {
	struct prb_target *target;
	const struct prb_pythons *pythons;
	const struct prb_python *py;
	struct prb_natives *natives;
	struct prb_py_frames frames;
	PRB_VEC(struct prb_native_thread) threads;
	struct prb_number_map thread_numbers; /* by tid */
};

struct prb_error *prb_site_natives_create(const struct prb_memory *m, const struct prb_python *py,
					  struct prb_recording *recording,
					  struct prb_site_natives **ret)
{
	struct prb_site_natives *n = calloc(1, sizeof(*n));
	struct prb_error *err;

	if (!n)
		return prb_error_nomem();
	n->target = m->target;
	n->pythons = &m->pythons;
	n->py = py;
	err = prb_natives_create(m->target, recording, 0, &n->natives);
	if (err)
		prb_site_natives_destroy(n);
	else
		*ret = n;
	return err;
}

void prb_site_natives_destroy(struct prb_site_natives *n)
{
	if (!n)
		return;
	prb_natives_destroy(n->natives);
	prb_py_frames_deinit(&n->frames);
	prb_vec_free(&n->threads);
	prb_number_map_deinit(&n->thread_numbers);
	free(n);
}

/* Where loops are counted (before 3.12) it matters what earlier samples of a thread have said. */
static struct prb_error *thread_of(struct prb_site_natives *n, uint32_t tid,
				   struct prb_native_thread **ret)
{
	size_t number = n->threads.count;

	if (!prb_number_map_get(&n->thread_numbers, tid, &number)) {
		struct prb_native_thread *thread = prb_vec_push(&n->threads);

		if (!thread || !prb_number_map_put(&n->thread_numbers, tid, number))
			return prb_error_nomem();
		*thread = (struct prb_native_thread){};
	}
	*ret = &n->threads.items[number];
	return NULL;
}

/* Notes the same frames that a walk from outside finds. */
static struct prb_error *note_frames(struct prb_site_natives *n,
				     const struct prb_sites_sample *sample)
{
	const struct prb_behaviour *b = n->py->layout.behaviour;
	bool shims = b->owner_interpreter >= 0, objects = b->chain == PRB_CHAIN_PYFRAME;

	n->frames.list.count = 0;
	for (unsigned i = 0; i < sample->count; i++) {
		const uint64_t *words = &sample->frames[2 * i];
		struct prb_py_frame *frame = prb_vec_push(&n->frames.list);

		if (!frame)
			return prb_error_nomem();
		*frame = (struct prb_py_frame){.code = words[0] & ~UINT64_C(1),
					       .position = words[1],
					       .owner = -1,
					       .entry = objects || words[0] & 1,
					       .shim = prb_site_is_shim(words)};
		frame->hidden = frame->shim;
		if (frame->shim)
			frame->address = words[1];
		if (shims && frame->shim && i)
			frame[-1].entry = !frame[-1].shim;
	}
	return NULL;
}

struct prb_error *prb_site_natives_stack(struct prb_site_natives *n,
					 const struct prb_sites_sample *sample,
					 const uint32_t *python, uint32_t root, uint32_t *ret)
{
	struct prb_native_thread *thread;
	enum prb_native_result result;
	struct prb_regs regs;

	prb_sites_registers(sample, n->target->machine, &regs);
	PRB_TRY(prb_natives_refresh(n->natives, prb_clock_ns()));
	PRB_TRY(thread_of(n, sample->tid, &thread));
	PRB_TRY(note_frames(n, sample));
	PRB_TRY(prb_natives_give(n->natives, &regs, sample->stack, sample->stack_length));
	PRB_TRY(prb_natives_unwind(n->natives, n->pythons, n->py, &n->frames, thread, &result));
	prb_natives_root(n->natives, root);
	return prb_natives_keep(n->natives, python, ret);
}

/* How the interpreter allocates says nothing that the line of Python does not say; nor does how the
 * C library starts a program or thread. */
static bool is_left_out(const struct prb_site_natives *n, const struct prb_tree_function *f,
			bool outermost)
{
	const char *name;

	if (f->kind != PRB_FUNCTION_NATIVE || !f->module)
		return false;
	if (n->py->module->path && !strcmp(f->module, n->py->module->path))
		return true;
	name = prb_tree_short_path(f->module);
	return outermost && (!strncmp(name, "libc.", 5) || !strncmp(name, "libpthread", 10) ||
			     !strcmp(f->name, "_start") || !strcmp(f->name, "main"));
}

/* The number of each stack without these frames. */
static struct prb_error *leave_out(const struct prb_site_natives *n, struct prb_tree *tree,
				   uint32_t none, uint32_t **ret)
{
	size_t count = tree->stacks.count;
	prb_auto_free uint32_t *fewer = calloc(count, sizeof(*fewer));

	if (!fewer)
		return prb_error_nomem();
	for (uint32_t i = 1; i < count; i++) {
		struct prb_tree_stack stack = tree->stacks.items[i];

		fewer[i] = fewer[stack.parent];
		if (!is_left_out(n, prb_tree_function_of(tree, i), !fewer[i]))
			PRB_TRY(prb_tree_call(tree, fewer[i], stack.frame, &fewer[i]));
	}
	for (uint32_t i = 1; i < count; i++)
		fewer[i] = fewer[i] ? fewer[i] : none;
	*ret = prb_steal(&fewer);
	return NULL;
}

struct prb_error *prb_site_natives_name(struct prb_site_natives *n, struct prb_memory_sites *sites,
					bool (*give_up)(void *context))
{
	struct prb_recording *recording = sites->recording;
	prb_auto_free uint32_t *renamed = NULL, *fewer = NULL;
	struct prb_native_places places = {};
	struct prb_memory_sample *sample;
	struct prb_error *err = prb_natives_hand_over(n->natives, &places);
	uint32_t none;

	if (!err)
		err = prb_natives_name(recording, &places, give_up, NULL, &renamed);
	prb_native_places_deinit(&places);
	PRB_TRY(err);
	PRB_TRY(prb_tree_note(recording->tree, "<not in Python>", &none));
	PRB_TRY(leave_out(n, recording->tree, none, &fewer));
	prb_vec_each (sample, &sites->samples)
		sample->stack = fewer[renamed[sample->stack]];
	return NULL;
}

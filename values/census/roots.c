/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where the walk begins: the imported modules, and the variables of all frames. */
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "values/census/private.h"

enum { FRAMES_MAX = 100000 };

/* The number that nodes have for their parent if it is this new root. */
static bool add_root(struct prb_census *c, const char *name, const char *place, uint32_t *ret)
{
	struct prb_census_root *root = prb_vec_push(&c->roots);

	if (root)
		*root = (struct prb_census_root){.name = name ? strdup(name) : NULL,
						 .place = place ? strdup(place) : NULL,
						 .modules = !name};
	if (!root || (name && !root->name) || (place && !root->place)) {
		prb_census_try(c, prb_error_nomem());
		return false;
	}
	*ret = PRB_CENSUS_NONE - (uint32_t)c->roots.count;
	return true;
}

static void add_variable(struct prb_census *c, const struct prb_py_local *local,
			 const char *function)
{
	uint32_t root;

	/* A module's variables are found in its dict. */
	if (!local->object || local->kind == PRB_LOCAL_NAME ||
	    prb_census_find(c, local->object) != PRB_CENSUS_NONE ||
	    c->roots.count >= PRB_CENSUS_ROOTS)
		return;
	if (add_root(c, local->name, function, &root))
		prb_census_refer(c, root, local->object);
}

/* True if they belong to a method of torch.nn.Module. */
static bool is_of_module(struct prb_census *c, const struct prb_py_locals *locals)
{
	const struct prb_py_local *local;
	uint64_t modules;

	prb_vec_each (local, &locals->list)
		if (local->object && local->name && !strcmp(local->name, "self"))
			return prb_census_try(c, prb_object_attribute(c->py, c->mem, local->object,
								      "_modules", &modules));
	return false;
}

/* False: the frame is inside of a model, and its variables were not added. */
static bool add_variables(struct prb_census *c, const struct prb_py_frame *frame, const char *name,
			  enum prb_census_frames which)
{
	struct prb_py_local *local;
	struct prb_py_locals locals;
	bool inside;

	if (!prb_census_try(c, prb_python_locals(c->py, c->mem, frame, &locals)))
		return true;
	inside = which == PRB_CENSUS_FRAMES_OUTSIDE && is_of_module(c, &locals);
	if (!inside)
		prb_vec_each (local, &locals.list)
			add_variable(c, local, name);
	prb_py_locals_deinit(&locals);
	return !inside;
}

/* False: the frames that it called are not to be added. */
static bool add_frame(struct prb_census *c, const struct prb_py_frame *frame,
		      enum prb_census_frames which)
{
	struct prb_py_code code;
	const char *name;
	uint32_t root;
	bool goes_on;

	if (!frame->code || !prb_census_try(c, prb_python_code(c->py, c->mem, frame->code, &code)))
		return true;
	name = code.qualname ? code.qualname : code.name ? code.name : "?";
	goes_on = add_variables(c, frame, name, which);
	/* Further values of the frame: function, code, and values without a name. */
	if (which == PRB_CENSUS_FRAMES_WHOLE && c->roots.count < PRB_CENSUS_ROOTS &&
	    add_root(c, "<value>", name, &root)) {
		if (c->py->layout.behaviour->chain == PRB_CHAIN_PYFRAME)
			prb_census_refer(c, root, frame->address);
		else
			prb_census_follow_frame(c, root, frame->address);
	}
	prb_py_code_deinit(&code);
	return goes_on;
}

/*
 * A thread that runs changes its frames meanwhile, so that a chain may break off before the
 * outermost ones, whose variables name what the others have. Then it is read again, and not from
 * what was kept.
 */
static void read_frames(struct prb_census *c, const struct prb_py_thread *thread,
			struct prb_py_frames *ret)
{
	enum { TRIES = 100 };
	bool whole = false;

	for (unsigned i = 0; i < TRIES && !whole && !c->fatal; i++) {
		struct prb_py_frames frames = {}, other = *ret;
		struct prb_error *err = prb_python_frames(c->py, c->base, thread->address, &frames);

		whole = !err;
		if (whole || frames.list.count > ret->list.count)
			*ret = frames;
		else
			other = frames;
		prb_py_frames_deinit(&other);
		prb_census_try(c, err);
	}
}

static void add_thread(struct prb_census *c, const struct prb_py_thread *thread,
		       enum prb_census_frames which)
{
	struct prb_py_frames frames = {};
	bool goes_on = true;

	read_frames(c, thread, &frames);
	/* Outermost first: what a caller has as "model" is "self" in what it calls. */
	for (size_t i = PRB_MIN(frames.list.count, (size_t)FRAMES_MAX); i-- > 0 && goes_on;)
		if (!frames.list.items[i].hidden)
			goes_on = add_frame(c, &frames.list.items[i], which);
	prb_py_frames_deinit(&frames);
}

void prb_census_add_modules(struct prb_census *c)
{
	const struct prb_layout *l = &c->py->layout;
	uint64_t modules;
	uint32_t root;

	if (l->interp_modules >= 0 &&
	    prb_census_try(c, prb_mem_read_u64(c->mem, c->interp + (uint64_t)l->interp_modules,
					       &modules)) &&
	    add_root(c, NULL, NULL, &root))
		prb_census_refer(c, root, modules);
}

void prb_census_add_frames(struct prb_census *c, enum prb_census_frames which)
{
	const struct prb_py_thread *thread;
	struct prb_py_threads threads;

	if (!prb_census_try(c, prb_python_threads(c->py, c->mem, &threads)))
		return;
	prb_vec_each (thread, &threads.list)
		if (thread->interp == c->interp && !c->fatal)
			add_thread(c, thread, which);
	prb_py_threads_deinit(&threads);
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dump/native/frame_order.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"

struct merge {
	struct prb_interleaver *interleaver;
	const struct prb_python *py; /* NULL: no Python frames */
	const struct prb_py_frames *raw;
	const struct prb_c_stack *stack;
	struct prb_places *places;
	size_t next; /* first raw Python frame without a place */
	size_t bare; /* innermost eval loops without a Python frame (not yet pushed, or popped) */
};

void prb_interleaver_deinit(struct prb_interleaver *interleaver)
{
	prb_number_map_deinit(&interleaver->loops);
}

void prb_places_deinit(struct prb_places *places)
{
	prb_vec_free(&places->list);
}

/*
 * The eval loop is _PyEval_EvalFrameDefault from 3.6 on, and PyEval_EvalFrameEx before (later a
 * wrapper without a frame). Compiled as tail-calling functions, each is a _TAIL_CALL_. Parts of
 * them are called ".cold", ".lto_priv.0" and the like.
 */
static bool is_eval_symbol(const char *symbol)
{
	static const char *const names[] = {"_PyEval_EvalFrameDefault", "PyEval_EvalFrameEx"};

	for (size_t i = 0; i < PRB_ARRAY_SIZE(names); i++) {
		size_t length = strlen(names[i]);

		if (!strncmp(symbol, names[i], length) &&
		    (!symbol[length] || symbol[length] == '.'))
			return true;
	}
	return !strncmp(symbol, "_TAIL_CALL_", strlen("_TAIL_CALL_"));
}

/* Needs only the symbol table, no lines: the frame is not shown. */
static bool look_up(struct prb_modules *modules, struct prb_module *module, uint64_t pc)
{
	prb_auto_str struct prb_str symbol = {}, known = {};
	uint64_t start;
	char key[32];

	/* A snapshot has no symbol tables. */
	snprintf(key, sizeof(key), "eval:%llx", (unsigned long long)pc);
	if (prb_target_recall(modules->target, key, &known))
		return !strcmp(prb_str_text(&known), "yes");

	prb_auto_error struct prb_error *err = prb_module_symbol_at(module, pc, &symbol, &start);
	bool eval = !err && is_eval_symbol(prb_str_text(&symbol));
	const char *answer = eval ? "yes" : "no";
	prb_target_remember(modules->target, key, answer, strlen(answer));
	return eval;
}

bool prb_interleave_is_loop(struct prb_interleaver *interleaver, const struct prb_python *py,
			    uint64_t pc)
{
	struct prb_module *module = prb_modules_find(interleaver->modules, pc);
	size_t known;

	/* The interpreter may have been found among modules that were listed earlier. */
	if (!module || module->start != py->module->start || module->bias != py->module->bias)
		return false;
	if (!prb_number_map_get(&interleaver->loops, pc, &known)) {
		known = look_up(interleaver->modules, module, pc);
		/* Out of memory it is looked up again. */
		(void)!prb_number_map_put(&interleaver->loops, pc, known);
	}
	return known;
}

static bool is_loop(const struct merge *m, const struct prb_c_frame *frame)
{
	return m->py && prb_interleave_is_loop(m->interleaver, m->py, prb_c_frame_code(frame));
}

static struct prb_error *place(struct merge *m, bool python, size_t index)
{
	struct prb_place *slot = prb_vec_push(&m->places->list);

	if (!slot)
		return prb_error_nomem();
	*slot = (struct prb_place){python, index};
	return NULL;
}

static struct prb_error *place_python(struct merge *m)
{
	size_t index = m->next++;

	return m->raw->list.items[index].hidden ? NULL : place(m, true, index);
}

/* Places the Python frames of one eval loop: up to its entry frame, and the shim after it. */
static struct prb_error *place_group(struct merge *m)
{
	bool entry = false;

	while (m->next < m->raw->list.count && !entry) {
		entry = m->raw->list.items[m->next].entry;
		PRB_TRY(place_python(m));
	}
	while (m->next < m->raw->list.count && m->raw->list.items[m->next].shim)
		m->next++;
	return NULL;
}

/* Address of the shim that ends the next group; 0 if the version has none. */
static uint64_t next_shim(const struct merge *m)
{
	for (size_t i = m->next; i < m->raw->list.count; i++)
		if (m->raw->list.items[i].shim)
			return m->raw->list.items[i].address;
	return 0;
}

/* True if Python frames replace this C frame. */
static bool has_python(struct merge *m, const struct prb_c_frame *frame)
{
	const struct prb_c_frame *all = m->stack->frames.items;
	uint64_t shim = next_shim(m);

	if (m->next >= m->raw->list.count)
		return false;
	if (frame->high && shim >= frame->low && shim < frame->high)
		return true;
	/* A shim outside of the C stack belongs to the thread state itself. */
	bool shim_on_stack = m->stack->frames.count && shim >= all[0].low &&
			     shim < all[m->stack->frames.count - 1].high;
	if (shim_on_stack || !is_loop(m, frame))
		return false;
	if (!m->bare)
		return true;
	m->bare--;
	return false;
}

/*
 * Without shims (up to 3.11), counts loops and groups of frames. A thread that is entering or
 * leaving a loop has one more loop, the innermost, which must not take the frames of the next. Such
 * a thread executes that loop or a helper that it called. With switched Python stacks (greenlets)
 * the outer loops have no frames at any moment: @p switched.
 */
static void count_bare_loops(struct merge *m, bool switched)
{
	enum { NEAR = 2 };
	size_t loops = 0, groups = 0, innermost = SIZE_MAX;
	const struct prb_py_frame *raw;

	if (!m->py || m->stack->reason || m->py->layout.behaviour->owner_interpreter >= 0)
		return;
	for (size_t i = 0; i < m->stack->frames.count; i++) {
		if (!is_loop(m, &m->stack->frames.items[i]))
			continue;
		innermost = PRB_MIN(innermost, i);
		loops++;
	}
	prb_vec_each (raw, &m->raw->list)
		groups += raw->entry;
	m->bare = !switched && loops > groups && innermost < NEAR;
}

struct prb_error *prb_interleave(struct prb_interleaver *interleaver, const struct prb_python *py,
				 const struct prb_py_frames *frames,
				 const struct prb_c_stack *stack, enum prb_native_doubt *doubt,
				 struct prb_places *ret)
{
	struct merge m = {interleaver, py, frames, stack, ret};

	ret->list.count = 0;
	count_bare_loops(&m, *doubt == PRB_NATIVE_SWITCHED);
	if (*doubt != PRB_NATIVE_SWITCHED)
		*doubt = m.bare ? PRB_NATIVE_BARE_LOOP : PRB_NATIVE_SURE;
	for (size_t i = 0; i < stack->frames.count; i++) {
		const struct prb_c_frame *frame = &stack->frames.items[i];

		if (py && frame->trampoline) /* shown as its Python call, like the loop */
			continue;
		PRB_TRY(has_python(&m, frame) ? place_group(&m) : place(&m, false, i));
	}
	ret->placed = ret->list.count;
	while (m.next < frames->list.count)
		PRB_TRY(place_python(&m));
	return NULL;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Native frames among Python frames. A C frame of the eval loop stands for the Python frames it
 * runs: one up to 3.10, from 3.11 on all up to the next way back into C. From 3.12 on such a group
 * ends in a shim frame that lies on the C stack within the very frame of the eval loop, which
 * tells them apart by address; before that the loop is known by its symbol.
 */
#include "dump/native.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/pool.h"
#include "dwarf/lines/lines.h"
#include "dwarf/lines/short_name.h"
#include "dwarf/unwind/unwind.h"
#include "dump/decode.h"

enum { MAX_NATIVE_FRAMES = 200000 };

struct prb_native {
	struct prb_modules *modules;
	struct prb_pool *pool;
	struct prb_unwinder *unwinder;
	struct prb_resolver *resolver;
};

/* A frame of the C stack. */
struct c_frame {
	uint64_t pc;
	uint64_t low, high; /* its part of the stack: stack pointer and canonical frame address */
	bool exact;	    /* pc is where it executes, not a return address */
	bool signal;	    /* the kernel's way back from a signal handler */
};

struct merge {
	struct prb_native *native;
	struct prb_python *py; /* NULL: no Python frames */
	struct prb_mem *mem;
	const struct prb_py_frames *raw;
	struct prb_dump_thread *thread;
	PRB_VEC(struct c_frame) stack;
	size_t next;	 /* first raw Python frame that has no place yet */
	size_t next_out; /* the same among the decoded ones, which have no shims */
	size_t bare;	 /* innermost eval loops that have no Python frame (yet, or any more) */
	PRB_VEC(struct prb_dump_frame) merged;
	const char *reason; /* why the C stack ends early */
};

struct prb_error *prb_native_create(struct prb_modules *modules, struct prb_pool *pool,
				    struct prb_native **ret)
{
	struct prb_native *native = calloc(1, sizeof(*native));

	if (!native)
		return prb_error_nomem();
	native->modules = modules;
	native->pool = pool;

	struct prb_error *err = prb_unwinder_create(modules, &native->unwinder);
	if (!err)
		err = prb_resolver_create(modules, &native->resolver);
	if (err)
		prb_native_destroy(native);
	else
		*ret = native;
	return err;
}

void prb_native_destroy(struct prb_native *native)
{
	if (!native)
		return;
	if (native->resolver)
		prb_resolver_destroy(native->resolver);
	if (native->unwinder)
		prb_unwinder_destroy(native->unwinder);
	free(native);
}

static struct prb_error *walk_stack(struct merge *m, const struct prb_regs *start)
{
	struct prb_regs regs = *start;
	bool exact = true;

	while (m->stack.count < MAX_NATIVE_FRAMES) {
		struct c_frame *frame = prb_vec_push(&m->stack);
		struct prb_unwind_step step = {};

		if (!frame)
			return prb_error_nomem();
		*frame = (struct c_frame){.pc = regs.pc, .exact = exact};
		prb_regs_get(&regs, prb_regs_sp(regs.machine), &frame->low);
		PRB_TRY(prb_unwind_step(m->native->unwinder, m->mem, exact, &regs, &step));
		if (step.reason) {
			m->reason = step.reason;
			return NULL;
		}
		frame->high = step.cfa;
		frame->signal = step.signal_frame;
		if (step.end)
			return NULL;
		exact = step.signal_frame;
	}
	m->reason = "the C stack has too many frames";
	return NULL;
}

/* The loop itself is the first in 3.6+, the second before (later a wrapper without a frame), and
 * where it is compiled as functions that jump to each other, one of the third kind. Parts of them
 * are called ".cold", ".lto_priv.0" and the like. */
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

/* By the symbol table alone: lines are not needed for a frame that is not shown. */
static bool is_eval_code(const struct merge *m, uint64_t pc)
{
	struct prb_modules *modules = m->native->modules;
	struct prb_module *module = prb_modules_find(modules, pc);
	prb_auto_str struct prb_str symbol = {}, known = {};
	uint64_t start;
	char key[32];

	if (!m->py || module != m->py->module)
		return false;
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

static struct prb_error *push_merged(struct merge *m, struct prb_dump_frame **ret)
{
	*ret = prb_vec_push(&m->merged);
	return *ret ? NULL : prb_error_nomem();
}

/* Moves one decoded Python frame to its place. */
static struct prb_error *place_python(struct merge *m)
{
	struct prb_dump_frame *slot;

	if (!m->raw->list.items[m->next++].hidden) {
		PRB_TRY(push_merged(m, &slot));
		*slot = m->thread->frames.items[m->next_out];
		m->thread->frames.items[m->next_out++] = (struct prb_dump_frame){};
	}
	return NULL;
}

/* The Python frames that one eval loop runs: up to its entry frame, and the shim behind that. */
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

/* Whether Python frames stand in the place of this one. */
static bool is_eval_frame(struct merge *m, const struct c_frame *frame)
{
	uint64_t shim = next_shim(m);

	if (m->next >= m->raw->list.count)
		return false;
	if (frame->high && shim >= frame->low && shim < frame->high)
		return true;
	/* A shim outside of the C stack belongs to the thread state itself. */
	bool shim_on_stack = m->stack.count && shim >= m->stack.items[0].low &&
			     shim < m->stack.items[m->stack.count - 1].high;
	if (shim_on_stack || !is_eval_code(m, frame->exact ? frame->pc : frame->pc - 1))
		return false;
	if (!m->bare)
		return true;
	m->bare--;
	return false;
}

static struct prb_error *take_name(struct prb_pool *pool, const char *name,
				   struct prb_dump_frame *slot)
{
	prb_auto_free char *brief = NULL;

	if (name)
		PRB_TRY(prb_short_name(name, &brief));
	if (brief)
		PRB_TRY(prb_pool_share(pool, name, &slot->full_func));
	return prb_pool_share(pool, brief ? brief : name, &slot->func);
}

static struct prb_error *take_line(struct merge *m, const struct c_frame *frame,
				   const struct prb_module *module, const struct prb_line *line)
{
	struct prb_pool *pool = m->native->pool;
	struct prb_dump_frame *slot;

	PRB_TRY(push_merged(m, &slot));
	slot->kind = line->inlined ? PRB_FRAME_INLINE : PRB_FRAME_NATIVE;
	PRB_TRY(take_name(pool, line->func, slot));
	PRB_TRY(prb_pool_share(pool, line->file, &slot->file));
	slot->line = line->line ? (int32_t)line->line : -1;
	slot->end_line = slot->col = slot->end_col = -1;
	slot->ip = frame->pc;
	if (!module)
		return NULL;
	slot->offset = frame->pc - module->bias;
	return prb_pool_share(pool, module->path, &slot->module);
}

static struct prb_error *place_native(struct merge *m, const struct c_frame *frame,
				      struct prb_lines *lines)
{
	const struct prb_module *module = prb_modules_find(m->native->modules, frame->pc);
	struct prb_line *line, unknown = {};

	if (!lines->list.count)
		return take_line(m, frame, module, &unknown);
	prb_vec_each (line, &lines->list)
		PRB_TRY(take_line(m, frame, module, line));
	return prb_str_copy(lines->trouble, &m->merged.items[m->merged.count - 1].error);
}

/* No call has led there, so that the code before the pc has nothing to do with it. */
static struct prb_error *place_trampoline(struct merge *m, const struct c_frame *frame)
{
	struct prb_line line = {.func = "<signal handler called>"};

	return take_line(m, frame, prb_modules_find(m->native->modules, frame->pc), &line);
}

static struct prb_error *place_frame(struct merge *m, const struct c_frame *frame)
{
	struct prb_lines lines;

	if (is_eval_frame(m, frame))
		return place_group(m);
	if (frame->signal)
		return place_trampoline(m, frame);
	PRB_TRY(prb_resolve(m->native->resolver, frame->pc, frame->exact, &lines));

	struct prb_error *err = place_native(m, frame, &lines);
	prb_lines_deinit(&lines);
	return err;
}

/* Python frames that found no place stand behind the rest, and the thread says so. */
static struct prb_error *place_rest(struct merge *m)
{
	size_t left = 0;

	for (size_t i = m->next; i < m->raw->list.count; i++)
		left += !m->raw->list.items[i].hidden;
	while (m->next < m->raw->list.count)
		PRB_TRY(place_python(m));
	if (!left && !m->reason)
		return NULL;
	free(m->thread->error);
	m->thread->error =
		left && m->reason
			? prb_format("native frames end early: %s; the last %zu Python frames "
				     "stand without them",
				     m->reason, left)
		: left ? prb_format("the last %zu Python frames match no native frame", left)
		       : prb_format("native frames end early: %s", m->reason);
	return m->thread->error ? NULL : prb_error_nomem();
}

/*
 * Where no shims tell (up to 3.11), loops and groups are counted. A thread that is just entering or
 * leaving a loop has one loop more, the innermost, which must not take the frames of the next; it
 * executes that very loop, or a function that the loop calls for it. Where Python stacks are
 * switched (greenlets), the outer loops have no frames, as long as it stays so: @switched.
 */
static void count_bare_loops(struct merge *m, bool switched)
{
	enum { NEAR = 2 };
	size_t loops = 0, groups = 0, innermost = SIZE_MAX;
	const struct prb_py_frame *raw;

	if (!m->py || m->reason || m->py->layout.behaviour->owner_interpreter >= 0)
		return;
	for (size_t i = 0; i < m->stack.count; i++) {
		const struct c_frame *frame = &m->stack.items[i];

		if (!is_eval_code(m, frame->exact ? frame->pc : frame->pc - 1))
			continue;
		innermost = PRB_MIN(innermost, i);
		loops++;
	}
	prb_vec_each (raw, &m->raw->list)
		groups += raw->entry;
	m->bare = !switched && loops > groups && innermost < NEAR;
}

static struct prb_error *merge_all(struct merge *m, enum prb_native_doubt *doubt)
{
	struct c_frame *frame;

	count_bare_loops(m, *doubt == PRB_NATIVE_SWITCHED);
	if (*doubt != PRB_NATIVE_SWITCHED)
		*doubt = m->bare ? PRB_NATIVE_BARE_LOOP : PRB_NATIVE_SURE;
	prb_vec_each (frame, &m->stack)
		PRB_TRY(place_frame(m, frame));
	return place_rest(m);
}

struct prb_error *prb_native_merge(struct prb_native *native, struct prb_python *py,
				   struct prb_mem *mem, const struct prb_regs *regs,
				   const struct prb_py_frames *frames, enum prb_native_doubt *doubt,
				   struct prb_dump_thread *thread)
{
	struct merge m = {.native = native, .py = py, .mem = mem, .raw = frames, .thread = thread};
	struct prb_error *err = walk_stack(&m, regs);

	if (!err)
		err = merge_all(&m, doubt);
	prb_vec_free(&m.stack);
	if (err) {
		struct prb_dump_frame *frame;

		prb_vec_each (frame, &m.merged)
			prb_dump_frame_deinit(frame);
		prb_vec_free(&m.merged);
		return err;
	}
	free(thread->frames.items);
	memcpy(&thread->frames, &m.merged, sizeof(thread->frames));
	return NULL;
}

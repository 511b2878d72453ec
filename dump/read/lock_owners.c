/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * That a frame is inside of `with lock:` says that it has acquired the lock and not come to the end
 * of the statement. It holds the lock unless it was released in between: by Condition.wait(), which
 * shows on its stack, or by code that calls release(). So no code on its stack from that frame
 * inwards may have that name, nor may an object that was entered since then. Where an object is
 * being left, or the thread itself waits for the lock, it may be on its way to take it again: then
 * acquire() counts, too.
 */
#include "dump/read/lock_owners.h"

#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "python/repr/core/repr.h"
#include "python/runtime/entered.h"
#include "python/runtime/locks.h"
#include "python/runtime/releases.h"
#include "dump/read/thread_names.h"

enum {
	MOST_FRAMES = 200000, /* of all threads together */
	MOST_INNER = 1000,    /* frames between a lock and the innermost one */
	MOST_NAMED = 4,	      /* threads in a text */
};

/* One frame inside of one lock. */
struct inside {
	uint64_t lock;
	struct prb_reader_thread *thread;
	bool other;	/* a thread that the dump lacks */
	size_t frame;	/* in the thread's frames */
	unsigned level; /* objects that the frame has entered since */
};

struct prb_lock_owners {
	struct prb_reader *reader;
	struct prb_view *view;
	struct prb_mem *mem; /* of the view */
	PRB_VEC(struct inside) list;
	size_t frames;
};

static struct prb_error *tolerate(struct prb_error *err, bool *failed)
{
	if (!err || err->code == PRB_ERROR_NOMEM)
		return err;
	*failed = true;
	prb_error_destroy(err);
	return NULL;
}

/* True if the thread's frames are those of one instant. */
static bool is_exact(struct prb_lock_owners *o, const struct inside *inside)
{
	const struct prb_reader_thread *thread = inside->thread;

	if (!thread->task || thread->frames_error)
		return false;
	if (!inside->other)
		return prb_reader_out(o->reader, thread)->read != PRB_READ_UNSTABLE;
	return !o->reader->target->moves || prb_task_slept(&o->reader->tasks, thread->task, false);
}

/* True if the thread waits for the lock that it is inside of. */
static struct prb_error *waits_for_it(struct prb_lock_owners *o, const struct inside *inside,
				      bool *ret)
{
	const struct prb_reader_thread *thread = inside->thread;
	struct prb_py_lock lock;

	*ret = false;
	if (!thread->futex)
		return NULL;
	PRB_TRY(prb_python_lock(thread->py, o->mem, thread->frames.list.items, thread->futex,
				&lock));
	*ret = lock.address == inside->lock;
	return NULL;
}

static struct prb_error *holds_for_sure(struct prb_lock_owners *o, const struct inside *inside,
					bool *ret)
{
	const struct prb_reader_thread *thread = inside->thread;
	bool released = false, failed = false, retakes = inside->other;

	*ret = false;
	if (inside->frame > MOST_INNER || !is_exact(o, inside))
		return NULL;
	if (!retakes)
		PRB_TRY(tolerate(waits_for_it(o, inside, &retakes), &failed));
	for (size_t i = inside->frame + 1; i-- > 0 && !released && !failed;)
		PRB_TRY(tolerate(prb_python_may_release(
					 thread->py, o->mem,
					 &thread->frames.list.items[inside->frame], inside->level,
					 &thread->frames.list.items[i], retakes, &released),
				 &failed));
	*ret = !released && !failed;
	return NULL;
}

/* Frames inside of locks */

/* The frame is inside of @p lock unless it has released it to wait. */
static struct prb_error *add(struct prb_lock_owners *o, struct prb_reader_thread *thread,
			     bool other, size_t frame, unsigned level, uint64_t lock)
{
	struct inside *slot;

	for (size_t i = 0; i < PRB_MIN(frame, (size_t)MOST_INNER); i++) {
		bool waits, failed = false;

		PRB_TRY(tolerate(prb_python_waits_in_condition(thread->py, o->mem,
							       &thread->frames.list.items[i], lock,
							       &waits),
				 &failed));
		if (!failed && waits)
			return NULL;
	}
	slot = prb_vec_push(&o->list);
	if (!slot)
		return prb_error_nomem();
	*slot = (struct inside){lock, thread, other, frame, level};
	return NULL;
}

/* A condition is entered by its lock. */
static struct prb_error *lock_of(struct prb_lock_owners *o, struct prb_python *py, uint64_t object,
				 uint64_t *ret)
{
	prb_auto_str struct prb_str type = {};

	*ret = object;
	PRB_TRY(prb_object_type_name(py, o->mem, object, &type));
	return strcmp(prb_str_text(&type), "Condition")
		       ? NULL
		       : prb_object_attribute(py, o->mem, object, "_lock", ret);
}

/* What is read now must be the frame that was on the stack: the thread may have run on. */
static struct prb_error *look_at(struct prb_lock_owners *o, struct prb_reader_thread *thread,
				 bool other, size_t number)
{
	const struct prb_py_frame *frame = &thread->frames.list.items[number];
	struct prb_py_entered entered;
	struct prb_py_frame again;

	PRB_TRY(prb_python_entered(thread->py, o->mem, frame, &entered));
	if (!entered.count)
		return NULL;
	PRB_TRY(prb_python_frame_at(thread->py, o->mem, frame->address, &again));
	if (again.code != frame->code || again.position != frame->position)
		return NULL;
	for (unsigned i = 0; i < entered.count; i++) {
		uint64_t lock = 0;
		bool failed = false;

		if (entered.list[i].object)
			PRB_TRY(tolerate(lock_of(o, thread->py, entered.list[i].object, &lock),
					 &failed));
		if (lock && !failed)
			PRB_TRY(add(o, thread, other, number, i, lock));
	}
	return NULL;
}

static struct prb_error *look_at_thread(struct prb_lock_owners *o, struct prb_reader_thread *thread,
					bool other)
{
	for (size_t i = 0; thread->py && i < thread->frames.list.count; i++) {
		bool failed;

		if (thread->frames.list.items[i].shim || ++o->frames > MOST_FRAMES)
			continue;
		PRB_TRY(tolerate(look_at(o, thread, other, i), &failed));
	}
	return NULL;
}

static struct prb_error *look_through(void *context)
{
	struct prb_lock_owners *o = context;
	struct prb_reader_thread *thread;

	o->list.count = o->frames = 0;
	prb_vec_each (thread, &o->reader->threads)
		PRB_TRY(look_at_thread(o, thread, false));
	prb_vec_each (thread, &o->reader->others) {
		if (!thread->task)
			continue;
		PRB_TRY(prb_reader_walk(thread, o->mem));
		PRB_TRY(look_at_thread(o, thread, true));
	}
	return NULL;
}

struct prb_error *prb_lock_owners_create(struct prb_reader *r, struct prb_view *view,
					 struct prb_lock_owners **ret)
{
	struct prb_lock_owners *o = calloc(1, sizeof(*o));

	if (!o)
		return prb_error_nomem();
	o->reader = r;
	o->view = view;
	o->mem = prb_view_mem(view);

	struct prb_error *err = prb_view_gather(view, look_through, o);
	if (!err)
		err = look_through(o);
	if (err)
		prb_lock_owners_destroy(o);
	else
		*ret = o;
	return err;
}

void prb_lock_owners_destroy(struct prb_lock_owners *owners)
{
	if (!owners)
		return;
	prb_vec_free(&owners->list);
	free(owners);
}

/* Words */

static struct prb_error *put_place(struct prb_lock_owners *o, const struct inside *inside,
				   struct prb_str *s)
{
	struct prb_python *py = inside->thread->py;
	const struct prb_py_frame *frame = &inside->thread->frames.list.items[inside->frame];
	struct prb_py_location location;
	struct prb_py_code code;

	PRB_TRY(prb_python_code(py, o->mem, frame->code, &code));

	const char *file = strrchr(code.file, '/');
	struct prb_error *err = prb_python_location(py, o->mem, frame, &location);
	if (!err && !code.qualname)
		err = prb_python_qualname(py, o->mem, frame, &code, &code.qualname);
	if (!err)
		prb_str_printf(s, ", in %s %s:%d", code.qualname ? code.qualname : code.name,
			       file ? file + 1 : code.file, location.line);
	prb_py_code_deinit(&code);
	return err;
}

static struct prb_error *put_thread(struct prb_lock_owners *o, const struct inside *inside,
				    struct prb_str *s)
{
	const struct prb_reader_thread *thread = inside->thread;
	prb_auto_free char *read = NULL;
	const char *name = inside->other ? NULL : prb_reader_out(o->reader, thread)->name;

	if (inside->other) {
		PRB_TRY(prb_read_thread_name(thread->py, o->view, thread->state.interp,
					     thread->self, &read));
		name = read;
	}
	prb_str_printf(s, "%d%s%s", (int)thread->task->tid, name ? " " : "", name ? name : "");
	return NULL;
}

/* The one that holds it, or else all that may. */
static struct prb_error *put_holders(struct prb_lock_owners *o, uint64_t lock,
				     const struct inside *holder, const char *before,
				     struct prb_str *s)
{
	const struct inside *inside;
	bool failed = false;
	unsigned count = 0;

	if (holder) {
		prb_str_puts(s, " held by ");
		PRB_TRY(put_thread(o, holder, s));
		return tolerate(put_place(o, holder, s), &failed);
	}
	prb_vec_each (inside, &o->list) {
		if (inside->lock != lock || !inside->thread->task || ++count > MOST_NAMED)
			continue;
		prb_str_puts(s, count == 1 ? before : "; ");
		PRB_TRY(put_thread(o, inside, s));
		PRB_TRY(tolerate(put_place(o, inside, s), &failed));
	}
	if (count > MOST_NAMED)
		prb_str_printf(s, "; and %u more", count - MOST_NAMED);
	return NULL;
}

struct prb_error *prb_lock_owners_put(struct prb_lock_owners *owners, uint64_t lock,
				      struct prb_str *s)
{
	const struct inside *inside, *only = NULL;
	unsigned count = 0;
	bool sure = false;

	prb_vec_each (inside, &owners->list)
		if (inside->lock == lock && ++count)
			only = inside;
	if (count == 1)
		PRB_TRY(holds_for_sure(owners, only, &sure));
	return put_holders(owners, lock, sure ? only : NULL, ", holder unknown; possible: ", s);
}

/* The semaphore whose acquire() the thread is in: its innermost frames are a condition's. */
static struct prb_error *find_semaphore(struct prb_lock_owners *o,
					const struct prb_reader_thread *thread, uint64_t *ret,
					uint64_t *initial)
{
	enum { INNER = 6 };
	const struct prb_layout *l = &thread->py->layout;
	int32_t first = l->behaviour->chain == PRB_CHAIN_PYFRAME ? l->pyframe_localsplus
								 : l->frame_localsplus;
	uint64_t self, number;
	int64_t integer;

	*ret = *initial = 0;
	for (size_t i = 0; i < PRB_MIN(thread->frames.list.count, (size_t)INNER) && !*ret; i++) {
		const struct prb_py_frame *frame = &thread->frames.list.items[i];
		struct prb_py_code code;
		bool acquires;

		if (frame->shim)
			continue;
		PRB_TRY(prb_python_code(thread->py, o->mem, frame->code, &code));
		acquires = !strcmp(code.name, "acquire");
		prb_py_code_deinit(&code);
		if (!acquires)
			continue;
		PRB_TRY(prb_mem_read_u64(o->mem, frame->address + (uint64_t)first, &self));
		*ret = l->behaviour->tagged_refs ? self & ~3ULL : self;
	}
	if (!*ret)
		return NULL;
	PRB_TRY(prb_object_attribute(thread->py, o->mem, *ret, "_value", &number));
	PRB_TRY(prb_object_int(thread->py, o->mem, number, &integer));
	if (integer) /* released, or it waits to look */
		return NULL;

	struct prb_error *err =
		prb_object_attribute(thread->py, o->mem, *ret, "_initial_value", &number);
	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		return NULL;
	PRB_TRY(err);
	PRB_TRY(prb_object_int(thread->py, o->mem, number, &integer));
	*initial = integer > 0 ? (uint64_t)integer : 0;
	return NULL;
}

struct prb_error *prb_lock_owners_put_semaphore(struct prb_lock_owners *owners,
						const struct prb_reader_thread *thread,
						struct prb_str *s)
{
	const struct inside *inside, *only = NULL;
	uint64_t semaphore, initial, count = 0;
	bool failed = false, sure = false;

	PRB_TRY(tolerate(find_semaphore(owners, thread, &semaphore, &initial), &failed));
	if (failed || !semaphore)
		return NULL;
	prb_vec_each (inside, &owners->list)
		if (inside->lock == semaphore && ++count)
			only = inside;
	/* Of a semaphore for several, any of them may go on. */
	if (count == 1 && initial == 1)
		PRB_TRY(holds_for_sure(owners, only, &sure));
	if (sure)
		prb_str_puts(s, "futex: waiting for a BoundedSemaphore");
	else if (count)
		prb_str_puts(s, "futex: waiting in Semaphore.acquire");
	return put_holders(owners, semaphore, sure ? only : NULL, ", inside: ", s);
}

struct prb_error *prb_lock_owners_put_place(struct prb_lock_owners *owners, uint64_t lock,
					    uint64_t pthread, struct prb_str *s)
{
	const struct inside *inside;
	bool failed = false;

	prb_vec_each (inside, &owners->list)
		if (inside->lock == lock && inside->thread->self == pthread)
			return tolerate(put_place(owners, inside, s), &failed);
	return NULL;
}

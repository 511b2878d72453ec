/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dump/read/lock_owners.h"

#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "python/repr/core/repr.h"
#include "python/runtime/entered.h"
#include "python/runtime/locks.h"
#include "python/runtime/releases.h"
#include "dump/read/lock_proof.h"
#include "dump/read/method_self.h"
#include "dump/read/thread_names.h"

enum {
	MOST_FRAMES = 200000, /* of all threads together */
	MOST_INNER = 1000,    /* innermost frames of a thread, among which it waits */
	MOST_INSIDE = 20000,  /* frames inside of something */
	MOST_NAMED = 4,	      /* threads in a text */
};

/* One frame inside of one lock. */
struct inside {
	uint64_t lock;
	struct prb_reader_thread *thread;
	bool other; /* a thread that the dump lacks */
	struct prb_py_frame frame;
	bool judged, sure; /* that it holds the lock */
};

/* A thread whose frames are looked at. */
struct look {
	struct prb_lock_owners *owners;
	struct prb_reader_thread *thread;
	bool other;
	bool looked; /* `released` is known */
	struct prb_py_released released;
};

struct prb_lock_owners {
	struct prb_reader *reader;
	struct prb_view *view;
	struct prb_mem *mem; /* of the view */
	PRB_VEC(struct inside) list;
	size_t frames;
	bool full; /* not all frames were looked at */
};

/* True if the thread holds the lock for sure; it is looked at once. */
static struct prb_error *holds_for_sure(struct prb_lock_owners *o, struct inside *inside, bool *ret)
{
	if (!inside->judged) {
		struct prb_lock_claim claim = {inside->thread, inside->other, inside->lock,
					       inside->frame.address, inside->frame.code};

		PRB_TRY(prb_lock_prove(o->reader, &claim, &inside->sure));
		inside->judged = true;
	}
	*ret = inside->sure;
	return NULL;
}

/* The only one inside of the lock; NULL if there are others, or not all are known. */
static struct inside *find_only(struct prb_lock_owners *o, uint64_t lock, unsigned *count)
{
	struct inside *inside, *only = NULL;

	*count = 0;
	prb_vec_each (inside, &o->list)
		if (inside->lock == lock && ++*count)
			only = inside;
	return *count == 1 && !o->full ? only : NULL;
}

/* True if the thread has slept since its stack was read. */
static bool still_sleeps(struct prb_lock_owners *o, const struct prb_reader_thread *thread)
{
	return !o->reader->target->moves ||
	       (thread->task && prb_task_slept(&o->reader->tasks, thread->task, false));
}

/* True if it still waits for the lock: then the lock has had the same holder all the time. */
static struct prb_error *still_waits(struct prb_lock_owners *o,
				     const struct prb_reader_thread *waiting, uint64_t lock,
				     bool *ret)
{
	struct prb_py_lock again;
	bool failed = false;

	*ret = !o->reader->target->moves;
	if (*ret)
		return NULL;
	PRB_TRY(prb_error_tolerate(prb_python_lock(waiting->py, o->reader->target->mem,
						   waiting->frames.list.items, waiting->futex,
						   &again),
				   &failed));
	*ret = !failed && again.address == lock && again.held && still_sleeps(o, waiting);
	return NULL;
}

/* Frames inside of locks */

/* The locks that the thread has released to wait for conditions, in its innermost frames. */
static struct prb_error *find_released(struct look *look)
{
	const struct prb_reader_thread *thread = look->thread;
	size_t count = PRB_MIN(thread->frames.list.count, (size_t)MOST_INNER);

	look->looked = true;
	for (size_t i = 0; i < count && look->released.count < PRB_RELEASED_MAX; i++)
		PRB_TRY(prb_python_note_released(thread->py, look->owners->mem,
						 &thread->frames.list.items[i], &look->released));
	return NULL;
}

/* The frame is inside of @p lock unless its thread has released it to wait. */
static struct prb_error *add(struct look *look, const struct prb_py_frame *frame, uint64_t lock)
{
	struct prb_lock_owners *o = look->owners;
	struct inside *slot;

	if (!look->looked)
		PRB_TRY(find_released(look));
	if (prb_python_is_released(&look->released, lock))
		return NULL;
	o->full |= o->list.count == MOST_INSIDE;
	if (o->full)
		return NULL;
	slot = prb_vec_push(&o->list);
	if (!slot)
		return prb_error_nomem();
	*slot = (struct inside){
		.lock = lock, .thread = look->thread, .other = look->other, .frame = *frame};
	return NULL;
}

/* The thread may have run on: then it is in another place of the same frame, or in another one. */
static struct prb_error *look_at(struct look *look, const struct prb_py_frame *frame)
{
	struct prb_lock_owners *o = look->owners;
	struct prb_python *py = look->thread->py;
	struct prb_py_entered entered;
	struct prb_py_frame now;

	PRB_TRY(prb_python_frame_at(py, o->mem, frame->address, &now));
	if (now.code != frame->code)
		return NULL;
	PRB_TRY(prb_python_entered(py, o->mem, &now, &entered));
	for (unsigned i = 0; i < entered.count; i++) {
		uint64_t lock = 0;
		bool failed = false;

		if (entered.list[i].object)
			PRB_TRY(prb_error_tolerate(prb_python_lock_of(py, o->mem,
								      entered.list[i].object,
								      entered.list[i].leave, &lock),
						   &failed));
		if (lock && !failed)
			PRB_TRY(add(look, &now, lock));
	}
	return NULL;
}

static struct prb_error *look_at_thread(struct prb_lock_owners *o, struct prb_reader_thread *thread,
					bool other)
{
	struct look look = {.owners = o, .thread = thread, .other = other};

	for (size_t i = 0; thread->py && i < thread->frames.list.count; i++) {
		if (thread->frames.list.items[i].shim)
			continue;
		o->full |= ++o->frames > MOST_FRAMES;
		if (o->full)
			break;
		PRB_TRY(prb_error_tolerate(look_at(&look, &thread->frames.list.items[i]), NULL));
	}
	return NULL;
}

static struct prb_error *look_through(void *context)
{
	struct prb_lock_owners *o = context;
	struct prb_reader_thread *thread;

	o->list.count = o->frames = 0;
	o->full = false;
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
	const struct prb_py_frame *frame = &inside->frame;
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

/* Appends the holder, or, if none is certain, the threads that may hold the lock. */
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
		return prb_error_tolerate(put_place(o, holder, s), &failed);
	}
	prb_vec_each (inside, &o->list) {
		if (inside->lock != lock || !inside->thread->task || ++count > MOST_NAMED)
			continue;
		prb_str_puts(s, count == 1 ? before : "; ");
		PRB_TRY(put_thread(o, inside, s));
		PRB_TRY(prb_error_tolerate(put_place(o, inside, s), &failed));
	}
	if (count > MOST_NAMED)
		prb_str_printf(s, "; and %u more", count - MOST_NAMED);
	return NULL;
}

struct prb_error *prb_lock_owners_put(struct prb_lock_owners *owners,
				      const struct prb_reader_thread *thread, uint64_t lock,
				      pid_t *owner, struct prb_str *s)
{
	unsigned count;
	struct inside *only = find_only(owners, lock, &count);
	bool sure = false;

	if (only)
		PRB_TRY(holds_for_sure(owners, only, &sure));
	if (sure)
		PRB_TRY(still_waits(owners, thread, lock, &sure));
	*owner = sure ? only->thread->task->tid : 0;
	return put_holders(owners, lock, sure ? only : NULL, ", holder unknown; possible: ", s);
}

static struct prb_error *note_shared(struct prb_lock_owners *o, struct inside *inside)
{
	struct prb_python *py = inside->thread->py;
	struct prb_shared_word word, *slot;
	uint64_t semaphore;
	bool sure;

	PRB_TRY(prb_python_taken_sem_lock(py, o->mem, inside->lock, inside->thread->self,
					  &semaphore));
	if (!semaphore || !prb_shared_word_find(o->reader->waits, semaphore, &word))
		return NULL;
	PRB_TRY(holds_for_sure(o, inside, &sure));
	if (!sure)
		return NULL;
	slot = prb_vec_push(&prb_reader_out(o->reader, inside->thread)->holds);
	if (!slot)
		return prb_error_nomem();
	*slot = word;
	return NULL;
}

struct prb_error *prb_lock_owners_note_shared(struct prb_lock_owners *owners)
{
	struct inside *inside;

	prb_vec_each (inside, &owners->list)
		if (!inside->other && inside->thread->self)
			PRB_TRY(prb_error_tolerate(note_shared(owners, inside), NULL));
	return NULL;
}

/* The semaphore whose acquire() the thread is in: its innermost frames are a condition's. */
static struct prb_error *find_semaphore(const struct prb_reader_thread *thread, struct prb_mem *mem,
					uint64_t *ret, uint64_t *initial)
{
	uint64_t number;
	int64_t integer;

	*initial = 0;
	PRB_TRY(prb_read_method_self(thread, mem, "acquire", NULL, ret));
	if (!*ret)
		return NULL;
	PRB_TRY(prb_object_attribute(thread->py, mem, *ret, "_value", &number));
	PRB_TRY(prb_object_int(thread->py, mem, number, &integer));
	if (integer) /* released, or it waits to look */
		return NULL;

	struct prb_error *err =
		prb_object_attribute(thread->py, mem, *ret, "_initial_value", &number);
	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		return NULL;
	PRB_TRY(err);
	PRB_TRY(prb_object_int(thread->py, mem, number, &integer));
	*initial = integer > 0 ? (uint64_t)integer : 0;
	return NULL;
}

/* As still_waits(), of a semaphore. */
static struct prb_error *still_wants(struct prb_lock_owners *o,
				     const struct prb_reader_thread *waiting, uint64_t semaphore,
				     bool *ret)
{
	uint64_t again, initial;
	bool failed = false;

	*ret = !o->reader->target->moves;
	if (*ret)
		return NULL;
	PRB_TRY(prb_error_tolerate(
		find_semaphore(waiting, o->reader->target->mem, &again, &initial), &failed));
	*ret = !failed && again == semaphore && initial == 1 && still_sleeps(o, waiting);
	return NULL;
}

struct prb_error *prb_lock_owners_put_semaphore(struct prb_lock_owners *owners,
						const struct prb_reader_thread *thread,
						struct prb_str *s)
{
	uint64_t semaphore, initial;
	bool failed = false, sure = false, is_lock = false;
	unsigned count;

	PRB_TRY(prb_error_tolerate(find_semaphore(thread, owners->mem, &semaphore, &initial),
				   &failed));
	if (failed || !semaphore)
		return NULL;
	PRB_TRY(prb_error_tolerate(
		prb_python_uses_as_lock(thread->py, owners->mem, &thread->frames, &is_lock),
		&failed));

	struct inside *only = find_only(owners, semaphore, &count);
	/* Of a semaphore for several, any of them may go on. */
	if (only && initial == 1)
		PRB_TRY(holds_for_sure(owners, only, &sure));
	if (sure)
		PRB_TRY(still_wants(owners, thread, semaphore, &sure));
	if (!count && !initial && !is_lock)
		return NULL;
	prb_str_puts(s, sure ? "futex: waiting for a BoundedSemaphore"
			     : "futex: waiting in Semaphore.acquire");
	if (!count)
		prb_str_puts(s, ", holder unknown");
	return put_holders(owners, semaphore, sure ? only : NULL, ", inside: ", s);
}

bool prb_lock_owners_is_inside(const struct prb_lock_owners *owners, uint64_t lock,
			       uint64_t pthread)
{
	const struct inside *inside;

	prb_vec_each (inside, &owners->list)
		if (inside->lock == lock && inside->thread->self == pthread)
			return true;
	return false;
}

struct prb_error *prb_lock_owners_put_place(struct prb_lock_owners *owners, uint64_t lock,
					    uint64_t pthread, struct prb_str *s)
{
	const struct inside *inside;
	bool failed = false;

	prb_vec_each (inside, &owners->list)
		if (inside->lock == lock && inside->thread->self == pthread)
			return prb_error_tolerate(put_place(owners, inside, s), &failed);
	return NULL;
}

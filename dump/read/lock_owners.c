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
#include "dump/read/thread_names.h"

enum {
	MOST_FRAMES = 200000, /* of all threads together */
	MOST_INNER = 1000,    /* frames between a lock and the innermost one */
	MOST_NAMES = 2000,    /* of a code object */
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

/* Their release() is of locks of their own. */
static const char *const modules_with_own_locks[] = {
	"threading",	   "logging",
	"queue",	   "subprocess",
	"selectors",	   "concurrent.futures",
	"multiprocessing", "importlib._bootstrap",
	"socket",	   "asyncio",
};

static struct prb_error *tolerate(struct prb_error *err, bool *failed)
{
	if (!err || err->code == PRB_ERROR_NOMEM)
		return err;
	*failed = true;
	prb_error_destroy(err);
	return NULL;
}

/* Names in code */

/* True if the code uses a name that ends in @p word: an attribute that it calls, mostly. */
static struct prb_error *names_of_code(struct prb_lock_owners *o, struct prb_python *py,
				       uint64_t code, bool (*wanted)(const char *name), bool *ret)
{
	const struct prb_layout *l = &py->layout;
	uint64_t tuple, count;

	*ret = false;
	PRB_TRY(prb_mem_read_u64(o->mem, code + (uint64_t)l->code_names, &tuple));
	PRB_TRY(prb_mem_read_u64(o->mem, tuple + (uint64_t)l->var_size, &count));
	if (count > MOST_NAMES)
		return prb_error_create(PRB_ERROR_BAD_DATA, "%llu names",
					(unsigned long long)count);
	for (uint64_t i = 0; i < count && !*ret; i++) {
		prb_auto_str struct prb_str name = {};
		uint64_t object;

		PRB_TRY(prb_mem_read_u64(o->mem, tuple + (uint64_t)l->tuple_items + 8 * i,
					 &object));
		PRB_TRY(prb_object_str(py, o->mem, object, 64, &name));
		*ret = wanted(prb_str_text(&name));
	}
	return NULL;
}

static bool is_release(const char *name)
{
	return !strcmp(name, "release") || !strcmp(name, "__exit__");
}

static bool is_release_or_acquire(const char *name)
{
	return strstr(name, "release") || strstr(name, "acquire");
}

static struct prb_error *module_of(struct prb_lock_owners *o, struct prb_python *py,
				   const struct prb_py_frame *frame, char **ret)
{
	uint64_t globals;

	*ret = NULL;
	PRB_TRY(prb_python_globals(py, o->mem, frame, &globals));
	return prb_python_module_name(py, o->mem, globals, ret);
}

static bool has_own_locks(const char *module)
{
	for (size_t i = 0; module && i < PRB_ARRAY_SIZE(modules_with_own_locks); i++) {
		size_t length = strlen(modules_with_own_locks[i]);

		if (!strncmp(module, modules_with_own_locks[i], length) &&
		    (!module[length] || module[length] == '.'))
			return true;
	}
	return false;
}

/* The code that an object runs at its end, or while it is entered; 0: it is in C. */
static struct prb_error *code_of_leaving(struct prb_lock_owners *o, struct prb_python *py,
					 uint64_t object, uint64_t leave, uint64_t codes[2])
{
	const struct prb_layout *l = &py->layout;
	prb_auto_str struct prb_str type = {}, kind = {};
	uint64_t generator;

	codes[0] = codes[1] = 0;
	PRB_TRY(prb_object_type_name(py, o->mem, leave, &kind));
	if (strcmp(prb_str_text(&kind), "function") != 0)
		return prb_error_create(PRB_ERROR_UNSUPPORTED, "no function");
	PRB_TRY(prb_mem_read_u64(o->mem, leave + (uint64_t)l->function_code, &codes[0]));
	PRB_TRY(prb_object_type_name(py, o->mem, object, &type));
	if (!strstr(prb_str_text(&type), "GeneratorContextManager"))
		return NULL;
	PRB_TRY(prb_object_attribute(py, o->mem, object, "gen", &generator));
	if (l->behaviour->chain == PRB_CHAIN_PYFRAME) {
		PRB_TRY(prb_mem_read_u64(o->mem, generator + (uint64_t)l->generator_frame,
					 &generator));
		return prb_mem_read_u64(o->mem, generator + (uint64_t)l->pyframe_code, &codes[1]);
	}
	PRB_TRY(prb_mem_read_u64(o->mem, generator + (uint64_t)(l->generator_frame + l->frame_code),
				 &codes[1]));
	if (l->behaviour->tagged_refs)
		codes[1] &= ~3ULL;
	return NULL;
}

/* True if one of the first @p count objects that the frame has entered may release locks. */
static struct prb_error *may_release_by_leaving(struct prb_lock_owners *o, struct prb_python *py,
						const struct prb_py_frame *frame, unsigned count,
						bool *ret)
{
	struct prb_py_entered entered;

	*ret = false;
	PRB_TRY(prb_python_entered(py, o->mem, frame, &entered));
	for (unsigned i = 0; i < PRB_MIN(count, entered.count) && !*ret; i++) {
		uint64_t codes[2];

		if (!entered.list[i].in_python)
			continue;
		PRB_TRY(code_of_leaving(o, py, entered.list[i].object, entered.list[i].leave,
					codes));
		for (unsigned n = 0; n < 2 && codes[n] && !*ret; n++)
			PRB_TRY(names_of_code(o, py, codes[n], is_release_or_acquire, ret));
	}
	return NULL;
}

/* True if the code of the frame, or an object that it has entered, may release locks. @p retakes:
 * it may be about to take this one again. */
static struct prb_error *may_release(struct prb_lock_owners *o, const struct inside *inside,
				     size_t number, bool retakes, bool *ret)
{
	struct prb_py_code code;

	struct prb_python *py = inside->thread->py;
	const struct prb_py_frame *frame = &inside->thread->frames.list.items[number],
				  *holder = &inside->thread->frames.list.items[inside->frame];

	*ret = false;
	if (frame->shim)
		return NULL;
	if (number != inside->frame) {
		prb_auto_free char *own = NULL, *outer = NULL;

		PRB_TRY(module_of(o, py, frame, &own));
		PRB_TRY(module_of(o, py, holder, &outer));
		if (has_own_locks(own) && !has_own_locks(outer))
			return NULL;
	}
	PRB_TRY(prb_python_code(py, o->mem, frame->code, &code));
	if (number != inside->frame && !strncmp(code.name, "__", 2)) /* such as __exit__ */
		retakes = true;
	prb_py_code_deinit(&code);
	PRB_TRY(names_of_code(o, py, frame->code, retakes ? is_release_or_acquire : is_release,
			      ret));
	if (*ret)
		return NULL;
	return may_release_by_leaving(
		o, py, frame, number == inside->frame ? inside->level : PRB_ENTERED_MAX, ret);
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
	bool released = false, failed = false, retakes = inside->other;

	*ret = false;
	if (inside->frame > MOST_INNER || !is_exact(o, inside))
		return NULL;
	if (!retakes)
		PRB_TRY(tolerate(waits_for_it(o, inside, &retakes), &failed));
	for (size_t i = inside->frame + 1; i-- > 0 && !released && !failed;)
		PRB_TRY(tolerate(may_release(o, inside, i, retakes, &released), &failed));
	*ret = !released && !failed;
	return NULL;
}

/* Frames inside of locks */

/* True if the frame is Condition.wait() of a condition of @p lock, which has released it. */
static struct prb_error *waits_in_condition(struct prb_lock_owners *o, struct prb_python *py,
					    const struct prb_py_frame *frame, uint64_t lock,
					    bool *ret)
{
	const struct prb_layout *l = &py->layout;
	prb_auto_free char *module = NULL;
	uint64_t self, own;
	struct prb_py_code code;
	bool is_wait;

	*ret = false;
	if (frame->shim)
		return NULL;
	PRB_TRY(prb_python_code(py, o->mem, frame->code, &code));
	is_wait = !strcmp(code.name, "wait");
	prb_py_code_deinit(&code);
	if (!is_wait)
		return NULL;
	PRB_TRY(module_of(o, py, frame, &module));
	if (strcmp(module, "threading") != 0)
		return NULL;
	PRB_TRY(prb_mem_read_u64(o->mem,
				 frame->address +
					 (uint64_t)(l->behaviour->chain == PRB_CHAIN_PYFRAME
							    ? l->pyframe_localsplus
							    : l->frame_localsplus),
				 &self));
	if (l->behaviour->tagged_refs)
		self &= ~3ULL;

	struct prb_error *err = prb_object_attribute(py, o->mem, self, "_lock", &own);
	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		return NULL; /* Event.wait(), Barrier.wait() */
	PRB_TRY(err);
	*ret = own == lock;
	return NULL;
}

/* The frame is inside of @p lock unless it has released it to wait. */
static struct prb_error *add(struct prb_lock_owners *o, struct prb_reader_thread *thread,
			     bool other, size_t frame, unsigned level, uint64_t lock)
{
	struct inside *slot;

	for (size_t i = 0; i < PRB_MIN(frame, (size_t)MOST_INNER); i++) {
		bool waits, failed = false;

		PRB_TRY(tolerate(waits_in_condition(o, thread->py, &thread->frames.list.items[i],
						    lock, &waits),
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

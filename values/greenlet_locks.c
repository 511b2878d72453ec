/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * gevent's and eventlet's semaphores are locks, too: those of threading in a program that they have
 * patched. A greenlet that waits for one is in acquire(); who is inside of `with` has it.
 */
#include "values/greenlet_locks.h"

#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "python/repr/core/repr.h"
#include "python/runtime/entered.h"
#include "python/runtime/releases.h"

enum { MOST_FRAMES = 200, MOST_HELD = 64 };

struct search {
	struct prb_python *py;
	struct prb_mem *mem;
	const struct prb_py_frames *frames;
	struct prb_greenlet *greenlet;
	struct prb_py_released released;
};

/* An RLock that is written in Python waits for a lock inside. */
static struct prb_error *inner_lock(struct search *s, uint64_t *lock)
{
	prb_auto_str struct prb_str type = {};
	bool failed = false;
	uint64_t inner;

	PRB_TRY(prb_error_tolerate(prb_object_type_name(s->py, s->mem, *lock, &type), &failed));
	if (failed || !prb_text_ends(prb_str_text(&type), "RLock"))
		return NULL;
	PRB_TRY(prb_error_tolerate(prb_object_attribute(s->py, s->mem, *lock, "_block", &inner),
				   &failed));
	if (!failed)
		*lock = inner;
	return NULL;
}

/* In Python: the innermost acquire() of a lock has it as its first variable. */
static struct prb_error *find_wanted(struct search *s)
{
	static const struct {
		const char *func, *file;
	} waits[] = {{"acquire", "/gevent/thread.py"}, {"acquire", "/eventlet/semaphore.py"}};
	const struct prb_py_frame *frame;

	prb_vec_each (frame, &s->frames->list) {
		struct prb_py_code code;
		bool found = false, failed = false;

		if (frame->shim || frame->hidden)
			continue;
		PRB_TRY(prb_error_tolerate(prb_python_code(s->py, s->mem, frame->code, &code),
					   &failed));
		if (failed)
			return NULL;
		for (size_t i = 0; i < PRB_ARRAY_SIZE(waits); i++)
			found = found || (!strcmp(code.name, waits[i].func) &&
					  prb_text_ends(code.file, waits[i].file));
		bool hub = strstr(code.file, "/eventlet/hubs/");

		prb_py_code_deinit(&code);
		if (found)
			return prb_error_tolerate(
				prb_python_first_value(s->py, s->mem, frame, &s->greenlet->lock),
				NULL);
		if (!hub)
			return NULL;
	}
	return NULL;
}

/* True if the frames from @p number on inwards may have released what the frame is inside of. */
static struct prb_error *may_be_released(struct search *s, size_t number, unsigned level,
					 uint64_t lock, bool *ret)
{
	const struct prb_py_frame *list = s->frames->list.items;

	*ret = prb_python_is_released(&s->released, lock);
	for (size_t i = 0; i <= number && !*ret; i++)
		PRB_TRY(prb_python_may_release(s->py, s->mem, &list[number], level, &list[i],
					       s->greenlet->lock == lock, ret));
	return NULL;
}

static struct prb_error *add_held(struct search *s, size_t number,
				  const struct prb_py_entered *entered, unsigned level)
{
	uint64_t object = entered->list[level].object, lock, *place;
	prb_auto_str struct prb_str type = {};
	bool released;

	if (!object || s->greenlet->held.count >= MOST_HELD)
		return NULL;
	PRB_TRY(prb_object_type_name(s->py, s->mem, object, &type));
	s->greenlet->limited =
		s->greenlet->limited || prb_text_ends(prb_str_text(&type), "Timeout");
	PRB_TRY(prb_python_lock_of(s->py, s->mem, object, entered->list[level].leave, &lock));
	PRB_TRY(inner_lock(s, &lock));
	PRB_TRY(may_be_released(s, number, level, lock, &released));
	if (released)
		return NULL;
	place = prb_vec_push(&s->greenlet->held);
	if (!place)
		return prb_error_nomem();
	*place = lock;
	return NULL;
}

static struct prb_error *look_at(struct search *s, size_t number)
{
	struct prb_py_entered entered;

	PRB_TRY(prb_python_entered(s->py, s->mem, &s->frames->list.items[number], &entered));
	for (unsigned i = 0; i < entered.count; i++)
		PRB_TRY(prb_error_tolerate(add_held(s, number, &entered, i), NULL));
	return NULL;
}

static bool is_none(const struct search *s, uint64_t object)
{
	prb_auto_str struct prb_str type = {};
	prb_auto_error struct prb_error *err = prb_object_type_name(s->py, s->mem, object, &type);

	return !err && !strcmp(prb_str_text(&type), "NoneType");
}

/* join() and add() of a pool start their limit in compiled code: their argument tells of it. */
static struct prb_error *note_limit(struct search *s, const struct prb_py_frame *frame)
{
	struct prb_py_locals locals = {};
	const struct prb_py_local *local;
	struct prb_py_code code;
	struct prb_error *err;
	bool failed = false;

	PRB_TRY(prb_error_tolerate(prb_python_code(s->py, s->mem, frame->code, &code), &failed));
	if (failed)
		return NULL;

	bool is_pool = prb_text_ends(code.file, "/gevent/pool.py");
	prb_py_code_deinit(&code);
	if (!is_pool)
		return NULL;
	err = prb_python_locals(s->py, s->mem, frame, &locals);
	if (!err)
		prb_vec_each (local, &locals.list)
			if (!strcmp(local->name, "timeout") && local->object)
				s->greenlet->limited =
					s->greenlet->limited || !is_none(s, local->object);
	prb_py_locals_deinit(&locals);
	return err;
}

struct prb_error *prb_greenlet_note_locks(struct prb_python *py, struct prb_mem *mem,
					  const struct prb_py_frames *frames,
					  struct prb_greenlet *greenlet)
{
	struct search s = {.py = py, .mem = mem, .frames = frames, .greenlet = greenlet};
	size_t count = PRB_MIN(frames->list.count, (size_t)MOST_FRAMES);

	PRB_TRY(find_wanted(&s));
	for (size_t i = 0; i < count; i++)
		PRB_TRY(prb_python_note_released(py, mem, &frames->list.items[i], &s.released));
	for (size_t i = 0; i < count; i++)
		if (!frames->list.items[i].shim) {
			PRB_TRY(prb_error_tolerate(note_limit(&s, &frames->list.items[i]), NULL));
			PRB_TRY(prb_error_tolerate(look_at(&s, i), NULL));
		}
	return NULL;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Up to 3.13.0 a lock object points to a semaphore, whose first word is what futex() waits on. From
 * 3.14 on locks are single bytes and threads wait on a semaphore of their own, so the address does
 * not identify the lock. But that semaphore lies in the description of the wait on the thread's own
 * stack (struct wait_entry of parking_lot.c), behind the address of the byte. Where that is not so,
 * a contended lock on the value stack is taken for it. The same is true of a SimpleQueue from 3.13
 * on.
 */
#include "python/runtime/locks.h"

#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "python/repr/core/repr.h"

enum { MAX_SLOTS = 512 };

struct search {
	struct prb_python *py;
	struct prb_mem *mem;
	uint64_t futex;
	uint64_t parked; /* the address in front of `futex`: from 3.13 on the byte waited for; or 0
			  */
	bool operand;	 /* what is considered is on the value stack, no variable */
	struct prb_py_lock *lock;
};

/* Members of _thread.RLock behind the object header. */
struct rlock {
	uint64_t lock; /* semaphore up to 3.13; from 3.14 on the lowest byte is the mutex */
	uint64_t owner, count;
};

/* Members of _multiprocessing.SemLock behind the object header. */
struct sem_lock {
	uint64_t semaphore, owner; /* sem_t of all processes; the thread that took it last */
	int32_t count, most, kind; /* taken by this process; of all; RECURSIVE_MUTEX is 0 */
};

enum {
	MUTEX_LOCKED_AND_WANTED = 3,
};

static bool waits_on(const struct search *s, uint64_t object, const struct rlock *r)
{
	if (s->py->layout.behaviour->mutex_locks)
		return s->parked == object + (uint64_t)s->py->layout.object_size &&
		       (r->lock & 3) == MUTEX_LOCKED_AND_WANTED && r->owner;
	return r->lock == s->futex;
}

/* Members of a method of a C type that is bound to an object, behind the object header. */
struct bound_method {
	uint64_t definition, self;
};

static struct prb_error *consider_rlock(struct search *s, uint64_t object)
{
	struct rlock r;

	PRB_TRY(prb_mem_read(s->mem, object + (uint64_t)s->py->layout.object_size, &r, sizeof(r)));
	if (waits_on(s, object, &r))
		*s->lock = (struct prb_py_lock){
			.type = "RLock", .address = object, .owner = r.owner, .recursion = r.count};
	return NULL;
}

/*
 * A lock or a queue begins with a pointer to its semaphore. From some 3.13.x on it begins with a
 * byte: of a lock that of its mutex, of a queue 1 while threads wait. No pointer has such a byte.
 */
static struct prb_error *consider_word(struct search *s, uint64_t object, const char *type,
				       uint8_t awaited)
{
	uint64_t word;

	PRB_TRY(prb_mem_read_u64(s->mem, object + (uint64_t)s->py->layout.object_size, &word));
	if (word == s->futex) {
		/* The semaphore's value is 0 while the lock is held. */
		uint32_t value;

		PRB_TRY(prb_mem_read_u32(s->mem, s->futex, &value));
		*s->lock = (struct prb_py_lock){
			.type = type, .address = object, .held = !(value & INT32_MAX)};
	} else if (s->py->layout.behaviour->byte_waits && (uint8_t)word == awaited &&
		   (s->operand || s->parked == object + (uint64_t)s->py->layout.object_size)) {
		*s->lock = (struct prb_py_lock){
			.type = type,
			.address = object,
			.held = s->parked == object + (uint64_t)s->py->layout.object_size};
	}
	return NULL;
}

static struct prb_error *consider_sem_lock(struct search *s, uint64_t object)
{
	struct sem_lock lock;
	uint32_t value;

	PRB_TRY(prb_mem_read(s->mem, object + (uint64_t)s->py->layout.object_size, &lock,
			     sizeof(lock)));
	if (lock.semaphore != s->futex || lock.most != 1)
		return NULL;
	PRB_TRY(prb_mem_read_u32(s->mem, s->futex, &value));
	*s->lock = (struct prb_py_lock){.type = "SemLock",
					.address = object,
					.held = !(value & INT32_MAX),
					.recursive = !lock.kind};
	if (lock.count > 0 && (lock.count == 1 || !lock.kind)) {
		s->lock->owner = lock.owner;
		s->lock->recursion = (uint64_t)lock.count;
	}
	return NULL;
}

struct prb_error *prb_python_taken_sem_lock(struct prb_python *py, struct prb_mem *mem,
					    uint64_t object, uint64_t pthread, uint64_t *ret)
{
	prb_auto_str struct prb_str type = {};
	struct sem_lock lock;
	uint32_t value;

	*ret = 0;
	PRB_TRY(prb_object_type_name(py, mem, object, &type));
	if (strcmp(prb_str_text(&type), "SemLock") != 0)
		return NULL;
	PRB_TRY(prb_mem_read(mem, object + (uint64_t)py->layout.object_size, &lock, sizeof(lock)));
	if (lock.most != 1 || lock.count < 1 || (lock.kind && lock.count != 1) ||
	    lock.owner != pthread)
		return NULL;
	PRB_TRY(prb_mem_read_u32(mem, lock.semaphore, &value));
	if (!(value & INT32_MAX))
		*ret = lock.semaphore;
	return NULL;
}

static struct prb_error *consider_typed(struct search *s, uint64_t object, const char *type)
{
	if (!strcmp(type, "RLock"))
		return consider_rlock(s, object);
	if (!strcmp(type, "lock"))
		return consider_word(s, object, "lock", MUTEX_LOCKED_AND_WANTED);
	if (!strcmp(type, "SemLock"))
		return consider_sem_lock(s, object);
	if (!strcmp(type, "SimpleQueue"))
		return consider_word(s, object, "SimpleQueue", 1);
	return NULL;
}

static struct prb_error *consider(struct search *s, uint64_t object)
{
	prb_auto_str struct prb_str type = {};
	struct bound_method method;

	PRB_TRY(prb_object_type_name(s->py, s->mem, object, &type));
	if (strcmp(prb_str_text(&type), "builtin_function_or_method") != 0 &&
	    strcmp(prb_str_text(&type), "builtin_method") != 0)
		return consider_typed(s, object, prb_str_text(&type));
	PRB_TRY(prb_mem_read(s->mem, object + (uint64_t)s->py->layout.object_size, &method,
			     sizeof(method)));
	if (method.self < 4096 || method.self % 8)
		return NULL;
	prb_str_truncate(&type, 0);
	PRB_TRY(prb_object_type_name(s->py, s->mem, method.self, &type));
	return consider_typed(s, method.self, prb_str_text(&type));
}

/* Number of slots of a frame: variables, then the value stack. */
static struct prb_error *count_slots(struct search *s, uint64_t code, uint32_t *variables,
				     uint64_t *ret)
{
	const struct prb_layout *l = &s->py->layout;
	uint32_t stack = 0;
	int32_t offset =
		l->behaviour->chain == PRB_CHAIN_PYFRAME ? l->code_nlocals : l->code_nlocalsplus;

	PRB_TRY(prb_mem_read_u32(s->mem, code + (uint64_t)offset, variables));
	if (l->code_stacksize > 0)
		PRB_TRY(prb_mem_read_u32(s->mem, code + (uint64_t)l->code_stacksize, &stack));
	*ret = PRB_MIN((uint64_t)*variables + stack, (uint64_t)MAX_SLOTS);
	return NULL;
}

/* The object in front of the byte that the thread says it waits for. */
static struct prb_error *consider_parked(struct search *s)
{
	uint64_t header = (uint64_t)s->py->layout.object_size;

	if (!s->py->layout.behaviour->byte_waits || s->futex < 4096 || s->futex % 8)
		return NULL;
	PRB_TRY(prb_mem_read_u64(s->mem, s->futex - sizeof(s->parked), &s->parked));
	if (s->parked < 4096 + header || (s->parked - header) % 8)
		return NULL;
	return consider(s, s->parked - header);
}

struct prb_error *prb_python_lock(struct prb_python *py, struct prb_mem *mem,
				  const struct prb_py_frame *frame, uint64_t futex,
				  struct prb_py_lock *ret)
{
	const struct prb_layout *l = &py->layout;
	struct search s = {.py = py, .mem = mem, .futex = futex, .lock = ret};
	uint64_t slots[MAX_SLOTS], count;
	uint32_t variables;
	uint64_t start = frame->address + (uint64_t)(l->behaviour->chain == PRB_CHAIN_PYFRAME
							     ? l->pyframe_localsplus
							     : l->frame_localsplus);

	*ret = (struct prb_py_lock){};
	PRB_TRY(prb_error_tolerate(consider_parked(&s), NULL));
	if (ret->type)
		return NULL;
	PRB_TRY(count_slots(&s, frame->code, &variables, &count));
	PRB_TRY(prb_mem_read(mem, start, slots, count * sizeof(*slots)));
	/* From the top of the value stack, where the operands of the call are. Slots above it hold
	 * whatever was there before: a read that fails there means nothing. */
	for (uint64_t i = count; i-- > 0 && !ret->type;) {
		uint64_t object = l->behaviour->tagged_refs ? slots[i] & ~3ULL : slots[i];

		if (object < 4096 || object % 8)
			continue;
		s.operand = i >= variables;
		struct prb_error *err = consider(&s, object);
		if (err && err->code == PRB_ERROR_NOMEM)
			return err;
		prb_error_destroy(err);
	}
	return NULL;
}

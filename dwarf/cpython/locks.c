/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Up to 3.13 a lock object points to a semaphore, whose first word is what futex() waits on. From
 * 3.14 on locks are single bytes and threads wait on a semaphore of their own, so that the address
 * tells nothing: there an RLock on the value stack that others wait for is taken for the one.
 */
#include "dwarf/cpython/locks.h"

#include <string.h>

#include "dwarf/base/checked.h"
#include "dwarf/base/cleanup.h"
#include "dwarf/cpython/object.h"

enum { MAX_SLOTS = 512 };

struct search {
	struct prb_python *py;
	struct prb_mem *mem;
	uint64_t futex;
	struct prb_py_lock *lock;
};

/* Members of _thread.RLock behind the object header. */
struct rlock {
	uint64_t lock; /* semaphore up to 3.13; from 3.14 on the lowest byte is the mutex */
	uint64_t owner, count;
};

enum {
	MUTEX_LOCKED_AND_WANTED = 3,
};

static bool waits_on(const struct search *s, const struct rlock *r)
{
	if (s->py->layout.version >= 0x030e)
		return (r->lock & 3) == MUTEX_LOCKED_AND_WANTED && r->owner;
	return r->lock == s->futex;
}

static struct prb_error *consider(struct search *s, uint64_t object)
{
	prb_auto_str struct prb_str type = {};
	struct rlock r;

	PRB_TRY(prb_object_type_name(s->py, s->mem, object, &type));
	if (!strcmp(prb_str_text(&type), "RLock")) {
		PRB_TRY(prb_mem_read(s->mem, object + (uint64_t)s->py->layout.object_size, &r,
				     sizeof(r)));
		if (waits_on(s, &r))
			*s->lock = (struct prb_py_lock){"RLock", object, r.owner, r.count};
	} else if (!strcmp(prb_str_text(&type), "lock")) {
		PRB_TRY(prb_mem_read_u64(s->mem, object + (uint64_t)s->py->layout.object_size,
					 &r.lock));
		if (s->py->layout.version < 0x030e && r.lock == s->futex)
			*s->lock = (struct prb_py_lock){.type = "lock", .address = object};
	}
	return NULL;
}

/* Number of slots of a frame: variables, then the value stack. */
static struct prb_error *count_slots(struct search *s, uint64_t code, uint64_t *ret)
{
	const struct prb_layout *l = &s->py->layout;
	uint32_t variables, stack = 0;
	int32_t offset =
		l->behaviour->chain == PRB_CHAIN_PYFRAME ? l->code_nlocals : l->code_nlocalsplus;

	PRB_TRY(prb_mem_read_u32(s->mem, code + (uint64_t)offset, &variables));
	if (l->code_stacksize > 0)
		PRB_TRY(prb_mem_read_u32(s->mem, code + (uint64_t)l->code_stacksize, &stack));
	*ret = PRB_MIN((uint64_t)variables + stack, (uint64_t)MAX_SLOTS);
	return NULL;
}

struct prb_error *prb_python_lock(struct prb_python *py, struct prb_mem *mem,
				  const struct prb_py_frame *frame, uint64_t futex,
				  struct prb_py_lock *ret)
{
	const struct prb_layout *l = &py->layout;
	struct search s = {.py = py, .mem = mem, .futex = futex, .lock = ret};
	uint64_t slots[MAX_SLOTS], count;
	uint64_t start = frame->address + (uint64_t)(l->behaviour->chain == PRB_CHAIN_PYFRAME
							     ? l->pyframe_localsplus
							     : l->frame_localsplus);

	*ret = (struct prb_py_lock){};
	PRB_TRY(count_slots(&s, frame->code, &count));
	PRB_TRY(prb_mem_read(mem, start, slots, count * sizeof(*slots)));
	/* From the top of the value stack, where the operands of the call are. Slots above it hold
	 * whatever was there before: a read that fails there means nothing. */
	for (uint64_t i = count; i-- > 0 && !ret->type;) {
		uint64_t object = l->behaviour->tagged_refs ? slots[i] & ~3ULL : slots[i];

		if (object < 4096 || object % 8)
			continue;
		struct prb_error *err = consider(&s, object);
		if (err && err->code == PRB_ERROR_NOMEM)
			return err;
		prb_error_destroy(err);
	}
	return NULL;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Locks, and the classes of threading: what a hanging program waits for. */
#include "base/checked.h"
#include "base/cleanup.h"
#include "python/repr/core/handlers.h"

struct prb_error *prb_repr_handle_lock(struct prb_repr *r, uint64_t object, struct prb_type *type)
{
	uint64_t at = (uint64_t)r->layout->object_size;
	uint8_t locked;

	/* Since 3.13 a mutex of one byte; before a pointer, weak references and a flag. */
	if (type->basicsize > r->layout->object_size + 16)
		at += 16;
	PRB_TRY(prb_mem_read_u8(r->mem, object + at, &locked));
	prb_str_printf(r->out, "<%s %s object at %#llx>", locked & 1 ? "locked" : "unlocked",
		       type->name, (unsigned long long)object);
	return NULL;
}

struct prb_error *prb_repr_handle_rlock(struct prb_repr *r, uint64_t object, struct prb_type *type)
{
	uint64_t words[3]; /* lock, owner, count */

	PRB_TRY(prb_repr_words(r, object + (uint64_t)r->layout->object_size, 3, words));
	/* The mutex counts from zero while it is locked. */
	if (r->traits->rlock_mutex)
		words[2] = words[0] & 1 ? words[2] + 1 : 0;
	if (r->traits->rlock_short)
		prb_str_printf(r->out, "<%s owner=%lld count=%llu>", type->name,
			       (long long)words[1], (unsigned long long)words[2]);
	else
		prb_str_printf(r->out, "<%s %s object owner=%lld count=%llu at %#llx>",
			       words[2] ? "locked" : "unlocked", type->name, (long long)words[1],
			       (unsigned long long)words[2], (unsigned long long)object);
	return NULL;
}

static struct prb_error *get_flag(struct prb_repr *r, uint64_t object, const char *name, bool *ret)
{
	uint64_t value;
	int64_t number;

	PRB_TRY(prb_repr_attribute(r, object, name, &value));
	PRB_TRY(prb_repr_int(r, value, &number));
	*ret = number != 0;
	return NULL;
}

struct prb_error *prb_repr_handle_condition(struct prb_repr *r, uint64_t object,
					    struct prb_type *type __attribute__((unused)))
{
	uint64_t lock, waiters, count;

	PRB_TRY(prb_repr_attribute(r, object, "_lock", &lock));
	PRB_TRY(prb_repr_attribute(r, object, "_waiters", &waiters));
	if (!prb_repr_is(r, waiters, "collections.deque"))
		return prb_repr_bad(waiters, "not a deque");
	PRB_TRY(prb_repr_size(r, waiters, &count));
	prb_str_puts(r->out, "<Condition(");
	PRB_TRY(prb_repr_object(r, lock));
	prb_str_printf(r->out, ", %llu)>", (unsigned long long)count);
	return NULL;
}

/* "<module.Class at 0x…: " */
static struct prb_error *put_head(struct prb_repr *r, uint64_t object, const struct prb_type *type)
{
	prb_str_putc(r->out, '<');
	PRB_TRY(prb_repr_put_module(r, type));
	PRB_TRY(prb_repr_put_qualname(r, type));
	prb_str_printf(r->out, " at %#llx: ", (unsigned long long)object);
	return NULL;
}

struct prb_error *prb_repr_handle_event(struct prb_repr *r, uint64_t object, struct prb_type *type)
{
	bool set;

	PRB_TRY(get_flag(r, object, "_flag", &set));
	PRB_TRY(put_head(r, object, type));
	prb_str_puts(r->out, set ? "set>" : "unset>");
	return NULL;
}

struct prb_error *prb_repr_handle_semaphore(struct prb_repr *r, uint64_t object,
					    struct prb_type *type)
{
	uint64_t value, initial;

	PRB_TRY(prb_repr_attribute(r, object, "_value", &value));
	PRB_TRY(put_head(r, object, type));
	prb_str_puts(r->out, "value=");
	PRB_TRY(prb_repr_object(r, value));

	struct prb_error *err = prb_repr_attribute(r, object, "_initial_value", &initial);

	if (!err) {
		prb_str_putc(r->out, '/');
		err = prb_repr_object(r, initial);
	} else {
		prb_error_catch(&err, PRB_ERROR_NOT_FOUND);
	}
	prb_str_putc(r->out, '>');
	return err;
}

/* Whether a thread ended: a flag up to 3.12, the state of its handle since then. */
static struct prb_error *is_stopped(struct prb_repr *r, uint64_t object, bool *ret)
{
	enum { STATE = 52, DONE = 4 };
	static const char *const names[] = {"_handle", "_os_thread_handle"};
	struct prb_error *err = get_flag(r, object, "_is_stopped", ret);
	uint64_t handle;
	uint32_t state;

	for (size_t i = 0; i < PRB_ARRAY_SIZE(names); i++) {
		if (!prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
			return err;
		err = prb_repr_attribute(r, object, names[i], &handle);
		if (err)
			continue;
		PRB_TRY(prb_repr_member(r, handle, 0, &handle));
		PRB_TRY(prb_mem_read_u32(r->mem, handle + STATE, &state));
		*ret = state == DONE;
		return NULL;
	}
	return err;
}

struct prb_error *prb_repr_handle_thread(struct prb_repr *r, uint64_t object, struct prb_type *type)
{
	uint64_t started, name, ident;
	bool flag, stopped = false, daemon;

	PRB_TRY(prb_repr_attribute(r, object, "_started", &started));
	PRB_TRY(get_flag(r, started, "_flag", &flag));
	PRB_TRY(is_stopped(r, object, &stopped));
	PRB_TRY(get_flag(r, object, "_daemonic", &daemon));
	PRB_TRY(prb_repr_attribute(r, object, "_name", &name));
	PRB_TRY(prb_repr_attribute(r, object, "_ident", &ident));
	prb_str_putc(r->out, '<');
	PRB_TRY(prb_repr_put_name(r, type));
	prb_str_putc(r->out, '(');
	PRB_TRY(prb_repr_put_text(r, name));
	prb_str_printf(r->out, ", %s%s",
		       stopped ? "stopped"
		       : flag  ? "started"
			       : "initial",
		       daemon ? " daemon" : "");
	if (!prb_repr_is_none(r, ident)) {
		prb_str_putc(r->out, ' ');
		PRB_TRY(prb_repr_object(r, ident));
	}
	prb_str_puts(r->out, ")>");
	return NULL;
}

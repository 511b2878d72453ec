/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Names of threads: threading._active maps identifiers (pthreads) to Thread objects. */
#include <stdlib.h>

#include "base/cleanup.h"
#include "python/repr/core/repr_private.h"
#include "python/python.h"

enum { MAX_NAME = 1000, MAX_NAMED = 262144 };

/* An entry of the table: the identifier, and the object of the thread. */
struct entry {
	uint64_t ident, thread;
	bool done;
};

struct reading {
	struct prb_python *py;
	struct prb_mem *mem;
	struct prb_repr repr; /* which knows the types of what was read already */
	uint64_t interp;
	prb_py_name_wanted *wanted;
	void *context;
	PRB_VEC(struct entry) entries;
	bool failed;	       /* memory of ours ran out */
	struct prb_error *err; /* why there are none, or not all */
	struct prb_py_thread_names *names;
};

static bool add(void *context, uint64_t ident, uint64_t value)
{
	struct reading *r = context;
	struct entry *entry = prb_vec_push(&r->entries);

	if (!entry) {
		r->failed = true;
		return false;
	}
	*entry = (struct entry){.ident = ident, .thread = value};
	return r->entries.count < MAX_NAMED;
}

/* The dict of a module is the first member of its object. */
static struct prb_error *find_active(struct prb_python *py, struct prb_mem *mem, uint64_t interp,
				     uint64_t *ret)
{
	uint64_t modules, module, dict;

	PRB_TRY(prb_mem_read_u64(mem, interp + (uint64_t)py->layout.interp_modules, &modules));
	PRB_TRY(prb_object_dict_get(py, mem, modules, "threading", &module));
	PRB_TRY(prb_mem_read_u64(mem, module + (uint64_t)py->layout.object_size, &dict));
	return prb_object_dict_get(py, mem, dict, "_active", ret);
}

static struct prb_error *read_entries(struct reading *r)
{
	uint64_t active;

	r->entries.count = 0;
	prb_repr_again(&r->repr, NULL, NULL);
	PRB_TRY(find_active(r->py, r->mem, r->interp, &active));
	PRB_TRY(prb_repr_dict_each_int(&r->repr, active, add, r));
	return r->failed ? prb_error_nomem() : NULL;
}

/* A thread that is just being made has no name yet: it is left out. */
static struct prb_error *read_name(struct reading *r, struct entry *entry)
{
	prb_auto_str struct prb_str name = {};
	struct prb_py_thread_name *slot;
	uint64_t object;

	if (!r->wanted(r->context, entry->ident))
		return NULL;
	prb_repr_again(&r->repr, NULL, NULL);
	PRB_TRY(prb_repr_attribute(&r->repr, entry->thread, "_name", &object));
	PRB_TRY(prb_repr_text(&r->repr, object, MAX_NAME, &name));
	slot = prb_vec_push(&r->names->list);
	if (!slot)
		return prb_error_nomem();
	slot->pthread = entry->ident;
	slot->name = prb_str_take(&name);
	return slot->name ? NULL : prb_error_nomem();
}

static struct prb_error *read_names(struct reading *r)
{
	struct entry *entry;

	prb_vec_each (entry, &r->entries) {
		struct prb_error *err = entry->done ? NULL : read_name(r, entry);

		entry->done = !err;
		if (err && err->code == PRB_ERROR_NOMEM)
			return err;
		prb_error_destroy(err);
	}
	return NULL;
}

/* The table as far as the view has it; finished parts are not redone. */
static struct prb_error *try_reading(void *context)
{
	struct reading *r = context;

	if (!r->entries.count || r->err) {
		prb_error_destroy(r->err);
		r->err = read_entries(r);
	}
	return r->err ? NULL : read_names(r);
}

static struct prb_error *read_all(struct reading *r, struct prb_view *view)
{
	PRB_TRY(prb_view_gather(view, try_reading, r));
	PRB_TRY(try_reading(r));
	return prb_steal(&r->err);
}

struct prb_error *prb_python_thread_names(struct prb_python *py, struct prb_view *view,
					  uint64_t interp, prb_py_name_wanted *wanted,
					  void *context, struct prb_py_thread_names *ret)
{
	struct reading r = {
		.py = py,
		.mem = prb_view_mem(view),
		.interp = interp,
		.wanted = wanted,
		.context = context,
		.names = ret,
	};

	*ret = (struct prb_py_thread_names){};
	prb_repr_init(&r.repr, py, r.mem, NULL, NULL);

	struct prb_error *err = read_all(&r, view);
	prb_repr_deinit(&r.repr);
	prb_error_destroy(r.err);
	prb_vec_free(&r.entries);
	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		return NULL; /* never imported */
	if (err)
		prb_py_thread_names_deinit(ret);
	return err;
}

void prb_py_thread_names_deinit(struct prb_py_thread_names *names)
{
	struct prb_py_thread_name *name;

	prb_vec_each (name, &names->list)
		free(name->name);
	prb_vec_free(&names->list);
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Names of threads: threading._active maps identifiers (pthreads) to Thread objects. */
#include <stdlib.h>

#include "dwarf/base/cleanup.h"
#include "dwarf/cpython/object.h"
#include "dwarf/cpython/python.h"

enum { MAX_NAME = 1000, MAX_NAMED = 262144 };

struct visit {
	struct prb_python *py;
	struct prb_mem *mem;
	struct prb_py_thread_names *names;
	struct prb_error *err;
};

/* A thread that is just being made has no name yet: it is left out. */
static bool add(void *context, uint64_t key, uint64_t value)
{
	struct visit *v = context;
	prb_auto_str struct prb_str name = {};
	int64_t ident;
	uint64_t object;
	struct prb_error *err = prb_object_int(v->py, v->mem, key, &ident);

	if (!err)
		err = prb_object_attribute(v->py, v->mem, value, "_name", &object);
	if (!err)
		err = prb_object_str(v->py, v->mem, object, MAX_NAME, &name);
	if (err) {
		prb_error_destroy(err);
		return true;
	}

	struct prb_py_thread_name *slot = prb_vec_push(&v->names->list);
	if (slot) {
		slot->pthread = (uint64_t)ident;
		slot->name = prb_str_take(&name);
	}
	if (!slot || !slot->name)
		v->err = prb_error_nomem();
	return !v->err && v->names->list.count < MAX_NAMED;
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

struct prb_error *prb_python_thread_names(struct prb_python *py, struct prb_mem *mem,
					  uint64_t interp, struct prb_py_thread_names *ret)
{
	struct visit visit = {.py = py, .mem = mem, .names = ret};
	uint64_t active;

	*ret = (struct prb_py_thread_names){};

	struct prb_error *err = find_active(py, mem, interp, &active);
	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		return NULL; /* never imported */
	if (!err)
		err = prb_object_dict_each(py, mem, active, add, &visit);
	if (!err)
		err = visit.err;
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

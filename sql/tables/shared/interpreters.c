/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sql/tables/shared/interpreters.h"

#include <stdlib.h>

#include "base/cleanup.h"

static void destroy(void *memo)
{
	struct prb_interpreters *interpreters = memo;

	prb_vec_free(&interpreters->list);
	free(interpreters);
}

static void guard(struct prb_interpreters **interpreters)
{
	if (*interpreters)
		destroy(*interpreters);
}

static void count_threads(const struct prb_py_threads *threads, struct prb_interpreter *interpreter)
{
	const struct prb_py_thread *thread;

	prb_vec_each (thread, &threads->list) {
		interpreter->threads += thread->interp == interpreter->state.address;
		if (thread->address == interpreter->state.gil_holder)
			interpreter->holder = (uint64_t)thread->tid;
	}
}

/* The lists begin with the interpreter made last. */
static struct prb_error *add(struct prb_interpreters *interpreters, struct prb_python *py,
			     struct prb_mem *mem, unsigned runtime,
			     const struct prb_py_threads *threads)
{
	for (size_t i = threads->interps.count; i-- > 0;) {
		struct prb_interpreter *interpreter = prb_vec_push(&interpreters->list);

		if (!interpreter)
			return prb_error_nomem();
		*interpreter = (struct prb_interpreter){
			.py = py,
			.mem = mem,
			.state = threads->interps.items[i],
			.runtime = runtime,
		};
		count_threads(threads, interpreter);
	}
	return NULL;
}

static struct prb_error *create(struct prb_instant *instant, void **ret)
{
	__attribute__((cleanup(guard))) struct prb_interpreters *interpreters = NULL;
	struct prb_pythons *pythons;
	struct prb_mem *mem;

	interpreters = calloc(1, sizeof(*interpreters));
	if (!interpreters)
		return prb_error_nomem();
	PRB_TRY(prb_instant_pythons(instant, &pythons, &mem));
	for (unsigned i = 0; i < pythons->list.count; i++) {
		struct prb_python *py = pythons->list.items[i];
		struct prb_py_threads threads;

		PRB_TRY(prb_python_threads(py, mem, &threads));
		struct prb_error *err = add(interpreters, py, mem, i, &threads);
		prb_py_threads_deinit(&threads);
		PRB_TRY(err);
	}
	*ret = prb_steal(&interpreters);
	return NULL;
}

struct prb_error *prb_interpreters_read(struct prb_scan *scan, const struct prb_interpreters **ret)
{
	static const char key;
	void *memo;

	PRB_TRY(prb_instant_memo(scan->instant, &key, create, destroy, &memo));
	*ret = memo;
	return NULL;
}

bool prb_interpreter_wanted(const struct prb_scan *scan, unsigned column,
			    const struct prb_interpreter *interpreter)
{
	int64_t id;

	return !prb_scan_key_integer(scan, column, &id) || id == interpreter->state.id;
}

struct prb_mem *prb_interpreter_bulk(const struct prb_scan *scan,
				     const struct prb_interpreter *interpreter)
{
	struct prb_target *target = prb_instant_target(scan->instant);

	return prb_target_is_recorded(target) ? interpreter->mem : target->mem;
}

struct prb_error *prb_put_reason(struct prb_scan *scan, unsigned column, struct prb_error *err)
{
	if (!err || err->code == PRB_ERROR_NOMEM || err->code == PRB_ERROR_NO_PROCESS ||
	    err->code == PRB_ERROR_PERMISSION)
		return err;
	prb_put_text(scan, column, err->message);
	prb_error_destroy(err);
	return NULL;
}

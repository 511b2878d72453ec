/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dump/read/thread_names.h"

#include <string.h>

#include "base/cleanup.h"

static struct prb_dump_thread *find_pthread(struct prb_reader *r, struct prb_python *py,
					    uint64_t interp, uint64_t pthread)
{
	struct prb_reader_thread *thread;

	prb_vec_each (thread, &r->threads)
		if (thread->py == py && thread->state.interp == interp && thread->self == pthread &&
		    pthread)
			return prb_reader_out(r, thread);
	return NULL;
}

struct nameless {
	struct prb_reader *reader;
	struct prb_python *py;
	uint64_t interp;
};

static bool has_no_name(void *context, uint64_t pthread)
{
	const struct nameless *n = context;
	const struct prb_dump_thread *out = find_pthread(n->reader, n->py, n->interp, pthread);

	return out && !out->name;
}

static struct prb_error *name_threads(struct prb_reader *r, struct prb_python *py,
				      struct prb_view *view, uint64_t interp)
{
	struct nameless nameless = {r, py, interp};
	struct prb_py_thread_names names;
	struct prb_py_thread_name *name;
	struct prb_error *err =
		prb_python_thread_names(py, view, interp, has_no_name, &nameless, &names);

	/* `threading` may be changing its table: then threads have no names. */
	if (err) {
		if (err->code == PRB_ERROR_NOMEM)
			return err;
		prb_error_destroy(err);
		return NULL;
	}
	prb_vec_each (name, &names.list) {
		struct prb_dump_thread *out = find_pthread(r, py, interp, name->pthread);

		if (!err && out)
			err = prb_str_copy(name->name, &out->name);
	}
	prb_py_thread_names_deinit(&names);
	return err;
}

/* Sets the names of one interpreter's threads; *nameless counts threads without one. */
static struct prb_error *name_interp(struct prb_reader *r, struct prb_python *py,
				     struct prb_view *view, uint64_t interp, size_t *nameless)
{
	struct prb_reader_thread *thread;

	*nameless = 0;
	PRB_TRY(name_threads(r, py, view, interp));
	prb_vec_each (thread, &r->threads)
		*nameless += thread->py == py && thread->state.interp == interp &&
			     !prb_reader_out(r, thread)->name;
	return NULL;
}

/*
 * Repeats the search for missing names a few times, since the target changes its table meanwhile.
 * Threads made by C code have none.
 */
static struct prb_error *name_again(struct prb_reader *r, struct prb_python *py, uint64_t interp)
{
	enum { ATTEMPTS = 3 };
	struct prb_view *view;
	struct prb_error *err;
	size_t nameless = 1;

	PRB_TRY(prb_view_create(r->target->mem, &view));
	for (int attempt = 0; attempt < ATTEMPTS && nameless; attempt++) {
		prb_view_new_epoch(view);
		err = name_interp(r, py, view, interp, &nameless);
		if (err)
			break;
	}
	prb_view_destroy(view);
	return err;
}

static bool is_same(void *context, uint64_t pthread)
{
	return *(const uint64_t *)context == pthread;
}

struct prb_error *prb_read_thread_name(struct prb_python *py, struct prb_view *view,
				       uint64_t interp, uint64_t pthread, char **ret)
{
	struct prb_py_thread_names names;
	struct prb_error *err =
		prb_python_thread_names(py, view, interp, is_same, &pthread, &names);

	*ret = NULL;
	if (err && err->code != PRB_ERROR_NOMEM) {
		prb_error_destroy(err);
		return NULL;
	}
	PRB_TRY(err);
	if (names.list.count)
		*ret = prb_steal(&names.list.items[0].name);
	prb_py_thread_names_deinit(&names);
	return NULL;
}

/* Notes the name for a snapshot, whichever attempt found it. */
static void remember_name(struct prb_reader *r, const struct prb_dump_thread *out)
{
	prb_auto_str struct prb_str key = {};

	if (!out->name)
		return;
	prb_str_printf(&key, "name:%d:%lld", out->tid, (long long)out->interpreter);
	prb_target_remember(r->target, prb_str_text(&key), out->name, strlen(out->name));
}

static struct prb_error *recall_name(struct prb_reader *r, struct prb_dump_thread *out)
{
	prb_auto_str struct prb_str key = {}, name = {};

	prb_str_printf(&key, "name:%d:%lld", out->tid, (long long)out->interpreter);
	if (!prb_target_recall(r->target, prb_str_text(&key), &name))
		return NULL;
	return prb_str_copy(prb_str_text(&name), &out->name);
}

struct prb_error *prb_read_thread_names(struct prb_reader *r, struct prb_python *py,
					struct prb_view *view)
{
	struct prb_reader_thread *thread;
	uint64_t done = 0;

	prb_vec_each (thread, &r->threads) {
		size_t nameless;

		if (thread->py != py || thread->state.interp == done)
			continue;
		done = thread->state.interp;
		PRB_TRY(name_interp(r, py, view, done, &nameless));
		if (nameless && r->target->live)
			PRB_TRY(name_again(r, py, done));
	}
	prb_vec_each (thread, &r->threads) {
		if (thread->py != py)
			continue;
		PRB_TRY(recall_name(r, prb_reader_out(r, thread)));
		remember_name(r, prb_reader_out(r, thread));
	}
	return NULL;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dump/gil_holder.h"

#include "base/cleanup.h"
#include "dump/describe.h"

/**
 * The agent writes there, so no file decides alone where that is: it has to be near the place that
 * the built-in table of the version tells.
 */
static bool is_plausible(int32_t offset, int32_t in_table)
{
	enum { SLACK = 512 /* bytes by which builds of a version differ */ };

	return in_table >= 0 && offset >= 0 && offset % 4 == 0 && offset >= in_table - SLACK &&
	       offset <= in_table + SLACK;
}

static bool request_is_plausible(const struct prb_layout *l)
{
	const struct prb_layout *table =
		prb_layout_table(l->version, l->free_threaded, l->debug_build);

	if (!table || !is_plausible(l->gil_locked, table->gil_locked) ||
	    !is_plausible(l->gil_holder, table->gil_holder))
		return false;
	if (l->thread_eval_breaker != PRB_ABSENT)
		return is_plausible(l->thread_eval_breaker, table->thread_eval_breaker);
	if (l->interp_drop_request != PRB_ABSENT && l->interp_eval_breaker != PRB_ABSENT)
		return is_plausible(l->interp_drop_request, table->interp_drop_request) &&
		       is_plausible(l->interp_eval_breaker, table->interp_eval_breaker);
	return is_plausible(l->runtime_drop_request, table->runtime_drop_request) &&
	       is_plausible(l->runtime_eval_breaker, table->runtime_eval_breaker);
}

/** Where a thread of @p interp would ask who has the GIL for it. */
static void find_request(const struct prb_python *py, const struct prb_interp *interp,
			 struct prb_gil_words *words)
{
	const struct prb_layout *l = &py->layout;

	if (!request_is_plausible(l))
		return;
	if (l->thread_eval_breaker != PRB_ABSENT) {
		words->request = (uint64_t)l->thread_eval_breaker;
	} else if (l->interp_drop_request != PRB_ABSENT && l->interp_eval_breaker != PRB_ABSENT) {
		words->request = interp->address + (uint64_t)l->interp_drop_request;
		words->breaker = interp->address + (uint64_t)l->interp_eval_breaker;
	} else if (l->runtime_drop_request != PRB_ABSENT && l->runtime_eval_breaker != PRB_ABSENT) {
		words->request = py->runtime + (uint64_t)l->runtime_drop_request;
		words->breaker = py->runtime + (uint64_t)l->runtime_eval_breaker;
	}
}

struct prb_gil_words prb_gil_words(const struct prb_python *py, const struct prb_interp *interp)
{
	const struct prb_layout *l = &py->layout;
	struct prb_gil_words words = {.locked = py->gil_locked,
				      .holder = py->gil_last_holder,
				      .thread_id = l->thread_id,
				      .native_tid = l->thread_native_id};

	if (interp->gil && l->gil_locked != PRB_ABSENT && l->gil_holder != PRB_ABSENT) {
		words.locked = interp->gil + (uint64_t)l->gil_locked;
		words.holder = interp->gil + (uint64_t)l->gil_holder;
		find_request(py, interp, &words);
	}
	return words.locked && words.holder && l->thread_id >= 0 ? words : (struct prb_gil_words){};
}

/** Each is 0 or 1 where it is a word of its own. */
static bool is_flag(struct prb_mem *mem, uint64_t address)
{
	uint32_t value;
	prb_auto_error struct prb_error *err = prb_mem_read_u32(mem, address, &value);

	return !err && value <= 1;
}

bool prb_gil_can_request(const struct prb_gil_words *words, struct prb_mem *mem)
{
	return words->request &&
	       (!words->breaker || (is_flag(mem, words->request) && is_flag(mem, words->breaker)));
}

/** The number of a thread by its state, as it knows it itself, or as the list has it; 0: none. */
static struct prb_error *read_tid(const struct prb_gil_words *words, struct prb_mem *mem,
				  struct prb_tasks *tasks, uint64_t state, pid_t *ret)
{
	uint64_t pthread, native;

	if (words->native_tid != PRB_ABSENT) {
		PRB_TRY(prb_mem_read_u64(mem, state + (uint64_t)words->native_tid, &native));
		*ret = native < INT32_MAX ? (pid_t)native : 0;
		return NULL;
	}
	PRB_TRY(prb_mem_read_u64(mem, state + (uint64_t)words->thread_id, &pthread));
	*ret = prb_describe_tid(mem, tasks, pthread);
	return NULL;
}

/** The same, found in the list; 0 if nobody has it. */
static struct prb_error *find(const struct prb_gil_words *words, struct prb_target *t,
			      struct prb_tasks *tasks, pid_t *ret)
{
	const struct prb_task_watch *task;
	uint32_t locked;
	uint64_t state;
	pid_t inner;

	*ret = 0;
	PRB_TRY(prb_mem_read_u32(t->mem, words->locked, &locked));
	if (!locked)
		return NULL;
	PRB_TRY(prb_mem_read_u64(t->mem, words->holder, &state));
	PRB_TRY(read_tid(words, t->mem, tasks, state, &inner));
	task = inner ? prb_tasks_find_inner(tasks, inner) : NULL;
	if (!task)
		return prb_error_create(PRB_ERROR_NOT_FOUND, "no thread has that state");
	*ret = task->tid;
	return NULL;
}

static struct prb_error *list_anew(struct prb_target *t, struct prb_tasks *tasks)
{
	prb_tasks_deinit(tasks);
	return prb_tasks_create(t, tasks);
}

bool prb_gil_holder(const struct prb_gil_words *words, struct prb_target *t,
		    struct prb_tasks *tasks, pid_t *ret)
{
	struct prb_error *err;

	*ret = 0;
	if (!words->locked)
		return false;
	err = find(words, t, tasks, ret);
	/* One that was not there yet, or whose state is gone by now. */
	if (err) {
		prb_error_destroy(err);
		err = list_anew(t, tasks);
		if (!err)
			err = find(words, t, tasks, ret);
	}
	prb_error_destroy(err);
	return !err;
}

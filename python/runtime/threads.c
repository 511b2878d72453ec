/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Interpreters and thread states, and the GIL holder. */
#include <string.h>

#include "base/cleanup.h"
#include "python/python.h"

enum {
	MAX_INTERPRETERS = 4096,
	MAX_THREADS = 262144,
	MAX_THREAD_STRUCT = 1024, /* we read at most so much of a thread state */
	STATUS_ACTIVE = 1 << 4,	  /* in _status, from 3.12 on */
};

static struct prb_error *read_u32_at(struct prb_mem *mem, uint64_t base, int32_t offset,
				     uint32_t *ret)
{
	*ret = 0;
	if (offset == PRB_ABSENT)
		return NULL;
	return prb_mem_read_u32(mem, base + (uint64_t)offset, ret);
}

static struct prb_error *read_u64_at(struct prb_mem *mem, uint64_t base, int32_t offset,
				     uint64_t *ret)
{
	*ret = 0;
	if (offset == PRB_ABSENT)
		return NULL;
	return prb_mem_read_u64(mem, base + (uint64_t)offset, ret);
}

/* The GIL structure of an interpreter; 0 where it is not one structure (before 3.7). */
static struct prb_error *find_gil(struct prb_python *py, struct prb_mem *mem, uint64_t interp,
				  uint64_t *ret)
{
	*ret = 0;
	switch (py->layout.behaviour->gil) {
	case PRB_GIL_STATICS:
		return NULL;
	case PRB_GIL_RUNTIME:
		if (py->layout.runtime_gil != PRB_ABSENT)
			*ret = py->runtime + (uint64_t)py->layout.runtime_gil;
		return NULL;
	case PRB_GIL_INTERPRETER:
		break;
	}
	return read_u64_at(mem, interp, py->layout.interp_gil, ret);
}

struct prb_error *prb_python_gil_holder(struct prb_python *py, struct prb_mem *mem, uint64_t gil,
					uint64_t *ret)
{
	const struct prb_layout *l = &py->layout;
	uint32_t locked;

	*ret = 0;
	switch (l->behaviour->gil) {
	case PRB_GIL_STATICS:
		return py->tstate_current ? prb_mem_read_u64(mem, py->tstate_current, ret) : NULL;
	case PRB_GIL_RUNTIME:
		return read_u64_at(mem, py->runtime, l->runtime_tstate_current, ret);
	case PRB_GIL_INTERPRETER:
		break;
	}
	if (!gil || l->gil_locked == PRB_ABSENT || l->gil_holder == PRB_ABSENT)
		return NULL;
	PRB_TRY(prb_mem_read_u32(mem, gil + (uint64_t)l->gil_locked, &locked));
	if (locked != 1) /* -1 before it is made */
		return NULL;
	return prb_mem_read_u64(mem, gil + (uint64_t)l->gil_holder, ret);
}

double prb_python_switch_interval(const struct prb_python *py, struct prb_mem *mem,
				  const struct prb_interp *interp)
{
	enum { US_OF_SECOND = 1000000, MOST_SECONDS = 1000000 };
	const struct prb_layout *l = &py->layout;
	uint64_t us;

	/* An unsigned long of microseconds, right before the holder. */
	if (!interp->gil || l->free_threaded || l->gil_holder < (int32_t)sizeof(us))
		return 0;

	prb_auto_error struct prb_error *err =
		prb_mem_read_u64(mem, interp->gil + (uint64_t)l->gil_holder - sizeof(us), &us);

	return !err && us / US_OF_SECOND < MOST_SECONDS ? (double)us / US_OF_SECOND : 0;
}

static struct prb_error *read_collecting(struct prb_python *py, struct prb_mem *mem,
					 uint64_t interp, bool *ret)
{
	const struct prb_layout *l = &py->layout;
	uint32_t collecting = 0;

	if (l->interp_gc_collecting != PRB_ABSENT)
		PRB_TRY(read_u32_at(mem, interp, l->interp_gc_collecting, &collecting));
	else if (py->gc_collecting)
		PRB_TRY(prb_mem_read_u32(mem, py->gc_collecting, &collecting));
	else if (py->runtime)
		PRB_TRY(read_u32_at(mem, py->runtime, l->runtime_gc_collecting, &collecting));
	*ret = collecting == 1;
	return NULL;
}

/* Reads its state of life, where the version has one. */
static struct prb_error *read_life(const struct prb_layout *l, struct prb_mem *mem,
				   uint64_t address, struct prb_interp *ret)
{
	uint32_t finalizing, own_gil;
	uint64_t ids;

	PRB_TRY(read_u32_at(mem, address, l->interp_finalizing, &finalizing));
	PRB_TRY(read_u32_at(mem, address, l->interp_own_gil, &own_gil));
	PRB_TRY(read_u64_at(mem, address, l->interp_next_thread, &ids));
	ret->finalizing = finalizing != 0;
	ret->own_gil = l->interp_own_gil == PRB_ABSENT ? -1 : own_gil != 0;
	ret->thread_ids = l->interp_next_thread == PRB_ABSENT ? -1 : (int64_t)ids;
	return NULL;
}

static struct prb_error *read_interp(struct prb_python *py, struct prb_mem *mem, uint64_t address,
				     struct prb_interp *ret)
{
	const struct prb_layout *l = &py->layout;
	uint64_t id = 0;

	*ret = (struct prb_interp){.address = address};
	PRB_TRY(read_u64_at(mem, address, l->interp_id, &id));
	ret->id = (int64_t)id;
	PRB_TRY(find_gil(py, mem, address, &ret->gil));
	PRB_TRY(prb_python_gil_holder(py, mem, ret->gil, &ret->gil_holder));
	PRB_TRY(read_collecting(py, mem, address, &ret->gc_collecting));
	return read_life(l, mem, address, ret);
}

static struct prb_error *read_thread(struct prb_python *py, struct prb_mem *mem,
				     const struct prb_interp *interp, uint64_t address,
				     struct prb_py_thread *ret, uint64_t *next)
{
	const struct prb_layout *l = &py->layout;
	uint8_t data[MAX_THREAD_STRUCT];
	uint64_t back, native = 0;
	uint32_t status = 0;
	size_t size = (size_t)l->thread_size < sizeof(data) ? (size_t)l->thread_size : sizeof(data);

	PRB_TRY(prb_mem_read(mem, address, data, size));
	memcpy(&back, data + l->thread_interp, sizeof(back));
	if (back != interp->address)
		return prb_error_create(PRB_ERROR_BAD_DATA,
					"thread state %#llx does not belong to interpreter %#llx",
					(unsigned long long)address,
					(unsigned long long)interp->address);
	*ret = (struct prb_py_thread){
		.address = address,
		.interp = interp->address,
		.interp_id = interp->id,
		.gil = interp->gil,
		.holds_gil = interp->gil_holder == address,
	};
	ret->interp_collects = interp->gc_collecting;
	ret->gc = ret->holds_gil && interp->gc_collecting;
	memcpy(&ret->pthread, data + l->thread_id, sizeof(ret->pthread));
	if (l->thread_native_id != PRB_ABSENT)
		memcpy(&native, data + l->thread_native_id, sizeof(native));
	if (l->free_threaded && l->thread_status != PRB_ABSENT)
		memcpy(&status, data + l->thread_status, sizeof(status));
	ret->attached = status & STATUS_ACTIVE;
	ret->tid = native < INT32_MAX ? (pid_t)native : 0;
	memcpy(next, data + l->thread_next, sizeof(*next));
	return NULL;
}

static bool layout_fits(const struct prb_layout *l)
{
	const int32_t members[] = {l->thread_interp, l->thread_id, l->thread_next,
				   l->thread_native_id, l->thread_status};

	if (l->thread_size <= 0)
		return false;
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
		if (members[i] > MAX_THREAD_STRUCT - 8 || members[i] > l->thread_size - 8 ||
		    members[i] < PRB_ABSENT)
			return false;
	return l->thread_interp >= 0 && l->thread_id >= 0 && l->thread_next >= 0;
}

static struct prb_error *read_threads(struct prb_python *py, struct prb_mem *mem,
				      const struct prb_interp *interp, struct prb_py_threads *ret)
{
	uint64_t address;

	PRB_TRY(read_u64_at(mem, interp->address, py->layout.interp_threads, &address));
	while (address) {
		struct prb_py_thread thread;

		PRB_TRY(read_thread(py, mem, interp, address, &thread, &address));
		if (ret->list.count >= MAX_THREADS)
			return prb_error_create(PRB_ERROR_BAD_DATA,
						"the list of thread states does not end");

		struct prb_py_thread *slot = prb_vec_push(&ret->list);
		if (!slot)
			return prb_error_nomem();
		*slot = thread;
	}
	return NULL;
}

static struct prb_error *first_interp(struct prb_python *py, struct prb_mem *mem, uint64_t *ret)
{
	if (py->runtime)
		return read_u64_at(mem, py->runtime, py->layout.runtime_interpreters, ret);
	return prb_mem_read_u64(mem, py->interp_head, ret);
}

static struct prb_error *walk(struct prb_python *py, struct prb_mem *mem,
			      struct prb_py_threads *ret)
{
	uint64_t address;

	PRB_TRY(first_interp(py, mem, &address));
	while (address) {
		struct prb_interp interp;

		if (ret->interps.count >= MAX_INTERPRETERS)
			return prb_error_create(PRB_ERROR_BAD_DATA,
						"the list of interpreters does not end");
		PRB_TRY(read_interp(py, mem, address, &interp));
		struct prb_interp *slot = prb_vec_push(&ret->interps);
		if (!slot)
			return prb_error_nomem();
		*slot = interp;
		PRB_TRY(read_threads(py, mem, &interp, ret));
		PRB_TRY(read_u64_at(mem, address, py->layout.interp_next, &address));
	}
	return NULL;
}

/* Without ids in memory (before 3.7) interpreters are numbered from the oldest, which is last. */
static void number_interpreters(struct prb_python *py, struct prb_py_threads *threads)
{
	if (threads->interps.count)
		threads->interps.items[threads->interps.count - 1].main = true;
	if (py->layout.interp_id != PRB_ABSENT)
		return;
	for (size_t i = 0; i < threads->interps.count; i++) {
		struct prb_interp *interp = &threads->interps.items[i];
		struct prb_py_thread *thread;

		interp->id = (int64_t)(threads->interps.count - 1 - i);
		prb_vec_each (thread, &threads->list)
			if (thread->interp == interp->address)
				thread->interp_id = interp->id;
	}
}

struct prb_error *prb_python_threads(struct prb_python *py, struct prb_mem *mem,
				     struct prb_py_threads *ret)
{
	*ret = (struct prb_py_threads){};
	if (!layout_fits(&py->layout))
		return prb_error_create(PRB_ERROR_BAD_DATA,
					"the layout of thread states is implausible");

	struct prb_error *err = walk(py, mem, ret);
	if (err)
		prb_py_threads_deinit(ret);
	else
		number_interpreters(py, ret);
	return err;
}

bool prb_python_gil_switches(struct prb_python *py, struct prb_mem *mem, uint64_t *ret)
{
	const struct prb_layout *l = &py->layout;
	struct prb_py_threads threads = {};
	struct prb_error *err = prb_python_threads(py, mem, &threads);
	uint64_t gil = !err && threads.interps.count ? threads.interps.items[0].gil : 0;

	/* last_holder, locked, and, aligned, switch_number have followed each other in all
	 * versions. */
	if (gil && !l->free_threaded && l->gil_locked == l->gil_holder + (int32_t)sizeof(*ret))
		err = prb_mem_read_u64(mem, gil + (uint64_t)l->gil_locked + sizeof(*ret), ret);
	else
		gil = 0;
	prb_py_threads_deinit(&threads);
	if (err)
		gil = 0;
	prb_error_destroy(err);
	return gil;
}

void prb_py_threads_deinit(struct prb_py_threads *threads)
{
	prb_vec_free(&threads->interps);
	prb_vec_free(&threads->list);
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Any bytes as tasks and futures of asyncio, what they hold, and what they wait for. The input
 * chooses a version, the addresses of two tasks and members of the layout with other offsets; the
 * rest is memory, repeated over the whole address space.
 */
#include "tests/fuzz/builds.h"

#include "python/asyncio/private.h"

enum { VISITS = 200 };

static struct prb_error *visit(void *context, uint64_t object)
{
	(void)object;
	return ++*(unsigned *)context < VISITS ? NULL
					       : prb_error_create(PRB_ERROR_FAILED, "enough");
}

static void add_task(struct prb_asyncio_reader *t, uint64_t address)
{
	struct prb_asyncio_task *task = prb_vec_push(&t->tasks->list);

	if (!task || !prb_number_map_put(&t->tasks->by_address, address, t->tasks->list.count - 1))
		abort();
	task->address = task->future = address;
}

/** Reads a task like prb_asyncio_tasks_read(), and also what that skips after an error. */
static void ask_task(struct prb_asyncio_reader *t, struct prb_asyncio_task *task, uint64_t waiter)
{
	prb_auto_str struct prb_str name = {};
	enum prb_future_state state = PRB_FUTURE_PENDING;
	struct prb_future future;
	unsigned visits = 0;
	uint64_t value = 0;

	prb_error_destroy(prb_future_open(t, task->address, &future));
	prb_error_destroy(prb_future_state(t, &future, &state));
	if (state > PRB_FUTURE_FINISHED)
		abort();
	prb_error_destroy(prb_future_exception(t, &future, &value));
	prb_error_destroy(prb_future_loop(t, &future, &task->loop));
	prb_error_destroy(prb_asyncio_task_name(t, &future, &task->name));
	prb_error_destroy(prb_asyncio_waiter(t, &future, &task->future));
	prb_error_destroy(prb_asyncio_task_coro(t, &future, &value));
	prb_error_destroy(prb_coroutine_name(&t->r, value, &name));
	prb_error_destroy(prb_asyncio_task_read_frames(t, task, value));
	prb_error_destroy(prb_future_callbacks(t, &future, visit, &visits));
	prb_error_destroy(prb_future_awaited_by(t, &future, visit, &visits));
	prb_error_destroy(prb_callback_each(t, waiter, visit, &visits));
	prb_error_destroy(prb_sequence_each(t, waiter, visit, &visits));
	task->state = PRB_PY_TASK_PENDING;
}

static void ask(struct prb_asyncio_reader *t, uint64_t waiter)
{
	struct prb_asyncio_task *task;

	prb_vec_each (task, &t->tasks->list)
		ask_task(t, task, waiter);
	prb_error_destroy(prb_asyncio_relate(t));
	prb_vec_each (task, &t->tasks->list) {
		prb_error_destroy(prb_asyncio_task_describe_wait(t, task));
		if (!task->waits_kind != !task->waits_for)
			abort();
	}
	prb_number_map_deinit(&t->plain);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	struct prb_python py = {.layout = input_layout(&input)};
	unsigned flags = input_u8(&input);
	struct prb_py_threads threads = {};
	struct prb_asyncio_tasks tasks = {};
	struct prb_asyncio_reader t = {
		.threads = &threads, .tasks = &tasks, .values = flags & 0x10};
	uint64_t one = (uint64_t)input_u8(&input) * 16 + 4096,
		 other = (uint64_t)input_u8(&input) * 16 + 4096;

	input_move_fields(&input, &py.layout, flags >> 1 & 7);

	struct repeated_memory memory = repeat(&input, flags & 1);
	struct fact_target facts = fact_target((struct input){}, PRB_TARGET_SNAPSHOT, &memory.mem);

	py.target = &facts.target;
	prb_repr_init(&t.r, &py, &memory.mem, NULL, NULL);

	struct prb_error *err = prb_asyncio_layout_load(&py, &memory.mem, NULL, &t.layout);
	if (!err) {
		add_task(&t, one);
		add_task(&t, other);
		ask(&t, one);
	}
	prb_error_destroy(err);
	prb_repr_deinit(&t.r);
	prb_vec_free(&t.loops);
	prb_vec_free(&t.running);
	prb_asyncio_tasks_deinit(&tasks);
	return 0;
}

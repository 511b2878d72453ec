/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What a task waits for, in words. The future itself hardly ever says; the function of asyncio
 * that made it does, and that is the innermost frame of the task.
 */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "python/asyncio/private.h"

enum { NAMED_MAX = 8 };

struct waiting {
	struct prb_asyncio_reader *t;
	struct prb_asyncio_task *task;
	const struct prb_asyncio_task_frame *frame; /**< the innermost that says something */
	struct prb_py_locals locals;		    /**< of it */
	struct prb_str text;
};

static uint64_t find_local(const struct waiting *w, const char *name)
{
	const struct prb_py_local *local;

	prb_vec_each (local, &w->locals.list)
		if (!strcmp(local->name, name))
			return local->object;
	return 0;
}

/* An attribute that may be missing or unreadable; 0 then. */
static struct prb_error *try_attribute(struct waiting *w, uint64_t object, const char *name,
				       uint64_t *ret)
{
	struct prb_error *err = NULL;

	*ret = 0;
	if (object)
		err = prb_repr_attribute(&w->t->r, object, name, ret);
	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND) ||
	    prb_error_catch(&err, PRB_ERROR_BAD_DATA) || prb_error_catch(&err, PRB_ERROR_FAULT))
		*ret = 0;
	return err;
}

static void put_name(struct waiting *w, size_t index)
{
	const struct prb_asyncio_task *task = &w->t->tasks->list.items[index];

	if (task->name)
		prb_str_puts(&w->text, task->name);
	else
		prb_str_printf(&w->text, "%#llx", (unsigned long long)task->address);
}

/* The names of the tasks that it waits for, at most some. */
static void put_children(struct waiting *w)
{
	const struct prb_asyncio_task *task = w->task;

	for (size_t i = 0; i < task->children.count; i++) {
		if (i == NAMED_MAX) {
			prb_str_printf(&w->text, ", …+%zu", task->children.count - i);
			return;
		}
		prb_str_puts(&w->text, i ? ", " : " ");
		put_name(w, task->children.items[i]);
	}
}

static struct prb_error *put_tasks(struct waiting *w, const char *what)
{
	prb_str_puts(&w->text, what);
	if (w->task->children.count)
		prb_str_puts(&w->text, w->task->children.count > 1 ? " tasks" : " task");
	put_children(w);
	return NULL;
}

/* The time of a TimerHandle. */
static struct prb_error *set_deadline(struct waiting *w, uint64_t handle)
{
	uint64_t when;

	PRB_TRY(try_attribute(w, handle, "_when", &when));
	if (!when || !prb_repr_is(&w->t->r, when, "float"))
		return NULL;
	return prb_mem_read(w->t->r.mem, when + (uint64_t)w->t->r.layout->object_size,
			    &w->task->wakes_at, sizeof(w->task->wakes_at));
}

static struct prb_error *describe_sleep(struct waiting *w)
{
	uint64_t delay = find_local(w, "delay");

	PRB_TRY(set_deadline(w, find_local(w, "h")));
	prb_str_puts(&w->text, "sleep");
	if (!delay)
		return NULL;
	prb_str_putc(&w->text, '(');
	PRB_TRY(prb_object_repr(w->t->r.py, w->t->r.mem, delay, NULL, &w->text));
	prb_str_putc(&w->text, ')');
	return NULL;
}

static struct prb_error *describe_wait_for(struct waiting *w)
{
	PRB_TRY(set_deadline(w, find_local(w, "timeout_handle")));
	return put_tasks(w, "wait_for");
}

static struct prb_error *describe_wait(struct waiting *w)
{
	return put_tasks(w, "wait for");
}

static struct prb_error *describe_group(struct waiting *w)
{
	return put_tasks(w, "TaskGroup of");
}

/* "Event.wait of 0x7f…": locks, queues and servers are told apart by their address. */
static struct prb_error *describe_method(struct waiting *w)
{
	uint64_t self = find_local(w, "self");

	prb_str_puts(&w->text, w->frame->qualname);
	if (!strcmp(w->task->waits_kind, "lock") || !strcmp(w->task->waits_kind, "semaphore"))
		w->task->waits_on = self;
	if (self)
		prb_str_printf(&w->text, " of %#llx", (unsigned long long)self);
	return NULL;
}

static struct prb_error *put_descriptor(struct waiting *w, uint64_t number)
{
	int64_t fd;

	if (!number || !prb_repr_is(&w->t->r, number, "int"))
		return NULL;
	PRB_TRY(prb_repr_int(&w->t->r, number, &fd));
	prb_str_printf(&w->text, " on fd %lld", (long long)fd);
	return NULL;
}

static struct prb_error *describe_stream(struct waiting *w)
{
	uint64_t transport, fd;

	prb_str_puts(&w->text, w->frame->qualname);
	PRB_TRY(try_attribute(w, find_local(w, "self"), "_transport", &transport));
	PRB_TRY(try_attribute(w, transport, "_sock_fd", &fd));
	if (!fd)
		PRB_TRY(try_attribute(w, transport, "_fileno", &fd)); /* a pipe */
	return put_descriptor(w, fd);
}

/* The descriptor is the first member of a socket of _socket. */
static struct prb_error *describe_socket(struct waiting *w)
{
	const char *name = strrchr(w->frame->qualname, '.');
	uint64_t sock = find_local(w, "sock");
	uint32_t fd;

	prb_str_puts(&w->text, name ? name + 1 : w->frame->qualname);
	if (!sock)
		return NULL;
	PRB_TRY(prb_mem_read_u32(w->t->r.mem, sock + (uint64_t)w->t->r.layout->object_size, &fd));
	if (fd < INT32_MAX)
		prb_str_printf(&w->text, " on fd %u", fd);
	return NULL;
}

static const struct rule {
	const char *file;     /* of asyncio, without ".py" */
	const char *function; /* how its qualified name begins; "": all */
	const char *kind;
	struct prb_error *(*describe)(struct waiting *w);
} rules[] = {
	{"tasks", "sleep", "sleep", describe_sleep},
	{"tasks", "wait_for", "wait_for", describe_wait_for},
	{"tasks", "_wait", "wait", describe_wait},
	{"locks", "Event.", "event", describe_method},
	{"locks", "Condition.", "condition", describe_method},
	{"locks", "Semaphore.", "semaphore", describe_method},
	{"locks", "Barrier.", "barrier", describe_method},
	{"locks", "", "lock", describe_method},
	{"queues", "", "queue", describe_method},
	{"taskgroups", "TaskGroup.", "group", describe_group},
	{"streams", "", "stream", describe_stream},
	{"selector_events", "BaseSelectorEventLoop.sock_", "socket", describe_socket},
	{"base_subprocess", "", "subprocess", describe_method},
	{"subprocess", "", "subprocess", describe_method},
	{"base_events", "Server.", "server", describe_method},
};

/* Whether a path is that of a file of asyncio, wherever that is installed. */
static bool is_file(const char *path, const char *name)
{
	static const char folder[] = "asyncio/";
	const char *slash = strrchr(path, '/');
	size_t length = strlen(name);

	return slash && (size_t)(slash + 1 - path) >= sizeof(folder) - 1 &&
	       !strncmp(slash + 2 - sizeof(folder), folder, sizeof(folder) - 1) &&
	       !strncmp(slash + 1, name, length) && slash[1 + length] == '.';
}

static const struct rule *find_rule(const struct prb_asyncio_task_frame *frame)
{
	if (!frame->code || !frame->qualname)
		return NULL;
	for (size_t i = 0; i < PRB_ARRAY_SIZE(rules); i++)
		if (is_file(frame->code->file, rules[i].file) &&
		    !strncmp(frame->qualname, rules[i].function, strlen(rules[i].function)))
			return &rules[i];
	return NULL;
}

/* The innermost frame, without the __await__ of futures written in Python. */
static const struct prb_asyncio_task_frame *innermost(const struct prb_asyncio_task *task)
{
	size_t count = task->frames.count;

	if (count > 1 && task->frames.items[count - 1].code &&
	    is_file(task->frames.items[count - 1].code->file, "futures"))
		count--;
	return count ? &task->frames.items[count - 1] : NULL;
}

/* Without the variables there is still the function. */
static struct prb_error *read_locals(struct waiting *w)
{
	struct prb_error *err;

	if (!w->t->values)
		return NULL;
	err = prb_python_locals(w->t->r.py, w->t->r.mem, &w->frame->frame, &w->locals);
	if (!prb_error_catch(&err, PRB_ERROR_FAULT))
		prb_error_catch(&err, PRB_ERROR_BAD_DATA);
	return err;
}

static struct prb_error *describe_by_frame(struct waiting *w, bool *done)
{
	const struct rule *rule;

	*done = false;
	w->frame = innermost(w->task);
	rule = w->frame ? find_rule(w->frame) : NULL;
	if (!rule)
		return NULL;
	PRB_TRY(read_locals(w));
	*done = true;
	w->task->waits_kind = rule->kind;
	return rule->describe(w);
}

/* The future of a thread or process pool, which asyncio's future is chained to. */
static struct prb_error *visit_source(void *context, uint64_t object)
{
	struct waiting *w = context;
	uint64_t waiters, state;

	PRB_TRY(try_attribute(w, object, "_waiters", &waiters));
	PRB_TRY(try_attribute(w, object, "_state", &state));
	if (!waiters || !state || w->task->waits_kind)
		return NULL;
	w->task->waits_kind = "executor";
	prb_str_puts(&w->text, "executor, ");

	size_t start = w->text.length;

	PRB_TRY(prb_object_str(w->t->r.py, w->t->r.mem, state, NAMED_MAX * 4, &w->text));
	for (size_t i = start; i < w->text.length; i++)
		if (w->text.data[i] >= 'A' && w->text.data[i] <= 'Z')
			w->text.data[i] += 'a' - 'A';
	return NULL;
}

static struct prb_error *visit_callback(void *context, uint64_t callback)
{
	struct waiting *w = context;

	return prb_callback_each(w->t, callback, visit_source, w);
}

static struct prb_error *describe_by_future(struct waiting *w)
{
	struct prb_str name = {};
	struct prb_future future;
	struct prb_error *err;
	size_t known;

	PRB_TRY(prb_future_open(w->t, w->task->future, &future));
	if (future.kind == PRB_FUTURE_NONE)
		return prb_repr_bad(w->task->future, "awaited, but not a future");
	if (!prb_number_map_get(&w->t->plain, w->task->future, &known))
		PRB_TRY(prb_future_callbacks(w->t, &future, visit_callback, w));
	if (w->task->waits_kind)
		return NULL;
	if (!prb_number_map_put(&w->t->plain, w->task->future, 0))
		return prb_error_nomem();
	w->task->waits_kind = "future";
	err = prb_object_type_name(w->t->r.py, w->t->r.mem, w->task->future, &name);
	prb_str_printf(&w->text, "%s at %#llx", prb_str_text(&name),
		       (unsigned long long)w->task->future);
	prb_str_deinit(&name);
	return err;
}

static struct prb_error *is_gather(struct waiting *w, bool *ret)
{
	prb_auto_str struct prb_str name = {};

	PRB_TRY(prb_object_type_name(w->t->r.py, w->t->r.mem, w->task->future, &name));
	*ret = !strcmp(prb_str_text(&name), "_GatheringFuture");
	return NULL;
}

static struct prb_error *describe(struct waiting *w)
{
	size_t index;
	bool done;

	if (prb_asyncio_index(w->t, w->task->future, &index)) {
		w->task->waits_kind = "task";
		prb_str_puts(&w->text, "task ");
		put_name(w, index);
		return NULL;
	}
	PRB_TRY(is_gather(w, &done));
	if (done) {
		w->task->waits_kind = "gather";
		return put_tasks(w, "gather of");
	}
	PRB_TRY(describe_by_frame(w, &done));
	if (done)
		return NULL;
	if (w->task->children.count) { /* shield and the like */
		w->task->waits_kind = "task";
		return put_tasks(w, "a future of");
	}
	return describe_by_future(w);
}

/* A task that waits for nothing is about to run: for the first time, or on. */
static struct prb_error *describe_ready(struct waiting *w)
{
	const struct prb_asyncio_task *task = w->task;

	w->task->waits_kind = "ready";
	prb_str_puts(&w->text, task->frames.count == 1 && !task->frames.items[0].started
				       ? "its turn to start"
				       : "its turn to go on");
	return NULL;
}

/* The future may be done, and its task not woken yet. */
static struct prb_error *is_ready(struct waiting *w, bool *ret)
{
	enum prb_future_state state;
	struct prb_future future;

	*ret = true;
	if (!w->task->future)
		return NULL;
	PRB_TRY(prb_future_open(w->t, w->task->future, &future));
	if (future.kind == PRB_FUTURE_NONE)
		return prb_repr_bad(w->task->future, "awaited, but not a future");
	PRB_TRY(prb_future_state(w->t, &future, &state));
	*ret = state != PRB_FUTURE_PENDING;
	return NULL;
}

struct prb_error *prb_asyncio_task_describe_wait(struct prb_asyncio_reader *t,
						 struct prb_asyncio_task *task)
{
	struct waiting w = {.t = t, .task = task};
	bool ready;

	if (task->state != PRB_PY_TASK_PENDING || (task->error && !task->future))
		return NULL;

	struct prb_error *err = is_ready(&w, &ready);

	if (!err)
		err = ready ? describe_ready(&w) : describe(&w);
	if (!err && task->waits_kind) {
		task->waits_for = prb_str_take(&w.text);
		if (!task->waits_for)
			err = prb_error_nomem();
	}
	if (!task->waits_for)
		task->waits_kind = NULL;
	prb_py_locals_deinit(&w.locals);
	prb_str_deinit(&w.text);
	return err;
}

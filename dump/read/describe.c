/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dump/read/describe.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "target/core/core.h"
#include "target/proc/text.h"
#include "dump/read/death.h"
#include "dump/read/c_function.h"

/* A thread asleep in a system call shows its pc and sp without being stopped. */
static void take_registers(struct prb_reader *r, struct prb_reader_thread *thread,
			   const struct prb_task *task)
{
	if (!r->native || !task->pc || !task->sp || !r->target->live)
		return;
	/* Its debugger has told all of them. */
	if (r->target->held && thread->regs.known)
		return;
	thread->regs = (struct prb_regs){.machine = r->target->machine, .pc = task->pc};
	prb_regs_set(&thread->regs, prb_regs_sp(r->target->machine), task->sp);
	prb_target_note_registers(r->target, task->tid, &thread->regs);
}

static struct prb_error *set_wait(struct prb_reader *r, struct prb_reader_thread *thread,
				  const struct prb_wait *wait)
{
	struct prb_dump_thread *out = prb_reader_out(r, thread);

	thread->futex = wait->futex;
	free(out->waits_for);
	out->waits_for = NULL;
	if (!wait->call && !wait->what)
		return NULL;
	out->waits_for = wait->call && wait->what ? prb_format("%s: %s", wait->call, wait->what)
						  : strdup(wait->call ? wait->call : wait->what);
	return out->waits_for ? NULL : prb_error_nomem();
}

/* As prb_task_read_call() wants it: a thread outside of any system call. */
static struct prb_task no_call(const struct prb_task_watch *task)
{
	return (struct prb_task){.tid = task->tid, .state = task->state, .syscall = -1};
}

struct prb_error *prb_read_call(struct prb_reader *r, struct prb_reader_thread *thread)
{
	thread->call = no_call(thread->task);
	PRB_TRY(prb_task_read_call(r->target, &thread->call));
	take_registers(r, thread, &thread->call);
	return NULL;
}

struct prb_error *prb_read_wait(struct prb_reader *r, struct prb_reader_thread *thread,
				struct prb_mem *mem)
{
	struct prb_wait wait;

	if (r->options->no_waits || !thread->task)
		return NULL;
	PRB_TRY(prb_wait_describe(r->waits, mem, &thread->call, &wait));

	struct prb_error *err = set_wait(r, thread, &wait);
	prb_wait_deinit(&wait);
	return err;
}

static bool same_call(const struct prb_task *a, const struct prb_task *b)
{
	return a->state == b->state && a->in_syscall == b->in_syscall && a->syscall == b->syscall &&
	       a->sp == b->sp && !memcmp(a->args, b->args, sizeof(a->args));
}

struct prb_error *prb_read_moment(struct prb_reader *r, struct prb_reader_thread *thread,
				  const struct prb_stop *stop)
{
	struct prb_task before = thread->call;

	if (!thread->task)
		return NULL;
	/* One that SIGSTOP has stopped stays so. */
	if (stop && !stop->group_stop)
		thread->task->state = prb_stop_slept(stop) ? 'S' : 'R';
	thread->call = no_call(thread->task);
	if (r->options->no_waits)
		return NULL;
	PRB_TRY(prb_task_read_call(r->target, &thread->call));
	/* Some kernels show no call of a thread that stands. */
	if (stop && !thread->call.in_syscall)
		prb_stop_call(stop, &thread->call);
	return same_call(&thread->call, &before) ? NULL : prb_read_wait(r, thread, r->target->mem);
}

static bool is_within(uint64_t address, uint64_t start, size_t size)
{
	return start && address >= start && address - start < size;
}

/* A thread that sleeps on the GIL's own condition or mutex waits for the GIL. */
static bool waits_for_gil(const struct prb_reader_thread *thread)
{
	const struct prb_python *py = thread->py;
	const struct prb_layout *l = &py->layout;

	if (is_within(thread->futex, py->gil_cond, sizeof(pthread_cond_t)) ||
	    is_within(thread->futex, py->gil_mutex, sizeof(pthread_mutex_t)))
		return true;
	return thread->futex && thread->state.gil && l->gil_size > 0 &&
	       thread->futex >= thread->state.gil &&
	       thread->futex < thread->state.gil + (uint64_t)l->gil_size;
}

static const char *const read_names[] = {"idle", "stopped", "unstable"};

/* Several states may have no thread: then the state itself tells them apart. */
static void name_fact(struct prb_str *key, const char *what, const struct prb_reader_thread *thread,
		      const struct prb_dump_thread *out)
{
	if (thread->task)
		prb_str_printf(key, "%s:%d:%lld", what, out->tid, (long long)out->interpreter);
	else
		prb_str_printf(key, "%s:state:%llx", what,
			       (unsigned long long)thread->state.address);
}

/* For a snapshot: how the thread was read; and the frames that agreed, which no memory shows. */
static void remember(struct prb_reader *r, const struct prb_reader_thread *thread)
{
	const struct prb_dump_thread *out = prb_reader_out(r, thread);
	prb_auto_str struct prb_str key = {}, value = {};

	char state = thread->task ? thread->task->state : 0;

	name_fact(&key, "read", thread, out);
	prb_str_printf(&value, "%s %c %.3f", read_names[out->read], state ? state : '?',
		       out->pause_us);
	if (out->read == PRB_READ_UNSTABLE) {
		const struct prb_py_frame *f;

		prb_str_printf(&value, " %zu", thread->frames.list.count);
		prb_vec_each (f, &thread->frames.list)
			prb_str_printf(&value, " %llx %llx %llx %d %d %d %d",
				       (unsigned long long)f->address, (unsigned long long)f->code,
				       (unsigned long long)f->position, f->owner, f->entry, f->shim,
				       f->hidden);
	}
	prb_target_remember(r->target, prb_str_text(&key), prb_str_text(&value), value.length);
	prb_str_truncate(&key, 0);
	name_fact(&key, "switched", thread, out);
	if (thread->doubt == PRB_NATIVE_SWITCHED)
		prb_target_remember(r->target, prb_str_text(&key), "yes", strlen("yes"));
	prb_str_truncate(&key, 0);
	name_fact(&key, "error", thread, out);
	if (out->error)
		prb_target_remember(r->target, prb_str_text(&key), out->error, strlen(out->error));
}

static struct prb_error *recall_frames(const char *text, struct prb_py_frames *frames)
{
	unsigned long long address, code, position;
	int owner, entry, shim, hidden, used;
	size_t count;

	if (sscanf(text, "%zu%n", &count, &used) < 1)
		return NULL;
	for (text += used; count-- && sscanf(text, "%llx %llx %llx %d %d %d %d%n", &address, &code,
					     &position, &owner, &entry, &shim, &hidden, &used) == 7;
	     text += used) {
		struct prb_py_frame *frame = prb_vec_push(&frames->list);

		if (!frame)
			return prb_error_nomem();
		*frame = (struct prb_py_frame){address, code, position, (int8_t)owner,
					       entry,	shim, hidden};
	}
	return NULL;
}

struct prb_error *prb_read_recorded(struct prb_reader *r, struct prb_reader_thread *thread)
{
	struct prb_dump_thread *out = prb_reader_out(r, thread);
	prb_auto_str struct prb_str key = {}, value = {}, switched = {};
	char kind[16], state;
	double pause;
	int used;

	name_fact(&key, "read", thread, out);
	if (!prb_target_recall(r->target, prb_str_text(&key), &value) ||
	    sscanf(prb_str_text(&value), "%15s %c %lf%n", kind, &state, &pause, &used) != 3)
		return NULL;
	for (size_t i = 0; i < PRB_ARRAY_SIZE(read_names); i++)
		if (!strcmp(kind, read_names[i]))
			out->read = (enum prb_read_kind)i;
	if (thread->task)
		thread->task->state = state == '?' ? 0 : state;
	out->pause_us = pause;
	thread->recorded = true;
	prb_str_truncate(&key, 0);
	name_fact(&key, "switched", thread, out);
	if (prb_target_recall(r->target, prb_str_text(&key), &switched))
		thread->doubt = PRB_NATIVE_SWITCHED;
	if (out->read == PRB_READ_UNSTABLE)
		return recall_frames(prb_str_text(&value) + used, &thread->frames);
	return NULL;
}

/* What went wrong when it was read, which replay cannot know. */
static struct prb_error *recall_error(struct prb_reader *r, const struct prb_reader_thread *thread,
				      struct prb_dump_thread *out)
{
	prb_auto_str struct prb_str key = {}, error = {};

	name_fact(&key, "error", thread, out);
	if (!prb_target_recall(r->target, prb_str_text(&key), &error))
		return NULL;
	return prb_str_copy(prb_str_text(&error), &out->error);
}

/* Threads are read one after the other: of two that had it then, the first is its holder. */
static bool has_holder(const struct prb_reader *r, const struct prb_reader_thread *thread)
{
	const struct prb_reader_thread *other;

	for (other = r->threads.items; other < thread; other++)
		if (other->py == thread->py && other->state.gil == thread->state.gil &&
		    other->state.holds_gil)
			return true;
	return false;
}

struct prb_error *prb_read_thread_state(struct prb_reader *r, struct prb_reader_thread *thread)
{
	struct prb_dump_thread *out = prb_reader_out(r, thread);
	bool holds = thread->py && thread->state.holds_gil && !has_holder(r, thread);

	out->state = thread->task ? prb_state_name(thread->task->state) : "threadless";
	out->gil = holds ? "holds" : thread->py && waits_for_gil(thread) ? "waits" : NULL;
	out->gc = holds && thread->state.gc;
	remember(r, thread);
	if (thread->recorded)
		PRB_TRY(recall_error(r, thread, out));
	PRB_TRY(prb_read_c_function(r, thread));
	return prb_str_copy(thread->task ? thread->task->name : NULL, &out->os_name);
}

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

	/* threading's own table may be in the middle of a change: then threads have no names. */
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

/* The names of one interpreter's threads; *nameless counts those that got none. */
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

/* The target runs on while its table of names is read, so a name that is missing is looked for
 * again, a few times; threads that C code made have none. */
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

/* A snapshot keeps the names, whichever look at the table found them. */
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

static struct prb_error *split_argv(const struct prb_str *cmdline, struct prb_dump *dump)
{
	size_t end = prb_text_command_length(cmdline->data, cmdline->length);

	for (size_t at = 0; at < end;) {
		char **slot = prb_vec_push(&dump->argv);

		if (!slot)
			return prb_error_nomem();
		*slot = strdup(cmdline->data + at);
		if (!*slot)
			return prb_error_nomem();
		at += strlen(cmdline->data + at) + 1;
	}
	return NULL;
}

static struct prb_error *describe_command(struct prb_reader *r)
{
	prb_auto_str struct prb_str exe = {}, cmdline = {};

	prb_error_destroy(prb_target_read_link(r->target, &exe, "exe"));
	PRB_TRY(prb_str_copy(prb_str_text(&exe), &r->dump->exe));
	prb_error_destroy(prb_target_read_file(r->target, &cmdline, "cmdline"));
	return split_argv(&cmdline, r->dump);
}

static struct prb_error *describe_exception(struct prb_reader *r)
{
	const struct prb_core_info *core = prb_core_info(r->target);

	if (!core || !core->exception)
		return NULL;
	r->dump->exception = strndup(core->exception, core->exception_length);
	return r->dump->exception ? NULL : prb_error_nomem();
}

struct prb_error *prb_read_process(struct prb_reader *r, struct prb_pythons *pythons)
{
	struct prb_dump *dump = r->dump;
	const struct prb_python *py = pythons->list.items[0];

	dump->kind = r->target->kind;
	dump->partial = r->target->partial;
	dump->pid = r->target->pid;
	dump->timestamp = r->target->time;
	dump->death = prb_dump_death(r->target);
	PRB_TRY(describe_exception(r));
	if (!r->options->no_command)
		PRB_TRY(describe_command(r));
	dump->free_threaded = py->layout.free_threaded;
	dump->debug_build = py->layout.debug_build;
	dump->gil_known = !py->layout.free_threaded &&
			  (py->layout.behaviour->gil != PRB_GIL_STATICS || py->tstate_current);
	dump->layout = py->layout.source;
	PRB_TRY(prb_str_copy(py->version, &dump->python_version));
	return prb_str_copy(prb_module_build_id(py->module), &dump->build_id);
}

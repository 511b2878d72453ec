/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dump/read/python_locks.h"

#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "python/repr/core/repr.h"
#include "python/runtime/locks.h"
#include "dump/model/program_frame.h"
#include "dump/read/lock_owners.h"
#include "dump/read/method_self.h"
#include "dump/read/thread_names.h"
#include "dump/tasks/thread_of_state.h"

/* Modules that wait on behalf of their callers: the call into them is shown as the reason. */
static const char *const waiting_modules[] = {
	"threading",
	"queue",
	"concurrent.futures._base",
	"concurrent.futures.thread",
	"concurrent.futures.process",
	"multiprocessing.connection",
	"multiprocessing.managers",
	"multiprocessing.pool",
	"multiprocessing.queues",
	"multiprocessing.synchronize",
	"importlib._bootstrap",
	"torch.distributed.distributed_c10d",
	"torch.utils.data.dataloader",
	"torch.utils.data._utils.pin_memory",
};

/* Functions of those modules that run other code's tasks: callers beyond them do not matter. */
static const struct {
	const char *module, *name;
} runners[] = {
	{"threading", "Thread.run"},
	{"threading", "Thread._bootstrap"},
	{"threading", "Thread._bootstrap_inner"},
	{"concurrent.futures.thread", "_WorkItem.run"},
	{"concurrent.futures.thread", "WorkerContext.run"},
	{"concurrent.futures.process", "_process_worker"},
	{"multiprocessing.pool", "worker"},
	{"multiprocessing.managers", "Server.serve_client"},
};

static bool is_waiting_module(const char *module)
{
	for (size_t i = 0; module && i < PRB_ARRAY_SIZE(waiting_modules); i++)
		if (!strcmp(module, waiting_modules[i]))
			return true;
	return false;
}

static const char *name_of(const struct prb_dump_frame *frame)
{
	return frame->qualname ? frame->qualname : frame->func;
}

static bool is_runner(const struct prb_dump_frame *frame)
{
	for (size_t i = 0; name_of(frame) && i < PRB_ARRAY_SIZE(runners); i++)
		if (!strcmp(frame->module, runners[i].module) &&
		    !strcmp(name_of(frame), runners[i].name))
			return true;
	return false;
}

/*
 * The outermost of the library's frames at the inner end: Queue.get rather than Condition.wait.
 * NULL if the innermost Python frame is the user's, or runs a C function for the user.
 */
static const struct prb_dump_frame *library_call(const struct prb_dump_thread *out)
{
	const struct prb_dump_frame *frame, *call = NULL;

	prb_vec_each (frame, &out->frames) {
		if (frame->kind != PRB_FRAME_PYTHON)
			continue;
		if (!is_waiting_module(frame->module) || is_runner(frame))
			break;
		call = frame;
	}
	return call;
}

/* A function outside of a class gets its module's name. */
static char *describe_call(const struct prb_dump_frame *call)
{
	const char *name = name_of(call);

	if (!name || strchr(name, '.'))
		return prb_format("futex: waiting in %s", name ? name : call->module);
	return prb_format("futex: waiting in %s.%s", call->module, name);
}

/* Number and name of the thread @p pthread; 0 and NULL if unknown. */
static struct prb_error *find_owner(struct prb_reader *r, const struct prb_reader_thread *waiting,
				    struct prb_view *view, uint64_t pthread, pid_t *ret,
				    char **name)
{
	struct prb_reader_thread *thread;

	*name = NULL;
	prb_vec_each (thread, &r->threads) {
		const struct prb_dump_thread *out = prb_reader_out(r, thread);

		if (!thread->py || thread->self != pthread)
			continue;
		*ret = out->tid;
		return prb_str_copy(out->name, name);
	}

	pid_t inner = prb_pthread_tid(prb_view_mem(view), &r->tasks, pthread);
	struct prb_task_watch *task = inner ? prb_tasks_find_inner(&r->tasks, inner) : NULL;

	*ret = task ? task->tid : 0;
	return prb_read_thread_name(waiting->py, view, waiting->state.interp, pthread, name);
}

struct locks {
	struct prb_reader *reader;
	struct prb_view *view;
	struct prb_lock_owners *owners; /* NULL until a thread waits for a lock */
	pid_t owner;			/* of the lock that is explained; 0: not known */
	bool joins;			/* it is no lock: `owner` is to end */
	bool alone;			/* nobody else can release it */
	enum prb_wants wants;
	bool orphaned; /* it names an owner that does not exist */
};

static struct prb_error *find_insiders(struct locks *locks)
{
	return locks->owners ? NULL
			     : prb_lock_owners_create(locks->reader, locks->view, &locks->owners);
}

/* A plain lock: its holder is known by what its thread is inside of. */
static struct prb_error *describe_plain(struct locks *locks, const struct prb_reader_thread *thread,
					const struct prb_py_lock *lock, struct prb_str *s)
{
	prb_auto_str struct prb_str holder = {};

	if (lock->held) {
		PRB_TRY(find_insiders(locks));
		PRB_TRY(prb_lock_owners_put(locks->owners, thread, lock->address, &locks->owner,
					    &holder));
	}
	if (holder.failed)
		return prb_error_nomem();
	if (locks->owner)
		prb_str_puts(s, "futex: waiting for a Lock");
	else
		prb_str_printf(s, "futex: waiting for a lock at %#llx",
			       (unsigned long long)lock->address);
	prb_str_puts(s, prb_str_text(&holder));
	return NULL;
}

/* True if the addresses of threads lead to their numbers, in this C library. */
static bool knows_descriptors(struct prb_reader *r, struct prb_mem *mem)
{
	const struct prb_reader_thread *thread;

	prb_vec_each (thread, &r->threads)
		if (thread->task && thread->self &&
		    prb_pthread_tid(mem, &r->tasks, thread->self) != thread->task->inner_tid)
			return false;
	return true;
}

/*
 * True if the owner of an RLock is surely no thread of the process: it has ended, or held the lock
 * when another one forked. Threads may have been made since the others were listed.
 */
static struct prb_error *has_no_owner(struct prb_reader *r, struct prb_view *view,
				      const struct prb_reader_thread *thread,
				      const struct prb_py_lock *lock, bool *ret)
{
	struct prb_mem *mem = r->target->mem;
	struct prb_tasks now = {};
	struct prb_py_lock again;

	*ret = lock->owner && knows_descriptors(r, prb_view_mem(view));
	if (!*ret || !r->target->moves)
		return NULL;

	struct prb_error *err =
		prb_python_lock(thread->py, mem, thread->frames.list.items, thread->futex, &again);
	if (!err)
		err = prb_tasks_create(r->target, &now);
	*ret = !err && again.address == lock->address && again.owner == lock->owner &&
	       !prb_pthread_tid(mem, &now, lock->owner);
	prb_tasks_deinit(&now);
	return prb_error_tolerate(err, NULL);
}

/* True if no thread of the interpreter has ended, and @p pthread is the id of one of them. */
static struct prb_error *all_live(struct prb_mem *mem, const struct prb_reader_thread *thread,
				  uint64_t pthread, bool *ret)
{
	struct prb_py_threads before = {}, after = {};
	const struct prb_py_thread *state;
	const struct prb_interp *interp;
	int64_t count = 0, first = -1, last = -2;
	unsigned same = 0;
	struct prb_error *err = prb_python_threads(thread->py, mem, &before);

	if (!err)
		err = prb_python_threads(thread->py, mem, &after);
	prb_vec_each (interp, &before.interps)
		if (interp->address == thread->state.interp)
			first = interp->thread_ids;
	prb_vec_each (interp, &after.interps)
		if (interp->address == thread->state.interp)
			last = interp->thread_ids;
	prb_vec_each (state, &before.list) {
		count += state->interp == thread->state.interp;
		same += state->pthread == pthread;
	}
	*ret = !err && same == 1 && first == last && count == first;
	prb_py_threads_deinit(&before);
	prb_py_threads_deinit(&after);
	return prb_error_tolerate(err, NULL);
}

/*
 * True if the thread that is named is the one that took the lock: the id of a thread that has ended
 * is given to a later one.
 */
static struct prb_error *is_taker(struct locks *locks, const struct prb_reader_thread *thread,
				  const struct prb_py_lock *lock, bool *ret)
{
	PRB_TRY(find_insiders(locks));
	*ret = prb_lock_owners_is_inside(locks->owners, lock->address, lock->owner);
	return *ret ? NULL : all_live(locks->reader->target->mem, thread, lock->owner, ret);
}

static struct prb_error *describe_rlock(struct locks *locks, const struct prb_reader_thread *thread,
					const struct prb_py_lock *lock, struct prb_str *s)
{
	prb_auto_free char *name = NULL;
	pid_t owner = 0;
	bool taker;

	if (lock->owner)
		PRB_TRY(find_owner(locks->reader, thread, locks->view, lock->owner, &owner, &name));
	if (!owner) {
		bool none;

		PRB_TRY(has_no_owner(locks->reader, locks->view, thread, lock, &none));
		locks->orphaned = none;
		prb_str_printf(s, "futex: waiting for an RLock at %#llx%s",
			       (unsigned long long)lock->address,
			       none ? " that no thread of this process holds: its owner has "
				      "ended, or held it at a fork"
				    : "");
		return NULL;
	}
	PRB_TRY(is_taker(locks, thread, lock, &taker));
	if (!taker) {
		prb_str_printf(s,
			       "futex: waiting for an RLock at %#llx, holder unknown; possible: "
			       "%d%s%s, or a thread that has ended and had the same id",
			       (unsigned long long)lock->address, owner, name ? " " : "",
			       name ? name : "");
		return NULL;
	}
	locks->owner = owner;
	locks->alone = true;
	prb_str_printf(s, "futex: waiting for an RLock held by %d%s%s", owner, name ? " " : "",
		       name ? name : "");
	return prb_lock_owners_put_place(locks->owners, lock->address, lock->owner, s);
}

/*
 * A lock of multiprocessing is known if a thread of this process holds it: it has noted that it
 * took it, and either nobody else can release it or the thread is inside of it.
 */
static struct prb_error *describe_shared(struct locks *locks,
					 const struct prb_reader_thread *thread,
					 const struct prb_py_lock *lock, char **ret)
{
	prb_auto_str struct prb_str s = {}, holder = {}, plain = {};
	prb_auto_free char *name = NULL;
	pid_t owner = 0, inside = 0;
	bool taker;

	if (!lock->held || !lock->owner)
		return NULL;
	PRB_TRY(find_owner(locks->reader, thread, locks->view, lock->owner, &owner, &name));
	if (!owner)
		return NULL;
	PRB_TRY(is_taker(locks, thread, lock, &taker));
	if (!taker)
		return NULL;
	prb_str_printf(&holder, " held by %d%s%s", owner, name ? " " : "", name ? name : "");
	if (lock->recursive) {
		prb_str_printf(&s, "futex: waiting for an RLock%s", prb_str_text(&holder));
		PRB_TRY(prb_lock_owners_put_place(locks->owners, lock->address, lock->owner, &s));
	} else {
		PRB_TRY(prb_lock_owners_put(locks->owners, thread, lock->address, &inside, &plain));
		if (inside != owner)
			return NULL;
		prb_str_printf(&s, "futex: waiting for a Lock%s", prb_str_text(&plain));
	}
	locks->owner = owner;
	locks->alone = lock->recursive;
	*ret = prb_str_take(&s);
	return *ret ? NULL : prb_error_nomem();
}

static struct prb_error *describe_lock(struct locks *locks, const struct prb_reader_thread *thread,
				       const struct prb_py_lock *lock, char **ret)
{
	prb_auto_str struct prb_str s = {};

	if (!strcmp(lock->type, "SimpleQueue"))
		prb_str_puts(&s, "futex: waiting in SimpleQueue.get");
	else if (lock->type[0] == 'R')
		PRB_TRY(describe_rlock(locks, thread, lock, &s));
	else
		PRB_TRY(describe_plain(locks, thread, lock, &s));
	if (strcmp(lock->type, "SimpleQueue") != 0)
		locks->wants = PRB_WANTS_LOCK;
	*ret = prb_str_take(&s);
	return *ret ? NULL : prb_error_nomem();
}

/* True if the thread may wait for a Python object that can be searched. */
static bool may_have_lock(struct prb_reader *r, const struct prb_reader_thread *thread)
{
	return thread->py && thread->futex && thread->frames.list.count &&
	       prb_reader_out(r, thread)->read != PRB_READ_UNSTABLE;
}

static struct prb_error *try_locks(void *context)
{
	struct locks *locks = context;
	struct prb_reader_thread *thread;

	prb_vec_each (thread, &locks->reader->threads) {
		struct prb_py_lock lock;

		if (!may_have_lock(locks->reader, thread))
			continue;
		struct prb_error *err =
			prb_python_lock(thread->py, prb_view_mem(locks->view),
					thread->frames.list.items, thread->futex, &lock);
		if (err && err->code == PRB_ERROR_NOMEM)
			return err;
		prb_error_destroy(err);
	}
	return NULL;
}

/* `with condition:` waits for the lock of it, also within a call of Queue. */
static bool takes_lock(const struct prb_dump_frame *innermost)
{
	return name_of(innermost) && (!strcmp(name_of(innermost), "Condition.__enter__") ||
				      !strcmp(name_of(innermost), "__enter__"));
}

static struct prb_error *find_joined(struct locks *locks, const struct prb_reader_thread *thread,
				     pid_t *ret, char **name)
{
	struct prb_mem *mem = prb_view_mem(locks->view);
	uint64_t object, number;
	int64_t pthread;

	PRB_TRY(prb_read_method_self(thread, mem, "join", "/threading.py", &object));
	if (!object)
		return NULL;
	PRB_TRY(prb_object_attribute(thread->py, mem, object, "_ident", &number));
	PRB_TRY(prb_object_int(thread->py, mem, number, &pthread));
	return find_owner(locks->reader, thread, locks->view, (uint64_t)pthread, ret, name);
}

/* The end of a thread, by what threading.Thread notes of it. Of a thread that has run on, nothing.
 */
static struct prb_error *describe_join(struct locks *locks, const struct prb_reader_thread *thread,
				       const struct prb_dump_frame *call, char **ret)
{
	struct prb_reader *r = locks->reader;
	prb_auto_free char *name = NULL, *text = NULL;
	bool failed = false;
	pid_t joined = 0;

	PRB_TRY(prb_error_tolerate(find_joined(locks, thread, &joined, &name), &failed));
	if (failed || !joined || joined == prb_reader_out(r, thread)->tid ||
	    (r->target->moves && !(thread->task && prb_task_slept(&r->tasks, thread->task, false))))
		return NULL;
	locks->owner = joined;
	locks->joins = locks->alone = true;
	text = call ? describe_call(call) : strdup("futex: waiting in Thread.join");
	*ret = text ? prb_format("%s for thread %d%s%s", text, (int)joined, name ? " " : "",
				 name ? name : "")
		    : NULL;
	return *ret ? NULL : prb_error_nomem();
}

struct import_lock {
	uint64_t owner; /* thread; 0: none */
	struct prb_str module;
};

static struct prb_error *read_import_lock(struct locks *locks,
					  const struct prb_reader_thread *thread,
					  struct import_lock *ret)
{
	struct prb_mem *mem = prb_view_mem(locks->view);
	uint64_t object, value;
	int64_t owner;

	PRB_TRY(prb_read_method_self(thread, mem, "acquire", "<frozen importlib._bootstrap>",
				     &object));
	if (!object)
		return NULL;
	PRB_TRY(prb_object_attribute(thread->py, mem, object, "owner", &value));
	PRB_TRY(prb_object_int(thread->py, mem, value, &owner));
	PRB_TRY(prb_object_attribute(thread->py, mem, object, "name", &value));
	PRB_TRY(prb_object_str(thread->py, mem, value, 64, &ret->module));
	ret->owner = (uint64_t)owner;
	return NULL;
}

/* The lock of a module that is being imported, by the owner that it names. */
static struct prb_error *describe_import(struct locks *locks,
					 const struct prb_reader_thread *thread, char **ret)
{
	struct prb_reader *r = locks->reader;
	prb_auto_str struct prb_str s = {};
	prb_auto_free char *name = NULL;
	struct import_lock lock = {};
	bool failed = false, live = false;
	pid_t owner = 0;
	struct prb_error *err = prb_error_tolerate(read_import_lock(locks, thread, &lock), &failed);

	if (!err && !failed && lock.owner)
		err = find_owner(r, thread, locks->view, lock.owner, &owner, &name);
	if (!err && owner && owner != prb_reader_out(r, thread)->tid &&
	    (!r->target->moves ||
	     (thread->task && prb_task_slept(&r->tasks, thread->task, false)))) {
		/* The id of a thread that has ended may be that of another one by now. */
		err = all_live(r->target->mem, thread, lock.owner, &live);
		prb_str_puts(&s, "futex: waiting for the import lock of ");
		prb_text_escape(&s, prb_str_text(&lock.module));
		prb_str_printf(&s, " held by %d%s%s", (int)owner, name ? " " : "",
			       name ? name : "");
		locks->owner = owner;
		locks->alone = live;
		locks->wants = PRB_WANTS_LOCK;
	}
	s.failed = s.failed || lock.module.failed;
	prb_str_deinit(&lock.module);
	PRB_TRY(err);
	*ret = s.length || s.failed ? prb_str_take(&s) : NULL;
	return s.failed ? prb_error_nomem() : NULL;
}

/* Describes a wait inside the library by its call. For a semaphore, also names its holders. */
static struct prb_error *explain_call(struct locks *locks, const struct prb_reader_thread *thread,
				      const struct prb_dump_frame *call, char **ret)
{
	prb_auto_str struct prb_str s = {};

	if (name_of(call) &&
	    (!strcmp(name_of(call), "Semaphore.acquire") || !strcmp(name_of(call), "acquire"))) {
		PRB_TRY(find_insiders(locks));
		PRB_TRY(prb_lock_owners_put_semaphore(locks->owners, thread, &s));
		locks->wants = s.length ? PRB_WANTS_SEMAPHORE : PRB_WANTS_SIGNAL;
	}
	*ret = s.length ? prb_str_take(&s) : describe_call(call);
	return *ret ? NULL : prb_error_nomem();
}

/* *ret stays NULL if no more is known than the kernel tells. */
static struct prb_error *explain_lock(struct locks *locks, const struct prb_reader_thread *thread,
				      const struct prb_dump_frame *call, char **ret)
{
	const struct prb_dump_frame *innermost =
		prb_dump_innermost(prb_reader_out(locks->reader, thread));
	struct prb_py_lock lock;
	struct prb_error *err = prb_python_lock(thread->py, prb_view_mem(locks->view),
						thread->frames.list.items, thread->futex, &lock);

	if (err && err->code == PRB_ERROR_NOMEM)
		return err;
	if (err)
		lock = (struct prb_py_lock){};
	prb_error_destroy(err);
	if (lock.type && !strcmp(lock.type, "SemLock")) {
		PRB_TRY(describe_shared(locks, thread, &lock, ret));
		lock = (struct prb_py_lock){};
	}
	if (!*ret && !lock.owner)
		PRB_TRY(describe_import(locks, thread, ret));
	if (!*ret && !lock.owner)
		PRB_TRY(describe_join(locks, thread, call, ret));
	if (*ret)
		return NULL;
	if (call && !lock.owner && !(lock.held && takes_lock(innermost)))
		return explain_call(locks, thread, call, ret);
	return lock.type ? describe_lock(locks, thread, &lock, ret) : NULL;
}

/* The kernel knows only an address; Python knows which thread holds the lock there. */
static void note_enders(struct locks *locks, struct prb_dump_thread *out)
{
	struct prb_enders *enders = &out->enders;

	if (out->gil && !strcmp(out->gil, "waits"))
		*enders = (struct prb_enders){};
	if (!locks->owner)
		return;
	*enders = (struct prb_enders){
		.kind = locks->joins ? "thread" : "lock",
		.tid = locks->owner,
		.alone = locks->alone,
		.pids = {locks->reader->target->pid},
		.count = 1,
		.all = true,
		.certain = true,
		.likely = true,
		.endless = enders->endless,
	};
}

static struct prb_error *explain(struct locks *locks, struct prb_reader_thread *thread)
{
	struct prb_dump_thread *out = prb_reader_out(locks->reader, thread);
	char *text = NULL;

	locks->owner = 0;
	locks->joins = locks->alone = locks->orphaned = false;
	locks->wants = PRB_WANTS_NOTHING;

	if (!may_have_lock(locks->reader, thread))
		return NULL;
	if (out->gil && !strcmp(out->gil, "waits")) {
		text = strdup("futex: waiting for the GIL");
	} else {
		PRB_TRY(explain_lock(locks, thread, library_call(out), &text));
		if (!text)
			return NULL;
	}
	if (!text)
		return prb_error_nomem();
	free(out->waits_for);
	out->waits_for = text;
	out->wants = locks->wants;
	out->orphaned = locks->orphaned;
	note_enders(locks, out);
	return NULL;
}

struct prb_error *prb_python_locks_explain(struct prb_reader *r, struct prb_view *view)
{
	struct locks locks = {.reader = r, .view = view};
	struct prb_reader_thread *thread;
	struct prb_error *err = prb_view_gather(view, try_locks, &locks);

	prb_vec_each (thread, &r->threads) {
		if (err)
			break;
		err = explain(&locks, thread);
	}
	if (!err && r->options->all_enders)
		err = find_insiders(&locks);
	if (!err && r->options->all_enders)
		err = prb_lock_owners_note_shared(locks.owners);
	prb_lock_owners_destroy(locks.owners);
	return err;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dump/tasks/thread_of_state.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "target/task.h"
#include "dump/tasks/thread_of_state_private.h"

enum {
	GLIBC_FIRST_BLOCK = 0x40, /* specific_1stblock, from `tid` */
	GLIBC_BLOCKS = 0x240,	  /* specific, from `tid` */
	GLIBC_BLOCK_KEYS = 32,
	GLIBC_KEY_SIZE = 16,
	MUSL_TSD = 0x50, /* tsd, from `tid` */
	MUSL_KEYS = 128,
	MAX_KEYS = 1024,
	STATIC_TLS = 4096,	 /* bytes of thread-local variables that are searched */
	SCAN_LENGTH = 256 << 10, /* bytes of a C stack that are searched */
	SCAN_FRAMES = 4,
};

static const char *const reasons[] = {
	"no thread uses it",
	"another thread has made it, and this Python does not note which thread runs it",
	"its thread has ended, and the process goes on without it",
	"the thread that keeps it sleeps while another one runs it",
};

/* Offsets of `tid` in struct pthread: glibc (x86_64, aarch64), musl. */
static const uint16_t pthread_tid_offsets[] = {0x2d0, 0xd0, 0x30, 0x38};

pid_t prb_pthread_tid_at(struct prb_mem *mem, struct prb_tasks *tasks, uint64_t pthread,
			 uint32_t *ret_offset)
{
	for (size_t i = 0; i < PRB_ARRAY_SIZE(pthread_tid_offsets); i++) {
		uint32_t tid;
		prb_auto_error struct prb_error *err =
			prb_mem_read_u32(mem, pthread + pthread_tid_offsets[i], &tid);

		if (!err && tid && tid < INT32_MAX && prb_tasks_find_inner(tasks, (pid_t)tid)) {
			*ret_offset = pthread_tid_offsets[i];
			return (pid_t)tid;
		}
	}
	return 0;
}

pid_t prb_pthread_tid(struct prb_mem *mem, struct prb_tasks *tasks, uint64_t pthread)
{
	uint32_t ignored;

	return prb_pthread_tid_at(mem, tasks, pthread, &ignored);
}

#define FACT "runs:%llx" /* with the address of the state */

struct search {
	struct prb_thread_finder *finder;
	struct prb_python *py;
	struct prb_view *view;
	struct prb_mem *mem;
	struct prb_py_threads *states;
	struct prb_found_thread *ret;
	int64_t key; /* autoTSSkey; -1 if unknown or not used */
	size_t proven;
};

/* Ignores memory that cannot be read or is invalid. */
static struct prb_error *tolerate(struct prb_error *err)
{
	if (!err || err->code == PRB_ERROR_NOMEM || err->code == PRB_ERROR_NO_PROCESS)
		return err;
	prb_error_destroy(err);
	return NULL;
}

void prb_thread_finder_deinit(struct prb_thread_finder *finder)
{
	prb_vec_free(&finder->known);
}

struct prb_error *prb_thread_finder_descriptor(struct prb_thread_finder *o, struct prb_mem *mem,
					       uint64_t self, struct prb_descriptor **ret)
{
	struct prb_descriptor *d;
	struct prb_task_watch *task;
	uint32_t offset;
	pid_t tid;

	*ret = NULL;
	prb_vec_each (d, &o->known)
		if (d->self == self) {
			*ret = d;
			return NULL;
		}
	tid = prb_pthread_tid_at(mem, o->tasks, self, &offset);
	task = tid ? prb_tasks_find_inner(o->tasks, tid) : NULL;
	if (!task || prb_task_has_ended(task))
		return NULL;
	d = prb_vec_push(&o->known);
	if (!d)
		return prb_error_nomem();
	*d = (struct prb_descriptor){.self = self, .tid_offset = offset, .task = task};
	*ret = d;
	return NULL;
}

/* Reads the key, if the runtime says that it exists. */
static struct prb_error *read_key(struct search *s)
{
	const struct prb_layout *l = &s->py->layout;
	uint64_t at = 0;
	uint32_t key, made = 1;

	s->key = -1;
	if (s->py->runtime && l->runtime_auto_key > 4)
		at = s->py->runtime + (uint64_t)l->runtime_auto_key;
	else if (!s->py->runtime)
		at = s->py->auto_key;
	if (!at)
		return NULL;
	if (s->py->runtime) /* Py_tss_t: _is_initialized and _key */
		PRB_TRY(prb_mem_read_u32(s->mem, at - sizeof(made), &made));
	PRB_TRY(prb_mem_read_u32(s->mem, at, &key));
	if (made == 1 && key < MAX_KEYS)
		s->key = key;
	return NULL;
}

/* Address of a thread's value of the key; *ret is 0 if it has none. */
static struct prb_error *find_slot(struct search *s, const struct prb_descriptor *d, uint64_t *ret)
{
	uint64_t tid = d->self + d->tid_offset, key = (uint64_t)s->key, block;

	*ret = 0;
	if (prb_descriptor_is_musl(d)) {
		PRB_TRY(prb_mem_read_u64(s->mem, tid + MUSL_TSD, &block));
		if (block && key < MUSL_KEYS)
			*ret = block + key * sizeof(uint64_t);
		return NULL;
	}
	if (key < GLIBC_BLOCK_KEYS)
		block = tid + GLIBC_FIRST_BLOCK;
	else
		PRB_TRY(prb_mem_read_u64(
			s->mem, tid + GLIBC_BLOCKS + key / GLIBC_BLOCK_KEYS * sizeof(uint64_t),
			&block));
	if (block) /* struct pthread_key_data: seq and data */
		*ret = block + key % GLIBC_BLOCK_KEYS * GLIBC_KEY_SIZE + sizeof(uint64_t);
	return NULL;
}

/* The variables lie directly below the descriptor (x86_64), or above the thread pointer. */
static struct prb_error *find_variable(struct search *s, const struct prb_descriptor *d,
				       uint64_t state, uint64_t *ret)
{
	uint64_t words[STATIC_TLS / sizeof(uint64_t)];
	uint64_t start = s->finder->target->machine == EM_X86_64 ? d->self - sizeof(words)
								 : d->self + d->tid_offset;

	*ret = 0;
	PRB_TRY(prb_mem_read(s->mem, start, words, sizeof(words)));
	for (size_t i = 0; i < PRB_ARRAY_SIZE(words); i++)
		if (words[i] == state) {
			*ret = start + i * sizeof(uint64_t);
			return NULL;
		}
	return NULL;
}

/* Address at which the thread keeps @p state; 0 if it does not. */
static struct prb_error *find_kept(struct search *s, const struct prb_descriptor *d, uint64_t state,
				   uint64_t *ret)
{
	struct prb_error *err;
	uint64_t value = 0;

	*ret = 0;
	if (s->py->layout.behaviour->state_in_variable)
		return tolerate(find_variable(s, d, state, ret));
	if (s->key < 0)
		return NULL;
	err = find_slot(s, d, ret);
	if (!err && *ret)
		err = prb_mem_read_u64(s->mem, *ret, &value);
	if (err || value != state)
		*ret = 0;
	return tolerate(err);
}

static void settle(struct search *s, size_t index, const struct prb_descriptor *d, uint64_t kept_at)
{
	s->ret[index] =
		(struct prb_found_thread){.task = d->task, .self = d->self, .kept_at = kept_at};
}

/* Settles states kept by the thread that made them, which is true of nearly all. */
static struct prb_error *ask_makers(struct search *s)
{
	s->proven = 0;
	for (size_t i = 0; i < s->states->list.count; i++) {
		const struct prb_py_thread *state = &s->states->list.items[i];
		struct prb_descriptor *d;
		uint64_t kept;

		PRB_TRY(prb_thread_finder_descriptor(s->finder, s->mem, state->pthread, &d));
		if (!d)
			continue;
		PRB_TRY(find_kept(s, d, state->address, &kept));
		if (kept)
			settle(s, i, d, kept);
		s->proven += kept != 0;
	}
	return NULL;
}

static struct prb_error *try_makers(void *context)
{
	struct search *s = context;

	PRB_TRY(tolerate(read_key(s)));
	return ask_makers(s);
}

static struct prb_error *ask_all(struct search *s, size_t index)
{
	const struct prb_descriptor *d;
	uint64_t kept;

	prb_vec_each (d, &s->finder->known) {
		PRB_TRY(find_kept(s, d, s->states->list.items[index].address, &kept));
		if (kept) {
			settle(s, index, d, kept);
			s->proven++;
			return NULL;
		}
	}
	return NULL;
}

/* A running state points into the C stack of its thread (3.10+); *ret is 0 if it does not. */
static struct prb_error *find_stack_address(struct search *s, const struct prb_py_thread *state,
					    const struct prb_py_frames *frames, uint64_t *ret)
{
	const struct prb_layout *l = &s->py->layout;
	const struct prb_py_frame *frame;

	*ret = 0;
	if (l->thread_cframe != PRB_ABSENT) {
		PRB_TRY(prb_mem_read_u64(s->mem, state->address + (uint64_t)l->thread_cframe, ret));
		if (*ret - state->address < (uint64_t)l->thread_size)
			*ret = 0; /* the one within the state, used while it runs nothing */
		return NULL;
	}
	if (l->behaviour->owner_interpreter < 0)
		return NULL;
	prb_vec_each (frame, &frames->list)
		if (frame->shim) {
			*ret = frame->address;
			return NULL;
		}
	return NULL;
}

/* The stack pointer of a sleeping or stopped thread; 0 if unknown. */
static struct prb_error *read_sp(struct prb_target *t, const struct prb_task_watch *task,
				 uint64_t *ret)
{
	struct prb_task call = {.tid = task->tid, .state = task->state, .syscall = -1};
	struct prb_regs regs = {};
	struct prb_error *err;

	*ret = 0;
	if (t->moves) {
		if (task->state == 'R')
			return NULL;
		PRB_TRY(tolerate(prb_task_read_call(t, &call)));
		*ret = call.sp;
		return NULL;
	}
	err = prb_target_registers(t, task->tid, &regs);
	if (!err && !prb_regs_get(&regs, prb_regs_sp(regs.machine), ret))
		*ret = 0;
	return tolerate(err);
}

/*
 * Up to 3.9 each Python frame has a C frame of the eval loop, which holds the Python frame's
 * address. The addresses of the innermost frames must all be found, in their order; stale words do
 * not meet that.
 */
static bool holds_frames(const uint64_t *words, size_t count, const struct prb_py_frames *frames)
{
	size_t wanted = PRB_MIN(frames->list.count, (size_t)SCAN_FRAMES), found = 0;

	for (size_t i = 0; i < count && found < wanted; i++)
		found += words[i] == frames->list.items[found].address;
	return wanted && found == wanted;
}

enum found { UNREAD, FOUND, MISSING };

/* Searches the stack of a sleeping thread for the frames. */
static struct prb_error *find_on_stack(struct search *s, const struct prb_task_watch *task,
				       const struct prb_py_frames *frames, enum found *ret)
{
	prb_auto_free uint64_t *words = malloc(SCAN_LENGTH);
	const struct prb_map *map;
	struct prb_error *err;
	uint64_t sp, length;

	*ret = UNREAD;
	if (!words)
		return prb_error_nomem();
	PRB_TRY(read_sp(s->finder->target, task, &sp));
	map = sp ? prb_maps_find(&s->finder->target->maps, sp) : NULL;
	if (!map)
		return NULL;
	sp = (sp + sizeof(*words) - 1) & ~(uint64_t)(sizeof(*words) - 1);
	length = PRB_MIN(map->end - sp, (uint64_t)SCAN_LENGTH);
	err = prb_mem_read(s->finder->target->mem, sp, words, length);
	if (!err)
		*ret = holds_frames(words, length / sizeof(*words), frames) ? FOUND : MISSING;
	return tolerate(err);
}

static struct prb_error *scan_stacks(struct search *s, size_t index,
				     const struct prb_py_frames *frames)
{
	const struct prb_descriptor *d;

	prb_vec_each (d, &s->finder->known) {
		enum found found;

		PRB_TRY(find_on_stack(s, d->task, frames, &found));
		if (found == FOUND) {
			settle(s, index, d, 0);
			return NULL;
		}
	}
	return NULL;
}

static size_t count_alive(const struct prb_tasks *tasks)
{
	const struct prb_task_watch *task;
	size_t count = 0;

	prb_vec_each (task, &tasks->list)
		count += !prb_task_has_ended(task);
	return count;
}

static bool is_first_stack(const struct search *s, uint64_t address)
{
	const struct prb_map *map = prb_maps_find(&s->finder->target->maps, address);

	return map && map->path && !strcmp(map->path, "[stack]");
}

/* After a fork the first thread may run on another stack than "[stack]". */
static struct prb_error *find_first(struct search *s, const struct prb_py_thread *state,
				    const struct prb_descriptor **ret)
{
	const struct prb_descriptor *d;

	prb_vec_each (d, &s->finder->known) {
		uint64_t sp;

		if (d->task->tid != s->finder->target->pid)
			continue;
		PRB_TRY(read_sp(s->finder->target, d->task, &sp));
		if (sp ? is_first_stack(s, sp) : d->self == state->pthread)
			*ret = d;
	}
	return NULL;
}

/* The thread whose C stack holds this address. */
static struct prb_error *find_by_stack(struct search *s, const struct prb_py_thread *state,
				       uint64_t address, const struct prb_descriptor **ret)
{
	*ret = NULL;
	if (!address)
		return NULL;
	if (is_first_stack(s, address))
		return find_first(s, state, ret);
	*ret = prb_thread_finder_by_stack(s->finder, address);
	return NULL;
}

/* The thread that the state itself names, or NULL. */
static struct prb_task_watch *named_thread(struct search *s, const struct prb_py_thread *state)
{
	const struct prb_descriptor *d;

	prb_vec_each (d, &s->finder->known)
		if (d->self == state->pthread)
			return d->task;
	return state->tid ? prb_tasks_find_inner(s->finder->tasks, state->tid) : NULL;
}

/* For a state that no thread keeps: searches by its frames. */
static struct prb_error *ask_stacks(struct search *s, size_t index)
{
	const struct prb_py_thread *state = &s->states->list.items[index];
	struct prb_thread_finder *o = s->finder;
	struct prb_found_thread *ret = &s->ret[index];
	const struct prb_descriptor *d = NULL;
	struct prb_py_frames frames;
	uint64_t address = 0;
	struct prb_error *err = tolerate(prb_python_frames(s->py, s->mem, state->address, &frames));
	const struct prb_task_watch *named = named_thread(s, state);

	ret->has_frames = frames.list.count != 0;
	ret->orphan = !named;
	if (!err)
		err = tolerate(find_stack_address(s, state, &frames, &address));
	if (!err)
		err = find_by_stack(s, state, address, &d);
	if (!d && ret->has_frames && count_alive(o->tasks) == 1 && o->known.count == 1 &&
	    o->known.items[0].self == state->pthread)
		d = o->known.items;
	if (d)
		settle(s, index, d, 0);
	else if (!err && ret->has_frames && s->py->layout.behaviour->chain == PRB_CHAIN_PYFRAME &&
		 s->py->layout.thread_cframe == PRB_ABSENT)
		err = scan_stacks(s, index, &frames);
	/* Of ended threads only the first one is still listed, as a zombie. */
	ret->reason = named && named->state == 'Z'
			      ? reasons[2]
			      : reasons[!address && !s->py->layout.behaviour->rebinds];
	prb_py_frames_deinit(&frames);
	return err;
}

/* The thread that the state itself names, if no other state of the interpreter names it too. */
static struct prb_task_watch *hinted(struct search *s, size_t index)
{
	const struct prb_py_thread *state = &s->states->list.items[index], *other;
	const struct prb_py_thread *end = s->states->list.items + s->states->list.count;

	/* Lists begin with the newest state: the oldest is likeliest to be the thread's own. */
	for (other = state + 1; other < end; other++)
		if (other->pthread == state->pthread && other->interp == state->interp)
			return NULL;
	return named_thread(s, state);
}

static bool is_known(const struct search *s, uint64_t self)
{
	const struct prb_descriptor *d;

	prb_vec_each (d, &s->finder->known)
		if (d->self == self)
			return true;
	return false;
}

/*
 * Uses the states' own notes if threads' memory cannot be read. @p lost: only of threads without a
 * readable descriptor.
 */
static void take_hints(struct search *s, bool lost)
{
	for (size_t i = 0; i < s->states->list.count; i++) {
		uint64_t self = s->states->list.items[i].pthread;
		struct prb_task_watch *task = hinted(s, i);

		if (!s->ret[i].task && task && (!lost || !is_known(s, self)))
			s->ret[i] = (struct prb_found_thread){.task = task, .self = self};
	}
}

/*
 * Searches the frames of a state on the C stack of a thread that has slept since it was noted:
 * FOUND, or MISSING if they are on another stack.
 */
static struct prb_error *find_frames(struct search *s, const struct prb_py_thread *state,
				     const struct prb_task_watch *task,
				     const struct prb_py_frames *frames, enum found *ret)
{
	const struct prb_descriptor *d = NULL;
	uint64_t address = 0;

	if (s->py->layout.behaviour->chain == PRB_CHAIN_PYFRAME &&
	    s->py->layout.thread_cframe == PRB_ABSENT)
		return frames->list.count ? find_on_stack(s, task, frames, ret) : NULL;
	PRB_TRY(find_stack_address(s, state, frames, &address));
	if (!address)
		return NULL;
	PRB_TRY(prb_thread_finder_walk(s->finder, s->mem));
	PRB_TRY(find_by_stack(s, state, address, &d));
	if (d)
		*ret = d->task == task ? FOUND : MISSING;
	return NULL;
}

/*
 * The same with present memory: other threads run meanwhile, so the data may be invalid at times.
 */
static struct prb_error *look_for_frames(struct search *s, const struct prb_py_thread *state,
					 const struct prb_task_watch *task, enum found *ret)
{
	enum { ATTEMPTS = 8 };
	struct prb_mem *mem = s->mem;
	struct prb_error *err = NULL;

	*ret = UNREAD;
	s->mem = s->finder->target->mem;
	for (int i = 0; !err && *ret == UNREAD && i < ATTEMPTS; i++) {
		struct prb_py_frames frames;

		err = prb_python_frames(s->py, s->mem, state->address, &frames);
		if (!err)
			err = find_frames(s, state, task, &frames, ret);
		err = tolerate(err);
		prb_py_frames_deinit(&frames);
	}
	s->mem = mem;
	return err;
}

/*
 * A thread may lend its state to another thread and keep it meanwhile. A lent state holds the GIL
 * (without a GIL: is attached) while its thread sleeps. So does the state of a thread in a call
 * that keeps the GIL, but then the frames are on its own stack. A lent state counts as one without
 * a thread, since the sleep of its thread proves nothing.
 */
static struct prb_error *doubt(struct search *s, size_t index)
{
	const struct prb_py_thread *state = &s->states->list.items[index];
	struct prb_found_thread *thread = &s->ret[index];
	struct prb_tasks *tasks = s->finder->tasks;
	enum found found;

	if (!(state->holds_gil || state->attached) || !thread->task || thread->task->state != 'S' ||
	    !prb_task_slept(tasks, thread->task, false))
		return NULL;
	PRB_TRY(look_for_frames(s, state, thread->task, &found));
	if (found == MISSING && prb_task_slept(tasks, thread->task, false))
		*thread = (struct prb_found_thread){.has_frames = true, .reason = reasons[3]};
	return NULL;
}

static bool any_pending(const struct search *s)
{
	for (size_t i = 0; i < s->states->list.count; i++)
		if (!s->ret[i].task && !s->ret[i].reason)
			return true;
	return false;
}

static struct prb_error *ask_others(struct search *s)
{
	PRB_TRY(prb_thread_finder_walk(s->finder, s->mem));
	for (size_t i = 0; i < s->states->list.count; i++)
		if (!s->ret[i].task && !s->ret[i].reason)
			PRB_TRY(ask_all(s, i));
	for (size_t i = 0; i < s->states->list.count; i++)
		if (!s->ret[i].task && !s->ret[i].reason)
			PRB_TRY(ask_stacks(s, i));
	/* gcore writes zeros for the stacks of new C libraries, on which the descriptors lie. */
	if (!s->proven || s->finder->target->partial)
		take_hints(s, s->proven);
	return NULL;
}

static int number_of(const char *reason)
{
	for (size_t i = 1; i < PRB_ARRAY_SIZE(reasons); i++)
		if (reason == reasons[i])
			return (int)i;
	return 0;
}

/* Notes the result for a snapshot, which lacks the stacks and some descriptors. */
static void remember(struct search *s)
{
	for (size_t i = 0; i < s->states->list.count; i++) {
		const struct prb_found_thread *thread = &s->ret[i];
		prb_auto_str struct prb_str key = {}, value = {};

		prb_str_printf(&key, FACT, (unsigned long long)s->states->list.items[i].address);
		prb_str_printf(&value, "%d %llx %d %d %d", thread->task ? thread->task->tid : 0,
			       (unsigned long long)thread->self, thread->has_frames, thread->orphan,
			       number_of(thread->reason));
		prb_target_remember(s->finder->target, prb_str_text(&key), prb_str_text(&value),
				    value.length);
	}
}

static void recall(struct search *s, size_t index)
{
	prb_auto_str struct prb_str key = {}, value = {};
	struct prb_found_thread *ret = &s->ret[index];
	unsigned long long self;
	int tid, has_frames, orphan, reason;
	struct prb_task_watch *task;

	prb_str_printf(&key, FACT, (unsigned long long)s->states->list.items[index].address);
	if (!prb_target_recall(s->finder->target, prb_str_text(&key), &value) ||
	    sscanf(prb_str_text(&value), "%d %llx %d %d %d", &tid, &self, &has_frames, &orphan,
		   &reason) != 5)
		return;
	*ret = (struct prb_found_thread){
		.self = self,
		.has_frames = has_frames,
		.orphan = orphan,
		.reason =
			reasons[reason > 0 && reason < (int)PRB_ARRAY_SIZE(reasons) ? reason : 0]};
	prb_vec_each (task, &s->finder->tasks->list)
		if (task->tid == tid)
			ret->task = task;
}

struct prb_error *prb_thread_finder_run(struct prb_thread_finder *finder, struct prb_python *py,
					struct prb_view *view, struct prb_py_threads *states,
					struct prb_found_thread *ret)
{
	struct search s = {.finder = finder,
			   .py = py,
			   .view = view,
			   .mem = prb_view_mem(view),
			   .states = states,
			   .ret = ret};

	if (!finder->target->replayed)
		PRB_TRY(prb_view_gather(view, try_makers, &s));
	memset(ret, 0, states->list.count * sizeof(*ret));
	PRB_TRY(try_makers(&s));
	for (size_t i = 0; i < states->list.count; i++)
		if (finder->target->moves)
			PRB_TRY(doubt(&s, i));
	for (size_t i = 0; i < states->list.count; i++)
		recall(&s, i);
	/* Each read may be a network round trip: believe matching hints. */
	if (any_pending(&s) && prb_target_is_remote(finder->target))
		take_hints(&s, false);
	if (any_pending(&s))
		PRB_TRY(ask_others(&s));
	remember(&s);
	return NULL;
}

struct prb_error *prb_find_tids(struct prb_modules *modules, struct prb_tasks *tasks,
				struct prb_python *py, struct prb_view *view,
				struct prb_py_threads *states)
{
	struct prb_thread_finder finder = {
		.target = modules->target, .modules = modules, .tasks = tasks};
	prb_auto_free struct prb_found_thread *found =
		calloc(states->list.count + 1, sizeof(*found));
	struct prb_error *err =
		found ? prb_thread_finder_run(&finder, py, view, states, found) : prb_error_nomem();

	prb_thread_finder_deinit(&finder);
	PRB_TRY(err);
	for (size_t i = 0; i < states->list.count; i++)
		states->list.items[i].tid = found[i].task ? found[i].task->inner_tid : 0;
	return NULL;
}

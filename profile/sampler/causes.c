/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile/sampler/causes.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/siphash.h"
#include "python/runtime/locks.h"

enum {
	KNOWN_NS = 1000000000, /* how long a description is taken for true */
	MOST_KNOWN = 4096,
	MOST_WAITS = 100000, /* that are told apart in a recording */
};

void prb_causes_deinit(struct prb_causes *c)
{
	prb_wait_context_destroy(c->context);
	prb_vec_free(&c->known);
	prb_number_map_deinit(&c->numbers);
}

static bool is_within(uint64_t address, uint64_t start, size_t size)
{
	return start && address >= start && address - start < size;
}

static bool is_gil(const struct prb_subject_state *state, uint64_t futex)
{
	const struct prb_python *py = state->py;
	int32_t size = py->layout.gil_size;

	return is_within(futex, py->gil_cond, sizeof(pthread_cond_t)) ||
	       is_within(futex, py->gil_mutex, sizeof(pthread_mutex_t)) ||
	       (size > 0 && is_within(futex, state->thread.gil, (size_t)size));
}

static bool runs_state(const struct prb_subject *subject, uint64_t tstate)
{
	const struct prb_subject_state *state;

	prb_vec_each (state, &subject->states)
		if (state->thread.address == tstate)
			return true;
	return false;
}

/* The number of the thread that runs a state, or is a pthread, plus one; 0 if none does. */
static uint32_t thread_of(const struct prb_causes *c, uint64_t tstate, uint64_t pthread, pid_t tid)
{
	const struct prb_subject *subject;

	prb_vec_each (subject, &c->subjects->list)
		if ((tstate && runs_state(subject, tstate)) || (tid && subject->tid == tid) ||
		    (pthread && subject->states.count &&
		     subject->states.items[0].thread.pthread == pthread))
			return subject->number + 1;
	return 0;
}

static struct prb_error *note(struct prb_causes *c, const struct prb_profile_wait *wait,
			      uint32_t *ret)
{
	struct prb_recording *recording = c->subjects->recording;

	if (recording->waits.count < MOST_WAITS)
		return prb_recording_wait(recording, wait, ret);
	return prb_recording_wait(
		recording,
		&(struct prb_profile_wait){.kind = PRB_WAIT_OTHER, .what = "one of too many"}, ret);
}

static struct prb_error *make_context(struct prb_causes *c, int64_t now)
{
	if (c->context && now < c->context_until)
		return NULL;
	prb_wait_context_destroy(prb_steal(&c->context));
	c->context_until = now + KNOWN_NS;
	return prb_wait_context_create(c->subjects->target, &c->context);
}

/* How Python slept before 3.11: it waits for none of no descriptors. */
static bool is_empty_select(const struct prb_wait *wait, const struct prb_task *call)
{
	return wait->call && (!strcmp(wait->call, "select") || !strcmp(wait->call, "pselect6")) &&
	       !call->args[0];
}

static enum prb_wait_kind kind_of(const struct prb_wait *wait, const struct prb_task *call)
{
	static const struct {
		const char *call;
		enum prb_wait_kind kind;
	} kinds[] = {
		{"nanosleep", PRB_WAIT_TIME},	     {"clock_nanosleep", PRB_WAIT_TIME},
		{"wait4", PRB_WAIT_CHILD},	     {"waitid", PRB_WAIT_CHILD},
		{"pause", PRB_WAIT_OTHER},	     {"rt_sigsuspend", PRB_WAIT_OTHER},
		{"rt_sigtimedwait", PRB_WAIT_OTHER},
	};

	if (wait->futex)
		return PRB_WAIT_LOCK;
	if (is_empty_select(wait, call))
		return PRB_WAIT_TIME;
	for (size_t i = 0; wait->call && i < PRB_ARRAY_SIZE(kinds); i++)
		if (!strcmp(wait->call, kinds[i].call))
			return kinds[i].kind;
	return wait->what ? PRB_WAIT_DESCRIPTOR : PRB_WAIT_OTHER;
}

/* How long a sleep lasts would make each one another. */
static struct prb_error *note_described(struct prb_causes *c, const struct prb_wait *wait,
					const struct prb_task *call, uint32_t *ret)
{
	enum prb_wait_kind kind = kind_of(wait, call);
	char *what = kind == PRB_WAIT_TIME ? NULL : wait->what;

	if (!what && kind == PRB_WAIT_OTHER)
		what = (char *)wait->call;
	if (!what && kind == PRB_WAIT_OTHER)
		return NULL;
	return note(c,
		    &(struct prb_profile_wait){kind, what,
					       wait->owner ? thread_of(c, 0, 0, wait->owner) : 0},
		    ret);
}

static struct prb_error *describe(struct prb_causes *c, const struct prb_task *call,
				  struct prb_mem *mem, uint32_t *ret)
{
	struct prb_wait wait;
	struct prb_error *err;

	*ret = 0;
	PRB_TRY(make_context(c, prb_clock_ns()));
	PRB_TRY(prb_wait_describe(c->context, mem, call, &wait));
	err = note_described(c, &wait, call, ret);
	prb_wait_deinit(&wait);
	return err;
}

static void forget(struct prb_causes *c)
{
	c->known.count = 0;
	prb_number_map_deinit(&c->numbers);
	c->numbers = (struct prb_number_map){};
}

/* Reuses the description of the same call a moment ago. */
static struct prb_error *describe_once(struct prb_causes *c, const struct prb_task *call,
				       struct prb_mem *mem, uint32_t *ret)
{
	const uint64_t key[2] = {(uint64_t)call->syscall, 0};
	uint64_t hash = prb_siphash(1, 3, key, call->args, sizeof(call->args[0]) * 2);
	int64_t now = prb_clock_ns();
	struct prb_cause_known *known;
	size_t number;

	if (c->known.count >= MOST_KNOWN)
		forget(c);
	if (!prb_number_map_get(&c->numbers, hash, &number)) {
		number = c->known.count;
		known = prb_vec_push(&c->known);
		if (!known || !prb_number_map_put(&c->numbers, hash, number))
			return prb_error_nomem();
	}
	known = &c->known.items[number];
	if (known->until <= now || known->call != call->syscall ||
	    memcmp(known->args, call->args, sizeof(known->args)) != 0) {
		*known = (struct prb_cause_known){call->syscall, {call->args[0], call->args[1]}};
		PRB_TRY(describe(c, call, mem, &known->wait));
		known->until = now + KNOWN_NS;
	}
	*ret = known->wait;
	return NULL;
}

static const char *lock_words(const char *type)
{
	if (!strcmp(type, "RLock"))
		return "an RLock";
	return strcmp(type, "lock") != 0 ? type : "a lock";
}

/* A lock of Python's own, if the frame has it; *ret stays 0 if not. */
static struct prb_error *find_python_lock(struct prb_causes *c, uint64_t futex, struct prb_mem *mem,
					  const struct prb_cause_frame *frame, uint32_t *ret)
{
	struct prb_py_lock lock = {};
	struct prb_error *err;

	if (!frame->py)
		return NULL;
	err = prb_python_lock(frame->py, mem, &frame->frame, futex, &lock);
	if (err && err->code == PRB_ERROR_NOMEM)
		return err;
	prb_error_destroy(err);
	if (!lock.type)
		return NULL;
	return note(c,
		    &(struct prb_profile_wait){PRB_WAIT_LOCK, (char *)lock_words(lock.type),
					       lock.owner ? thread_of(c, 0, lock.owner, 0) : 0},
		    ret);
}

struct prb_error *prb_causes_find(struct prb_causes *c, const struct prb_subject *subject,
				  const struct prb_task *call, struct prb_mem *mem,
				  const struct prb_cause_frame *frame, uint64_t holder,
				  uint32_t *ret)
{
	const char *name = call->in_syscall
				   ? prb_syscall_name(c->subjects->target->machine, call->syscall)
				   : NULL;
	uint64_t futex =
		name && (!strcmp(name, "futex") || !strcmp(name, "futex_wait")) ? call->args[0] : 0;
	const struct prb_subject_state *state;

	*ret = 0;
	prb_vec_each (state, &subject->states)
		if (futex && is_gil(state, futex))
			return note(c,
				    &(struct prb_profile_wait){
					    .kind = PRB_WAIT_GIL,
					    .owner = holder ? thread_of(c, holder, 0, 0) : 0},
				    ret);
	if (futex)
		PRB_TRY(find_python_lock(c, futex, mem, frame, ret));
	if (*ret)
		return NULL;
	return futex ? describe(c, call, mem, ret) : describe_once(c, call, mem, ret);
}

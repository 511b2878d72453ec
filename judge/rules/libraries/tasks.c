/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Tasks of asyncio and trio, and greenlets of gevent and eventlet, that wait for each other's
 * locks. Their threads go on: in a server all may look well but for these.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/text.h"
#include "dump/dump.h"
#include "dump/model/program_frame.h"
#include "dump/waiting.h"
#include "judge/facts.h"
#include "judge/hub.h"
#include "judge/limits.h"
#include "judge/threads.h"

enum { MOST_NAMED = 6, MOST_LINES = 8, MOST_WATCHED = 64 };

/* A task, and the one that it waits for. */
struct node {
	uint64_t id, next; /* 0: nobody is known */
	const struct prb_dump_task *task;
	const struct prb_dump_awaiter *awaiter; /* of that task; NULL: it is the task itself */
	size_t walk;
};

struct tasks {
	struct prb_dump_found found;
	struct prb_dump *dump;
	PRB_VEC(struct node) nodes;
	struct prb_number_map places;
	bool done; /* as prb_case_hub_is_done() says */
};

static void tasks_deinit(struct tasks *t)
{
	prb_dump_destroy(t->dump);
	prb_dump_found_deinit(&t->found);
	prb_vec_free(&t->nodes);
	prb_number_map_deinit(&t->places);
}
#define auto_tasks __attribute__((cleanup(tasks_deinit)))

/* A look costs nothing where no thread runs such a loop. */
static bool has_loop(const struct prb_dump *dump)
{
	static const char *const parts[] = {"/asyncio/",  "/uvloop/",		"/gevent/",
					    "/eventlet/", "/twisted/internet/", "/trio/"};
	const struct prb_dump_thread *thread;
	const struct prb_dump_frame *frame;

	prb_vec_each (thread, &dump->threads)
		prb_vec_each (frame, &thread->frames)
			for (size_t i = 0; frame->file && i < PRB_ARRAY_SIZE(parts); i++)
				if (strstr(frame->file, parts[i]))
					return true;
	return false;
}

static struct prb_error *add(struct tasks *t, struct node node)
{
	struct node *place;
	size_t known;

	if (!node.id || prb_number_map_get(&t->places, node.id, &known))
		return NULL;
	place = prb_vec_push(&t->nodes);
	if (!place)
		return prb_error_nomem();
	*place = node;
	return prb_number_map_put(&t->places, node.id, t->nodes.count - 1) ? NULL
									   : prb_error_nomem();
}

static struct prb_error *add_nodes(struct tasks *t)
{
	const struct prb_dump_task *task;

	prb_vec_each (task, &t->dump->tasks) {
		uint64_t before = task->id;
		const struct prb_dump_awaiter *awaiter;

		PRB_TRY(add(t, (struct node){.id = task->id, .next = task->holder, .task = task}));
		prb_vec_each (awaiter, &task->awaiters) {
			if (!awaiter->id)
				break;
			PRB_TRY(add(t, (struct node){.id = awaiter->id,
						     .next = before,
						     .task = task,
						     .awaiter = awaiter}));
			before = awaiter->id;
		}
	}
	return NULL;
}

static struct prb_error *read_tasks(const struct prb_case *c, struct tasks *t)
{
	const struct prb_dump_options options = {
		.no_values = true, .no_command = true, .no_waits = true};
	struct prb_dump_found *found = prb_case_found(c, &t->found);
	struct prb_error *err = prb_dump_create_with(c->target, &options, found, &t->dump);

	PRB_TRY(prb_error_tolerate(err, NULL));
	if (!t->dump)
		return NULL;
	PRB_TRY(prb_dump_add_tasks(c->target, options.mode, found, t->dump));
	return add_nodes(t);
}

static struct node *find_node(const struct tasks *t, uint64_t id)
{
	size_t place;

	return id && prb_number_map_get(&t->places, id, &place) ? &t->nodes.items[place] : NULL;
}

static bool waits_for_lock(const struct node *node)
{
	return !node->awaiter && node->task->lock;
}

/* What it waits for is known: the holder of a lock, or the next task of a circle. */
static bool waits_for_one(const struct node *node)
{
	return !node->awaiter && node->next;
}

/* True if the task waited for the same lock before, and the same one held it. */
static bool was_so(const struct tasks *before, const struct node *node)
{
	const struct node *was = find_node(before, node->id);

	return was && was->next == node->next && was->task->lock == node->task->lock;
}

/* "task ab", "greenlet", and where its own code is: not that of the library. */
static void put_node(struct prb_str *s, const struct node *node)
{
	size_t from = node->awaiter ? node->awaiter->at : 0;
	size_t end = node->awaiter ? node->task->frames.count : prb_dump_own_frames(node->task);
	size_t at = from;
	const char *name = node->awaiter ? node->awaiter->name : node->task->name;

	prb_str_puts(s, node->task->kind);
	if (name) {
		prb_str_putc(s, ' ');
		prb_text_escape(s, name);
	}
	while (at < end && prb_dump_is_library(&node->task->frames.items[at]))
		at++;
	if (at == end)
		at = from;
	if (at < end) {
		prb_str_puts(s, " in ");
		prb_case_put_frame(s, &node->task->frames.items[at]);
	}
}

static struct prb_error *tell_node(struct prb_finding *f, const struct node *node)
{
	struct prb_str *line;

	if (f->evidence.count >= MOST_LINES)
		return NULL;
	PRB_TRY(prb_finding_line(f, node->task->tid, &line));
	put_node(line, node);
	if (node->awaiter) {
		prb_str_puts(line, ", waits for the task before it");
	} else if (node->task->waits_for) {
		prb_str_puts(line, ", waits in ");
		prb_text_escape(line, node->task->waits_for);
	}
	for (size_t i = 0; i < f->tids.count; i++)
		if (f->tids.items[i] == node->task->tid)
			return NULL;
	return prb_finding_tid(f, node->task->tid);
}

static void put_basis(struct prb_finding *f, const struct prb_case *c, const struct tasks *t)
{
	prb_str_printf(&f->rests_on,
		       "the stacks of %zu task%s that wait, and the locks that they are inside of",
		       t->dump->tasks.count, t->dump->tasks.count == 1 ? "" : "s");
	prb_case_put_command(&f->next, c, "dump --locals");
}

static struct prb_error *tell_cycle(const struct prb_rule *rule, const struct prb_case *c,
				    const struct tasks *t, const struct node *first,
				    unsigned length, struct prb_findings *ret)
{
	const struct node *at = first;
	struct prb_finding *f;

	PRB_TRY(prb_finding_add(rule, ret, &f));
	f->confidence = PRB_CONFIDENCE_MEDIUM;
	prb_str_printf(&f->brief, "deadlock of %u task%s", length, length == 1 ? "" : "s");
	if (length == 1) {
		put_node(&f->sentence, first);
		prb_str_puts(&f->sentence, " waits for a lock that it holds itself");
	} else {
		prb_str_printf(&f->sentence, "%u %ss wait for each other: ", length,
			       first->task->kind);
		for (unsigned n = 0; n < PRB_MIN(length, MOST_NAMED); n++) {
			prb_str_puts(&f->sentence, n ? ", " : "");
			put_node(&f->sentence, at);
			at = find_node(t, at->next);
		}
	}
	for (unsigned n = 0; n < length; n++, at = find_node(t, at->next))
		PRB_TRY(tell_node(f, n ? at : first));
	prb_str_puts(&f->wrong_if, "one of the waits has a limit of time, or another task cancels "
				   "one of the tasks, or releases one of the locks");
	put_basis(f, c, t);
	return NULL;
}

/* How many wait in a circle that begins and ends there; 0: none. All have done so before. */
static unsigned length_of(const struct tasks *before, const struct tasks *t,
			  const struct node *first)
{
	const struct node *at = first;
	bool known = false;

	for (unsigned n = 1; n <= t->nodes.count; n++) {
		if (!was_so(before, at) || (!at->awaiter && at->task->limited))
			return 0;
		known = known || waits_for_one(at);
		at = find_node(t, at->next);
		if (!at)
			return 0;
		if (at == first)
			return known ? n : 0;
	}
	return 0;
}

static struct prb_error *find_cycles(const struct prb_rule *rule, const struct prb_case *c,
				     const struct tasks *before, struct tasks *t,
				     struct prb_findings *ret)
{
	for (size_t i = 0; i < t->nodes.count; i++) {
		struct node *at = &t->nodes.items[i];
		unsigned length;

		for (; at && !at->walk; at = find_node(t, at->next))
			at->walk = i + 1;
		if (!at || at->walk != i + 1)
			continue;
		length = length_of(before, t, at);
		if (length)
			PRB_TRY(tell_cycle(rule, c, t, at, length, ret));
	}
	return NULL;
}

static bool waits_for_pool(const struct tasks *t, const struct node *node, uint64_t pool)
{
	const struct node *was = find_node(t, node->id);

	return node->task->own_pool == pool && was && was->task->own_pool == pool;
}

/* A wait with a limit of time ends, and another greenlet gets the slot. */
static bool is_limited(const struct tasks *t, uint64_t pool)
{
	const struct node *node;

	prb_vec_each (node, &t->nodes)
		if (node->task->own_pool == pool && node->task->limited)
			return true;
	return false;
}

static struct prb_error *tell_pool(const struct prb_rule *rule, const struct prb_case *c,
				   const struct tasks *before, const struct tasks *t,
				   const struct node *first, struct prb_findings *ret)
{
	const struct node *node;
	struct prb_finding *f;
	unsigned count = 0;

	PRB_TRY(prb_finding_add(rule, ret, &f));
	prb_vec_each (node, &t->nodes) {
		if (!waits_for_pool(before, node, first->task->own_pool))
			continue;
		count++;
		PRB_TRY(tell_node(f, node));
	}
	f->confidence = PRB_CONFIDENCE_MEDIUM;
	prb_str_printf(&f->brief, "%u greenlet%s for %s own pool", count,
		       count == 1 ? " waits" : "s wait", count == 1 ? "its" : "their");
	prb_str_printf(&f->sentence,
		       "%u greenlet%s for %s own pool, and no greenlet of the pool can run: ",
		       count, count == 1 ? " waits" : "s wait", count == 1 ? "its" : "their");
	put_node(&f->sentence, first);
	prb_str_puts(&f->rests_on, "the set of greenlets of the pool, and what each of them waits "
				   "for, at two looks");
	prb_str_puts(&f->wrong_if, "one of the waits has a limit of time, or another greenlet "
				   "kills one of the pool");
	prb_case_put_command(&f->next, c, "dump --locals");
	return NULL;
}

/* Greenlets of a pool that all wait for the pool, at two looks: a finding for each pool. */
static struct prb_error *find_pools(const struct prb_rule *rule, const struct prb_case *c,
				    const struct tasks *before, const struct tasks *t,
				    struct prb_findings *ret)
{
	const struct node *node, *other;

	prb_vec_each (node, &t->nodes) {
		uint64_t pool = node->task->own_pool;

		if (!pool || !waits_for_pool(before, node, pool))
			continue;
		/* The finding of a pool is made when its first greenlet is met. */
		for (other = t->nodes.items; other < node; other++)
			if (waits_for_pool(before, other, pool))
				break;
		if (other == node && !is_limited(t, pool))
			PRB_TRY(tell_pool(rule, c, before, t, node, ret));
	}
	return NULL;
}

/* Seconds that the loop's thread has slept: none of its tasks has run meanwhile. */
static double slept(const struct prb_case *c, const struct prb_dump_task *task)
{
	const struct prb_dump_thread *thread = prb_case_thread(c, task->tid);

	return thread && !prb_thread_is(thread, "running") ? prb_case_idle(c, thread) : -1;
}

/* True if another task is to wake it: no clock, and no peer. The words are those of our readers. */
static bool waits_for_tasks(const struct node *node)
{
	static const char *const starts[] = {
		"Event.",     "Condition.", "Queue.",		"Lock.",
		"Semaphore.", "Barrier.",   "gevent._gevent_c", "gevent.thread."};
	const char *words = node->task->waits_for;

	for (size_t i = 0; !node->awaiter && words && i < PRB_ARRAY_SIZE(starts); i++)
		if (!strncmp(words, starts[i], strlen(starts[i])))
			return true;
	return false;
}

/*
 * True if the wait may be more than an ordinary one. While a loop goes on, tasks that take turns
 * look the same at two instants: not if their holder waits for another task, too.
 */
static bool is_strange(const struct prb_case *c, const struct tasks *before, const struct tasks *t,
		       const struct node *node)
{
	const struct node *holder = find_node(t, node->next);

	if (!waits_for_lock(node) || !was_so(before, node))
		return false;
	/* Any task may release a semaphore, so a wait without a known holder has to be long. */
	return slept(c, node->task) >= prb_limit(holder ? PRB_LIMIT_WAIT : PRB_LIMIT_LONG) ||
	       (holder && waits_for_tasks(holder) && was_so(before, holder));
}

/* Waits for locks that are no circle: what keeps the holder may be anything. */
static struct prb_error *find_waits(const struct prb_rule *rule, const struct prb_case *c,
				    const struct tasks *before, const struct tasks *t,
				    struct prb_findings *ret)
{
	const struct node *node, *holder;
	struct prb_finding *f = NULL;
	unsigned count = 0, held = 0;
	double idle = -1;

	prb_vec_each (node, &t->nodes) {
		if (!is_strange(c, before, t, node))
			continue;
		if (!f)
			PRB_TRY(prb_finding_add(rule, ret, &f));
		count++;
		holder = find_node(t, node->next);
		held += holder != NULL;
		idle = PRB_MAX(idle, slept(c, node->task));
		PRB_TRY(tell_node(f, node));
		if (holder)
			PRB_TRY(tell_node(f, holder));
	}
	if (!f)
		return NULL;
	f->kind = PRB_FINDING_UNKNOWN;
	f->confidence = PRB_CONFIDENCE_LOW;
	if (held && idle >= prb_limit(count > 1 ? PRB_LIMIT_WAIT : PRB_LIMIT_LONG)) {
		f->kind = PRB_FINDING_LOCKS;
		f->confidence = PRB_CONFIDENCE_MEDIUM;
		f->lasted = idle;
	}
	prb_str_printf(&f->brief, "%u task%s for locks", count, count == 1 ? " waits" : "s wait");
	prb_str_printf(&f->sentence, "%u task%s or greenlet%s for locks", count,
		       count == 1 ? "" : "s", count == 1 ? " waits" : "s wait");
	prb_str_puts(&f->sentence,
		     held ? ", whose holders wait, too" : ", and their holders are not known");
	if (f->kind == PRB_FINDING_UNKNOWN)
		prb_str_puts(&f->sentence, "; for how long is not known");
	prb_str_puts(&f->wrong_if, "the holders release them in a moment: look again");
	put_basis(f, c, t);
	return NULL;
}

static bool is_greenlet(const struct node *node)
{
	return !node->awaiter && !strcmp(node->task->kind, "greenlet");
}

static size_t count_greenlets(const struct tasks *t, const struct node **first)
{
	const struct node *node;
	size_t count = 0;

	*first = NULL;
	prb_vec_each (node, &t->nodes)
		if (is_greenlet(node) && !count++)
			*first = node;
	return count;
}

static struct prb_error *tell_done(const struct prb_rule *rule, const struct prb_case *c,
				   const struct tasks *t, struct prb_findings *ret)
{
	const struct node *node, *first;
	size_t count = count_greenlets(t, &first);
	struct prb_finding *f;

	if (!first)
		return NULL;
	PRB_TRY(prb_finding_add(rule, ret, &f));
	f->kind = PRB_FINDING_STILL;
	f->confidence = PRB_CONFIDENCE_MEDIUM;
	prb_str_puts(&f->brief, "nothing resumes its greenlets");
	prb_str_printf(&f->sentence,
		       "%zu greenlet%s, and the hub has no timer and no file that could resume "
		       "%s: ",
		       count, count == 1 ? "" : "s", count == 1 ? "it" : "them");
	put_node(&f->sentence, first);
	prb_vec_each (node, &t->nodes)
		if (is_greenlet(node))
			PRB_TRY(tell_node(f, node));
	prb_str_puts(&f->rests_on, "the stack of the hub, its two lists of timers, both empty, and "
				   "the signals that the process handles");
	prb_str_puts(&f->wrong_if, "the program is meant to sleep until it is killed");
	prb_case_put_command(&f->next, c, "dump --locals");
	return NULL;
}

static struct prb_error *judge(const struct prb_rule *rule, const struct prb_case *c,
			       const struct tasks *before, struct tasks *now, bool blocked,
			       struct prb_findings *ret)
{
	size_t count = ret->list.count;

	PRB_TRY(find_cycles(rule, c, before, now, ret));
	PRB_TRY(find_pools(rule, c, before, now, ret));
	if (ret->list.count > count || blocked)
		return NULL;
	return now->done ? tell_done(rule, c, now, ret) : find_waits(rule, c, before, now, ret);
}

/* It waits for a lock that was taken by acquire(), not by `with`: no frame says who has it. */
static bool waits_for_nobody(const struct node *node)
{
	static const char lock[] = "gevent.thread.LockType";
	const char *words = node->task->waits_for;

	return waits_for_lock(node) && !node->next && !node->task->limited && words &&
	       !strncmp(words, lock, strlen(lock));
}

/* Locks that are watched. */
struct locks {
	size_t count;
	bool more; /* there were others */
	uint64_t list[MOST_WATCHED];
};

static bool is_among(const struct locks *locks, uint64_t lock)
{
	for (size_t i = 0; i < locks->count; i++)
		if (locks->list[i] == lock)
			return true;
	return false;
}

static void find_locks(const struct tasks *t, struct locks *ret)
{
	const struct node *node;

	prb_vec_each (node, &t->nodes)
		if (!waits_for_nobody(node) || is_among(ret, node->task->lock))
			continue;
		else if (ret->count < MOST_WATCHED)
			ret->list[ret->count++] = node->task->lock;
		else
			ret->more = true;
}

static size_t count_waiters(const struct tasks *t, uint64_t lock)
{
	const struct node *node;
	size_t count = 0;

	prb_vec_each (node, &t->nodes)
		count += waits_for_nobody(node) && node->task->lock == lock;
	return count;
}

/* True if the greenlets that wait for the lock are the same as before: it has not been released. */
static bool is_kept(const struct tasks *before, const struct tasks *t, uint64_t lock)
{
	const struct node *node;

	prb_vec_each (node, &t->nodes)
		if (waits_for_nobody(node) && node->task->lock == lock && !was_so(before, node))
			return false;
	return count_waiters(t, lock) && count_waiters(before, lock) == count_waiters(t, lock);
}

static void leave_out_released(const struct tasks *before, const struct tasks *t,
			       struct locks *locks)
{
	size_t kept = 0;

	for (size_t i = 0; i < locks->count; i++)
		if (is_kept(before, t, locks->list[i]))
			locks->list[kept++] = locks->list[i];
	locks->count = kept;
}

/* The greenlets of all locks that were kept, in one finding. */
static struct prb_error *tell_nobody(const struct prb_rule *rule, const struct prb_case *c,
				     const struct tasks *t, const struct locks *locks,
				     struct prb_findings *ret)
{
	const struct node *node, *first = NULL;
	struct prb_finding *f;
	unsigned count = 0;

	PRB_TRY(prb_finding_add(rule, ret, &f));
	prb_vec_each (node, &t->nodes) {
		if (!waits_for_nobody(node) || !is_among(locks, node->task->lock))
			continue;
		first = first ? first : node;
		count++;
		PRB_TRY(tell_node(f, node));
	}
	f->kind = PRB_FINDING_UNKNOWN;
	f->confidence = PRB_CONFIDENCE_LOW;
	prb_str_printf(&f->brief, "%s%u greenlet%s for locks", locks->more ? "at least " : "",
		       count, count == 1 ? " waits" : "s wait");
	if (locks->more)
		prb_str_puts(&f->sentence, "at least ");
	if (count == 1)
		prb_str_puts(&f->sentence, "a greenlet has waited for a lock");
	else
		prb_str_printf(&f->sentence, "%u greenlets have waited for locks", count);
	prb_str_puts(&f->sentence, " for a second, and who is to release ");
	prb_str_puts(&f->sentence, locks->count == 1 ? "it" : "them");
	prb_str_puts(&f->sentence, " is not known: ");
	put_node(&f->sentence, first);
	prb_str_puts(&f->wrong_if, "another greenlet releases them in a moment: look again");
	put_basis(f, c, t);
	return NULL;
}

/*
 * While other greenlets run, the kernel does not say how long one has waited. So the waiters of
 * locks are looked at again and again for a second: greenlets that take turns are soon others.
 */
static struct prb_error *watch_locks(const struct prb_rule *rule, const struct prb_case *c,
				     const struct tasks *first, struct prb_findings *ret)
{
	enum { PAUSE_NS = 150000000, LOOKS = 7 };
	struct locks locks = {};

	find_locks(first, &locks);
	for (unsigned n = 0; n < LOOKS && locks.count; n++) {
		auto_tasks struct tasks now = {};

		nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
		PRB_TRY(read_tasks(c, &now));
		leave_out_released(first, &now, &locks);
	}
	return locks.count ? tell_nobody(rule, c, first, &locks, ret) : NULL;
}

/* What a loop is to run waits for its thread, which waits for the result. */
static struct prb_error *tell_itself(const struct prb_rule *rule, const struct prb_case *c,
				     const struct prb_blocked_loop *loop, struct prb_findings *ret)
{
	const struct prb_dump_thread *thread = loop->thread;
	struct prb_finding *f;

	PRB_TRY(prb_finding_add(rule, ret, &f));
	f->confidence = PRB_CONFIDENCE_HIGH;
	f->lasted = prb_case_idle(c, thread);
	prb_str_puts(&f->brief, "a loop waits for itself");
	prb_str_printf(&f->sentence, "%s: ", loop->itself);
	prb_case_put_thread(&f->sentence, thread);
	prb_str_puts(&f->sentence, " in ");
	prb_case_put_place(&f->sentence, thread);
	PRB_TRY(prb_finding_thread(f, c, thread));
	prb_case_put_reading(&f->rests_on, c);
	prb_str_puts(&f->wrong_if,
		     "a signal handler ends the wait, or another loop makes the call");
	prb_case_put_command(&f->next, c, "dump --locals");
	return NULL;
}

static struct prb_error *tell_blocked(const struct prb_rule *rule, const struct prb_case *c,
				      const struct prb_blocked_loop *loop, struct prb_findings *ret)
{
	struct prb_finding *f;

	PRB_TRY(prb_finding_add(rule, ret, &f));
	f->kind = PRB_FINDING_STILL;
	f->confidence = PRB_CONFIDENCE_MEDIUM;
	f->lasted = prb_case_idle(c, loop->thread);
	prb_str_puts(&f->brief, "a call blocks its event loop");
	prb_str_puts(&f->sentence, "a call has kept the loop of asyncio from going on for ");
	prb_text_duration(&f->sentence, f->lasted);
	prb_str_puts(&f->sentence,
		     loop->overdue ? ", and a timer is overdue: " : ", and a callback is to run: ");
	prb_case_put_thread(&f->sentence, loop->thread);
	prb_str_puts(&f->sentence, " in ");
	prb_case_put_place(&f->sentence, loop->thread);
	PRB_TRY(prb_finding_thread(f, c, loop->thread));
	if (loop->overdue) {
		prb_str_puts(&f->rests_on, "the stack of the thread, and the timers of its loop, "
					   "the first of which is overdue by ");
		prb_text_duration(&f->rests_on, loop->overdue);
	} else {
		prb_str_puts(&f->rests_on, "the stack of the thread, and the callbacks that its "
					   "loop is to run next");
	}
	prb_str_puts(&f->wrong_if, "its other tasks are to wait until the call ends");
	prb_case_put_command(&f->next, c, "dump --locals");
	return NULL;
}

/* While a call blocks a loop, waits that are no circle may well be for what it does. */
static struct prb_error *look_at_tasks(const struct prb_rule *rule, struct prb_case *c,
				       bool blocked, struct prb_findings *ret)
{
	enum { PAUSE_NS = 200000000 };
	const int64_t switches = prb_case_switches(c, c->dump->main_tid);
	auto_tasks struct tasks first = {}, again = {};
	const struct node *node;
	bool waits = false, lasts = true;

	PRB_TRY(read_tasks(c, &first));
	prb_vec_each (node, &first.nodes) {
		waits = waits || waits_for_lock(node) || waits_for_one(node) ||
			node->task->own_pool;
		lasts = lasts && slept(c, node->task) >= prb_limit(PRB_LIMIT_WAIT);
	}
	PRB_TRY(prb_case_hub_is_done(c, first.dump, switches, &first.done));
	first.done = first.done && count_greenlets(&first, &node);
	if (!waits && !first.done)
		return NULL;
	/* While their thread sleeps, tasks stay as they are. */
	if (first.done || lasts || !c->target->live || !c->target->moves)
		return judge(rule, c, &first, &first, blocked, ret);
	nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
	PRB_TRY(read_tasks(c, &again));

	size_t count = ret->list.count;

	PRB_TRY(judge(rule, c, &first, &again, blocked, ret));
	return ret->list.count == count && !blocked && !c->at_once
		       ? watch_locks(rule, c, &again, ret)
		       : NULL;
}

static struct prb_error *look(const struct prb_rule *rule, struct prb_case *c,
			      struct prb_findings *ret)
{
	const size_t count = ret->list.count;
	struct prb_blocked_loop loop;

	PRB_TRY(prb_case_blocked_loop(c, &loop));
	PRB_TRY(look_at_tasks(rule, c, loop.thread != NULL, ret));
	if (!loop.thread || ret->list.count > count)
		return NULL;
	return loop.itself ? tell_itself(rule, c, &loop, ret) : tell_blocked(rule, c, &loop, ret);
}

static struct prb_error *find(const struct prb_rule *rule, struct prb_case *c,
			      struct prb_findings *ret)
{
	const double began = prb_clock_seconds();
	struct prb_error *err;

	if (c->patience <= 0 || !c->target || !has_loop(c->dump))
		return NULL;
	err = look(rule, c, ret);
	prb_case_spent(c, began);
	return err;
}

const struct prb_rule prb_rule_tasks = {
	.rank = 28,
	.name = "tasks",
	.kind = PRB_FINDING_DEADLOCK,
	.needs = PRB_RULE_THREADS | PRB_RULE_PROC,
	.waits = true,
	.proves = "tasks, greenlets or a loop wait for each other or themselves",
	.find = find,
};

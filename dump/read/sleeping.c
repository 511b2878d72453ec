/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Reads all sleeping threads in as few system calls as possible: pages are fetched for all threads
 * together, level by level. Each thread is checked afterwards to have slept (see tasks.h), so the
 * order of reads in between does not matter.
 */
#include "base/cleanup.h"
#include "dump/read/reader.h"
#include "dump/read/call.h"

struct sleeping {
	struct prb_reader *reader;
	struct prb_view *view;
	bool walked; /* all threads at least once */
};

/* True also for a state without a thread, which no counters prove to be idle. */
static bool is_running(const struct prb_reader_thread *thread)
{
	return !thread->task || thread->task->state == 'R';
}

/* Prefetches arguments on the thread's own stack: most waits are described from them. */
static void expect_arguments(struct prb_view *view, const struct prb_task *call)
{
	enum { NEAR = 65536, LENGTH = 16 /* struct timespec */ };

	for (size_t i = 0; call->in_syscall && i < sizeof(call->args) / sizeof(call->args[0]); i++)
		if (call->args[i] >= call->sp && call->args[i] - call->sp < NEAR)
			prb_view_expect(view, call->args[i], LENGTH);
}

static struct prb_error *read_calls(struct sleeping *s)
{
	struct prb_reader_thread *thread;

	prb_vec_each (thread, &s->reader->threads) {
		if (is_running(thread))
			continue;
		PRB_TRY(prb_read_call(s->reader, thread));
		expect_arguments(s->view, &thread->call);
	}
	return prb_view_prefetch(s->view);
}

/* Walks the threads whose walk is incomplete. */
static struct prb_error *walk_rest(void *context)
{
	struct sleeping *s = context;
	struct prb_reader_thread *thread;

	prb_vec_each (thread, &s->reader->threads) {
		const struct prb_error *err = thread->frames_error;

		if (is_running(thread) || (s->walked && !(err && err->code == PRB_ERROR_FAULT)))
			continue;
		PRB_TRY(prb_reader_walk(thread, prb_view_mem(s->view)));
	}
	s->walked = true;
	return NULL;
}

/* A redacted snapshot must not hold memory that only the description of a wait needed. */
static struct prb_mem *wait_memory(struct sleeping *s)
{
	const struct prb_target *target = s->reader->target;

	return prb_target_is_recorded(target) ? target->mem : prb_view_mem(s->view);
}

static struct prb_error *decode_all(struct sleeping *s)
{
	struct prb_reader_thread *thread;

	prb_vec_each (thread, &s->reader->threads) {
		if (is_running(thread))
			continue;
		PRB_TRY(prb_read_wait(s->reader, thread, wait_memory(s)));
		PRB_TRY(prb_reader_decode(s->reader, thread, prb_view_mem(s->view)));
	}
	return NULL;
}

struct prb_error *prb_read_sleeping(struct prb_reader *r, struct prb_view *view)
{
	struct sleeping s = {.reader = r, .view = view};
	struct prb_reader_thread *thread;

	PRB_TRY(read_calls(&s));
	PRB_TRY(prb_view_gather(view, walk_rest, &s));
	PRB_TRY(walk_rest(&s));

	/* A snapshot must hold each thread's needs separately. */
	if (!prb_target_is_recorded(r->target))
		prb_reader_share(r, prb_view_mem(view));
	PRB_TRY(decode_all(&s));
	prb_reader_share(r, NULL);

	prb_vec_each (thread, &r->threads)
		thread->done = thread->task &&
			       prb_task_slept(&r->tasks, thread->task, thread->call.sp != 0);
	return NULL;
}

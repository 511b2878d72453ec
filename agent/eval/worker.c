/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/eval/worker.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "agent/client/connection.h"
#include "agent/eval/enter_python.h"
#include "agent/inside/libc.h"
#include "agent/inside/thread.h"
#include "agent/pause/pause.h"
#include "agent/threads.h"

enum {
	WORKER_STACK = 8 << 20, /* Python recurses on it, as on the stacks of its own threads */
	INTERRUPTER_STACK = 256 << 10,
};

static void leave(struct prba_connection *c)
{
	int leaving = PRBA_LEAVING;

	prba_work_forget(c);
	atomic_store(&c->job.present, false);
	/* Or the client came with something new meanwhile. */
	atomic_compare_exchange_strong(&c->job.state, &leaving, PRBA_IDLE);
	prba_job_notify();
}

static void *work(void *argument)
{
	struct prba_connection *c = argument;
	struct prba_job *job = &c->job;

	for (;;) {
		uint32_t seen = atomic_load(&job->wake);
		int state = atomic_load(&job->state);

		if (state == PRBA_LEAVING) {
			leave(c);
		} else if (state != PRBA_IDLE) {
			atomic_store(&job->rests_since, 0);
			prba_work_do(c);
			atomic_store(&job->rests_since, prba_now_ms());
			prba_job_notify();
		} else if (job->quit) {
			return NULL;
		} else {
			prba_wait(&job->wake, seen);
		}
	}
}

static const char malformed[] = "the request is malformed",
		  no_memory[] = "the target is out of memory";

/** Requests that consist of a few numbers. */
static const char *keep_short(struct prba_job *job, const struct prb_wire_frame *frame)
{
	if (prb_wire_get_pause(frame, &job->eval)) {
		job->asked = PRBA_PAUSES;
		job->freezes = job->eval.flags & PRB_WIRE_FREEZES;
		job->eval.flags = 0; /* these bits are flags of eval, too */
		return NULL;
	}
	if (!prb_wire_get_step(frame, &job->step))
		return malformed;
	job->asked = PRBA_STEPS;
	job->eval = (struct prb_wire_eval){};
	return NULL;
}

static const char *keep(struct prba_job *job, const struct prb_wire_frame *frame)
{
	struct prb_wire_frame copy = *frame;

	if (frame->type == PRB_WIRE_PAUSE || frame->type == PRB_WIRE_STEP)
		return keep_short(job, frame);
	if (!prb_wire_get_eval(frame, &job->eval))
		return malformed;
	job->asked = frame->type == PRB_WIRE_COMPLETE ? PRBA_COMPLETES : PRBA_EVALUATES;
	job->memory_size = frame->length;
	job->memory = mmap(NULL, frame->length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);
	if (job->memory == MAP_FAILED) {
		job->memory = NULL;
		return no_memory;
	}
	memcpy(job->memory, frame->payload, frame->length);
	copy.payload = job->memory;
	(void)prb_wire_get_eval(&copy, &job->eval);
	return NULL;
}

static void forget(struct prba_job *job)
{
	if (job->memory)
		munmap(job->memory, job->memory_size);
	job->memory = NULL;
}

static const char still_evaluates[] = "this connection evaluates other code still";

static size_t size_of(const struct prba_next_request *next)
{
	return next->length ? next->length : 1;
}

static void forget_next(struct prba_job *job)
{
	if (job->next.payload)
		munmap(job->next.payload, size_of(&job->next));
	job->next = (struct prba_next_request){};
}

/** How long a request waits for its start; 0: for as long as it takes. */
static uint32_t start_ms_of(const struct prb_wire_frame *frame)
{
	enum { STEP_MS = 5000 }; /* as a step waits for other code */
	struct prb_wire_eval eval;

	if (frame->type == PRB_WIRE_STEP)
		return STEP_MS;
	if (frame->type == PRB_WIRE_PAUSE ? prb_wire_get_pause(frame, &eval)
					  : prb_wire_get_eval(frame, &eval))
		return eval.start_ms;
	return 0; /* its start says what is wrong with it */
}

/**
 * Keeps a request until the worker is through with the last one. The client has an answer to that
 * already, at a deadline or an interrupt, so it cannot know that it is early.
 */
static const char *keep_next(struct prba_job *job, const struct prb_wire_frame *frame)
{
	struct prba_next_request *next = &job->next;
	uint32_t start_ms = start_ms_of(frame);
	void *memory;

	if (!atomic_load(&job->answered) || next->payload)
		return still_evaluates;
	next->length = frame->length;
	memory = mmap(NULL, size_of(next), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		      0);
	if (memory == MAP_FAILED)
		return no_memory;
	memcpy(memory, frame->payload, frame->length);
	next->payload = memory;
	next->type = frame->type;
	next->request = frame->request;
	next->start_by = start_ms ? prba_now_ms() + start_ms : 0;
	return NULL;
}

const char *prba_worker_start(struct prba_connection *c, const struct prb_wire_frame *frame)
{
	struct prba_job *job = &c->job;
	int64_t now = prba_now_ms();
	int state = atomic_load(&job->state);
	const char *why;

	if ((state != PRBA_IDLE && state != PRBA_LEAVING) || job->next.payload)
		return keep_next(job, frame);
	forget(job);
	why = keep(job, frame);
	if (!why && job->asked == PRBA_PAUSES)
		why = prba_pause_claim(c);
	if (why)
		return why;
	job->request = frame->request;
	job->prompts |= (job->eval.flags & PRB_WIRE_INTERACTIVE) != 0;
	job->interrupt_again = false;
	__atomic_fetch_add(&job->serial, 1, __ATOMIC_SEQ_CST);
	job->start_by = job->eval.start_ms ? now + job->eval.start_ms : 0;
	/* A pause's deadline starts when the pause starts. */
	job->end_by =
		job->eval.total_ms && job->asked != PRBA_PAUSES ? now + job->eval.total_ms : 0;
	atomic_store(&job->answered, false);
	atomic_store(&job->interrupted, false);
	atomic_store(&job->needs_main, false);
	atomic_store(&job->also_wake, NULL);
	atomic_store(&job->lost, 0);
	atomic_store(&job->state, PRBA_WAITING);
	if (job->has_worker) {
		prba_wake(&job->wake);
		return NULL;
	}
	job->quit = false;
	if (prba_thread_start(&job->worker, WORKER_STACK, PRB_AGENT_THREAD_EVAL, work, c)) {
		atomic_store(&job->state, PRBA_IDLE);
		prba_pause_disclaim(c);
		return "the target can start no more threads";
	}
	job->has_worker = true;
	return NULL;
}

/** Collects the interrupting thread if it is done; true if there is none. */
static bool no_interrupter(struct prba_job *job)
{
	if (job->has_interrupter && atomic_load(&job->interrupter_done)) {
		pthread_join(job->interrupter, NULL);
		job->has_interrupter = false;
	}
	return !job->has_interrupter;
}

bool prba_worker_is_over(struct prba_connection *c)
{
	return atomic_load(&c->job.state) == PRBA_IDLE && !atomic_load(&c->job.present) &&
	       no_interrupter(&c->job);
}

void prba_worker_leave(struct prba_connection *c)
{
	int idle = PRBA_IDLE;

	forget_next(&c->job);
	if (!atomic_load(&c->job.present) ||
	    !atomic_compare_exchange_strong(&c->job.state, &idle, PRBA_LEAVING))
		prba_worker_interrupt(c, PRB_WIRE_OK);
	else
		prba_wake(&c->job.wake);
}

int64_t prba_worker_rests_since(struct prba_connection *c)
{
	struct prba_job *job = &c->job;

	return job->has_worker && !job->prompts && atomic_load(&job->state) == PRBA_IDLE
		       ? atomic_load(&job->rests_since)
		       : 0;
}

void prba_worker_end(struct prba_connection *c)
{
	struct prba_job *job = &c->job;

	if (!job->has_worker)
		return;
	if (atomic_load(&job->present)) {
		prba_worker_leave(c);
		return;
	}
	job->quit = true;
	prba_wake(&job->wake);
	pthread_join(job->worker, NULL);
	job->has_worker = false;
	atomic_store(&job->rests_since, 0);
}

void prba_worker_deinit(struct prba_connection *c)
{
	prba_worker_end(c);
	forget(&c->job);
	forget_next(&c->job);
}

/** The GIL has to be waited for, which the server's thread cannot. */
static void *interrupt(void *argument)
{
	struct prba_connection *c = argument;

	c->job.interrupter_tid = (int32_t)syscall(SYS_gettid);
	prba_work_interrupt(c);
	atomic_store(&c->job.interrupter_done, true);
	prba_job_notify();
	return NULL;
}

/** A full queue means that the client does not read. */
static void send(struct prba_connection *c, uint16_t type, uint16_t request, const void *payload,
		 size_t length)
{
	if (prba_connection_send(c, type, request, payload, length) == PRBA_FULL)
		prba_connection_give_up(c);
}

/** Sends the outcome to the client. */
static void tell(struct prba_connection *c, uint16_t request, enum prb_wire_outcome outcome)
{
	uint8_t payload[4 + PRBA_PAUSE_REASON];
	char *text = (char *)payload + 4;

	prb_wire_put32(payload, outcome);
	*text = '\0';
	if (outcome == PRB_WIRE_NO_GIL)
		prba_pause_explain(c, text);
	send(c, PRB_WIRE_DONE, request, payload, 4 + strlen(text));
}

static bool only_imports(const struct prba_job *job)
{
	const uint32_t both = PRB_WIRE_TRACE | PRB_WIRE_IMPORTS;

	return (job->eval.flags & both) == both;
}

static void interrupt_job(struct prba_connection *c, enum prb_wire_outcome outcome)
{
	struct prba_job *job = &c->job;
	int state = atomic_load(&job->state);
	bool to_tell = false;

	if (state != PRBA_WAITING && state != PRBA_RUNNING)
		return;
	/* A pause runs no code that could be interrupted, and reports more than an outcome. */
	if (job->asked == PRBA_PAUSES && state == PRBA_RUNNING) {
		prba_pause_end(c, outcome == PRB_WIRE_OK ? PRB_WIRE_INTERRUPTED : outcome);
		return;
	}
	/* Settle which thread answers before the worker can see the cancellation. */
	pthread_mutex_lock(&job->lock);
	state = PRBA_WAITING;
	if (atomic_compare_exchange_strong(&job->state, &state, PRBA_CANCELLED) &&
	    outcome == PRB_WIRE_OK)
		outcome = PRB_WIRE_INTERRUPTED;
	/* A step is over when the program is paused again, which its worker reports. */
	if ((state == PRBA_WAITING || state == PRBA_RUNNING) && outcome != PRB_WIRE_OK &&
	    job->asked != PRBA_STEPS)
		to_tell = !atomic_exchange(&job->answered, true);
	pthread_mutex_unlock(&job->lock);

	if (to_tell)
		tell(c, job->request, outcome);
	if (state == PRBA_WAITING) {
		_Atomic uint32_t *also = atomic_load(&job->also_wake);

		if (also)
			prba_wake(also);
	} else if (state == PRBA_RUNNING && !no_interrupter(job)) {
		job->interrupt_again = true;
	} else if (state == PRBA_RUNNING && !only_imports(job)) {
		job->interrupt_again = false;
		job->interrupts = job->serial;
		atomic_store(&job->interrupter_done, false);
		job->has_interrupter = !prba_thread_start(&job->interrupter, INTERRUPTER_STACK,
							  "int", interrupt, c);
	}
}

/** The next request is over, without a start. */
static void answer_next(struct prba_connection *c, enum prb_wire_outcome outcome)
{
	uint16_t request = c->job.next.request;

	forget_next(&c->job);
	tell(c, request, outcome);
}

void prba_worker_interrupt(struct prba_connection *c, enum prb_wire_outcome outcome)
{
	if (c->job.next.payload)
		answer_next(c, PRB_WIRE_INTERRUPTED);
	interrupt_job(c, outcome);
}

/** Starts the next request as soon as it can be; returns its deadline, 0 if it has none. */
static int64_t check_next(struct prba_connection *c, int64_t now)
{
	struct prba_next_request next = c->job.next;
	int state = atomic_load(&c->job.state);
	const struct prb_wire_frame frame = {.payload = next.payload,
					     .length = next.length,
					     .type = next.type,
					     .request = next.request};
	const char *why;

	if (!next.payload)
		return 0;
	if (state != PRBA_IDLE && state != PRBA_LEAVING) {
		if (!next.start_by || next.start_by > now)
			return next.start_by;
		answer_next(c, PRB_WIRE_NO_GIL);
		return 0;
	}
	c->job.next = (struct prba_next_request){};
	why = prba_worker_start(c, &frame);
	munmap(next.payload, size_of(&next));
	if (why)
		send(c, PRB_WIRE_ERROR, next.request, why, strlen(why));
	return 0;
}

int64_t prba_worker_check(struct prba_connection *c, int64_t now)
{
	struct prba_job *job = &c->job;
	int64_t by = check_next(c, now);
	int state = atomic_load(&job->state);

	if (job->interrupt_again && no_interrupter(job))
		interrupt_job(c, PRB_WIRE_OK);
	if ((state != PRBA_WAITING && state != PRBA_RUNNING) || atomic_load(&job->answered))
		return by;
	by = atomic_load(&job->end_by);
	if (state == PRBA_WAITING && job->start_by && (!by || job->start_by < by))
		by = job->start_by;
	if (!by || by > now)
		return by;
	if (state == PRBA_RUNNING)
		interrupt_job(c, PRB_WIRE_TIMED_OUT);
	else
		interrupt_job(c, atomic_load(&job->needs_main) ? PRB_WIRE_MAIN_NOT_REACHED
							       : PRB_WIRE_NO_GIL);
	return 0;
}

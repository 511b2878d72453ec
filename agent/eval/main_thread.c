/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/eval/main_thread.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "agent/client/connection.h"
#include "agent/inside/finalization.h"
#include "agent/inside/libc.h"
#include "agent/inside/python.h"
#include "agent/inside/python_table.h"
#include "agent/inside/status.h"
#include "agent/trace/places.h"
#include "agent/trace/tracing.h"

enum {
	PENDING_MAX = 32,
	LOOK_US = 1000,
	RESTS_MS = 5,	     /* a main thread without CPU time for this long is blocked in a call */
	BUSY_US = 30000,     /* of the main thread's time: it runs, and does not come */
	PATIENCE_MS = 500,   /* for a main thread that runs little */
	RETURNS_US = 300000, /* the same where one interpreter follows the other */
	RETURNS_MS = 1500,
	US_OF_MS = 1000,
};

/* A pending call cannot be withdrawn, so its argument outlives the job. */
enum call_state {
	CALL_FREE,
	CALL_QUEUED,
	CALL_TAKEN,
	CALL_ABANDONED, /* its job is over */
	CALL_DONE,
	CALL_LOST, /* its interpreter ended, and the next one does not know of it */
};

static struct call {
	_Atomic int state;
	_Atomic uint32_t wake;
	uint64_t order; /* of the queue */
	int life;
	struct prba_connection *connection;
	prba_main_run *run; /* NULL: only make the GIL and register the exit hook */
	bool entered;	    /* the waiter may acquire the GIL; finalization waits for it */
	enum prb_wire_outcome outcome;
	const char *text;
} calls[PENDING_MAX];

static const struct prba_python_table *const py = &prba_python;
static pthread_mutex_t adding = PTHREAD_MUTEX_INITIALIZER;
static uint64_t added; /* while `adding` */
static atomic_bool called_ever;
static _Atomic int main_tid; /* tid that ran the last pending call; 0: none */

/** The calls of an interpreter that has ended are forgotten, unless they came before this one. */
static void drop_lost(const struct call *made)
{
	for (int i = 0; i < PENDING_MAX; i++) {
		struct call *call = &calls[i];
		int queued = CALL_QUEUED, abandoned = CALL_ABANDONED;

		if (call->order >= made->order || call->life == made->life)
			continue;
		atomic_compare_exchange_strong(&call->state, &abandoned, CALL_FREE);
		if (atomic_compare_exchange_strong(&call->state, &queued, CALL_LOST))
			prba_wake(&call->wake);
	}
}

/** Registers the exit hook in a complete interpreter; true if a Ctrl-C for the program came. */
static bool register_hook(void)
{
	bool pressed = py->PySys_GetObject("__stdout__") && !prba_finalization_register(true) &&
		       py->PyErr_Occurred() &&
		       py->PyErr_ExceptionMatches(*py->PyExc_KeyboardInterrupt);

	py->PyErr_Clear();
	return pressed;
}

/** Makes it; true if a Ctrl-C for the program came. */
static bool make(struct call *call)
{
	struct prba_room room = {};
	bool pressed;

	if (prba_places_has_recursion())
		room = prba_places_make_room();
	pressed = register_hook();
	call->entered = !call->run && prba_finalization_is_known() && prba_finalization_enter();
	if (call->run)
		pressed |= call->run(call->connection, &call->outcome, &call->text);
	prba_places_leave_room(&room);
	return pressed;
}

/** A pending call, on the main thread, which holds the GIL. */
static int called(void *argument)
{
	struct call *call = argument;
	int queued = CALL_QUEUED, error = errno;
	bool pressed;

	/* Where a breakpoint is looked for: threads that it starts would not be traced. */
	if (prba_tracing_asks() && !py->Py_AddPendingCall(called, call)) {
		errno = error;
		return 0;
	}
	/* The next request needs the GIL, and so does the worker when its client leaves. */
	if (prba_python_lacks_gil())
		py->PyEval_InitThreads();
	atomic_store(&main_tid, (int)syscall(SYS_gettid));
	drop_lost(call);
	if (!atomic_compare_exchange_strong(&call->state, &queued, CALL_TAKEN)) {
		atomic_store(&call->state, CALL_FREE);
		errno = error;
		return 0;
	}
	pressed = make(call);
	atomic_store(&call->state, CALL_DONE);
	prba_wake(&call->wake);
	errno = error;
	if (!pressed)
		return 0;
	py->PyErr_SetNone(*py->PyExc_KeyboardInterrupt);
	return -1;
}

/** NULL if there is no room. */
static struct call *queue(struct prba_connection *c, prba_main_run *run)
{
	struct call *call = NULL;

	pthread_mutex_lock(&adding);
	for (int i = 0; i < PENDING_MAX && !call; i++)
		if (atomic_load(&calls[i].state) == CALL_FREE)
			call = &calls[i];
	if (call) {
		call->order = ++added;
		call->life = prba_finalization_number();
		call->connection = c;
		call->run = run;
		call->entered = false;
		atomic_store(&call->state, CALL_QUEUED);
		atomic_store(&called_ever, true);
		if (py->Py_AddPendingCall(called, call)) {
			atomic_store(&call->state, CALL_FREE);
			call = NULL;
		}
	}
	pthread_mutex_unlock(&adding);
	return call;
}

/**
 * It is not waited for any more by the worker of @p c, unless it is just made: CALL_DONE, CALL_LOST
 * or CALL_ABANDONED.
 */
static enum call_state withdraw(struct prba_connection *c, struct call *call)
{
	for (;;) {
		uint32_t seen = atomic_load(&call->wake);
		int state = atomic_load(&call->state);

		if (state == CALL_DONE || state == CALL_LOST) {
			c->job.python.entered = call->entered;
			atomic_store(&call->state, CALL_FREE);
			return state;
		}
		if (state == CALL_QUEUED &&
		    atomic_compare_exchange_strong(&call->state, &state, CALL_ABANDONED))
			return CALL_ABANDONED;
		prba_wait(&call->wake, seen);
	}
}

static bool is_open(struct call *call)
{
	int state = atomic_load(&call->state);

	return state == CALL_QUEUED || state == CALL_TAKEN;
}

bool prba_main_call(struct prba_connection *c, prba_main_run *run, enum prb_wire_outcome *outcome,
		    const char **text)
{
	struct call *call = queue(c, run);
	enum call_state ended;

	*outcome = PRB_WIRE_FAILED;
	*text = "the main thread has too many calls to make already";
	if (!call)
		return false;
	atomic_store(&c->job.needs_main, true);
	atomic_store(&c->job.also_wake, &call->wake);
	/* From 3.9 to 3.12 a busy thread learns of a pending call only when it gives up the GIL. */
	if (run && !prba_python_lacks_gil() && prba_finalization_enter()) {
		py->PyGILState_Release(py->PyGILState_Ensure());
		prba_finalization_leave();
	}
	for (;;) {
		uint32_t seen = atomic_load(&call->wake);

		if (!is_open(call) || atomic_load(&c->job.state) == PRBA_CANCELLED)
			break;
		prba_wait(&call->wake, seen);
	}
	ended = withdraw(c, call);
	if (ended == CALL_DONE) {
		*outcome = call->outcome;
		*text = call->text;
	} else if (ended == CALL_LOST) {
		*outcome = PRB_WIRE_REFUSED;
		*text = "Python ended before its main thread came to it";
	} else {
		*outcome = PRB_WIRE_INTERRUPTED;
		*text = "";
	}
	return ended == CALL_DONE;
}

/** How the main thread is followed: since when, when it ran last, and its time on processors. */
struct watch {
	int64_t begun_ms, ran_ms, begun_us, last_us;
};

enum activity { UNSURE, RUNS, RESTS };

/** Its time on processors in µs; -1 if there is no such thread. */
static int64_t time_of(int tid)
{
	enum { PER_THREAD = 4, SCHED = 2, BITS = 3 };
	struct timespec used;

	if (clock_gettime((clockid_t)(~(unsigned)tid << BITS | PER_THREAD | SCHED), &used))
		return -1;
	return used.tv_sec * US_OF_MS * US_OF_MS + used.tv_nsec / US_OF_MS;
}

/** Whether the main thread is blocked in a call; the first look cannot say. */
static enum activity look_at_main(struct watch *w)
{
	int known = atomic_load(&main_tid), tid = known ? known : (int)getpid();
	int64_t now = prba_now_ms(), used = time_of(tid);
	char state[PRBA_STATUS_VALUE];
	bool ran;

	if (used < 0)
		return RESTS;
	prba_status_read(tid, "State", state);
	ran = *state == 'R' || (w->begun_ms && used != w->last_us);
	if (!w->begun_ms) {
		w->begun_ms = w->ran_ms = now;
		w->begun_us = used;
	}
	w->last_us = used;
	if (ran)
		w->ran_ms = now;
	return ran ? RUNS : now - w->ran_ms >= RESTS_MS ? RESTS : UNSURE;
}

/** True if the main thread had time enough to come. */
static bool is_over(const struct watch *w, bool returns)
{
	return w->last_us - w->begun_us >= (returns ? RETURNS_US : BUSY_US) ||
	       prba_now_ms() - w->begun_ms >= (returns ? RETURNS_MS : PATIENCE_MS);
}

/**
 * Python 3.8 cannot be given calls while it calls its functions at exit: it would say so on our
 * thread, with the state of another. So it only is where another interpreter follows soon.
 */
static bool may_be_called(void)
{
	return py->Py_IsInitialized() &&
	       (strncmp(py->Py_GetVersion(), "3.8.", 4) != 0 ||
		(prba_finalization_returns() && !prba_finalization_is_ending()));
}

/** Nothing is known of the interpreter; or there is none, and one may come. */
static bool is_strange(void)
{
	/* Without a GIL it has to be called anyway. */
	return !prba_finalization_look() ||
	       (!prba_python_lacks_gil() &&
		(!prba_finalization_is_known() || prba_finalization_is_ending()));
}

const char *prba_main_register(struct prba_connection *c)
{
	static _Atomic uint32_t nobody;
	struct watch watch = {};
	struct call *call = NULL;
	enum activity main = UNSURE;
	bool over = false;

	if (!prba_finalization_is_embedded())
		return NULL;
	while (!c->job.python.entered && is_strange() && !over && main != RESTS &&
	       atomic_load(&c->job.state) != PRBA_CANCELLED) {
		/* It came at a bad moment, or did not while its interpreter lived. */
		if (call && (!is_open(call) || !py->Py_IsInitialized())) {
			withdraw(c, call);
			call = NULL;
			continue;
		}
		main = look_at_main(&watch);
		over = is_over(&watch, prba_finalization_returns());
		if (!call && main == RUNS && may_be_called())
			call = queue(NULL, NULL);
		prba_wait_for(call ? &call->wake : &nobody, call ? atomic_load(&call->wake) : 0,
			      LOOK_US);
	}
	if (call)
		withdraw(c, call);
	if (!c->job.python.entered && over && prba_finalization_returns() &&
	    prba_finalization_look() && !prba_finalization_is_known())
		return "this program finalizes and restarts Python repeatedly, and the code found "
		       "no time to run";
	return NULL;
}

bool prba_main_is_called(void)
{
	bool any = false;

	for (int i = 0; i < PENDING_MAX; i++)
		any |= atomic_load(&calls[i].state) != CALL_FREE;
	return any;
}

bool prba_main_was_called(void)
{
	return atomic_load(&called_ever);
}

void prba_main_forked(void)
{
	static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

	adding = fresh;
	for (int i = 0; i < PENDING_MAX; i++)
		atomic_store(&calls[i].state, CALL_FREE);
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/eval/debugger.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>

#include "agent/client/connection.h"
#include "agent/eval/enter_python.h"
#include "agent/eval/worker.h"
#include "agent/inside/libc.h"
#include "agent/inside/thread.h"

enum {
	STACK = 8 << 20,
	REST_S = 10, /* how long it waits for more code */
	SOON_MS = 100,
	NS_OF_MS = 1000000,
	SIGSET_BYTES = 8, /* of the kernel */
};

PRBA_EXPORT struct prba_debugger probing_agent_debugger;
static struct prba_debugger *const shared = &probing_agent_debugger;

static struct {
	bool has_thread; /* to be joined */
	pthread_t thread;
	atomic_bool quit;
	struct prba_connection *connection; /* without a socket */
	int timer;			    /* of the kernel */
	_Atomic uint64_t evaluations;
	atomic_bool here, was_here; /* code runs on a thread of the program */
} own;

/** Stops this thread: a debugger sees the signal, and without one the kernel drops it. */
static void stop(void)
{
	atomic_fetch_add(&shared->stops, 1);
	syscall(SYS_tgkill, getpid(), shared->tid, SIGURG);
}

/** Sends us SIGURG soon, and each second from then on; or never. */
static void set_timer(bool on)
{
	static const struct itimerspec regular = {.it_value.tv_nsec = SOON_MS * NS_OF_MS,
						  .it_interval.tv_sec = 1};
	static const struct itimerspec never;
	const struct itimerspec *time = on ? &regular : &never;

	syscall(SYS_timer_settime, own.timer, 0, time, NULL);
}

/** SIGEV_THREAD_ID: the signal must not go to another thread. */
static bool make_timer(void)
{
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGURG};
	uint64_t urgent = 1ull << (SIGURG - 1);

	event._sigev_un._tid = shared->tid;
	syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &urgent, NULL, SIGSET_BYTES);
	return !syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &own.timer);
}

static void begins(struct prba_connection *c)
{
	(void)c;
	if (atomic_load(&own.here))
		return;
	atomic_store(&shared->state, PRBA_DEBUGGER_RUNNING);
	set_timer(false);
	stop();
	set_timer(true);
}

/** Makes the code that there is the connection's job. */
static void take_job(struct prba_connection *c)
{
	struct prba_job *job = &c->job;

	c->out_start = c->out_end = 0;
	job->eval = (struct prb_wire_eval){
		.name = "<probing>",
		.name_length = sizeof("<probing>") - 1,
		.code = shared->code,
		.code_length = (uint32_t)shared->code_length,
		.flags = shared->asks == PRBA_DEBUGGER_FRAME ? PRBA_IN_FRAME : 0,
	};
	__atomic_fetch_add(&job->serial, 1, __ATOMIC_SEQ_CST);
	job->asked = shared->asks == PRBA_DEBUGGER_BREAKS ? PRBA_BREAKS : PRBA_EVALUATES;
	atomic_fetch_add(&own.evaluations, job->asked == PRBA_EVALUATES);
	atomic_store(&job->answered, false);
	atomic_store(&job->interrupted, false);
	atomic_store(&job->lost, 0);
	atomic_store(&job->state, PRBA_WAITING);
}

static void show_result(struct prba_connection *c)
{
	shared->out = (uintptr_t)c->out;
	shared->out_length = c->out_end;
}

static void evaluate(void)
{
	struct prba_connection *c = own.connection;
	uint32_t done = PRBA_DEBUGGER_DONE;

	atomic_store(&shared->state, PRBA_DEBUGGER_WAITING);
	set_timer(true);
	take_job(c);
	prba_work_do(c);
	prba_work_forget(c);
	atomic_store(&c->job.present, false);
	set_timer(false);
	show_result(c);
	atomic_store(&shared->state, PRBA_DEBUGGER_DONE);
	stop();
	atomic_compare_exchange_strong(&shared->state, &done, PRBA_DEBUGGER_IDLE);
}

/** Interrupts what a thread of the program runs for us, and the threads now run for that. */
static void interrupt_here(void)
{
	uint32_t requested = PRBA_DEBUGGER_REQUESTED;

	own.connection->job.interrupts = own.connection->job.serial;
	prba_work_interrupt(own.connection);
	atomic_compare_exchange_strong(&shared->state, &requested, PRBA_DEBUGGER_IDLE);
}

/**
 * False if no code came: a debugger changes the state while we are stopped, and the wait rereads
 * it.
 */
static bool wait_for_code(void)
{
	static const struct timespec rest = {.tv_sec = REST_S};
	uint32_t idle = PRBA_DEBUGGER_IDLE;

	syscall(SYS_futex, &shared->state, FUTEX_WAIT_PRIVATE, idle, &rest, NULL, 0);
	if (atomic_load(&shared->state) == PRBA_DEBUGGER_REQUESTED && !atomic_load(&own.quit))
		return true;
	if (atomic_load(&own.here) && !atomic_load(&own.quit))
		return true;
	return !atomic_compare_exchange_strong(&shared->state, &idle, PRBA_DEBUGGER_NONE);
}

static void *work(void *argument)
{
	(void)argument;
	shared->tid = (int32_t)syscall(SYS_gettid);
	if (make_timer()) {
		while (wait_for_code())
			if (atomic_load(&shared->state) == PRBA_DEBUGGER_REQUESTED)
				shared->asks == PRBA_DEBUGGER_INTERRUPT ? interrupt_here()
									: evaluate();
		syscall(SYS_timer_delete, own.timer);
	}
	atomic_store(&shared->state, PRBA_DEBUGGER_NONE);
	return NULL;
}

/** 0, or -errno. */
static int make_connection(void)
{
	shared->version = PRBA_DEBUGGER_VERSION;
	shared->code_max = PRBA_DEBUGGER_CODE;
	if (own.connection)
		return 0;
	own.connection = prba_connection_create(-1);
	if (!own.connection)
		return -ENOMEM;
	own.connection->keeps = true;
	own.connection->job.begins = begins;
	return 0;
}

PRBA_EXPORT intptr_t probing_agent_debugger_here(void)
{
	uint32_t state = atomic_load(&shared->state);
	int error = errno, rc;

	if ((state != PRBA_DEBUGGER_NONE && state != PRBA_DEBUGGER_IDLE) ||
	    shared->code_length > PRBA_DEBUGGER_CODE || atomic_exchange(&own.here, true))
		return -EBUSY;
	atomic_store(&own.was_here, true);
	rc = make_connection();
	if (!rc) {
		take_job(own.connection);
		prba_work_here(own.connection);
		show_result(own.connection);
		atomic_fetch_add(&shared->stops, 1);
	}
	atomic_store(&own.here, false);
	errno = error;
	return rc;
}

PRBA_EXPORT intptr_t probing_agent_debugger_start(void)
{
	int rc;

	uint32_t state = atomic_load(&shared->state);

	/*
	 * From Linux 6.13 on a timer stops once its signal was dropped, which happens while there
	 * is no debugger.
	 */
	if (state != PRBA_DEBUGGER_NONE && state != PRBA_DEBUGGER_IDLE)
		set_timer(true);
	if (state != PRBA_DEBUGGER_NONE)
		return 1;
	if (atomic_load(&own.here))
		return -EBUSY;
	rc = make_connection();
	if (rc)
		return rc;
	/* A thread that announced its end may have been stopped before it exited. */
	if (own.has_thread && !syscall(SYS_tgkill, getpid(), shared->tid, 0))
		return -EAGAIN;
	if (own.has_thread)
		pthread_join(own.thread, NULL);
	own.has_thread = false;
	atomic_store(&own.quit, false);
	atomic_store(&shared->state, PRBA_DEBUGGER_IDLE);
	rc = prba_thread_start(&own.thread, STACK, "debug", work, NULL);
	own.has_thread = !rc;
	if (rc)
		atomic_store(&shared->state, PRBA_DEBUGGER_NONE);
	return -rc;
}

PRBA_EXPORT intptr_t probing_agent_debugger_interrupt(void)
{
	struct prba_job *job;

	if (!own.connection)
		return -ESRCH;
	job = &own.connection->job;
	/*
	 * An interrupter that still waits for the GIL will interrupt the code that runs when it
	 * gets the GIL.
	 */
	if (job->has_interrupter && !atomic_load(&job->interrupter_done)) {
		job->interrupts = job->serial;
		return 0;
	}
	/* Joining an interrupter that was stopped just before its exit would never return. */
	if (job->has_interrupter && !syscall(SYS_tgkill, getpid(), job->interrupter_tid, 0))
		return -EAGAIN;
	prba_worker_interrupt(own.connection, PRB_WIRE_OK);
	return atomic_load(&job->state) != PRBA_RUNNING || job->has_interrupter ? 0 : -EAGAIN;
}

static void end_thread(void)
{
	atomic_store(&own.quit, true);
	while (atomic_load(&shared->state) != PRBA_DEBUGGER_NONE) {
		static const struct timespec moment = {.tv_nsec = NS_OF_MS};

		syscall(SYS_futex, &shared->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
		syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &moment, NULL);
	}
	pthread_join(own.thread, NULL);
	own.has_thread = false;
}

void prba_debugger_stop(void)
{
	atomic_store(&own.evaluations, 0);
	if (own.connection)
		prba_worker_interrupt(own.connection, PRB_WIRE_OK);
	if (own.has_thread)
		end_thread();
	if (own.connection && !atomic_load(&own.here) && prba_worker_is_over(own.connection)) {
		prba_connection_destroy(own.connection);
		own.connection = NULL;
	}
}

bool prba_debugger_is_here(void)
{
	return atomic_load(&own.here);
}

bool prba_debugger_was_here(void)
{
	return atomic_load(&own.was_here);
}

uint64_t prba_debugger_evaluations(void)
{
	return atomic_load(&own.evaluations);
}

void prba_debugger_forked(void)
{
	atomic_store(&own.evaluations, 0);
	own.has_thread = false;
	own.connection = NULL;
	atomic_store(&own.here, false);
	atomic_store(&shared->state, PRBA_DEBUGGER_NONE);
}

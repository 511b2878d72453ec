/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "target/ptrace/unstopped.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <time.h>
#include <unistd.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid /* C libraries that have no name for it */
#endif

enum {
	PATIENCE_MS = 100,
	GROWTH = 4, /* of the patience, from timer to timer */
	TIMERS = 4,
};

static _Thread_local struct {
	int begun; /* how often */
	timer_t timers[TIMERS];
	size_t count;  /* of existing timers */
	bool keep;     /* when they are not needed for now */
	sigset_t mask; /* of before */
} own;

static void set(timer_t timer, long ms)
{
	const struct itimerspec once = {
		.it_value = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}};

	timer_settime(timer, 0, &once, NULL);
}

static void set_all(long ms)
{
	for (size_t i = 0; i < own.count; i++, ms *= GROWTH)
		set(own.timers[i], ms);
}

static void delete_timers(void)
{
	while (own.count)
		timer_delete(own.timers[--own.count]);
}

/*
 * SIGCONT continues a process when it is sent, blocked or not. Blocked and sent to this thread it
 * comes to no handler that the program may have for it.
 */
void prb_unstopped_begin(void)
{
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGCONT};
	sigset_t held;

	if (own.begun++) {
		prb_unstopped_extend();
		return;
	}
	sigemptyset(&held);
	sigaddset(&held, SIGTSTP);
	sigaddset(&held, SIGTTIN);
	sigaddset(&held, SIGTTOU);
	sigaddset(&held, SIGCONT);
	sigaddset(&held, SIGCHLD);
	pthread_sigmask(SIG_BLOCK, &held, &own.mask);
	event.sigev_notify_thread_id = gettid();
	/*
	 * A timer that has fired fires again only when its signal is taken: so there are several.
	 */
	while (own.count < TIMERS && !timer_create(CLOCK_MONOTONIC, &event, &own.timers[own.count]))
		own.count++;
	set_all(PATIENCE_MS);
}

void prb_unstopped_extend(void)
{
	if (own.count)
		set(own.timers[0], PATIENCE_MS);
}

/* Our own signal is dropped; one that another process has sent meanwhile is kept. */
static void take_signal(void)
{
	sigset_t cont;
	siginfo_t info;

	sigemptyset(&cont);
	sigaddset(&cont, SIGCONT);
	while (sigtimedwait(&cont, &info, &(struct timespec){}) == SIGCONT)
		if (info.si_code != SI_TIMER) {
			kill(getpid(), SIGCONT);
			return;
		}
}

void prb_unstopped_end(void)
{
	if (--own.begun)
		return;
	if (own.keep)
		set_all(0);
	else
		delete_timers();
	if (!sigismember(&own.mask, SIGCONT))
		take_signal();
	pthread_sigmask(SIG_SETMASK, &own.mask, NULL);
}

void prb_unstopped_keep(bool keep)
{
	own.keep = keep;
	if (!keep && !own.begun)
		delete_timers();
}

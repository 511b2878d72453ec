/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "injector/unstopped.h"

#include <pthread.h>
#include <unistd.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid /* C libraries that have no name for it */
#endif

enum {
	PATIENCE_MS = 100,
	GROWTH = 4, /* of the patience, from timer to timer */
};

static void set(timer_t timer, long ms)
{
	const struct itimerspec once = {
		.it_value = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}};

	timer_settime(timer, 0, &once, NULL);
}

/*
 * SIGCONT continues a process when it is sent, blocked or not. Blocked and sent to this thread it
 * comes to no handler that the program may have for it.
 */
void prb_unstopped_begin(struct prb_unstopped *u)
{
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGCONT};
	sigset_t held;

	if (u->begun) {
		prb_unstopped_extend(u);
		return;
	}
	sigemptyset(&held);
	sigaddset(&held, SIGTSTP);
	sigaddset(&held, SIGTTIN);
	sigaddset(&held, SIGTTOU);
	sigaddset(&held, SIGCONT);
	pthread_sigmask(SIG_BLOCK, &held, &u->mask);
	event.sigev_notify_thread_id = gettid();
	u->begun = true;
	/* One that has fired fires again only when its signal is taken: so there are several. */
	for (long ms = PATIENCE_MS; u->count < PRB_UNSTOPPED_TIMERS; u->count++, ms *= GROWTH) {
		if (timer_create(CLOCK_MONOTONIC, &event, &u->timers[u->count]))
			return;
		set(u->timers[u->count], ms);
	}
}

void prb_unstopped_extend(struct prb_unstopped *u)
{
	if (u->count)
		set(u->timers[0], PATIENCE_MS);
}

/* Ours is not for the program; one that somebody else has sent meanwhile is. */
static void take_signal(void)
{
	sigset_t own;
	siginfo_t info;

	sigemptyset(&own);
	sigaddset(&own, SIGCONT);
	while (sigtimedwait(&own, &info, &(struct timespec){}) == SIGCONT)
		if (info.si_code != SI_TIMER) {
			kill(getpid(), SIGCONT);
			return;
		}
}

void prb_unstopped_end(struct prb_unstopped *u)
{
	if (!u->begun)
		return;
	while (u->count)
		timer_delete(u->timers[--u->count]);
	if (!sigismember(&u->mask, SIGCONT))
		take_signal();
	pthread_sigmask(SIG_SETMASK, &u->mask, NULL);
	*u = (struct prb_unstopped){};
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Targets that count signals: fault_signals SHARED
 * timer|queue|blocked|ignored|trap|children|vfork-children|continued
 */
#include <sys/wait.h>

#include "fault.h"

static volatile int64_t ticks, last_value;

static void on_tick(int number, siginfo_t *info, void *context)
{
	(void)number, (void)context;
	ticks += 1 + info->si_overrun;
}

static void on_value(int number, siginfo_t *info, void *context)
{
	(void)number, (void)context;
	shared->received++;
	if (info->si_value.sival_int != last_value + 1)
		fault_wrong(1000 + last_value);
	last_value = info->si_value.sival_int;
}

static void on_trap(int number)
{
	(void)number;
	fault_wrong(5);
}

static void handle(int number, void (*handler)(int, siginfo_t *, void *))
{
	struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART};

	sigaction(number, &action, NULL);
}

/* A thousand times a second by the clock: every tick arrives, or is counted as an overrun. */
static void run_timer(void)
{
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
	struct itimerspec each = {{0, 1000000}, {0, 1000000}}, never = {};
	double start[2], end[2]; /* before and after: it may be kept from running in between */
	timer_t timer;

	handle(SIGALRM, on_tick);
	timer_create(CLOCK_MONOTONIC, &event, &timer);
	start[0] = fault_now();
	timer_settime(timer, 0, &each, NULL);
	start[1] = fault_now();
	fault_ready();
	while (!shared->stop) {
		for (volatile int i = 0; i < 10000; i++)
			;
		fault_round();
	}
	end[0] = fault_now();
	for (int64_t before = ticks; ticks == before;)
		;
	/* All ticks up to here have been delivered. */
	timer_settime(timer, 0, &never, NULL);
	end[1] = fault_now();
	shared->received = ticks;
	shared->sent = (int64_t)((end[0] - start[1]) * 1000);
	if (ticks < shared->sent - 1 || ticks > (int64_t)((end[1] - start[0]) * 1000) + 1)
		fault_wrong(2);
}

/* The test sends numbers 1, 2, 3, …; each arrives once and in order. */
static void run_queue(void)
{
	handle(SIGRTMIN + 1, on_value);
	fault_ready();
	while (!shared->stop) {
		for (volatile int i = 0; i < 10000; i++)
			;
		fault_round();
	}
}

/* All signals are blocked, and those that are sent stay pending. */
static void run_blocked(void)
{
	sigset_t all, now;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	sigprocmask(SIG_SETMASK, NULL, &all);
	fault_ready();
	while (!shared->stop) {
		sigprocmask(SIG_SETMASK, NULL, &now);
		if (memcmp(&now, &all, 8))
			fault_wrong(3);
		fault_round();
	}
}

/* SIGTRAP is ignored, and stays so; with "trap" it has a handler, which is never called. */
static void run_trap(void (*handler)(int))
{
	struct sigaction now;

	signal(SIGTRAP, handler);
	fault_ready();
	while (!shared->stop) {
		sigaction(SIGTRAP, NULL, &now);
		if (now.sa_handler != handler)
			fault_wrong(4);
		fault_round();
	}
}

static volatile int64_t ended;

/* One child at a time, so that no two of its signals become one. */
static void on_child(int number)
{
	int status;

	(void)number;
	ended++;
	if (waitpid(-1, &status, WNOHANG) <= 0 || status)
		fault_wrong(6);
}

static void run_children(int with_vfork)
{
	struct sigaction action = {.sa_handler = on_child, .sa_flags = SA_RESTART};
	sigset_t child, before;

	sigaction(SIGCHLD, &action, NULL);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, &before);
	fault_ready();
	for (int64_t started = 0; !shared->stop;) {
		pid_t pid = with_vfork ? vfork() : fork();

		if (!pid)
			_exit(0);
		started++;
		while (ended < started)
			sigsuspend(&before);
		if (ended != started)
			fault_wrong(1000 + ended - started);
		fault_round();
	}
}

static void on_continue(int number)
{
	(void)number;
	shared->received++;
}

/* The test stops it and continues it. */
static void run_continued(void)
{
	struct sigaction action = {.sa_handler = on_continue, .sa_flags = SA_RESTART};

	sigaction(SIGCONT, &action, NULL);
	fault_ready();
	while (!shared->stop) {
		usleep(1000);
		fault_round();
	}
}

int main(int argc, char **argv)
{
	const char *kind = argc > 2 ? argv[2] : "";

	fault_open(argv[1]);
	if (!strcmp(kind, "timer"))
		run_timer();
	else if (!strcmp(kind, "queue"))
		run_queue();
	else if (!strcmp(kind, "blocked"))
		run_blocked();
	else if (!strcmp(kind, "ignored"))
		run_trap(SIG_IGN);
	else if (!strcmp(kind, "trap"))
		run_trap(on_trap);
	else if (!strcmp(kind, "children"))
		run_children(0);
	else if (!strcmp(kind, "vfork-children"))
		run_children(1);
	else if (!strcmp(kind, "continued"))
		run_continued();
	return fault_end();
}

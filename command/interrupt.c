/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "command/interrupt.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/checked.h"

/* Ctrl-C, and what else asks a command to end. */
static const int ends[] = {SIGINT, SIGTERM, SIGHUP};

static struct prb_session *volatile running;
static volatile sig_atomic_t interrupted, last;
static size_t caught; /* how many of them are */
static struct sigaction actions_before[PRB_ARRAY_SIZE(ends)];
static volatile sig_atomic_t in_background;

static void on_interrupt(int number, siginfo_t *info, void *context)
{
	(void)context;
	if (in_background && number == SIGINT && info->si_code == SI_KERNEL)
		return;
	interrupted++;
	if (last)
		signal(number, SIG_DFL);
	if (running)
		prb_session_cancel(running);
}

bool prb_interrupt_is_caught(int number, const struct sigaction *before)
{
	return before->sa_handler != SIG_IGN || number == SIGINT;
}

/* The first @p count of them. */
static void catch_first(struct prb_session *session, size_t count)
{
	/* No SA_RESTART: what waits for the terminal or the clock has to notice. */
	struct sigaction action = {.sa_sigaction = on_interrupt, .sa_flags = SA_SIGINFO};

	running = session;
	interrupted = last = 0;
	caught = count;
	for (size_t i = 0; i < PRB_ARRAY_SIZE(ends) && i < count; i++) {
		sigaction(ends[i], NULL, &actions_before[i]);
		if (ends[i] == SIGINT)
			in_background = actions_before[i].sa_handler == SIG_IGN;
		if (prb_interrupt_is_caught(ends[i], &actions_before[i]))
			sigaction(ends[i], &action, NULL);
	}
}

void prb_interrupt_catch(struct prb_session *session)
{
	catch_first(session, 1);
}

void prb_interrupt_catch_ends(void)
{
	catch_first(NULL, PRB_ARRAY_SIZE(ends));
}

void prb_interrupt_last(void)
{
	if (last)
		return;
	interrupted = 0;
	last = 1;
}

void prb_interrupt_aim(struct prb_session *session)
{
	running = session;
}

static void caught_set(sigset_t *ret)
{
	sigemptyset(ret);
	for (size_t i = 0; i < PRB_ARRAY_SIZE(ends) && (!i || i < caught); i++)
		sigaddset(ret, ends[i]);
}

void prb_interrupt_hold(bool hold)
{
	sigset_t set;

	caught_set(&set);
	sigprocmask(hold ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

void prb_interrupt_pass(void)
{
	sigset_t set, before;

	caught_set(&set);
	sigprocmask(SIG_UNBLOCK, &set, &before);
	sigprocmask(SIG_SETMASK, &before, NULL);
}

void prb_interrupt_release(void)
{
	if (!caught)
		return;
	for (size_t i = 0; i < PRB_ARRAY_SIZE(ends) && i < caught; i++)
		sigaction(ends[i], &actions_before[i], NULL);
	running = NULL;
	caught = 0;
}

bool prb_interrupted(void)
{
	return interrupted;
}

unsigned prb_interrupt_count(void)
{
	return (unsigned)interrupted;
}

void prb_interrupt_forget(void)
{
	interrupted = 0;
}

void prb_interrupt_end(void)
{
	signal(SIGINT, SIG_DFL);
	raise(SIGINT);
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "command/interrupt.h"

#include <signal.h>
#include <stddef.h>

static struct prb_session *volatile running;
static volatile sig_atomic_t interrupted;
static bool caught, kept;
static struct sigaction action_before;

static void on_interrupt(int number)
{
	(void)number;
	interrupted++;
	if (running)
		prb_session_cancel(running);
}

void prb_interrupt_catch(struct prb_session *session)
{
	/* No SA_RESTART: what waits for the terminal or the clock has to notice. */
	struct sigaction action = {.sa_handler = on_interrupt};

	running = session;
	if (kept)
		return;
	interrupted = 0;
	caught = true;
	sigaction(SIGINT, NULL, &action_before);
	if (action_before.sa_handler != SIG_IGN)
		sigaction(SIGINT, &action, NULL);
}

void prb_interrupt_keep(void)
{
	prb_interrupt_catch(NULL);
	kept = true;
}

void prb_interrupt_aim(struct prb_session *session)
{
	running = session;
}

void prb_interrupt_hold(bool hold)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigprocmask(hold ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

void prb_interrupt_pass(void)
{
	sigset_t set, before;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_UNBLOCK, &set, &before);
	sigprocmask(SIG_SETMASK, &before, NULL);
}

void prb_interrupt_release(void)
{
	if (!caught || kept)
		return;
	sigaction(SIGINT, &action_before, NULL);
	running = NULL;
	caught = false;
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

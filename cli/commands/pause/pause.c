/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/commands/pause/pause.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "command/exit.h"
#include "control/freeze.h"
#include "command/interrupt.h"
#include "command/output.h"
#include "control/pause.h"
#include "control/pause_state.h"
#include "cli/commands/pause/warn.h"
#include "remote/serve/serve.h"
#include "control/stop_threads.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/text.h"
#include "target/ptrace/fault_step.h"
#include "target/spec/target_spec.h"
#include "base/clock.h"

/** Nothing that happens to this program makes a pause longer than its limit by more. */
static const double GRACE_SECONDS = 2;

/** Indices of the descriptors that are watched while it is paused. */
enum { SIGNALS, TARGET, DEADLINE, ENDS };

struct pauser {
	const struct prb_pause_settings *settings;
	struct prb_target *target;
	struct prb_pause pause;		    /* its agent is NULL: by ptrace */
	struct prb_stopped_threads stopped; /* by ptrace */
	struct prb_listener listener;	    /* fd -1: not served */
	struct prb_token token;
	struct prb_freeze freeze;
	int ends[ENDS];
	bool told_to_end;
	struct prb_error *err;
};

static void put_time(struct prb_str *s, const char *key, double seconds)
{
	prb_str_puts(s, key);
	prb_text_duration(s, seconds);
}

/** Reports the pause, and how to inspect and resume the process. */
static struct prb_error *tell_paused(const struct pauser *p)
{
	prb_auto_str struct prb_str s = {};
	struct prb_json json = {.out = &s};
	int pid = (int)p->target->pid;
	bool served = p->listener.fd >= 0;

	if (p->settings->json) {
		prb_json_open(&json, NULL, '{');
		prb_json_text(&json, "event", "paused");
		prb_json_integer(&json, "pid", pid);
		prb_json_text(&json, "by", p->pause.agent ? "agent" : "ptrace");
		prb_json_integer(&json, "after_us",
				 (int64_t)((p->pause.paused - p->pause.asked) * 1e6));
		prb_json_real(&json, "max_seconds", p->pause.max, 3);
		prb_json_text(&json, "address", served ? p->listener.address : NULL);
		prb_json_text(&json, "token", served && !p->token.known ? p->token.text : NULL);
		prb_json_close(&json, '}');
		prb_str_putc(&s, '\n');
		return prb_output(&s);
	}
	prb_str_printf(&s, "%d is paused (%s)", pid,
		       p->pause.agent ? "Python threads only" : "all threads, by ptrace");
	put_time(&s, " for at most ", p->pause.max);
	prb_str_putc(&s, '\n');
	if (p->pause.agent)
		prb_str_printf(&s,
			       "  inspect   probing -t %d backtrace | query | eval | repl\n"
			       "  step      probing -t %d step | step --time 10ms\n",
			       pid, pid);
	else
		prb_str_printf(&s, "  inspect   probing -t %d backtrace | query\n", pid);
	prb_str_printf(&s, "  resume    Ctrl-C here, or probing -t %d resume\n", pid);
	if (served)
		prb_str_printf(&s, "  remote    probing -t %s ...\n", p->listener.address);
	if (served && !p->token.known)
		prb_str_printf(&s, "PROBING_AUTH_TOKEN=%s\n", p->token.text);
	return prb_output(&s);
}

static struct prb_error *tell_resumed(const struct pauser *p)
{
	static const char *const reasons[] = {
		[PRB_WIRE_OK] = "resume",
		[PRB_WIRE_RAISED] = "",
		[PRB_WIRE_INTERRUPTED] = "interrupted",
		[PRB_WIRE_NO_GIL] = "",
		[PRB_WIRE_MAIN_NOT_REACHED] = "",
		[PRB_WIRE_TIMED_OUT] = "deadline",
	};
	const char *reason =
		(size_t)p->pause.how < PRB_ARRAY_SIZE(reasons) ? reasons[p->pause.how] : "shutdown";
	prb_auto_str struct prb_str s = {};
	struct prb_json json = {.out = &s};

	if (p->settings->json) {
		prb_json_open(&json, NULL, '{');
		prb_json_text(&json, "event", "resumed");
		prb_json_integer(&json, "pid", p->target->pid);
		prb_json_natural(&json, "held_us", p->pause.held_us);
		prb_json_text(&json, "reason", reason);
		prb_json_close(&json, '}');
		prb_str_putc(&s, '\n');
		return prb_output(&s);
	}
	prb_str_printf(&s, "%d resumed", (int)p->target->pid);
	if (p->pause.held_us >= 0)
		put_time(&s, " after ", (double)p->pause.held_us / 1e6);
	prb_str_puts(&s, p->pause.how == PRB_WIRE_TIMED_OUT
				 ? ": the time limit (--max) is reached\n"
				 : "\n");
	return prb_output(&s);
}

static void note(struct pauser *p, struct prb_error *err)
{
	if (p->err)
		prb_error_destroy(err);
	else
		p->err = err;
	p->pause.over |= p->err != NULL;
}

/** Stops the other threads for the agent. */
static void freeze(struct pauser *p, const struct prb_wire_frame *frame)
{
	uint8_t payload[PRB_WIRE_FROZEN_SIZE];

	prb_freeze_stop(&p->freeze, frame, payload);
	prb_fault_step();
	note(p, prb_agent_send(p->pause.agent, PRB_WIRE_FROZEN, payload, sizeof(payload), NULL, 0));
}

static void take(struct pauser *p, const struct prb_wire_frame *frame)
{
	prb_fault_step();
	if (frame->type == PRB_WIRE_FREEZE) {
		freeze(p, frame);
		return;
	}
	if (frame->type == PRB_WIRE_THAW || frame->type == PRB_WIRE_RESUMED)
		prb_freeze_thaw(&p->freeze);
	note(p, prb_pause_take(&p->pause, frame));
	if (frame->type == PRB_WIRE_PAUSED)
		note(p, tell_paused(p));
}

/** Resumes the target; a second Ctrl-C does not wait for the agent. */
static void end(struct pauser *p)
{
	prb_fault_step();
	if (!p->pause.agent) {
		p->pause.over = true;
		p->pause.how = PRB_WIRE_INTERRUPTED;
	} else if (p->told_to_end) {
		note(p, prb_error_create(PRB_ERROR_CANCELLED, "interrupted"));
	} else {
		note(p, prb_pause_end(&p->pause));
	}
	p->told_to_end = true;
}

/** Takes what the agent has sent. */
static void listen_to_agent(struct pauser *p)
{
	enum { AT_ONCE = 1000 }; /* far more than an agent sends without an answer of ours */

	for (int i = 0; !p->pause.over; i++) {
		struct prb_wire_frame frame;
		struct prb_error *err = prb_agent_receive(p->pause.agent, 0, &frame);

		if (prb_error_catch(&err, PRB_ERROR_TIMEOUT))
			return;
		/* Ctrl-C, which gets through while that waits. */
		if (prb_error_catch(&err, PRB_ERROR_CANCELLED)) {
			end(p);
			continue;
		}
		if (err && err->code == PRB_ERROR_NO_PROCESS)
			err = prb_agent_explain_end(p->pause.agent, err);
		if (err)
			note(p, err);
		else if (i == AT_ONCE)
			note(p, prb_error_create(PRB_ERROR_BAD_DATA,
						 "the agent of process %d violates the protocol: "
						 "over %d frames at once",
						 (int)p->target->pid, AT_ONCE));
		else
			take(p, &frame);
	}
}

/** Something can be read from the descriptor; true if the pause is over. */
static bool happened(void *context, size_t which)
{
	struct pauser *p = context;
	struct signalfd_siginfo signal;

	if (which == SIGNALS && read(p->ends[SIGNALS], &signal, sizeof(signal)) > 0)
		end(p);
	if (which == TARGET && p->pause.agent)
		listen_to_agent(p);
	if (which == TARGET && !p->pause.agent)
		note(p, prb_error_create(PRB_ERROR_NO_PROCESS, "process %d has ended",
					 (int)p->target->pid));
	if (which == DEADLINE && p->pause.agent)
		note(p,
		     prb_error_hint(prb_error_create(
					    PRB_ERROR_TIMEOUT,
					    "the agent of process %d did not say in time that the "
					    "pause is over",
					    (int)p->target->pid),
				    "'probing %d debug --dump' shows what the process does",
				    (int)p->target->pid));
	else if (which == DEADLINE) {
		p->pause.over = true;
		p->pause.how = PRB_WIRE_TIMED_OUT;
	}
	return p->pause.over;
}

/** Until the pause is over, or @p begun has been set. */
static void follow(struct pauser *p, const double *begun)
{
	while (!p->pause.over && !*begun) {
		struct pollfd fds[ENDS];

		for (size_t i = 0; i < ENDS; i++)
			fds[i] = (struct pollfd){.fd = p->ends[i], .events = POLLIN};
		if (poll(fds, ENDS, -1) < 0 && errno != EINTR) {
			note(p, prb_error_os(errno, "cannot wait"));
			return;
		}
		for (size_t i = 0; i < ENDS && !p->pause.over; i++)
			if (fds[i].revents)
				happened(p, i);
	}
}

/** Waits for the end of the pause, and serves clients meanwhile. */
static void wait_for_end(struct pauser *p)
{
	static const double never;

	if (!p->pause.over && p->listener.fd >= 0) {
		prb_auto_free char *target = prb_format("%d", (int)p->target->pid);

		note(p, !target ? prb_error_nomem()
				: prb_serve(&(struct prb_serve){.listener = &p->listener,
								.token = &p->token,
								.pid = p->target->pid,
								.target = target,
								.once = p->settings->once,
								.ends = p->ends,
								.end_count = ENDS,
								.ended = happened,
								.context = p}));
		if (!p->pause.over)
			end(p);
	}
	follow(p, &never);
}

/** Binds before the target is paused. */
static struct prb_error *listen_at(struct pauser *p, const char *token_file)
{
	const struct prb_pause_settings *s = p->settings;

	if (s->once && !s->address)
		return prb_error_create(PRB_ERROR_USAGE, "--once goes with --address");
	if (!s->address)
		return NULL;
	PRB_TRY(prb_listener_open(s->address, &p->listener));
	PRB_TRY(prb_token_choose(token_file, &p->token));
	if (!p->listener.loopback)
		prb_warn("other machines can reach that address, and what is sent is not "
			 "encrypted: use it in a network that you trust");
	return NULL;
}

/** Ctrl-C and its like become readable; Ctrl-Z would leave the target paused. */
static struct prb_error *watch_signals(struct pauser *p)
{
	sigset_t set;

	prb_interrupt_catch(NULL);
	signal(SIGTSTP, SIG_IGN);
	signal(SIGTTIN, SIG_IGN);
	signal(SIGTTOU, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	p->ends[SIGNALS] = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return p->ends[SIGNALS] < 0 ? prb_error_os(errno, "cannot watch for signals") : NULL;
}

static struct itimerspec after(double seconds)
{
	return (struct itimerspec){
		.it_value = {.tv_sec = (time_t)seconds,
			     .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9) + 1}};
}

struct prb_error *prb_pause_limit_own_life(double seconds)
{
	static const struct itimerspec never;
	static bool made;
	static timer_t timer;
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
	struct itimerspec when = seconds > 0 ? after(seconds + GRACE_SECONDS) : never;

	if ((!made && timer_create(CLOCK_MONOTONIC, &event, &timer)) ||
	    timer_settime(timer, 0, &when, NULL))
		return prb_error_os(errno, "cannot set a limit for the pause");
	made = true;
	return NULL;
}

/** DEADLINE becomes readable after so many seconds. */
static struct prb_error *set_deadline(struct pauser *p, double seconds)
{
	struct itimerspec when = after(seconds);

	p->ends[DEADLINE] = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	if (p->ends[DEADLINE] < 0 || timerfd_settime(p->ends[DEADLINE], 0, &when, NULL))
		return prb_error_os(errno, "cannot set a limit for the pause");
	return NULL;
}

static struct prb_error *ask(struct pauser *p)
{
	PRB_TRY(prb_pause_ask(&p->pause, true));
	/* Nothing is held before. The agent keeps both limits itself. */
	PRB_TRY(set_deadline(p, p->pause.max + p->pause.within + GRACE_SECONDS / 2));
	PRB_TRY(prb_pause_limit_own_life(p->pause.max + p->pause.within));
	p->ends[TARGET] = prb_agent_descriptor(p->pause.agent);
	p->freeze.agent = p->pause.agent;
	return NULL;
}

/** By the agent: the connection is what holds it. */
static struct prb_error *pause_softly(struct pauser *p)
{
	PRB_TRY(ask(p));
	follow(p, &p->pause.paused);
	wait_for_end(p);
	if (p->err)
		return prb_steal(&p->err);
	if (!p->pause.paused)
		return prb_pause_explain(&p->pause);
	return tell_resumed(p);
}

/** By ptrace: our being its tracer is what holds it. */
static struct prb_error *pause_hard(struct pauser *p)
{
	p->ends[TARGET] = (int)syscall(SYS_pidfd_open, p->target->pid, 0);
	if (p->ends[TARGET] < 0)
		return prb_error_os(errno, "cannot watch process %d", (int)p->target->pid);
	PRB_TRY(prb_pause_limit_own_life(p->pause.max + p->pause.within));
	PRB_TRY(set_deadline(p, p->pause.max));
	p->pause.asked = prb_clock_seconds();
	PRB_TRY(prb_stop_threads_all(&p->stopped, p->target->pid));
	p->pause.paused = prb_clock_seconds();
	note(p, tell_paused(p));
	wait_for_end(p);
	p->pause.held_us = (int64_t)((prb_clock_seconds() - p->pause.paused) * 1e6);
	prb_stop_threads_end(&p->stopped);
	return p->err ? prb_steal(&p->err) : tell_resumed(p);
}

static void pauser_deinit(struct pauser *p)
{
	prb_stop_threads_end(&p->stopped);
	prb_freeze_thaw(&p->freeze);
	for (size_t i = 0; i < ENDS; i++)
		if (p->ends[i] >= 0 && !(i == TARGET && p->pause.agent))
			close(p->ends[i]);
	prb_pause_deinit(&p->pause);
	prb_listener_close(&p->listener);
	prb_target_destroy(p->target);
	prb_error_destroy(p->err);
}

struct prb_error *prb_pause_command(const struct prb_cli *cli, const struct prb_pause_settings *s)
{
	__attribute__((cleanup(pauser_deinit))) struct pauser p = {
		.settings = s,
		.ends = {-1, -1, -1},
		.listener = {.fd = -1},
	};
	struct prb_pause_state hard;

	PRB_TRY(prb_spec_open_in(cli->target, &cli->places, &p.target));
	if (!p.target->loadable)
		return prb_error_create(PRB_ERROR_UNSUPPORTED,
					"a %s cannot be paused: nothing runs in it",
					prb_target_kind_name(p.target->kind));
	prb_pause_state_find_hard(p.target, &hard);
	if (hard.paused)
		return prb_pause_already(p.target, &hard);
	prb_pause_init(&p.pause, p.target, s->within, s->max);
	prb_pause_look(p.target, p.pause.max, s->hard, &p.freeze.gil);
	p.freeze.target = p.target;
	PRB_TRY(listen_at(&p, cli->token_file));
	PRB_TRY(watch_signals(&p));
	return s->hard ? pause_hard(&p) : pause_softly(&p);
}

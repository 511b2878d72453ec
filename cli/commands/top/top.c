/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "command/command.h"
#include "command/descriptors.h"
#include "command/interrupt.h"
#include "command/output.h"
#include "cli/commands/top/top.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "profile/sampler/sampler.h"
#include "target/spec/command_line.h"
#include "target/spec/target_spec.h"

struct settings {
	bool batch, lines, native;
	int count, rate, tid;
	double interval;
	const char *mode;
};

enum { RATE = 100, LOWEST_RATE = 10, HIGHEST_RATE = 10000, BATCH_ROWS = 20 };

/* Sampling, in a thread of its own: a terminal that is slow, or stopped, delays no sample. */
struct sampling {
	struct prb_target *target;
	struct prb_profile_options options;
	struct prb_recording *recording;
	struct prb_error *error;
	pthread_t thread;
	pthread_mutex_t gate; /* of struct prb_top */
	atomic_bool cancelled, native;
	volatile bool over;
};

static volatile sig_atomic_t received;
static const struct prb_live *woken;

static volatile sig_atomic_t in_background;

static void on_signal(int number, siginfo_t *info, void *context)
{
	(void)context;
	if (in_background && number == SIGINT && info->si_code == SI_KERNEL)
		return;
	received = number;
	prb_live_wake(woken);
}

static bool is_cancelled(void *context)
{
	const struct sampling *s = context;

	return s->cancelled;
}

static bool wants_native(void *context)
{
	const struct sampling *s = context;

	return s->native;
}

static void *sample(void *context)
{
	struct sampling *s = context;

	s->error = prb_profile_record(s->target, &s->options, &s->recording);
	s->over = true;
	prb_live_wake(s->options.live);
	return NULL;
}

static struct prb_error *name_command(struct sampling *s, char **ret)
{
	prb_auto_str struct prb_str text = {};
	struct prb_process process;

	if (!s->target->local)
		return NULL;
	PRB_TRY(prb_process_describe(s->target->pid, &process));
	prb_command_line_text(&text, &process);
	prb_process_deinit(&process);
	*ret = prb_str_take(&text);
	return *ret ? NULL : prb_error_nomem();
}

static const int ends[] = {SIGINT, SIGTERM, SIGHUP};

/* Signals are for the thread that shows. */
static struct prb_error *start(struct sampling *s)
{
	sigset_t all, before;
	int failed;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	failed = pthread_create(&s->thread, NULL, sample, s);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return failed ? prb_error_os(failed, "cannot start a thread that samples") : NULL;
}

static void catch_signals(const struct prb_live *live, struct sigaction *before)
{
	/* No SA_RESTART: a signal must end the wait for a key. */
	const struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};

	woken = live;
	received = 0;
	for (size_t i = 0; i < PRB_ARRAY_SIZE(ends); i++) {
		sigaction(ends[i], NULL, &before[i]);
		if (ends[i] == SIGINT)
			in_background = before[i].sa_handler == SIG_IGN;
		if (prb_interrupt_is_caught(ends[i], &before[i]))
			sigaction(ends[i], &action, NULL);
	}
}

static void release_signals(const struct sigaction *before)
{
	for (size_t i = 0; i < PRB_ARRAY_SIZE(ends); i++)
		sigaction(ends[i], &before[i], NULL);
}

static struct prb_error *print(const struct prb_top *top, bool more)
{
	prb_auto_str struct prb_str text = {};
	struct prb_top_page page = {};
	struct prb_error *err = prb_top_page(top, BATCH_ROWS, &page);

	text = page.text;
	PRB_TRY(err);
	if (more)
		prb_str_putc(&text, '\n');
	return prb_output(&text);
}

/* Pages for logs, each of what is new. */
static struct prb_error *print_all(struct prb_top *top, const struct sampling *s, int count)
{
	struct pollfd wait = {.fd = prb_live_fd(top->live), .events = POLLIN};
	bool is_new;

	for (int printed = 0; !received && (!count || printed < count);) {
		bool over = s->over;

		PRB_TRY(prb_top_take(top, &is_new));
		if (is_new) {
			PRB_TRY(print(top, true));
			printed++;
		} else if (over) {
			break;
		} else if (poll(&wait, 1, -1) < 0 && errno != EINTR) {
			return prb_error_os(errno, "cannot wait for samples");
		}
	}
	return NULL;
}

static struct prb_error *show(struct prb_top *top, struct sampling *s,
			      const struct settings *settings)
{
	if (settings->batch)
		return print_all(top, s, settings->count);
	PRB_TRY(prb_top_screen(top, &s->over, &received));
	/* The last page stays on the terminal when the process has ended. */
	if (s->over && !s->error && top->parts.count)
		return print(top, false);
	return NULL;
}

static struct prb_error *check(const struct settings *s, enum prb_weight *weight)
{
	PRB_TRY(prb_weight_parse(s->mode, weight));
	if (s->rate && (s->rate < LOWEST_RATE || s->rate > HIGHEST_RATE))
		return prb_error_create(PRB_ERROR_USAGE, "--rate is from %d to %d", LOWEST_RATE,
					HIGHEST_RATE);
	if (s->count && !s->batch)
		return prb_error_create(PRB_ERROR_USAGE,
					"--count is of --batch, which is not given");
	if (!s->batch && (!isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO)))
		return prb_error_hint(prb_error_create(PRB_ERROR_USAGE,
						       "top needs a terminal to read keys from "
						       "and to draw on"),
				      "'top --batch' prints for a log");
	return NULL;
}

/* The sampler has ended when this returns. */
static struct prb_error *look(struct prb_top *top, struct sampling *s,
			      const struct settings *settings)
{
	struct sigaction before[PRB_ARRAY_SIZE(ends)];
	struct prb_error *err;

	catch_signals(top->live, before);
	err = start(s);
	if (!err) {
		err = show(top, s, settings);
		s->cancelled = true;
		pthread_join(s->thread, NULL);
	}
	release_signals(before);
	if (s->error && err)
		prb_error_destroy(prb_steal(&s->error));
	return err ? err : prb_command_line_name(s->target, prb_steal(&s->error));
}

static struct prb_error *run_on(struct prb_target *target, const struct settings *settings,
				enum prb_weight weight)
{
	const double interval = settings->interval > 0 ? settings->interval : 1;
	prb_auto_free char *command = NULL;
	struct sampling s = {
		.target = target,
		.gate = PTHREAD_MUTEX_INITIALIZER,
		.native = settings->native,
		.options = {.seconds = 1e9,
			    .rate = settings->rate ? settings->rate : RATE,
			    .tid = settings->tid,
			    .native = settings->native,
			    .wants_native = wants_native,
			    .cancelled = is_cancelled},
	};
	struct prb_top top = {.gate = &s.gate,
			      .native = &s.native,
			      .weight = weight,
			      .lines = settings->lines,
			      .window = settings->batch ? 1e-9 : 10};
	struct prb_error *err;

	PRB_TRY(name_command(&s, &command));
	PRB_TRY(prb_live_create(interval, &top.live));
	s.options.context = &s;
	s.options.command = command;
	s.options.live = top.live;
	s.options.gate = &s.gate;
	err = look(&top, &s, settings);
	if (!err && s.recording && s.recording->end != PRB_PROFILE_INTERRUPTED &&
	    prb_profile_end_text(s.recording->end))
		fprintf(stderr, "%s\n", prb_profile_end_text(s.recording->end));
	prb_top_deinit(&top);
	prb_live_destroy(top.live);
	prb_recording_destroy(s.recording);
	return err;
}

static struct prb_error *run(const struct prb_cli *cli, const void *context)
{
	const struct settings *settings = context;
	prb_auto_target struct prb_target *target = NULL;
	enum prb_weight weight;

	PRB_TRY(check(settings, &weight));
	prb_descriptors_raise();
	PRB_TRY(prb_spec_open_in(cli->target, &cli->places, &target));
	PRB_TRY(run_on(target, settings, weight));
	if (received && received != SIGINT)
		raise(received);
	return NULL;
}

static const struct prb_option options[] = {
	{"batch", 'b', PRB_OPTION_FLAG, NULL, "Print what each interval shows, for a log",
	 PRB_COMPLETE_NOTHING, offsetof(struct settings, batch)},
	{"count", 'n', PRB_OPTION_NUMBER, "COUNT", "With --batch: end after COUNT intervals",
	 PRB_COMPLETE_NOTHING, offsetof(struct settings, count)},
	{"interval", 'i', PRB_OPTION_SECONDS, "TIME", "How often it is shown anew; without it 1s",
	 PRB_COMPLETE_NOTHING, offsetof(struct settings, interval)},
	{"rate", 'r', PRB_OPTION_NUMBER, "HZ", "Samples a second on average; without it 100",
	 PRB_COMPLETE_NOTHING, offsetof(struct settings, rate)},
	{"mode", 'm', PRB_OPTION_TEXT, "MODE",
	 "What is weighed: cpu, runqueue, gil, blocked or wall time", PRB_COMPLETE_NOTHING,
	 offsetof(struct settings, mode)},
	{"tid", 0, PRB_OPTION_NUMBER, "TID", "Only the thread TID", PRB_COMPLETE_NOTHING,
	 offsetof(struct settings, tid)},
	{"cc", 'C', PRB_OPTION_FLAG, NULL, "C and C++ frames too; the key 'n' switches them",
	 PRB_COMPLETE_NOTHING, offsetof(struct settings, native)},
	{"lines", 'l', PRB_OPTION_FLAG, NULL, "Each line of a function by itself",
	 PRB_COMPLETE_NOTHING, offsetof(struct settings, lines)},
	{}};

const struct prb_command prb_command_top = {
	.rank = 67,
	.name = "top",
	.summary = "Show live where a process spends its time",
	.description =
		"Samples as 'performance' does, and shows on the terminal, once a second, which "
		"functions used the processors in the last 10 seconds: by themselves, with all "
		"that "
		"they called, and how that has changed. Tab shows the threads. The key '?' shows "
		"all keys, 'q' or Ctrl-C quits.\n\n"
		"With --batch it prints what each interval shows, for a log.",
	.options = options,
	.settings_size = sizeof(struct settings),
	.target_use = PRB_TARGET_ONE,
	.complete = PRB_COMPLETE_TARGET,
	.examples = (const struct prb_example[]){{"probing 4242 top", "Look at it"},
						 {"probing 4242 top --batch -n 3 -i 5s",
						  "Three tables, one each five seconds"},
						 {}},
	.run = run,
};

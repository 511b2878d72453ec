/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cli/agent_client.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "dwarf/base/cleanup.h"
#include "dwarf/base/json.h"
#include "dwarf/base/text.h"
#include "sql/target_spec.h"

struct resume_settings {
	bool json;
};

static const double ANSWER_SECONDS = 2;
enum { END_MS = 5000 };

static bool is_word_of(const struct prb_str *words, const char *word)
{
	const char *at = prb_str_text(words), *end = at + words->length;

	for (; at < end; at += strlen(at) + 1)
		if (!strcmp(at, word))
			return true;
	return false;
}

/** The process of `debug --pause --hard` that holds @p t, 0 if there is none. */
static pid_t find_holder(struct prb_target *t)
{
	prb_auto_str struct prb_str status = {}, words = {};
	prb_auto_error struct prb_error *err = prb_target_read_file(t, &status, "status");
	prb_auto_error struct prb_error *gone = NULL;
	struct prb_target *tracer = NULL;
	const char *line = err ? NULL : strstr(prb_str_text(&status), "\nTracerPid:\t");
	int pid = 0;

	if (!line || sscanf(line, "\nTracerPid:\t%d", &pid) != 1 || pid <= 0)
		return 0;
	gone = prb_target_open_process(pid, &tracer);
	if (!gone)
		gone = prb_target_read_file(tracer, &words, "cmdline");
	if (tracer)
		prb_target_destroy(tracer);
	return !gone && is_word_of(&words, "--pause") && is_word_of(&words, "--hard") ? pid : 0;
}

/** Tells the process that holds the target to end, as Ctrl-C does there. */
static struct prb_error *end_holder(pid_t pid)
{
	prb_auto_close int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd wait = {.fd = fd, .events = POLLIN};

	if (fd < 0 && errno == ESRCH)
		return NULL;
	if (fd < 0 || syscall(SYS_pidfd_send_signal, fd, SIGINT, NULL, 0))
		return prb_error_os(errno, "cannot tell process %d, which holds it", (int)pid);
	if (poll(&wait, 1, END_MS) == 1)
		return NULL;
	return prb_error_create(PRB_ERROR_TIMEOUT, "process %d, which holds it, does not end",
				(int)pid);
}

static struct prb_error *ask_agent(struct prb_target *t, int64_t *held_us)
{
	struct prb_agent *agent = NULL;
	struct prb_wire_frame frame;
	uint64_t us;
	struct prb_error *err = prb_agent_connect(t, &agent);

	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		return prb_error_create(PRB_ERROR_FAILED, "process %d is not paused", (int)t->pid);
	if (!err)
		err = prb_agent_ask(agent, PRB_WIRE_RESUME, PRB_WIRE_RESUMED, ANSWER_SECONDS,
				    &frame);
	if (!err && prb_wire_get_number64(&frame, PRB_WIRE_RESUMED, &us))
		*held_us = (int64_t)us;
	prb_agent_close(agent);
	return err;
}

static struct prb_error *tell(pid_t pid, int64_t held_us, bool as_json)
{
	prb_auto_str struct prb_str s = {};
	struct prb_json json = {.out = &s};

	if (as_json) {
		prb_json_open(&json, NULL, '{');
		prb_json_integer(&json, "pid", pid);
		prb_json_bool(&json, "resumed", true);
		prb_json_natural(&json, "held_us", held_us);
		prb_json_close(&json, '}');
	} else {
		prb_str_printf(&s, "%d runs again", (int)pid);
		if (held_us >= 0) {
			prb_str_puts(&s, ": it stood for ");
			prb_text_duration(&s, (double)held_us / 1e6);
		}
	}
	prb_str_putc(&s, '\n');
	return prb_output(&s);
}

static struct prb_error *run(const struct prb_cli *cli, const void *settings)
{
	const struct resume_settings *s = settings;
	struct prb_target *target;
	int64_t held_us = -1;

	PRB_TRY(prb_spec_open(cli->target, cli->exe, &target));

	pid_t pid = target->pid, holder = find_holder(target);
	struct prb_error *err = holder ? end_holder(holder) : ask_agent(target, &held_us);

	prb_target_destroy(target);
	PRB_TRY(err);
	return tell(pid, held_us, s->json);
}

const struct prb_command prb_command_resume = {
	.name = "resume",
	.summary = "Let a paused target run again",
	.description = "Ends what 'probing debug --pause' began, whoever began it; that command "
		       "ends, too. It fails if the target is not paused.",
	.options = (const struct prb_option[]){{"json", 0, PRB_OPTION_FLAG, NULL, "Print JSON",
						PRB_COMPLETE_NOTHING,
						offsetof(struct resume_settings, json)},
					       {}},
	.settings_size = sizeof(struct resume_settings),
	.target_use = PRB_TARGET_ONE,
	.complete = PRB_COMPLETE_PROCESS,
	.examples = (const struct prb_example[]){{"probing 4242 resume", "Let it run"}, {}},
	.run = run,
};

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "control/client.h"
#include "command/command.h"
#include "command/output.h"
#include "control/pause_state.h"
#include "base/cleanup.h"
#include "base/conflict.h"
#include "base/json.h"
#include "base/text.h"
#include "target/spec/target_spec.h"

struct resume_settings {
	bool json;
};

static const double ANSWER_SECONDS = 2;
enum { END_MS = 5000 };

/** Ends the process that holds the target, as Ctrl-C does there. */
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
	return prb_error_hint(
		prb_error_create(PRB_ERROR_TIMEOUT, "process %d, which holds it, does not end",
				 (int)pid),
		"the pause ends after its --max; 'kill -KILL %d' ends it at once", (int)pid);
}

static struct prb_error *not_paused(const struct prb_target *t)
{
	return prb_conflict_create("process %d is not paused", (int)t->pid);
}

static struct prb_error *ask_agent(struct prb_target *t, int64_t *held_us)
{
	struct prb_agent *agent = NULL;
	struct prb_wire_frame frame;
	uint64_t us;
	struct prb_error *err = prb_agent_connect(t, &agent);

	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		return not_paused(t);
	if (err)
		return err;
	err = prb_agent_ask(agent, PRB_WIRE_RESUME, PRB_WIRE_RESUMED, ANSWER_SECONDS, &frame);
	/* It refuses nothing else. */
	if (prb_error_catch(&err, PRB_ERROR_FAILED))
		err = not_paused(t);
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
		prb_str_printf(&s, "%d resumed", (int)pid);
		if (held_us >= 0) {
			prb_str_puts(&s, " after ");
			prb_text_duration(&s, (double)held_us / 1e6);
		}
	}
	prb_str_putc(&s, '\n');
	return prb_output(&s);
}

static struct prb_error *run(const struct prb_cli *cli, const void *settings)
{
	const struct resume_settings *s = settings;
	struct prb_pause_state hard;
	prb_auto_target struct prb_target *target = NULL;
	int64_t held_us = -1;

	PRB_TRY(prb_spec_open_in(cli->target, &cli->places, &target));
	prb_pause_state_find_hard(target, &hard);
	PRB_TRY(hard.paused ? end_holder(hard.pid) : ask_agent(target, &held_us));
	return tell(target->pid, held_us, s->json);
}

const struct prb_command prb_command_resume = {
	.rank = 110,
	.for_clients = true,
	.name = "resume",
	.summary = "Resume a paused target",
	.description = "Ends the pause that 'probing debug --pause' started, in this shell or "
		       "elsewhere; that command exits too. Fails if the target is not paused.",
	.options =
		(const struct prb_option[]){
			{"json", 0, PRB_OPTION_FLAG, NULL, "Print JSON", PRB_COMPLETE_NOTHING,
			 offsetof(struct resume_settings, json), .for_clients = true},
			{}},
	.settings_size = sizeof(struct resume_settings),
	.target_use = PRB_TARGET_ONE,
	.complete = PRB_COMPLETE_PROCESS,
	.examples =
		(const struct prb_example[]){{"probing 4242 resume", "Resume process 4242"}, {}},
	.run = run,
};

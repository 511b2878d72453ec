/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "control/pause_state.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "agent/protocol.h"
#include "control/socket.h"
#include "base/cleanup.h"
#include "base/conflict.h"
#include "base/local_time.h"
#include "base/text.h"
#include "dwarf/elf/module.h"
#include "target/proc/process.h"
#include "target/proc/text.h"

static const char symbol[] = "probing_agent_pause";
static const double MICRO = 1e-6;

static bool has_word(const struct prb_str *words, const char *word)
{
	const char *at = prb_str_text(words), *end = at + words->length;

	for (; at < end; at += strlen(at) + 1)
		if (!strcmp(at, word))
			return true;
	return false;
}

/** Where the user of the command @p pid is, as its environment says. */
static void find_origin(pid_t pid, struct prb_pause_state *ret)
{
	prb_auto_str struct prb_str environment = {}, text = {};
	prb_auto_target struct prb_target *t = NULL;
	prb_auto_error struct prb_error *err = prb_target_open_process(pid, &t);
	const char *client = NULL;

	if (!err)
		err = prb_target_read_file(t, &environment, "environ");
	if (!err)
		client = prb_text_variable(&environment, PRB_PAUSE_CLIENT);
	if (!err && !client)
		client = prb_text_variable(&environment, "SSH_CONNECTION");
	if (!client)
		return;
	prb_str_append(&text, client, strcspn(client, " "));
	if (!text.failed && text.length < sizeof(ret->from))
		memcpy(ret->from, prb_str_text(&text), text.length + 1);
}

void prb_pause_state_find_hard(struct prb_target *t, struct prb_pause_state *ret)
{
	prb_auto_str struct prb_str status = {}, words = {};
	prb_auto_error struct prb_error *err = prb_target_read_file(t, &status, "status");
	prb_auto_error struct prb_error *gone = NULL;
	struct prb_process holder = {};
	prb_auto_target struct prb_target *tracer = NULL;
	const char *line = err ? NULL : prb_text_field(prb_str_text(&status), "TracerPid");
	int pid = 0;

	*ret = (struct prb_pause_state){};
	if (!line || sscanf(line, "%d", &pid) != 1 || pid <= 0)
		return;
	gone = prb_target_open_process(pid, &tracer);
	if (!gone)
		gone = prb_target_read_file(tracer, &words, "cmdline");
	if (gone || !has_word(&words, "--pause") || !has_word(&words, "--hard"))
		return;
	*ret = (struct prb_pause_state){.paused = true, .hard = true, .pid = pid};
	gone = prb_process_describe(pid, &holder);
	if (!gone)
		ret->since = holder.start_time;
	prb_process_deinit(&holder);
	find_origin(pid, ret);
}

static bool is_agent(const void *context, const char *path)
{
	(void)context;
	return strstr(path, "probing");
}

/** Reads what the agent exports; false if it has no such thing. */
static bool read_note(struct prb_target *t, struct prb_wire_paused *ret)
{
	struct prb_modules *modules = NULL;
	struct prb_module **module;
	prb_auto_error struct prb_error *err = prb_modules_create_some(t, is_agent, NULL, &modules);
	bool found = false;

	if (err)
		return false;
	prb_vec_each (module, &modules->list) {
		uint64_t address = 0, size = 0;
		prb_auto_error struct prb_error *none =
			prb_module_exported_symbol(*module, symbol, &address, &size);

		if (none || !address || size < sizeof(*ret))
			continue;
		none = prb_mem_read(t->mem, address, ret, sizeof(*ret));
		found |= !none && ret->version == PRB_WIRE_PAUSED_VERSION;
	}
	prb_modules_destroy(modules);
	return found;
}

void prb_pause_state_find(struct prb_target *t, struct prb_pause_state *ret)
{
	struct prb_wire_paused note = {};

	*ret = (struct prb_pause_state){};
	if (!t->loadable)
		return;
	prb_pause_state_find_hard(t, ret);
	if (ret->paused || !prb_agent_is_mapped(t) || !read_note(t, &note) || note.paused != 1)
		return;
	*ret = (struct prb_pause_state){.paused = true,
					.pid = note.pid > 0 ? note.pid : 0,
					.foreign = prb_target_sees_our_pids(t) == 0,
					.since = (double)note.since_us * MICRO};
	if (ret->pid && !ret->foreign)
		find_origin(ret->pid, ret);
}

void prb_pause_state_put(const struct prb_pause_state *state, struct prb_str *ret)
{
	const time_t since = (time_t)state->since;

	if (state->pid)
		prb_str_printf(ret, "by process %d%s", (int)state->pid,
			       state->foreign ? " of its container" : "");
	else
		prb_str_puts(ret, "by a process outside its container");
	if (*state->from) {
		prb_str_puts(ret, " (from ");
		prb_text_escape(ret, state->from);
		prb_str_putc(ret, ')');
	}
	if (since > 0)
		prb_str_printf(ret, " since %s", prb_local_time(since, PRB_LOCAL_CLOCK).text);
}

void prb_pause_state_tell(const struct prb_pause_state *state, pid_t pid, struct prb_str *ret)
{
	if (!state->paused)
		return;
	prb_str_puts(ret, "paused ");
	prb_pause_state_put(state, ret);
	prb_str_printf(ret, "; 'probing %d resume' ends that", (int)pid);
}

struct prb_error *prb_pause_state_blame(struct prb_target *t, struct prb_error *err)
{
	prb_auto_str struct prb_str by = {};
	struct prb_pause_state state;

	if (!err || err->code != PRB_ERROR_PERMISSION)
		return err;
	prb_pause_state_find_hard(t, &state);
	if (!state.paused)
		return err;
	prb_error_destroy(err);
	prb_pause_state_put(&state, &by);
	err = prb_error_create(PRB_ERROR_PERMISSION, "process %d is paused with --hard, %s",
			       (int)t->pid, prb_str_text(&by));
	err = prb_error_hint(err, "'probing %d resume' ends that pause", (int)t->pid);
	return prb_conflict_mark(err);
}

void prb_pause_state_json(const struct prb_pause_state *state, struct prb_json *json)
{
	enum { MILLISECONDS = 3 };

	if (!state->paused) {
		prb_json_null(json, "paused");
		return;
	}
	prb_json_open(json, "paused", '{');
	prb_json_natural(json, "pid", state->pid ? state->pid : -1);
	prb_json_text(json, "by", state->hard ? "ptrace" : "agent");
	prb_json_text(json, "from", *state->from ? state->from : NULL);
	prb_json_real(json, "since", state->since, MILLISECONDS);
	prb_json_close(json, '}');
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One process: why it can or cannot be read, and what of it works. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control/socket.h"
#include "cli/commands/doctor/doctor.h"
#include "control/pause_state.h"
#include "base/cleanup.h"
#include "injector/inject.h"
#include "target/proc/text.h"

/* Of "Seccomp:". */
enum { STRICT = 1, FILTERED = 2 };

static void check_reading(struct prb_doctor *d, const struct prb_check *check)
{
	prb_auto_error struct prb_error *err = NULL;

	prb_process_refusal(d->process->pid, &err);
	if (!err) {
		prb_remarks_add(&d->report, check->name, PRB_VERDICT_OK, "its memory can be read");
		return;
	}
	prb_remarks_add(&d->report, check->name, PRB_VERDICT_NO, "%s", err->message);
	if (err->hint)
		prb_remarks_advise(&d->report, "%s", err->hint);
}

static void check_user(struct prb_doctor *d, const struct prb_check *check)
{
	uid_t theirs = d->process->uid, ours = geteuid();

	if (theirs == ours)
		prb_remarks_add(&d->report, check->name, PRB_VERDICT_OK, "user %u, as we are",
				(unsigned)theirs);
	else
		prb_remarks_add(&d->report, check->name,
				d->readable ? PRB_VERDICT_OK : PRB_VERDICT_NO,
				"user %u; we are user %u", (unsigned)theirs, (unsigned)ours);
}

/** A link below /proc/PID; false if it cannot be read. */
static bool read_link(const char *pid, const char *link, char ret[64])
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%s/%s", pid, link);
	ssize_t length = readlink(path, ret, 63);
	ret[length > 0 ? length : 0] = '\0';
	return length > 0;
}

static void check_namespace(struct prb_doctor *d, const struct prb_check *check)
{
	char link[32], pid[16], ours[64], theirs[64];

	snprintf(link, sizeof(link), "ns/%s", check->without);
	snprintf(pid, sizeof(pid), "%d", (int)d->process->pid);
	if (!read_link(pid, link, theirs) || !read_link("self", link, ours))
		prb_remarks_add(&d->report, check->name, PRB_VERDICT_UNKNOWN,
				"the kernel does not tell us");
	else if (!strcmp(ours, theirs))
		prb_remarks_add(&d->report, check->name, PRB_VERDICT_OK, "the same as ours");
	else
		prb_remarks_add(&d->report, check->name, PRB_VERDICT_OK, "another one: %s",
				check->with);
}

/* The files of a process that is not dumpable belong to root. */
static void check_dumpable(struct prb_doctor *d, const struct prb_check *check)
{
	char path[32];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)d->process->pid);
	if (!d->process->uid || stat(path, &st))
		prb_remarks_add(&d->report, check->name, PRB_VERDICT_UNKNOWN,
				"cannot be told of a process of root");
	else if (st.st_uid == d->process->uid)
		prb_remarks_add(&d->report, check->name, PRB_VERDICT_OK, "yes");
	else
		prb_remarks_add(
			&d->report, check->name, d->readable ? PRB_VERDICT_LIMITED : PRB_VERDICT_NO,
			"no: it changed its user, has capabilities of its file, or asked for "
			"it by prctl(); only CAP_SYS_PTRACE reads it");
}

/* Applies the check that loading the agent makes. */
static void judge_filters(struct prb_doctor *d, const struct prb_check *check)
{
	prb_auto_error struct prb_error *err = NULL;

	if (d->target)
		err = prb_inject_allowed(d->target, PRB_CALL_LOADS | PRB_CALL_SERVES);
	if (d->target && !err) {
		prb_remarks_add(&d->report, check->name, PRB_VERDICT_OK,
				"it runs under filters of system calls, which allow the agent all "
				"that it calls");
		return;
	}
	prb_remarks_add(&d->report, check->name, PRB_VERDICT_LIMITED,
			"it runs under filters of system calls, and the agent cannot be loaded: %s",
			err ? err->message : "its memory may not be read");
	if (err && err->hint)
		prb_remarks_advise(&d->report, "%s", err->hint);
}

static void check_filters(struct prb_doctor *d, const struct prb_check *check)
{
	long mode = prb_doctor_field(&d->status, "Seccomp");

	if (mode == STRICT)
		prb_remarks_add(&d->report, check->name, PRB_VERDICT_LIMITED,
				"strict: no library can be loaded into it");
	else if (mode == FILTERED)
		judge_filters(d, check);
	else
		prb_remarks_add(&d->report, check->name, PRB_VERDICT_OK, "none");
}

static void check_tracer(struct prb_doctor *d, const struct prb_check *check)
{
	long tracer = prb_doctor_field(&d->status, "TracerPid");
	struct prb_process process = {};

	if (tracer <= 0) {
		prb_remarks_add(&d->report, check->name, PRB_VERDICT_OK, "none");
		return;
	}
	prb_auto_error struct prb_error *err = prb_process_describe((pid_t)tracer, &process);
	prb_remarks_add(&d->report, check->name, PRB_VERDICT_LIMITED,
			"process %ld (%s): running threads are read without a stop, and the agent "
			"cannot be loaded",
			tracer, err ? "?" : process.comm);
	prb_remarks_advise(&d->report, "end that debugger first, or ask in it (probing gdb)");
	if (!err)
		prb_process_deinit(&process);
}

static void check_state(struct prb_doctor *d, const struct prb_check *check)
{
	char state = d->process->state;

	if (state == 'T') {
		prb_remarks_add(
			&d->report, check->name, PRB_VERDICT_LIMITED,
			"stopped by job control: it can be read; the agent cannot be loaded");
		prb_remarks_advise(&d->report, "kill -CONT %d", (int)d->process->pid);
	} else {
		prb_remarks_add(&d->report, check->name,
				strchr("ZX", state) ? PRB_VERDICT_NO : PRB_VERDICT_OK, "%s",
				prb_state_name(state));
	}
}

static const struct prb_check process_checks[] = {
	{"reading", check_reading},
	{"user", check_user},
	{"user namespace", check_namespace, .without = "user",
	 .with = "its users have other numbers there"},
	{"pid namespace", check_namespace, .without = "pid",
	 .with = "pids and thread ids are shown as they are here"},
	{"mount namespace", check_namespace, .without = "mnt",
	 .with = "its files are opened through its own root"},
	{"network namespace", check_namespace, .without = "net",
	 .with = "its ports and addresses are not those of this machine"},
	{"dumpable", check_dumpable},
	{"seccomp", check_filters},
	{"tracer", check_tracer},
	{"state", check_state},
	{},
};

const struct prb_section prb_section_process = {"Process", process_checks};

static void check_python(struct prb_doctor *d, const struct prb_check *check)
{
	if (d->target)
		prb_doctor_interpreters(d, d->target);
	else
		prb_remarks_add(&d->report, check->name, PRB_VERDICT_UNKNOWN,
				"its memory may not be read");
}

static void check_agent(struct prb_doctor *d, const struct prb_check *check)
{
	static const char *const states[] = {
		[PRB_AGENT_NONE] = "not loaded; inject, eval and repl load it",
		[PRB_AGENT_STOPPED] = "loaded, and stopped",
		[PRB_AGENT_RUNNING] = "loaded, and runs",
	};
	__attribute__((cleanup(prb_agent_seeker_deinit))) struct prb_agent_seeker seeker = {};

	if (d->target)
		prb_remarks_add(&d->report, check->name, PRB_VERDICT_OK, "%s",
				states[prb_agent_seek(&seeker, d->target)]);
}

static void check_pause(struct prb_doctor *d, const struct prb_check *check)
{
	struct prb_pause_state state = {};
	prb_auto_str struct prb_str text = {};

	if (!d->target)
		return;
	prb_pause_state_find(d->target, &state);
	if (!state.paused) {
		prb_remarks_add(&d->report, check->name, PRB_VERDICT_OK, "not paused");
		return;
	}
	prb_str_puts(&text, "paused ");
	prb_pause_state_put(&state, &text);
	prb_remarks_add(&d->report, check->name, PRB_VERDICT_LIMITED, "%s", prb_str_text(&text));
	prb_remarks_advise(&d->report, "probing %d resume", (int)d->process->pid);
}

static void check_port(struct prb_doctor *d, const struct prb_check *check)
{
	size_t before = d->report.list.count;

	prb_doctor_ports(d, d->process, d->target);
	if (d->report.list.count == before)
		prb_remarks_add(&d->report, check->name,
				d->target ? PRB_VERDICT_OK : PRB_VERDICT_UNKNOWN, "%s",
				d->target ? "it does not look like a debugger that listens"
					  : "its ports may not be looked at");
}

static const struct prb_check python_checks[] = {
	{"interpreter", check_python},
	{"agent", check_agent},
	{"pause", check_pause},
	{"debug port", check_port},
	{},
};

const struct prb_section prb_section_python = {"Python", python_checks};

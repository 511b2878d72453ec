/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/commands/pause/warn.h"

#include <stdlib.h>
#include <string.h>

#include "command/exit.h"
#include "control/gil_locks.h"
#include "control/interpreters.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "base/text.h"
#include "python/python.h"
#include "target/proc/process.h"
#include "target/proc/text.h"

/** Supervisors, and how they are recognised. */
static const struct {
	const char *variable;
	double unit; /* seconds that one of its value is; 0: it is no time */
	const char *what;
} watchdogs[] = {
	{"WATCHDOG_USEC", 1e-6, "systemd ends a service that does not report within"},
	{"TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC", 1,
	 "the NCCL watchdog of torch ends a process that shows no progress for"},
	{"WORLD_SIZE", 0,
	 "it is one of a job's processes: the others fail when they wait longer for it than "
	 "their collectives may take, by default 10 minutes with NCCL"},
	{"RAY_JOB_ID", 0, "Ray may take it for dead and start its task again"},
	{"RAY_RAYLET_PID", 0, "Ray may take it for dead and start its task again"},
	{"TORCHELASTIC_RUN_ID", 0, "torchrun restarts the job's processes if one of them fails"},
	{"NOTIFY_SOCKET", 0, "systemd waits for what the service tells it, at start and stop"},
};

static void warn_watchdogs(struct prb_target *t, double seconds)
{
	prb_auto_str struct prb_str environment = {};
	prb_auto_error struct prb_error *err = prb_target_read_file(t, &environment, "environ");
	const char *said = NULL;

	for (size_t i = 0; !err && i < PRB_ARRAY_SIZE(watchdogs); i++) {
		const char *value = prb_text_variable(&environment, watchdogs[i].variable);
		prb_auto_str struct prb_str text = {};
		double limit = value ? strtod(value, NULL) * watchdogs[i].unit : 0;

		if (!value || watchdogs[i].what == said || (limit > 0 && limit > seconds))
			continue;
		said = watchdogs[i].what;
		prb_str_printf(&text, "%s is set: %s", watchdogs[i].variable, said);
		if (limit > 0) {
			prb_str_putc(&text, ' ');
			prb_text_duration(&text, limit);
		}
		prb_str_puts(&text, "; --max limits the pause");
		prb_warn(prb_str_text(&text));
	}
}

/** Programs that end a process of theirs which does not answer for some time. */
static const struct {
	const char *name, *option, *letter; /* that sets the time; letter may be NULL */
	double otherwise;		    /* seconds without that option; 0: no limit */
	const char *what;
} supervisors[] = {
	{"gunicorn", "--timeout", "-t", 30, "kills a worker that does not report within"},
	{"uwsgi", "--harakiri", NULL, 0, "kills a worker whose request takes longer than"},
	{"celery", "--time-limit", NULL, 0, "kills a worker whose task takes longer than"},
	{"torchrun", NULL, NULL, 0, "restarts a job's processes if one of them fails"},
};

enum { SUPERVISORS = PRB_ARRAY_SIZE(supervisors), ANCESTORS = 3, NAMING_WORDS = 4 };

/** The index of the supervisor that a command line belongs to; SUPERVISORS: none. */
static size_t find_supervisor(const struct prb_process *p)
{
	for (size_t n = 0; n < PRB_MIN(p->argv.count, (size_t)NAMING_WORDS); n++) {
		const char *slash = strrchr(p->argv.items[n], '/');
		const char *name = slash ? slash + 1 : p->argv.items[n];

		/* "gunicorn: master [app]", "[celeryd: …]" */
		name += *name == '[';
		for (size_t i = 0; i < SUPERVISORS; i++) {
			size_t length = strlen(supervisors[i].name);

			if (!strncmp(name, supervisors[i].name, length) &&
			    (!name[length] || name[length] == ':' ||
			     !strncmp(name + length, "d:", 2)))
				return i;
		}
	}
	return SUPERVISORS;
}

/** The time that its command line sets, in seconds; 0: none. */
static double limit_of(const struct prb_process *p, size_t which)
{
	const char *option = supervisors[which].option, *letter = supervisors[which].letter;
	size_t length = option ? strlen(option) : 0;

	for (size_t n = 0; option && n < p->argv.count; n++) {
		const char *word = p->argv.items[n];
		const char *next = n + 1 < p->argv.count ? p->argv.items[n + 1] : "0";

		if (!strcmp(word, option) || (letter && !strcmp(word, letter)))
			return strtod(next, NULL);
		if (!strncmp(word, option, length) && word[length] == '=')
			return strtod(word + length + 1, NULL);
	}
	return supervisors[which].otherwise;
}

static void warn_supervisor(const struct prb_process *p, size_t which, double seconds)
{
	prb_auto_str struct prb_str text = {};
	double limit = limit_of(p, which);

	if (limit > seconds)
		return;
	prb_str_printf(&text, "process %d, which started it, is %s: it %s", (int)p->pid,
		       supervisors[which].name, supervisors[which].what);
	if (limit > 0) {
		prb_str_putc(&text, ' ');
		prb_text_duration(&text, limit);
	} else if (supervisors[which].option) {
		prb_str_puts(&text, " it is configured to");
	}
	prb_str_puts(&text, "; --max limits the pause");
	prb_warn(prb_str_text(&text));
}

/** The nearest of its ancestors that watches it. */
static void warn_supervisors(pid_t pid, double seconds)
{
	for (unsigned n = 0; pid > 1 && n <= ANCESTORS; n++) {
		struct prb_process p = {};
		prb_auto_error struct prb_error *err = prb_process_describe(pid, &p);
		size_t which = err || !n ? SUPERVISORS : find_supervisor(&p);

		if (which < SUPERVISORS)
			warn_supervisor(&p, which, seconds);
		pid = err || which < SUPERVISORS ? 0 : p.ppid;
		prb_process_deinit(&p);
	}
}

struct interpreters {
	int free; /**< how many have what stands for a GIL of their own, which is not taken */
	struct prb_gil_locks *gil; /**< of the main one */
};

static void look_at_interpreter(void *context, struct prb_python *py,
				const struct prb_py_threads *threads)
{
	struct interpreters *found = context;
	const struct prb_interp *interp;

	if (!threads)
		return;
	prb_vec_each (interp, &threads->interps) {
		found->free += !interp->main && (interp->own_gil == 1 || py->layout.free_threaded);
		if (interp->main)
			*found->gil = prb_gil_locks(py, interp);
	}
}

static void look_at_interpreters(struct prb_target *t, struct prb_gil_locks *gil)
{
	struct interpreters found = {.gil = gil};
	prb_auto_str struct prb_str text = {};

	prb_interpreters_look(t, look_at_interpreter, &found);
	if (!found.free)
		return;
	prb_str_printf(&text, "%d subinterpreter%s with a GIL of %s own run%s on; --hard stops all",
		       found.free, found.free == 1 ? "" : "s", found.free == 1 ? "its" : "their",
		       found.free == 1 ? "s" : "");
	prb_warn(prb_str_text(&text));
}

void prb_pause_look(struct prb_target *t, double seconds, bool hard, struct prb_gil_locks *ret_gil)
{
	*ret_gil = (struct prb_gil_locks){};
	warn_watchdogs(t, seconds);
	warn_supervisors(t->pid, seconds);
	if (!hard)
		look_at_interpreters(t, ret_gil);
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/conflict.h"
#include "injector/arch/arch.h"
#include "injector/inject_private.h"

enum {
	STRICT = 1, /* mode of seccomp */
	/* A dump by somebody else holds a process for some µs, and longer on a busy machine: it is
	   waited for; longer for a command of ours, unlike a debugger. */
	READER_MS = 500,
	OURS_MS = 1250,
	AGAIN_MS = 10,
};

/* A number behind "NAME:\t" in the text of /proc/PID/status; -1 if there is none. */
static long field(const char *status, const char *name)
{
	const char *at = strstr(status, name);

	return at ? strtol(at + strlen(name), NULL, 10) : -1;
}

static char state_of(const char *status)
{
	const char *at = strstr(status, "\nState:\t");

	return at ? at[strlen("\nState:\t")] : 0;
}

static struct prb_error *check_status(struct prb_target *t, const char *status)
{
	long tracer = field(status, "\nTracerPid:\t"), mode = field(status, "\nSeccomp:\t");
	char state = state_of(status);

	if (tracer > 0)
		return prb_conflict_mark(prb_error_hint(
			prb_error_create(PRB_ERROR_PERMISSION,
					 "process %d is being traced by process %ld", t->pid,
					 tracer),
			"end the debugger or tracer there first: a process can have only one"));
	if (state == 'T')
		return prb_error_hint(prb_conflict_create("process %d is stopped by job control: a "
							  "new thread would not run",
							  t->pid),
				      "resume it first: kill -CONT %d", t->pid);
	if (mode == STRICT)
		return prb_error_hint(prb_error_create(PRB_ERROR_UNSUPPORTED,
						       "process %d may only read, write and end "
						       "(strict seccomp mode)",
						       t->pid),
				      "no library can be loaded into it");
	return NULL;
}

/* A frozen thread sleeps in one of these functions of the kernel, by the kernel and its freezer. */
static struct prb_error *check_frozen(struct prb_target *t)
{
	static const char *const freezers[] = {"__refrigerator", "do_freezer_trap", "get_signal"};
	prb_auto_str struct prb_str function = {};
	struct prb_error *err = prb_target_read_file(t, &function, "wchan");

	if (err) {
		prb_error_destroy(err); /* a kernel without wchan */
		return NULL;
	}
	for (size_t i = 0; i < PRB_ARRAY_SIZE(freezers); i++)
		if (!strcmp(prb_str_text(&function), freezers[i]))
			return prb_error_hint(
				prb_conflict_create("process %d is frozen by its control group",
						    t->pid),
				"thaw the group or unpause the container first");
	return NULL;
}

/* Whether a tracer is a command like this one. */
static bool is_ours(long tracer)
{
	char path[32], name[16] = "";

	snprintf(path, sizeof(path), "/proc/%ld/comm", tracer);
	prb_auto_fclose FILE *file = fopen(path, "re");
	return !file || (fgets(name, sizeof(name), file) && !strcmp(name, "probing\n"));
}

/* The status of the process. If it has a tracer, after a while: that may be a command at work, or
 * somebody who only reads. */
static struct prb_error *read_untraced(struct prb_target *t, struct prb_str *status)
{
	for (unsigned waited = 0;; waited += AGAIN_MS) {
		prb_str_truncate(status, 0);
		PRB_TRY(prb_target_read_file(t, status, "status"));
		long tracer = field(prb_str_text(status), "\nTracerPid:\t");
		if (tracer <= 0 || waited >= (is_ours(tracer) ? OURS_MS : READER_MS))
			return NULL;
		nanosleep(&(struct timespec){.tv_nsec = AGAIN_MS * 1000000L}, NULL);
	}
}

struct prb_error *prb_inject_preflight(struct prb_target *t)
{
	prb_auto_str struct prb_str status = {};

	if (!t->loadable)
		return prb_error_hint(prb_error_create(PRB_ERROR_UNSUPPORTED,
						       "a core or snapshot cannot load a library"),
				      "give the pid of a running process");
	if (!prb_inject_arch())
		return prb_error_create(PRB_ERROR_UNSUPPORTED,
					"injection is not written for this machine's processor");
	PRB_TRY(read_untraced(t, &status));
	PRB_TRY(check_status(t, prb_str_text(&status)));
	PRB_TRY(prb_inject_check_alone(t));
	return check_frozen(t);
}

static struct prb_error *check_process(struct prb_target *t, struct prb_modules *modules,
				       unsigned makers)
{
	struct prb_libc libc = {};
	struct prb_error *err = prb_libc_find(modules, PRB_HIJACK_CREATE, &libc);

	if (!err)
		err = prb_filters_check_all(t, prb_filters_calls(&libc, makers));
	prb_libc_deinit(&libc);
	return err;
}

struct prb_error *prb_inject_allowed(struct prb_target *t, unsigned makers)
{
	struct prb_modules *modules;

	PRB_TRY(prb_modules_create(t, &modules));
	struct prb_error *err = check_process(t, modules, makers);
	prb_modules_destroy(modules);
	return err;
}

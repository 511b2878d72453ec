/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Settings of the kernel and of what we run in. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/commands/doctor/doctor.h"
#include "base/cleanup.h"
#include "base/str.h"

#include <linux/capability.h>

/* The inode of the first pid namespace, the same on all kernels. */
static const unsigned long first_pid_namespace = 4026531836;
enum { MAX_FILE = 1 << 20 };

/** Reads a file of the kernel, without the line feed at its end; false if it is not there. */
static bool read_file(const char *path, struct prb_str *ret)
{
	prb_auto_fclose FILE *file = fopen(path, "re");
	char chunk[4096];
	size_t n;

	if (!file)
		return false;
	while (ret->length < MAX_FILE && (n = fread(chunk, 1, sizeof(chunk), file)))
		prb_str_append(ret, chunk, n);
	while (ret->length && ret->data[ret->length - 1] == '\n')
		prb_str_truncate(ret, ret->length - 1);
	return !ferror(file);
}

static void check_yama(struct prb_doctor *d, const struct prb_check *check)
{
	static const char *const rules[] = {
		[0] = "users may read all their processes",
		[1] = "users may read only processes that they started from the reading one",
		[2] = "only programs with CAP_SYS_PTRACE may read processes",
		[3] = "no process may be read by another, until the next boot",
	};
	int scope = prb_process_ptrace_scope();
	bool capable = prb_doctor_has(d, CAP_SYS_PTRACE);

	if (scope < 0) {
		prb_remarks_add(&d->report, check->name, PRB_VERDICT_OK,
				"the kernel has no Yama: users may read all their processes");
		return;
	}
	prb_remarks_add(&d->report, check->name,
			scope == 3		? PRB_VERDICT_NO
			: scope == 0 || capable ? PRB_VERDICT_OK
						: PRB_VERDICT_NO,
			"%d: %s%s", scope, rules[scope],
			scope && scope < 3 && capable ? ", as we do" : "");
	if (scope == 3)
		prb_remarks_advise(&d->report, "remove kernel.yama.ptrace_scope from /etc/sysctl.d "
					       "and reboot");
	else if (scope && !capable)
		prb_remarks_advise(&d->report, "sudo probing ..., or for all users: echo 0 | sudo "
					       "tee /proc/sys/kernel/yama/ptrace_scope");
}

/* "apparmor: docker-default (enforce)"; SELinux has a switch that forbids ptrace. */
static void check_module(struct prb_doctor *d, const struct prb_check *check)
{
	prb_auto_str struct prb_str profile = {}, switched = {}, modules = {};
	bool told = read_file("/sys/kernel/security/lsm", &modules);

	if (read_file("/sys/fs/selinux/booleans/deny_ptrace", &switched) &&
	    *prb_str_text(&switched) == '1') {
		prb_remarks_add(&d->report, check->name, PRB_VERDICT_NO,
				"SELinux's deny_ptrace is on: it forbids reading processes");
		prb_remarks_advise(&d->report, "sudo setsebool deny_ptrace 0");
		return;
	}
	if (read_file("/proc/self/attr/current", &profile) && profile.length &&
	    strncmp(prb_str_text(&profile), "unconfined", strlen("unconfined")) != 0 &&
	    strcmp(prb_str_text(&profile), "kernel") != 0) {
		prb_remarks_add(&d->report, check->name, PRB_VERDICT_LIMITED,
				"we run under the profile \"%s\", which may forbid reading",
				prb_str_text(&profile));
		prb_remarks_advise(
			&d->report,
			"only if something is forbidden below: --security-opt "
			"apparmor=unconfined for a container, or run probing unconfined");
		return;
	}
	prb_remarks_add(&d->report, check->name, PRB_VERDICT_OK, "no profile confines us%s%s",
			told ? "; active modules: " : "", told ? prb_str_text(&modules) : "");
}

static void check_lockdown(struct prb_doctor *d, const struct prb_check *check)
{
	prb_auto_str struct prb_str text = {};

	if (!read_file("/sys/kernel/security/lockdown", &text))
		prb_remarks_add(&d->report, check->name, PRB_VERDICT_UNKNOWN,
				"the kernel does not say (no lockdown, or securityfs is not "
				"mounted)");
	else if (strstr(prb_str_text(&text), "[confidentiality]"))
		prb_remarks_add(&d->report, check->name, PRB_VERDICT_LIMITED,
				"%s: addresses in the kernel and some performance events are "
				"closed; reading processes is not affected",
				prb_str_text(&text));
	else
		prb_remarks_add(&d->report, check->name, PRB_VERDICT_OK,
				"%s: does not affect reading processes", prb_str_text(&text));
}

/** Appends the options of the mount that /proc is, the last of several. */
static void proc_options(struct prb_str *ret)
{
	prb_auto_str struct prb_str text = {};
	char *rest;

	if (!read_file("/proc/self/mountinfo", &text) || !text.length)
		return;
	rest = text.data;
	for (char *line; (line = strsep(&rest, "\n"));) {
		char *end = strstr(line, " - proc ");

		if (!end || !strstr(line, " /proc "))
			continue;
		prb_str_truncate(ret, 0);
		prb_str_puts(ret, end);
	}
}

static void check_hidepid(struct prb_doctor *d, const struct prb_check *check)
{
	prb_auto_str struct prb_str options = {};
	const char *text, *at;
	bool capable = prb_doctor_has(d, CAP_SYS_PTRACE);

	proc_options(&options);
	text = prb_str_text(&options);
	at = strstr(text, "hidepid=");
	if (strstr(text, "subset=pid")) {
		prb_remarks_add(
			&d->report, check->name, PRB_VERDICT_LIMITED,
			"/proc is mounted with subset=pid: settings of the kernel cannot be "
			"seen");
	} else if (!at || !strncmp(at, "hidepid=0", 9) || !strncmp(at, "hidepid=off", 11)) {
		prb_remarks_add(&d->report, check->name, PRB_VERDICT_OK,
				"/proc hides no processes");
	} else {
		prb_remarks_add(&d->report, check->name,
				capable ? PRB_VERDICT_OK : PRB_VERDICT_LIMITED,
				"/proc is mounted with %.*s%s", (int)strcspn(at, ", \n"), at,
				capable ? ", which hides nothing from CAP_SYS_PTRACE"
					: ": processes of other users are hidden");
		if (!capable)
			prb_remarks_advise(&d->report,
					   "sudo probing ..., or for all: sudo mount -o "
					   "remount,hidepid=0 /proc");
	}
}

static void check_user_namespace(struct prb_doctor *d, const struct prb_check *check)
{
	if (!prb_process_in_user_namespace()) {
		prb_remarks_add(&d->report, check->name, PRB_VERDICT_OK, "the first one");
		return;
	}
	prb_remarks_add(
		&d->report, check->name, PRB_VERDICT_LIMITED,
		"one of its own: processes outside of it may not be read, also by its root");
	prb_remarks_advise(&d->report, "run probing outside of it, as root");
}

static void check_pid_namespace(struct prb_doctor *d, const struct prb_check *check)
{
	struct stat st;

	if (stat("/proc/self/ns/pid", &st)) {
		prb_remarks_add(
			&d->report, check->name, PRB_VERDICT_NO,
			"/proc does not show this process: it is not mounted, or belongs to "
			"another pid namespace");
		prb_remarks_advise(&d->report, "mount -t proc proc /proc");
	} else if (st.st_ino == first_pid_namespace) {
		prb_remarks_add(&d->report, check->name, PRB_VERDICT_OK, "the first one");
	} else {
		prb_remarks_add(&d->report, check->name, PRB_VERDICT_LIMITED,
				"one of its own: only processes in it can be seen, by pids that "
				"mean nothing outside");
	}
}

static void check_container(struct prb_doctor *d, const struct prb_check *check)
{
	prb_remarks_add(&d->report, check->name, PRB_VERDICT_OK, "%s",
			prb_process_in_container() ? "we seem to run in one"
						   : "nothing says that we run in one");
}

static const struct prb_check checks[] = {
	{"ptrace_scope", check_yama},
	{"security module", check_module},
	{"lockdown", check_lockdown},
	{"hidepid", check_hidepid},
	{"user namespace", check_user_namespace},
	{"pid namespace", check_pid_namespace},
	{"container", check_container},
	{},
};

const struct prb_section prb_section_kernel = {"Kernel and surroundings", checks};

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Our user, and our further rights. */
#include <linux/capability.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/commands/doctor/doctor.h"
#include "target/proc/text.h"

/* By linux/capability.h of newer systems. */
enum { PERFMON = 38, CHECKPOINT_RESTORE = 40 };
/* Of "Seccomp:". */
enum { STRICT = 1, FILTERED = 2 };

long prb_doctor_field(const struct prb_str *status, const char *name)
{
	const char *field = prb_text_field(prb_str_text(status), name);

	return field ? strtol(field, NULL, 10) : -1;
}

uint64_t prb_doctor_capabilities(const struct prb_str *status, const char *name)
{
	const char *field = prb_text_field(prb_str_text(status), name);

	return field ? strtoull(field, NULL, 16) : 0;
}

bool prb_doctor_has(const struct prb_doctor *d, unsigned capability)
{
	return prb_doctor_capabilities(&d->own_status, "CapEff") >> capability & 1;
}

static void check_user(struct prb_doctor *d, const struct prb_check *check)
{
	if (!geteuid())
		prb_remarks_add(&d->report, check->name, PRB_VERDICT_OK, "root (user 0, group %u)",
				(unsigned)getegid());
	else
		prb_remarks_add(&d->report, check->name, PRB_VERDICT_OK,
				"user %u, group %u: processes of that user and group",
				(unsigned)geteuid(), (unsigned)getegid());
}

/* CAP_SYS_ADMIN includes two younger ones. */
static void check_capability(struct prb_doctor *d, const struct prb_check *check)
{
	bool included = check->number == PERFMON || check->number == CHECKPOINT_RESTORE;

	if (prb_doctor_has(d, check->number) || (included && prb_doctor_has(d, CAP_SYS_ADMIN))) {
		prb_remarks_add(&d->report, check->name, PRB_VERDICT_OK, "%s", check->with);
		return;
	}
	prb_remarks_add(&d->report, check->name, PRB_VERDICT_LIMITED, "%s", check->without);
	if (geteuid()) {
		/* Said once. */
		if (check->number == CAP_SYS_PTRACE)
			prb_remarks_advise(&d->report, "sudo probing ...");
		return;
	}
	if (prb_process_in_container())
		prb_remarks_advise(&d->report, "start the container with --cap-add %s",
				   check->name + sizeof("CAP_") - 1);
	else
		prb_remarks_advise(&d->report, "run probing as root with all capabilities");
}

static void check_privileges(struct prb_doctor *d, const struct prb_check *check)
{
	if (prb_doctor_field(&d->own_status, "NoNewPrivs") != 1) {
		prb_remarks_add(&d->report, check->name, PRB_VERDICT_OK, "not set");
		return;
	}
	prb_remarks_add(&d->report, check->name, PRB_VERDICT_LIMITED,
			"set: sudo gives no rights here");
	if (geteuid())
		prb_remarks_advise(&d->report, "run probing from another shell, or outside of this "
					       "container");
}

static void check_filters(struct prb_doctor *d, const struct prb_check *check)
{
	long mode = prb_doctor_field(&d->own_status, "Seccomp");
	long filters = prb_doctor_field(&d->own_status, "Seccomp_filters");

	if (mode != FILTERED) {
		prb_remarks_add(&d->report, check->name, PRB_VERDICT_OK,
				"no filter of system calls applies to us");
		return;
	}
	prb_remarks_add(&d->report, check->name, PRB_VERDICT_LIMITED,
			"%ld filter%s of system calls appl%s to us; what is forbidden shows below",
			filters < 1 ? 1 : filters, filters > 1 ? "s" : "",
			filters > 1 ? "y" : "ies");
	prb_remarks_advise(
		&d->report,
		"only if something is: --security-opt seccomp=unconfined for a container, "
		"or run probing on the host");
}

static const struct prb_check checks[] = {
	{"user", check_user},
	{"CAP_SYS_PTRACE", check_capability, .number = CAP_SYS_PTRACE,
	 .with = "processes of all users can be read, whatever ptrace_scope is",
	 .without = "only processes of our own user and group can be read, and none that protect "
		    "themselves"},
	{"CAP_CHECKPOINT_RESTORE", check_capability, .number = CHECKPOINT_RESTORE,
	 .with = "replaced and deleted files of processes can be read",
	 .without = "of files that were replaced or deleted, only what is in memory can be read"},
	{"CAP_DAC_READ_SEARCH", check_capability, .number = CAP_DAC_READ_SEARCH,
	 .with = "folders of all users can be looked into",
	 .without = "files in closed folders of other users cannot be found"},
	{"CAP_SETUID", check_capability, .number = CAP_SETUID,
	 .with = "files of another user's process are opened with that user's rights",
	 .without = "files that only another user may read are left out"},
	{"CAP_PERFMON", check_capability, .number = PERFMON,
	 .with = "performance events of all processes can be opened",
	 .without = "performance events only as far as kernel.perf_event_paranoid allows"},
	{"no_new_privs", check_privileges},
	{"seccomp", check_filters},
	{},
};

const struct prb_section prb_section_rights = {"Rights", checks};

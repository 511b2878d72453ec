/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Entries of /proc/PID that kernels may lack or close, and what works with each. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/commands/doctor/doctor.h"
#include "cli/commands/doctor/trial.h"
#include "base/cleanup.h"

/* Reading is what may be forbidden, not opening. */
static int try_file(pid_t pid, const char *name)
{
	char path[64], text[4096];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	prb_auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 || read(fd, text, sizeof(text)) < 0 ? errno : 0;
}

/* As above, for a file of each thread. */
static int try_task(pid_t pid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "task/%d/%s", (int)pid, name);
	return try_file(pid, path);
}

static int try_link(pid_t pid, const char *name)
{
	char path[64], text[4096];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	return readlink(path, text, sizeof(text)) < 0 ? errno : 0;
}

/* Opens what the first mapping is of. */
static int try_map_files(pid_t pid, const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	prb_auto_closedir DIR *folder = opendir(path);
	if (!folder)
		return errno;
	for (struct dirent *entry; (entry = readdir(folder));) {
		if (entry->d_name[0] == '.')
			continue;
		prb_auto_close int fd = openat(dirfd(folder), entry->d_name, O_PATH | O_CLOEXEC);
		return fd < 0 ? errno : 0;
	}
	return ENOENT;
}

static void check_entry(struct prb_doctor *d, const struct prb_check *check)
{
	int result;

	if (!d->trial)
		return;
	result = prb_doctor_try(d, check->attempt, check->name);
	if (!result)
		prb_remarks_add(&d->report, check->name, PRB_VERDICT_OK, "%s", check->with);
	else
		prb_remarks_add(&d->report, check->name, PRB_VERDICT_LIMITED, "%s: %s",
				check->without, prb_trial_text(result));
	if (result && check->todo)
		prb_remarks_advise(&d->report, "%s", check->todo);
}

static const struct prb_check checks[] = {
	{"syscall", check_entry, try_task, .with = "what a thread waits for",
	 .without = "dumps do not say what threads wait for",
	 .todo = "a kernel with CONFIG_HAVE_ARCH_TRACEHOOK has it; some sandboxes do not"},
	{"schedstat", check_entry, try_task, .with = "proves that a thread slept while it was read",
	 .without = "its switches in status are counted instead",
	 .todo = "a kernel with CONFIG_SCHED_INFO has it"},
	{"sched", check_entry, try_task, .with = "for how long a thread has been idle",
	 .without = "dumps do not say for how long threads have been idle",
	 .todo = "a kernel with CONFIG_SCHED_DEBUG has it"},
	{"wchan", check_entry, try_task, .with = "the kernel's function that a thread sleeps in",
	 .without = "some waits and frozen processes are not recognised",
	 .todo = "a kernel with CONFIG_KALLSYMS has it"},
	{"children", check_entry, try_task, .with = "which child a thread waits for",
	 .without = "dumps do not say which child a thread waits for",
	 .todo = "a kernel with CONFIG_PROC_CHILDREN has it"},
	{"map_files", check_entry, try_map_files,
	 .with = "files that were replaced or deleted since they were mapped can be read",
	 .without = "of files that were replaced or deleted, only what is in memory can be read",
	 .todo = "sudo probing ..."},
	{"environ", check_entry, try_file, .with = "ranks of distributed jobs, process.environ",
	 .without = "there are no ranks, and process.environ is empty"},
	{"io", check_entry, try_file, .with = "bytes read and written, in process.io",
	 .without = "process.io is empty",
	 .todo = "a kernel with CONFIG_TASK_IO_ACCOUNTING has it"},
	{"smaps_rollup", check_entry, try_file, .with = "memory by kind, in process.info",
	 .without = "process.info lacks the memory by kind",
	 .todo = "a kernel from 4.14 on has it"},
	{"ns/time", check_entry, try_link, .with = "how much is left of a sleep",
	 .without =
		 "dumps say how much is left of a sleep, unless the process has a time namespace"},
	{},
};

const struct prb_section prb_section_proc = {"Entries of /proc", checks};

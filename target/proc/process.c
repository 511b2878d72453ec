/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "target/proc/process.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "target/proc/process_private.h"
#include "target/proc/text.h"
#include "target/proc/pids.h"

enum { MAX_FILE = 1 << 20 /* of what a process writes itself: command line, environment */ };

int prb_proc_open(pid_t pid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

bool prb_proc_read(pid_t pid, const char *name, struct prb_str *ret)
{
	prb_auto_close int fd = prb_proc_open(pid, name);
	char chunk[4096];
	ssize_t n;

	if (fd < 0)
		return false;
	while (ret->length < MAX_FILE && (n = read(fd, chunk, sizeof(chunk))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return false;
		prb_str_append(ret, chunk, (size_t)n);
	}
	return true;
}

bool prb_proc_link(pid_t pid, const char *name, struct prb_str *ret)
{
	char path[64], link[4096];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);

	ssize_t n = readlink(path, link, sizeof(link));
	if (n <= 0)
		return false;
	prb_str_append(ret, link, (size_t)n);
	return true;
}

bool prb_proc_is_ancestor(pid_t ancestor, pid_t pid)
{
	enum { MAX_DEPTH = 64 };

	for (int depth = 0; pid > 1 && depth < MAX_DEPTH; depth++) {
		prb_auto_str struct prb_str text = {};
		struct prb_stat stat;

		if (!prb_proc_read(pid, "stat", &text) ||
		    !prb_stat_parse(prb_str_text(&text), &stat))
			return false;
		pid = stat.ppid;
		if (pid == ancestor)
			return true;
	}
	return false;
}

double prb_proc_age(uint64_t start_ticks)
{
	return prb_clock_read_seconds(CLOCK_BOOTTIME) -
	       (double)start_ticks / (double)sysconf(_SC_CLK_TCK);
}

/* The kernel counts from boot, and the calendar may have been set since: so ask for both now. */
static double start_time(uint64_t ticks)
{
	return prb_clock_calendar_seconds() - prb_proc_age(ticks);
}

static struct prb_error *read_argv(struct prb_process *process)
{
	prb_auto_str struct prb_str text = {};

	if (!prb_proc_read(process->pid, "cmdline", &text))
		return text.failed ? prb_error_nomem() : NULL;
	const char *words = prb_str_text(&text);
	size_t end = prb_text_command_length(words, text.length);
	for (size_t at = 0, length; at < end; at += length + 1) {
		char **item = prb_vec_push(&process->argv);

		length = strlen(words + at);
		if (item)
			*item = strdup(words + at);
		if (!item || !*item)
			return prb_error_nomem();
	}
	return NULL;
}

static void read_uid(struct prb_process *process)
{
	prb_auto_str struct prb_str status = {};
	const char *field = NULL;
	unsigned effective;

	if (prb_proc_read(process->pid, "status", &status))
		field = prb_text_field(prb_str_text(&status), "Uid");
	if (field && sscanf(field, "%*u %u", &effective) == 1)
		process->uid = effective;
}

static struct prb_error *read_exe(struct prb_process *process)
{
	prb_auto_str struct prb_str link = {};
	unsigned char ident[EI_NIDENT];

	if (!prb_proc_link(process->pid, "exe", &link))
		return NULL;
	process->exe = prb_str_take(&link);
	if (!process->exe)
		return prb_error_nomem();

	prb_auto_close int fd = prb_proc_open(process->pid, "exe");
	if (fd >= 0 && pread(fd, ident, sizeof(ident), 0) == sizeof(ident) &&
	    !memcmp(ident, ELFMAG, SELFMAG))
		process->elf_class = ident[EI_CLASS] == ELFCLASS64   ? 64
				     : ident[EI_CLASS] == ELFCLASS32 ? 32
								     : 0;
	return NULL;
}

static struct prb_error *describe(struct prb_process *process)
{
	prb_auto_str struct prb_str text = {}, comm = {};
	struct prb_stat stat;

	if (!prb_proc_read(process->pid, "stat", &text))
		return prb_error_os(ESRCH, "process %d", process->pid);
	if (!prb_stat_parse(prb_str_text(&text), &stat))
		return prb_error_create(PRB_ERROR_BAD_DATA, "stat of process %d is malformed",
					process->pid);
	process->ppid = stat.ppid;
	process->state = stat.state;
	process->forked = stat.forked;
	process->threads = stat.threads;
	process->start_time = start_time(stat.start_ticks);
	process->start_ticks = stat.start_ticks;
	process->kind = stat.kernel				 ? PRB_PROCESS_KERNEL
			: stat.state == 'Z' || stat.state == 'X' ? PRB_PROCESS_ZOMBIE
								 : PRB_PROCESS_PROGRAM;
	prb_put_comm(&comm, stat.comm, stat.comm_length);
	process->comm = prb_str_take(&comm);
	if (!process->comm)
		return prb_error_nomem();

	read_uid(process);
	PRB_TRY(read_argv(process));
	return read_exe(process);
}

struct prb_error *prb_process_describe(pid_t pid, struct prb_process *ret)
{
	*ret = (struct prb_process){.pid = pid};

	struct prb_error *err = prb_proc_check();
	if (!err)
		err = describe(ret);
	if (err)
		prb_process_deinit(ret);
	return err;
}

void prb_process_deinit(struct prb_process *process)
{
	char **arg;

	prb_vec_each (arg, &process->argv)
		free(*arg);
	prb_vec_free(&process->argv);
	free(process->comm);
	free(process->exe);
	process->comm = process->exe = NULL;
}

bool prb_process_has_word(const struct prb_process *process, const char *part)
{
	char *const *word;

	prb_vec_each (word, &process->argv)
		if (strstr(*word, part))
			return true;
	return false;
}

bool prb_process_has_ended(pid_t pid)
{
	struct prb_process process = {};
	prb_auto_error struct prb_error *err = prb_process_describe(pid, &process);
	const bool ended = err ? err->code == PRB_ERROR_NO_PROCESS : process.state == 'Z';

	prb_process_deinit(&process);
	return ended;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The helper: a process that shares our memory and nothing else. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>

#include "agent/crash/private.h"

enum { SIGSET_BYTES = 8, FIRST_FD = 3, CLOSED = 64 };

int64_t prba_crash_clock(void)
{
	struct timespec now = {};

	prba_raw(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

size_t prba_crash_read(struct prba_crash *c, const char *name, char *to, size_t size)
{
	long fd = prba_raw(SYS_openat, c->proc, name, O_RDONLY | O_CLOEXEC), rc = 0;
	size_t length = 0;

	while (fd >= 0 && length < size - 1) {
		rc = prba_raw(SYS_read, fd, to + length, size - 1 - length);
		if (rc <= 0)
			break;
		length += (size_t)rc;
	}
	if (fd >= 0)
		prba_raw(SYS_close, fd);
	to[length] = '\0';
	return length;
}

/** Our descriptors are copies: the process may have no number left for ours. */
static void close_copies(struct prba_crash *c)
{
	if (!c->own_files || prba_raw(SYS_close_range, FIRST_FD, UINT_MAX, 0L) == 0)
		return;
	for (int fd = FIRST_FD; fd < CLOSED; fd++)
		prba_raw(SYS_close, fd);
}

/** Of the process, which is our parent. */
static int open_proc(const struct prba_crash *c)
{
	char path[64];
	struct prba_text t = {path, 0, sizeof(path)};

	prba_text_puts(&t, "/proc/");
	if (c->own_files)
		prba_text_number(&t, (uint64_t)c->pid);
	else
		prba_text_puts(&t, "self");
	return (int)prba_raw(SYS_openat, AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/**
 * Another process's numbers, if /proc is that of another namespace: then its files are not ours.
 */
static bool is_ours(struct prba_crash *c)
{
	const struct prba_crash_map *map = prba_crash_map_at(c, (uintptr_t)c);

	return map && map->write && prba_crash_map_at(c, c->own);
}

static void record(struct prba_crash *c)
{
	size_t notes;

	c->proc = open_proc(c);
	if (c->proc < 0) {
		c->failed = c->proc;
		return;
	}
	prba_crash_stop_threads(c);
	if (!prba_crash_read_maps(c) || !is_ours(c)) {
		c->failed = -ESRCH;
	} else {
		c->failed = prba_crash_open_file(c);
		if (!c->failed) {
			prba_crash_choose_pages(c);
			notes = prba_crash_make_notes(c);
			prba_crash_fill_file(c, notes);
			prba_crash_close_file(c);
		}
	}
	prba_crash_release_threads(c);
	prba_raw(SYS_close, c->proc);
}

int prba_crash_write(void *crash)
{
	static const int own[] = {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE};
	struct prba_crash *c = crash;
	uint64_t none[4] = {}; /* struct sigaction of the kernel: SIG_DFL */

	if (c->own_files) {
		prba_raw(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
		for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
			prba_raw(SYS_rt_sigaction, own[i], none, 0L, (long)SIGSET_BYTES);
		close_copies(c);
	}
	record(c);
	if (!c->failed)
		__atomic_store_n((uint32_t *)&c->written, 1, __ATOMIC_SEQ_CST);
	return 0;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* System calls that sleep, by name, each with its description. */
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#include "base/text.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "target/proc/text.h"
#include "dump/waits/wait_private.h"

enum { MAX_PATH = 4096 };

/* The call to describe. */
struct call {
	struct prb_wait_context *c;
	const struct prb_task *task;
	const struct row *row;
	struct prb_wait *wait;
	struct prb_str *s;
};

struct row {
	const char *name;
	void (*describe)(const struct call *call);
	uint8_t a, b; /* arguments of interest, from 0; `describe` defines their meaning */
	enum prb_direction direction;
};

static int int_argument(const struct call *call, unsigned index)
{
	return (int32_t)call->task->args[index];
}

static void put_fd(const struct call *call, unsigned index, enum prb_direction direction)
{
	prb_describe_fd(call->c, int_argument(call, index), direction, call->s);
}

static void on_fd(const struct call *call)
{
	put_fd(call, call->row->a, call->row->direction);
}

/* Descriptor in argument a, time limit (struct timespec) in argument b. */
static void on_fd_limit(const struct call *call)
{
	on_fd(call);
	prb_put_limit_at(call->c, call->wait, call->task->args[call->row->b], PRB_TIMESPEC,
			 call->s);
}

/* From the descriptor in argument a to that in argument b. */
static void on_copy(const struct call *call)
{
	put_fd(call, call->row->a, PRB_INCOMING);
	prb_str_puts(call->s, " to ");
	put_fd(call, call->row->b, PRB_OUTGOING);
}

static void on_path(const struct call *call)
{
	prb_auto_str struct prb_str path = {};

	if (!prb_wait_ok(&path, prb_mem_read_cstr(call->c->mem, call->task->args[call->row->a],
						  MAX_PATH, &path)))
		return;
	prb_str_puts(call->s, "file ");
	prb_text_escape_bytes(call->s, prb_str_text(&path), path.length);
}

static void on_connect(const struct call *call)
{
	struct sockaddr_storage address = {};
	size_t length = (size_t)PRB_MIN(call->task->args[2], (uint64_t)sizeof(address));

	if (!prb_wait_ok(call->s,
			 prb_mem_read(call->c->mem, call->task->args[1], &address, length))) {
		on_fd(call);
		return;
	}
	prb_str_printf(call->s, "%s %d → ", address.ss_family == AF_UNIX ? "unix socket" : "socket",
		       int_argument(call, 0));
	prb_put_sockaddr(call->s, &address, (socklen_t)length);
}

static void on_ioctl(const struct call *call)
{
	on_fd(call);
	prb_str_printf(call->s, ", request %#x", (unsigned)call->task->args[1]);
}

static void put_sleep(const struct call *call, double seconds)
{
	call->wait->asked = seconds;
	prb_enders_limited(call->c);
	prb_str_puts(call->s, "sleep of ");
	prb_put_seconds(call->s, seconds);
}

/* poll and select without descriptors only sleep: then their limit is all there is. */
static void put_sleep_or_limit(const struct call *call, double seconds)
{
	if (!call->s->length)
		put_sleep(call, seconds);
	else
		prb_put_limit(call->wait, seconds, call->s);
}

static void put_sleep_or_limit_at(const struct call *call, uint64_t address,
				  enum prb_time_unit unit)
{
	double seconds;

	if (prb_read_time(call->c, address, unit, &seconds, call->s))
		put_sleep_or_limit(call, seconds);
}

static void put_milliseconds(const struct call *call, int milliseconds)
{
	if (milliseconds >= 0)
		put_sleep_or_limit(call, milliseconds / 1e3);
}

static void on_poll(const struct call *call)
{
	prb_describe_poll(call->c, call->task->args[0], call->task->args[1], call->s);
	put_milliseconds(call, int_argument(call, 2));
}

static void on_ppoll(const struct call *call)
{
	prb_describe_poll(call->c, call->task->args[0], call->task->args[1], call->s);
	put_sleep_or_limit_at(call, call->task->args[2], PRB_TIMESPEC);
}

static void describe_select(const struct call *call, enum prb_time_unit unit)
{
	int count = int_argument(call, 0);

	prb_describe_select(call->c, count > 0 ? (uint64_t)count : 0, &call->task->args[1],
			    call->s);
	put_sleep_or_limit_at(call, call->task->args[4], unit);
}

static void on_select(const struct call *call)
{
	describe_select(call, PRB_TIMEVAL);
}

static void on_pselect(const struct call *call)
{
	describe_select(call, PRB_TIMESPEC);
}

static void on_epoll(const struct call *call)
{
	prb_describe_epoll(call->c, int_argument(call, 0), call->s);
	put_milliseconds(call, int_argument(call, 3));
}

static void on_epoll_pwait2(const struct call *call)
{
	prb_describe_epoll(call->c, int_argument(call, 0), call->s);
	put_sleep_or_limit_at(call, call->task->args[3], PRB_TIMESPEC);
}

static void on_futex(const struct call *call)
{
	uint64_t operation = call->task->args[1], time = call->task->args[3];
	int command = (int)operation & FUTEX_CMD_MASK;
	bool calendar = operation & FUTEX_CLOCK_REALTIME || command == FUTEX_LOCK_PI;

	prb_describe_futex(call->c, call->task, call->wait, call->s);
	if (command == FUTEX_WAIT)
		prb_put_limit_at(call->c, call->wait, time, PRB_TIMESPEC, call->s);
	else
		prb_put_deadline(call->c, call->wait, calendar ? CLOCK_REALTIME : CLOCK_MONOTONIC,
				 time, call->s);
}

static void on_futex_wait(const struct call *call)
{
	call->wait->futex = call->task->args[0];
	prb_str_puts(call->s, "a lock or condition");
	prb_put_deadline(call->c, call->wait, int_argument(call, 5), call->task->args[4], call->s);
}

static void on_futex_waitv(const struct call *call)
{
	uint64_t count = call->task->args[1];
	struct futex_waitv first;

	if (count == 1 && prb_wait_ok(call->s, prb_mem_read(call->c->mem, call->task->args[0],
							    &first, sizeof(first)))) {
		call->wait->futex = first.uaddr;
		prb_str_puts(call->s, "a lock or condition");
	} else {
		prb_str_printf(call->s, "any of %llu locks or conditions",
			       (unsigned long long)count);
	}
	prb_put_deadline(call->c, call->wait, int_argument(call, 4), call->task->args[3], call->s);
}

/* Of SQLite, no longer sleep is known. */
static void put_short_sleep(const struct call *call, double seconds)
{
	put_sleep(call, seconds);
	if (seconds <= 1)
		prb_describe_sqlite(call->c, call->s);
}

static void on_nanosleep(const struct call *call)
{
	double seconds;

	prb_enders_limited(call->c);
	if (prb_read_time(call->c, call->task->args[0], PRB_TIMESPEC, &seconds, call->s))
		put_short_sleep(call, seconds);
	else
		prb_str_puts(call->s, "sleep");
}

static void on_clock_nanosleep(const struct call *call)
{
	uint64_t time = call->task->args[2];
	double seconds;

	prb_enders_limited(call->c);
	if (call->task->args[1] & TIMER_ABSTIME) {
		prb_str_puts(call->s, "sleep");
		prb_put_deadline(call->c, call->wait, int_argument(call, 0), time, call->s);
	} else if (prb_read_time(call->c, time, PRB_TIMESPEC, &seconds, call->s)) {
		put_short_sleep(call, seconds);
	} else {
		prb_str_puts(call->s, "sleep");
	}
}

static void on_wait4(const struct call *call)
{
	prb_describe_child(call->c, int_argument(call, 0), call->s);
}

static void on_waitid(const struct call *call)
{
	int id = int_argument(call, 1);

	switch (int_argument(call, 0)) {
	case P_PID:
		prb_describe_child(call->c, id, call->s);
		break;
	case P_PGID:
		prb_describe_child(call->c, id > 1 ? -id : 0, call->s);
		break;
	case P_PIDFD:
		put_fd(call, 1, PRB_EITHER_WAY);
		break;
	default:
		prb_describe_child(call->c, -1, call->s);
	}
}

static void on_vfork(const struct call *call)
{
	prb_describe_newest_child(call->c, call->task->tid, call->s);
	prb_str_puts(call->s, " to start its program");
}

static void on_clone(const struct call *call)
{
	if (call->task->args[0] & CLONE_VFORK)
		on_vfork(call);
}

static void on_clone3(const struct call *call)
{
	uint64_t flags;

	if (prb_wait_ok(call->s, prb_mem_read_u64(call->c->mem, call->task->args[0], &flags)) &&
	    flags & CLONE_VFORK)
		on_vfork(call);
}

static void on_flock(const struct call *call)
{
	prb_describe_file_lock(call->c, int_argument(call, 0), call->s);
}

static void on_fcntl(const struct call *call)
{
	int command = int_argument(call, 1);

	if (command == F_SETLKW || command == F_OFD_SETLKW)
		on_flock(call);
	else
		on_fd(call);
}

static void on_semop(const struct call *call)
{
	prb_str_printf(call->s, "semaphore set %d", int_argument(call, 0));
	if (call->row->b)
		prb_put_limit_at(call->c, call->wait, call->task->args[call->row->b], PRB_TIMESPEC,
				 call->s);
}

/* Whoever knows the name of a queue can send. */
static void on_message(const struct call *call)
{
	prb_enders_outside(call->c);
	prb_str_printf(call->s, "message queue %d", int_argument(call, 0));
}

static void on_mq(const struct call *call)
{
	prb_auto_str struct prb_str link = {};
	int fd = int_argument(call, 0);

	prb_enders_outside(call->c);
	prb_str_printf(call->s, "message queue %d", fd);
	if (prb_wait_ok(call->s, prb_target_read_link(call->c->target, &link, "fd/%d", fd))) {
		prb_str_putc(call->s, ' ');
		prb_text_escape_bytes(call->s, prb_str_text(&link), link.length);
	}
	prb_put_deadline(call->c, call->wait, CLOCK_REALTIME, call->task->args[4], call->s);
}

static void on_io_getevents(const struct call *call)
{
	prb_str_puts(call->s, "asynchronous reads and writes");
	prb_put_limit_at(call->c, call->wait, call->task->args[4], PRB_TIMESPEC, call->s);
}

static void on_signal(const struct call *call)
{
	prb_enders_outside(call->c);
	prb_str_puts(call->s, "any signal");
}

static void on_sigtimedwait(const struct call *call)
{
	uint64_t mask;

	prb_enders_outside(call->c);
	if (!prb_wait_ok(call->s, prb_mem_read_u64(call->c->mem, call->task->args[0], &mask)))
		mask = 0;
	if (mask)
		prb_put_signals(mask, call->s);
	else
		prb_str_puts(call->s, "a signal");
	prb_put_limit_at(call->c, call->wait, call->task->args[2], PRB_TIMESPEC, call->s);
}

static void on_random(const struct call *call)
{
	prb_str_puts(call->s, "random numbers from the kernel");
}

static void on_sync(const struct call *call)
{
	prb_str_puts(call->s, "all files to be written to disk");
}

/* Sorted by name. */
static const struct row rows[] = {
	{"accept", on_fd, 0, 0, PRB_INCOMING},
	{"accept4", on_fd, 0, 0, PRB_INCOMING},
	{"access", on_path, 0},
	{"chdir", on_path, 0},
	{"clock_nanosleep", on_clock_nanosleep},
	{"clone", on_clone},
	{"clone3", on_clone3},
	{"close", on_fd, 0},
	{"connect", on_connect, 0},
	{"copy_file_range", on_copy, 0, 2},
	{"creat", on_path, 0},
	{"epoll_pwait", on_epoll},
	{"epoll_pwait2", on_epoll_pwait2},
	{"epoll_wait", on_epoll},
	{"execve", on_path, 0},
	{"execveat", on_path, 1},
	{"faccessat", on_path, 1},
	{"faccessat2", on_path, 1},
	{"fallocate", on_fd, 0},
	{"fcntl", on_fcntl, 0},
	{"fdatasync", on_fd, 0},
	{"flock", on_flock},
	{"fstat", on_fd, 0},
	{"fsync", on_fd, 0},
	{"ftruncate", on_fd, 0},
	{"futex", on_futex},
	{"futex_wait", on_futex_wait},
	{"futex_waitv", on_futex_waitv},
	{"getdents", on_fd, 0},
	{"getdents64", on_fd, 0},
	{"getrandom", on_random},
	{"io_getevents", on_io_getevents},
	{"io_pgetevents", on_io_getevents},
	{"io_uring_enter", on_fd, 0},
	{"ioctl", on_ioctl, 0},
	{"lstat", on_path, 0},
	{"mkdir", on_path, 0},
	{"mkdirat", on_path, 1},
	{"mq_timedreceive", on_mq},
	{"mq_timedsend", on_mq},
	{"msgrcv", on_message},
	{"msgsnd", on_message},
	{"nanosleep", on_nanosleep},
	{"newfstatat", on_path, 1},
	{"open", on_path, 0},
	{"openat", on_path, 1},
	{"openat2", on_path, 1},
	{"pause", on_signal},
	{"poll", on_poll},
	{"ppoll", on_ppoll},
	{"pread64", on_fd, 0, 0, PRB_INCOMING},
	{"preadv", on_fd, 0, 0, PRB_INCOMING},
	{"preadv2", on_fd, 0, 0, PRB_INCOMING},
	{"pselect6", on_pselect},
	{"pwrite64", on_fd, 0, 0, PRB_OUTGOING},
	{"pwritev", on_fd, 0, 0, PRB_OUTGOING},
	{"pwritev2", on_fd, 0, 0, PRB_OUTGOING},
	{"read", on_fd, 0, 0, PRB_INCOMING},
	{"readahead", on_fd, 0},
	{"readlink", on_path, 0},
	{"readlinkat", on_path, 1},
	{"readv", on_fd, 0, 0, PRB_INCOMING},
	{"recvfrom", on_fd, 0, 0, PRB_INCOMING},
	{"recvmmsg", on_fd_limit, 0, 4, PRB_INCOMING},
	{"recvmsg", on_fd, 0, 0, PRB_INCOMING},
	{"rename", on_path, 0},
	{"renameat", on_path, 1},
	{"renameat2", on_path, 1},
	{"rmdir", on_path, 0},
	{"rt_sigsuspend", on_signal},
	{"rt_sigtimedwait", on_sigtimedwait},
	{"select", on_select},
	{"semop", on_semop},
	{"semtimedop", on_semop, 0, 3},
	{"sendfile", on_copy, 1, 0},
	{"sendmmsg", on_fd, 0, 0, PRB_OUTGOING},
	{"sendmsg", on_fd, 0, 0, PRB_OUTGOING},
	{"sendto", on_fd, 0, 0, PRB_OUTGOING},
	{"shutdown", on_fd, 0},
	{"splice", on_copy, 0, 2},
	{"stat", on_path, 0},
	{"statfs", on_path, 0},
	{"statx", on_path, 1},
	{"sync", on_sync},
	{"sync_file_range", on_fd, 0},
	{"syncfs", on_fd, 0},
	{"tee", on_copy, 0, 1},
	{"truncate", on_path, 0},
	{"unlink", on_path, 0},
	{"unlinkat", on_path, 1},
	{"vfork", on_vfork},
	{"vmsplice", on_fd, 0, 0, PRB_OUTGOING},
	{"wait4", on_wait4},
	{"waitid", on_waitid},
	{"write", on_fd, 0, 0, PRB_OUTGOING},
	{"writev", on_fd, 0, 0, PRB_OUTGOING},
};

static int compare_name(const void *name, const void *row)
{
	return strcmp(name, ((const struct row *)row)->name);
}

void prb_describe_call(struct prb_wait_context *c, const char *name, const struct prb_task *task,
		       struct prb_wait *wait, struct prb_str *s)
{
	const struct row *row =
		bsearch(name, rows, PRB_ARRAY_SIZE(rows), sizeof(rows[0]), compare_name);

	if (row)
		row->describe(&(struct call){c, task, row, wait, s});
}

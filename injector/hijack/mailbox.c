/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "injector/hijack/mailbox.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "target/ptrace/fault_step.h"
#include "dump/tasks/tasks.h"
#include "target/task.h"
#include "base/clock.h"

/* Nothing of the program waits while its helping thread comes to a stop, on a busy machine too. */
enum { HOLD_TIMEOUT_MS = 5000 };
static const double STOPPED_SECONDS = 1; /* a target that is stopped may go on at once */

enum { LOOK_POLLS = 1000 }; /* after so many it is asked why nothing comes */

/* Short waits at first: most calls take microseconds. */
static void wait_a_little(unsigned polls)
{
	enum { YIELDS = 20, SHORT = 2000 };

	if (polls < YIELDS)
		sched_yield();
	else
		nanosleep(&(struct timespec){.tv_nsec = polls < SHORT ? 20000 : 1000000}, NULL);
}

/* Stopped by job control: no thread of it runs until another process resumes it. */
static bool is_stopped(pid_t pid)
{
	char path[32], text[256] = "";

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	prb_auto_fclose FILE *file = fopen(path, "re");
	size_t n = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
	const char *end = memrchr(text, ')', n);

	return end && !strncmp(end, ") T", 3);
}

static struct prb_error *stopped(pid_t pid)
{
	return prb_error_hint(prb_error_create(PRB_ERROR_FAILED,
					       "process %d was stopped by job control meanwhile",
					       pid),
			      "resume it and inject again: kill -CONT %d", pid);
}

/*
 * Why nothing comes of a call, if that can be seen: everything is stopped, or the thread has died
 * while we traced it. An exec of its program waits until we have buried it, however late that is on
 * a busy machine; until then its memory is there, and silent.
 */
static struct prb_error *look_why(struct prb_mail *mail)
{
	siginfo_t info = {};

	if (is_stopped(mail->target->pid))
		return stopped(mail->target->pid);
	if (!waitid(P_PID, (id_t)mail->tid, &info, WEXITED | __WALL | WNOHANG) && info.si_pid)
		return prb_error_os(ESRCH, "thread %d is gone", mail->tid);
	return NULL;
}

/*
 * Looks through a list of the threads, which may be incomplete if threads start and exit meanwhile.
 */
static struct prb_error *look_for_tid(struct prb_target *t, pid_t inner, pid_t *ret)
{
	prb_auto_str struct prb_str tids = {};

	PRB_TRY(prb_target_list(t, &tids, "task"));
	for (const char *at = prb_str_text(&tids); *at && !*ret;) {
		char *end;
		pid_t tid = (pid_t)strtol(at, &end, 10);

		if (prb_task_inner_tid(t, tid) == inner)
			*ret = tid;
		at = *end ? end + 1 : end;
	}
	return NULL;
}

static bool has_thread(struct prb_target *t, pid_t tid)
{
	prb_auto_str struct prb_str stat = {};
	prb_auto_error struct prb_error *err = prb_target_read_file(t, &stat, "task/%d/stat", tid);

	return !err;
}

/*
 * Our number for a thread that knows itself as @inner: the same in the same namespace. 0 if there
 * is none. The target may say any number, so that a thread of another process is never taken.
 */
static struct prb_error *find_tid(struct prb_target *t, pid_t inner, pid_t *ret)
{
	enum { LOOKS = 20 };

	*ret = has_thread(t, inner) && prb_task_inner_tid(t, inner) == inner ? inner : 0;
	for (int i = 0; i < LOOKS && !*ret; i++)
		PRB_TRY(look_for_tid(t, inner, ret));
	return NULL;
}

struct prb_error *prb_mail_meet(struct prb_mail *mail, double deadline)
{
	double stopped_after = prb_clock_seconds() + STOPPED_SECONDS;
	uint64_t inner = 0;

	for (unsigned polls = 0; !inner; polls++) {
		PRB_TRY(prb_mail_read(mail->memory,
				      mail->address + offsetof(struct prb_mailbox, tid), &inner,
				      sizeof(inner)));
		if (prb_clock_seconds() > stopped_after && is_stopped(mail->target->pid))
			return stopped(mail->target->pid);
		if (prb_clock_seconds() > deadline)
			return prb_error_hint(
				prb_error_create(PRB_ERROR_TIMEOUT, "the new thread does not run"),
				"try again when the machine is less busy");
		if (!inner)
			wait_a_little(polls);
	}
	PRB_TRY(find_tid(mail->target, (pid_t)inner, &mail->tid));
	return mail->tid ? NULL : prb_error_os(ESRCH, "the new thread has exited");
}

/* It is in its own code as long as it serves us. */
static struct prb_error *check_serves(struct prb_mail *mail)
{
	struct prb_regs regs;

	PRB_TRY(prb_stop_ask(&mail->stop));
	PRB_TRY(prb_stop_wait(&mail->stop, HOLD_TIMEOUT_MS));
	PRB_TRY(prb_stop_registers(&mail->stop, &regs));
	if (regs.pc >= mail->code && regs.pc < mail->code_end)
		return NULL;
	return prb_error_os(ESRCH, "thread %d has timed out waiting for this command", mail->tid);
}

struct prb_error *prb_mail_hold(struct prb_mail *mail)
{
	if (mail->stop.seized)
		return NULL;

	struct prb_error *err = prb_stop_seize_in_turn(mail->tid, &mail->stop);
	if (!err)
		err = check_serves(mail);
	if (err)
		prb_mail_release(mail);
	return err;
}

void prb_mail_release(struct prb_mail *mail)
{
	double pause_us;

	prb_stop_end(&mail->stop, &pause_us);
}

struct prb_error *prb_mail_bytes(struct prb_mail *mail, size_t offset, const void *bytes,
				 size_t length, uint64_t *ret)
{
	*ret = mail->text + offset;
	PRB_TRY(prb_mail_hold(mail));
	return prb_mail_write(mail->memory, *ret, bytes, length);
}

struct prb_error *prb_mail_text(struct prb_mail *mail, size_t offset, const char *text,
				uint64_t *ret)
{
	size_t length = strlen(text) + 1;

	if (offset + length > PRB_SCRATCH_TEXT)
		return prb_error_create(PRB_ERROR_USAGE, "'%.60s...' is too long", text);
	return prb_mail_bytes(mail, offset, text, length, ret);
}

struct prb_error *prb_mail_close_at_end(struct prb_mail *mail, int64_t fd)
{
	PRB_TRY(prb_mail_hold(mail));
	return prb_mail_write(mail->memory, mail->address + offsetof(struct prb_mailbox, fd), &fd,
			      sizeof(fd));
}

/* The thread sees it when it goes on. */
static struct prb_error *put_state(struct prb_mail *mail, uint32_t state)
{
	PRB_TRY(prb_mail_write(mail->memory, mail->address + offsetof(struct prb_mailbox, state),
			       &state, sizeof(state)));
	prb_mail_release(mail);
	return NULL;
}

/* It would go on if there were a processor, or the disk answered. */
static bool wants_to_run(const struct prb_mail *mail)
{
	struct prb_task task = {};
	prb_auto_error struct prb_error *err = prb_task_read(mail->target, mail->tid, &task);

	return !err && (task.state == 'R' || task.state == 'D');
}

/* Explains why it is not in time. */
static struct prb_error *not_in_time(struct prb_mail *mail)
{
	struct prb_error *late = prb_error_create(PRB_ERROR_TIMEOUT, "it has not returned in time");
	struct prb_task task = {};
	struct prb_wait wait = {};
	prb_auto_error struct prb_error *err = prb_task_read(mail->target, mail->tid, &task);

	if (!err && task.state == 'R')
		return prb_error_hint(late, "it runs, or waits for a processor");
	if (!err)
		err = prb_task_wait(mail->target, &task, &wait);
	if (!err && wait.call)
		late = prb_error_hint(late, "it waits in %s%s%s", wait.call, wait.what ? ": " : "",
				      wait.what ? wait.what : "");
	prb_wait_deinit(&wait);
	return late;
}

static struct prb_error *wait_until_done(struct prb_mail *mail, double deadline)
{
	uint32_t state;

	for (unsigned polls = 0;; polls++) {
		PRB_TRY(prb_mail_read(mail->memory,
				      mail->address + offsetof(struct prb_mailbox, state), &state,
				      sizeof(state)));
		if (state == PRB_MAIL_DONE)
			return NULL;
		double over = prb_clock_seconds() - deadline;
		if (over > 0 && (over > mail->patience || !wants_to_run(mail)))
			return not_in_time(mail);
		if (polls % LOOK_POLLS == LOOK_POLLS - 1)
			PRB_TRY(look_why(mail));
		wait_a_little(polls);
	}
}

/* The code puts a result somewhere always: where it is, if nowhere else. */
static void link_calls(struct prb_mail_call *calls, size_t count, uint64_t address)
{
	for (size_t i = 0; i < count; i++) {
		struct prb_mail_call *c = &calls[i];
		uint64_t own = PRB_MAIL_FUNCTION(i) + offsetof(struct prb_mail_call, result);

		for (size_t j = 0; j < PRB_ARRAY_SIZE(c->also); j++)
			c->also[j] = address + (c->also[j] ? c->also[j] : own);
		c->next = i + 1 < count ? address + PRB_MAIL_FUNCTION(i + 1) : 0;
	}
}

struct prb_error *prb_mail_run(struct prb_mail *mail, struct prb_mail_call *calls, size_t count,
			       double deadline)
{
	uint64_t address = mail->address + offsetof(struct prb_mailbox, calls);

	link_calls(calls, count, address);
	PRB_TRY(prb_mail_hold(mail));
	PRB_TRY(prb_mail_write(mail->memory, address, calls, count * sizeof(*calls)));
	PRB_TRY(put_state(mail, PRB_MAIL_REQUEST));

	struct prb_error *err = wait_until_done(mail, deadline);
	if (err && err->code != PRB_ERROR_TIMEOUT)
		return err;
	struct prb_error *unread =
		prb_mail_read(mail->memory, address, calls, count * sizeof(*calls));
	if (!err)
		return unread;
	prb_error_destroy(unread);
	return err;
}

struct prb_error *prb_mail_call(struct prb_mail *mail, uint64_t function,
				const uint64_t arguments[PRB_MAIL_ARGUMENTS], double deadline,
				uint64_t *ret)
{
	struct prb_mail_call call = {.function = function};

	memcpy(call.arguments, arguments, sizeof(call.arguments));
	PRB_TRY(prb_mail_run(mail, &call, 1, deadline));
	*ret = call.result;
	return NULL;
}

struct prb_error *prb_mail_quit(struct prb_mail *mail, double deadline)
{
	PRB_TRY(prb_mail_hold(mail));
	PRB_TRY(put_state(mail, PRB_MAIL_QUIT));
	for (unsigned polls = 0; prb_clock_seconds() < deadline; polls++) {
		if (kill(mail->tid, 0) && errno == ESRCH)
			return NULL;
		wait_a_little(polls);
	}
	return prb_error_hint(
		prb_error_create(PRB_ERROR_TIMEOUT, "the helper thread does not exit"),
		"it exits by itself when the machine is less busy");
}

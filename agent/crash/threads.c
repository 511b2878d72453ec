/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The helper stops the process's other threads and reads their registers. */
#include <elf.h>
#include <errno.h>
#include <linux/futex.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#include "agent/crash/private.h"
#include "agent/inside/folder_entry.h"

enum {
	ROUNDS = 4,	  /* threads may start others until all are stopped */
	BUFFER = 1 << 14, /* of names in a folder */
	PATIENCE_MS = 200,
	NAP_US = 50,
};

static struct prba_crash_thread *find(struct prba_crash *c, int32_t tid)
{
	for (size_t i = 0; i < c->thread_count; i++)
		if (c->threads[i].tid == tid)
			return &c->threads[i];
	return NULL;
}

/** True if it is new. */
static bool add(struct prba_crash *c, int32_t tid)
{
	if (tid <= 0 || tid == c->tid || find(c, tid) || c->thread_count == PRBA_CRASH_THREADS)
		return false;
	c->threads[c->thread_count++] = (struct prba_crash_thread){.tid = tid};
	return true;
}

/** Adds the threads that are not known yet; gives how many. */
static size_t list(struct prba_crash *c)
{
	long folder = prba_raw(SYS_openat, c->proc, "task", 0x10000 | 02000000), length;
	char buffer[BUFFER] __attribute__((aligned(8))) = "";
	size_t before = c->thread_count;

	if (folder < 0)
		return 0;
	while ((length = prba_raw(SYS_getdents64, folder, buffer, sizeof(buffer))) > 0) {
		for (long at = 0; at < length;) {
			const struct prba_folder_entry *entry = (const void *)(buffer + at);
			const char *text = entry->name;

			add(c, (int32_t)prba_text_decimal(&text));
			at += entry->length;
		}
	}
	prba_raw(SYS_close, folder);
	return c->thread_count - before;
}

/** Asks the thread that records to let us trace the process; true if it answers. */
static bool ask(struct prba_crash *c)
{
	struct timespec nap = {.tv_nsec = 1000000};

	if (__atomic_exchange_n((uint32_t *)&c->asks, 1, __ATOMIC_SEQ_CST))
		return false;
	for (int i = 0; i < PATIENCE_MS; i++) {
		if (__atomic_load_n((uint32_t *)&c->answered, __ATOMIC_SEQ_CST))
			return true;
		prba_raw(SYS_futex, &c->answered, FUTEX_WAIT, 0, &nap);
	}
	return false;
}

static bool seize(struct prba_crash *c, struct prba_crash_thread *thread)
{
	long rc = prba_raw(SYS_ptrace, PTRACE_SEIZE, thread->tid, 0L, 0L);

	if (rc == -EPERM && ask(c))
		rc = prba_raw(SYS_ptrace, PTRACE_SEIZE, thread->tid, 0L, 0L);
	if (rc)
		return false;
	thread->traced = true;
	prba_raw(SYS_ptrace, PTRACE_INTERRUPT, thread->tid, 0L, 0L);
	return true;
}

/** It has stopped: its registers, and the signal that it was about to get. */
static void take(struct prba_crash_thread *thread, int status)
{
	struct iovec area = {&thread->regs, sizeof(thread->regs)};

	thread->signal = status >> 16 == PTRACE_EVENT_STOP ? 0 : WSTOPSIG(status);
	thread->registers =
		prba_raw(SYS_ptrace, PTRACE_GETREGSET, thread->tid, (long)NT_PRSTATUS, &area) == 0;
}

/** Waits up to @p deadline for the threads that were asked to stop. */
static void collect(struct prba_crash *c, int64_t deadline)
{
	struct timespec nap = {.tv_nsec = NAP_US * 1000L};
	bool waits = true;

	while (waits && prba_crash_clock() < deadline) {
		waits = false;
		for (size_t i = 0; i < c->thread_count; i++) {
			struct prba_crash_thread *thread = &c->threads[i];
			int status = 0;
			long rc;

			if (!thread->traced || thread->registers)
				continue;
			rc = prba_raw(SYS_wait4, thread->tid, &status, WNOHANG | __WALL, 0L);
			if (rc == thread->tid && WIFSTOPPED(status))
				take(thread, status);
			else if (rc != 0)
				thread->traced = false; /* it has ended */
			waits |= thread->traced && !thread->registers;
		}
		if (waits)
			prba_raw(SYS_nanosleep, &nap, 0L);
	}
}

#if defined(__x86_64__)
enum { SP = 19, PC = 16, NUMBER = 15 }; /* in user_regs_struct */
static const uint8_t arguments[] = {14, 13, 12, 7, 9, 8};
#else
enum { SP = 31, PC = 32, NUMBER = 8 };
static const uint8_t arguments[] = {0, 1, 2, 3, 4, 5};
#endif

/** A thread that could not be stopped: its registers from /proc if it sleeps, else none. */
static void guess(struct prba_crash *c, struct prba_crash_thread *thread)
{
	char name[64], text[256] = "";
	struct prba_text path = {name, 0, sizeof(name)};
	const char *at = text;

	prba_text_puts(&path, "task/");
	prba_text_number(&path, (uint64_t)thread->tid);
	prba_text_puts(&path, "/syscall");
	thread->regs[NUMBER] = (elf_greg_t)-1;
	if (!prba_crash_read(c, name, text, sizeof(text)) || *at < '0' || *at > '9')
		return;
	thread->regs[NUMBER] = prba_text_decimal(&at);
	for (size_t i = 0; i < sizeof(arguments) + 2; i++) {
		size_t to = i < sizeof(arguments) ? arguments[i] : i == sizeof(arguments) ? SP : PC;

		at += prba_text_begins(at, " 0x") ? 3 : 0;
		thread->regs[to] = prba_text_hex(&at);
	}
}

void prba_crash_stop_threads(struct prba_crash *c)
{
	int64_t deadline = prba_crash_clock() + PATIENCE_MS * 1000000LL;

	for (int round = 0; round < ROUNDS; round++) {
		size_t first = c->thread_count;

		if (!list(c))
			break;
		for (size_t i = first; c->traces && i < c->thread_count; i++)
			seize(c, &c->threads[i]);
		if (!c->traces)
			break;
		collect(c, deadline);
	}
	for (size_t i = 0; i < c->thread_count; i++) {
		if (c->threads[i].registers)
			continue;
		c->unreached++;
		guess(c, &c->threads[i]);
	}
}

void prba_crash_release_threads(struct prba_crash *c)
{
	for (size_t i = 0; i < c->thread_count; i++)
		if (c->threads[i].traced)
			prba_raw(SYS_ptrace, PTRACE_DETACH, c->threads[i].tid, 0L,
				 c->threads[i].signal);
}

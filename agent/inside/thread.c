/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/inside/thread.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>

#include "agent/inside/libc.h"
#include "agent/inside/status.h"
#include "agent/threads.h"

enum {
	SIGSET_BYTES = 8, /* the kernel's size; libc's is larger */
	THREADS = 64,	  /* two of each client, and a few */
};

struct start {
	const char *name;
	void *(*run)(void *);
	void *argument;
};

/* Of each thread: its id, 0 if the place is free, or BEGINS; and what it is to do. */
enum { BEGINS = -1 };
static _Atomic int32_t ids[THREADS];
static struct start starts[THREADS];

static _Atomic uint64_t usual; /* what the main thread blocks */
static bool has_usual;

/** The injector's thread, which starts us, blocks all; so the kernel is asked. */
static void read_usual(void)
{
	char text[PRBA_STATUS_VALUE];
	uint64_t blocked = 0;

	if (!prba_status_read(PRBA_STATUS_PROCESS, "SigBlk", text))
		return;
	for (const char *at = text; *at; at++)
		blocked = blocked << 4 | (uint64_t)(*at <= '9' ? *at - '0' : *at - 'a' + 10);
	atomic_store(&usual, blocked);
}

/** All signals but those that a fault of our own raises and those that libc uses itself. */
static uint64_t ours(void)
{
	static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
	uint64_t blocked = ~0ull;

	for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
		blocked &= ~(1ull << (own[i] - 1));
	return blocked & ~(7ull << 31);
}

/* Not pthread_sigmask(), which has a new version. */
static void block(uint64_t signals, uint64_t *before)
{
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &signals, before, SIGSET_BYTES);
}

uint64_t prba_thread_runs_code(void)
{
	uint64_t before;

	read_usual();
	syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &before, SIGSET_BYTES);
	block(atomic_load(&usual) & before, NULL);
	return before;
}

void prba_thread_ran_code(uint64_t blocked)
{
	block(blocked, NULL);
}

const void *prba_thread_ids(uint32_t *count)
{
	*count = THREADS;
	return ids;
}

/** A thread that Python ended at finalization has not said so. */
static bool has_ended(int32_t id)
{
	return id > 0 && syscall(SYS_tgkill, getpid(), id, 0) && errno == ESRCH;
}

/** A free place, which is the caller's then; THREADS if there is none. */
static size_t claim(void)
{
	size_t i;

	for (i = 0; i < THREADS; i++) {
		int32_t id = atomic_load(&ids[i]);

		if ((!id || has_ended(id)) && atomic_compare_exchange_strong(&ids[i], &id, BEGINS))
			break;
	}
	return i;
}

static void *begin(void *argument)
{
	size_t place = (size_t)((struct start *)argument - starts);
	struct start start = starts[place];
	char name[16] = PRB_AGENT_THREAD;
	void *ret;

	strncat(name, start.name, sizeof(name) - sizeof(PRB_AGENT_THREAD));
	prctl(PR_SET_NAME, name);
	atomic_store(&ids[place], (int32_t)syscall(SYS_gettid));
	ret = start.run(start.argument);
	atomic_store(&ids[place], 0);
	return ret;
}

int prba_thread_start(pthread_t *ret, size_t stack, const char *name, void *(*run)(void *),
		      void *argument)
{
	uint64_t before;
	pthread_attr_t attributes;
	size_t place = claim();
	int rc;

	if (place == THREADS)
		return EAGAIN;
	starts[place] = (struct start){name, run, argument};
	rc = pthread_attr_init(&attributes);
	if (rc)
		goto give_back;
	pthread_attr_setstacksize(&attributes, stack);
	block(ours(), &before);
	if (!has_usual)
		read_usual();
	has_usual = true;
	rc = pthread_create(ret, &attributes, begin, &starts[place]);
	block(before, NULL);
	pthread_attr_destroy(&attributes);
give_back:
	if (rc)
		atomic_store(&ids[place], 0);
	return rc;
}

void prba_thread_forked(void)
{
	char name[16] = "";

	for (size_t i = 0; i < THREADS; i++)
		atomic_store(&ids[i], 0);
	/*
	 * Evaluated code made this child: it must be able to receive SIGTERM like any other
	 * process.
	 */
	if (!prctl(PR_GET_NAME, name) && prb_is_agent_thread(name))
		block(atomic_load(&usual), NULL);
}

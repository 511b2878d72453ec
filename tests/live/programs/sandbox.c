/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A library with which a program shuts itself into a filter of system calls: one that answers a
 * single call with an action, or one that allows what the product says that it calls in a program
 * (target/ptrace/seccomp_calls.h), and has all others noted by a child before they are made.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "target/ptrace/seccomp_calls.h"

enum { NOTED = 4000 };

/* As the test reads it. */
struct shared {
	volatile int64_t rounds, stop;
	int64_t count;
	struct noted {
		int32_t number, tid;
		uint64_t arguments[6];
	} noted[NOTED];
	volatile int64_t listener;
};

static struct shared *shared;

/* Shared with the test: the program's counter, and the noted calls. */
struct shared *sandbox_open(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	void *memory;

	if (fd < 0 || ftruncate(fd, sizeof(*shared)))
		return NULL;
	memory = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	shared = memory == MAP_FAILED ? NULL : memory;
	return shared;
}

static struct sock_filter code[BPF_MAXINSNS];
static unsigned short length;

static void add(uint16_t operation, uint32_t k, uint8_t yes, uint8_t no)
{
	if (length == BPF_MAXINSNS)
		_exit(99);
	code[length++] = (struct sock_filter){operation, yes, no, k};
}

static void load(size_t offset)
{
	add(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

/* The requested descriptor, or 0; a negative errno value. */
static int install(unsigned flags)
{
	struct sock_fprog program = {length, code};
	long rc = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);

	if (!rc)
		rc = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
	return rc < 0 ? -errno : (int)rc;
}

static const struct listed {
	const char *name;
	long number;
	unsigned maker, failure;
	struct prb_call_range arguments[6]; /* the same fields as in sandboxes.py */
} listed[] = {
#define CALL(name, maker, failure, ...) \
	{#name, SYS_##name, PRB_CALL_##maker, PRB_CALL_##failure, {__VA_ARGS__}},
	PRB_CALLS(CALL)};
enum { LISTED = sizeof(listed) / sizeof(*listed), BITS = 32 };

static unsigned short leaves[64];
static int leaving;

/* The word that is loaded has to compare as said with @k. */
static void need(uint16_t comparison, uint32_t k, bool wanted)
{
	leaves[leaving++] = length;
	add(BPF_JMP | comparison | BPF_K, k, wanted ? 0 : 1, wanted ? 1 : 0);
}

/* Argument @i is in the range: a number of one word, an int as either sign extends it, or not 0. */
static void need_range(unsigned i, const struct prb_call_range *range)
{
	const size_t low = offsetof(struct seccomp_data, args) + 8 * i, high = low + 4;

	if (!range->bounded)
		return;
	if (range->low == 1 && range->high == UINT64_MAX) {
		load(low);
		add(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 2);
		load(high);
		need(BPF_JEQ, 0, false);
		return;
	}
	if (range->low >> BITS != range->high >> BITS)
		_exit(99);
	load(low);
	if (range->low == range->high) {
		need(BPF_JEQ, (uint32_t)range->low, true);
	} else {
		need(BPF_JGE, (uint32_t)range->low, true);
		need(BPF_JGT, (uint32_t)range->high, false);
	}
	load(high);
	if (range->low >> (BITS - 1) & 1)
		add(BPF_JMP | BPF_JEQ | BPF_K, UINT32_MAX, 1, 0);
	need(BPF_JEQ, 0, true);
}

static void allow(const struct listed *call)
{
	leaving = 0;
	load(offsetof(struct seccomp_data, nr));
	need(BPF_JEQ, (uint32_t)call->number, true);
	for (unsigned i = 0; i < 6; i++)
		need_range(i, &call->arguments[i]);
	add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
	for (int i = 0; i < leaving; i++) {
		struct sock_filter *leave = &code[leaves[i]];

		*(leave->jt ? &leave->jt : &leave->jf) = (uint8_t)(length - leaves[i] - 1);
	}
}

/* The child's work until the program has ended. */
static void supervise(int program)
{
	struct seccomp_notif request;
	int fd;

	while (!shared->listener)
		sched_yield();
	fd = (int)syscall(SYS_pidfd_getfd, program, (int)shared->listener, 0);
	shared->listener = fd < 0 ? -errno : -1;
	for (;;) {
		request = (struct seccomp_notif){};
		if (ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, &request)) {
			if (errno == EINTR || errno == ENOENT)
				continue;
			_exit(0);
		}
		if (shared->count < NOTED) {
			struct noted *n = &shared->noted[shared->count];

			n->number = request.data.nr;
			n->tid = (int32_t)request.pid;
			for (int i = 0; i < 6; i++)
				n->arguments[i] = request.data.args[i];
			shared->count++;
		}
		struct seccomp_notif_resp response = {.id = request.id,
						      .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
		ioctl(fd, SECCOMP_IOCTL_NOTIF_SEND, &response);
	}
}

int sandbox_note(unsigned makers)
{
	int program = (int)syscall(SYS_pidfd_open, getpid(), 0), fd;

	for (size_t i = 0; i < LISTED; i++)
		if (listed[i].maker & makers)
			allow(&listed[i]);
	add(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF, 0, 0);
	if (!fork()) {
		prctl(PR_SET_PDEATHSIG, 9);
		supervise(program);
	}
	close(program);
	fd = install(SECCOMP_FILTER_FLAG_NEW_LISTENER);
	if (fd < 0)
		return fd;
	shared->listener = fd;
	while (shared->listener == fd)
		;
	close(fd);
	return shared->listener == -1 ? 0 : (int)shared->listener;
}

/* For the test: the calls of the list, NULL after the last. */
const struct listed *sandbox_listed(size_t i)
{
	return i < LISTED ? &listed[i] : NULL;
}

/*
 * To one call. With a comparison, to one whose argument @i is ("="), is not ("!"), exceeds (">"),
 * is below ("<"), or has a bit of ("&"), @k, by its low word; "^" by its high word, which exceeds
 * @k.
 */
int sandbox_answer(long number, uint32_t action, unsigned i, int comparison, uint32_t k)
{
	static const struct {
		uint16_t code;
		bool negated;
	} comparisons[] = {['='] = {BPF_JEQ}, ['!'] = {BPF_JEQ, true}, ['>'] = {BPF_JGT},
			   ['^'] = {BPF_JGT}, ['<'] = {BPF_JGE, true}, ['&'] = {BPF_JSET}};

	if (comparison) {
		const bool negated = comparisons[comparison].negated;

		load(offsetof(struct seccomp_data, args) + 8 * i + (comparison == '^' ? 4 : 0));
		add(BPF_JMP | comparisons[comparison].code, k, negated ? 0 : 1, negated ? 1 : 0);
		add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
	}
	load(offsetof(struct seccomp_data, nr));
	add(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 1);
	add(BPF_RET | BPF_K, action, 0, 0);
	add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
	return install(0);
}

#ifdef PROGRAM
/* A program without Python: SHARED note MAKERS */
#include <stdlib.h>

int main(int argc, char **argv)
{
	if (argc != 4 || !sandbox_open(argv[1]) || write(1, "ready\n", 6) != 6 ||
	    sandbox_note((unsigned)atoi(argv[3])))
		return 1;
	while (!shared->stop)
		shared->rounds++;
	return 0;
}
#endif

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

/* Shared with the test: what the program counts, and what was noted. */
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

static struct sock_filter code[4096];
static unsigned short length;

static void add(uint16_t operation, uint32_t k, uint8_t yes, uint8_t no)
{
	code[length++] = (struct sock_filter){operation, yes, no, k};
}

static void load(size_t offset)
{
	add(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

/* A descriptor if it is asked for, or 0; a negative errno value. */
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
	unsigned maker;
	bool may_fail;
	unsigned decides;
	uint64_t arguments[6]; /* the fields as sandboxes.py has them */
} listed[] = {
#define CALL(name, maker, may_fail, decides, ...) \
	{#name, SYS_##name, PRB_CALL_##maker, may_fail, decides, {__VA_ARGS__}},
	PRB_CALLS(CALL)};
enum { LISTED = sizeof(listed) / sizeof(*listed) };

static unsigned short leaves[64];
static int leaving;

/* One word of a call, the low one of argument @i, has to compare as said with @k. */
static void need(unsigned i, uint16_t comparison, uint32_t k, bool wanted)
{
	load(offsetof(struct seccomp_data, args) + 8 * i);
	leaves[leaving++] = length;
	add(BPF_JMP | comparison | BPF_K, k, wanted ? 0 : 1, wanted ? 1 : 0);
}

/* The argument is of the kind that the listed value stands for. */
static void need_kind(unsigned i, uint64_t value)
{
	switch (value) {
	case PRB_CALL_DESCRIPTOR:
		need(i, BPF_JGE, 3, true);
		need(i, BPF_JSET, 1u << 31, false);
		break;
	case PRB_CALL_WHILE:
		need(i, BPF_JSET, 1u << 31, false);
		break;
	case PRB_CALL_MANY:
		need(i, BPF_JGE, 1, true);
		need(i, BPF_JGT, PRB_CALL_MANY, false);
		break;
	case PRB_CALL_SMALL:
		need(i, BPF_JGT, PRB_CALL_SMALL_MAX, false);
		break;
	case PRB_CALL_LARGE:
		need(i, BPF_JGT, PRB_CALL_SMALL_MAX, true);
		need(i, BPF_JGT, PRB_CALL_LARGE, false);
		break;
	case PRB_CALL_SOME:
		need(i, BPF_JEQ, 0, false);
		break;
	default:
		need(i, BPF_JEQ, (uint32_t)value, true);
	}
}

static void allow(const struct listed *call)
{
	leaving = 0;
	load(offsetof(struct seccomp_data, nr));
	leaves[leaving++] = length;
	add(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call->number, 0, 1);
	for (unsigned digits = call->decides; digits; digits /= 10)
		need_kind(digits % 10 - 1, call->arguments[digits % 10 - 1]);
	add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
	for (int i = 0; i < leaving; i++) {
		struct sock_filter *leave = &code[leaves[i]];

		*(leave->jt ? &leave->jt : &leave->jf) = (uint8_t)(length - leaves[i] - 1);
	}
}

/* What the child does until the program is gone. */
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

/* To one call; with "=", ">" or "&" to one whose argument @i is, exceeds, or has a bit of, @k. */
int sandbox_answer(long number, uint32_t action, unsigned i, int comparison, uint32_t k)
{
	if (comparison) {
		uint16_t code_of = comparison == '='   ? BPF_JEQ
				   : comparison == '>' ? BPF_JGT
						       : BPF_JSET;

		load(offsetof(struct seccomp_data, args) + 8 * i);
		add(BPF_JMP | code_of | BPF_K, k, 1, 0);
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

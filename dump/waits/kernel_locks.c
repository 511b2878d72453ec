/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Locks and their holders: futexes from memory, file locks from /proc/locks. */
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/cleanup.h"
#include "target/proc/text.h"
#include "dump/waits/wait_private.h"

enum {
	MUTEX_CONTENDED = 2, /* glibc: the lock word while a thread waits */
	MUTEX_KINDS = 0x3ff, /* all possible bits of __kind */
	JOINABLE = 2,	     /* glibc 2.43: the state of a thread that has not ended */
	TID_BEFORE = 1024,   /* the tid is at most so many bytes before that state */
};

struct mutex { /* the beginning of glibc's struct __pthread_mutex_s on 64-bit machines */
	int32_t lock;
	uint32_t count;
	int32_t owner;
	uint32_t users;
	int32_t kind;
};

/* Threads store their tids of the innermost namespace: the last number of "NSpid". */
static pid_t innermost_pid(struct prb_wait_context *c, const char *folder, struct prb_str *s)
{
	prb_auto_str struct prb_str status = {};
	int64_t pid = 0;

	if (prb_wait_ok(s, prb_target_read_file(c->target, &status, "%sstatus", folder)))
		prb_text_last_number(prb_str_text(&status), "NSpid", &pid);
	return (pid_t)pid;
}

/*
 * The target's thread with the innermost tid @p inner, for a target in a pid namespace below ours;
 * or 0.
 */
static pid_t nested_thread(struct prb_wait_context *c, pid_t inner, struct prb_str *s)
{
	prb_auto_str struct prb_str list = {};
	char *end;

	if (!prb_wait_ok(s, prb_target_list(c->target, &list, "task")))
		return 0;
	for (const char *line = prb_str_text(&list); *line; line = end + (*end == '\n')) {
		pid_t tid = (pid_t)strtol(line, &end, 10);
		char folder[32];

		if (end == line)
			return 0;
		snprintf(folder, sizeof(folder), "task/%d/", tid);
		if (innermost_pid(c, folder, s) == inner)
			return tid;
	}
	return 0;
}

/*
 * Finds the target's thread with the tid @p inner in its namespace and appends "4250 (worker-1)" to
 * @p words; 0 if there is none. Caches the last answer, which the other waiters of a lock need too.
 */
static pid_t find_thread(struct prb_wait_context *c, pid_t inner, struct prb_str *words)
{
	prb_auto_str struct prb_str comm = {};
	pid_t tid = inner;

	if (inner <= 0)
		return 0;
	if (c->named.inner == inner) {
		prb_str_puts(words, prb_str_text(&c->named.words));
		return c->named.tid;
	}
	pid_t innermost = innermost_pid(c, "", words);
	if (innermost && innermost != c->target->pid)
		tid = nested_thread(c, inner, words);
	if (tid && !prb_wait_ok(words, prb_target_read_file(c->target, &comm, "task/%d/comm", tid)))
		tid = 0;

	c->named.inner = inner;
	c->named.tid = tid;
	prb_str_truncate(&c->named.words, 0);
	if (tid) {
		prb_str_printf(&c->named.words, "%d (", tid);
		prb_text_escape_bytes(&c->named.words, prb_str_text(&comm),
				      strcspn(prb_str_text(&comm), "\n"));
		prb_str_putc(&c->named.words, ')');
	}
	words->failed |= comm.failed || c->named.words.failed;
	prb_str_puts(words, prb_str_text(&c->named.words));
	return tid;
}

/* The owner stored in a glibc mutex; checks its fields to make a chance match unlikely. */
static pid_t mutex_owner(struct prb_wait_context *c, uint64_t address, struct prb_str *s)
{
	struct mutex mutex;

	if (!prb_wait_ok(s, prb_mem_read(c->mem, address, &mutex, sizeof(mutex))))
		return 0;
	if (mutex.lock != MUTEX_CONTENDED || !mutex.users || mutex.kind & ~MUTEX_KINDS)
		return 0;
	return mutex.owner;
}

static pid_t word_owner(struct prb_wait_context *c, uint64_t address, struct prb_str *s)
{
	uint32_t word;

	if (!prb_wait_ok(s, prb_mem_read_u32(c->mem, address, &word)))
		return 0;
	return (pid_t)(word & FUTEX_TID_MASK);
}

/*
 * The thread with its state at @p address, or 0. In struct pthread, the tid follows the links of
 * glibc's list of stacks, and the next entry points back to them.
 */
static pid_t thread_of_state(struct prb_wait_context *c, uint64_t address, struct prb_str *s)
{
	const uint64_t start = (address - TID_BEFORE) & ~7ULL;
	struct {
		uint64_t next, previous;
		int32_t tid;
	} part;
	unsigned char before[TID_BEFORE];

	if (address < TID_BEFORE ||
	    !prb_wait_ok(s, prb_mem_read(c->mem, start, before, sizeof(before))))
		return 0;
	for (size_t at = 0; at + sizeof(part) <= sizeof(before); at += 8) {
		uint64_t back;

		memcpy(&part, before + at, sizeof(part));
		if (part.tid > 0 && part.tid <= (int32_t)FUTEX_TID_MASK && part.next &&
		    !(part.next & 7) &&
		    prb_wait_ok(s, prb_mem_read_u64(c->mem, part.next + sizeof(back), &back)) &&
		    back == start + at)
			return part.tid;
	}
	return 0;
}

void prb_describe_futex(struct prb_wait_context *c, const struct prb_task *task,
			struct prb_wait *wait, struct prb_str *s)
{
	prb_auto_str struct prb_str thread = {};
	uint32_t expected = (uint32_t)task->args[2];
	int command = (int)task->args[1] & FUTEX_CMD_MASK;
	bool shared = !(task->args[1] & FUTEX_PRIVATE_FLAG);
	bool inherits = command == FUTEX_LOCK_PI || command == FUTEX_LOCK_PI2;
	pid_t owner = 0, ends = 0;

	wait->futex = task->args[0];
	if (inherits)
		owner = word_owner(c, wait->futex, s);
	else if (command == FUTEX_WAIT && expected == MUTEX_CONTENDED)
		owner = mutex_owner(c, wait->futex, s);
	wait->owner = find_thread(c, owner, &thread);

	/* pthread_join() waits until the kernel clears the thread's tid in memory, or its state. */
	if (!inherits && !owner && shared && expected > MUTEX_CONTENDED)
		ends = (pid_t)expected;
	else if (command == FUTEX_WAIT_BITSET && shared && expected == JOINABLE)
		ends = thread_of_state(c, wait->futex, s);
	if (ends && ends != task->tid && (ends = find_thread(c, ends, &thread))) {
		prb_enders_thread(c, "thread", ends, true);
		prb_str_printf(s, "the end of thread %s", prb_str_text(&thread));
	} else if (wait->owner) {
		prb_enders_thread(c, "lock", wait->owner, true);
		prb_str_printf(s, "a lock held by %s", prb_str_text(&thread));
	} else if (!shared || !prb_describe_shared_futex(c, wait->futex, s)) {
		if (!shared)
			prb_enders_thread(c, "lock", 0, false);
		prb_str_puts(s, inherits ? "a lock" : "a lock or condition");
	}
	s->failed |= thread.failed;
}

bool prb_lock_key(struct prb_wait_context *c, int fd, char *key, size_t size, struct prb_str *s)
{
	prb_auto_str struct prb_str info = {}, mounts = {};
	const char *inode, *mount;
	unsigned major, minor;
	int id;

	if (!prb_wait_ok(s, prb_target_read_file(c->target, &info, "fdinfo/%d", fd)))
		return false;
	inode = prb_text_field(prb_str_text(&info), "ino");
	mount = prb_text_field(prb_str_text(&info), "mnt_id");
	if (!inode || !mount ||
	    !prb_wait_ok(s, prb_target_read_file(c->target, &mounts, "mountinfo")))
		return false;
	for (const char *line = prb_str_text(&mounts); line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (sscanf(line, "%d %*d %u:%u", &id, &major, &minor) == 3 && id == atoi(mount)) {
			snprintf(key, size, "%02x:%02x:%llu", major, minor,
				 strtoull(inode, NULL, 10));
			return true;
		}
	}
	return false;
}

/*
 * A process without which the lock on the file does not become free, from /proc/locks; lines with
 * an arrow are waiters. *only is set to false for a lock that its children may share.
 */
static pid_t lock_holder(const char *key, bool *only)
{
	prb_auto_fclose FILE *locks = fopen("/proc/locks", "re");
	char line[256];

	while (locks && fgets(line, sizeof(line), locks)) {
		char file[64], kind[16];
		int pid;

		if (sscanf(line, "%*d: %15[A-Z] %*s %*s %d %63s", kind, &pid, file) != 3 ||
		    strcmp(file, key) != 0 || pid <= 0)
			continue;
		*only = !strcmp(kind, "POSIX");
		return pid;
	}
	return 0;
}

void prb_describe_file_lock(struct prb_wait_context *c, int fd, struct prb_str *s)
{
	struct prb_enders *enders = prb_steal(&c->enders);
	bool only = false;
	char file[64];
	pid_t pid;

	prb_str_puts(s, "a lock on ");
	prb_describe_fd(c, fd, PRB_EITHER_WAY, s);
	c->enders = enders;
	prb_enders_object(c, "file lock");
	if (!prb_lock_key(c, fd, file, sizeof(file), s))
		return;
	pid = lock_holder(file, &only);
	prb_enders_add(c, pid);
	if (pid && only)
		prb_enders_all(c, true);
	if (pid == c->target->pid) {
		prb_str_puts(s, " held by itself");
	} else if (pid) {
		prb_str_puts(s, " held by ");
		prb_describe_process(pid, s);
	}
}

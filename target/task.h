/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file A thread as the kernel describes it: state, system call, how long it sleeps, and on what.
 */
#ifndef PRB_TARGET_TASK_H
#define PRB_TARGET_TASK_H

#include <stdint.h>

#include "base/error.h"
#include "target/proc/pids.h"
#include "target/target.h"

struct prb_task {
	pid_t tid;
	char name[64]; /**< the kernel's comm, made printable */
	char state;    /**< as in stat: R S D T t Z X I; 0 if unknown */

	/* From task/TID/syscall, which needs ptrace permission. */
	bool in_syscall;
	long syscall; /**< number, for the target's machine; -1 if blocked outside of one (a fault)
		       */
	uint64_t args[6];
	uint64_t sp, pc; /**< 0 if unknown (running) */
};

/** Reads what there is about @p tid; PRB_ERROR_NO_PROCESS if it is gone. */
struct prb_error *prb_task_read(struct prb_target *t, pid_t tid,
				struct prb_task *ret) PRB_MUST_CHECK;

/**
 * The expensive half of prb_task_read(): adds the data of task/TID/syscall to a task whose tid and
 * state are known. The rest of @p task must be as prb_task_read() leaves it for a thread outside of
 * any system call: zero, but `syscall` -1.
 */
struct prb_error *prb_task_read_call(struct prb_target *t, struct prb_task *task) PRB_MUST_CHECK;

/**
 * The thread, other than the first one, that began first: the likeliest to stay. It is used for the
 * process if the first one has ended. *ret is 0 if there is no other.
 */
struct prb_error *prb_task_oldest_other(struct prb_target *t, pid_t *ret) PRB_MUST_CHECK;

/** "recvfrom", or NULL if the number is unknown on that machine. */
const char *prb_syscall_name(uint16_t machine, long number);

enum { PRB_MOST_ENDERS = 16 };

/** A place in memory that processes share: a part of a file, mostly without a name. */
struct prb_shared_word {
	uint64_t inode; /**< 0: it is in no such memory */
	uint64_t offset;
	uint32_t major, minor; /**< of the file's device */
};

static inline bool prb_shared_word_same(const struct prb_shared_word *a,
					const struct prb_shared_word *b)
{
	return a->inode && a->inode == b->inode && a->offset == b->offset && a->major == b->major &&
	       a->minor == b->minor;
}

/** Who can end a wait. */
struct prb_enders {
	const char *kind; /**< "lock", "thread", "child", "process", "pipe", "socket",
			       "file lock", "semaphore", "shared memory", "zmq", "ring"; static;
			       NULL: not known who */
	char what[64];	  /**< name of a ring, endpoint of ZeroMQ, as the target wrote it; or "" */
	pid_t tid;	  /**< thread of the own process that holds the lock, or is to end; or 0 */
	bool alone;	  /**< nobody but that thread */
	pid_t pids[PRB_MOST_ENDERS]; /**< processes, any of whose threads can; the own one, too */
	/** Of each of them: who waits for several objects waits for each for another reason. */
	const char *kinds[PRB_MOST_ENDERS];
	unsigned count;
	bool all;	/**< no process beside these, of those that we may read */
	bool certain;	/**< and all processes could be read */
	bool likely;	/**< as `all`, but who shares an epoll instance is not known */
	bool endless;	/**< the wait has no limit of time */
	bool outside;	/**< somebody outside of all programs can end it: a client, a terminal, a
			   signal */
	bool any_child; /**< any child can, by its end */
	struct prb_shared_word word; /**< the futex, if other processes may have it, too */
	/** Thread of another process that holds that semaphore; set by judge/peers.h. */
	pid_t holder_pid, holder_tid;
};

/** As what the process @p pid can end the wait. */
static inline const char *prb_enders_kind(const struct prb_enders *enders, pid_t pid)
{
	for (unsigned i = 0; i < enders->count && i < PRB_MOST_ENDERS; i++)
		if (enders->pids[i] == pid && enders->kinds[i])
			return enders->kinds[i];
	return enders->kind;
}

/** The object that a sleeping thread waits for. */
struct prb_wait {
	const char *call; /**< system call's name, static, or NULL */
	char *what; /**< "socket 7 → 10.0.0.3:29500", "pipe 4 ← 4711 (cat)", "a lock"; or NULL */
	uint64_t futex; /**< address waited on, 0 if it is not a futex: the Python side may know
			   which lock it is and who owns it */
	pid_t owner;	/**< thread that holds the lock waited for, if memory says so; else 0 */
	double asked;	/**< seconds after which the wait ends by itself, counted from its
			   beginning; < 0 if it has no such limit. Less how long the thread slept,
			   it is the time left. */
	double left;	/**< seconds until the absolute time at which the wait ends; < 0 if it has
			   none. Already in `what`. */
	struct prb_enders enders;
};

/**
 * Data shared by descriptions, so that the threads of one dump do not look it up again: tables of
 * sockets, locks, and which process holds which pipe. It holds for one instant: make one per dump.
 * Borrows the target. One thread at a time.
 */
struct prb_wait_context;

struct prb_error *prb_wait_context_create(struct prb_target *t,
					  struct prb_wait_context **ret) PRB_MUST_CHECK;
void prb_wait_context_destroy(struct prb_wait_context *context);

/**
 * What was found in all processes of this machine, for the waits of several targets: they have to
 * be read within one moment. One thread at a time.
 */
struct prb_search;

struct prb_error *prb_search_create(struct prb_search **ret) PRB_MUST_CHECK;
void prb_search_destroy(struct prb_search *search);

/**
 * From now on, all processes that can end a wait are looked for, and the peers of TCP connections:
 * some 20 µs for each process of the machine. Otherwise relatives alone are searched first.
 * @p search, which outlives the context, keeps what is found; NULL: the context does.
 */
struct prb_error *prb_wait_context_search_all(struct prb_wait_context *context,
					      struct prb_search *search) PRB_MUST_CHECK;

/** Finds the place of @p address in shared memory; false if it is in none. */
bool prb_shared_word_find(struct prb_wait_context *context, uint64_t address,
			  struct prb_shared_word *ret);

/** The processes that have a word in their memory. */
struct prb_sharers {
	struct prb_shared_word word;
	struct prb_pids pids; /**< the caller ends it with prb_pids_deinit() */
};

/**
 * Finds them for all of @p list, as empty lists, in one look at the processes of this machine. *all
 * is false if not all of these could be read in time.
 */
struct prb_error *prb_sharers_find(struct prb_sharers *list, size_t count,
				   bool *all) PRB_MUST_CHECK;

/**
 * Describes what @p task waits for: from its system call and arguments, the descriptor's link,
 * sockets of the target's network namespace, the process at the other end of a pipe or unix
 * socket, child pid of wait4/waitid, time of a sleep. Memory is read through @p mem: the target's
 * own, or a view of an instant at which the thread slept like this.
 * Nothing known gives `call` and `what` NULL. Never an error but for memory.
 */
struct prb_error *prb_wait_describe(struct prb_wait_context *context, struct prb_mem *mem,
				    const struct prb_task *task,
				    struct prb_wait *ret) PRB_MUST_CHECK;

/**
 * The other processes at the other end of the target's descriptor @p fd, a pipe or socket; none if
 * they are not known, or the target is no live process of this machine.
 */
struct prb_error *prb_wait_peers(struct prb_wait_context *context, int fd,
				 struct prb_enders *ret) PRB_MUST_CHECK;

/** As prb_wait_describe(), for a single thread. */
struct prb_error *prb_task_wait(struct prb_target *t, const struct prb_task *task,
				struct prb_wait *ret) PRB_MUST_CHECK;
/** "recvfrom: socket 7 → …"; *ret is NULL if nothing is known. The caller frees it. */
struct prb_error *prb_wait_words(const struct prb_wait *wait, char **ret) PRB_MUST_CHECK;
void prb_wait_deinit(struct prb_wait *wait);

#endif

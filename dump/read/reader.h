/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Reads the stacks of threads, each as exactly as its state allows.
 *
 * dump/plan.c says which threads are read. Each way of reading them is a file: sleeping.c,
 * running.c, frozen.c (also for states without a thread), nonblocking.c, and still.c for targets
 * that do not move. Internal to dump/.
 */
#ifndef PRB_DUMP_READ_READER_H
#define PRB_DUMP_READ_READER_H

#include "base/error.h"
#include "base/vec.h"
#include "python/python.h"
#include "target/mem/view.h"
#include "target/task.h"
#include "dump/read/decode.h"
#include "dump/model/dump.h"
#include "dump/native/merge.h"
#include "target/ptrace/stop.h"
#include "dump/tasks/tasks.h"

/** A thread to be read, and what was read while it was stopped. */
struct prb_reader_thread {
	struct prb_python *py;	     /**< NULL: a thread without Python state */
	struct prb_py_thread state;  /**< valid if py is not NULL */
	struct prb_task_watch *task; /**< NULL: a thread state without a thread */
	uint64_t self;		     /**< pthread_self() of the thread; 0 if unknown */
	uint64_t kept_at;	     /**< where the thread keeps its state; 0 if unknown */
	size_t out;		     /**< index in dump->threads */

	struct prb_py_frames frames;
	struct prb_error *frames_error; /**< why `frames` ends early, or NULL */
	struct prb_task call;		/**< the system call it sleeps in */
	struct prb_regs regs;		/**< regs.known is 0 if they could not be had */
	enum prb_native_doubt doubt;	/**< of the place of its Python frames among native ones */
	unsigned doubts;		/**< moments at which it was in doubt */
	uint64_t doubt_pc;		/**< the last of them */
	uint64_t pc;			/**< where it ran when it was stopped; 0 if not known */
	uint64_t futex;			/**< it sleeps in futex() on this address; 0 if not */
	bool done;
	bool recorded; /**< a snapshot tells how it was read */
};

/** Everything that making a dump needs; lives as long as that takes. */
struct prb_reader {
	struct prb_target *target;
	const struct prb_dump_options *options;
	struct prb_view *view; /**< the shared one: all that is not read from a stopped thread */
	struct prb_modules *modules;
	struct prb_pythons *pythons; /**< borrowed, like the modules */
	struct prb_native *native;   /**< NULL unless native frames are wanted */
	struct prb_tasks tasks;
	struct prb_wait_context *waits;
	struct prb_dump *dump;
	PRB_VEC(struct prb_reader_thread) threads;
	double patience; /**< with other commands that read it; PRB_STOP_PATIENCE at first */

	/* While threads are decoded from the same instant of the same memory: what is known of
	 * its code objects. See prb_reader_share(). */
	struct prb_mem *shared_mem;
	struct prb_python *shared_py;
	struct prb_decoder *shared;
};

static inline struct prb_dump_thread *prb_reader_out(struct prb_reader *r,
						     const struct prb_reader_thread *thread)
{
	return &r->dump->threads.items[thread->out];
}

/**
 * Reads the raw frames of a thread through @p mem into thread->frames. What is wrong with them
 * goes to frames_error; errors returned are about ourselves or a vanished process.
 */
struct prb_error *prb_reader_walk(struct prb_reader_thread *thread,
				  struct prb_mem *mem) PRB_MUST_CHECK;

/** Decodes what was walked into the dump's thread, replacing what was there. */
struct prb_error *prb_reader_decode(struct prb_reader *r, struct prb_reader_thread *thread,
				    struct prb_mem *mem) PRB_MUST_CHECK;

/** Notes where a stopped thread ran, which takes less than a microsecond. */
struct prb_error *prb_reader_note_pc(struct prb_reader_thread *thread,
				     struct prb_stop *stop) PRB_MUST_CHECK;

/** Fetches the native stack from the stack pointer outwards, as far as its mapping goes. */
struct prb_error *prb_reader_fetch_stack(struct prb_reader *r, struct prb_view *view,
					 const struct prb_regs *regs) PRB_MUST_CHECK;

/**
 * Until the next call, decoding from @p mem looks up each code object only once for all threads;
 * NULL ends that. Must be called anew whenever @p mem becomes another instant.
 */
void prb_reader_share(struct prb_reader *r, struct prb_mem *mem);

/**
 * PRB_ERROR_NO_PROCESS if the state of a thread belongs to another one by now: it may have been
 * freed and used again since it was listed. PRB_ERROR_NOT_FOUND if the thread has put it away.
 */
struct prb_error *prb_reader_check_state(struct prb_reader_thread *thread,
					 struct prb_mem *mem) PRB_MUST_CHECK;

/** Why a thread that is gone has no stack. */
struct prb_error *prb_reader_ended(const struct prb_reader_thread *thread) PRB_MUST_CHECK
	__attribute__((returns_nonnull));

/** The thread has put its state away: from now on it is one without a thread. */
void prb_reader_detach(struct prb_reader *r, struct prb_reader_thread *thread);

/** The thread cannot be read because of @p err, which is taken over: the thread says so. */
struct prb_error *prb_reader_refuse(struct prb_reader *r, struct prb_reader_thread *thread,
				    struct prb_error *err) PRB_MUST_CHECK;

/** True if what was walked is no stack: it was stopped in the middle of a call or return. */
bool prb_reader_is_between(struct prb_reader_thread *thread, int attempt);

/** Waits a little for a thread that was stopped to run on. */
void prb_reader_let_run(struct prb_reader *r, struct prb_reader_thread *thread);

/** Ends what was walked. */
void prb_reader_clear(struct prb_reader_thread *thread);

/** Ends all but the dump. */
void prb_reader_deinit(struct prb_reader *r);

/**
 * Reads all threads that slept when they were noted, through @p view, which must hold nothing from
 * before that. Those that slept on until it was done are `done`, and exact.
 */
struct prb_error *prb_read_sleeping(struct prb_reader *r, struct prb_view *view) PRB_MUST_CHECK;

/** Reads a thread that does not sleep: stopped, or (nonblocking) by agreement of several reads. */
struct prb_error *prb_read_running(struct prb_reader *r,
				   struct prb_reader_thread *thread) PRB_MUST_CHECK;

/**
 * Reads the states that have no thread: any thread might change them, so that all that run are
 * stopped meanwhile.
 */
struct prb_error *prb_read_threadless(struct prb_reader *r) PRB_MUST_CHECK;

/** Reads all threads while every one of the process is stopped. */
struct prb_error *prb_read_frozen(struct prb_reader *r) PRB_MUST_CHECK;

/** Reads all threads of a target that does not move. */
struct prb_error *prb_read_still(struct prb_reader *r) PRB_MUST_CHECK;

/** Reads by agreement of several reads, without stopping. */
struct prb_error *prb_read_nonblocking(struct prb_reader *r,
				       struct prb_reader_thread *thread) PRB_MUST_CHECK;

#endif

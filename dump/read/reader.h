/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Reads the stacks of threads, each as exactly as its state allows.
 *
 * dump/plan.c chooses the threads. Each way of reading is a file: sleeping.c, running.c, frozen.c
 * (also for states without a thread), nonblocking.c, and still.c for targets that do not run.
 * Internal to dump/.
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

/** A thread to be read, and the data read while it was stopped. */
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
	struct prb_regs regs;		/**< regs.known is 0 if they are not available */
	enum prb_native_doubt doubt; /**< about the place of its Python frames among native ones */
	unsigned doubts;	     /**< moments at which the place was in doubt */
	uint64_t doubt_pc;	     /**< pc at the last of them */
	uint64_t pc;		     /**< where it ran when it was stopped; 0 if unknown */
	uint64_t futex;		     /**< it sleeps in futex() on this address; 0 if not */
	bool done;
	bool recorded; /**< a snapshot says how it was read */
};

/** The state of a dump while it is made. */
struct prb_reader {
	struct prb_target *target;
	const struct prb_dump_options *options;
	struct prb_view *view; /**< the shared view: all reads but those of a stopped thread */
	struct prb_modules *modules;
	struct prb_pythons *pythons; /**< borrowed, like the modules */
	struct prb_native *native;   /**< NULL unless native frames are wanted */
	struct prb_tasks tasks;
	struct prb_wait_context *waits;
	struct prb_dump *dump;
	PRB_VEC(struct prb_reader_thread) threads;
	/** Threads with Python that are not in the dump, and so not read; `out` means nothing. */
	PRB_VEC(struct prb_reader_thread) others;
	double patience; /**< towards other commands that read the target; PRB_STOP_PATIENCE at
			    first */

	/*
	 * The decoder of prb_reader_share(), while threads are decoded from one instant of one
	 * memory.
	 */
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
 * Reads the raw frames of a thread through @p mem into thread->frames. Their errors go to
 * frames_error; errors returned are ours (out of memory) or of a vanished process.
 */
struct prb_error *prb_reader_walk(struct prb_reader_thread *thread,
				  struct prb_mem *mem) PRB_MUST_CHECK;

/** Decodes the raw frames into the dump's thread, replacing its frames. */
struct prb_error *prb_reader_decode(struct prb_reader *r, struct prb_reader_thread *thread,
				    struct prb_mem *mem) PRB_MUST_CHECK;

/** Notes where a stopped thread ran, which takes less than a microsecond. */
struct prb_error *prb_reader_note_pc(struct prb_reader_thread *thread,
				     struct prb_stop *stop) PRB_MUST_CHECK;

/** Fetches the native stack from the stack pointer outwards, as far as its mapping goes. */
struct prb_error *prb_reader_fetch_stack(struct prb_reader *r, struct prb_view *view,
					 const struct prb_regs *regs) PRB_MUST_CHECK;

/**
 * Until the next call, each code object in @p mem is decoded once for all threads; NULL ends that.
 * Call it anew whenever @p mem becomes another instant.
 */
void prb_reader_share(struct prb_reader *r, struct prb_mem *mem);

/**
 * PRB_ERROR_NO_PROCESS if the state now belongs to another thread: it may have been freed and
 * reused since it was listed. PRB_ERROR_NOT_FOUND if the thread has detached from it.
 */
struct prb_error *prb_reader_check_state(struct prb_reader_thread *thread,
					 struct prb_mem *mem) PRB_MUST_CHECK;

/** The error for a thread that ended before its stack was read. */
struct prb_error *prb_reader_ended(const struct prb_reader_thread *thread) PRB_MUST_CHECK
	__attribute__((returns_nonnull));

/** Marks the state as one without a thread: the thread has detached from it. */
void prb_reader_detach(struct prb_reader *r, struct prb_reader_thread *thread);

/** Stores @p err, whose ownership is taken, as the thread's error. */
struct prb_error *prb_reader_refuse(struct prb_reader *r, struct prb_reader_thread *thread,
				    struct prb_error *err) PRB_MUST_CHECK;

/**
 * True if the frames are no valid stack: the thread was stopped in the middle of a call or return.
 */
bool prb_reader_is_between(struct prb_reader_thread *thread, int attempt);

/** Waits a little for a thread that was stopped to run on. */
void prb_reader_let_run(struct prb_reader *r, struct prb_reader_thread *thread);

/** Frees the raw frames. */
void prb_reader_clear(struct prb_reader_thread *thread);

/** Frees all but the dump. */
void prb_reader_deinit(struct prb_reader *r);

/**
 * Reads all threads that slept when they were noted, through @p view, which must hold nothing from
 * before that. Threads that slept until the end are exact, and marked `done`.
 */
struct prb_error *prb_read_sleeping(struct prb_reader *r, struct prb_view *view) PRB_MUST_CHECK;

/**
 * Reads a thread that does not sleep: by a stop, or (nonblocking) by agreement of several reads.
 */
struct prb_error *prb_read_running(struct prb_reader *r,
				   struct prb_reader_thread *thread) PRB_MUST_CHECK;

/**
 * Reads the states without a thread. All running threads are stopped meanwhile, since any might
 * change them.
 */
struct prb_error *prb_read_threadless(struct prb_reader *r) PRB_MUST_CHECK;

/** Reads all threads while the whole process is stopped. */
struct prb_error *prb_read_frozen(struct prb_reader *r) PRB_MUST_CHECK;

/** Reads all threads of a target that does not run. */
struct prb_error *prb_read_still(struct prb_reader *r) PRB_MUST_CHECK;

/** Reads by agreement of several reads, without stopping. */
struct prb_error *prb_read_nonblocking(struct prb_reader *r,
				       struct prb_reader_thread *thread) PRB_MUST_CHECK;

#endif

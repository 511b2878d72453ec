/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file A dump as data: what all threads of a target are doing. dump/dump.h makes it.
 *
 * A dump owns all that it points to, and needs no target: renderers (text, JSON, SQL) only read it.
 * Strings are UTF-8, NULL where unknown.
 *
 * Threading: none of its own.
 */
#ifndef PRB_DUMP_MODEL_DUMP_H
#define PRB_DUMP_MODEL_DUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vec.h"
#include "python/python.h"
#include "python/repr/core/repr.h"
#include "target/target.h"
#include "target/task.h"

enum prb_dump_mode {
	PRB_DUMP_DEFAULT,     /**< stop only running threads */
	PRB_DUMP_NONBLOCKING, /**< no ptrace: running threads are read until outer frames agree */
	PRB_DUMP_FREEZE,      /**< all threads stopped at one instant */
};

struct prb_dump_options {
	enum prb_dump_mode mode;
	bool locals, native, source;
	bool native_all; /**< with `native`: the interpreter's own C frames too (own_frames.h) */
	bool source_innermost;	   /**< source of the innermost Python frame of each thread only */
	bool main_only;		   /**< only the main thread */
	bool all_enders;	   /**< look for all processes that can end the waits */
	struct prb_search *search; /**< what was found for other targets, or NULL */
	bool no_waits;		   /**< do not read what threads wait for, including the GIL */
	bool no_modules; /**< no modules of Python frames: saves requests to remote targets */
	bool no_values;	 /**< of variables, only addresses, classes and numbers */
	bool no_command; /**< no exe and argv */
	pid_t tid;	 /**< only this thread; 0: all */
	const struct prb_repr_options *values; /**< limits of variables; NULL: the default ones */
	/**
	 * Frames to read of each thread, from the innermost; 0: all. A dump may have more: native
	 * frames need all Python frames, and the description of a lock needs some.
	 */
	unsigned max_frames;
};

enum prb_frame_kind { PRB_FRAME_PYTHON, PRB_FRAME_NATIVE, PRB_FRAME_INLINE };

struct prb_dump_local {
	const char *name, *type; /**< the dump's; type NULL if unbound */
	char *value;		 /**< repr, or NULL if unbound */
	uint64_t address;	 /**< of the value; 0 if unbound */
	uint64_t type_address;	 /**< 0 if unbound or not readable */
	enum prb_local_kind kind;
	enum prb_number_kind number;
	union { /* by `kind` */
		int64_t integer;
		double real;
	};
};

struct prb_dump_frame {
	enum prb_frame_kind kind;
	const char *func, *qualname, *file; /**< the dump's: frames share them */
	const char *full_func; /**< the dump's; of a C++ function where func is its short form
				    (short_name.h), else NULL */
	const char *module;    /**< the same; Python module name, or path of the ELF */
	int32_t line, end_line, col, end_col; /**< -1: None, as in struct prb_py_location */
	uint64_t ip;			      /**< native pc; for Python frames the bytecode
						   position in bytes */
	uint64_t offset;		      /**< the native pc as an address in the file of its
						   module, as debuggers take it; 0 if unknown */
	uint64_t code; /**< address of a Python frame's code object; 0: not known */
	bool own;      /**< an own C frame of the interpreter, present only with native_all */
	char *source;  /**< text of the line(s) if requested */
	char *error;   /**< why a part of this frame could not be read */
	PRB_VEC(struct prb_dump_local) locals;
};

enum prb_read_kind {
	PRB_READ_IDLE,	   /**< slept the whole time it was read: exact */
	PRB_READ_STOPPED,  /**< stopped for the copy: exact */
	PRB_READ_UNSTABLE, /**< ran while it was read: only the outer frames common to all reads */
};

enum prb_wants {
	PRB_WANTS_NOTHING,
	PRB_WANTS_LOCK,
	PRB_WANTS_SEMAPHORE, /**< that is used as a lock */
	PRB_WANTS_SIGNAL,    /**< another semaphore */
};

struct prb_dump_thread {
	pid_t tid; /**< as in our pid namespace, for a core as it was; 0: no thread uses this state
		    */
	const char *note;    /**< why there is no tid; static; else NULL */
	uint64_t ident;	     /**< Python's id of the thread, pthread_self(); 0 if Python has none */
	char *name;	     /**< from threading; NULL if it has none */
	char *os_name;	     /**< comm */
	int64_t interpreter; /**< id; -1 for threads without an interpreter */
	const char *state;   /**< "running", "idle", "uninterruptible", "stopped", "traced",
				  "zombie", "threadless", "unknown"; static */
	double idle_seconds; /**< how long it has slept; < 0 if unknown, or not read: dump/idle.h */
	char *waits_for; /**< "recvfrom: socket 7 → 10.0.0.3:29500"; NULL if it waits for nothing */
	struct prb_enders enders; /**< who can end that wait; of a live process of this machine */
	enum prb_wants wants;	  /**< the object of Python that somebody has to release */
	bool orphaned;		  /**< the lock says that no thread of the process holds it */
	/** Semaphores of multiprocessing that it surely holds by `with`; only with all_enders. */
	PRB_VEC(struct prb_shared_word) holds;
	char *in_c; /**< the C library function that it runs, or the library's name; else NULL */
	const char *gil;   /**< "holds", "waits", or NULL; static */
	bool gc;	   /**< collecting garbage */
	size_t own_frames; /**< C frames of the interpreter that were left out */
	bool ended;	   /**< it has ended, as `error` says */
	enum prb_read_kind read;
	double pause_us;		       /**< how long we stopped it */
	char *error;			       /**< why there are no (more) frames, or NULL */
	PRB_VEC(struct prb_dump_frame) frames; /**< innermost first */
};

/** A place in the frames of a task where those of the task begin that waits for it. */
struct prb_dump_awaiter {
	size_t at;
	char *name;
	uint64_t id; /**< as of tasks; 0 if it may go on without the one before */
};

/** A task of an event loop, or a greenlet, that waits, or is the current one of its loop. */
struct prb_dump_task {
	const char *kind;  /**< "task" or "greenlet"; static */
	pid_t tid;	   /**< of the loop's or hub's thread; 0 if unknown */
	bool current;	   /**< it runs: its frames are those of the thread */
	uint64_t id;	   /**< its object */
	uint64_t lock;	   /**< the lock or semaphore that it waits for; 0: none, or not known */
	uint64_t holder;   /**< `id` of the task or greenlet that holds the lock, or, of tasks in a
			      circle, of the one that it awaits; 0: not known */
	uint64_t own_pool; /**< its own pool, for which it waits, as prb_greenlet.own_pool; 0 */
	bool limited;	   /**< its wait ends after some time */
	char *name;	   /**< NULL if it has none */
	char *waits_for;   /**< in words; NULL if that is not known */
	char *error;	   /**< why frames are missing, or NULL */
	/** Innermost first; then those of the task that waits for it, and so on. */
	PRB_VEC(struct prb_dump_frame) frames;
	PRB_VEC(struct prb_dump_awaiter) awaiters;
};

/** The cause of death of a core's process. */
struct prb_dump_death {
	int signal;	  /**< 0: killed by none, or unknown */
	pid_t tid;	  /**< thread that got the signal */
	const char *code; /**< name of its si_code, "SEGV_MAPERR"; static; NULL if unknown */
	const char *why;  /**< the same in words, "not mapped"; static; NULL if there is none */
	bool has_address;
	uint64_t address;
	pid_t sender; /**< process that sent it; 0 if none did, or unknown */
	/** Last line of a crash record's uncaught exception; cut; "" if none. */
	char exception[256];
};

struct prb_dump {
	/* target */
	enum prb_target_kind kind; /**< for its name */
	bool partial;		   /**< as prb_target.partial: no thread could be paused */
	pid_t pid;
	pid_t main_tid; /**< of the main thread; 0 if the dump lacks it */
	char *exe;
	PRB_VEC(char *) argv;
	struct prb_dump_death death;
	char *exception;      /**< a crash record's uncaught exception; or NULL */
	char *python_version; /**< NULL if no Python was found (native-only dumps) */
	bool free_threaded, debug_build;
	bool gil_known; /**< the GIL holder could be determined; without a holder the GIL is free */
	enum prb_layout_source layout;
	char *build_id;

	double timestamp; /**< seconds since the epoch */
	double pause_us;  /**< sum over threads */
	unsigned paused_threads;
	size_t own_frames; /**< C frames of the interpreter that were left out (native_all) */
	PRB_VEC(struct prb_dump_thread) threads; /**< main thread first, then by tid */
	PRB_VEC(struct prb_dump_task) tasks;	 /**< by dump/waiting.h; those that wait */
	PRB_VEC(char *) warnings;
	struct prb_pool *pool; /**< holds the strings that frames share */
};

/** Free a frame; all frames of a thread, so that it can be decoded again; a thread. */
void prb_dump_frame_deinit(struct prb_dump_frame *frame);
void prb_dump_frames_clear(struct prb_dump_thread *thread);
void prb_dump_thread_deinit(struct prb_dump_thread *thread);
void prb_dump_task_deinit(struct prb_dump_task *task);
/** The frames that follow are those of a task that waits for it; @p name is copied, or NULL. */
struct prb_error *prb_dump_task_add_awaiter(struct prb_dump_task *task,
					    const char *name) PRB_MUST_CHECK;

/** Appends a warning, whose ownership is taken; NULL: memory has run out. */
struct prb_error *prb_dump_warn(struct prb_dump *dump, char *text) PRB_MUST_CHECK;

/** NULL is no dump. */
void prb_dump_destroy(struct prb_dump *dump);

static inline void prb_dump_guard(struct prb_dump **dump)
{
	prb_dump_destroy(*dump);
}
#define prb_auto_dump __attribute__((cleanup(prb_dump_guard)))

#endif

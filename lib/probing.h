/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file libprobing: SQL over running Python processes, core files and snapshots.
 *
 *     struct probing *p;
 *     struct probing_error *err = probing_create(&p);
 *     if (!err)
 *             err = probing_open(p, "4242", NULL);
 *     if (!err)
 *             err = probing_query(p, "SELECT tid, name, state FROM python.threads", row, NULL);
 *     if (err)
 *             fprintf(stderr, "%s\n", probing_error_message(err));
 *     probing_error_destroy(err);
 *     probing_destroy(p);
 *
 * Errors: functions that can fail return NULL, or an error that the caller destroys.
 *
 * Threads: one thread at a time uses a session and its statements; different sessions are
 * independent of each other. probing_cancel() alone may be called from any thread, and from a
 * signal handler. A target with running threads is stopped by ptrace for microseconds, which the
 * kernel ties to the calling thread: nothing of that is left when a call returns.
 *
 * The library never prints, exits, aborts or installs a signal handler, and has no global state.
 * Texts are UTF-8 unless the target's own bytes are not.
 *
 * Compatibility: symbols carry versions (PROBING_0.1); functions and numbers stay what they are,
 * new ones are added. Structs are opaque.
 */
#ifndef PROBING_H
#define PROBING_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PROBING_API __attribute__((visibility("default")))
#define PROBING_MUST_CHECK __attribute__((warn_unused_result))

struct probing;
struct probing_statement;
struct probing_error;

/** The kind of failure, for programs; the message is for people. */
enum probing_code {
	PROBING_FAILED = 1,	 /**< none of the below: the message says it all */
	PROBING_USAGE = 2,	 /**< the SQL, target or setting makes no sense */
	PROBING_UNSUPPORTED = 3, /**< a target, version or machine that cannot be read */
	PROBING_PERMISSION = 4,	 /**< the kernel does not let us; the hint names the rule */
	PROBING_TIMEOUT = 5,	 /**< the setting probing.query.timeout passed */
	PROBING_NO_PROCESS = 6,	 /**< the process does not exist (any more) */
	PROBING_CANCELLED = 7,	 /**< probing_cancel() was called */
	PROBING_NO_MEMORY = 8,	 /**< out of memory in the calling process */
};

PROBING_API enum probing_code probing_error_code(const struct probing_error *error);
/** One line, never NULL; lives as long as the error. */
PROBING_API const char *probing_error_message(const struct probing_error *error);
/** The next step for the user, or NULL; may have several lines. */
PROBING_API const char *probing_error_hint(const struct probing_error *error);
/** NULL is allowed. */
PROBING_API void probing_error_destroy(struct probing_error *error);

/** The library's version, "1.0.0". */
PROBING_API const char *probing_version(void);

/** Makes a session without targets. */
PROBING_API struct probing_error *probing_create(struct probing **ret) PROBING_MUST_CHECK;
/** Ends it with all its statements and targets; NULL is allowed. */
PROBING_API void probing_destroy(struct probing *p);

/**
 * Adds a target: a pid, "/regex/" or part of a command line, a core file or a snapshot. @p exe
 * names the executable of a core file if its own path for it is wrong, else NULL. With more than
 * one target every table begins with the columns _target, _pid and _rank. All targets are added
 * before the first statement is prepared.
 */
PROBING_API struct probing_error *probing_open(struct probing *p, const char *target,
					       const char *exe) PROBING_MUST_CHECK;

/** Registers of a thread, by their DWARF numbers on its machine. */
struct probing_registers {
	uint64_t pc;
	uint64_t known; /**< bit N: value[N] is there */
	uint64_t value[64];
};

/** Takes a piece of text, valid during the call. Not 0: no more is wanted. */
typedef int probing_text_handler(void *context, const char *text, size_t length);

/**
 * What a debugger can tell of the process, or core, that it holds. Its functions are called only
 * on the thread that calls the library. What they answer need not be true: nothing is believed
 * unchecked.
 */
struct probing_debugger {
	size_t size;	  /**< of this struct, as the caller knows it: later ones have more */
	void *context;	  /**< given to each function */
	int64_t pid;	  /**< 0 if unknown */
	uint32_t machine; /**< ELF e_machine: 62 is x86_64, 183 aarch64 */
	uint32_t held;	  /**< not 0: all threads are stopped until the session ends */
	/**
	 * Reads @p length bytes, or fewer if the rest cannot be read; gives how many. NULL: the
	 * process is on this machine and its memory and /proc may be read directly, also while the
	 * debugger traces it.
	 */
	size_t (*read)(void *context, uint64_t address, void *buffer, size_t length);
	/**
	 * Puts what /proc/PID/@p name would hold there, where a link leads, or the numbers in a
	 * folder, one a line. 0: it is known. "maps" must be, and "task", the tids; others make
	 * more tables tell more. Not used without read().
	 */
	int (*fact)(void *context, const char *name, probing_text_handler *put, void *to);
	/** Registers of the thread @p tid. 0: they are known. NULL: none are. */
	int (*registers)(void *context, int64_t tid, struct probing_registers *ret);
};

/**
 * Adds the process or core that a debugger holds, as a target called @p name. The context must
 * outlive the session.
 */
PROBING_API struct probing_error *probing_open_debugger(struct probing *p, const char *name,
							const struct probing_debugger *debugger)
	PROBING_MUST_CHECK;

/**
 * Sets a setting by its name; information_schema.df_settings lists them. For example
 * "probing.query.timeout" to "5" seconds, or "probing.query.mode" to "nonblocking". A setting of
 * the process is changed there, if the session has one target; SET in SQL is refused such a change.
 */
PROBING_API struct probing_error *probing_set(struct probing *p, const char *key,
					      const char *value) PROBING_MUST_CHECK;

/** Told what is no failure but should be known: what was left out, and why. One line each. */
typedef void probing_warning_handler(void *context, const char *text);
PROBING_API void probing_on_warning(struct probing *p, probing_warning_handler *handler,
				    void *context);

/**
 * What the caller's own extensions say about targets: texts of objects, words for waits, rows of
 * tables. They must not use the session that calls them. What they give is passed to @p put; 0:
 * they have nothing, and the usual text is shown. Any of them may be NULL.
 */
struct probing_extension {
	size_t size; /**< of this struct, as the caller knows it */
	void *context;
	/** Not 0: object() has texts for the class, "package.module.Class". Must be fast, since
	 * threads may be stopped. */
	int (*has_class)(void *context, const char *name);
	int (*object)(void *context, uint64_t address, uint64_t type, probing_text_handler *put,
		      void *to);
	/** Words for what the thread waits for in this frame; asked from the innermost one on. */
	int (*wait)(void *context, int64_t tid, unsigned depth, const char *file, const char *func,
		    const char *qualname, probing_text_handler *put, void *to);
	/** Rows as JSON, [["column", …], [cell, …], …]; -1: it failed, and the text says why. */
	int (*table)(void *context, const char *name, probing_text_handler *put, void *to);
};

/** From now on, and for all targets of the session; NULL ends it. */
PROBING_API void probing_set_extension(struct probing *p,
				       const struct probing_extension *extension);

/** Called for each row; the statement gives the values. Not 0 ends the query. */
typedef int probing_row_handler(void *context, struct probing_statement *row);

/** Runs all statements of @p sql, which only reads the targets. @p handler may be NULL. */
PROBING_API struct probing_error *probing_query(struct probing *p, const char *sql,
						probing_row_handler *handler,
						void *context) PROBING_MUST_CHECK;

/**
 * Prepares the first statement of @p sql; *rest (which may be NULL) is where the next one begins.
 * *ret is NULL if there is none. The statement belongs to the session and ends with it at last.
 */
PROBING_API struct probing_error *probing_prepare(struct probing *p, const char *sql,
						  const char **rest, struct probing_statement **ret)
	PROBING_MUST_CHECK;

/**
 * Goes to the next row; *row is 0 after the last one. All rows of one run tell of the same
 * instant of the target. After an error or the last row, the next call begins a new run.
 */
PROBING_API struct probing_error *probing_next(struct probing_statement *s,
					       int *row) PROBING_MUST_CHECK;
/** Ends the run; the next call of probing_next() begins a new one. */
PROBING_API void probing_reset(struct probing_statement *s);
PROBING_API void probing_finish(struct probing_statement *s);

enum probing_kind {
	PROBING_NULL = 0,
	PROBING_INTEGER = 1,
	PROBING_REAL = 2,
	PROBING_TEXT = 3,
	PROBING_BLOB = 4,
};

/* Of the result; columns count from 0. Names live as long as the statement. */
PROBING_API unsigned probing_columns(const struct probing_statement *s);
PROBING_API const char *probing_column_name(const struct probing_statement *s, unsigned column);
/** Of the table's column that is shown as it is: what it means, its unit ("s"); NULL else. */
PROBING_API const char *probing_column_description(const struct probing_statement *s,
						   unsigned column);
PROBING_API const char *probing_column_unit(const struct probing_statement *s, unsigned column);

/* Of the row. A value of another kind is converted as SQLite does; NULL gives 0 and NULL. */
PROBING_API enum probing_kind probing_value_kind(struct probing_statement *s, unsigned column);
PROBING_API int64_t probing_value_integer(struct probing_statement *s, unsigned column);
PROBING_API double probing_value_real(struct probing_statement *s, unsigned column);
/** Terminated by a NUL that *length (which may be NULL) does not count; lives until the next row.
 */
PROBING_API const char *probing_value_text(struct probing_statement *s, unsigned column,
					   size_t *length);

/** The use of text; bits. */
enum probing_look {
	PROBING_TERMINAL = 1, /**< characters that a terminal obeys are escaped */
	PROBING_COLOUR = 2,   /**< colour marks what matters */
};

/**
 * Runs all statements of @p sql and gives their results as text, like `probing query`. @p format is
 * one of probing_format(); @p look has bits of enum probing_look; a table is made to fit @p width
 * columns, 0: as many as it needs. What a statement gave before it failed is given too.
 */
PROBING_API struct probing_error *probing_print(struct probing *p, const char *sql,
						const char *format, unsigned look, unsigned width,
						probing_text_handler *handler,
						void *context) PROBING_MUST_CHECK;

/** Name of format number @p index ("table", "json", "csv", …), from 0; NULL behind the last. */
PROBING_API const char *probing_format(unsigned index);

/** Not 0: the statement that runs shall end, as by probing_cancel(). */
typedef int probing_poll_handler(void *context);
/** Has @p handler asked some times a second while a statement runs; NULL: no more. */
PROBING_API void probing_on_poll(struct probing *p, probing_poll_handler *handler, void *context);

/** Told the name of an object's type, its repr(), and where it lies; valid during the call. */
typedef void probing_object_handler(void *context, const char *type, const char *value,
				    uint64_t address);

/**
 * Finds what @p expression means in the Python frame @p depth (0: the innermost) of thread @p tid,
 * and tells it. Names, attributes, constant indexes, len(), type(), vars() and dir() are understood
 * ("self.rows[0]['key']"); no code is run. The address is 0 for what is no object of the target: a
 * length, a number in C. Of a process that runs, its threads may be stopped for microseconds.
 */
PROBING_API struct probing_error *probing_look_up(struct probing *p, int64_t tid, unsigned depth,
						  const char *expression,
						  probing_object_handler *handler,
						  void *context) PROBING_MUST_CHECK;

/**
 * Tells what the Python object at @p address is; an error if there is none. At most @p limit items
 * of a container and characters of a text are shown, 0: 20 and 200, and no more bytes in all than
 * the setting probing.text.max has. Only in what does not run: a core file, a snapshot, a process
 * that a debugger holds.
 */
PROBING_API struct probing_error *probing_describe(struct probing *p, uint64_t address,
						   unsigned limit, probing_object_handler *handler,
						   void *context) PROBING_MUST_CHECK;

/** The parts to read of an object. */
enum probing_object_part {
	PROBING_OBJECT_SELF = 0,      /**< itself: is it still there, and of what type */
	PROBING_OBJECT_ATTRIBUTE = 1, /**< its attribute `name` */
	PROBING_OBJECT_KEY = 2,	      /**< its item of the text `name` */
	PROBING_OBJECT_INDEX = 3,     /**< its item of the number `index` */
	PROBING_OBJECT_LENGTH = 4,    /**< len() */
	PROBING_OBJECT_TYPE = 5,      /**< its class */
	PROBING_OBJECT_REPR = 6,      /**< repr() as text; `index`: items and attributes, 0: 100 */
	PROBING_OBJECT_TEXT = 7,      /**< all of a str, at most what probing.text.max has */
	PROBING_OBJECT_SIZE = 8,      /**< `integer`: its bytes, with those that it alone owns */
};

/** The kinds of answers. */
enum probing_object_kind {
	PROBING_OBJECT_OTHER = 0,
	PROBING_OBJECT_NONE = 1,
	PROBING_OBJECT_BOOL = 2,  /**< `integer` */
	PROBING_OBJECT_INT = 3,	  /**< `integer` */
	PROBING_OBJECT_LARGE = 4, /**< an int that does not fit there; its repr() has it */
	PROBING_OBJECT_FLOAT = 5, /**< `real` */
	PROBING_OBJECT_STR = 6,
	PROBING_OBJECT_WORDS = 7, /**< no object of the target but `text` alone */
};

/** Why nothing was found; set together with the error. */
enum probing_object_outcome {
	PROBING_OBJECT_FOUND = 0,
	PROBING_OBJECT_MISSING = 1,    /**< it has no such part */
	PROBING_OBJECT_NEEDS_CODE = 2, /**< only code of the target could tell */
	PROBING_OBJECT_GONE = 3,       /**< freed, or torn: no such object lies there */
};

struct probing_object {
	size_t size;	  /**< of this struct, as the caller knows it: later ones have more */
	uint64_t address; /**< 0: it is no object of the target */
	uint64_t type;	  /**< address of its class */
	int32_t kind;	  /**< enum probing_object_kind */
	int32_t outcome;  /**< enum probing_object_outcome */
	int64_t integer;
	double real;
	const char *text; /**< lives until the next call for the session; "" if there is none */
	size_t length;	  /**< its bytes */
};

/**
 * Reads @p part of the Python object at @p address in the session's target, which must be the only
 * one, without running code. @p type is the class that it had when it was found, 0: unknown; an
 * object of another class there now is another one (PROBING_OBJECT_GONE). @p name or @p index say
 * which part. Of a process that runs, what is read is at most ten milliseconds old, and is not of
 * one instant with what was read before; nothing is stopped.
 */
PROBING_API struct probing_error *probing_object(struct probing *p, uint64_t address, uint64_t type,
						 enum probing_object_part part, const char *name,
						 int64_t index,
						 struct probing_object *ret) PROBING_MUST_CHECK;

/** Takes an attribute (@p name, and @p text of what is no object) or an item (@p key, 0 unless of a
 * dict); valid during the call. Not 0: no more are wanted. */
typedef int probing_part_handler(void *context, const char *name, const char *text, uint64_t key,
				 uint64_t value);

/**
 * Tells the attributes (@p items 0) or the items of an object, as probing_object() reads it. An
 * object that was being changed is PROBING_OBJECT_GONE in *outcome, behind what was told.
 */
PROBING_API struct probing_error *probing_object_each(struct probing *p, uint64_t address,
						      uint64_t type, int items,
						      probing_part_handler *handler, void *context,
						      int32_t *outcome) PROBING_MUST_CHECK;

/** Parts of a dump besides Python frames; bits. */
enum probing_part {
	PROBING_LOCALS = 1,	/**< variables of each frame */
	PROBING_NATIVE = 2,	/**< C frames in between */
	PROBING_SOURCE = 4,	/**< text of the lines */
	PROBING_NATIVE_ALL = 8, /**< with PROBING_NATIVE: the interpreter's own C frames too */
};

/**
 * Gives the stack of thread @p tid, 0: of all, as one JSON object, which docs/json.md describes.
 * @p what has bits of enum probing_part.
 */
PROBING_API struct probing_error *probing_dump(struct probing *p, int64_t tid, unsigned what,
					       probing_text_handler *handler,
					       void *context) PROBING_MUST_CHECK;

/**
 * Saves all that the tables would read of the session's target, which must be the only one, to the
 * file @p path, for probing_open() on another machine. With @p redact not 0, values of variables
 * are left out.
 */
PROBING_API struct probing_error *probing_snapshot(struct probing *p, const char *path,
						   int redact) PROBING_MUST_CHECK;

/** A thread that a debugger has stopped, and whether it may be made to call functions. */
struct probing_thread {
	size_t size; /**< of this struct, as the library knows it: later ones have more */
	int64_t tid;
	const char *why; /**< NULL: it may; else why not: "in malloc() or free()" */
	int in_call;	 /**< not 0: it waits in a system call */
	/** If it may not: addresses to one of which it comes soon when it runs, the likeliest
	 * first. There it has left what it was in. Empty if that is unknown. */
	const uint64_t *ways_out;
	size_t way_count;
};

/** Takes one thread, valid during the call. Not 0: no more are wanted. */
typedef int probing_thread_handler(void *context, const struct probing_thread *thread);

/**
 * Judges each thread of the process that a debugger holds, all of it stopped: the session's only
 * target, by probing_open_debugger(). A thread may be made to call functions of the C library, such
 * as dlopen(), if it holds no lock of that library. Registers 58 of x86_64 (fs_base) and 36 of
 * aarch64 (tpidr) are used too; without them only the first thread may. Nothing is changed.
 */
PROBING_API struct probing_error *probing_hijackable(struct probing *p,
						     probing_thread_handler *handler,
						     void *context) PROBING_MUST_CHECK;

/**
 * Told a breakpoint: where it is, the number of bytes that its instruction has, which number of
 * that length belongs there, and in which function, NULL if that has no name.
 */
typedef void probing_breakpoint_handler(void *context, uint64_t address, size_t length,
					uint64_t original, const char *function);

/**
 * Finds breakpoints that a debugger, which was killed, has left in the code of the dynamic loader
 * of the session's only target. The next library that is loaded ends such a process. Breakpoints of
 * a debugger that still traces it are found too, unless its own function reads the memory.
 */
PROBING_API struct probing_error *probing_left_breakpoints(struct probing *p,
							   probing_breakpoint_handler *handler,
							   void *context) PROBING_MUST_CHECK;

/** The output streams of code; the repr() of its last expression is its value. */
enum probing_stream {
	PROBING_STDOUT = 1,
	PROBING_STDERR = 2,
	PROBING_VALUE = 3,
	PROBING_TRACEBACK = 4,
};

/** Takes a piece of what code gives, as it comes. Not 0: the code is interrupted. */
typedef int probing_output_handler(void *context, enum probing_stream stream, const char *text,
				   size_t length);

/** Where and how code is run; bits. */
enum probing_eval_flag {
	PROBING_ON_MAIN = 1,  /**< on the main thread, as soon as that executes Python code */
	PROBING_NO_AGENT = 2, /**< loads no agent: an error if the process has none */
};

/** How code is run; all 0 is the default. */
struct probing_eval_options {
	size_t size;	  /**< of this struct, as the caller knows it: later ones have more */
	uint32_t flags;	  /**< bits of enum probing_eval_flag */
	double timeout;	  /**< seconds; 0: no limit, but it has to begin within 5 s */
	const char *name; /**< what tracebacks call the code; NULL: "<probing>" */
};

/**
 * Runs Python code in the session's target, which must be the only one and a live process that may
 * be changed: the agent is loaded if it is not there. It runs in the namespace of __main__ as
 * `probing eval` does; @p options and @p handler may be NULL. An exception is an error whose
 * message is the last line of the traceback. probing_cancel() raises KeyboardInterrupt in the code,
 * and what comes after a third one is not waited for.
 */
PROBING_API struct probing_error *probing_eval(struct probing *p, const char *code,
					       const struct probing_eval_options *options,
					       probing_output_handler *handler,
					       void *context) PROBING_MUST_CHECK;

/** How a process is paused; all 0 is the default. */
struct probing_pause_options {
	size_t size;   /**< of this struct, as the caller knows it: later ones have more */
	double within; /**< seconds in which the pause has to begin; 0: two */
	double max;    /**< seconds after which it ends by itself; 0: ten minutes */
};

/**
 * Pauses the session's target, which must be the only one and a live process, as `probing debug
 * --pause` does: no thread of it runs Python code until probing_resume(), the end of the session or
 * of the calling process, or the time limit. Until then it can be read, probing_eval() runs code in
 * it and probing_step() steps it. While code is evaluated, other threads may run, unlike in the
 * pause of that command; a warning says so. A process that the caller forks while the target is
 * paused keeps it paused too.
 */
PROBING_API struct probing_error *probing_pause(
	struct probing *p, const struct probing_pause_options *options) PROBING_MUST_CHECK;

/**
 * Ends the session's pause. *seconds, which may be NULL, is how long the process was paused in all.
 * PROBING_TIMEOUT if the time limit had ended it before.
 */
PROBING_API struct probing_error *probing_resume(struct probing *p,
						 double *seconds) PROBING_MUST_CHECK;

/** How far a thread runs in a step. */
enum probing_stride {
	PROBING_STEP_INTO = 0, /**< to its next line, also in a called function */
	PROBING_STEP_OVER = 1, /**< to the next line of this function, or of its caller */
	PROBING_STEP_OUT = 2,  /**< to the next line of the caller */
	PROBING_STEP_TIME = 3, /**< all threads run for a time */
};

/**
 * Steps the session's target, which this session or anyone else has paused: thread @p tid (0: the
 * main thread) runs to a line, and all others run meanwhile; then it is paused again. @p seconds:
 * the limit, 0: five, after which the process is paused where it is: PROBING_TIMEOUT. With
 * PROBING_STEP_TIME, @p tid is 0 and @p seconds how long it runs.
 */
PROBING_API struct probing_error *probing_step(struct probing *p, int64_t tid,
					       enum probing_stride stride,
					       double seconds) PROBING_MUST_CHECK;

/** Ends the statement that runs, or the next one that does, as soon as it looks. */
PROBING_API void probing_cancel(struct probing *p);

#ifdef __cplusplus
}
#endif

#endif

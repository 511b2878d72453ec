/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file A CPython runtime in a target: finding it, and walking interpreters, threads and frames.
 *
 * Nothing read is trusted: a runtime counts as found when its interpreters, thread states and
 * types point back at each other as they must; chains have cycle guards and lengths have caps.
 *
 * Threading: one thread at a time. All reads of a walk go through the `mem` that is passed, a
 * cached view of one instant (view.h); the runtime itself keeps only what cannot change.
 */
#ifndef PRB_PYTHON_PYTHON_H
#define PRB_PYTHON_PYTHON_H

#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"
#include "python/layout/layout.h"
#include "dwarf/elf/module.h"
#include "target/mem/mem.h"
#include "target/mem/view.h"

/** Knowledge about the hashes of a process's dicts. */
enum prb_hash_trust {
	PRB_HASH_UNTRIED,
	PRB_HASH_ASSUMED, /**< what its version does, with its secret; no key has shown it yet */
	PRB_HASH_PROVEN,
	PRB_HASH_UNKNOWN,
};

/** Types whose addresses are in the interpreter's file. */
enum prb_builtin {
	PRB_BUILTIN_TYPE,
	PRB_BUILTIN_DICT,
	PRB_BUILTIN_STR,
	PRB_BUILTIN_CODE,
	PRB_BUILTIN_INT,
	PRB_BUILTIN_BOOL,
	PRB_BUILTIN_FLOAT,
	PRB_BUILTIN_TUPLE,
	PRB_BUILTIN_LIST,
	PRB_BUILTIN_BYTES,
	PRB_BUILTIN_FUNCTION,
	PRB_BUILTIN_OBJECT,
	PRB_BUILTIN_COUNT, /**< and: none of them */
};

struct prb_python {
	struct prb_target *target; /**< borrowed */
	struct prb_module *module; /**< borrowed: the module that holds the interpreter */
	struct prb_layout layout;
	uint64_t runtime; /**< address of _PyRuntime; 0 before 3.7 */
	char version[32]; /**< "3.12.1", "3.13.0rc2+" as the target says it */

	uint64_t code_type;   /**< PyCode_Type, learnt at the first code object; 0 until then */
	bool code_by_members; /**< its name cannot be read: recognised by its members */
	bool builtins_known;
	uint64_t builtins[PRB_BUILTIN_COUNT]; /**< see prb_python_is_builtin() */
	uint32_t damaged; /**< a bit for each of them that was found overwritten */

	enum prb_hash_trust hash_trust;
	bool hash_tried;	 /**< with a key that is known to be there */
	uint64_t hash_secret[2]; /**< chosen when the process began */

	/* Before 3.7 there is no _PyRuntime but single variables; 0 if not found. */
	uint64_t interp_head, tstate_current, gc_collecting;
	uint64_t gil_cond, gil_mutex; /**< what threads that wait for the GIL sleep on */
	/** The condition variable and mutex of threads that dropped it on request. Unknown for a
	 * recorded process. */
	uint64_t switch_cond, switch_mutex;
	uint64_t gc_generation0; /**< the variable that points to the youngest generation */
	uint64_t gc_enabled, gc_stats;
	uint64_t auto_key; /**< the key under which threads keep their states */
};

struct prb_pythons {
	PRB_VEC(struct prb_python *) list;
};

/**
 * Finds the CPython runtimes of a target; more than one if several libpythons are loaded and
 * initialised. PRB_ERROR_UNSUPPORTED if the process is no Python we can read (none, 2.7, PyPy, not
 * yet initialised, a version we do not know), with what it is and what to do.
 *
 * Reads through @p view, in new epochs: it remembers the pages, and prb_python_threads() reads
 * mostly the same ones.
 */
struct prb_error *prb_pythons_find(struct prb_modules *modules, struct prb_view *view,
				   struct prb_pythons *ret) PRB_MUST_CHECK;
void prb_pythons_deinit(struct prb_pythons *pythons);

/**
 * The modules of @p target, and the runtimes in them. Unless @p all are needed, those in which no
 * Python is expected may be left out, where reading their headers takes long. Also after an error,
 * the caller ends what is set of both.
 */
struct prb_error *prb_pythons_open(struct prb_target *target, struct prb_view *view, bool all,
				   struct prb_modules **ret,
				   struct prb_pythons *ret_pythons) PRB_MUST_CHECK;

/** A process in a list of processes. */
struct prb_python_identity {
	char version[32]; /**< "3.12.1"; "3.9" where finding out more takes reading objects */
	bool free_threaded;
};

/** The cheap part of prb_pythons_find(): some 0.2 ms. PRB_ERROR_NOT_FOUND if it is unknown. */
struct prb_error *prb_python_identify(struct prb_modules *modules,
				      struct prb_python_identity *ret) PRB_MUST_CHECK;

struct prb_interp {
	uint64_t address;
	int64_t id;
	bool gc_collecting;
	uint64_t gil;	     /**< its GIL structure; 0 before 3.7 */
	uint64_t gil_holder; /**< thread state that holds this interpreter's GIL; 0 if none */
	bool main;	     /**< the first interpreter of the runtime */
	bool finalizing;     /**< it is being ended; 3.8+, false before */
	int8_t own_gil;	     /**< 1: its GIL is its own, 0: shared; 3.12+, -1 before */
	int64_t thread_ids;  /**< thread states made in it so far; 3.7+, -1 before */
};

struct prb_py_thread {
	uint64_t address; /**< of the thread state */
	uint64_t interp;
	int64_t interp_id;
	uint64_t gil;	  /**< the GIL it competes for; 0 before 3.7 */
	uint64_t pthread; /**< pthread_self() of the thread */
	pid_t tid;	  /**< native_thread_id as the target sees it (its pid namespace); 0 before
			       3.11 */
	bool holds_gil;
	bool attached;	      /**< in a build without a GIL: some thread uses it to run Python */
	bool interp_collects; /**< its interpreter is collecting garbage */
	bool gc;	      /**< the same, and it holds the GIL: most likely it does so itself */
};

struct prb_py_threads {
	PRB_VEC(struct prb_interp) interps;
	PRB_VEC(struct prb_py_thread) list;
};

/** The thread state that holds the GIL at @p gil, as prb_py_thread names it; 0 if none does. */
struct prb_error *prb_python_gil_holder(struct prb_python *py, struct prb_mem *mem, uint64_t gil,
					uint64_t *ret) PRB_MUST_CHECK;

/** Reads all interpreters and thread states. */
struct prb_error *prb_python_threads(struct prb_python *py, struct prb_mem *mem,
				     struct prb_py_threads *ret) PRB_MUST_CHECK;

/**
 * Seconds after which a waiter requests the GIL of @p interp, as sys.setswitchinterval() set them;
 * 0 if that is not known: before 3.7, in a build without a GIL, or of memory that cannot be read.
 */
double prb_python_switch_interval(const struct prb_python *py, struct prb_mem *mem,
				  const struct prb_interp *interp);
/**
 * How often the GIL of the first interpreter has gone from one thread to another; false if that is
 * not known: as above.
 */
bool prb_python_gil_switches(struct prb_python *py, struct prb_mem *mem, uint64_t *ret);
void prb_py_threads_deinit(struct prb_py_threads *threads);

/** One Python frame as it lies in memory; only addresses and numbers. */
struct prb_py_frame {
	uint64_t address;  /**< of the PyFrameObject or _PyInterpreterFrame */
	uint64_t code;	   /**< code object; 0 if the frame has none (shim) */
	uint64_t position; /**< raw f_lasti, prev_instr or instr_ptr */
	int8_t owner;	   /**< -1 if the version has none */
	bool entry;	   /**< first frame run by its C eval loop: native frames split here */
	bool shim;	   /**< belongs to the C eval loop: the way back into C */
	bool hidden;	   /**< not a frame that Python itself would show: a shim, or incomplete */
};

struct prb_py_frames {
	PRB_VEC(struct prb_py_frame) list; /**< innermost first */
};

/** Walks the frames of a thread state; *ret holds what was read also when an error ends the walk.
 */
struct prb_error *prb_python_frames(struct prb_python *py, struct prb_mem *mem, uint64_t tstate,
				    struct prb_py_frames *ret) PRB_MUST_CHECK;
void prb_py_frames_deinit(struct prb_py_frames *frames);

/**
 * Judges a chain that was copied at one instant of a thread that was not stopped, of whose frames
 * address, code, position and owner are set; a code of 0 is unknown. Sets the other members.
 * @p outside: for 3.11 and 3.12, the frame of the eval loop outside of the innermost one, or 0.
 * PRB_ERROR_BAD_DATA if the chain cannot be what the thread executed.
 */
struct prb_error *prb_python_frames_judge(struct prb_python *py, struct prb_mem *mem,
					  uint64_t outside,
					  struct prb_py_frames *frames) PRB_MUST_CHECK;

/** As above, from the frame at @p address on, such as a suspended greenlet's. */
struct prb_error *prb_python_frames_from(struct prb_python *py, struct prb_mem *mem,
					 uint64_t address,
					 struct prb_py_frames *ret) PRB_MUST_CHECK;

/** Reads the one frame at @p address, such as a generator's, which is in no thread's chain. */
struct prb_error *prb_python_frame_at(struct prb_python *py, struct prb_mem *mem, uint64_t address,
				      struct prb_py_frame *ret) PRB_MUST_CHECK;

/** True if @p type is known to be that type by its address alone. False says nothing: only where
 * reads are requests to another machine, and a file of the interpreter is here, is it looked up.
 */
bool prb_python_is_builtin(struct prb_python *py, uint64_t type, enum prb_builtin which);

/** A type of the interpreter as it has to be. */
struct prb_builtin_type {
	const char *symbol, *name;
	uint64_t flag; /**< the bit of tp_flags that it and its subclasses have; 0: none */
};
extern const struct prb_builtin_type prb_builtin_types[PRB_BUILTIN_COUNT];

/** Looks up the addresses of these types in the interpreter's file, once. */
void prb_python_know_builtins(struct prb_python *py);

/** Which of these types lies at that address, by the interpreter's file: also of a damaged type,
 * whose members say something else. */
enum prb_builtin prb_python_builtin_at(struct prb_python *py, uint64_t type);

/** Notes that a type was found damaged, for prb_python_describe_damage(). */
static inline void prb_python_note_damage(struct prb_python *py, enum prb_builtin which)
{
	py->damaged |= UINT32_C(1) << which;
}

/** Appends which members of the damaged type are wrong; nothing if none is any more. */
void prb_python_describe_damage(struct prb_python *py, struct prb_mem *mem, enum prb_builtin which,
				struct prb_str *ret);

/** The facts of a code object and of a position in it. Strings are the caller's. */
struct prb_py_code {
	char *name, *qualname, *file; /**< UTF-8; qualname NULL where the version has none */
	int32_t first_line;
	uint32_t flags;	    /**< co_flags */
	uint32_t arg_count; /**< positional, keyword-only and starred arguments together */
};

struct prb_error *prb_python_code(struct prb_python *py, struct prb_mem *mem, uint64_t code,
				  struct prb_py_code *ret) PRB_MUST_CHECK;
void prb_py_code_deinit(struct prb_py_code *code);

/** Address of the dict of globals of a frame. */
struct prb_error *prb_python_globals(struct prb_python *py, struct prb_mem *mem,
				     const struct prb_py_frame *frame,
				     uint64_t *ret) PRB_MUST_CHECK;

/** The module's __name__ in a dict of globals; the caller frees. PRB_ERROR_NOT_FOUND. */
struct prb_error *prb_python_module_name(struct prb_python *py, struct prb_mem *mem,
					 uint64_t globals, char **ret) PRB_MUST_CHECK;

/**
 * The qualified name of a frame's function where its code has none (before 3.11), found through
 * the globals and the class of the first argument. *ret is NULL if it cannot be known (functions
 * inside of functions); the caller frees.
 */
struct prb_error *prb_python_qualname(struct prb_python *py, struct prb_mem *mem,
				      const struct prb_py_frame *frame,
				      const struct prb_py_code *code, char **ret) PRB_MUST_CHECK;

/** Source position; a field that the interpreter itself answers None for is -1. */
struct prb_py_location {
	int32_t line, end_line, col, end_col; /**< lines from 1; columns from 0, in UTF-8 bytes */
};

/** Position of a frame in bytes from the start of its bytecode; negative before the first. */
struct prb_error *prb_python_position(struct prb_python *py, struct prb_mem *mem,
				      const struct prb_py_frame *frame,
				      int64_t *ret) PRB_MUST_CHECK;

struct prb_error *prb_python_location(struct prb_python *py, struct prb_mem *mem,
				      const struct prb_py_frame *frame,
				      struct prb_py_location *ret) PRB_MUST_CHECK;

enum prb_local_kind {
	PRB_LOCAL_ARGUMENT,
	PRB_LOCAL_LOCAL,
	PRB_LOCAL_CELL, /**< a local that an inner function uses */
	PRB_LOCAL_FREE, /**< belongs to an outer function */
	PRB_LOCAL_NAME, /**< in the namespace of a module or class body */
};

struct prb_py_local {
	const char *name;
	enum prb_local_kind kind;
	uint64_t object; /**< 0: unbound */
};

/** A variable of a code object: it has a slot in each of the code's frames. */
struct prb_py_variable {
	char *name;
	enum prb_local_kind kind;
	bool cell;   /**< its value may lie in a cell */
	bool hidden; /**< internal to Python while it is unbound */
};

struct prb_py_variables {
	PRB_VEC(struct prb_py_variable) list; /**< in the order of the slots */
	bool namespace; /**< others are in a dict: this is the body of a module or class */
};

struct prb_py_locals {
	PRB_VEC(struct prb_py_local) list;
	PRB_VEC(char *) names;		   /**< of a namespace: the list's */
	struct prb_py_variables variables; /**< the list's names, if only the list owns them */
};

/** The variables of frames of the code object at @p address, whose facts are @p code. */
struct prb_error *prb_python_variables(struct prb_python *py, struct prb_mem *mem, uint64_t address,
				       const struct prb_py_code *code,
				       struct prb_py_variables *ret) PRB_MUST_CHECK;
void prb_py_variables_deinit(struct prb_py_variables *variables);

/** The values of a frame, whose code has @p variables: their names are borrowed. */
struct prb_error *prb_python_values(struct prb_python *py, struct prb_mem *mem,
				    const struct prb_py_frame *frame,
				    const struct prb_py_variables *variables,
				    struct prb_py_locals *ret) PRB_MUST_CHECK;

/** Both, for a frame whose code is not met again. */
struct prb_error *prb_python_locals(struct prb_python *py, struct prb_mem *mem,
				    const struct prb_py_frame *frame,
				    struct prb_py_locals *ret) PRB_MUST_CHECK;
void prb_py_locals_deinit(struct prb_py_locals *locals);

/**
 * What the slot of a frame's first variable holds, of a method its self: an object; 0 if it has no
 * value; a cell if an inner function uses it.
 */
struct prb_error *prb_python_first_value(struct prb_python *py, struct prb_mem *mem,
					 const struct prb_py_frame *frame,
					 uint64_t *ret) PRB_MUST_CHECK;

/** Names of threads as `threading` knows them: pthread → name. */
struct prb_py_thread_name {
	uint64_t pthread;
	char *name;
};

struct prb_py_thread_names {
	PRB_VEC(struct prb_py_thread_name) list;
};

/** True if the name of a thread is wanted. */
typedef bool prb_py_name_wanted(void *context, uint64_t pthread);

/**
 * Reads threading._active of one interpreter; an empty list if threading was never imported. Only
 * names that are wanted are read.
 */
struct prb_error *prb_python_thread_names(struct prb_python *py, struct prb_view *view,
					  uint64_t interp, prb_py_name_wanted *wanted,
					  void *context,
					  struct prb_py_thread_names *ret) PRB_MUST_CHECK;
void prb_py_thread_names_deinit(struct prb_py_thread_names *names);

#endif

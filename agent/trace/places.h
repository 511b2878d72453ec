/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Finds the interpreter fields that tracing needs before 3.12 and that no function sets.
 *
 * Nothing is assumed of its build: each place is found by an object that is known to be there, or
 * by a function of ours that the interpreter was just given, and all are looked at again before
 * they are used. They are only read; thread states are changed by functions of the interpreter. The
 * exception is how deep the calling thread's recursion is, which it lowers for calls of ours.
 *
 * Threading: the caller holds the GIL.
 */
#ifndef PRB_AGENT_TRACE_PLACES_H
#define PRB_AGENT_TRACE_PLACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/inside/python_table.h"

enum prba_traces { PRBA_TRACES, PRBA_PROFILES };

/** In words. */
struct prba_places {
	size_t functions[2]; /**< ours in a thread state, by enum prba_traces */
	size_t file;	     /**< name of it in code */
	bool is_inner;	     /**< what runs is not the frame object, but what it points to (3.11) */
};

/** Why it cannot be done in this build, whatever runs; NULL: it may be. */
const char *prba_places_refusal(void);

/** From the frame of the caller, in Python. Why it cannot be done, NULL: all was found. */
const char *prba_places_find(struct prba_places *ret, object *frame, prba_tracer *traced,
			     prba_tracer *profiled);

/** Finds the trace function of that kind in a thread state; false if it cannot be found. */
bool prba_places_find_function(struct prba_places *ret, enum prba_traces which, prba_tracer *ours);

/** The thread state that is in the frame, which is one of an object; NULL: none is. */
void *prba_places_state_of(const object *frame);

/**
 * Hooks for audits would run in the middle of what we do to the threads of others, which may end
 * meanwhile.
 */
bool prba_places_is_audited(void);

/** The frame of a frame object, its caller (NULL: none) and its code. Borrowed. */
const void *prba_places_frame(const struct prba_places *places, const object *frame);
const void *prba_places_caller(const struct prba_places *places, const void *inner);
object *prba_places_code(const void *inner);
/** Name of the file of code. Borrowed. */
object *prba_places_file(const struct prba_places *places, const object *code);

/** The first thread state of the main interpreter; PyThreadState_Next() gives the others. */
void *prba_places_first(void);
/**
 * Python's and the kernel's ids (0: unknown) of the main thread: the first one of the main
 * interpreter, wherever it is, also outside of Python code. False if it cannot be found.
 */
bool prba_places_main_thread(uintptr_t *ident, uintptr_t *native);
/**
 * The contextvars.Context that a thread is in: a new reference; NULL: none was found. The calling
 * thread is in the context @p ours.
 */
object *prba_places_context(uintptr_t thread, const object *ours);
/**
 * [ident, frame, …] of the main interpreter's threads. sys._current_frames() would also make frames
 * of interpreters with a GIL of their own (3.12), which run meanwhile and free them with their own
 * allocator. NULL, without an exception: they cannot be found.
 */
object *prba_places_frames(void);
/** Code that a thread is in, NULL: in none. */
object *prba_places_top(const struct prba_places *places, const void *state);
/** True if that thread's function is not ours. */
bool prba_places_is_foreign(const struct prba_places *places, const void *state,
			    enum prba_traces which, prba_tracer *ours);
/** How deep the calls of a thread are, and whether it has raised RecursionError and is still near
 * the limit. Only up to 3.9, and only of the calling thread. */
struct prba_recursion {
	int32_t depth;
	uint8_t overflowed;
};
struct prba_recursion prba_places_recursion(void);
/** Whether that is where it is elsewhere, as far as the caller's frame shows it. */
bool prba_places_has_recursion(void);
/**
 * Up to 3.9 a RecursionError of ours, which the program does not see, would have the interpreter
 * end the process if the program goes a little deeper. So calls of ours count from further up, in
 * the calling thread alone, and what the program has reached is put back.
 */
struct prba_room {
	bool made;
	struct prba_recursion before;
};
struct prba_room prba_places_make_room(void);
void prba_places_leave_room(const struct prba_room *room);
/** Why nothing is done in a build whose structs are elsewhere. */
const char *prba_places_strange(void);

/**
 * Sets our function in a thread that has none, or removes it; another function stays. True if
 * something changed.
 */
bool prba_places_set(const struct prba_places *places, void *state, enum prba_traces which,
		     prba_tracer *ours, bool on);

#endif

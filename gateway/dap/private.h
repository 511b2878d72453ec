/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Shared by the files of gateway/dap/. Internal to gateway/dap/. */
#ifndef PRB_GATEWAY_DAP_PRIVATE_H
#define PRB_GATEWAY_DAP_PRIVATE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/str.h"
#include "base/vec.h"
#include "control/drive/drive.h"
#include "dump/inspect.h"
#include "dump/model/dump.h"
#include "gateway/dap/dap.h"
#include "target/target.h"

/** A frame that the client knows by its place in the list, counted from 1. */
struct prb_dap_frame {
	pid_t tid;
	unsigned depth; /**< among the Python frames of the thread */
	char *module;	/**< or NULL */
};

enum prb_dap_kind { PRB_DAP_LOCALS, PRB_DAP_GLOBALS, PRB_DAP_OBJECT };

/** What has variables, in the same way. */
struct prb_dap_scope {
	enum prb_dap_kind kind;
	int frame;	  /**< place in the list; of an object that of its expression, or -1 */
	uint64_t address; /**< of an object */
	char *expression; /**< that gives the object in its frame; NULL: none is known */
	enum prb_dap_keys {
		PRB_DAP_NO_KEYS,
		PRB_DAP_BY_NUMBER, /**< its items: of a list or tuple */
		PRB_DAP_BY_KEY,	   /**< of a dict */
	} keys;
};

/** A breakpoint of the client's. */
struct prb_dap_break {
	enum prb_dap_breaks { PRB_DAP_LINES, PRB_DAP_FUNCTIONS, PRB_DAP_EXCEPTIONS } of;
	char *path; /**< of lines; else NULL */
	char *log;  /**< what a logpoint says, as the client has it; NULL: it stops */
	unsigned number;
	unsigned asked; /**< line that the client asked for; 0: none */
	unsigned line;	/**< as the client was told; 0: none */
	bool verified;	/**< the same: it is in code that is there */
	bool uncaught;	/**< of exceptions: only of those that nobody handles */
};

/** How long code may take that the user has not typed at a prompt. */
enum { PRB_DAP_SECONDS = 10 };

enum prb_dap_state {
	PRB_DAP_STOPPED, /**< or there is no process */
	PRB_DAP_RUNNING,
	PRB_DAP_STEPPING,
};

struct prb_dap_objects;

struct prb_dap {
	const struct prb_dap_options *options;
	struct prb_target *target; /**< NULL: not attached */
	struct prb_drive *drive;   /**< NULL: it is only read, or has ended */
	struct prb_str input;
	size_t looked_at; /**< bytes of the input in which no wish to disconnect was found */
	json_t *pending;  /**< a request that waits until the process is paused; or NULL */
	int64_t seq;
	bool over, configured, stops_first, wants_pause;
	bool step_logged; /**< a step has come to a logpoint, and goes on */
	bool evaluates;	  /**< code of the client */
	bool binds;	  /**< code of the client may have bound names */
	double note_at;	  /**< when to tell the user that the code still runs; 0: never */
	enum prb_dap_state state;
	uint32_t stride;
	pid_t step_tid;
	size_t step_depth; /**< frames of the thread when the step began */

	/* of this stop */
	struct prb_dump *dump;
	char *exception;	/**< "CLASS: TEXT" or a signal that stopped the process, or NULL */
	pid_t exception_tid;	/**< thread that it is of */
	const char *break_mode; /**< static: as the protocol calls it */
	PRB_VEC(struct prb_dap_frame) frames;
	int frames_before; /**< of earlier stops, whose ids are not used again */
	PRB_VEC(struct prb_dap_scope) scopes;
	struct prb_dap_objects *objects;

	json_t *mappings;	 /**< folders of the client and of the process; or NULL */
	PRB_VEC(char *) sources; /**< paths that the client cannot open itself */
	PRB_VEC(struct prb_dap_break) breaks;
};

/** A request that is answered: its arguments are an object, or NULL. */
struct prb_dap_request {
	const json_t *message, *arguments;
	const char *command;
};

/** Answers it: @p body is taken over, NULL is none. */
struct prb_error *prb_dap_answer(struct prb_dap *d, const struct prb_dap_request *r,
				 json_t *body) PRB_MUST_CHECK;
/** Answers that it failed, and why; ends @p why. */
struct prb_error *prb_dap_refuse(struct prb_dap *d, const struct prb_dap_request *r,
				 struct prb_error *why) PRB_MUST_CHECK;
/** Tells the client something; @p body is taken over, NULL is none. */
struct prb_error *prb_dap_event(struct prb_dap *d, const char *name, json_t *body) PRB_MUST_CHECK;

/** A text of the target, whatever its bytes are; null for NULL. */
json_t *prb_dap_string(const char *text);
json_t *prb_dap_bytes(const char *text, size_t length);

/** Numbers and texts of the arguments; what is not there is 0, or NULL. */
json_int_t prb_dap_number(const struct prb_dap_request *r, const char *name);
const char *prb_dap_word(const struct prb_dap_request *r, const char *name);

/** The path that the process has for a file of the client's, and the other way round; the caller
 * frees it, NULL is out of memory. */
char *prb_dap_path_here(const struct prb_dap *d, const char *path);
char *prb_dap_path_of_client(const struct prb_dap *d, const char *path);

/** The dump of this stop, without variables. */
struct prb_error *prb_dap_look(struct prb_dap *d) PRB_MUST_CHECK;
/** What was read of the stop is no more valid; handles of the client's neither. */
void prb_dap_forget(struct prb_dap *d);
/** Code has run: objects are read anew, while handles stay. */
void prb_dap_forget_objects(struct prb_dap *d);

/** Handles what has arrived; while the process runs, up to a request that it has to be paused for.
 * An error ends the conversation. */
struct prb_error *prb_dap_take_all(struct prb_dap *d, bool running) PRB_MUST_CHECK;
/** Reads what there is, without waiting. */
void prb_dap_receive(struct prb_dap *d);

/** Whether it has left, or wants to; or has sent more than is read while code runs. */
bool prb_dap_leaves(const struct prb_dap *d);

/** The process goes on as the client asked, until it stops or a request has to be answered. */
struct prb_error *prb_dap_go_on(struct prb_dap *d) PRB_MUST_CHECK;
/** Frames of Python of the thread that steps. */
struct prb_error *prb_dap_depth(struct prb_dap *d, size_t *ret) PRB_MUST_CHECK;
/** Shows what a thread's evaluated code printed, or a logpoint said. */
struct prb_error *prb_dap_output(struct prb_dap *d, const char *category,
				 const struct prb_str *text) PRB_MUST_CHECK;
/** A thread has come to the breakpoint: NULL, or the logpoint that it is. */
const struct prb_dap_break *prb_dap_logpoint(const struct prb_dap *d, unsigned number);
/** Shows what the logpoint says in the thread's frame. */
struct prb_error *prb_dap_log(struct prb_dap *d, const struct prb_dap_break *log,
			      pid_t tid) PRB_MUST_CHECK;
/** Tells the client of breakpoints whose code was loaded since. */
struct prb_error *prb_dap_tell_breaks(struct prb_dap *d) PRB_MUST_CHECK;
/** Removes the breakpoints; the process runs on. */
void prb_dap_detach(struct prb_dap *d);

/* One function for each request: it answers, or returns an error that is the answer. */
#define PRB_DAP_REQUEST(name)                                                                \
	struct prb_error *prb_dap_##name(struct prb_dap *d, const struct prb_dap_request *r) \
		PRB_MUST_CHECK
PRB_DAP_REQUEST(threads);
PRB_DAP_REQUEST(stack);
PRB_DAP_REQUEST(scopes);
PRB_DAP_REQUEST(source);
PRB_DAP_REQUEST(exception);
PRB_DAP_REQUEST(variables);
PRB_DAP_REQUEST(evaluate);
PRB_DAP_REQUEST(set_variable);
PRB_DAP_REQUEST(set_expression);
PRB_DAP_REQUEST(completions);
PRB_DAP_REQUEST(attach);
PRB_DAP_REQUEST(configured);
PRB_DAP_REQUEST(set_lines);
PRB_DAP_REQUEST(set_functions);
PRB_DAP_REQUEST(set_exceptions);
PRB_DAP_REQUEST(continue);
PRB_DAP_REQUEST(next_line);
PRB_DAP_REQUEST(step_in);
PRB_DAP_REQUEST(step_out);
PRB_DAP_REQUEST(pause);

/**
 * The frame that a request names by `frameId`: its index, or -1 without one. PRB_ERROR_USAGE if it
 * is none of this stop.
 */
struct prb_error *prb_dap_frame_index(struct prb_dap *d, const struct prb_dap_request *r,
				      int *ret) PRB_MUST_CHECK;

/** The value of an expression, read from outside; @p frame NULL: in the global scope. */
struct prb_error *prb_dap_inspect(struct prb_dap *d, const struct prb_dap_frame *frame,
				  const char *expression, struct prb_inspected *ret) PRB_MUST_CHECK;
/** A reference to what an object holds; 0 without an address, or if it is simple. @p expression
 * gives it in the frame with that index; NULL: none does. */
int prb_dap_refer_to(struct prb_dap *d, int frame, uint64_t address, const char *type,
		     const char *expression);
/** Whether a name may be written as one: keywords are none, though attributes may be called so. */
bool prb_dap_is_identifier(const char *name);
/** The expression for what the client calls @p name of a scope; NULL: none is known. The caller
 * frees it. */
char *prb_dap_expression_of(const struct prb_dap_scope *scope, const char *name);

#endif

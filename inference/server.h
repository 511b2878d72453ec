/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The processes of an inference server as data: which part each is, its requests, its queues,
 * its KV cache, and what its main thread does; read from outside by a description (engine.h).
 *
 * Nothing of a live process is stopped but threads that run, for the time of one copy; none with
 * PRB_DUMP_NONBLOCKING. Objects are read while the process changes them: what does not fit together
 * is left out, so counts of a busy server may be off by the requests that came or went meanwhile.
 *
 * Threading: one thread at a time. The result borrows the engines.
 */
#ifndef PRB_INFERENCE_SERVER_H
#define PRB_INFERENCE_SERVER_H

#include <sys/types.h>

#include "base/str.h"
#include "dump/model/dump.h"
#include "inference/engine.h"
#include "target/target.h"

enum {
	PRB_SERVER_REQUESTS_MAX = 100000, /**< of one process */
	PRB_SERVER_PROCESSES_MAX = 64,
};

struct prb_server_request {
	uint64_t address;
	char *id, *state, *lora; /**< NULL: not known, or none; as the process has them */
	const char *queue;	 /**< the description's; NULL: in none of them */
	int64_t slot;		 /**< its place in the queue */
	double arrival;		 /**< seconds since the epoch; NaN: not known */
	double last_token;	 /**< the same; NaN: not known, or none yet */
	/** -1: not known. */
	int64_t prompt_tokens, output_tokens, computed_tokens, blocks;
	int64_t priority; /**< INT64_MIN: not known */
};

struct prb_server_queue {
	const char *name;
	char *class, *path; /**< what was read */
	int64_t count;	    /**< -1: could not be read */
};

struct prb_server_process {
	pid_t pid, ppid;
	double started;			    /**< seconds since the epoch; 0: not known */
	const struct prb_engine *engine;    /**< NULL: of no known server */
	const struct prb_engine_part *part; /**< NULL: none of the described ones */
	char *version;			    /**< of the engine; NULL: not known */
	char *name;			    /**< "engine core", "worker TP1" */
	struct prb_target *target;	    /**< owned by the server's list; else borrowed */
	struct prb_dump *dump;		    /**< NULL: `unreadable` says why */
	char *unreadable;
	enum prb_engine_activity activity;
	char *missing; /**< what the description names and the process has not; NULL: nothing */

	PRB_VEC(struct prb_server_queue) queues;
	PRB_VEC(struct prb_server_request) requests;
	bool cut;		    /**< it has more requests */
	char *request_class;	    /**< of the requests read; NULL: there was none */
	int64_t limit;		    /**< of running requests; -1: not known */
	int64_t paused;		    /**< not 0: by somebody; -1: not known */
	int64_t preempts;	    /**< 0: no running request makes room; -1: not known */
	int64_t peers;		    /**< that it can send requests to; -1: not known */
	PRB_VEC(pid_t) workers;	    /**< processes it has started, by its own record */
	int64_t kv[PRB_KV_COLUMNS]; /**< -1: not known */
	char *graph_sizes;	    /**< NULL: not known */
	int64_t eager;		    /**< 1, 0; -1: not known */

	double epoch; /**< when its monotonic clock was 0; NaN: not known */

	bool brief; /**< only its name is wanted: no objects are searched */

	const struct prb_engines *reading; /**< internal to process.c */
};

/**
 * Reads the process of @p target; @p ret starts as {}, and is to be ended also after an error. A
 * process of no server has no engine. PRB_ERROR_NOMEM and errors of reading the threads.
 */
struct prb_error *prb_server_process_read(const struct prb_engines *engines,
					  struct prb_target *target, enum prb_dump_mode mode,
					  struct prb_server_process *ret) PRB_MUST_CHECK;
/** Appends "vLLM 0.33 worker TP1", cheaply; nothing if it is no process of a server. */
struct prb_error *prb_server_process_name(const struct prb_engines *engines,
					  struct prb_target *target,
					  struct prb_str *ret) PRB_MUST_CHECK;
/** Ends all but the target. */
void prb_server_process_deinit(struct prb_server_process *process);

/** A descendant that does not belong to the server, such as a compiler; or a zombie. */
struct prb_server_helper {
	pid_t pid, ppid;
	bool ended; /**< a zombie */
	double started;
	char *comm;
};

struct prb_server {
	PRB_VEC(struct prb_server_process *) processes; /**< by pid, the topmost first */
	PRB_VEC(struct prb_server_helper) helpers;
	bool cut; /**< it has more processes than are read */
};

/**
 * True if the process has imported the module of an engine. Only memory is an error. @p pythons:
 * its runtimes, or NULL.
 */
struct prb_error *prb_server_is_one(const struct prb_engines *engines, struct prb_target *target,
				    const struct prb_pythons *pythons, bool *ret) PRB_MUST_CHECK;

/** The same; *ret: the engine, NULL if it is of no version that is described. */
struct prb_error *prb_server_engine_of(const struct prb_engines *engines, struct prb_target *target,
				       const struct prb_pythons *pythons,
				       const struct prb_engine **ret, bool *is_one) PRB_MUST_CHECK;

/**
 * Reads all processes of the server that @p pid is part of: its topmost ancestor that is a process
 * of a server, or the program that its description names, and what descends from that. No
 * processes, if it is part of none.
 */
struct prb_error *prb_server_read(const struct prb_engines *engines, pid_t pid,
				  enum prb_dump_mode mode, struct prb_server *ret) PRB_MUST_CHECK;
void prb_server_deinit(struct prb_server *server);
#define prb_auto_server __attribute__((cleanup(prb_server_deinit)))

/** Its process @p pid; NULL: there is none. */
const struct prb_server_process *prb_server_find(const struct prb_server *server, pid_t pid);

/** True if the frame is of the function of this qualified name, or of this end of one. */
bool prb_server_is_place(const struct prb_dump_frame *frame, const char *name);

/** Its number in a queue of that name; -1 if there is none, or it could not be read. */
int64_t prb_server_queued(const struct prb_server_process *process, const char *queue);

/** The next process of that role behind @p after (NULL: the first); NULL if there is none. */
const struct prb_server_process *prb_server_next(const struct prb_server *server,
						 enum prb_engine_role role,
						 const struct prb_server_process *after);
/** True if @p worker works for @p scheduler: its child, or the server has one scheduler only. */
bool prb_server_serves(const struct prb_server *server, const struct prb_server_process *worker,
		       const struct prb_server_process *scheduler);

#endif

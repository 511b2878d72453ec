/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Descriptions of inference servers: which classes their processes have, and in which
 * attributes requests, queues and the KV cache lie.
 *
 * A description is a text file, inference/engines/NAME.engine. Those of the program are built in. A
 * user's own lie in the folder that the variable PROBING_ENGINES names; a file with the name of one
 * of ours replaces it. Such a file is read only if nobody but its user and root can change it, and
 * the whole file is refused for one bad line.
 *
 * One line is one fact; "#" begins a comment:
 *
 *     engine NAME                   what it is called
 *     module NAME                   its processes have imported this module
 *     from VERSION, before VERSION  for which versions, by the __version__ of its package
 *     hosts others                  if a process has another server's module, too, it is that one's
 *     below PROGRAM                 its processes are children of that one, which is none of them
 *     part ROLE NAME                a kind of process, which the lines below are about; the roles
 *                                   are frontend, scheduler, worker, detokenizer
 *     title TEXT                    how a title begins that the process gives itself
 *     root NAME CLASS               an object of that class, or a derived one: in a variable of a
 *                                   frame, else the first among all objects
 *     root NAME sys.modules['M'].X  an object by an expression
 *     queue NAME PATH [item PATH]   a container of requests: list, tuple, dict, set, deque; the
 *                                   second path leads from an item to its request; or a number
 *     all PATH                      a container of all requests, also those in no queue
 *     class CLASS                   of a request; items of other classes are counted, and no rows
 *     request COLUMN PATH           a column of inference.requests; the path begins at the request
 *     kv COLUMN PATH                a column of inference.kv; A + B, A * B: numbers, from the left
 *     unit WORD                     what the numbers of kv count; without it blocks
 *     limit PATH                    how many requests may run
 *     rank LETTERS PATH             a part of the process's name: "TP" and a number
 *     workers PATH item PATH        the processes that it has started, and their pids
 *     idle|reply|load|step FUNCTION what the main thread does while the function of this qualified
 *                                   name is on its stack: it waits for work, it waits for its
 *                                   workers, it loads or compiles, it is in a step; the first line
 *                                   that fits counts. OUTER > INNER needs both functions
 *     loop FUNCTION                 a thread with this function runs the program's event loop
 *     reader FUNCTION               a thread with this function takes requests from the sockets
 *     transfer|grammar|client STATE a state, or queue, of requests that wait for something else
 *     done STATE                    how a state begins of requests that have ended
 *     paused PATH                   a number: 0 unless somebody has paused it
 *     preempts PATH                 a number: 0 if no running request makes room for a waiting one
 *     peers PATH                    a number: how many processes it can send requests to
 *     graph sizes|eager PATH        CUDA graphs
 *
 * Threading: none of its own. Errors: PRB_ERROR_USAGE names file and line.
 */
#ifndef PRB_INFERENCE_ENGINE_H
#define PRB_INFERENCE_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"

enum prb_engine_role {
	PRB_ENGINE_FRONTEND,	/**< takes requests from clients */
	PRB_ENGINE_SCHEDULER,	/**< decides which requests run */
	PRB_ENGINE_WORKER,	/**< runs the model */
	PRB_ENGINE_DETOKENIZER, /**< makes text of tokens, between scheduler and frontend */
};

/** "frontend", …; static. */
const char *prb_engine_role_name(enum prb_engine_role role);

enum prb_engine_step_kind {
	PRB_ENGINE_ATTRIBUTE,
	PRB_ENGINE_INDEX,
	PRB_ENGINE_KEY,	   /**< of a dict, a text */
	PRB_ENGINE_ID_KEY, /**< the same: the id of the request */
	PRB_ENGINE_LENGTH,
};

struct prb_engine_step {
	enum prb_engine_step_kind kind;
	char *name;
	int64_t index;
};

/** One way to a value. The first name may be that of a root. */
struct prb_engine_route {
	char joined; /**< '+', '*': with the value of the route before it; 0: another way */
	PRB_VEC(struct prb_engine_step) steps;
};

struct prb_engine_path {
	char *text;    /**< NULL: the description does not have it */
	bool optional; /**< not every version has it */
	PRB_VEC(struct prb_engine_route) routes;
};

/** What a description can say of a request. */
enum prb_engine_request {
	PRB_REQUEST_ID,
	PRB_REQUEST_STATE,
	PRB_REQUEST_ARRIVAL, /**< seconds since the epoch, or of the monotonic clock */
	PRB_REQUEST_PROMPT_TOKENS,
	PRB_REQUEST_OUTPUT_TOKENS,
	PRB_REQUEST_COMPUTED_TOKENS,
	PRB_REQUEST_PRIORITY,
	PRB_REQUEST_LORA,
	PRB_REQUEST_BLOCKS,
	PRB_REQUEST_LAST_TOKEN, /**< the same */
	PRB_REQUEST_COLUMNS,
};

enum prb_engine_kv {
	PRB_KV_TOTAL,
	PRB_KV_FREE,
	PRB_KV_CACHED,
	PRB_KV_BLOCK_SIZE,
	PRB_KV_COLUMNS,
};

enum prb_engine_graph { PRB_GRAPH_SIZES, PRB_GRAPH_EAGER, PRB_GRAPH_COLUMNS };

enum prb_engine_activity {
	PRB_ENGINE_UNKNOWN,
	PRB_ENGINE_IDLE,  /**< waits for work */
	PRB_ENGINE_REPLY, /**< waits for its workers */
	PRB_ENGINE_LOAD,  /**< loads or compiles, which may take minutes */
	PRB_ENGINE_STEP,  /**< in a step */
};

/** "waits for work", "waits for its workers", "loads or compiles", "in a step"; NULL: unknown.
 * Static. */
const char *prb_engine_activity_text(enum prb_engine_activity activity);

/** A function on the stack of a process's main thread, or (inner) one that it has called. */
struct prb_engine_place {
	enum prb_engine_activity activity;
	char *outer, *inner; /**< qualified names; inner may be NULL */
};

struct prb_engine_root {
	char *name;
	char *class; /**< "module.Class"; NULL: `path` leads to it */
	char *path;  /**< an expression of modules */
};

struct prb_engine_queue {
	char *name;
	struct prb_engine_path path;
	struct prb_engine_path item; /**< from an item to its request */
};

/** What a name of a process's place is made of: "TP", and the path to its number. */
struct prb_engine_rank {
	char *letters;
	struct prb_engine_path path;
};

/** A kind of process of the server. */
struct prb_engine_part {
	enum prb_engine_role role;
	char *name;
	PRB_VEC(char *) titles; /**< how a title that it gives itself begins */
	PRB_VEC(struct prb_engine_root) roots;
	PRB_VEC(struct prb_engine_rank) ranks;
	PRB_VEC(struct prb_engine_place) places;
	PRB_VEC(struct prb_engine_queue) queues;
	PRB_VEC(char *) transfer_states, grammar_states, client_states, done_states;
	PRB_VEC(char *) loops;	    /**< functions that run an event loop */
	PRB_VEC(char *) readers;    /**< functions that take requests from sockets */
	char *class;		    /**< of its requests; NULL: any */
	char *unit;		    /**< of the KV cache; NULL: blocks */
	struct prb_engine_path all; /**< all requests; or those of the queues */
	struct prb_engine_path limit, paused, preempts, peers;
	/** Its own record of its workers, and from one of them to the number of its process. */
	struct prb_engine_queue workers;
	struct prb_engine_path request[PRB_REQUEST_COLUMNS];
	struct prb_engine_path kv[PRB_KV_COLUMNS];
	struct prb_engine_path graph[PRB_GRAPH_COLUMNS];
};

struct prb_engine {
	char *file;	     /**< for messages */
	char *name;	     /**< "vLLM" */
	char *module;	     /**< that its processes have imported */
	char *from, *before; /**< versions; NULL: any */
	char *hosts;	     /**< not NULL: other descriptions go first */
	char *below;	     /**< the program that starts its processes; NULL: one of them */
	PRB_VEC(struct prb_engine_part) parts;
};

struct prb_engines {
	PRB_VEC(struct prb_engine *) list;
};

enum {
	PRB_ENGINE_FILE_MAX = 64 << 10, /**< bytes of a description */
	PRB_ENGINE_LINES_MAX = 1000,
	PRB_ENGINE_ROOTS_MAX = 16,
	PRB_ENGINE_PARTS_MAX = 32,
};

/** Reads a description. @p file: its name, for messages. */
struct prb_error *prb_engine_parse(const char *file, const char *text, size_t length,
				   struct prb_engine **ret) PRB_MUST_CHECK;
void prb_engine_destroy(struct prb_engine *engine);

/** All descriptions: the user's own first. @p folder: of these, or NULL. */
struct prb_error *prb_engines_load(const char *folder, struct prb_engines *ret) PRB_MUST_CHECK;
void prb_engines_deinit(struct prb_engines *engines);
#define prb_auto_engines __attribute__((cleanup(prb_engines_deinit)))

/** True if the version @p text ("0.10.2rc1") is in the engine's range; also where it is not known.
 */
bool prb_engine_takes(const struct prb_engine *engine, const char *version);

/** How many bytes of a version its first two numbers take. */
size_t prb_engine_release(const char *version);

/** The part whose process has a title that begins so; or NULL. *rank: what follows in it. */
const struct prb_engine_part *prb_engine_by_title(const struct prb_engine *engine,
						  const char *title, const char **ret_rest);

/** The same by the name of a process that the kernel keeps, which has 15 bytes at most. */
const struct prb_engine_part *prb_engine_by_comm(const struct prb_engine *engine, const char *comm);

#endif

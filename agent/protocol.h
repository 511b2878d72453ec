/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The protocol between the agent and its clients, over the agent's unix socket.
 *
 * Both sides send frames: a header of eight bytes and a payload. All numbers are little-endian.
 * Each side begins with a hello, which lists the versions it speaks; the agent chooses. Then the
 * client asks and the agent answers with frames that carry the number of the request.
 * docs/protocol.md has the connection and the rules of both sides.
 *
 * This header is all that the reading side knows of the agent. It allocates nothing and calls
 * nothing; every length is checked against the bytes received.
 */
#ifndef PRB_AGENT_PROTOCOL_H
#define PRB_AGENT_PROTOCOL_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
	PRB_WIRE_VERSION = 1,
	PRB_WIRE_HEADER_SIZE = 8,
	PRB_WIRE_MAX_REQUEST = 4 << 20, /**< payload of a client's frame */
	PRB_WIRE_MAX_REPLY = 64 << 10,	/**< payload of an agent's frame */
	PRB_WIRE_MAX_NAME = 4096,	/**< name of evaluated code */
	PRB_WIRE_HELLO_SIZE = 8,	/**< payload of a client's hello */
	PRB_WIRE_HELLO_REPLY_SIZE = 16, /**< fixed part of the agent's */
	PRB_WIRE_EVAL_SIZE = 16,	/**< fixed part of a request to evaluate */
	PRB_WIRE_PAUSE_SIZE = 12,	/**< a request to pause */
	PRB_WIRE_STEP_LINELESS_SIZE = 16,
	PRB_WIRE_STEP_SIZE = 20,
	PRB_WIRE_FROZEN_SIZE = 28,
	PRB_WIRE_FREEZE_SIZE = 16, /**< of an earlier agent only the first 4 */
	PRB_WIRE_RESUMED_SIZE = 8,
};

/** Begins the payload of both hellos. */
#define PRB_WIRE_MAGIC "PRBA"

/** Why the library is not to be unmapped: what probing_agent_stop("unload") gives then. */
enum prb_agent_stays {
	PRB_AGENT_STAYS_BUSY = -1,    /**< another thread starts or stops the agent right now */
	PRB_AGENT_STAYS_CALL = -2,    /**< the main thread has still a call of ours to make */
	PRB_AGENT_STAYS_OBJECTS = -3, /**< Python objects whose code is in the library are in use */
	PRB_AGENT_STAYS_ENDING =
		-4, /**< the interpreter is shutting down, and may hold such objects */
	PRB_AGENT_STAYS_LIBC =
		-5, /**< this C library does not forget what is to be called at fork() */
	PRB_AGENT_STAYS_ALLOCATOR = -6, /**< other allocators, or interpreters, may call ours */
};

enum prb_wire_type {
	/* the client's */
	PRB_WIRE_HELLO = 1,
	PRB_WIRE_EVAL = 2,	/**< struct prb_wire_eval: its numbers, the name, the code */
	PRB_WIRE_INTERRUPT = 3, /**< KeyboardInterrupt in the code of this connection */
	PRB_WIRE_STATUS = 4,
	PRB_WIRE_STOP = 5,
	/** As eval, without a name: names that may end the line. Needs PRB_WIRE_CAN_INTERACT. */
	PRB_WIRE_COMPLETE = 6,
	/** Flags (4), milliseconds until it must begin (4), and until it ends, counted from its
	 * beginning (4). As the next three it needs PRB_WIRE_CAN_PAUSE. */
	PRB_WIRE_PAUSE = 7,
	PRB_WIRE_RESUME = 8, /**< the pause of whichever client */
	/** struct prb_wire_step. It is answered by done when all is paused again: outcome 0, the
	 * thread reached a line, and with a text (number, pthread_self(), problem) a breakpoint; 2,
	 * the pause has ended meanwhile; 5, no line was reached in time, or the step was
	 * interrupted; 6 with a text, it is impossible; 6 without, nothing is paused; 7, a step of
	 * another client is not over. */
	PRB_WIRE_STEP = 9,
	PRB_WIRE_FROZEN = 10, /**< answers freeze: struct prb_wire_frozen */
	PRB_WIRE_CONFIG = 11, /**< a text: "" or "KEY=VALUE"; needs PRB_WIRE_CAN_CONFIG */
	/** Handle crashes: lines "key=value" of hold (milliseconds), size (bytes), count, folder
	 * (docs/crashes.md). Needs PRB_WIRE_CAN_CRASH. */
	PRB_WIRE_CRASH = 12,

	/* the agent's */
	/** PRB_WIRE_MAGIC, the version (2), 0 (2), pid (4), capabilities (4), the versions of the
	 * agent and of Python, each ended by a NUL. */
	PRB_WIRE_HELLO_REPLY = 64,
	PRB_WIRE_STDOUT = 65, /**< what the evaluating thread printed */
	PRB_WIRE_STDERR = 66,
	/** A part of the repr of the last expression; if interactive, of all that have a value. */
	PRB_WIRE_VALUE = 67,
	PRB_WIRE_TRACEBACK = 68, /**< a part of the text of an exception */
	PRB_WIRE_DONE = 69,	 /**< ends an evaluation or completion: outcome, then a text */
	/** Lines "key=value". socket_note: whose folder was in the way of the usual place.
	 * crash_folder: crashes are handled; crash_hooks=1: the main thread is prepared for it.
	 * paused_us: -1 without a pause, else paused_by is the client's pid (0: not visible here)
	 * and paused_since seconds since the epoch. */
	PRB_WIRE_STATUS_REPLY = 70,
	PRB_WIRE_STOPPED = 71, /**< sent when all code has ended */
	PRB_WIRE_ERROR = 72,   /**< a text: why a request was not accepted */
	/** A part of the lines that answer PRB_WIRE_COMPLETE: at most 1,000 names of at most 200
	 * characters, each for the end of the line that has letters, digits, _ and dots. */
	PRB_WIRE_CANDIDATES = 73,
	PRB_WIRE_PAUSED = 74,	    /**< all Python threads are paused */
	PRB_WIRE_RESUMED = 75,	    /**< they run again: microseconds paused, 64 bits */
	PRB_WIRE_FREEZE = 76,	    /**< stop threads: struct prb_wire_freeze */
	PRB_WIRE_THAW = 77,	    /**< let them run */
	PRB_WIRE_CONFIG_REPLY = 78, /**< a text: lines of KEY=VALUE, all of them */
	PRB_WIRE_CRASH_REPLY = 79,  /**< the folder that crash records go to */
};

/** The agent's abilities: bits of its hello. */
enum {
	PRB_WIRE_CAN_EVAL = 1,	   /**< there is a Python that code can be evaluated in */
	PRB_WIRE_CAN_INTERACT = 2, /**< knows the flags of eval but the first, and completes */
	PRB_WIRE_CAN_PAUSE = 4,	   /**< knows pause, resume, step */
	PRB_WIRE_CAN_STEP = 8,	   /**< knows all kinds of steps, and reports how each ended */
	PRB_WIRE_CAN_PLACE = 16,   /**< runs code in frames and on event loops */
	PRB_WIRE_CAN_CONFIG = 32,  /**< has settings; also without a Python */
	PRB_WIRE_CAN_CRASH = 64,   /**< knows crash */
	PRB_WIRE_CAN_TRACE = 128,  /**< knows the flag of eval for logpoints */
	PRB_WIRE_CAN_CALLS = 256,  /**< its logpoints are of calls, too */
	PRB_WIRE_CAN_TORCH = 512,  /**< knows the flag of eval for steps of torch */
	PRB_WIRE_CAN_SITES = 1024, /**< knows the flag of eval for sampled allocations */
	PRB_WIRE_CAN_SITES_NATIVE = 2048, /**< samples them with C frames */
	PRB_WIRE_CAN_BREAK = 4096,	  /**< breakpoints of a pause, and steps to them */
	PRB_WIRE_CAN_OPS = 8192,	  /**< runs torch's own profiler for some steps */
	PRB_WIRE_CAN_SLOW = 16384,	  /**< its logpoints of calls can be of slow ones alone */
	PRB_WIRE_CAN_PREPARE = 32768,	  /**< knows PRB_WIRE_IMPORTS */
	PRB_WIRE_CAN_HISTORY = 65536,	  /**< has torch record the history of its GPU memory */
};

/** Flags of pause. */
enum {
	PRB_WIRE_FREEZES = 1, /**< the client answers freeze */
};

/** How to stop all threads but the agent's. */
enum prb_wire_freeze_how {
	PRB_WIRE_FREEZE_ALL,
	PRB_WIRE_FREEZE_ALL_HELD, /**< the GIL's mutex is held */
};

/** A request to stop threads. */
struct prb_wire_freeze {
	uint32_t how;	/**< enum prb_wire_freeze_how */
	uint32_t count; /**< how many ids of the agent's threads there are, */
	uint64_t ids;	/**< and where: 32 bits each, not positive for none */
};

/** How far a step goes. */
enum prb_wire_stride {
	PRB_WIRE_STRIDE_TIME,  /**< for its time */
	PRB_WIRE_STRIDE_INTO,  /**< to the next line of the thread, */
	PRB_WIRE_STRIDE_OVER,  /**< next line in the same function, or in its caller */
	PRB_WIRE_STRIDE_OUT,   /**< next line in the caller */
	PRB_WIRE_STRIDE_BREAK, /**< to a breakpoint of the pause, in any thread */
};

/** A request to let the paused program run; an earlier client sends the first, or all but the
 * last. */
struct prb_wire_step {
	uint32_t us;	 /**< for so many microseconds at most */
	uint32_t stride; /**< enum prb_wire_stride */
	uint64_t thread; /**< Python's name of the thread, pthread_self() */
	uint32_t line;	 /**< of its function, it goes on to at least that one; 0: to any */
};

/** Flags of eval. */
enum {
	PRB_WIRE_ON_MAIN = 1,	  /**< on the main thread */
	PRB_WIRE_INTERACTIVE = 2, /**< as at a prompt: may be the beginning of a statement only */
	PRB_WIRE_LAST = 4,	  /**< with that: no more comes, so what is unfinished is wrong */
	/**
	 * In a frame, which a first line names: pthread_self() of its thread, the tid, the number
	 * of the frame from the innermost, 1, its line, the name of its function and of its file,
	 * divided by tabs. Only while a client pauses the process, else it is refused. A debugger
	 * adds the name of the frame's module and the names of its variables, divided by commas (*:
	 * those of the module), and may write - for the number: the code sees the module alone
	 * then, and is refused if it names one of these variables.
	 */
	PRB_WIRE_IN_FRAME = 8,
	PRB_WIRE_ON_LOOP = 16, /**< in a task of the event loop that runs */
	/** A request for logpoints (PRB_WIRE_CAN_TRACE), or for breakpoints of a pause: "break" and
	 * the lines of pausing_request() in agent/trace/pausing.py (PRB_WIRE_CAN_BREAK). */
	PRB_WIRE_TRACE = 32,
	/** One for steps of torch: "apply"; lines "begin" and steps to sample at once; "exact",
	 * steps, seconds; or "flight", which gives a line of JSON for each flight recorder, without
	 * the GIL. Needs PRB_WIRE_CAN_TORCH. With PRB_WIRE_CAN_OPS also "ops", steps, seconds,
	 * which gives a line of numbers, a line of text, and what Kineto writes; "ops-end"; or
	 * "ops-rows", the number of a table, and rows for it. With PRB_WIRE_CAN_HISTORY also
	 * "history", seconds: a line of numbers, lines of history.py, an empty line, a pickle. */
	PRB_WIRE_TORCH = 64,
	/** One for allocations: "sample", seconds, and numbers of agent/sites_format.h, which is
	 * answered by "buffer ADDRESS" and, when it is over, "ended" or "stays", whereupon the
	 * client reads the rest and interrupts; or "rows" and rows for memory_allocations. Needs
	 * PRB_WIRE_CAN_SITES. */
	PRB_WIRE_SITES = 128,
	/** With PRB_WIRE_TRACE: a request that only imports modules (PRB_WIRE_CAN_PREPARE). The
	 * agent does not interrupt it: that could leave locks of the import system held. */
	PRB_WIRE_IMPORTS = 256,
};

/** How an evaluation ended. */
enum prb_wire_outcome {
	PRB_WIRE_OK,
	PRB_WIRE_RAISED,	   /**< an exception; its text was sent before */
	PRB_WIRE_INTERRUPTED,	   /**< by the client */
	PRB_WIRE_NO_GIL,	   /**< the interpreter was not free in time: nothing was run */
	PRB_WIRE_MAIN_NOT_REACHED, /**< the main thread did not come by in time: the same */
	PRB_WIRE_TIMED_OUT,	   /**< it ran for too long and was interrupted */
	PRB_WIRE_REFUSED,	   /**< it cannot be run here; the text says why */
	PRB_WIRE_FAILED,	   /**< something in the agent went wrong; the text says what */
	PRB_WIRE_INCOMPLETE,	   /**< interactive: nothing was run, more lines have to come */
	PRB_WIRE_EXIT,		   /**< interactive: the code said exit */
};

struct prb_wire_frame {
	uint32_t length; /**< of the payload */
	uint16_t type;	 /**< enum prb_wire_type, or what a later version adds */
	uint16_t request;
	const uint8_t *payload; /**< borrowed */
};

/**
 * A client's request to evaluate, or to complete: then the code is a line up to the cursor. The
 * texts are borrowed and not terminated.
 */
struct prb_wire_eval {
	uint32_t flags;
	uint32_t start_ms; /**< how long to wait for the interpreter; 0: for as long as it takes */
	uint32_t total_ms; /**< how long it may take in all; 0: the same */
	uint32_t name_length, code_length;
	const char *name, *code;
};

static inline uint16_t prb_wire_get16(const uint8_t *at)
{
	return (uint16_t)(at[0] | at[1] << 8);
}

static inline uint32_t prb_wire_get32(const uint8_t *at)
{
	return (uint32_t)prb_wire_get16(at) | (uint32_t)prb_wire_get16(at + 2) << 16;
}

static inline void prb_wire_put16(uint8_t *at, uint16_t value)
{
	at[0] = (uint8_t)value;
	at[1] = (uint8_t)(value >> 8);
}

static inline void prb_wire_put32(uint8_t *at, uint32_t value)
{
	prb_wire_put16(at, (uint16_t)value);
	prb_wire_put16(at + 2, (uint16_t)(value >> 16));
}

static inline uint64_t prb_wire_get64(const uint8_t *at)
{
	return prb_wire_get32(at) | (uint64_t)prb_wire_get32(at + 4) << 32;
}

static inline void prb_wire_put64(uint8_t *at, uint64_t value)
{
	prb_wire_put32(at, (uint32_t)value);
	prb_wire_put32(at + 4, (uint32_t)(value >> 32));
}

static inline void prb_wire_put_header(uint8_t at[PRB_WIRE_HEADER_SIZE], uint32_t length,
				       uint16_t type, uint16_t request)
{
	prb_wire_put32(at, length);
	prb_wire_put16(at + 4, type);
	prb_wire_put16(at + 6, request);
}

/**
 * Looks at the front of @p size bytes that were received. Gives 1 and the frame if it is there
 * whole, 0 if more has to come, -1 if its payload is over @p max: the other side breaks the rules.
 */
static inline int prb_wire_next(const uint8_t *data, size_t size, uint32_t max,
				struct prb_wire_frame *ret)
{
	if (size < PRB_WIRE_HEADER_SIZE)
		return 0;
	ret->length = prb_wire_get32(data);
	ret->type = prb_wire_get16(data + 4);
	ret->request = prb_wire_get16(data + 6);
	ret->payload = data + PRB_WIRE_HEADER_SIZE;
	if (ret->length > max)
		return -1;
	return size - PRB_WIRE_HEADER_SIZE >= ret->length;
}

/** Writes the payload of a client's hello. */
static inline void prb_wire_put_hello(uint8_t at[PRB_WIRE_HELLO_SIZE], uint16_t lowest,
				      uint16_t highest)
{
	memcpy(at, PRB_WIRE_MAGIC, 4);
	prb_wire_put16(at + 4, lowest);
	prb_wire_put16(at + 6, highest);
}

/** The version that both speak: 0 if there is none, -1 if this is no hello. */
static inline int prb_wire_agree(const struct prb_wire_frame *frame)
{
	if (frame->type != PRB_WIRE_HELLO || frame->length < PRB_WIRE_HELLO_SIZE ||
	    memcmp(frame->payload, PRB_WIRE_MAGIC, 4) != 0)
		return -1;

	uint16_t lowest = prb_wire_get16(frame->payload + 4);
	uint16_t highest = prb_wire_get16(frame->payload + 6);

	return lowest <= PRB_WIRE_VERSION && PRB_WIRE_VERSION <= highest ? PRB_WIRE_VERSION : 0;
}

/** The agent's hello; texts are borrowed and terminated. */
struct prb_wire_hello {
	uint16_t version;
	uint32_t pid; /**< as the target sees itself */
	uint32_t capabilities;
	const char *agent, *python; /**< versions; python "" if there is none */
};

/** True if it is the agent's hello. */
static inline int prb_wire_get_hello(const struct prb_wire_frame *frame, struct prb_wire_hello *ret)
{
	const uint8_t *at = frame->payload;

	if (frame->type != PRB_WIRE_HELLO_REPLY || frame->length < PRB_WIRE_HELLO_REPLY_SIZE ||
	    memcmp(at, PRB_WIRE_MAGIC, 4) != 0)
		return 0;
	ret->version = prb_wire_get16(at + 4);
	ret->pid = prb_wire_get32(at + 8);
	ret->capabilities = prb_wire_get32(at + 12);
	ret->agent = (const char *)at + PRB_WIRE_HELLO_REPLY_SIZE;

	size_t rest = frame->length - PRB_WIRE_HELLO_REPLY_SIZE;
	const char *end = (const char *)memchr(ret->agent, 0, rest);

	if (!end)
		return 0;
	ret->python = end + 1;
	rest -= (size_t)(ret->python - ret->agent);
	return memchr(ret->python, 0, rest) != NULL;
}

/** True if it is a request to evaluate or to complete whose lengths agree. */
static inline int prb_wire_get_eval(const struct prb_wire_frame *frame, struct prb_wire_eval *ret)
{
	const uint8_t *at = frame->payload;

	if ((frame->type != PRB_WIRE_EVAL && frame->type != PRB_WIRE_COMPLETE) ||
	    frame->length < PRB_WIRE_EVAL_SIZE)
		return 0;
	ret->flags = prb_wire_get32(at);
	ret->start_ms = prb_wire_get32(at + 4);
	ret->total_ms = prb_wire_get32(at + 8);
	ret->name_length = prb_wire_get32(at + 12);
	ret->name = (const char *)at + PRB_WIRE_EVAL_SIZE;
	if (ret->name_length > PRB_WIRE_MAX_NAME ||
	    ret->name_length > frame->length - PRB_WIRE_EVAL_SIZE)
		return 0;
	ret->code = ret->name + ret->name_length;
	ret->code_length = frame->length - PRB_WIRE_EVAL_SIZE - ret->name_length;
	return 1;
}

/**
 * True if it is a request to pause: its flags, how long to wait for the interpreter, and how long
 * the pause may last are in the fields of the same meaning.
 */
static inline int prb_wire_get_pause(const struct prb_wire_frame *frame, struct prb_wire_eval *ret)
{
	if (frame->type != PRB_WIRE_PAUSE || frame->length < PRB_WIRE_PAUSE_SIZE)
		return 0;
	memset(ret, 0, sizeof(*ret));
	ret->flags = prb_wire_get32(frame->payload);
	ret->start_ms = prb_wire_get32(frame->payload + 4);
	ret->total_ms = prb_wire_get32(frame->payload + 8);
	return 1;
}

/** True if it is a request for a step. */
static inline int prb_wire_get_step(const struct prb_wire_frame *frame, struct prb_wire_step *ret)
{
	if (frame->type != PRB_WIRE_STEP || frame->length < 4)
		return 0;
	memset(ret, 0, sizeof(*ret));
	ret->us = prb_wire_get32(frame->payload);
	if (frame->length < PRB_WIRE_STEP_LINELESS_SIZE)
		return 1;
	ret->stride = prb_wire_get32(frame->payload + 4);
	ret->thread = prb_wire_get64(frame->payload + 8);
	if (frame->length >= PRB_WIRE_STEP_SIZE)
		ret->line = prb_wire_get32(frame->payload + 16);
	return ret->stride <= PRB_WIRE_STRIDE_BREAK;
}

static inline void prb_wire_put_step(uint8_t at[PRB_WIRE_STEP_SIZE],
				     const struct prb_wire_step *step)
{
	prb_wire_put32(at, step->us);
	prb_wire_put32(at + 4, step->stride);
	prb_wire_put64(at + 8, step->thread);
	prb_wire_put32(at + 16, step->line);
}

/** The number that a frame of that type consists of, or 0 if it is another one or too short. */
static inline int prb_wire_get_number32(const struct prb_wire_frame *frame, uint16_t type,
					uint32_t *ret)
{
	if (frame->type != type || frame->length < 4)
		return 0;
	*ret = prb_wire_get32(frame->payload);
	return 1;
}

static inline int prb_wire_get_number64(const struct prb_wire_frame *frame, uint16_t type,
					uint64_t *ret)
{
	if (frame->type != type || frame->length < 8)
		return 0;
	*ret = prb_wire_get64(frame->payload);
	return 1;
}

/**
 * Exported by the agent's library as `probing_agent_pause`, for readers of its process's memory:
 * the rest is valid while `paused` is 1.
 */
enum { PRB_WIRE_PAUSED_VERSION = 1 };
struct prb_wire_paused {
	uint32_t version;
	uint32_t paused;
	int32_t pid; /**< of the client that has paused it, as the process sees it; 0: it cannot */
	uint32_t unused;
	int64_t since_us; /**< of CLOCK_REALTIME */
};

/** The pausing client's report on the program's threads. */
struct prb_wire_frozen {
	uint32_t running; /**< so many could not be stopped */
	/** The GIL's mutex, to be held during a second request; 0: no second request is needed. */
	uint64_t mutex;
	/** To be signalled while the mutex is held, 0: none. Waiters for the GIL wait in the first,
	 * threads that dropped it on request in the second. */
	uint64_t condition, switch_condition;
};

static inline int prb_wire_get_frozen(const struct prb_wire_frame *frame,
				      struct prb_wire_frozen *ret)
{
	if (frame->type != PRB_WIRE_FROZEN || frame->length < 20)
		return 0;
	ret->running = prb_wire_get32(frame->payload);
	ret->mutex = prb_wire_get64(frame->payload + 4);
	ret->switch_condition = prb_wire_get64(frame->payload + 12);
	/* An earlier client does not send it. */
	ret->condition =
		frame->length < PRB_WIRE_FROZEN_SIZE ? 0 : prb_wire_get64(frame->payload + 20);
	return 1;
}

static inline int prb_wire_get_freeze(const struct prb_wire_frame *frame,
				      struct prb_wire_freeze *ret)
{
	int whole = frame->length >= PRB_WIRE_FREEZE_SIZE;

	if (frame->type != PRB_WIRE_FREEZE || frame->length < 4)
		return 0;
	ret->how = prb_wire_get32(frame->payload);
	/* An earlier agent does not send the rest. */
	ret->count = whole ? prb_wire_get32(frame->payload + 4) : 0;
	ret->ids = whole ? prb_wire_get64(frame->payload + 8) : 0;
	return 1;
}

static inline void prb_wire_put_freeze(uint8_t at[PRB_WIRE_FREEZE_SIZE],
				       const struct prb_wire_freeze *freeze)
{
	prb_wire_put32(at, freeze->how);
	prb_wire_put32(at + 4, freeze->count);
	prb_wire_put64(at + 8, freeze->ids);
}

static inline void prb_wire_put_frozen(uint8_t at[PRB_WIRE_FROZEN_SIZE],
				       const struct prb_wire_frozen *frozen)
{
	prb_wire_put32(at, frozen->running);
	prb_wire_put64(at + 4, frozen->mutex);
	prb_wire_put64(at + 12, frozen->switch_condition);
	prb_wire_put64(at + 20, frozen->condition);
}

/** Writes the fixed part of such a request; name and code follow it. */
static inline void prb_wire_put_eval(uint8_t at[PRB_WIRE_EVAL_SIZE],
				     const struct prb_wire_eval *eval)
{
	prb_wire_put32(at, eval->flags);
	prb_wire_put32(at + 4, eval->start_ms);
	prb_wire_put32(at + 8, eval->total_ms);
	prb_wire_put32(at + 12, eval->name_length);
}

#endif

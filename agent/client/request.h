/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file An evaluation requested by a connection: the request, its progress and its answer.
 *
 * A connection has at most one at a time; agent/eval/worker.h runs it. The worker, the server at a
 * deadline, or the client by leaving may end it: `state` and `answered` settle which of them does.
 */
#ifndef PRB_AGENT_CLIENT_REQUEST_H
#define PRB_AGENT_CLIENT_REQUEST_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/inside/python.h"
#include "agent/protocol.h"

struct prba_connection;

enum prba_job_state {
	PRBA_IDLE,	/**< there is none */
	PRBA_WAITING,	/**< for the interpreter: nothing was run yet */
	PRBA_RUNNING,	/**< code of the client runs */
	PRBA_ENDING,	/**< it ran; exceptions from outside come too late */
	PRBA_CANCELLED, /**< nothing is to be run; the worker does not know yet */
	PRBA_LEAVING,	/**< the worker removes its objects from the interpreter */
};

/** Beside the flags of the protocol: the code runs in a frame, which its first line names. */
enum { PRBA_IN_FRAME = 1 << 16 };

/** The kinds of requests. */
enum prba_asked {
	PRBA_EVALUATES,
	PRBA_COMPLETES, /**< names are asked for, nothing is run */
	PRBA_PAUSES,
	PRBA_STEPS,
	PRBA_BREAKS, /**< a debugger, about breakpoints */
};

/** A request that came when the last one was answered and its worker had not ended yet. */
struct prba_next_request {
	uint8_t *payload; /**< NULL: there is none */
	uint32_t length;
	uint16_t type;
	uint16_t request;
	int64_t start_by; /**< ms of prba_now_ms(); 0: no limit */
};

struct prba_job {
	_Atomic int state;
	atomic_bool answered;	   /**< the outcome was sent to the client */
	atomic_bool interrupted;   /**< KeyboardInterrupt was raised in it by us */
	atomic_uint interruptions; /**< how often that was, in all jobs of the connection */
	_Atomic uint32_t wake;	   /**< the worker waits for a change */
	atomic_bool needs_main;	   /**< it waits for the main thread */
	/** Another word that the worker may wait on; lives as long as the agent. */
	_Atomic(_Atomic uint32_t *) also_wake;
	_Atomic uint64_t lost; /**< bytes of output that the client was too slow for */
	void (*begins)(struct prba_connection *c); /**< called when it is RUNNING, or NULL */

	/* set while IDLE by the server's thread */
	uint8_t *memory; /**< the frame's payload, which the texts point into */
	size_t memory_size;
	struct prb_wire_eval eval;
	enum prba_asked asked;
	bool freezes; /**< the client that pauses can stop threads */
	struct prb_wire_step step;
	bool prompts; /**< the client is a prompt, whose worker stays */
	uint16_t request;
	struct prba_next_request next; /**< of the server's thread, in all states */
	int64_t start_by;	       /**< ms of prba_now_ms(); 0: no limit */
	_Atomic int64_t end_by;	       /**< the same; a pause's is set by its worker */

	/* while something is paused; of agent/pause/pause.c, under its lock */
	struct prba_connection *next_served;
	void (*serve)(struct prba_connection *c); /**< does the job on the holder's thread */
	int serving;
	unsigned unanswered; /**< requests to stop threads, which the client answers one by one */
	enum prb_wire_outcome outcome; /**< of a job that was served */
	const char *text;
	char why_late[128]; /**< what `text` of a step points to that was not begun */

	/* Objects of the connection that live between evaluations. Used by the worker only. */
	atomic_bool present;		  /**< there is something */
	struct prba_python_thread python; /**< the worker */

	/* the worker */
	bool has_worker;
	bool quit;
	pthread_t worker;
	_Atomic int64_t rests_since; /**< ms of prba_now_ms(); 0: it is at work */

	/* the thread that interrupts */
	uint32_t serial;      /**< of the job, so that none is interrupted for an earlier one */
	uint32_t interrupts;  /**< serial that the thread is for */
	bool interrupt_again; /**< asked for while the thread was still at work */
	atomic_bool interrupter_done;
	bool has_interrupter;
	int32_t interrupter_tid;
	pthread_t interrupter;

	pthread_mutex_t lock; /**< of what follows, and of the step from RUNNING to ENDING */
	int forks;	      /**< of this process before it ran */
	unsigned long thread; /**< Python's name of the thread that runs it */
};

/** Called when something happened that the server's thread has to look at. */
extern void (*prba_job_notify)(void);

/** For the worker: the job is over; sends the outcome unless that was done. */
void prba_job_finish(struct prba_connection *c, enum prb_wire_outcome outcome, const char *text);

/** For the Python side: from WAITING to RUNNING on this thread; false if it was cancelled. */
bool prba_job_begin(struct prba_connection *c, unsigned long thread);
/** From RUNNING to ENDING. */
void prba_job_end(struct prba_connection *c);

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Interpreter start and end: makes our threads leave an interpreter before it is finalized.
 *
 * A program of C may end its Python and start it again. Which frees all thread states and makes a
 * new GIL, whoever waits for the old one. So the interpreter is greeted first: it calls us before
 * it ends, and then waits until those threads of ours are out that entered. Who comes later is
 * turned away.
 *
 * Threading: as said at each function.
 */
#ifndef PRB_AGENT_FINALIZATION_H
#define PRB_AGENT_FINALIZATION_H

#include <stdbool.h>

/** Whether there is one now, which also notes that one has ended. Any thread. */
bool prba_finalization_look(void);

/** Of two interpreters, one after the other, that we were in: not the same. Any thread. */
int prba_finalization_number(void);

/** It was greeted, and will call us before it ends. Any thread. */
bool prba_finalization_is_known(void);

/** It has called us, and it is not known that another one was started since. Any thread. */
bool prba_finalization_is_ending(void);

/** An interpreter of this process was seen to end, and not the process with it. Any thread. */
bool prba_finalization_returns(void);

/**
 * Has the interpreter call us before it ends, if it does not yet. False if it can not, or not any
 * more, maybe with an exception; or not now, since another thread would have to be waited for,
 * which may stand. For who holds the GIL.
 */
bool prba_finalization_greet(bool may_wait);

/** It calls us no more. For who holds the GIL. */
void prba_finalization_part(void);

/**
 * For a thread of ours that is about to take the GIL, or to wait for it; false if it must not. From
 * then on the interpreter, if it was greeted, does not end before prba_finalization_leave(), which
 * is called without the GIL.
 */
bool prba_finalization_enter(void);
void prba_finalization_leave(void);

/**
 * Between these two a thread that entered runs code of a client, which may take for ever: programs
 * that end with their Python do not wait for it, others interrupt it and wait for three seconds.
 * @p thread: as Python calls it.
 */
void prba_finalization_runs(unsigned long thread);
void prba_finalization_ran(unsigned long thread);

/** The program is one of its own that has Python inside, or it is unknown whether. Any thread. */
bool prba_finalization_is_embedded(void);

/** In a child after fork(). */
void prba_finalization_forked(void);

#endif

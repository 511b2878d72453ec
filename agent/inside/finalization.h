/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Interpreter start and end: makes our threads leave an interpreter before it is finalized.
 *
 * A C program may finalize its Python and start it again. Finalizing frees all thread states and
 * makes a new GIL, even while threads wait for the old one. So an atexit hook of ours is registered
 * first. The hook waits until all threads of ours that entered have left, and turns later ones
 * away.
 *
 * Threading: as said at each function.
 */
#ifndef PRB_AGENT_INSIDE_FINALIZATION_H
#define PRB_AGENT_INSIDE_FINALIZATION_H

#include <stdbool.h>

/** True if there is an interpreter now; also notes the end of one. Any thread. */
bool prba_finalization_look(void);

/** The number of the interpreter; each one started later has another number. Any thread. */
int prba_finalization_number(void);

/** True if our exit hook is registered. Any thread. */
bool prba_finalization_is_known(void);

/** True if the hook was called, and no later interpreter is known to have started. Any thread. */
bool prba_finalization_is_ending(void);

/** True if an interpreter of this process has ended while the process went on. Any thread. */
bool prba_finalization_returns(void);

/**
 * Registers our exit hook, if it is not registered yet. False if that is impossible (perhaps with
 * an exception set), or if it would mean waiting for another thread, which may be stopped, and
 * @p may_wait is false. The caller holds the GIL.
 */
bool prba_finalization_register(bool may_wait);

/** Removes the exit hook. The caller holds the GIL. */
void prba_finalization_part(void);

/**
 * For a thread of ours that is about to take the GIL, or to wait for it; false if it must not. From
 * then on the interpreter, if it has our exit hook, does not end before prba_finalization_leave(),
 * which is called without the GIL.
 */
bool prba_finalization_enter(void);
void prba_finalization_leave(void);

/**
 * Between these two a thread that entered runs client code of unbounded duration. Programs that
 * exit when their Python ends do not wait for it; others interrupt it and wait for three seconds.
 * @p thread: as Python calls it.
 */
void prba_finalization_runs(unsigned long thread);
void prba_finalization_ran(unsigned long thread);

/** The program is one of its own that has Python inside, or it is unknown whether. Any thread. */
bool prba_finalization_is_embedded(void);

/** In a child after fork(). */
void prba_finalization_forked(void);

#endif

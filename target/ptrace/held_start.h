/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Holds a child of ours at the first instruction of the program that it begins to run, so
 * that a reader of the program can prepare for it.
 *
 * The child is seized before its exec, stops in it, and is let go when it is released; when we die
 * at any moment, the kernel lets it run. Signals that arrive meanwhile are delivered.
 *
 * A program that is traced while it begins gets no rights of its own (setuid bits, capabilities of
 * the file). Such a program is recognised by prb_held_start_lost_rights(): it has not run an
 * instruction, so that it can be killed and started anew without us.
 *
 * Threading: all calls for a child come from the same thread (a rule of ptrace). We are not stopped
 * ourselves while the child is held (unstopped.h).
 */
#ifndef PRB_TARGET_PTRACE_HELD_START_H
#define PRB_TARGET_PTRACE_HELD_START_H

#include <stdbool.h>
#include <sys/types.h>

/** Becomes the tracer of @p child, which waits for us before it calls exec. False if that is not
 * permitted here; then the child is not held. */
bool prb_held_start_begin(pid_t child);

/** Waits until @p child is in its new program, and held there. False if it has ended, or is let go
 * for another reason. */
bool prb_held_start_await(pid_t child);

/** True if the program would have rights of its own, or may have. */
bool prb_held_start_lost_rights(pid_t child);

/** Lets it run. */
void prb_held_start_release(pid_t child);

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Crash records: when the process dies of SIGSEGV, SIGBUS, SIGABRT, SIGILL or SIGFPE, or an
 * exception is not caught, its threads' registers and the memory that a dump needs are written to
 * a file, which is a small ELF core (docs/crashes.md). `probing FILE COMMAND` reads it later.
 *
 * The signal handler starts a helper process that shares our memory. The helper stops the other
 * threads by ptrace, copies and writes, with system calls alone: no lock, no malloc, no function
 * that is unsafe in a signal handler. Then the handler that was there before is put back and the
 * signal arrives again, so that the process ends as it would have ended without us.
 *
 * What is written is bounded: bytes of a file, files of a folder, time. The folder belongs to the
 * user of the process alone.
 *
 * Threading: as said at each function.
 */
#ifndef PRB_AGENT_CRASH_CRASH_H
#define PRB_AGENT_CRASH_CRASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	PRBA_CRASH_PATH = 4096,
	PRBA_CRASH_CONFIG = PRBA_CRASH_PATH + 256,
	PRBA_CRASH_WORDS = 1 << 16, /**< text of an exception */
};

/**
 * Installs the handlers, or changes how they work. @p config has words "key=value", divided by line
 * feeds: hold (ms), size (bytes of a file), count (files of the folder), folder (a path). Gives 0
 * or -errno; the folder is in @p ret then. Any thread, one at a time.
 */
int prba_crash_start(const char *config, char ret[PRBA_CRASH_PATH]);

/**
 * Takes the handlers out, except for those that the program has replaced or wrapped. True if
 * nothing of them is left, or none was installed. Any thread, one at a time.
 */
bool prba_crash_stop(void);

/** The folder of records, or NULL while there are no handlers. Any thread. */
const char *prba_crash_folder(void);
/** The main thread has its alternate stack, and hooks for exceptions. Any thread. */
bool prba_crash_has_hooks(void);

/**
 * Writes a record although there was no signal: @p text says why. Gives 0 or -errno. Any thread,
 * the process goes on afterwards.
 */
int prba_crash_record(const char *text, size_t length);

/** In a child after fork(). */
void prba_crash_forked(void);

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file A process or core file that a debugger holds, read through the debugger.
 *
 * A process on this machine may be read directly, which is faster; what the debugger then adds are
 * the registers, which only it may read while it traces the process. Everything else (a process
 * behind a gdbserver, a core that only the debugger has) is read by its functions alone. Data is
 * cached as long as the target is open, since the process is stopped meanwhile.
 *
 * The debugger's answers are hostile like all else: they come from the process, or from a stub on
 * another machine. Its functions are called on the thread that uses the target, and only then.
 */
#ifndef PRB_TARGET_DEBUGGER_DEBUGGER_H
#define PRB_TARGET_DEBUGGER_DEBUGGER_H

#include "target/target.h"

/** Takes a piece of text. Not 0: there is no room for more. */
typedef int prb_debugger_put(void *to, const char *text, size_t length);

struct prb_debugger {
	void *context;	  /**< given to each function */
	pid_t pid;	  /**< 0 if unknown */
	uint16_t machine; /**< ELF e_machine */
	bool held;	  /**< all threads are stopped until the target is closed */

	/** Reads @p length bytes, or fewer if the rest cannot be read, and gives how many. NULL:
	 * the process is on this machine and read directly. */
	size_t (*read)(void *context, uint64_t address, void *buffer, size_t length);
	/** Puts the fact @p name (see target/target.h; links and lists too). 0: it is known. May be
	 * NULL for a process that is read directly. */
	int (*fact)(void *context, const char *name, prb_debugger_put *put, void *to);
	/** Registers of a thread; 0: they are known. NULL: never. */
	int (*registers)(void *context, pid_t tid, struct prb_regs *ret);
};

/** Opens it; @p debugger is copied, its context must outlive the target. */
struct prb_error *prb_target_open_debugger(const struct prb_debugger *debugger,
					   struct prb_target **ret) PRB_MUST_CHECK;

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Which thread has the GIL by the GIL's own words, which tell it also while that thread is
 * about to give it away, or has just got it. (A dump says who runs Python:
 * python/runtime/threads.c.)
 *
 * Threading: one thread at a time.
 */
#ifndef PRB_DUMP_GIL_HOLDER_H
#define PRB_DUMP_GIL_HOLDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "python/python.h"
#include "target/target.h"
#include "dump/tasks.h"

/** Where that is to be read. */
struct prb_gil_words {
	uint64_t locked, holder;       /**< addresses; 0: not known */
	int32_t thread_id, native_tid; /**< offsets in a thread state */
	/** what has it give the GIL away: an address, or an offset in its state if there is no
	 * breaker, which has it look at that; 0: not known */
	uint64_t request, breaker;
};

/** Those of the GIL of @p interp; before 3.7 symbols tell, if there are any. */
struct prb_gil_words prb_gil_words(const struct prb_python *py, const struct prb_interp *interp);

/** Whether what is known of the request looks as it does in memory. */
bool prb_gil_can_request(const struct prb_gil_words *words, struct prb_mem *mem);

/**
 * The thread that has the GIL; 0 if none has. False if that is not known. A thread that is stopped
 * and not given here does not have it. @p tasks: those of @p t, which are listed anew if need be.
 */
bool prb_gil_holder(const struct prb_gil_words *words, struct prb_target *t,
		    struct prb_tasks *tasks, pid_t *ret);

#endif

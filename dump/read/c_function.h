/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The C function that a running thread was stopped in. Internal to dump/read/.
 *
 * Without native frames only the place where a thread ran is known, not the way there. Where that
 * is a library beside the interpreter and the C library, it says most of what one wants to know:
 * the thread multiplies matrices.
 */
#ifndef PRB_DUMP_READ_C_FUNCTION_H
#define PRB_DUMP_READ_C_FUNCTION_H

#include "dump/read/reader.h"

/**
 * Fills in_c from the place where the thread was stopped, or from what a snapshot noted of it. NULL
 * if it ran in the interpreter, in the C library or in code of no module. The library's name stands
 * for functions without a symbol, and for those of files so large that the search takes long.
 */
struct prb_error *prb_read_c_function(struct prb_reader *r,
				      struct prb_reader_thread *thread) PRB_MUST_CHECK;

#endif

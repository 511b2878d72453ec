/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The C function that a running thread was stopped in. Internal to dump/read/.
 *
 * Without native frames only the pc of a running thread is known. If it is in a library other than
 * the interpreter and the C library, it shows what the thread is doing, such as multiplying
 * matrices.
 */
#ifndef PRB_DUMP_READ_C_FUNCTION_H
#define PRB_DUMP_READ_C_FUNCTION_H

#include "dump/read/reader.h"

/**
 * Fills in_c from the pc of the stopped thread, or from a snapshot's note. NULL if it ran in the
 * interpreter, in the C library or outside of all modules. It is the library's name if the function
 * has no symbol, or the file is so large that a search takes long.
 */
struct prb_error *prb_read_c_function(struct prb_reader *r,
				      struct prb_reader_thread *thread) PRB_MUST_CHECK;

#endif

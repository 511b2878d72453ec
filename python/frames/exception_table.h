/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file The table of exception handlers of a code object, from 3.11 on: co_exceptiontable. */
#ifndef PRB_PYTHON_FRAMES_EXCEPTION_TABLE_H
#define PRB_PYTHON_FRAMES_EXCEPTION_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** What happens to an exception that is raised at an instruction. */
struct prb_exception_handler {
	int64_t position; /**< where it goes on, in bytes from the start of the bytecode */
	uint32_t depth;	  /**< slots of the value stack that are alive there and here */
};

/** The handler for the instruction at @p position, in bytes; false if the table has none. */
bool prb_exception_table_find(const uint8_t *table, size_t size, int64_t position,
			      struct prb_exception_handler *ret);

#endif

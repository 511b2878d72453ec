/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Checks whether a code object is still the one that was read before, and caches its lines.
 *
 * An address of a code object means something only as long as the object lives: it is freed, and
 * the next one lies at the same place. Caches of code objects compare their identity each time: the
 * addresses of their parts, and the hashes of their contents, which change when another name is at
 * the same place.
 *
 * Threading: one thread at a time; nothing here keeps state. Errors: of reading memory.
 */
#ifndef PRB_PYTHON_FRAMES_CODE_IDENTITY_H
#define PRB_PYTHON_FRAMES_CODE_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "python/python.h"

/** The parts of a code object; equal for the same one. */
struct prb_py_code_identity {
	uint64_t type, name, file, qualname, lines; /**< addresses; 0 where the version has none */
	uint64_t name_sum, file_sum, qualname_sum;  /**< of the texts themselves */
	uint64_t lines_size, lines_sum;
	uint32_t first_line, flags;
};

struct prb_error *prb_python_code_identity(struct prb_python *py, struct prb_mem *mem,
					   uint64_t code,
					   struct prb_py_code_identity *ret) PRB_MUST_CHECK;

bool prb_py_code_identity_equal(const struct prb_py_code_identity *a,
				const struct prb_py_code_identity *b);

/** Copies the line table, for prb_lines_decode(); the caller frees. */
struct prb_error *prb_python_line_table(struct prb_python *py, struct prb_mem *mem,
					const struct prb_py_code_identity *code,
					uint8_t **ret) PRB_MUST_CHECK;

#endif

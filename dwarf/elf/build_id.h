/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Finding the build-id among ELF notes.
 */
#ifndef PRB_DWARF_ELF_BUILD_ID_H
#define PRB_DWARF_ELF_BUILD_ID_H

#include <stdbool.h>
#include <stddef.h>

enum {
	PRB_BUILD_ID_MAX = 64, /**< bytes; SHA-1 has 20 */
	PRB_BUILD_ID_TEXT_SIZE = 2 * PRB_BUILD_ID_MAX + 1,
};

/** Looks for NT_GNU_BUILD_ID in @p size bytes of notes; writes it as hex text. */
bool prb_build_id_from_notes(const void *notes, size_t size, char text[PRB_BUILD_ID_TEXT_SIZE]);

#endif

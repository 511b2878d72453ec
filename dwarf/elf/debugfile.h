/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Separate debug files: where distributions put what was stripped off.
 */
#ifndef PRB_DWARF_ELF_DEBUGFILE_H
#define PRB_DWARF_ELF_DEBUGFILE_H

#include "dwarf/elf/elf.h"
#include "target/target.h"

/**
 * Opens the debug file of @p elf, which lies at @p path in the target: by build-id, then by
 * .gnu_debuglink; in the target's root, then below our /usr/lib/debug. PRB_ERROR_NOT_FOUND if there
 * is none.
 */
struct prb_error *prb_debugfile_open(struct prb_target *target, struct prb_elf *elf,
				     const char *path, struct prb_elf **ret) PRB_MUST_CHECK;

#endif

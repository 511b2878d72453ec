/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Where a module keeps its call frame information, found when it is first needed and from the
 * cheapest source: `.eh_frame_hdr` in the target's memory, `.eh_frame` of the file, `.debug_frame`
 * of the file, `.debug_frame` of the separate debug file. Internal to dwarf/unwind/.
 *
 * Threading: one thread at a time. The module is borrowed.
 */
#ifndef PRB_DWARF_UNWIND_MODULE_CFI_H
#define PRB_DWARF_UNWIND_MODULE_CFI_H

#include "base/error.h"
#include "base/vec.h"
#include "dwarf/elf/module.h"
#include "dwarf/unwind/cfi.h"

/** Code and the FDE that describes it, for sections that have no search table. */
struct prb_cfi_range {
	uint64_t start, end;
	uint64_t fde; /**< address of the entry */
};

/** One section and how it is searched: by `index` if that has entries, else by `ranges`. */
struct prb_cfi_table {
	struct prb_cfi_section section;
	struct prb_cfi_index index;
	PRB_VEC(struct prb_cfi_range) ranges; /**< sorted by start */
};

enum { PRB_CFI_SOURCES = 4 };

struct prb_module_cfi {
	struct prb_module *module;
	bool file_first; /**< `.eh_frame` of the file before that in memory */
	unsigned tried;	 /**< how many of the sources were looked at */
	unsigned count;
	struct prb_cfi_table tables[PRB_CFI_SOURCES];
};

void prb_module_cfi_init(struct prb_module_cfi *cfi, struct prb_module *module);
void prb_module_cfi_deinit(struct prb_module_cfi *cfi);

/**
 * Opens the file, unless one of the sources was opened before, and its `.eh_frame` as the first of
 * them. Nothing is done where there is no file that must be the one that is mapped, by its
 * build-id. PRB_ERROR_NOMEM only.
 */
struct prb_error *prb_module_cfi_use_file(struct prb_module_cfi *cfi,
					  const struct prb_cfi_memory *memory) PRB_MUST_CHECK;

/**
 * The row that holds at @p pc and the section it came from (valid as long as @p cfi).
 * @p status says PRB_CFI_OK or why there is none; an error is only PRB_ERROR_NOMEM.
 */
struct prb_error *prb_module_cfi_row(struct prb_module_cfi *cfi,
				     const struct prb_cfi_memory *memory, uint16_t machine,
				     uint64_t pc, struct prb_cfi_row *row,
				     const struct prb_cfi_section **section,
				     enum prb_cfi_status *status) PRB_MUST_CHECK;

/**
 * The code of the FDE that covers @p pc: a function, or a part of one that the compiler has split
 * off. @p status and errors as above.
 */
struct prb_error *prb_module_cfi_function(struct prb_module_cfi *cfi,
					  const struct prb_cfi_memory *memory, uint64_t pc,
					  uint64_t *start, uint64_t *end,
					  enum prb_cfi_status *status) PRB_MUST_CHECK;

#endif

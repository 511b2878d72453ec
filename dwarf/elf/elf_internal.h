/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Shared by the files of dwarf/elf; about an opened ELF file.
 */
#ifndef PRB_DWARF_ELF_ELF_INTERNAL_H
#define PRB_DWARF_ELF_ELF_INTERNAL_H

#include <gelf.h>

#include "base/vec.h"
#include "dwarf/elf/build_id.h"
#include "dwarf/elf/copy.h"
#include "dwarf/elf/dynamic.h"
#include "dwarf/elf/elf.h"
#include "dwarf/elf/symbols.h"

/** A section that had to be decompressed. */
struct prb_inflated {
	size_t section; /**< index */
	void *data;
	uint64_t size;
};

struct prb_elf {
	char *name;
	int fd;
	void *memory; /**< owned bytes of prb_elf_open_memory(), else NULL */
	Elf *handle;
	bool safe;	      /**< only root and our user can change the file */
	struct prb_copy copy; /**< of a file that is not safe: what was read of it so far */
	/** The whole file, or the room for it in the copy; valid until the handle ends. */
	const uint8_t *bytes;
	uint64_t size;

	GElf_Ehdr header;
	GElf_Phdr *segments;
	size_t segment_count, section_count;
	const char *section_names; /**< NULL without section headers */
	uint64_t section_names_size;
	PRB_VEC(struct prb_inflated) inflated;
	uint64_t claimed; /**< of the memory that is for debug information of unsafe files */

	char build_id[PRB_BUILD_ID_TEXT_SIZE];
	bool tried_build_id, tried_dynamic, tried_symtab, tried_mini, tried_index;
	bool has_dynamic; /**< `dynamic` can answer */
	struct prb_dynamic dynamic;
	struct prb_symbol_table symtab, dynsym;
	struct prb_symbol_index index;
	struct prb_elf *mini; /**< what `.gnu_debugdata` holds, or NULL */
};

/** @p length bytes of the file at @p offset, NULL if they are not all there. */
const void *prb_elf_bytes(const struct prb_elf *elf, uint64_t offset, uint64_t length);

/** @p length bytes that the file maps at @p address, NULL if they are not all there. */
const void *prb_elf_bytes_at(const struct prb_elf *elf, uint64_t address, uint64_t length);

/** Section @p index (from 1); false if there is none. */
bool prb_elf_section_header(const struct prb_elf *elf, size_t index, GElf_Shdr *ret);

/** The first section of this type with content; false if there is none. */
bool prb_elf_section_of_type(const struct prb_elf *elf, uint32_t type, GElf_Shdr *ret);

/** The executable range (section, or segment without sections) around @p address. */
bool prb_elf_code_range(const struct prb_elf *elf, uint64_t address, uint64_t *start,
			uint64_t *end);

#endif

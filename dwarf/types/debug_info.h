/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file libdwarf on top of prb_elf. Internal to dwarf/types/. libdwarf gets the (decompressed)
 * sections from us and never sees the file, and what differs between its versions is hidden here.
 *
 * Attributes that are missing or malformed are simply not there (false): DWARF is read to find out
 * what can be found out, not to be judged.
 */
#ifndef PRB_DWARF_TYPES_DEBUG_INFO_H
#define PRB_DWARF_TYPES_DEBUG_INFO_H

#if __has_include(<libdwarf/libdwarf.h>)
#include <libdwarf/dwarf.h>
#include <libdwarf/libdwarf.h>
#else /* in a folder of its own, which pkg-config names */
#include <dwarf.h>
#include <libdwarf.h>
#endif

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "dwarf/elf/elf.h"

struct prb_debug_info;

/** Borrows @p elf. PRB_ERROR_NOT_FOUND if it has no `.debug_info`. */
struct prb_error *prb_debug_info_open(struct prb_elf *elf,
				      struct prb_debug_info **ret) PRB_MUST_CHECK;
void prb_debug_info_close(struct prb_debug_info *info);

/**
 * The next compilation unit's own DIE, each once, in the order of the file; *ret is NULL at the
 * end. The caller frees it with prb_die_free().
 */
struct prb_error *prb_debug_info_next_unit(struct prb_debug_info *info,
					   Dwarf_Die *ret) PRB_MUST_CHECK;

/** The DIE at an offset in `.debug_info`, or NULL. */
Dwarf_Die prb_die_at(struct prb_debug_info *info, uint64_t offset);
void prb_die_free(Dwarf_Die die);

/**
 * Goes through the children of @p parent: start with *die NULL; false when there are no more. Each
 * step frees the former *die; leaving the loop early is the caller's to clean up.
 */
bool prb_die_next_child(struct prb_debug_info *info, Dwarf_Die parent, Dwarf_Die *die);

/** DW_TAG_…, 0 if unreadable. */
unsigned prb_die_tag(struct prb_debug_info *info, Dwarf_Die die);

/** Offset in `.debug_info`; UINT64_MAX if unreadable. */
uint64_t prb_die_offset(struct prb_debug_info *info, Dwarf_Die die);

/** DW_AT_name, which lives as long as @p info, or NULL. */
const char *prb_die_name(struct prb_debug_info *info, Dwarf_Die die);

bool prb_die_has(struct prb_debug_info *info, Dwarf_Die die, unsigned attribute);
bool prb_die_signed(struct prb_debug_info *info, Dwarf_Die die, unsigned attribute, int64_t *ret);
bool prb_die_unsigned(struct prb_debug_info *info, Dwarf_Die die, unsigned attribute,
		      uint64_t *ret);

/** Target of a reference within the file; false also for references into another file. */
bool prb_die_reference(struct prb_debug_info *info, Dwarf_Die die, unsigned attribute,
		       uint64_t *ret);

/** DW_AT_data_member_location in bytes, as a constant or a simple expression. */
bool prb_die_member_location(struct prb_debug_info *info, Dwarf_Die die, uint64_t *ret);

#endif

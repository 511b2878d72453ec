/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Offsets of struct members from DWARF (libdwarf), for the few types one compilation unit
 * holds. Reading it costs 1–2 ms, of compressed debug files 50–90 ms, so results are kept by
 * dwarf/cache under the build-id.
 *
 * Files that another user could have made are parsed in a child without rights if we have more
 * rights than others (dwarf/elf/confine.h).
 *
 * Threading: one thread at a time per file. Malformed DWARF gives members that are not found, or
 * PRB_ERROR_BAD_DATA where no unit can be reached. Types that dwz moved to partial units of the
 * same file are found, those it moved to another file are not.
 */
#ifndef PRB_DWARF_TYPES_TYPES_H
#define PRB_DWARF_TYPES_TYPES_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "dwarf/elf/elf.h"

struct prb_type_query {
	/**
	 * A query: "struct.member.member" gives the offset of a (nested, also anonymous) member in
	 * bytes; "struct" alone gives sizeof; "enum:NAME" gives an enumerator's value. Structs are
	 * named by tag or by typedef. Alternatives are separated by '|', first found wins:
	 * "_is.threads.head|_is.tstate_head".
	 */
	const char *path;
	int64_t value; /**< set: offset, size or value; bit-field members: byte offset */
	uint32_t size; /**< set: size of the member in bytes */
	uint8_t bit,
		bits; /**< set: first bit (from the least significant) and count; 0 0 if none */
	bool found;   /**< set: false if no alternative exists */
};

/**
 * Answers all @p queries from the compilation unit of @p elf whose name ends in "/unit" or is
 * @p unit ("ceval.c"); stops reading at the end of that unit. PRB_ERROR_NOT_FOUND if there is no
 * DWARF or no such unit; members that do not exist are just not found. Errors of the child are
 * those of prb_jail_ask().
 */
struct prb_error *prb_types_query(struct prb_elf *elf, const char *unit,
				  struct prb_type_query *queries, size_t count) PRB_MUST_CHECK;

#endif

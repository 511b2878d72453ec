/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Reading types with libdwarf in this very process. Internal to dwarf/types/. */
#ifndef PRB_DWARF_TYPES_PARSE_H
#define PRB_DWARF_TYPES_PARSE_H

#include "dwarf/types/types.h"

/** As prb_types_query(), without regard to the file's owner. */
struct prb_error *prb_types_parse(struct prb_elf *elf, const char *unit,
				  struct prb_type_query *queries, size_t count) PRB_MUST_CHECK;

#endif

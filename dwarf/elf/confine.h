/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Which files libbfd and libdwarf may parse in our own process.
 */
#ifndef PRB_DWARF_ELF_CONFINE_H
#define PRB_DWARF_ELF_CONFINE_H

#include <stdbool.h>

#include "dwarf/elf/elf.h"

/**
 * True if libraries that parse the file must do so in a child without rights (base/jail.h): we have
 * more rights than other processes of our user, and another user than root and ours could have made
 * the file, or could put another one in its place.
 */
bool prb_elf_must_confine(const struct prb_elf *elf);

#endif

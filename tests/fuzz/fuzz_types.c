/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Any bytes as an ELF file with debug information: its types, from which layouts are read. */
#include "tests/fuzz/elf_file.h"

#include "dwarf/types/parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct prb_type_query queries[] = {
		{.path = "outer"},	     {.path = "outer.middle.last"},
		{.path = "outer.anonymous"}, {.path = "outer.bits|outer.first"},
		{.path = "alias.first"},     {.path = "outer.array"},
		{.path = "enum:CHOICE"},     {.path = "nothing|node.next|both.number"},
	};
	struct prb_elf *elf = elf_file_open(data, size);

	if (!elf)
		return 0;
	prb_error_destroy(prb_types_parse(elf, "sample.c", queries, PRB_ARRAY_SIZE(queries)));
	prb_elf_close(elf);
	return 0;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Any bytes as an ELF file with debug information: lines and inlined calls, by libbfd. */
#include "tests/fuzz/elf_file.h"

#include "dwarf/lines/line_table.h"

enum { STEP = 7 };

static void ask_lines(struct prb_elf *elf, struct prb_line_table *table)
{
	uint64_t address, size;
	struct prb_error *err = prb_elf_section(elf, ".text", &address, &size, NULL);

	for (uint64_t at = 0; !err && at < PRB_MIN(size, 256u); at += STEP) {
		struct prb_lines lines = {};

		err = prb_line_table_find(table, address + at, &lines);
		prb_lines_deinit(&lines);
	}
	prb_error_destroy(err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct prb_elf *elf = elf_file_open(data, size);
	struct prb_line_table *table;

	if (!elf)
		return 0;
	struct prb_error *err = prb_line_table_check(elf);
	if (!err)
		err = prb_line_table_open(elf, EM_X86_64, &table);
	if (!err) {
		ask_lines(elf, table);
		prb_line_table_close(table);
	}
	prb_error_destroy(err);
	prb_elf_close(elf);
	return 0;
}

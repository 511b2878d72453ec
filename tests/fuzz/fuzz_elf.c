/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Any bytes as an ELF file: sections, symbols by name and by address, build-id. */
#include "tests/fuzz/elf_file.h"

enum { ADDRESSES_ASKED = 64 };

static void ask_symbols(struct prb_elf *elf)
{
	static const char *const names[] = {"main", "first", "second", "_PyRuntime", "", "stdout"};
	struct prb_elf_symbol symbol;

	for (size_t i = 0; i < PRB_ARRAY_SIZE(names); i++) {
		struct prb_error *err = prb_elf_symbol(elf, names[i], &symbol);

		if (!err && strcmp(symbol.name, names[i]) != 0)
			abort();
		prb_error_destroy(err);
	}
	for (uint64_t offset = 0; offset < ADDRESSES_ASKED * 64; offset += 64) {
		uint64_t address;
		struct prb_error *err = prb_elf_offset_to_address(elf, offset, &address);

		if (!err)
			err = prb_elf_symbol_at(elf, address, &symbol);
		if (!err && symbol.address > address)
			abort();
		prb_error_destroy(err);
	}
}

static void ask_sections(struct prb_elf *elf)
{
	static const char *const names[] = {".text",	   ".eh_frame_hdr",   ".debug_info",
					    ".dynamic",	   ".gnu_debuglink",  ".debug_str",
					    ".debug_line", ".debug_line_str", ".gnu_debugdata"};
	uint64_t address, size, sum = 0;
	const void *data;

	for (size_t i = 0; i < PRB_ARRAY_SIZE(names); i++) {
		struct prb_error *err = prb_elf_section(elf, names[i], &address, &size, &data);

		for (uint64_t at = 0; !err && data && at < size; at++)
			sum += ((const uint8_t *)data)[at];
		prb_error_destroy(err);
	}
	if (sum == UINT64_MAX) /* keeps the reads from being optimised away */
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct prb_elf *elf = elf_file_open(data, size);

	if (!elf)
		return 0;
	(void)prb_elf_build_id(elf);
	ask_sections(elf);
	ask_symbols(elf);
	prb_elf_close(elf);
	return 0;
}

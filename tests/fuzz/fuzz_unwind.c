/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Any bytes as call frame information for the unwinder's core. Input: flags (1: aarch64, 2:
 * .debug_frame, 4: bytes are fetched from the target), size of the search table (two bytes), a pc
 * (eight), the search table, the entries.
 */
#include <elf.h>
#include <stdint.h>
#include <string.h>

#include "tests/fuzz/exercise_cfi.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEADER_ADDRESS = 0x200000, FRAMES_ADDRESS = 0x210000, PREFIX = 11, MAX_ENTRIES = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint16_t header_size;
	uint64_t pc;

	if (size < PREFIX)
		return 0;
	memcpy(&header_size, data + 1, sizeof(header_size));
	memcpy(&pc, data + 3, sizeof(pc));
	uint8_t flags = data[0];
	uint16_t machine = flags & 1 ? EM_AARCH64 : EM_X86_64;
	data += PREFIX;
	size -= PREFIX;
	if (header_size > size)
		header_size = (uint16_t)size;

	struct hostile_target target = {
		.header = {.address = HEADER_ADDRESS, .size = header_size, .data = data},
		.frames = {.address = FRAMES_ADDRESS,
			   .size = size - header_size,
			   .data = data + header_size,
			   .debug_frame = flags & 2,
			   .text_base = 0x1000,
			   .data_base = 0x2000},
	};
	(void)!exercise_lookup(&target, machine, flags & 4, pc);
	exercise_all(&target, machine, flags & 4, MAX_ENTRIES);
	return 0;
}

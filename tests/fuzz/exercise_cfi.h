/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Uses arbitrary bytes as call frame information in every way that the unwinder does. For the
 * fuzzer and for the test with mutated libraries.
 */
#ifndef PRB_TESTS_EXERCISE_CFI_H
#define PRB_TESTS_EXERCISE_CFI_H

#include <stdlib.h>
#include <string.h>

#include "dwarf/unwind/cfi.h"

/** The target: two sections, and a stack everywhere else but in the lowest pages. */
struct hostile_target {
	struct prb_cfi_section header, frames; /**< with `data` */
};

static inline bool read_hostile_section(const struct prb_cfi_section *section, uint64_t address,
					void *buffer, size_t length)
{
	uint64_t into = address - section->address;

	if (address < section->address || into > section->size || length > section->size - into)
		return false;
	memcpy(buffer, (const uint8_t *)section->data + into, length);
	return true;
}

static inline bool read_hostile(void *context, uint64_t address, void *buffer, size_t length)
{
	const struct hostile_target *target = context;

	if (read_hostile_section(&target->header, address, buffer, length) ||
	    read_hostile_section(&target->frames, address, buffer, length))
		return true;
	if (address < 65536)
		return false;
	memset(buffer, (int)(address >> 3), length);
	return true;
}

/** Invariants of each row reported as good. */
static inline void check_row(const struct prb_cfi_row *row, uint64_t pc)
{
	if (pc < row->start || pc >= row->end || row->count > PRB_REG_COUNT ||
	    row->count != __builtin_popcountll(row->mask) || row->ra >= PRB_REG_COUNT ||
	    row->mask >> PRB_REG_COUNT)
		abort();
	for (unsigned i = 0; i < row->count; i++) {
		if (row->rules[i].kind == PRB_CFI_UNSPECIFIED ||
		    row->rules[i].kind > PRB_CFI_VAL_EXPRESSION)
			abort();
	}
}

static inline enum prb_cfi_status exercise_fde(const struct prb_cfi_section *section,
					       const struct prb_cfi_memory *memory,
					       const struct prb_cfi_fde *fde, uint16_t machine,
					       uint64_t pc)
{
	struct prb_regs regs = {.machine = machine, .pc = pc};
	struct prb_cfi_row row;
	enum prb_cfi_status status;
	uint64_t cfa;

	status = prb_cfi_row_at(section, memory, fde, machine, pc, &row);
	if (status != PRB_CFI_OK)
		return status;
	check_row(&row, pc);
	for (unsigned i = 0; i < PRB_REG_AARCH64_SIGN_STATE; i++)
		prb_regs_set(&regs, i, 0x7000000 + 64 * i);

	struct prb_regs before = regs;
	status = prb_cfi_apply(section, memory, &row, 0xff7f000000000000, &regs, &cfa);
	if (status != PRB_CFI_OK && memcmp(&before, &regs, sizeof(regs)) != 0)
		abort();
	return status;
}

/** One lookup of @p pc; @p mapped: the bytes are fetched, not read in place. */
static inline enum prb_cfi_status exercise_lookup(struct hostile_target *target, uint16_t machine,
						  bool mapped, uint64_t pc)
{
	struct prb_cfi_memory memory = {.read = read_hostile, .context = target};
	struct prb_cfi_section header = target->header, frames = target->frames;
	struct prb_cfi_fde fde = {};
	struct prb_cfi_index index;
	enum prb_cfi_status status;
	uint64_t address;

	if (mapped)
		header.data = frames.data = NULL;
	status = prb_cfi_index_read(&header, &memory, &index);
	if (status == PRB_CFI_OK)
		status = prb_cfi_index_find(&index, &memory, pc, &address);
	if (status == PRB_CFI_OK)
		status = prb_cfi_fde_read(&frames, &memory, address, &fde);
	if (status == PRB_CFI_OK)
		status = exercise_fde(&frames, &memory, &fde, machine, pc);
	return status;
}

/** All entries one after another, the first and the last pc of each; at most @p max. */
static inline void exercise_all(struct hostile_target *target, uint16_t machine, bool mapped,
				unsigned max)
{
	struct prb_cfi_memory memory = {.read = read_hostile, .context = target};
	struct prb_cfi_section frames = target->frames;
	struct prb_cfi_fde fde = {};
	uint64_t address = frames.address;

	if (mapped)
		frames.data = NULL;
	for (unsigned i = 0; i < max; i++) {
		uint64_t before = address;

		if (prb_cfi_fde_next(&frames, &memory, &address, &fde) != PRB_CFI_OK)
			return;
		if (address <= before)
			abort();
		(void)!exercise_fde(&frames, &memory, &fde, machine, fde.start);
		(void)!exercise_fde(&frames, &memory, &fde, machine, fde.end - 1);
	}
}

#endif

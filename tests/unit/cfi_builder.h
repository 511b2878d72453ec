/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Writes call frame information by hand, and a made-up memory, for tests.
 */
#ifndef PRB_TESTS_CFI_BUILDER_H
#define PRB_TESTS_CFI_BUILDER_H

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "dwarf/unwind/cfi.h"

/** Bytes that will lie at `base`. */
struct builder {
	uint64_t base;
	size_t length;
	uint8_t bytes[2048];
};

static inline void put(struct builder *b, const void *data, size_t length)
{
	assert(b->length + length <= sizeof(b->bytes));
	if (length)
		memcpy(b->bytes + b->length, data, length);
	b->length += length;
}

static inline void put_fixed(struct builder *b, uint64_t value, size_t width)
{
	put(b, &value, width);
}

static inline void put_uleb(struct builder *b, uint64_t value)
{
	do {
		put_fixed(b, (value & 0x7f) | (value > 0x7f ? 0x80 : 0), 1);
		value >>= 7;
	} while (value);
}

static inline void put_sleb(struct builder *b, int64_t value)
{
	for (;;) {
		uint8_t byte = value & 0x7f;

		value >>= 7;
		if ((value == 0 && !(byte & 0x40)) || (value == -1 && (byte & 0x40))) {
			put_fixed(b, byte, 1);
			return;
		}
		put_fixed(b, byte | 0x80, 1);
	}
}

/** Starts an entry; gives where its length is to be written. */
static inline size_t begin_entry(struct builder *b)
{
	put_fixed(b, 0, 4);
	return b->length - 4;
}

static inline void end_entry(struct builder *b, size_t start)
{
	while (b->length % 8)
		put_fixed(b, 0, 1); /* DW_CFA_nop */

	uint32_t length = (uint32_t)(b->length - start - 4);
	memcpy(b->bytes + start, &length, sizeof(length));
}

struct cie_spec {
	bool debug_frame;
	uint8_t version;	  /**< 0: 1 */
	const char *augmentation; /**< NULL: "zR" in .eh_frame, "" in .debug_frame */
	uint8_t encoding;	  /**< after 'R' */
	const void *data;	  /**< augmentation data, instead of the encoding */
	size_t data_length;
	uint64_t code_align; /**< 0: 1 */
	int64_t data_align;  /**< 0: -8 */
	unsigned ra;	     /**< 0: 16 */
	const void *program;
	size_t program_length;
};

/** Appends a CIE; gives its offset. */
static inline size_t put_cie(struct builder *b, const struct cie_spec *spec)
{
	const char *augmentation = spec->augmentation  ? spec->augmentation
				   : spec->debug_frame ? ""
						       : "zR";
	uint8_t version = spec->version ? spec->version : 1;
	size_t start = begin_entry(b);

	put_fixed(b, spec->debug_frame ? UINT32_MAX : 0, 4);
	put_fixed(b, version, 1);
	put(b, augmentation, strlen(augmentation) + 1);
	if (version == 4)
		put_fixed(b, 8, 2); /* size of addresses, of segment selectors */
	if (strcmp(augmentation, "eh") == 0)
		put_fixed(b, 0, 8);
	put_uleb(b, spec->code_align ? spec->code_align : 1);
	put_sleb(b, spec->data_align ? spec->data_align : -8);
	put_uleb(b, spec->ra ? spec->ra : 16);
	if (spec->data) {
		put_uleb(b, spec->data_length);
		put(b, spec->data, spec->data_length);
	} else if (augmentation[0] == 'z') {
		put_uleb(b, 1);
		put_fixed(b, spec->encoding, 1);
	}
	put(b, spec->program, spec->program_length);
	end_entry(b, start);
	return start;
}

/** Starts an FDE of the CIE at offset @p cie; pointers and program follow. */
static inline size_t begin_fde(struct builder *b, bool debug_frame, size_t cie)
{
	size_t start = begin_entry(b);

	put_fixed(b, debug_frame ? cie : b->length - cie, 4);
	return start;
}

/** A whole FDE with absolute pointers of eight bytes. */
static inline size_t put_fde(struct builder *b, const struct cie_spec *spec, size_t cie,
			     uint64_t pc, uint64_t length, const void *program,
			     size_t program_length)
{
	const char *augmentation = spec->augmentation ? spec->augmentation : "zR";
	size_t start = begin_fde(b, spec->debug_frame, cie);

	put_fixed(b, pc, 8);
	put_fixed(b, length, 8);
	if (!spec->debug_frame && augmentation[0] == 'z')
		put_uleb(b, 0);
	put(b, program, program_length);
	end_entry(b, start);
	return start;
}

/** Memory made of pieces; what lies in none cannot be read. */
struct fake_memory {
	struct {
		uint64_t address;
		size_t size;
		const void *data;
	} pieces[4];
};

static inline bool read_fake(void *context, uint64_t address, void *buffer, size_t length)
{
	const struct fake_memory *memory = context;

	for (unsigned i = 0; i < 4; i++) {
		uint64_t into = address - memory->pieces[i].address;

		if (memory->pieces[i].data && address >= memory->pieces[i].address &&
		    into <= memory->pieces[i].size && length <= memory->pieces[i].size - into) {
			memcpy(buffer, (const uint8_t *)memory->pieces[i].data + into, length);
			return true;
		}
	}
	return false;
}

#endif

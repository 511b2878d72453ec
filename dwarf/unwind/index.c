/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The search table of `.eh_frame_hdr`.
 */
#include "base/checked.h"
#include "dwarf/unwind/cfi.h"
#include "dwarf/unwind/cursor.h"

enum { HEADER_VERSION = 1 };

enum prb_cfi_status prb_cfi_index_read(const struct prb_cfi_section *header,
				       const struct prb_cfi_memory *memory,
				       struct prb_cfi_index *ret)
{
	struct prb_cursor c;

	*ret = (struct prb_cfi_index){.section = *header};
	ret->section.data_base = header->address;
	prb_cursor_init(&c, &ret->section, memory, header->address, header->address + header->size);
	if (prb_cursor_u8(&c) != HEADER_VERSION)
		return c.failed ? prb_cursor_status(&c) : PRB_CFI_UNSUPPORTED;

	uint8_t frame_encoding = prb_cursor_u8(&c);
	uint8_t count_encoding = prb_cursor_u8(&c);
	uint8_t table_encoding = prb_cursor_u8(&c);

	ret->eh_frame = prb_cursor_pointer(&c, frame_encoding);
	if (c.failed)
		return prb_cursor_status(&c);
	if (count_encoding == DW_EH_PE_omit || table_encoding == DW_EH_PE_omit)
		return PRB_CFI_OK;
	ret->count = prb_cursor_pointer(&c, count_encoding);
	if (c.failed)
		return prb_cursor_status(&c);
	ret->table = prb_cursor_address(&c);
	ret->encoding = table_encoding;
	ret->width = (uint8_t)prb_encoding_width(table_encoding);
	if (ret->width == 0) {
		ret->count = 0;
		return PRB_CFI_OK;
	}

	uint64_t room = header->size - (ret->table - header->address);
	ret->count = PRB_MIN(ret->count, room / (2 * ret->width));
	return PRB_CFI_OK;
}

/* Reads the words of entry @entry: where the code starts and where the FDE lies. */
static enum prb_cfi_status read_entry(const struct prb_cfi_index *index,
				      const struct prb_cfi_memory *memory, uint64_t entry,
				      uint64_t *code, uint64_t *fde)
{
	uint64_t width = 2 * index->width;
	uint64_t address = index->table + entry * width;
	struct prb_cursor c;

	prb_cursor_init(&c, &index->section, memory, address, address + width);
	*code = prb_cursor_pointer(&c, index->encoding);
	*fde = prb_cursor_pointer(&c, index->encoding);
	return prb_cursor_status(&c);
}

enum prb_cfi_status prb_cfi_index_find(const struct prb_cfi_index *index,
				       const struct prb_cfi_memory *memory, uint64_t pc,
				       uint64_t *fde_address)
{
	uint64_t low = 0, high = index->count;
	bool found = false;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		uint64_t code, fde;
		enum prb_cfi_status status = read_entry(index, memory, middle, &code, &fde);

		if (status != PRB_CFI_OK)
			return status;
		if (code <= pc) {
			*fde_address = fde;
			found = true;
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return found ? PRB_CFI_OK : PRB_CFI_NOT_FOUND;
}

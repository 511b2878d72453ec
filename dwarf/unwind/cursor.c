/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dwarf/unwind/cursor.h"

#include <string.h>

#include "base/checked.h"

/* Pages differ in whether they can be read, so no fetch crosses from one into the next. */
enum { PAGE = 4096 };

static void fail(struct prb_cursor *c, bool unreadable)
{
	c->failed = true;
	c->unreadable = unreadable;
	c->at = c->limit = c->window;
	c->limit_address = c->end;
}

static bool in_section(const struct prb_cfi_section *section, uint64_t start, uint64_t end)
{
	return start >= section->address && end >= start &&
	       prb_inside(start - section->address, end - start, section->size);
}

void prb_cursor_init(struct prb_cursor *c, const struct prb_cfi_section *section,
		     const struct prb_cfi_memory *memory, uint64_t address, uint64_t end)
{
	c->section = section;
	c->memory = memory;
	c->end = end;
	c->failed = c->unreadable = false;
	prb_cursor_seek(c, address);
}

void prb_cursor_seek(struct prb_cursor *c, uint64_t address)
{
	if (c->failed)
		return;
	if (!in_section(c->section, address, c->end)) {
		fail(c, false);
		return;
	}
	if (c->section->data) {
		const uint8_t *data = c->section->data;

		c->at = data + (address - c->section->address);
		c->limit = data + (c->end - c->section->address);
		c->limit_address = c->end;
	} else {
		c->at = c->limit = c->window;
		c->limit_address = address;
	}
}

bool prb_cursor_fill(struct prb_cursor *c)
{
	uint64_t address = c->limit_address;
	uint64_t length = c->failed ? 0 : c->end - address;

	if (length == 0) {
		fail(c, c->unreadable);
		return false;
	}
	length = PRB_MIN(length, (uint64_t)sizeof(c->window));
	length = PRB_MIN(length, PAGE - address % PAGE);
	if (!c->memory->read(c->memory->context, address, c->window, length)) {
		fail(c, true);
		return false;
	}
	c->at = c->window;
	c->limit = c->window + length;
	c->limit_address = address + length;
	return true;
}

uint64_t prb_cursor_fixed(struct prb_cursor *c, unsigned width)
{
	uint64_t value = 0;

	if ((size_t)(c->limit - c->at) >= width) {
		memcpy(&value, c->at, width);
		c->at += width;
		return value;
	}
	for (unsigned i = 0; i < width; i++)
		value |= (uint64_t)prb_cursor_u8(c) << (8 * i);
	return c->failed ? 0 : value;
}

int64_t prb_cursor_fixed_signed(struct prb_cursor *c, unsigned width)
{
	unsigned unused = 64 - 8 * width;

	return (int64_t)(prb_cursor_fixed(c, width) << unused) >> unused;
}

uint64_t prb_cursor_uleb(struct prb_cursor *c)
{
	uint64_t value = 0;
	unsigned shift = 0;
	uint8_t byte;

	do {
		byte = prb_cursor_u8(c);
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	return value;
}

int64_t prb_cursor_sleb(struct prb_cursor *c)
{
	uint64_t value = 0;
	unsigned shift = 0;
	uint8_t byte;

	do {
		byte = prb_cursor_u8(c);
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	if (shift < 64 && (byte & 0x40))
		value |= ~0ULL << shift;
	return (int64_t)value;
}

void prb_cursor_skip(struct prb_cursor *c, uint64_t length)
{
	uint64_t target;

	if (!prb_add(prb_cursor_address(c), length, &target) || target > c->end)
		fail(c, false);
	else if (length <= (uint64_t)(c->limit - c->at))
		c->at += length;
	else
		prb_cursor_seek(c, target);
}

unsigned prb_encoding_width(uint8_t encoding)
{
	switch (encoding & DW_EH_PE_format) {
	case DW_EH_PE_udata2:
	case DW_EH_PE_sdata2:
		return 2;
	case DW_EH_PE_udata4:
	case DW_EH_PE_sdata4:
		return 4;
	case DW_EH_PE_absptr:
	case DW_EH_PE_signed:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		return 8;
	default:
		return 0;
	}
}

uint64_t prb_cursor_value(struct prb_cursor *c, uint8_t encoding)
{
	unsigned width = prb_encoding_width(encoding);

	if (width)
		return encoding & DW_EH_PE_signed ? (uint64_t)prb_cursor_fixed_signed(c, width)
						  : prb_cursor_fixed(c, width);
	if ((encoding & DW_EH_PE_format) == DW_EH_PE_uleb128)
		return prb_cursor_uleb(c);
	if ((encoding & DW_EH_PE_format) == DW_EH_PE_sleb128)
		return (uint64_t)prb_cursor_sleb(c);
	fail(c, false);
	return 0;
}

/* The base of the number at @address in this encoding; false if there is none. */
static bool pointer_base(const struct prb_cursor *c, uint8_t encoding, uint64_t address,
			 uint64_t *ret)
{
	switch (encoding & DW_EH_PE_application) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_aligned:
		*ret = c->section->bias;
		return true;
	case DW_EH_PE_pcrel:
		*ret = address;
		return true;
	case DW_EH_PE_textrel:
		*ret = c->section->text_base;
		return *ret != 0;
	case DW_EH_PE_datarel:
		*ret = c->section->data_base;
		return *ret != 0;
	default:
		return false;
	}
}

uint64_t prb_cursor_pointer(struct prb_cursor *c, uint8_t encoding)
{
	uint64_t base, value;

	if (encoding == DW_EH_PE_omit)
		return 0;
	if ((encoding & DW_EH_PE_application) == DW_EH_PE_aligned)
		prb_cursor_skip(c, -prb_cursor_address(c) & 7);
	if (!pointer_base(c, encoding, prb_cursor_address(c), &base)) {
		fail(c, false);
		return 0;
	}
	value = prb_cursor_value(c, encoding) + base;
	if (c->failed)
		return 0;
	if ((encoding & DW_EH_PE_indirect) &&
	    !c->memory->read(c->memory->context, value, &value, sizeof(value))) {
		fail(c, true);
		return 0;
	}
	return value;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Reading numbers one after another from a section of CFI, whether its bytes lie in our
 * memory or are fetched from the target, some at a time. Internal to dwarf/unwind/.
 *
 * Failure is sticky: a cursor that has met its end or unreadable memory gives zeros, and is
 * checked once at the end.
 */
#ifndef PRB_DWARF_UNWIND_CURSOR_H
#define PRB_DWARF_UNWIND_CURSOR_H

#include "dwarf/unwind/cfi.h"

enum { PRB_CURSOR_WINDOW = 128 };

struct prb_cursor {
	const struct prb_cfi_section *section;
	const struct prb_cfi_memory *memory;
	uint64_t end;		   /**< address where reading must stop */
	uint64_t limit_address;	   /**< address of the byte at `limit` */
	const uint8_t *at, *limit; /**< bytes at hand */
	bool failed;
	bool unreadable; /**< failed because memory could not be read */
	uint8_t window[PRB_CURSOR_WINDOW];
};

/** Starts at @p address and will not read past @p end; both must lie in the section. */
void prb_cursor_init(struct prb_cursor *c, const struct prb_cfi_section *section,
		     const struct prb_cfi_memory *memory, uint64_t address, uint64_t end);

/** Goes on at @p address, which must lie in the section and not past the cursor's end. */
void prb_cursor_seek(struct prb_cursor *c, uint64_t address);

/** Fetches more bytes; false, and failed, at the end. */
bool prb_cursor_fill(struct prb_cursor *c);

static inline uint64_t prb_cursor_address(const struct prb_cursor *c)
{
	return c->limit_address - (uint64_t)(c->limit - c->at);
}

static inline bool prb_cursor_at_end(const struct prb_cursor *c)
{
	return c->failed || prb_cursor_address(c) >= c->end;
}

static inline uint8_t prb_cursor_u8(struct prb_cursor *c)
{
	if (c->at == c->limit && !prb_cursor_fill(c))
		return 0;
	return *c->at++;
}

/** An unsigned number of @p width bytes, 1 to 8. */
uint64_t prb_cursor_fixed(struct prb_cursor *c, unsigned width);

/** As above, with its sign extended. */
int64_t prb_cursor_fixed_signed(struct prb_cursor *c, unsigned width);

uint64_t prb_cursor_uleb(struct prb_cursor *c);
int64_t prb_cursor_sleb(struct prb_cursor *c);

void prb_cursor_skip(struct prb_cursor *c, uint64_t length);

/** A number in the format of the low four bits of a DW_EH_PE_* encoding. */
uint64_t prb_cursor_value(struct prb_cursor *c, uint8_t encoding);

/** An encoded pointer; fails for encodings that are not defined or lack their base. */
uint64_t prb_cursor_pointer(struct prb_cursor *c, uint8_t encoding);

/** Bytes that a number in this encoding takes, 0 if that depends on the number. */
unsigned prb_encoding_width(uint8_t encoding);

/** Why it failed. */
static inline enum prb_cfi_status prb_cursor_status(const struct prb_cursor *c)
{
	if (!c->failed)
		return PRB_CFI_OK;
	return c->unreadable ? PRB_CFI_UNREADABLE : PRB_CFI_BAD;
}

/* Pointer encodings of the Linux Standard Base. */
enum {
	DW_EH_PE_absptr = 0x00,
	DW_EH_PE_uleb128 = 0x01,
	DW_EH_PE_udata2 = 0x02,
	DW_EH_PE_udata4 = 0x03,
	DW_EH_PE_udata8 = 0x04,
	DW_EH_PE_signed = 0x08,
	DW_EH_PE_sleb128 = 0x09,
	DW_EH_PE_sdata2 = 0x0a,
	DW_EH_PE_sdata4 = 0x0b,
	DW_EH_PE_sdata8 = 0x0c,
	DW_EH_PE_format = 0x0f,
	DW_EH_PE_pcrel = 0x10,
	DW_EH_PE_textrel = 0x20,
	DW_EH_PE_datarel = 0x30,
	DW_EH_PE_funcrel = 0x40,
	DW_EH_PE_aligned = 0x50,
	DW_EH_PE_application = 0x70,
	DW_EH_PE_indirect = 0x80,
	DW_EH_PE_omit = 0xff,
};

#endif

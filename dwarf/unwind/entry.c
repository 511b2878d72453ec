/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Entries of `.eh_frame` and `.debug_frame`: CIEs and FDEs.
 */
#include <string.h>

#include "base/checked.h"
#include "dwarf/unwind/cfi.h"
#include "dwarf/unwind/cursor.h"

/* The longest entries known have some 100 KB; what claims more would only cost time. */
enum { MAX_ENTRY = 16 << 20, MAX_AUGMENTATION = 16 };

/* The head of both kinds of entry. */
struct head {
	uint64_t end;	     /* address behind the entry */
	uint64_t id;	     /* CIE pointer, or the id of a CIE */
	uint64_t id_address; /* where it lies: what CIE pointers are relative to in .eh_frame */
	bool cie;
};

/* Reads length and id, and narrows @c to the entry. */
static enum prb_cfi_status read_head(struct prb_cursor *c, struct head *head)
{
	uint64_t length = prb_cursor_fixed(c, 4);
	bool wide = length == 0xffffffff;

	if (wide)
		length = prb_cursor_fixed(c, 8);
	if (c->failed)
		return prb_cursor_status(c);
	if (length == 0)
		return PRB_CFI_END;

	head->id_address = prb_cursor_address(c);
	if (length > MAX_ENTRY ||
	    !prb_inside(head->id_address - c->section->address, length, c->section->size))
		return PRB_CFI_BAD;
	head->end = head->id_address + length;
	/* Only .debug_frame has wide ids and marks its CIEs by all bits set. */
	if (c->section->debug_frame && wide) {
		head->id = prb_cursor_fixed(c, 8);
		head->cie = head->id == UINT64_MAX;
	} else {
		head->id = prb_cursor_fixed(c, 4);
		head->cie = head->id == (c->section->debug_frame ? UINT32_MAX : 0);
	}
	if (prb_cursor_address(c) > head->end)
		return PRB_CFI_BAD;

	/* Bytes already at hand past the entry must not be seen. */
	uint64_t here = prb_cursor_address(c);
	c->end = head->end;
	if (c->limit_address > c->end) {
		c->limit -= c->limit_address - c->end;
		c->limit_address = c->end;
	}
	return here <= c->end ? prb_cursor_status(c) : PRB_CFI_BAD;
}

/* Reads the augmentation string; a longer one than any known is unsupported. */
static enum prb_cfi_status read_augmentation(struct prb_cursor *c, char *text)
{
	for (unsigned i = 0; i < MAX_AUGMENTATION; i++) {
		text[i] = (char)prb_cursor_u8(c);
		if (!text[i])
			return prb_cursor_status(c);
	}
	return PRB_CFI_UNSUPPORTED;
}

/* Reads what the letters after 'z' stand for. */
static enum prb_cfi_status read_augmentation_data(struct prb_cursor *c, const char *letters,
						  struct prb_cfi_cie *cie)
{
	uint64_t length = prb_cursor_uleb(c);
	uint64_t end;

	if (c->failed || !prb_add(prb_cursor_address(c), length, &end) || end > c->end)
		return PRB_CFI_BAD;
	for (; *letters; letters++) {
		uint8_t encoding;

		switch (*letters) {
		case 'R':
			cie->encoding = prb_cursor_u8(c);
			break;
		case 'P':
			encoding = prb_cursor_u8(c);
			if (encoding == DW_EH_PE_aligned)
				prb_cursor_skip(c, (-prb_cursor_address(c) & 7) + 8);
			else if (encoding != DW_EH_PE_omit)
				prb_cursor_value(c, encoding);
			break;
		case 'L':
			prb_cursor_u8(c);
			break;
		case 'S':
			cie->signal_frame = true;
			break;
		default: /* 'B' (key of signatures), 'G' (tagged stack) have no data */
			break;
		}
	}
	if (c->failed || prb_cursor_address(c) > end)
		return PRB_CFI_BAD;
	prb_cursor_skip(c, end - prb_cursor_address(c));
	return prb_cursor_status(c);
}

static enum prb_cfi_status read_cie(const struct prb_cfi_section *section,
				    const struct prb_cfi_memory *memory, uint64_t address,
				    struct prb_cfi_cie *cie)
{
	char augmentation[MAX_AUGMENTATION];
	enum prb_cfi_status status;
	struct prb_cursor c;
	struct head head;

	*cie = (struct prb_cfi_cie){.encoding = DW_EH_PE_absptr};
	prb_cursor_init(&c, section, memory, address, section->address + section->size);
	status = read_head(&c, &head);
	if (status != PRB_CFI_OK)
		return status == PRB_CFI_END ? PRB_CFI_BAD : status;
	if (!head.cie)
		return PRB_CFI_BAD;

	uint8_t version = prb_cursor_u8(&c);
	if (!c.failed && version != 1 && version != 3 && version != 4)
		return PRB_CFI_UNSUPPORTED;
	status = read_augmentation(&c, augmentation);
	if (status != PRB_CFI_OK)
		return status;
	if (version == 4 && (prb_cursor_u8(&c) != 8 || prb_cursor_u8(&c) != 0))
		return PRB_CFI_UNSUPPORTED; /* size of addresses and of segment selectors */
	if (strcmp(augmentation, "eh") == 0)
		prb_cursor_skip(&c, 8);
	cie->code_align = prb_cursor_uleb(&c);
	cie->data_align = prb_cursor_sleb(&c);
	uint64_t ra = version == 1 ? prb_cursor_u8(&c) : prb_cursor_uleb(&c);
	if (c.failed)
		return prb_cursor_status(&c);
	if (ra >= PRB_REG_COUNT)
		return PRB_CFI_UNSUPPORTED;
	cie->ra = (uint32_t)ra;

	if (augmentation[0] == 'z') {
		cie->sized = true;
		status = read_augmentation_data(&c, augmentation + 1, cie);
		if (status != PRB_CFI_OK)
			return status;
	} else if (augmentation[0] && strcmp(augmentation, "eh") != 0) {
		return PRB_CFI_UNSUPPORTED;
	}
	cie->program = prb_cursor_address(&c);
	cie->program_end = head.end;
	cie->address = address;
	return PRB_CFI_OK;
}

/* Reads what follows the head of the FDE at @address. */
static enum prb_cfi_status read_fde(struct prb_cursor *c, const struct head *head, uint64_t address,
				    struct prb_cfi_fde *fde)
{
	const struct prb_cfi_section *section = c->section;
	uint64_t cie =
		section->debug_frame ? section->address + head->id : head->id_address - head->id;
	uint64_t length;

	if (fde->cie.address != cie || cie == 0) {
		enum prb_cfi_status status = read_cie(section, c->memory, cie, &fde->cie);

		if (status != PRB_CFI_OK) {
			fde->cie.address = 0;
			return status;
		}
	}
	fde->start = prb_cursor_pointer(c, fde->cie.encoding);
	length = prb_cursor_value(c, fde->cie.encoding);
	if (fde->cie.sized)
		prb_cursor_skip(c, prb_cursor_uleb(c));
	if (c->failed)
		return prb_cursor_status(c);
	if (!prb_add(fde->start, length, &fde->end))
		return PRB_CFI_BAD;
	fde->address = address;
	fde->program = prb_cursor_address(c);
	fde->program_end = head->end;
	return PRB_CFI_OK;
}

enum prb_cfi_status prb_cfi_fde_read(const struct prb_cfi_section *section,
				     const struct prb_cfi_memory *memory, uint64_t address,
				     struct prb_cfi_fde *ret)
{
	enum prb_cfi_status status;
	struct prb_cursor c;
	struct head head;

	prb_cursor_init(&c, section, memory, address, section->address + section->size);
	status = read_head(&c, &head);
	if (status == PRB_CFI_END || (status == PRB_CFI_OK && head.cie))
		return PRB_CFI_BAD;
	return status == PRB_CFI_OK ? read_fde(&c, &head, address, ret) : status;
}

enum prb_cfi_status prb_cfi_fde_next(const struct prb_cfi_section *section,
				     const struct prb_cfi_memory *memory, uint64_t *address,
				     struct prb_cfi_fde *ret)
{
	uint64_t end = section->address + section->size;

	while (*address < end) {
		enum prb_cfi_status status;
		struct prb_cursor c;
		struct head head;

		prb_cursor_init(&c, section, memory, *address, end);
		status = read_head(&c, &head);
		if (status != PRB_CFI_OK)
			return status;

		uint64_t entry = *address;
		*address = head.end;
		if (!head.cie && read_fde(&c, &head, entry, ret) == PRB_CFI_OK)
			return PRB_CFI_OK;
	}
	return PRB_CFI_END;
}

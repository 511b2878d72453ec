/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dwarf/elf/build_id.h"

#include <elf.h>
#include <stdint.h>
#include <string.h>

#include "base/checked.h"

static void to_hex(const uint8_t *bytes, size_t count, char *text)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < count; i++) {
		*text++ = digits[bytes[i] >> 4];
		*text++ = digits[bytes[i] & 15];
	}
	*text = '\0';
}

bool prb_build_id_from_notes(const void *notes, size_t size, char text[PRB_BUILD_ID_TEXT_SIZE])
{
	const uint8_t *bytes = notes;
	uint64_t at = 0;

	while (prb_inside(at, sizeof(Elf64_Nhdr), size)) {
		Elf64_Nhdr note;

		memcpy(&note, bytes + at, sizeof(note));
		at += sizeof(note);

		/* Name and description are padded to four bytes; the sizes are 32 bits wide, so
		 * that nothing can wrap here. */
		uint64_t name = at, description = name + (((uint64_t)note.n_namesz + 3) & ~3ULL);
		if (!prb_inside(description, note.n_descsz, size))
			return false;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
		    !memcmp(bytes + name, "GNU", 4) && note.n_descsz &&
		    note.n_descsz <= PRB_BUILD_ID_MAX) {
			to_hex(bytes + description, note.n_descsz, text);
			return true;
		}
		at = description + (((uint64_t)note.n_descsz + 3) & ~3ULL);
	}
	return false;
}

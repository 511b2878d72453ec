/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Walking the notes of an ELF file: hostile bytes, no allocation.
 */
#ifndef PRB_TARGET_MEM_NOTE_H
#define PRB_TARGET_MEM_NOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct prb_note {
	uint32_t type;
	const char *name; /**< name_length bytes, the terminating NUL among them */
	size_t name_length;
	const char *data;
	size_t length;
};

/**
 * Gives the note at @p *offset of the @p size bytes at @p bytes and moves behind it; false at the
 * end or at a note that does not fit. @p align: 4, or 8 for segments so aligned.
 */
static inline bool prb_note_next(const char *bytes, size_t size, size_t align, size_t *offset,
				 struct prb_note *ret)
{
	uint32_t head[3]; /* name size, data size, type */
	size_t left = *offset <= size ? size - *offset : 0;

	if (left < sizeof(head))
		return false;
	memcpy(head, bytes + *offset, sizeof(head));
	left -= sizeof(head);

	size_t name = ((size_t)head[0] + sizeof(head) + align - 1) / align * align - sizeof(head);
	size_t data = ((size_t)head[1] + align - 1) / align * align;
	if (name > left || head[1] > left - name)
		return false;
	ret->name = bytes + *offset + sizeof(head);
	ret->name_length = head[0];
	ret->data = ret->name + name;
	ret->length = head[1];
	ret->type = head[2];
	/* The last one may lack its padding. */
	*offset += sizeof(head) + name + (data < left - name ? data : left - name);
	return true;
}

static inline bool prb_note_is(const struct prb_note *note, const char *name)
{
	size_t length = strlen(name);

	return note->name_length >= length && !memcmp(note->name, name, length) &&
	       (note->name_length == length || !note->name[length]);
}

#endif

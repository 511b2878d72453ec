/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Mutates whole ELF files for their fuzzers: mostly the content of one section or segment in
 * place, so that the headers still lead to it.
 */
#ifndef PRB_TESTS_ELF_FILE_H
#define PRB_TESTS_ELF_FILE_H

#include <elf.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "dwarf/elf/elf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

enum { ELF_FILE_PIECES = 128 };

struct elf_file_piece {
	size_t offset, size;
};

static inline void elf_file_add(struct elf_file_piece *pieces, size_t *count, uint64_t offset,
				uint64_t length, size_t size)
{
	if (*count < ELF_FILE_PIECES && length && prb_inside(offset, length, size))
		pieces[(*count)++] = (struct elf_file_piece){offset, length};
}

/** Headers, tables of headers, sections, and segments that are no code or data. */
static inline size_t elf_file_pieces(const uint8_t *data, size_t size,
				     struct elf_file_piece *pieces)
{
	Elf64_Ehdr header;
	Elf64_Shdr section;
	Elf64_Phdr segment;
	size_t count = 0;

	if (size < sizeof(header) || memcmp(data, ELFMAG, SELFMAG))
		return 0;
	memcpy(&header, data, sizeof(header));
	elf_file_add(pieces, &count, 0, sizeof(header), size);
	elf_file_add(pieces, &count, header.e_shoff, header.e_shnum * sizeof(section), size);
	elf_file_add(pieces, &count, header.e_phoff, header.e_phnum * sizeof(segment), size);
	for (unsigned i = 0; i < header.e_shnum; i++) {
		uint64_t at = header.e_shoff + i * sizeof(section);

		if (!prb_inside(at, sizeof(section), size))
			break;
		memcpy(&section, data + at, sizeof(section));
		if (section.sh_type != SHT_NOBITS)
			elf_file_add(pieces, &count, section.sh_offset, section.sh_size, size);
	}
	for (unsigned i = 0; i < header.e_phnum; i++) {
		uint64_t at = header.e_phoff + i * sizeof(segment);

		if (!prb_inside(at, sizeof(segment), size))
			break;
		memcpy(&segment, data + at, sizeof(segment));
		if (segment.p_type != PT_LOAD)
			elf_file_add(pieces, &count, segment.p_offset, segment.p_filesz, size);
	}
	return count;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
	struct elf_file_piece pieces[ELF_FILE_PIECES];
	size_t count = seed % 32 ? elf_file_pieces(data, size, pieces) : 0;

	if (!count)
		return LLVMFuzzerMutate(data, size, max_size);

	struct elf_file_piece piece = pieces[seed / 32 % count];
	LLVMFuzzerMutate(data + piece.offset, piece.size, piece.size);
	return size;
}

/** The bytes as a file; -1 on failure. */
static inline int elf_file_fd(const uint8_t *data, size_t size)
{
	prb_auto_close int fd = memfd_create("elf", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		return -1;
	return prb_steal_fd(&fd);
}

/** The bytes as an opened ELF file; NULL if invalid. */
static inline struct prb_elf *elf_file_open(const uint8_t *data, size_t size)
{
	int fd = elf_file_fd(data, size);
	struct prb_elf *elf = NULL;

	if (fd < 0)
		return NULL;
	struct prb_error *err = prb_elf_open(fd, "input", &elf);
	if (err)
		elf = NULL;
	prb_error_destroy(err);
	return elf;
}

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dwarf/elf/elf_internal.h"

#include <stdatomic.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "dwarf/elf/inflate.h"

static const uint64_t MAX_CLAIMED = 1ULL << 30;
static _Atomic uint64_t claimed; /* by all files that are open */

const void *prb_elf_bytes(const struct prb_elf *elf, uint64_t offset, uint64_t length)
{
	if (!prb_inside(offset, length, elf->size) ||
	    (elf->copy.room && !prb_copy_need((struct prb_copy *)&elf->copy, offset, length)))
		return NULL;
	return elf->bytes + offset;
}

const void *prb_elf_bytes_at(const struct prb_elf *elf, uint64_t address, uint64_t length)
{
	for (size_t i = 0; i < elf->segment_count; i++) {
		const GElf_Phdr *segment = &elf->segments[i];
		uint64_t into = address - segment->p_vaddr, offset;

		if (segment->p_type == PT_LOAD && address >= segment->p_vaddr &&
		    prb_inside(into, length, segment->p_filesz) &&
		    prb_add(segment->p_offset, into, &offset))
			return prb_elf_bytes(elf, offset, length);
	}
	return NULL;
}

bool prb_elf_section_header(const struct prb_elf *elf, size_t index, GElf_Shdr *ret)
{
	Elf_Scn *section = elf_getscn(elf->handle, index);

	return section && gelf_getshdr(section, ret);
}

bool prb_elf_section_of_type(const struct prb_elf *elf, uint32_t type, GElf_Shdr *ret)
{
	for (size_t i = 1; i < elf->section_count; i++)
		if (prb_elf_section_header(elf, i, ret) && ret->sh_type == type)
			return true;
	return false;
}

bool prb_elf_code_range(const struct prb_elf *elf, uint64_t address, uint64_t *start, uint64_t *end)
{
	for (size_t i = 1; i < elf->section_count; i++) {
		GElf_Shdr section;

		if (prb_elf_section_header(elf, i, &section) && section.sh_flags & SHF_EXECINSTR &&
		    address >= section.sh_addr && address - section.sh_addr < section.sh_size) {
			*start = section.sh_addr;
			return prb_add(section.sh_addr, section.sh_size, end);
		}
	}
	for (size_t i = 0; elf->section_count < 2 && i < elf->segment_count; i++) {
		const GElf_Phdr *segment = &elf->segments[i];

		if (segment->p_type == PT_LOAD && segment->p_flags & PF_X &&
		    address >= segment->p_vaddr && address - segment->p_vaddr < segment->p_memsz) {
			*start = segment->p_vaddr;
			return prb_add(segment->p_vaddr, segment->p_memsz, end);
		}
	}
	return false;
}

static struct prb_error *read_segments(struct prb_elf *elf)
{
	size_t count;

	if (elf_getphdrnum(elf->handle, &count))
		return prb_error_create(PRB_ERROR_BAD_DATA, "%s: bad program headers: %s",
					elf->name, elf_errmsg(-1));
	if (!count)
		return NULL;
	/* libelf has made sure that so many fit into the file. */
	elf->segments = calloc(count, sizeof(*elf->segments));
	if (!elf->segments)
		return prb_error_nomem();
	for (size_t i = 0; i < count; i++) {
		if (!gelf_getphdr(elf->handle, i, &elf->segments[i]))
			return prb_error_create(PRB_ERROR_BAD_DATA, "%s: bad program headers: %s",
						elf->name, elf_errmsg(-1));
		elf->segment_count++;
	}
	return NULL;
}

/** Finds the names of the sections; a file whose section headers are broken has none. */
static void read_section_names(struct prb_elf *elf)
{
	GElf_Shdr names;
	size_t index;

	if (elf_getshdrnum(elf->handle, &elf->section_count) ||
	    elf_getshdrstrndx(elf->handle, &index) || !prb_elf_section_header(elf, index, &names) ||
	    names.sh_type == SHT_NOBITS) {
		elf->section_count = 0;
		return;
	}
	elf->section_names = prb_elf_bytes(elf, names.sh_offset, names.sh_size);
	elf->section_names_size = names.sh_size;
	if (!elf->section_names)
		elf->section_count = 0;
}

static struct prb_error *read_headers(struct prb_elf *elf)
{
	size_t size;
	const char *ident = elf->handle ? elf_getident(elf->handle, NULL) : NULL;

	if (!ident || elf_kind(elf->handle) != ELF_K_ELF)
		return prb_error_create(PRB_ERROR_UNSUPPORTED, "%s: not an ELF file", elf->name);
	if (ident[EI_CLASS] != ELFCLASS64 || ident[EI_DATA] != ELFDATA2LSB)
		return prb_error_create(PRB_ERROR_UNSUPPORTED,
					"%s: not a 64-bit little-endian ELF file", elf->name);
	elf->bytes = (const uint8_t *)elf_rawfile(elf->handle, &size);
	elf->size = size;
	if (!elf->bytes || !gelf_getehdr(elf->handle, &elf->header))
		return prb_error_create(PRB_ERROR_BAD_DATA, "%s: %s", elf->name, elf_errmsg(-1));
	PRB_TRY(read_segments(elf));
	read_section_names(elf);
	return NULL;
}

static void close_guard(struct prb_elf **elf)
{
	prb_elf_close(*elf);
}

/** Copies what libelf reads: all headers. It finds out itself where they exclude each other. */
static void copy_headers(struct prb_copy *copy)
{
	const Elf64_Ehdr *header = (const void *)copy->room;
	uint64_t sections, segments, at;
	Elf64_Shdr first;

	if (copy->size < sizeof(*header) || !prb_copy_need(copy, 0, sizeof(*header)))
		return;
	sections = header->e_shnum;
	segments = header->e_phnum;
	at = header->e_shoff;
	if (at && prb_inside(at, sizeof(first), copy->size) &&
	    prb_copy_need(copy, at, sizeof(first))) {
		memcpy(&first, copy->room + at, sizeof(first));
		sections = sections ? sections : first.sh_size;
		segments = segments == PN_XNUM ? first.sh_info : segments;
		if (sections <= copy->size / sizeof(first) &&
		    prb_inside(at, sections * sizeof(first), copy->size))
			prb_copy_need(copy, at, sections * sizeof(first));
	}
	if (prb_inside(header->e_phoff, segments * sizeof(Elf64_Phdr), copy->size))
		prb_copy_need(copy, header->e_phoff, segments * sizeof(Elf64_Phdr));
}

static struct prb_error *open_elf(int fd, void *memory, size_t size, const char *name,
				  struct prb_elf **ret)
{
	__attribute__((cleanup(close_guard))) struct prb_elf *elf = calloc(1, sizeof(*elf));

	if (elf)
		elf->name = strdup(name);
	if (!elf || !elf->name) {
		free(memory);
		if (fd >= 0)
			close(fd);
		if (elf)
			elf->fd = -1;
		return prb_error_nomem();
	}
	elf->fd = fd;
	elf->memory = memory;

	elf_version(EV_CURRENT);
	if (memory) {
		elf->handle = elf_memory(memory, size);
	} else if ((elf->safe = prb_file_is_safe(fd, name))) {
		elf->handle = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	} else {
		PRB_TRY(prb_copy_init(fd, name, &elf->copy));
		copy_headers(&elf->copy);
		elf->handle = elf_memory((char *)elf->copy.room, elf->copy.size);
	}
	PRB_TRY(read_headers(elf));
	*ret = prb_steal(&elf);
	return NULL;
}

struct prb_error *prb_elf_open(int fd, const char *name, struct prb_elf **ret)
{
	return open_elf(fd, NULL, 0, name, ret);
}

struct prb_error *prb_elf_open_memory(void *data, size_t size, const char *name,
				      struct prb_elf **ret)
{
	return open_elf(-1, data, size, name, ret);
}

void prb_elf_close(struct prb_elf *elf)
{
	struct prb_inflated *inflated;

	if (!elf)
		return;
	atomic_fetch_sub(&claimed, elf->claimed);
	prb_elf_close(elf->mini);
	prb_symbol_index_deinit(&elf->index);
	prb_vec_each (inflated, &elf->inflated)
		free(inflated->data);
	prb_vec_free(&elf->inflated);
	free(elf->segments);
	elf_end(elf->handle);
	prb_copy_deinit(&elf->copy);
	free(elf->memory);
	if (elf->fd >= 0)
		close(elf->fd);
	free(elf->name);
	free(elf);
}

int prb_elf_fd(const struct prb_elf *elf)
{
	return elf->fd;
}

const char *prb_elf_name(const struct prb_elf *elf)
{
	return elf->name;
}

bool prb_elf_is_safe(const struct prb_elf *elf)
{
	return elf->safe;
}

/** Notes of sections first: a separate debug file keeps those, but not what its segments say. */
static void find_build_id(struct prb_elf *elf)
{
	for (size_t i = 1; i < elf->section_count; i++) {
		GElf_Shdr section;

		if (!prb_elf_section_header(elf, i, &section) || section.sh_type != SHT_NOTE)
			continue;
		const void *notes = prb_elf_bytes(elf, section.sh_offset, section.sh_size);
		if (notes && prb_build_id_from_notes(notes, section.sh_size, elf->build_id))
			return;
	}
	for (size_t i = 0; elf->section_count < 2 && i < elf->segment_count; i++) {
		const GElf_Phdr *segment = &elf->segments[i];
		const void *notes = NULL;

		if (segment->p_type == PT_NOTE)
			notes = prb_elf_bytes(elf, segment->p_offset, segment->p_filesz);
		if (notes && prb_build_id_from_notes(notes, segment->p_filesz, elf->build_id))
			return;
	}
}

const char *prb_elf_build_id(struct prb_elf *elf)
{
	if (!elf->tried_build_id)
		find_build_id(elf);
	elf->tried_build_id = true;
	return elf->build_id;
}

static bool find_section(const struct prb_elf *elf, const char *name, size_t *index, GElf_Shdr *ret)
{
	size_t size = strlen(name) + 1;

	for (size_t i = 1; i < elf->section_count; i++)
		if (prb_elf_section_header(elf, i, ret) &&
		    prb_inside(ret->sh_name, size, elf->section_names_size) &&
		    !memcmp(elf->section_names + ret->sh_name, name, size)) {
			*index = i;
			return true;
		}
	return false;
}

bool prb_elf_has_section(struct prb_elf *elf, const char *name)
{
	GElf_Shdr section;
	size_t index;

	return find_section(elf, name, &index, &section) && section.sh_type != SHT_NOBITS &&
	       section.sh_size;
}

struct prb_error *prb_elf_claim(struct prb_elf *elf, uint64_t size)
{
	uint64_t before = atomic_load(&claimed);

	if (elf->safe)
		return NULL;
	do {
		if (size > MAX_CLAIMED - before)
			return prb_error_create(PRB_ERROR_UNSUPPORTED,
						"%s: %llu bytes of debug information are too many "
						"from a file that other users can change",
						elf->name, (unsigned long long)size);
	} while (!atomic_compare_exchange_weak(&claimed, &before, before + size));
	elf->claimed += size;
	return NULL;
}

uint64_t prb_elf_debug_size(struct prb_elf *elf)
{
	static const char start[] = ".debug_", packed[] = ".zdebug_";
	uint64_t sum = 0;

	for (size_t i = 1; i < elf->section_count; i++) {
		const void *content;
		GElf_Shdr section;
		uint64_t size;

		if (!prb_elf_section_header(elf, i, &section) || section.sh_type == SHT_NOBITS ||
		    !prb_inside(section.sh_name, sizeof(packed), elf->section_names_size))
			continue;
		const char *name = elf->section_names + section.sh_name;
		size = section.sh_size;
		if (section.sh_flags & SHF_COMPRESSED) {
			content = prb_elf_bytes(elf, section.sh_offset,
						PRB_MIN(size, sizeof(Elf64_Chdr)));
			size = content ? prb_inflate_size(content, size) : 0;
		}
		if (!memcmp(name, packed, sizeof(packed) - 1))
			return UINT64_MAX; /* an old form, which has its size elsewhere */
		if (!memcmp(name, start, sizeof(start) - 1) && !prb_add(sum, size, &sum))
			return UINT64_MAX;
	}
	return sum;
}

/** The content of a compressed section, decompressed once. */
static struct prb_error *inflate(struct prb_elf *elf, size_t index, const void *data,
				 uint64_t *size, const void **ret)
{
	struct prb_inflated *inflated;

	prb_vec_each (inflated, &elf->inflated)
		if (inflated->section == index) {
			*size = inflated->size;
			*ret = inflated->data;
			return NULL;
		}

	void *content;
	PRB_TRY(prb_elf_claim(elf, prb_inflate_size(data, *size)));
	PRB_TRY(prb_inflate_section(data, *size, &content, size));
	inflated = prb_vec_push(&elf->inflated);
	if (!inflated) {
		free(content);
		return prb_error_nomem();
	}
	*inflated = (struct prb_inflated){.section = index, .data = content, .size = *size};
	*ret = content;
	return NULL;
}

/** Without section headers: finds the parts that program headers locate, too. */
static bool section_from_segment(const struct prb_elf *elf, const char *name, GElf_Phdr *ret)
{
	uint32_t type = !strcmp(name, ".eh_frame_hdr") ? PT_GNU_EH_FRAME
			: !strcmp(name, ".dynamic")    ? PT_DYNAMIC
						       : PT_NULL;

	for (size_t i = 0; elf->section_count < 2 && type && i < elf->segment_count; i++)
		if (elf->segments[i].p_type == type) {
			*ret = elf->segments[i];
			return true;
		}
	return false;
}

struct prb_error *prb_elf_section(struct prb_elf *elf, const char *name, uint64_t *address,
				  uint64_t *size, const void **data)
{
	GElf_Shdr section = {};
	GElf_Phdr segment;
	size_t index = 0;
	const void *content = NULL;

	if (section_from_segment(elf, name, &segment)) {
		section.sh_type = SHT_PROGBITS;
		section.sh_addr = segment.p_vaddr;
		section.sh_offset = segment.p_offset;
		section.sh_size = segment.p_filesz;
	} else if (!find_section(elf, name, &index, &section)) {
		return prb_error_create(PRB_ERROR_NOT_FOUND, "%s: no section %s", elf->name, name);
	}
	uint64_t content_size = section.sh_size;
	if (section.sh_type != SHT_NOBITS && content_size) {
		content = prb_elf_bytes(elf, section.sh_offset, content_size);
		if (!content)
			return prb_error_create(
				PRB_ERROR_BAD_DATA, "%s: section %s %s", elf->name, name,
				prb_inside(section.sh_offset, content_size, elf->size)
					? "cannot be read"
					: "lies beyond the end of the file");
		if (section.sh_flags & SHF_COMPRESSED && (size || data))
			PRB_TRY(prb_error_prefix(
				inflate(elf, index, content, &content_size, &content),
				"%s: section %s", elf->name, name));
	}
	if (address)
		*address = section.sh_addr;
	if (size)
		*size = content_size;
	if (data)
		*data = content;
	return NULL;
}

struct prb_error *prb_elf_offset_to_address(struct prb_elf *elf, uint64_t offset, uint64_t *ret)
{
	for (size_t i = 0; i < elf->segment_count; i++) {
		const GElf_Phdr *segment = &elf->segments[i];

		if (segment->p_type == PT_LOAD && offset >= segment->p_offset &&
		    offset - segment->p_offset < segment->p_filesz &&
		    prb_add(segment->p_vaddr, offset - segment->p_offset, ret))
			return NULL;
	}
	return prb_error_create(PRB_ERROR_NOT_FOUND, "%s: offset %#llx is not loaded", elf->name,
				(unsigned long long)offset);
}

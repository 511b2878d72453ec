/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "target/mem/local_file.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/log.h"
#include "target/mem/note.h"

enum { MAX_NOTES = 64 << 10, MAX_PHDRS = 256 };

/* Bytes of an ELF image: in a file, or mapped into memory. */
struct image {
	int fd;		     /* -1 for memory */
	struct prb_mem *mem; /* NULL for a file */
	uint64_t base;	     /* memory: where offset 0 lies */
	uint64_t bias;	     /* memory: run-time address minus address in the file */
};

static bool read_image(const struct image *image, uint64_t offset, void *data, size_t length)
{
	if (!image->mem)
		return pread(image->fd, data, length, (off_t)offset) == (ssize_t)length;

	prb_auto_error struct prb_error *err =
		prb_mem_read(image->mem, image->base + offset, data, length);
	return !err;
}

static bool read_notes(const struct image *image, const Elf64_Phdr *ph, void *data, size_t length)
{
	if (!image->mem)
		return read_image(image, ph->p_offset, data, length);

	prb_auto_error struct prb_error *err =
		prb_mem_read(image->mem, image->bias + ph->p_vaddr, data, length);
	return !err;
}

static bool find_build_id(const struct image *image, const Elf64_Phdr *ph, struct prb_build_id *ret)
{
	size_t length = ph->p_filesz;

	if (!length || length > MAX_NOTES)
		return false;
	prb_auto_free char *data = malloc(length);
	if (!data || !read_notes(image, ph, data, length))
		return false;

	struct prb_note note;
	for (size_t offset = 0;
	     prb_note_next(data, length, ph->p_align == 8 ? 8 : 4, &offset, &note);) {
		if (note.type != NT_GNU_BUILD_ID || !prb_note_is(&note, "GNU") || !note.length ||
		    note.length > sizeof(ret->bytes))
			continue;
		ret->length = note.length;
		memcpy(ret->bytes, note.data, note.length);
		return true;
	}
	return false;
}

static bool is_elf(const Elf64_Ehdr *eh)
{
	return !memcmp(eh->e_ident, ELFMAG, SELFMAG) && eh->e_ident[EI_CLASS] == ELFCLASS64 &&
	       eh->e_ident[EI_DATA] == ELFDATA2LSB;
}

static void build_id(struct image *image, struct prb_build_id *ret)
{
	Elf64_Ehdr eh;
	Elf64_Phdr ph[MAX_PHDRS];

	ret->length = 0;
	if (!read_image(image, 0, &eh, sizeof(eh)) || !is_elf(&eh) ||
	    eh.e_phentsize != sizeof(*ph) || eh.e_phnum > MAX_PHDRS ||
	    !read_image(image, eh.e_phoff, ph, eh.e_phnum * sizeof(*ph)))
		return;
	image->bias = image->base;
	for (unsigned i = 0; i < eh.e_phnum; i++) {
		if (ph[i].p_type == PT_LOAD) {
			image->bias = image->base + ph[i].p_offset - ph[i].p_vaddr;
			break;
		}
	}
	for (unsigned i = 0; i < eh.e_phnum; i++)
		if (ph[i].p_type == PT_NOTE && find_build_id(image, &ph[i], ret))
			return;
}

void prb_build_id_in_memory(struct prb_mem *mem, uint64_t base, struct prb_build_id *ret)
{
	struct image image = {.fd = -1, .mem = mem, .base = base};

	build_id(&image, ret);
}

void prb_build_id_of_file(int fd, struct prb_build_id *ret)
{
	struct image image = {.fd = fd};

	build_id(&image, ret);
}

bool prb_local_file_base(const struct prb_maps *maps, const struct prb_map *map, uint64_t *ret)
{
	/* The nearest one below: the same file may be mapped several times. */
	for (size_t i = (size_t)(map - maps->list.items) + 1; i-- > 0;) {
		const struct prb_map *below = &maps->list.items[i];

		if (below->offset == 0 && !strcmp(below->path, map->path)) {
			*ret = below->start;
			return true;
		}
	}
	return false;
}

static void put_hex(struct prb_str *s, const struct prb_build_id *id)
{
	for (size_t i = 0; i < id->length; i++)
		prb_str_printf(s, "%02x", id->bytes[i]);
}

static struct prb_error *other_build(const struct prb_local_file *file,
				     const struct prb_build_id *there,
				     const struct prb_build_id *here)
{
	prb_auto_str struct prb_str text = {};

	prb_str_puts(&text, "build-id ");
	put_hex(&text, there);
	prb_str_puts(&text, " was mapped, here is ");
	put_hex(&text, here);
	return prb_error_hint(prb_error_create(PRB_ERROR_NOT_FOUND, "%s is another build: %s",
					       file->path, prb_str_text(&text)),
			      "read it on the machine where the program ran, or install the same "
			      "package");
}

/* No build-id on at least one side: the headers distinguish builds nearly as well. */
static struct prb_error *compare_headers(const struct prb_local_file *file, int fd, double changed)
{
	Elf64_Ehdr here, there;

	if (pread(fd, &here, sizeof(here), 0) != (ssize_t)sizeof(here) || !is_elf(&here))
		return prb_error_create(
			PRB_ERROR_NOT_FOUND,
			"%s is not an ELF file, so whether it is still the same cannot "
			"be told",
			file->path);

	struct prb_error *err = prb_mem_read(file->mem, file->base, &there, sizeof(there));
	if (!err && !memcmp(&here, &there, sizeof(here)))
		return NULL;
	if (!err)
		return prb_error_create(PRB_ERROR_NOT_FOUND,
					"%s is another build: its ELF header differs", file->path);
	prb_error_destroy(err);
	if (changed >= file->believed_until)
		return prb_error_create(PRB_ERROR_NOT_FOUND,
					"whether %s is the file that was mapped cannot be told",
					file->path);
	prb_log("core", 1, "%s is taken for the file that was mapped, unverified", file->path);
	return NULL;
}

static struct prb_error *check(const struct prb_local_file *file, int fd)
{
	struct prb_build_id here, there;
	struct stat st;

	if (fstat(fd, &st))
		return prb_error_os(errno, "cannot read %s", file->path);
	prb_build_id_of_file(fd, &here);
	prb_build_id_in_memory(file->mem, file->base, &there);
	if (!here.length || !there.length)
		return compare_headers(file, fd, (double)st.st_mtim.tv_sec);
	if (here.length != there.length || memcmp(here.bytes, there.bytes, here.length))
		return other_build(file, &there, &here);
	return NULL;
}

struct prb_error *prb_local_file_open(const struct prb_local_file *file, int *ret_fd)
{
	prb_auto_error struct prb_error *err = NULL;
	prb_auto_close int fd = -1;

	if (file->path[0] == '/')
		err = file->rights ? prb_rights_open(file->rights, -1, file->path, &fd)
				   : prb_file_open(-1, file->path, &fd);
	if (err && err->code == PRB_ERROR_PERMISSION)
		return prb_error_create(PRB_ERROR_NOT_FOUND, "%s", err->message);
	if (fd < 0)
		return prb_error_create(PRB_ERROR_NOT_FOUND, "%s is not on this machine",
					file->path);
	PRB_TRY(check(file, fd));
	*ret_fd = prb_steal_fd(&fd);
	return NULL;
}

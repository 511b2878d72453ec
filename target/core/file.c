/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The ELF side of a core: its headers, its segments, and the bytes of its notes. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "target/core/file.h"
#include "target/architecture.h"
#include "target/snapshot/snapshot.h"

static struct prb_error *not_a_core(const struct core *core, const char *why)
{
	return prb_error_create(PRB_ERROR_BAD_DATA, "%s is not a core file: %s", core->path, why);
}

struct prb_error *core_file_read(struct core *core, uint64_t offset, void *data, size_t length)
{
	for (size_t done = 0; done < length;) {
		ssize_t n =
			pread(core->fd, (char *)data + done, length - done, (off_t)(offset + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return prb_error_os(errno, "cannot read %s", core->path);
		if (n == 0)
			return prb_error_create(PRB_ERROR_BAD_DATA, "%s ends at byte %llu",
						core->path, (unsigned long long)offset + done);
		done += (size_t)n;
	}
	return NULL;
}

static struct prb_error *check_header(struct core *core, const Elf64_Ehdr *eh)
{
	if (memcmp(eh->e_ident, ELFMAG, SELFMAG))
		return prb_snapshot_probe(core->path) ? not_a_core(core, "it is a snapshot")
						      : not_a_core(core, "it is not an ELF file");
	if (eh->e_ident[EI_CLASS] != ELFCLASS64 || eh->e_ident[EI_DATA] != ELFDATA2LSB)
		return prb_error_create(PRB_ERROR_UNSUPPORTED,
					"%s is of a 32-bit or big-endian process", core->path);
	if (eh->e_type != ET_CORE)
		return prb_error_hint(not_a_core(core, "it is a program or library"),
				      "give the core first, the program with --exe");
	if (!prb_architecture_find(eh->e_machine))
		return prb_error_create(PRB_ERROR_UNSUPPORTED,
					"%s is of a machine (ELF number %u) that is neither x86_64 "
					"nor aarch64",
					core->path, eh->e_machine);
	if (eh->e_phentsize != sizeof(Elf64_Phdr))
		return not_a_core(core, "its program headers have the wrong size");
	core->target.machine = eh->e_machine;
	return NULL;
}

/* With 65535 or more segments their number is in the first section header. */
static struct prb_error *segment_count(struct core *core, const Elf64_Ehdr *eh, uint32_t *ret)
{
	Elf64_Shdr sh;

	*ret = eh->e_phnum;
	if (eh->e_phnum == PN_XNUM && eh->e_shoff) {
		PRB_TRY(core_file_read(core, eh->e_shoff, &sh, sizeof(sh)));
		*ret = sh.sh_info;
	}
	if (*ret > PRB_CORE_MAX_SEGMENTS)
		return prb_error_create(PRB_ERROR_BAD_DATA, "%s has %u segments, more than %d",
					core->path, *ret, PRB_CORE_MAX_SEGMENTS);
	return NULL;
}

static struct prb_error *add_notes(struct core *core, uint64_t offset, uint64_t size)
{
	size_t before = core->notes.length;

	/* Each piece starts aligned as its own segment did, so that they can be one walk. */
	while (core->notes.length % 4)
		prb_str_putc(&core->notes, '\0');
	if (offset > core->file_size)
		return NULL;
	size = PRB_MIN(size, core->file_size - offset);
	if (size > PRB_CORE_MAX_NOTES - before)
		return prb_error_create(PRB_ERROR_BAD_DATA, "%s has more than %d MiB of notes",
					core->path, PRB_CORE_MAX_NOTES >> 20);
	prb_auto_free char *data = malloc(size + 1);
	if (!data)
		return prb_error_nomem();
	PRB_TRY(core_file_read(core, offset, data, size));
	prb_str_append(&core->notes, data, size);
	return core->notes.failed ? prb_error_nomem() : NULL;
}

static struct prb_error *add_segment(struct core *core, const Elf64_Phdr *ph)
{
	uint64_t end;

	if (!ph->p_memsz && !ph->p_filesz)
		return NULL;
	struct core_segment segment = {
		.address = ph->p_vaddr,
		/* Some writers leave p_memsz 0. */
		.size = ph->p_memsz > ph->p_filesz ? ph->p_memsz : ph->p_filesz,
		.offset = ph->p_offset,
		.stored = ph->p_filesz,
		.read = ph->p_flags & PF_R,
		.write = ph->p_flags & PF_W,
		.exec = ph->p_flags & PF_X,
	};
	/* Without wrapping round; the last page of the address space is never mapped. */
	if (!prb_add(segment.address, segment.size, &end))
		return NULL;

	uint64_t there = segment.offset < core->file_size ? core->file_size - segment.offset : 0;
	if (segment.stored > there) {
		core->info.missing_segments++;
		core->info.missing_bytes += segment.stored - there;
		segment.stored = there;
		segment.cut = true;
	}
	struct core_segment *added = prb_vec_push(&core->segments);
	if (!added)
		return prb_error_nomem();
	*added = segment;
	return NULL;
}

static int compare_segments(const void *a, const void *b)
{
	const struct core_segment *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

/* Segments of a damaged file may overlap: each address then belongs to the first of them. */
static void separate_segments(struct core *core)
{
	size_t kept = 0;
	uint64_t end = 0;

	for (size_t i = 0; i < core->segments.count; i++) {
		struct core_segment s = core->segments.items[i];

		if (s.address < end) {
			uint64_t overlap = end - s.address;

			if (overlap >= s.size)
				continue;
			s.address += overlap;
			s.size -= overlap;
			s.offset += PRB_MIN(overlap, s.stored);
			s.stored -= PRB_MIN(overlap, s.stored);
		}
		end = s.address + s.size;
		core->segments.items[kept++] = s;
	}
	core->segments.count = kept;
}

static struct prb_error *read_segments(struct core *core, const Elf64_Ehdr *eh)
{
	uint32_t count;

	PRB_TRY(segment_count(core, eh, &count));

	/* A truncated file may end within its program headers: what there is of them counts. */
	uint64_t room = eh->e_phoff < core->file_size ? core->file_size - eh->e_phoff : 0;
	size_t usable = PRB_MIN((uint64_t)count, room / sizeof(Elf64_Phdr));
	prb_auto_free Elf64_Phdr *headers = calloc(usable + 1, sizeof(*headers));
	if (!headers)
		return prb_error_nomem();
	PRB_TRY(core_file_read(core, eh->e_phoff, headers, usable * sizeof(*headers)));
	core->info.missing_segments = count - (uint32_t)usable;

	for (size_t i = 0; i < usable; i++) {
		if (headers[i].p_type == PT_NOTE)
			PRB_TRY(add_notes(core, headers[i].p_offset, headers[i].p_filesz));
		else if (headers[i].p_type == PT_LOAD)
			PRB_TRY(add_segment(core, &headers[i]));
	}
	if (core->segments.count)
		qsort(core->segments.items, core->segments.count, sizeof(*core->segments.items),
		      compare_segments);
	separate_segments(core);
	return NULL;
}

/* Some tools that rewrite cores keep the notes in a compressed section only. */
static struct prb_error *read_note_section(struct core *core, const Elf64_Shdr *sh)
{
	Elf64_Chdr ch;

	if (!(sh->sh_flags & SHF_COMPRESSED))
		return add_notes(core, sh->sh_offset, sh->sh_size);
	if (!prb_inside(sh->sh_offset, sh->sh_size, core->file_size) || sh->sh_size < sizeof(ch))
		return NULL;
	PRB_TRY(core_file_read(core, sh->sh_offset, &ch, sizeof(ch)));

	size_t stored = sh->sh_size - sizeof(ch);
	if (stored > PRB_CORE_MAX_NOTES || ch.ch_size > PRB_CORE_MAX_NOTES - core->notes.length)
		return prb_error_create(PRB_ERROR_BAD_DATA, "%s has more than %d MiB of notes",
					core->path, PRB_CORE_MAX_NOTES >> 20);
	prb_auto_free char *data = malloc(stored + 1);
	if (!data)
		return prb_error_nomem();
	PRB_TRY(core_file_read(core, sh->sh_offset + sizeof(ch), data, stored));
	return prb_error_prefix(core_inflate(ch.ch_type, data, stored, ch.ch_size, &core->notes),
				"%s: compressed notes", core->path);
}

static struct prb_error *read_sections(struct core *core, const Elf64_Ehdr *eh)
{
	Elf64_Shdr sh;

	if (eh->e_shentsize != sizeof(sh))
		return NULL;
	for (unsigned i = 0; i < eh->e_shnum; i++) {
		uint64_t at;

		if (!prb_add(eh->e_shoff, i * sizeof(sh), &at) ||
		    !prb_inside(at, sizeof(sh), core->file_size))
			return NULL;
		PRB_TRY(core_file_read(core, at, &sh, sizeof(sh)));
		if (sh.sh_type == SHT_NOTE)
			PRB_TRY(read_note_section(core, &sh));
	}
	return NULL;
}

struct prb_error *core_file_open(struct core *core, const char *path)
{
	struct stat st;
	Elf64_Ehdr eh;

	core->path = strdup(path);
	core->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (!core->path)
		return prb_error_nomem();
	if (core->fd < 0)
		return prb_error_os(errno, "cannot open %s", path);
	if (fstat(core->fd, &st))
		return prb_error_os(errno, "cannot read %s", path);
	if (!S_ISREG(st.st_mode))
		return not_a_core(core, "it is not a regular file");
	core->owner = (struct prb_rights){.uid = st.st_uid, .gid = st.st_gid};
	core->target.time = (double)st.st_mtim.tv_sec + (double)st.st_mtim.tv_nsec / 1e9;
	PRB_TRY(core_unpack(path, &core->fd));
	if (fstat(core->fd, &st))
		return prb_error_os(errno, "cannot read %s", path);
	core->file_size = (uint64_t)st.st_size;

	if (core->file_size < sizeof(eh))
		return not_a_core(core, core->file_size ? "it is too short" : "it is empty");
	PRB_TRY(core_file_read(core, 0, &eh, sizeof(eh)));
	PRB_TRY(check_header(core, &eh));
	PRB_TRY(read_segments(core, &eh));
	return core->notes.length ? NULL : read_sections(core, &eh);
}

bool prb_core_probe(const char *path)
{
	prb_auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	Elf64_Ehdr eh = {};

	/* e_ident and e_type lie at the same place in 32- and 64-bit files. */
	ssize_t needed = offsetof(Elf64_Ehdr, e_type) + sizeof(eh.e_type);

	if (fd < 0)
		return false;
	if (pread(fd, &eh, sizeof(eh), 0) >= needed && !memcmp(eh.e_ident, ELFMAG, SELFMAG))
		return eh.e_type == ET_CORE;
	return core_is_packed(fd);
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Finding modules. A loaded ELF file shows as a mapping of its first bytes, with its other segments
 * at fixed distances. So the mappings that may be first ones are picked, the headers there are read
 * in batches, and each is kept whose executable segment lies where its program headers say. The
 * file is opened only where memory lacks the data.
 */
#include <elf.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "dwarf/elf/elf_internal.h"
#include "dwarf/elf/module_internal.h"

enum {
	BATCH = 32,	    /* headers read by one call */
	HEAD_SIZE = 1024,   /* an ELF header and 17 program headers; few files have more */
	MAX_SEGMENTS = 128, /* program headers that are looked at */
	MAX_GROUP = 64,	    /* mappings that one loaded file may consist of */
	MAX_OPENED = 64,    /* files that are opened because memory lacks the data */
};

/** The ELF and program headers found at one place. */
struct headers {
	Elf64_Ehdr elf;
	Elf64_Phdr segments[MAX_SEGMENTS];
	size_t count;
};

/** A discovery under way. */
struct discovery {
	struct prb_modules *modules;
	struct prb_target *target;
	prb_module_wanted *wanted; /* NULL: all are */
	const void *context;
	const struct prb_map *maps, *end;	 /* NULL if there are none */
	const struct prb_map *candidates[BATCH]; /* whose headers are read next */
	size_t candidate_count;
	uint8_t heads[BATCH][HEAD_SIZE];
	struct headers headers;
};

static bool same_file(const struct prb_map *a, const struct prb_map *b)
{
	return a->inode == b->inode && a->major == b->major && a->minor == b->minor;
}

static bool is_anonymous(const struct prb_map *map)
{
	return !map->inode && (!*map->path || !strncmp(map->path, "[anon", 5));
}

/** Devices are mapped too; opening or reading one may do anything. */
static bool is_device(const struct prb_map *map)
{
	return !strncmp(map->path, "/dev/", 5) && strncmp(map->path, "/dev/shm/", 9) != 0;
}

/** Does an executable mapping follow that may belong to the file mapped at @p map? */
static bool leads_to_code(const struct discovery *d, const struct prb_map *map)
{
	const struct prb_map *end = d->end - map > MAX_GROUP ? map + MAX_GROUP : d->end;

	for (const struct prb_map *next = map; next < end; next++) {
		bool own = same_file(next, map);

		/* Code may have been moved to huge pages, which are anonymous. */
		if (!own && !is_anonymous(next))
			return false;
		if (own && next != map && !next->offset)
			return false;
		if (next->exec)
			return true;
	}
	return false;
}

/** Is it anonymous code, or what lies right before anonymous code? */
static bool touches_anonymous_code(const struct discovery *d, const struct prb_map *map)
{
	const struct prb_map *next = map + 1;

	return is_anonymous(map) && (map->exec || (next < d->end && next->start == map->end &&
						   next->exec && is_anonymous(next)));
}

static bool is_wanted(const struct discovery *d, const struct prb_map *map)
{
	return !d->wanted || d->wanted(d->context, map->path);
}

/** May an ELF file begin at @p map? */
static bool is_candidate(const struct discovery *d, const struct prb_map *map)
{
	if (!map->read || map->offset || is_device(map) || !is_wanted(d, map))
		return false;
	if (map->inode)
		return leads_to_code(d, map);
	return !strcmp(map->path, "[vdso]") || touches_anonymous_code(d, map);
}

static bool is_elf(const Elf64_Ehdr *header, uint16_t machine)
{
	return !memcmp(header->e_ident, ELFMAG, SELFMAG) &&
	       header->e_ident[EI_CLASS] == ELFCLASS64 && header->e_ident[EI_DATA] == ELFDATA2LSB &&
	       (header->e_type == ET_DYN || header->e_type == ET_EXEC) &&
	       header->e_machine == machine && header->e_phentsize == sizeof(Elf64_Phdr);
}

/** Program headers that lie elsewhere: tools that add one move them to the end of the file. */
static bool read_far_segments(struct discovery *d, const struct prb_map *first, size_t size)
{
	uint64_t offset = d->headers.elf.e_phoff;

	for (const struct prb_map *map = first; map < d->end && map - first < MAX_GROUP; map++) {
		if (!map->read || !same_file(map, first) || offset < map->offset ||
		    !prb_inside(offset - map->offset, size, map->end - map->start))
			continue;
		struct prb_error *err =
			prb_mem_read(d->target->mem, map->start + (offset - map->offset),
				     d->headers.segments, size);
		bool ok = !err;
		prb_error_destroy(err);
		return ok;
	}
	return false;
}

/** Fills d->headers from the first bytes at @p first. */
static bool parse_head(struct discovery *d, const struct prb_map *first, const uint8_t *head)
{
	struct headers *h = &d->headers;

	memcpy(&h->elf, head, sizeof(h->elf));
	if (!is_elf(&h->elf, d->target->machine))
		return false;
	h->count = PRB_MIN((size_t)h->elf.e_phnum, (size_t)MAX_SEGMENTS);

	size_t size = h->count * sizeof(h->segments[0]);
	if (!prb_inside(h->elf.e_phoff, size, HEAD_SIZE))
		return read_far_segments(d, first, size);
	memcpy(h->segments, head + h->elf.e_phoff, size);
	return true;
}

/** The load bias if @p offset, in a segment with these @p flags, is mapped at @p address. */
static bool find_bias(const struct headers *h, uint32_t flags, uint64_t offset, uint64_t address,
		      uint64_t *ret)
{
	for (size_t i = 0; i < h->count; i++) {
		const Elf64_Phdr *s = &h->segments[i];
		/* A mapping begins with the page that the segment begins in; pages have up to 64
		 * KiB. */
		uint64_t start = s->p_offset & ~65535ULL, end;

		if (s->p_type == PT_LOAD && (s->p_flags & flags) == flags && offset >= start &&
		    prb_add(s->p_offset, s->p_filesz, &end) && offset < end) {
			*ret = address - (s->p_vaddr + (offset - s->p_offset));
			return true;
		}
	}
	return false;
}

/** Is the executable segment of the file mapped at @p first where it would be with this bias? */
static bool code_is_mapped(const struct discovery *d, const struct prb_map *first, uint64_t bias)
{
	const struct headers *h = &d->headers;

	for (size_t i = 0; i < h->count; i++) {
		const Elf64_Phdr *s = &h->segments[i];

		if (s->p_type != PT_LOAD || !(s->p_flags & PF_X) || !s->p_memsz)
			continue;
		uint64_t address = bias + s->p_vaddr;
		const struct prb_map *map = prb_maps_find(&d->target->maps, address);

		if (map && map->exec &&
		    (!map->inode || (same_file(map, first) &&
				     map->offset + (address - map->start) == s->p_offset)))
			return true;
	}
	return false;
}

static void set_part(struct prb_module_part *part, const Elf64_Phdr *segment, uint64_t bias)
{
	part->address = segment->p_vaddr + bias;
	part->size = segment->p_memsz;
}

/** Takes from the program headers what is needed later. */
static bool describe(struct prb_module *module, const struct headers *h)
{
	uint64_t low = UINT64_MAX, high = 0;
	size_t notes = 0;

	for (size_t i = 0; i < h->count; i++) {
		const Elf64_Phdr *s = &h->segments[i];
		uint64_t end;

		switch (s->p_type) {
		case PT_LOAD:
			if (!prb_add(s->p_vaddr, s->p_memsz, &end) || end > UINT64_MAX - 4095)
				return false;
			low = PRB_MIN(low, s->p_vaddr & ~4095ULL);
			high = end > high ? (end + 4095) & ~4095ULL : high;
			prb_module_add_range(module, (s->p_vaddr & ~4095ULL) + module->bias,
					     ((end + 4095) & ~4095ULL) + module->bias);
			break;
		case PT_DYNAMIC:
			set_part(&module->dynamic, s, module->bias);
			break;
		case PT_GNU_EH_FRAME:
			set_part(&module->unwind, s, module->bias);
			break;
		case PT_NOTE:
			if (notes < PRB_MODULE_NOTES_MAX)
				set_part(&module->notes[notes++], s, module->bias);
			break;
		}
	}
	module->start = low + module->bias;
	module->end = high + module->bias;
	return low < high && module->start < module->end;
}

/** A module for the file mapped at @p map, not yet in the list. */
static struct prb_error *new_module(struct discovery *d, const struct prb_map *map,
				    struct prb_module **ret)
{
	struct prb_module *module = calloc(1, sizeof(*module));

	if (module)
		module->path = strdup(map->path);
	if (!module || !module->path) {
		free(module);
		return prb_error_nomem();
	}
	module->target = d->target;
	module->deleted = map->deleted;
	module->header = map->start;
	*ret = module;
	return NULL;
}

static struct prb_error *add(struct discovery *d, struct prb_module *module)
{
	struct prb_module **place = prb_vec_push(&d->modules->list);

	if (!place) {
		prb_module_free(module);
		return prb_error_nomem();
	}
	*place = module;
	prb_log("elf", 3, "module %s at %#llx", module->path, (unsigned long long)module->start);
	return NULL;
}

/** Adds a module if a loaded ELF file is at @p map. */
static struct prb_error *consider(struct discovery *d, const struct prb_map *map,
				  const uint8_t *head)
{
	struct prb_module *module;
	uint64_t bias;

	if (!parse_head(d, map, head) || !find_bias(&d->headers, 0, 0, map->start, &bias) ||
	    !code_is_mapped(d, map, bias))
		return NULL;
	PRB_TRY(new_module(d, map, &module));
	module->bias = bias;
	if (describe(module, &d->headers))
		return add(d, module);
	prb_log("elf", 1, "%s at %#llx: program headers are malformed", map->path,
		(unsigned long long)map->start);
	prb_module_free(module);
	return NULL;
}

/** Reads the headers of all candidates at once and looks at them. */
static struct prb_error *flush(struct discovery *d)
{
	struct prb_block blocks[BATCH];

	for (size_t i = 0; i < d->candidate_count; i++)
		blocks[i] = (struct prb_block){.address = d->candidates[i]->start,
					       .length = HEAD_SIZE,
					       .buffer = d->heads[i]};
	PRB_TRY(prb_mem_read_many(d->target->mem, blocks, d->candidate_count));
	for (size_t i = 0; i < d->candidate_count; i++)
		if (blocks[i].ok)
			PRB_TRY(consider(d, d->candidates[i], d->heads[i]));
	d->candidate_count = 0;
	return NULL;
}

static bool is_covered(const struct prb_modules *modules, const struct prb_map *map)
{
	struct prb_module **module;

	prb_vec_each (module, &modules->list)
		if (prb_module_covers(*module, map->start))
			return true;
	return false;
}

/** The mappings of one file around @p map: all that is known when nothing can be read of it. */
static void guess_extent(const struct discovery *d, const struct prb_map *map,
			 struct prb_module *module)
{
	const struct prb_map *first = map, *last = map;

	while (first > d->maps && same_file(&first[-1], map) && first->offset)
		first--;
	while (last + 1 < d->end && same_file(&last[1], map) && last[1].offset >= last->offset)
		last++;
	module->start = first->start;
	module->end = last->end;
	module->bias = map->start - map->offset;
	prb_module_add_range(module, module->start, module->end);
}

static void drop_part(const struct prb_module *module, struct prb_module_part *part)
{
	if (!prb_module_covers(module, part->address))
		part->size = 0;
}

/**
 * Only what is mapped there of the file that @p map is of, among what its program headers say: a
 * page of a library may be mapped by itself (libffi does that with its own code), amid others.
 */
static void keep_mapped(const struct discovery *d, const struct prb_map *map,
			struct prb_module *module)
{
	struct prb_module_range claimed[PRB_MODULE_RANGES_MAX];
	size_t count = module->range_count;

	memcpy(claimed, module->ranges, sizeof(claimed));
	module->range_count = 0;
	prb_module_add_range(module, map->start, map->end);
	module->start = map->start;
	module->end = map->end;
	for (size_t i = 0; i < count; i++) {
		const struct prb_map *first = prb_maps_find(&d->target->maps, claimed[i].start);

		if (!first || first == map || !same_file(first, map))
			continue;
		prb_module_add_range(module, claimed[i].start, claimed[i].end);
		module->start = PRB_MIN(module->start, claimed[i].start);
		module->end = PRB_MAX(module->end, claimed[i].end);
	}
	drop_part(module, &module->dynamic);
	drop_part(module, &module->unwind);
	for (size_t i = 0; i < PRB_MODULE_NOTES_MAX; i++)
		drop_part(module, &module->notes[i]);
}

/** Adds the module that the code at @p map belongs to, with the help of its file. */
static struct prb_error *consider_file(struct discovery *d, const struct prb_map *map)
{
	struct headers *h = &d->headers;
	struct prb_module *module;
	struct prb_error *err;
	bool good = true;

	PRB_TRY(new_module(d, map, &module));
	err = prb_module_elf(module, &module->elf);
	if (!err) {
		h->count = PRB_MIN(module->elf->segment_count, (size_t)MAX_SEGMENTS);
		memcpy(h->segments, module->elf->segments, h->count * sizeof(h->segments[0]));
		good = find_bias(h, PF_X, map->offset, map->start, &module->bias) &&
		       describe(module, h);
		if (good && d->target->live)
			keep_mapped(d, map, module);
	} else if (err->code != PRB_ERROR_NOT_FOUND) {
		prb_module_free(module);
		return err;
	} else {
		/* A live process has its headers in memory if it is a module at all. */
		good = !d->target->live;
		guess_extent(d, map, module);
	}
	prb_error_destroy(err);
	if (good)
		return add(d, module);
	prb_module_free(module);
	return NULL;
}

/** Looks for code that no module was found for: its headers are not mapped or not readable. */
static struct prb_error *consider_rest(struct discovery *d)
{
	const struct prb_map *opened[MAX_OPENED];
	size_t count = 0;

	for (const struct prb_map *map = d->maps; map < d->end && count < MAX_OPENED; map++) {
		bool known = false;

		if (!map->exec || !map->inode || map->path[0] != '/' || is_device(map) ||
		    !is_wanted(d, map))
			continue;
		for (size_t i = 0; i < count && !known; i++)
			known = same_file(opened[i], map);
		if (known || is_covered(d->modules, map))
			continue;
		opened[count++] = map;
		PRB_TRY(consider_file(d, map));
	}
	return NULL;
}

struct prb_error *prb_modules_discover(struct prb_modules *modules, prb_module_wanted *wanted,
				       const void *context)
{
	struct prb_target *target = modules->target;
	prb_auto_free struct discovery *d = malloc(sizeof(*d));

	if (!d)
		return prb_error_nomem();
	d->modules = modules;
	d->target = target;
	d->wanted = wanted;
	d->context = context;
	d->maps = target->maps.list.items;
	d->end = d->maps ? d->maps + target->maps.list.count : NULL;
	d->candidate_count = 0;
	for (const struct prb_map *map = d->maps; map < d->end; map++) {
		if (!is_candidate(d, map))
			continue;
		d->candidates[d->candidate_count++] = map;
		if (d->candidate_count == BATCH)
			PRB_TRY(flush(d));
	}
	PRB_TRY(flush(d));
	return consider_rest(d);
}

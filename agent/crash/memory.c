/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Which memory a record has: all private memory that was written to, if there is room for it. Else
 * what is reached from the threads' stacks and from the data of Python and the C library, nearest
 * first: a word that is the address of private memory is taken for a pointer to its page.
 */
#include <sys/uio.h>

#include "agent/crash/private.h"

enum {
	PAGE = PRBA_CRASH_PAGE,
	RED_ZONE = 128,
	STACK_ROOT = 1 << 20,  /* of a stack, from its top; the rest may be reached */
	STACK_END = 128 << 10, /* arguments and environment, where the kernel put them */
	ENTRIES = 512,
	LOOK_EACH = 64, /* pages, at the clock */
};

static bool parse_line(struct prba_crash_map *map, const char **text)
{
	const char *at = *text;

	map->start = prba_text_hex(&at);
	if (*at++ != '-')
		return false;
	map->end = prba_text_hex(&at);
	if (*at++ != ' ')
		return false;
	map->read = at[0] == 'r';
	map->write = at[1] == 'w';
	map->exec = at[2] == 'x';
	map->shared = at[3] == 's';
	at += 5;
	map->offset = prba_text_hex(&at);
	while (*at && *at != '\n' && *at != '/' && *at != '[')
		at++;
	map->path = at;
	while (*at && *at != '\n')
		at++;
	map->path_length = (uint32_t)(at - map->path);
	*text = at + (*at == '\n');
	return true;
}

static bool same_file(const struct prba_crash_map *a, const struct prba_crash_map *b)
{
	if (!a->path_length || a->path_length != b->path_length || *a->path != '/')
		return false;
	for (uint32_t i = 0; i < a->path_length; i++)
		if (a->path[i] != b->path[i])
			return false;
	return true;
}

/** Data that is read-only once the loader has filled it in lies just before what stays writable. */
static bool is_relocated(const struct prba_crash *c, size_t i)
{
	const struct prba_crash_map *map = &c->maps[i];

	return i + 1 < c->map_count && !map->exec && map[1].write && map[1].start == map->end &&
	       same_file(map, map + 1);
}

static bool is_wanted(const struct prba_crash *c, size_t i)
{
	const struct prba_crash_map *map = &c->maps[i];

	if (!map->read || map->shared || prba_text_begins(map->path, "/dev/") ||
	    prba_text_begins(map->path, "[vvar"))
		return false;
	if (map->start <= (uintptr_t)c && (uintptr_t)c < map->end &&
	    map->end - map->start <= sizeof(*c) + PAGE)
		return false; /* ours */
	return map->write || *map->path != '/' || is_relocated(c, i);
}

bool prba_crash_read_maps(struct prba_crash *c)
{
	const char *at = c->maps_text;
	const struct prba_crash_map *own;

	c->maps_length = prba_crash_read(c, "maps", c->maps_text, sizeof(c->maps_text));
	c->map_count = 0;
	while (c->map_count < PRBA_CRASH_MAPS && *at && parse_line(&c->maps[c->map_count], &at))
		c->map_count++;
	for (size_t i = 0; i < c->map_count; i++)
		c->maps[i].wanted = is_wanted(c, i);
	/* Our library may have no name that leads to it. */
	own = prba_crash_map_at(c, c->own);
	for (size_t i = 0; own && i < c->map_count; i++)
		c->maps[i].wanted |= same_file(own, &c->maps[i]);
	return c->map_count > 0;
}

const struct prba_crash_map *prba_crash_map_at(const struct prba_crash *c, uint64_t address)
{
	size_t low = 0, high = c->map_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (address < c->maps[middle].start)
			high = middle;
		else if (address >= c->maps[middle].end)
			low = middle + 1;
		else
			return &c->maps[middle];
	}
	return NULL;
}

static bool is_full(const struct prba_crash *c)
{
	return c->page_count >= c->max_bytes / PAGE || c->page_count == PRBA_CRASH_PAGES;
}

/** Adds the page, unless it is there already. */
static void add(struct prba_crash *c, uint64_t address)
{
	enum { MASK = 2 * PRBA_CRASH_PAGES - 1 };
	uint64_t page = address & ~(uint64_t)(PAGE - 1);
	size_t place = (page / PAGE * 0x9e3779b97f4a7c15ull) >> 40 & MASK;

	for (; c->places[place]; place = (place + 1) & MASK)
		if (c->pages[c->places[place] - 1] == page)
			return;
	if (is_full(c)) {
		c->left_out += PAGE;
		return;
	}
	c->pages[c->page_count++] = page;
	c->places[place] = (uint32_t)c->page_count;
}

static void add_range(struct prba_crash *c, uint64_t start, uint64_t end)
{
	for (uint64_t page = start & ~(uint64_t)(PAGE - 1); page < end; page += PAGE)
		add(c, page);
}

/** The beginning of each file: its headers and its build-id. */
static void add_headers(struct prba_crash *c)
{
	for (size_t i = 0; i < c->map_count; i++) {
		const struct prba_crash_map *map = &c->maps[i];

		if (map->read && !map->offset && *map->path == '/' && !map->shared &&
		    !prba_text_begins(map->path, "/dev/"))
			add(c, map->start);
	}
}

static uint64_t stack_pointer(const elf_gregset_t *regs)
{
#if defined(__x86_64__)
	enum { SP = 19 }; /* of user_regs_struct */
#else
	enum { SP = 31 };
#endif
	return (*regs)[SP];
}

static void add_stack(struct prba_crash *c, uint64_t sp)
{
	const struct prba_crash_map *map = prba_crash_map_at(c, sp - RED_ZONE);
	uint64_t end;

	/* An overflow has left it. */
	for (int pages = 0; !map && pages < 16; pages++)
		map = prba_crash_map_at(c, sp += PAGE);
	if (!map || !map->wanted)
		return;
	end = map->end - sp > STACK_ROOT ? sp + STACK_ROOT : map->end;
	add_range(c, sp - RED_ZONE < map->start ? map->start : sp - RED_ZONE, end);
}

static void add_stacks(struct prba_crash *c)
{
	add_stack(c, stack_pointer(&c->registers));
	for (size_t i = 0; i < c->thread_count; i++)
		add_stack(c, stack_pointer(&c->threads[i].regs));
}

/** Adds the touched pages of a mapping; all its pages if the kernel does not report them. */
static void add_touched(struct prba_crash *c, long pagemap, const struct prba_crash_map *map)
{
	enum { THERE = 3 };
	uint64_t entries[ENTRIES] = {};
	uint64_t page = map->start;

	while (page < map->end && prba_crash_clock() <= c->deadline) {
		uint64_t count = (map->end - page) / PAGE;
		long got;

		count = count > ENTRIES ? ENTRIES : count;
		got = prba_raw(SYS_pread64, pagemap, entries, count * sizeof(*entries),
			       page / PAGE * sizeof(*entries));
		if (got < (long)(count * sizeof(*entries)))
			for (size_t i = 0; i < count; i++)
				entries[i] = (uint64_t)THERE << 62;
		for (size_t i = 0; i < count; i++)
			if (entries[i] >> 62 & THERE)
				add(c, page + i * PAGE);
		page += count * PAGE;
	}
	if (page < map->end)
		c->left_out += map->end - page;
}

/** Most of our own .bss is unused room for tables. */
static void add_bss(struct prba_crash *c, const struct prba_crash_map *map, bool ours)
{
	long pagemap;

	if (!ours) {
		add_range(c, map->start, map->end);
		return;
	}
	pagemap = prba_raw(SYS_openat, c->proc, "pagemap", 02000000L);
	add_touched(c, pagemap, map);
	if (pagemap >= 0)
		prba_raw(SYS_close, pagemap);
}

/** The writable data of the file that is mapped at @p address. */
static void add_data_of(struct prba_crash *c, uint64_t address)
{
	const struct prba_crash_map *of = address ? prba_crash_map_at(c, address) : NULL;

	for (size_t i = 0; of && i < c->map_count; i++) {
		const struct prba_crash_map *map = &c->maps[i];

		if (!map->wanted || !same_file(of, map))
			continue;
		add_range(c, map->start, map->end);
		/* .bss has no file. */
		if (i + 1 < c->map_count && map[1].start == map->end && !map[1].path_length)
			add_bss(c, map + 1, address == c->own);
	}
}

static bool is_loader(const struct prba_crash_map *map)
{
	const char *name = map->path;

	for (uint32_t i = 0; i < map->path_length; i++)
		if (map->path[i] == '/')
			name = map->path + i + 1;
	return prba_text_begins(name, "ld-") || prba_text_begins(name, "libc.so") ||
	       prba_text_begins(name, "libc-") || prba_text_begins(name, "libpthread");
}

static void add_roots(struct prba_crash *c)
{
	const struct prba_crash_map *program = NULL;

	add_data_of(c, c->python);
	add_data_of(c, c->own);
	for (size_t i = 0; i < c->map_count; i++) {
		const struct prba_crash_map *map = &c->maps[i];

		if (!program && *map->path == '/')
			program = map;
		if (!map->offset && *map->path == '/' && is_loader(map))
			add_data_of(c, map->start);
		if (prba_text_begins(map->path, "[stack]") && map->wanted)
			add_range(c,
				  map->end - map->start > STACK_END ? map->end - STACK_END
								    : map->start,
				  map->end);
		if (prba_text_begins(map->path, "[vdso]"))
			add_range(c, map->start, map->end);
	}
	if (program)
		add_data_of(c, program->start);
}

static bool is_late(const struct prba_crash *c, size_t n)
{
	return n % LOOK_EACH == 0 && prba_crash_clock() > c->deadline;
}

/** Pages that those reach which are there, until there is no room or no time for more. */
static void follow(struct prba_crash *c)
{
	long self = prba_raw(SYS_getpid);

	for (size_t n = 0; n < c->page_count && !is_full(c); n++) {
		struct iovec here = {c->scratch, PAGE}, there = {(void *)c->pages[n], PAGE};

		if (is_late(c, n)) {
			c->left_out += PAGE;
			return;
		}
		if (prba_raw(SYS_process_vm_readv, self, &here, 1L, &there, 1L, 0L) != PAGE)
			continue;
		for (size_t i = 0; i < PAGE / sizeof(uint64_t); i++) {
			const struct prba_crash_map *map =
				c->scratch[i] < PAGE ? NULL : prba_crash_map_at(c, c->scratch[i]);

			if (map && map->wanted && !map->exec)
				add(c, c->scratch[i]);
		}
	}
}

static void add_all(struct prba_crash *c)
{
	long pagemap = prba_raw(SYS_openat, c->proc, "pagemap", 02000000L);

	for (size_t i = 0; i < c->map_count; i++)
		if (c->maps[i].wanted)
			add_touched(c, pagemap, &c->maps[i]);
	if (pagemap >= 0)
		prba_raw(SYS_close, pagemap);
}

/** Bytes of private memory that was written to; UINT64_MAX if the kernel does not report them. */
static uint64_t private_bytes(struct prba_crash *c)
{
	char text[4096] = "";
	size_t length = prba_crash_read(c, "status", text, sizeof(text));
	uint64_t kilobytes = 0;
	bool found = false;

	for (size_t i = 0; i < length; i++) {
		const char *at = text + i;

		if ((i && text[i - 1] != '\n') ||
		    (!prba_text_begins(at, "RssAnon:") && !prba_text_begins(at, "VmSwap:")))
			continue;
		while (*at && (*at < '0' || *at > '9'))
			at++;
		kilobytes += prba_text_decimal(&at);
		found = true;
	}
	return found ? kilobytes << 10 : UINT64_MAX;
}

/** In place, without recursion. */
static void sort(uint64_t *items, size_t count)
{
	for (size_t start = count / 2, end = count; end > 1;) {
		uint64_t item;
		size_t at, child;

		if (start) {
			item = items[--start];
		} else {
			item = items[--end];
			items[end] = items[0];
		}
		for (at = start; (child = 2 * at + 1) < end; at = child) {
			child += child + 1 < end && items[child + 1] > items[child];
			if (items[child] <= item)
				break;
			items[at] = items[child];
		}
		items[at] = item;
	}
}

void prba_crash_choose_pages(struct prba_crash *c)
{
	uint64_t bytes = private_bytes(c);

	add_stacks(c);
	add_headers(c);
	add_roots(c);
	/* Data of files that is not changed is no private memory, and is stored, too. */
	if (bytes <= c->max_bytes - c->max_bytes / 4)
		add_all(c);
	else
		follow(c);
	sort(c->pages, c->page_count);
}

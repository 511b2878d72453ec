/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The file of a record and its folder. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/crash/private.h"
#define PRB_WAY_CALL prba_raw
#include "base/way.h"
#include "agent/inside/environment.h"
#include "agent/inside/folder_entry.h"
#include "agent/inside/own_folder.h"

enum {
	PAGE = PRBA_CRASH_PAGE,
	BUFFER = 1 << 14,
	MAX_LISTED = 4096,
	REMOVED = 64, /* old records, at most, for one new one */
	GAP = 4,      /* pages that are not needed are written if that saves a segment */
	ROOM = 1 << 20,
};

/* ---- installing: in a healthy process ---- */

static int own_folder(const char *path)
{
	int fd = prba_own_folder(AT_FDCWD, path, true);

	return fd < 0 ? fd : close(fd);
}

/*
 * The C library makes another call only where the kernel does not know faccessat2(): filters of
 * older containers answer that with EPERM.
 */
static bool is_writable(const char *folder)
{
	return !faccessat(AT_FDCWD, folder, W_OK, AT_EACCESS) ||
	       (errno == EPERM && !syscall(SYS_faccessat, AT_FDCWD, folder, W_OK));
}

/** @p base, then each of the folders, made one by one. */
static int make_below(const char *base, const char *const *below, char ret[PRBA_CRASH_PATH])
{
	size_t length = strlen(base);
	int rc = 0;

	if (*base != '/' || length > PRBA_CRASH_PATH - 128)
		return -EINVAL;
	memcpy(ret, base, length + 1);
	for (; *below; below++) {
		own_folder(ret); /* the last one decides */
		snprintf(ret + strlen(ret), PRBA_CRASH_PATH - strlen(ret), "/%s", *below);
	}
	rc = own_folder(ret);
	if (!rc && !is_writable(ret))
		rc = -errno;
	return rc;
}

int prba_crash_find_folder(const char *chosen, char ret[PRBA_CRASH_PATH])
{
	static const char *const crashes[] = {"crashes", NULL};
	static const char *const probing[] = {"probing", "crashes", NULL};
	static const char *const home[] = {".local", "state", "probing", "crashes", NULL};
	const struct {
		const char *variable, *const *below;
	} places[] = {{"PROBING_DATA_DIR", crashes}, {"XDG_STATE_HOME", probing}, {"HOME", home}};
	char folder[64];
	int fd;

	if (chosen && *chosen) {
		static const char *const none[] = {NULL};

		return make_below(chosen, none, ret);
	}
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		const char *base = prba_environment(places[i].variable);

		if (base && *base == '/' && !make_below(base, places[i].below, ret))
			return 0;
	}
	fd = prba_tmp_folder(folder, sizeof(folder));
	if (fd < 0)
		return -EACCES;
	close(fd);
	return make_below(folder, crashes, ret);
}

/* ---- recording: system calls alone ---- */

struct oldest {
	uint64_t count;
	char name[64];
};

/** "crash-SECONDS-PID.core": names sort as their times do, for some hundred years. */
static bool is_record(const char *name)
{
	size_t length = prba_text_length(name);

	return length < sizeof(((struct oldest *)0)->name) && length > 11 &&
	       prba_text_begins(name, "crash-") && prba_text_begins(name + length - 5, ".core");
}

static bool is_before(const char *a, const char *b)
{
	for (; *a && *a == *b; a++)
		b++;
	return (unsigned char)*a < (unsigned char)*b;
}

static void find_oldest(const struct prba_crash *c, struct oldest *ret)
{
	char buffer[BUFFER] __attribute__((aligned(8))) = "";
	long length;

	*ret = (struct oldest){};
	prba_raw(SYS_lseek, c->directory, 0L, 0L);
	while (ret->count < MAX_LISTED &&
	       (length = prba_raw(SYS_getdents64, c->directory, buffer, sizeof(buffer))) > 0) {
		for (long at = 0; at < length;) {
			const struct prba_folder_entry *entry = (const void *)(buffer + at);

			at += entry->length;
			if (!is_record(entry->name))
				continue;
			if (!ret->count++ || is_before(entry->name, ret->name)) {
				struct prba_text t = {ret->name, 0, sizeof(ret->name)};

				prba_text_puts(&t, entry->name);
			}
		}
	}
}

/** Makes room for one more. */
static void remove_old(const struct prba_crash *c)
{
	struct oldest oldest;

	for (int i = 0; i < REMOVED; i++) {
		find_oldest(c, &oldest);
		if (oldest.count < c->max_files ||
		    prba_raw(SYS_unlinkat, c->directory, oldest.name, 0L))
			return;
	}
}

/** Links on the way may have changed since. */
static int open_folder(struct prba_crash *c)
{
	int fd = prb_way_open_own(AT_FDCWD, c->folder, (uid_t)prba_raw(SYS_geteuid), 0);

	if (fd < 0)
		return fd;
	c->directory = fd;
	return 0;
}

int prba_crash_open_file(struct prba_crash *c)
{
	struct prba_text temporary = {c->temporary, 0, sizeof(c->temporary)};
	struct prba_text name = {c->name, 0, sizeof(c->name)};
	int rc = open_folder(c);
	long fd;

	if (rc)
		return rc;
	remove_old(c);
	prba_text_puts(&temporary, ".crash-");
	prba_text_number(&temporary, (uint64_t)c->pid);
	prba_text_puts(&temporary, ".new");
	prba_text_puts(&name, "crash-");
	prba_text_number(&name, (uint64_t)c->seconds);
	prba_text_puts(&name, "-");
	prba_text_number(&name, (uint64_t)c->pid);
	prba_text_puts(&name, ".core");
	prba_raw(SYS_unlinkat, c->directory, c->temporary, 0L);
	fd = prba_raw(SYS_openat, c->directory, c->temporary,
		      O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600L);
	if (fd < 0)
		return (int)fd;
	c->file = (int)fd;
	return 0;
}

/** Writes straight from memory, which may not be readable: gives how much was written. */
static uint64_t write_at(struct prba_crash *c, uint64_t offset, const void *from, uint64_t length)
{
	uint64_t done = 0;

	while (done < length) {
		long rc = prba_raw(SYS_pwrite64, c->file, (const char *)from + done, length - done,
				   offset + done);

		if (rc == -EINTR)
			continue;
		if (rc <= 0) {
			if (rc != -EFAULT && !c->failed)
				c->failed = rc ? (int32_t)rc : -EIO;
			break;
		}
		done += (uint64_t)rc;
	}
	return done;
}

static uint32_t flags_of(const struct prba_crash *c, uint64_t address)
{
	const struct prba_crash_map *map = prba_crash_map_at(c, address);

	return map ? (map->read ? PF_R : 0u) | (map->write ? PF_W : 0u) | (map->exec ? PF_X : 0u)
		   : PF_R;
}

/** Pages from @p start on. False if no more can be written. */
static bool write_run(struct prba_crash *c, uint64_t start, uint64_t end)
{
	while (start < end && c->run_count < PRBA_CRASH_RUNS && !c->failed) {
		uint64_t done = write_at(c, c->at, (const void *)start, end - start);

		done &= ~(uint64_t)(PAGE - 1);
		if (done) {
			c->runs[c->run_count++] =
				(struct prba_crash_run){start, done, c->at, flags_of(c, start)};
			c->at += done;
			start += done;
		}
		if (start < end)
			start += PAGE; /* it cannot be read */
	}
	if (start < end)
		c->left_out += end - start;
	return !c->failed && c->run_count < PRBA_CRASH_RUNS;
}

static bool follows(const struct prba_crash *c, uint64_t end, uint64_t page)
{
	const struct prba_crash_map *map = prba_crash_map_at(c, end - 1);

	return page < end + GAP * PAGE && map && page < map->end;
}

static void write_memory(struct prba_crash *c)
{
	bool more = true;

	for (size_t i = 0; i < c->page_count;) {
		uint64_t start = c->pages[i], end = start + PAGE;

		for (i++; i < c->page_count && follows(c, end, c->pages[i]); i++)
			end = c->pages[i] + PAGE;
		if (!more)
			c->left_out += end - start;
		else
			more = write_run(c, start, end);
	}
}

/** The disk is full: what was written last gives way to the headers. */
static void make_room(struct prba_crash *c)
{
	uint64_t from = c->at;

	while (c->run_count && from - c->runs[c->run_count - 1].offset < ROOM) {
		c->at = c->runs[--c->run_count].offset;
		c->left_out += c->runs[c->run_count].length;
	}
	if (c->run_count) {
		struct prba_crash_run *last = &c->runs[c->run_count - 1];
		uint64_t cut = last->length > ROOM ? ROOM : 0;

		last->length -= cut;
		c->left_out += cut;
		c->at = last->offset + last->length;
	}
	prba_raw(SYS_ftruncate, c->file, c->at);
	c->failed = 0;
}

static Elf64_Ehdr header(const struct prba_crash *c)
{
	return (Elf64_Ehdr)
	{
		.e_ident = {ELFMAG0,	ELFMAG1,     ELFMAG2,	ELFMAG3,
			    ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
		.e_type = ET_CORE,
#if defined(__x86_64__)
		.e_machine = EM_X86_64,
#else
		.e_machine = EM_AARCH64,
#endif
		.e_version = EV_CURRENT, .e_phoff = c->at, .e_ehsize = sizeof(Elf64_Ehdr),
		.e_phentsize = sizeof(Elf64_Phdr), .e_phnum = (uint16_t)(c->run_count + 1),
	};
}

/** Behind the memory; the file's beginning, which makes it a core, is last. */
static void write_headers(struct prba_crash *c, size_t notes)
{
	Elf64_Phdr *table = (Elf64_Phdr *)c->maps_text;
	Elf64_Ehdr first = header(c);

	_Static_assert(sizeof(c->maps_text) >= (PRBA_CRASH_RUNS + 1) * sizeof(Elf64_Phdr),
		       "they take the place of the map");
	table[0] =
		(Elf64_Phdr){.p_type = PT_NOTE, .p_offset = PAGE, .p_filesz = notes, .p_align = 4};
	for (size_t i = 0; i < c->run_count; i++) {
		const struct prba_crash_run *run = &c->runs[i];

		table[i + 1] = (Elf64_Phdr){.p_type = PT_LOAD,
					    .p_flags = run->flags,
					    .p_offset = run->offset,
					    .p_vaddr = run->start,
					    .p_filesz = run->length,
					    .p_memsz = run->length,
					    .p_align = PAGE};
	}
	write_at(c, c->at, table, (c->run_count + 1) * sizeof(*table));
	write_at(c, 0, &first, sizeof(first));
}

/** In the note "crash", which was made when this was not known yet. */
static void correct_left_out(struct prba_crash *c, size_t notes)
{
	static const char key[] = "\nleft_out=";

	for (size_t i = 0; i + sizeof(key) < notes; i++) {
		uint64_t number = c->left_out;
		const char *at = c->notes + i;

		if (!prba_text_begins(at, key))
			continue;
		for (char *digit = c->notes + i + sizeof(key) + 18; digit >= at + sizeof(key) - 1;
		     digit--) {
			*digit = (char)('0' + number % 10);
			number /= 10;
		}
		write_at(c, PAGE, c->notes, notes);
		return;
	}
}

void prba_crash_fill_file(struct prba_crash *c, size_t notes)
{
	uint64_t before = c->left_out;

	write_at(c, PAGE, c->notes, notes);
	c->at = PAGE + ((notes + PAGE - 1) & ~(uint64_t)(PAGE - 1));
	if (c->failed)
		return;
	write_memory(c);
	if (c->failed)
		make_room(c);
	if (c->left_out != before)
		correct_left_out(c, notes);
	write_headers(c, notes);
}

void prba_crash_close_file(struct prba_crash *c)
{
	if (c->failed ||
	    prba_raw(SYS_renameat2, c->directory, c->temporary, c->directory, c->name, 0L)) {
		prba_raw(SYS_unlinkat, c->directory, c->temporary, 0L);
		if (!c->failed)
			c->failed = -EIO;
	}
	prba_raw(SYS_close, c->file);
	prba_raw(SYS_close, c->directory);
}

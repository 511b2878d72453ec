/* SPDX-License-Identifier: GPL-3.0-or-later */
/* bfd.h refuses to be included by a program that has no name. */
#define PACKAGE "probing"
#define PACKAGE_VERSION PRB_VERSION
#include <bfd.h>

#include "dwarf/lines/line_table.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "dwarf/lines/demangle.h"
#include "target/architecture.h"

enum {
	MAX_INLINED = 64,	  /* functions inlined into each other at one place */
	MAX_DEBUG_INFO = 1 << 30, /* bytes of .debug_info that we let libbfd read */
};

struct prb_line_table {
	bfd *bfd;
	int fd; /* borrowed */
};

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

static void turn_guard(pthread_mutex_t **mutex)
{
	pthread_mutex_unlock(*mutex);
}

static pthread_mutex_t *take_turn(void)
{
	pthread_mutex_lock(&turn);
	return &turn;
}

void prb_line_tables_hold(void)
{
	take_turn();
}

void prb_line_tables_release(void)
{
	pthread_mutex_unlock(&turn);
}

#define TAKE_TURN() \
	__attribute__((cleanup(turn_guard), unused)) pthread_mutex_t *taken_turn = take_turn()

/* The arguments are of libbfd's own kinds, which only it can print. */
static void log_complaint(const char *format, va_list args)
{
	(void)args;
	prb_log("lines", 1, "libbfd complains: %s", format);
}

static void log_assertion(const char *format, const char *version, const char *file, int line)
{
	(void)format;
	(void)version;
	prb_log("lines", 1, "libbfd contradicts itself at %s:%d", file, line);
}

static void start_libbfd(void)
{
	static bool started;

	if (started)
		return;
	started = true;
	bfd_init();
	bfd_set_error_handler(log_complaint);
	bfd_set_assert_handler(log_assertion);
}

static void *stream_open(bfd *abfd, void *closure)
{
	(void)abfd;
	return closure;
}

static file_ptr stream_read(bfd *abfd, void *stream, void *buffer, file_ptr length, file_ptr offset)
{
	struct prb_line_table *table = stream;
	file_ptr done = 0;

	(void)abfd;
	while (done < length) {
		ssize_t n = pread(table->fd, (char *)buffer + done, (size_t)(length - done),
				  offset + done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (n == 0)
			break;
		done += n;
	}
	return done;
}

static int stream_close(bfd *abfd, void *stream)
{
	(void)abfd;
	(void)stream;
	return 0;
}

static int stream_stat(bfd *abfd, void *stream, struct stat *st)
{
	struct prb_line_table *table = stream;
	off_t size = lseek(table->fd, 0, SEEK_END);

	/* Not fstat(), which some C libraries make a call that takes a path: a jail has none. */
	(void)abfd;
	*st = (struct stat){.st_mode = S_IFREG | S_IRUSR, .st_size = size};
	return size < 0 ? -1 : 0;
}

/* Checks that libbfd would only make after it has allocated the memory. */
struct prb_error *prb_line_table_check(struct prb_elf *elf)
{
	uint64_t size;

	if (prb_elf_fd(elf) < 0 || !prb_elf_has_section(elf, ".debug_line") ||
	    !prb_elf_has_section(elf, ".debug_info"))
		return prb_error_create(PRB_ERROR_NOT_FOUND, "%s has no line information",
					prb_elf_name(elf));
	if (!prb_elf_is_safe(elf))
		return prb_elf_claim(elf, prb_elf_debug_size(elf));
	PRB_TRY(prb_elf_section(elf, ".debug_info", NULL, &size, NULL));
	if (size > MAX_DEBUG_INFO)
		return prb_error_create(PRB_ERROR_UNSUPPORTED,
					"%s has too much debug information (%llu bytes)",
					prb_elf_name(elf), (unsigned long long)size);
	return NULL;
}

static void table_guard(struct prb_line_table **table)
{
	if (!*table)
		return;
	if ((*table)->bfd)
		bfd_close_all_done((*table)->bfd);
	free(*table);
}

/*
 * libbfd (2.40) writes its complaints about headers to stderr, past its own handler. A host program
 * of our library must not see that.
 */
static bool check_format_quietly(bfd *abfd)
{
	char *text = NULL;
	size_t length;
	FILE *quiet = open_memstream(&text, &length), *real = stderr;

	if (!quiet)
		return false;
	stderr = quiet;

	bool ok = bfd_check_format(abfd, bfd_object);

	stderr = real;
	fclose(quiet);
	if (length > 0)
		prb_log("lines", 1, "libbfd complains: %s", text);
	free(text);
	return ok;
}

struct prb_error *prb_line_table_open(struct prb_elf *elf, uint16_t machine,
				      struct prb_line_table **ret)
{
	const struct prb_architecture *found = prb_architecture_find(machine);

	if (!found)
		return prb_error_create(PRB_ERROR_UNSUPPORTED, "no lines for ELF machine %u",
					machine);

	TAKE_TURN();
	start_libbfd();
	__attribute__((cleanup(table_guard))) struct prb_line_table *table =
		calloc(1, sizeof(*table));
	if (!table)
		return prb_error_nomem();
	table->fd = prb_elf_fd(elf);
	table->bfd = bfd_openr_iovec(prb_elf_name(elf), found->bfd, stream_open, table, stream_read,
				     stream_close, stream_stat);
	if (table->bfd)
		table->bfd->flags |= BFD_DECOMPRESS;
	if (!table->bfd || !check_format_quietly(table->bfd))
		return prb_error_create(PRB_ERROR_UNSUPPORTED, "libbfd cannot read %s: %s",
					prb_elf_name(elf), bfd_errmsg(bfd_get_error()));
	*ret = prb_steal(&table);
	return NULL;
}

void prb_line_table_close(struct prb_line_table *table)
{
	TAKE_TURN();
	table_guard(&table);
}

static asection *section_at(bfd *abfd, uint64_t address)
{
	for (asection *section = abfd->sections; section; section = section->next)
		if ((bfd_section_flags(section) & SEC_ALLOC) && address >= section->vma &&
		    address - section->vma < bfd_section_size(section))
			return section;
	return NULL;
}

static struct prb_error *add_line(struct prb_lines *lines, const char *func, const char *file,
				  unsigned number)
{
	struct prb_line *line = prb_vec_push(&lines->list);

	if (!line)
		return prb_error_nomem();
	line->line = number;
	if (func && *func) {
		line->func = prb_demangle(func);
		if (!line->func)
			line->func = strdup(func);
	}
	if (file && *file)
		line->file = strdup(file);
	if ((func && *func && !line->func) || (file && *file && !line->file))
		return prb_error_nomem();
	return NULL;
}

/*
 * An empty symbol table: names of symbols come from prb_module. It must not be NULL, for then
 * libbfd (2.40) does not read compressed sections.
 */
static asymbol *no_symbols[] = {NULL};

struct prb_error *prb_line_table_find(struct prb_line_table *table, uint64_t address,
				      struct prb_lines *ret)
{
	TAKE_TURN();
	asection *section = section_at(table->bfd, address);
	const char *file = NULL, *func = NULL;
	unsigned line = 0, discriminator;
	size_t first = ret->list.count;

	if (!section || !bfd_find_nearest_line_discriminator(table->bfd, section, no_symbols,
							     address - section->vma, &file, &func,
							     &line, &discriminator))
		return NULL;
	if (!func && !file)
		return NULL;
	PRB_TRY(add_line(ret, func, file, line));
	while (ret->list.count - first < MAX_INLINED &&
	       bfd_find_inliner_info(table->bfd, &file, &func, &line)) {
		ret->list.items[ret->list.count - 1].inlined = true;
		PRB_TRY(add_line(ret, func, file, line));
	}
	return NULL;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Rolls back a change that was not completed, as SQLite does with its journal, without writing to
 * either file: the pages as they were before are put into a copy in memory. The format is that of
 * https://www.sqlite.org/fileformat2.html#the_rollback_journal
 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/str.h"
#include "profile/store/load/database.h"

static const uint8_t magic[8] = {0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};
static const uint64_t most_bytes = 1ull << 31;

struct header {
	uint32_t nonce, pages, sector, page_size;
};

static uint32_t big_endian(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static struct prb_error *bad(const char *what)
{
	return prb_error_create(PRB_ERROR_BAD_DATA,
				"its recording was cut off within a change, whose journal %s",
				what);
}

static bool is_power(uint32_t value, uint32_t low, uint32_t high)
{
	return value >= low && value <= high && !(value & (value - 1));
}

static struct prb_error *read_header(int fd, struct header *ret)
{
	enum { NONCE = 12, PAGES = 16, SECTOR = 20, PAGE_SIZE = 24, LENGTH = 28 };
	uint8_t bytes[LENGTH];

	if (pread(fd, bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes) ||
	    memcmp(bytes, magic, sizeof(magic)) != 0)
		return bad("is none");
	*ret = (struct header){
		.nonce = big_endian(bytes + NONCE),
		.pages = big_endian(bytes + PAGES),
		.sector = big_endian(bytes + SECTOR),
		.page_size = big_endian(bytes + PAGE_SIZE),
	};
	if (!is_power(ret->sector, 32, 65536) || !is_power(ret->page_size, 512, 65536))
		return bad("has impossible sizes");
	return NULL;
}

/* As SQLite sums up: every 200th byte, from the end on. */
static uint32_t checksum(const struct header *header, const uint8_t *page)
{
	uint32_t sum = header->nonce;

	for (int64_t i = (int64_t)header->page_size - 200; i > 0; i -= 200)
		sum += page[i];
	return sum;
}

/* Until the first record that is not whole. */
static struct prb_error *put_pages(int journal, const struct header *header, uint8_t *data)
{
	size_t length = header->page_size + 8;
	prb_auto_free uint8_t *record = malloc(length);

	if (!record)
		return prb_error_nomem();
	for (off_t at = header->sector; pread(journal, record, length, at) == (ssize_t)length;
	     at += (off_t)length) {
		uint32_t page = big_endian(record);
		const uint8_t *content = record + 4;

		if (!page || big_endian(content + header->page_size) != checksum(header, content))
			break;
		if (page <= header->pages)
			memcpy(data + (size_t)(page - 1) * header->page_size, content,
			       header->page_size);
	}
	return NULL;
}

static struct prb_error *read_database(int fd, uint8_t *data, size_t size)
{
	for (size_t done = 0; done < size;) {
		ssize_t n = pread(fd, data + done, size - done, (off_t)done);

		if (n <= 0)
			return bad("does not fit to it");
		done += (size_t)n;
	}
	return NULL;
}

/* As SQLite finds out, which locks this byte before it writes a journal. */
static bool is_being_written(int fd)
{
	enum { RESERVED_BYTE = 0x40000001 };
	struct flock lock = {
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = RESERVED_BYTE, .l_len = 1};

	return !fcntl(fd, F_GETLK, &lock) && lock.l_type != F_UNLCK;
}

bool prb_load_file_is_cut_off(int fd, const char *path, int *ret_journal)
{
	prb_auto_free char *name = prb_format("%s-journal", path);
	prb_auto_close int journal = -1;
	struct prb_error *err;
	struct stat st;
	char first;

	if (!name || lstat(name, &st) || !S_ISREG(st.st_mode) || is_being_written(fd))
		return false;
	err = prb_file_open(-1, name, &journal);
	prb_error_destroy(err);
	/* A journal that is empty, or begins with a zero, belongs to a completed change. */
	if (err || pread(journal, &first, 1, 0) != 1 || !first)
		return false;
	*ret_journal = prb_steal_fd(&journal);
	return true;
}

struct prb_error *prb_load_file_recover(int fd, int journal, unsigned char **ret, size_t *ret_size)
{
	struct header header;
	uint64_t size;
	uint8_t *data;

	PRB_TRY(read_header(journal, &header));
	size = (uint64_t)header.pages * header.page_size;
	if (!size || size > most_bytes)
		return bad("has impossible sizes");
	data = sqlite3_malloc64(size);
	if (!data)
		return prb_error_nomem();
	struct prb_error *err = read_database(fd, data, (size_t)size);
	if (!err)
		err = put_pages(journal, &header, data);
	if (err) {
		sqlite3_free(data);
		return err;
	}
	*ret = data;
	*ret_size = (size_t)size;
	return NULL;
}

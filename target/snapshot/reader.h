/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file A snapshot file, checked and decompressed, with tables of what lies where in it.
 *
 * Opening checks everything: header, sizes, checksums, each record's lengths, and that records
 * are in order, so that looking something up later is a binary search that cannot fail.
 *
 * Threading: read-only once opened. References are valid as long as the body.
 */
#ifndef PRB_TARGET_SNAPSHOT_READER_H
#define PRB_TARGET_SNAPSHOT_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/vec.h"
#include "target/regs.h"

struct snapshot_answer_ref {
	char kind;
	uint32_t status; /**< 0, or the value is a snapshot_failure with its texts */
	const char *name;
	size_t name_length;
	const char *value;
	size_t value_length;
};

struct snapshot_page_ref {
	pid_t tid;
	uint64_t address;
	uint64_t lines;	  /**< bit N: line N is held */
	const char *data; /**< the lines held, one behind the other */
};

/** Part of the table of pages. */
struct snapshot_pages {
	size_t first, count;
};

struct snapshot_body {
	uint16_t machine;
	pid_t pid;
	uint64_t time_ns;
	uint32_t flags;
	char *data; /**< decompressed */
	size_t size;
	PRB_VEC(struct snapshot_answer_ref) answers; /**< sorted by kind, then name */
	PRB_VEC(const char *) registers;	     /**< records, sorted by tid */
	PRB_VEC(struct snapshot_page_ref) pages;     /**< sorted by tid, then address */
};

/** Where a snapshot lies: a file, or a part of one. */
struct snapshot_place {
	const char *path; /**< for messages */
	int fd;
	uint64_t offset;
	bool part; /**< it ends after `size` bytes, else where the file does */
	uint64_t size;
};

/** Reads and checks it. PRB_ERROR_BAD_DATA has the byte at which it is damaged. */
struct prb_error *snapshot_body_open(const struct snapshot_place *place,
				     struct snapshot_body *ret) PRB_MUST_CHECK;
void snapshot_body_deinit(struct snapshot_body *body);

bool snapshot_body_answer(const struct snapshot_body *body, char kind, const char *name,
			  struct snapshot_answer_ref *ret);
bool snapshot_body_registers(const struct snapshot_body *body, pid_t tid, struct prb_regs *ret);

/** The pages of one view; count 0 if it has none. */
struct snapshot_pages snapshot_body_pages(const struct snapshot_body *body, pid_t tid);

#endif

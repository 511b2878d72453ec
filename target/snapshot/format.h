/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The layout of a snapshot file, for its writer and its reader; docs/snapshot-format.md says
 * what the records mean. All numbers are little-endian, as on every machine we run on; nothing is
 * aligned, so structures are copied, never pointed into.
 */
#ifndef PRB_TARGET_SNAPSHOT_FORMAT_H
#define PRB_TARGET_SNAPSHOT_FORMAT_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum {
	SNAPSHOT_FORMAT = 1,	     /**< raised when an older reader would misread the file */
	SNAPSHOT_FLAG_REDACTED = 1,  /**< values were left out */
	SNAPSHOT_LINE = 64,	     /**< bytes of memory that are held or not held together */
	SNAPSHOT_LINES_PER_PAGE = 64 /**< so one bit each in a 64-bit mask */
};

static const char snapshot_magic[8] = {'\x89', 'P', 'R', 'B', 'S', '\r', '\n', '\x1a'};

struct snapshot_header {
	char magic[8];
	uint16_t format;
	uint16_t machine; /* ELF e_machine */
	int32_t pid;
	uint64_t time_ns; /* since the epoch */
	uint32_t flags;
	uint32_t header_size;  /* where the body begins */
	uint64_t stored_size;  /* of the body in the file: one zstd frame */
	uint64_t body_size;    /* decompressed */
	uint64_t record_count; /* in the body */
	char writer[24];       /* our version, padded with NUL */
	uint32_t stored_crc;   /* CRC-32 of the frame */
	uint32_t crc;	       /* CRC-32 of all before it */
};
_Static_assert(sizeof(struct snapshot_header) == 88, "the header has no holes");

/* Kinds of records: 'f' file, 'l' link, 'd' listing, 'k' derived fact, 'r' registers, 'p' page. */
struct snapshot_record {
	uint32_t kind;
	uint32_t length; /* of what follows */
};

/* 'f', 'l', 'd', 'k': then the name, then the value or, if status is not 0, a snapshot_failure. */
struct snapshot_answer {
	uint32_t name_length;
	uint32_t status; /* 0, or snapshot_code_number() of the error */
};

/* Then the message, then the hint (none if empty). */
struct snapshot_failure {
	int32_t os_errno;
	uint32_t message_length;
	uint64_t address;
};

/* Then `count` values of 8 bytes, by DWARF number. */
struct snapshot_registers {
	int32_t tid;
	uint16_t machine;
	uint16_t count;
	uint64_t pc;
	uint64_t known;
};

/* Then SNAPSHOT_LINE bytes for each bit set in `lines`, lowest first. */
struct snapshot_page {
	int32_t tid; /* 0: the shared image */
	uint32_t reserved;
	uint64_t address;
	uint64_t lines;
};

/*
 * Numbers of error codes in files, which must not move when prb_error_code is rearranged. 0 means
 * no error; an unknown number reads as PRB_ERROR_FAILED.
 */
static const struct {
	uint32_t number;
	enum prb_error_code code;
} snapshot_codes[] = {
	{1, PRB_ERROR_FAILED},	   {2, PRB_ERROR_NOMEM},      {3, PRB_ERROR_OS},
	{4, PRB_ERROR_FAULT},	   {5, PRB_ERROR_BAD_DATA},   {6, PRB_ERROR_UNSUPPORTED},
	{7, PRB_ERROR_NOT_FOUND},  {8, PRB_ERROR_PERMISSION}, {9, PRB_ERROR_TIMEOUT},
	{10, PRB_ERROR_CANCELLED}, {11, PRB_ERROR_USAGE},     {12, PRB_ERROR_NO_PROCESS},
};

#endif

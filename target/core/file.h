/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The inside of a core target, shared by its parts: the file and its segments (file.c),
 * notes (notes.c), memory (mem.c), made-up facts (facts.c, tasks.c, stack.c) and the target's face
 * (core.c).
 *
 * Threading: one thread at a time. Everything hangs on struct core and ends with it.
 */
#ifndef PRB_TARGET_CORE_FILE_H
#define PRB_TARGET_CORE_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"
#include "target/core/core.h"
#include "target/mem/local_file.h"
#include "target/mem/mem.h"
#include "target/proc/rights.h"
#include "target/target.h"

struct core_segment {
	uint64_t address, size;	 /**< in memory */
	uint64_t offset, stored; /**< in the file; stored <= size bytes are really there */
	bool read, write, exec;
	bool cut; /**< ends early because the file is truncated */
};

struct core_thread {
	pid_t tid, ppid, pgrp, sid;
	uint64_t utime, stime; /**< clock ticks of 10 ms */
	struct prb_regs regs;
	int64_t syscall;  /**< number from a note, -1: not in one, -2: unknown */
	uint64_t args[6]; /**< of the system call; on aarch64 the first may be overwritten */
	uint16_t signal;  /**< pr_cursig */
};

/** A mapping of a file, from NT_FILE. */
struct core_mapping {
	uint64_t start, end, offset;
	const char *path; /**< in `notes` */
	uint64_t file;	  /**< number of the file, from 1, in place of an inode */
};

/** A file of this machine that memory is read from. */
struct core_local {
	char *path;
	uint64_t base;
	int fd;	      /**< -1: not usable */
	char *reason; /**< why not */
};

/** A text of a crash record, in `notes`. */
struct core_fact {
	const char *name, *text;
	size_t length;
};

struct core {
	struct prb_target target;
	struct prb_core_info info;
	int fd;
	char *path;	    /**< for messages */
	char *exe;	    /**< path of the program in the core, "" if missing */
	char *exe_override; /**< from the user, or NULL; the same for the next two */
	char *sysroot, *library_path;
	struct prb_rights owner; /**< of the file: whose word the paths in it are */
	uint64_t file_size;

	PRB_VEC(struct core_segment) segments; /**< sorted by address */
	size_t last_segment;		       /**< found last */
	struct prb_mem stored;		       /**< memory in the file only */
	struct prb_mem all;		       /**< with what local files have */
	PRB_VEC(struct core_local) locals;
	size_t last_local;

	struct prb_str notes;		       /**< all of them, one behind the other */
	PRB_VEC(struct core_thread) threads;   /**< in the order of the file */
	PRB_VEC(struct core_mapping) mappings; /**< sorted by start */
	PRB_VEC(struct core_fact) facts;       /**< of a crash record, in the order of the file */
	bool have_info;			       /**< NT_PRPSINFO: the following are known */
	char name[17], arguments[81];
	pid_t ppid, pgrp, sid;
	const char *auxv;
	size_t auxv_size;
};

/** Opens and reads headers, segments and notes' bytes. */
struct prb_error *core_file_open(struct core *core, const char *path) PRB_MUST_CHECK;

/** Reads @p length bytes at @p offset of the file; PRB_ERROR_BAD_DATA if it ends before. */
struct prb_error *core_file_read(struct core *core, uint64_t offset, void *data,
				 size_t length) PRB_MUST_CHECK;

/** Understands the notes: threads, mappings, process. */
struct prb_error *core_notes_parse(struct core *core) PRB_MUST_CHECK;

/** A note of a crash record (record.c). */
struct prb_error *core_take_fact(struct core *core, const char *data, size_t length) PRB_MUST_CHECK;
/** The text of that name, or NULL. */
const struct core_fact *core_fact(const struct core *core, const char *name);
/** Fills in the data that only a crash record has. */
void core_understand_record(struct core *core);
/** Names that are numbers below @p folder; false if there are none. */
bool core_list_facts(const struct core *core, const char *folder, struct prb_str *ret);

/** Value of an auxiliary vector entry (AT_…); false if there is none. */
bool core_auxv(const struct core *core, uint64_t type, uint64_t *ret);

const struct core_thread *core_thread(const struct core *core, pid_t tid);

/** The segment that holds @p address, or NULL. */
const struct core_segment *core_segment_at(struct core *core, uint64_t address);

void core_mem_init(struct core *core);
void core_mem_deinit(struct core *core);

/** Opens the local file behind a mapping, if it is the same build (search.c). */
struct prb_error *core_open_map(struct core *core, const struct prb_map *map,
				int *ret_fd) PRB_MUST_CHECK;

/** Opens a file that was not mapped, below the sysroot if it is there. */
struct prb_error *core_open_other(const struct core *core, const char *path,
				  int *ret_fd) PRB_MUST_CHECK;

/** Makes up the text of "maps" from segments and mapped files. */
void core_make_maps(struct core *core, struct prb_str *ret);

struct prb_error *core_read_fact(struct prb_target *t, const char *name,
				 struct prb_str *ret) PRB_MUST_CHECK;
struct prb_error *core_list_fact(struct prb_target *t, const char *name,
				 struct prb_str *ret) PRB_MUST_CHECK;

/** Answers for "task/TID/…" (tasks.c). */
struct prb_error *core_task_fact(struct core *core, const char *name,
				 struct prb_str *ret) PRB_MUST_CHECK;
struct prb_error *core_task_stat(struct core *core, pid_t tid, struct prb_str *ret) PRB_MUST_CHECK;

/** The error for a fact that no core has. */
struct prb_error *core_not_told(const char *name) PRB_MUST_CHECK;

/** Appends the memory of the command line or the environment, as the kernel set them up. */
struct prb_error *core_stack_strings(struct core *core, bool environment,
				     struct prb_str *ret) PRB_MUST_CHECK;

/**
 * If @p *fd is a compressed file, replaces it by one with the content. The temporary file has no
 * name and takes up only what is not zero.
 */
struct prb_error *core_unpack(const char *path, int *fd) PRB_MUST_CHECK;

/** True if the file is compressed in a way that core_unpack() knows, at least by name. */
bool core_is_packed(int fd);

/** Decompresses the content of a compressed section (@p type: ELFCOMPRESS_…) into @p ret. */
struct prb_error *core_inflate(uint32_t type, const void *data, size_t length, uint64_t size,
			       struct prb_str *ret) PRB_MUST_CHECK;

#endif

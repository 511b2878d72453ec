/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The memory interface: every byte of a target is read through a `struct prb_mem`.
 *
 * A source (live process, core, snapshot, debugger's inferior, a cached view of another source)
 * embeds `struct prb_mem` as its first member and fills in the ops. Readers above never know which
 * one they have. Addresses are the target's. Both supported machines are little-endian and 64-bit,
 * like us, so numbers are read as they lie.
 *
 * Threading: one thread at a time per object. Errors: PRB_ERROR_FAULT for memory that is not
 * there, PRB_ERROR_NO_PROCESS and PRB_ERROR_PERMISSION for a live process.
 */
#ifndef PRB_TARGET_MEM_MEM_H
#define PRB_TARGET_MEM_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/str.h"

struct prb_mem;

/** One piece of a batched read. */
struct prb_block {
	uint64_t address; /**< in the target */
	size_t length;
	void *buffer; /**< ours, @p length bytes */
	bool ok;      /**< set by the read: all of it was read */
};

struct prb_mem_ops {
	/** Reads exactly @p length bytes. */
	struct prb_error *(*read)(struct prb_mem *mem, uint64_t address, void *buffer,
				  size_t length);
	/** Optional, see prb_mem_peek(). */
	struct prb_error *(*peek)(struct prb_mem *mem, uint64_t address, void *buffer,
				  size_t length);
	/** Optional: reads many blocks in as few system calls as it can; sets each `ok`. */
	struct prb_error *(*read_many)(struct prb_mem *mem, struct prb_block *blocks, size_t count);
	void (*destroy)(struct prb_mem *mem);
};

struct prb_mem {
	const struct prb_mem_ops *ops;
	/** Nothing moves, and what was read is kept: a view of it reads what it is asked for, and
	 * keeps nothing itself. */
	bool kept;
};

static inline void prb_mem_destroy(struct prb_mem *mem)
{
	if (mem)
		mem->ops->destroy(mem);
}

static inline struct prb_error *PRB_MUST_CHECK prb_mem_read(struct prb_mem *mem, uint64_t address,
							    void *buffer, size_t length)
{
	return mem->ops->read(mem, address, buffer, length);
}

/**
 * Reads what is only looked through, like a stack in search of something: it is not counted among
 * what was needed, so that a redacted snapshot does not come to hold it.
 */
static inline struct prb_error *PRB_MUST_CHECK prb_mem_peek(struct prb_mem *mem, uint64_t address,
							    void *buffer, size_t length)
{
	return (mem->ops->peek ? mem->ops->peek : mem->ops->read)(mem, address, buffer, length);
}

/** Batched read; a block that cannot be read has ok == false, which is not an error. */
struct prb_error *prb_mem_read_many(struct prb_mem *mem, struct prb_block *blocks,
				    size_t count) PRB_MUST_CHECK;

struct prb_error *prb_mem_read_u8(struct prb_mem *mem, uint64_t address,
				  uint8_t *ret) PRB_MUST_CHECK;
struct prb_error *prb_mem_read_u32(struct prb_mem *mem, uint64_t address,
				   uint32_t *ret) PRB_MUST_CHECK;
struct prb_error *prb_mem_read_u64(struct prb_mem *mem, uint64_t address,
				   uint64_t *ret) PRB_MUST_CHECK;

/**
 * Reads a piece of text: *length bytes, or fewer, then set, up to and with the first NUL or the end
 * of what can be read at once. Memory behind the NUL is another's and does not count as needed.
 */
struct prb_error *prb_mem_read_text(struct prb_mem *mem, uint64_t address, char *ret,
				    size_t *length) PRB_MUST_CHECK;

/** Appends the NUL-terminated string at @p address; PRB_ERROR_BAD_DATA if over @p max bytes. */
struct prb_error *prb_mem_read_cstr(struct prb_mem *mem, uint64_t address, size_t max,
				    struct prb_str *ret) PRB_MUST_CHECK;

/**
 * Memory of the live process @p pid (0: our own) through process_vm_readv, or /proc/PID/mem where
 * the kernel lacks it. Opens nothing that needs closing but the returned object.
 */
struct prb_error *prb_mem_live_create(int pid, struct prb_mem **ret) PRB_MUST_CHECK;

#endif

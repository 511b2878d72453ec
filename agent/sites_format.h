/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The buffer in the target's memory into which sampled allocations are written, and which
 * others read from outside (control/sites.h).
 *
 * A header of one page is followed by `words` words of 64 bits. Record number N words from the
 * beginning lies at word N modulo `words`, and may go on at the first word. The writer never waits:
 * records that are not read in time are overwritten, which a reader sees by `head`. Only holders of
 * the main interpreter's GIL write; in free-threaded builds its threads, one after the other.
 *
 * An allocation is a word of its kind and sizes, the thread, the time, the address, the size, the
 * length of the data after the frames, and two words for each frame, innermost first: the code
 * object and the raw position in it. Code objects are kept alive until the client has read them.
 * Positions are those in the code object's own bytecode, also where threads run copies of it. If
 * there are too many, further ones are not kept, and both words are 0. A freed block is the first
 * word, the time and the address.
 *
 * If the client has asked for C frames, the registers and the bytes of the stack follow the frames.
 * There are also frames that mark the way into C then: 0 and the frame's address. Bit 0 of a code
 * object's address says that its frame is the first of an eval loop (3.11).
 */
#ifndef PRB_AGENT_SITES_FORMAT_H
#define PRB_AGENT_SITES_FORMAT_H

#include <stdint.h>

enum {
	PRB_SITES_VERSION = 1,
	PRB_SITES_HEADER = 4096,
	PRB_SITES_WORDS = 1 << 18,
	PRB_SITES_NATIVE_WORDS = 1 << 20, /**< the same where stacks are copied */
	PRB_SITES_FRAMES = 128,		  /**< of one stack, innermost first */
};

enum prb_sites_kind { PRB_SITES_ALLOCATED = 1, PRB_SITES_FREED };

/** Words of a record in front of its frames. */
enum { PRB_SITES_ALLOCATED_WORDS = 5, PRB_SITES_FREED_WORDS = 3 };
/** The pc, the stack pointer, then x86_64: rbx, rbp, r12 to r15; aarch64: x19 to x30. */
enum { PRB_SITES_REGISTERS = 14, PRB_SITES_STACK = 32768 /* bytes, at most */ };
enum {
	PRB_SITES_RECORD = PRB_SITES_ALLOCATED_WORDS + 2 * PRB_SITES_FRAMES,
	PRB_SITES_NATIVE_RECORD = PRB_SITES_RECORD + PRB_SITES_REGISTERS + PRB_SITES_STACK / 8,
};

/** The first word: kind, number of frames, whether there were more, thread. */
#define PRB_SITES_FIRST(kind, frames, more, tid) \
	((uint64_t)(tid) << 32 | (uint64_t)(more) << 24 | (uint64_t)(frames) << 8 | (kind))

struct prb_sites_header {
	uint64_t version, words;
	uint64_t mean;		/**< bytes for each sample */
	int64_t began, ended;	/**< ns of CLOCK_MONOTONIC; ended 0: it goes on */
	uint64_t head;		/**< words that were written so far */
	uint64_t bytes;		/**< that were requested, all of them; complete at the end */
	uint64_t other_bytes;	/**< of them, by threads of other interpreters or without the GIL */
	uint64_t untracked;	/**< samples whose freeing is not seen: there were too many */
	uint64_t codes_dropped; /**< frames without their code object */
};

/** How the writer walks stacks; the client has read that of its layout. Offsets. */
enum prb_sites_recipe {
	PRB_SITES_MEAN,
	PRB_SITES_CHAIN,	/**< 0: frame objects, 1: behind a cframe, 2: directly */
	PRB_SITES_FIRST_FRAME,	/**< in the thread state: the frame, or the cframe */
	PRB_SITES_CFRAME_FRAME, /**< in the cframe */
	PRB_SITES_THREAD_SIZE,
	PRB_SITES_THREAD_ID,
	PRB_SITES_THREAD_INTERP,
	PRB_SITES_INTERP, /**< address of the main interpreter */
	PRB_SITES_CODE,
	PRB_SITES_PREVIOUS,
	PRB_SITES_POSITION,
	PRB_SITES_POSITION_SIZE, /**< 4 or 8 */
	PRB_SITES_HAS_OWNER,
	PRB_SITES_OWNER,
	PRB_SITES_SHIM, /**< owners from this one on are no frames of Python */
	PRB_SITES_TAGS, /**< bits to be cleared in the code's address */
	PRB_SITES_OLD_RECIPE,
	/* Only for agents with PRB_WIRE_CAN_SITES_NATIVE. */
	PRB_SITES_NATIVE = PRB_SITES_OLD_RECIPE, /**< 1: C frames are wanted */
	PRB_SITES_ENTRY, /**< in the frame: 1 byte, the first of its loop; 0: no such field */
	PRB_SITES_NATIVE_RECIPE,
	/* Only for free-threaded builds, where older agents refuse the recipe for its length. */
	PRB_SITES_COPY = PRB_SITES_NATIVE_RECIPE, /**< in the frame: 4 bytes, the number of its
						       copy of the bytecode; 0: no copies */
	PRB_SITES_COPIES, /**< in the code: the address of their number and addresses */
	PRB_SITES_BYTES,  /**< in the code: its own bytecode */
	PRB_SITES_RECIPE,
};

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Sampled allocations of a process: has its agent write them to a buffer in the process's
 * memory, and reads that from outside while it is filled (agent/sites_format.h).
 *
 * The buffer is as untrusted as its process. Numbers are checked; a buffer that contradicts itself
 * costs samples, which are counted.
 *
 * Threading: one thread at a time. Errors: PRB_ERROR_UNSUPPORTED with the reason if allocations
 * cannot be sampled there.
 */
#ifndef PRB_CONTROL_SITES_H
#define PRB_CONTROL_SITES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/str.h"
#include "control/client.h"
#include "python/python.h"
#include "target/regs.h"
#include "target/target.h"

/** Blocks that are larger count as so many bytes, and sums do not overflow. */
#define PRB_SITES_LARGEST (UINT64_C(1) << 40)

/** Of one stack. */
enum { PRB_SITES_FRAMES_MOST = 128 };

/** A sampled allocation, or the end of one. */
struct prb_sites_sample {
	bool freed; /**< then only time and address are set */
	bool more;  /**< there are more frames, which call these */
	uint32_t tid;
	int64_t time;		 /**< ns of CLOCK_MONOTONIC */
	uint64_t address, bytes; /**< at most PRB_SITES_LARGEST */
	/**
	 * Innermost first, valid during the call: code object (0: unknown) and raw position. With C
	 * frames as agent/sites_format.h says, with marks and ways into C.
	 */
	const uint64_t *frames;
	unsigned count;
	/** With C frames: for prb_sites_registers(), and the stack that they are of. Or NULL. */
	const uint64_t *registers;
	const void *stack;
	size_t stack_length;
};

struct prb_sites_options {
	double seconds;
	uint64_t mean;	 /**< bytes for each sample */
	uint64_t interp; /**< the main interpreter */
	bool native;	 /**< C frames, too */
	/** Its code objects live at least until the function returns. */
	struct prb_error *(*take)(void *context, const struct prb_sites_sample *sample);
	bool (*ends)(void *context); /**< true: the user has seen enough */
	void *context;
};

struct prb_sites_facts {
	int64_t began, ended;	/**< ns of CLOCK_MONOTONIC */
	uint64_t bytes;		/**< requested in that time, all of them */
	uint64_t other_bytes;	/**< the part of them that was not sampled */
	uint64_t untracked;	/**< samples whose end is not known */
	uint64_t codes_dropped; /**< frames that have no code object */
	uint64_t lost;		/**< bytes of the buffer that were overwritten, or damaged */
	bool stays;		/**< another allocator calls ours, which stays there */
	bool gone;		/**< the process ended meanwhile */
};

/** "64KiB", "1MB", "4096": from 1 to 1 GiB. False if it is something else. */
bool prb_sites_parse_size(const char *text, uint64_t *ret);

/** NULL if allocations of this Python can be sampled. */
struct prb_error *prb_sites_refusal(const struct prb_python *py) PRB_MUST_CHECK;

/** The registers of a sample that has them, of a process on that machine. */
void prb_sites_registers(const struct prb_sites_sample *sample, uint16_t machine,
			 struct prb_regs *ret);

/** Samples. *ret is valid without an error. */
struct prb_error *prb_sites_run(struct prb_agent *agent, struct prb_python *py,
				const struct prb_sites_options *options,
				struct prb_sites_facts *ret) PRB_MUST_CHECK;

/** Has the agent keep rows of memory_allocations: lines as agent/sites/sites.py takes them. */
struct prb_error *prb_sites_keep_rows(struct prb_agent *agent,
				      const struct prb_str *lines) PRB_MUST_CHECK;

#endif

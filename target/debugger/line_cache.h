/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Cache of memory read by a debugger, in lines of PRB_LINE_SIZE bytes. Internal to
 * target/debugger/.
 *
 * A debugger's read has a price for the call and one for each byte. With a stub on this machine
 * bytes are expensive (a page costs as much as four or five lines), so only needed lines are read;
 * with a remote stub calls are expensive, and the rest of a page or two comes along. The first
 * reads find out which it is. Sequential reads, such as of frames, get more with each call, up to a
 * page.
 *
 * At most PRB_LINES_MAX lines are kept; then it begins anew. Threading: one thread at a time.
 */
#ifndef PRB_TARGET_DEBUGGER_LINE_CACHE_H
#define PRB_TARGET_DEBUGGER_LINE_CACHE_H

#include "base/map.h"
#include "base/vec.h"
#include "target/debugger/debugger.h"

enum {
	PRB_LINE_SIZE = 512,
	PRB_LINES_MAX = 1 << 17, /* 64 MiB */
	PRB_LINE_TRIALS = 2,	 /* reads of each size before one is chosen */
};

struct prb_line_cache {
	const struct prb_debugger *debugger;
	const struct prb_maps *maps;
	struct prb_number_map index; /* address / PRB_LINE_SIZE → number of the line */
	PRB_VEC(char *) slabs;
	size_t count; /* lines that are kept */
	char *buffer; /* what one call reads */
	unsigned line_trials, far_trials;
	int64_t line_ns, far_ns; /* what the quickest of them took: of one line, of some more */
};

/** Makes it; @p debugger and @p maps, which may lack some, are borrowed. */
struct prb_error *prb_line_cache_init(struct prb_line_cache *cache,
				      const struct prb_debugger *debugger,
				      const struct prb_maps *maps) PRB_MUST_CHECK;
void prb_line_cache_deinit(struct prb_line_cache *cache);

/** Reads exactly @p length bytes; PRB_ERROR_FAULT with the first address that is not there. */
struct prb_error *prb_line_cache_read(struct prb_line_cache *cache, uint64_t address, void *buffer,
				      size_t length) PRB_MUST_CHECK;

#endif

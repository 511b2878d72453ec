/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file `memory --sites`: allocations that were sampled while the process ran, and what was alive
 * at the end.
 *
 * Each sample stands for as many bytes as are expected for one of its size: s bytes are sampled
 * with a probability of 1 − exp(−s / mean).
 *
 * Threading: one thread at a time. The recording owns its texts.
 */
#ifndef PRB_CLI_COMMANDS_MEMORY_SITES_SITES_H
#define PRB_CLI_COMMANDS_MEMORY_SITES_SITES_H

#include "control/sites.h"
#include "cli/commands/memory/report/memory.h"
#include "profile/recording/recording.h"

struct prb_memory_sample {
	uint32_t stack, tid;
	int64_t time; /**< ns of CLOCK_MONOTONIC */
	uint64_t bytes;
	bool alive;
};

struct prb_memory_sites {
	struct prb_recording *recording; /**< its tree has the stacks */
	struct prb_sites_facts facts;
	uint64_t mean;
	PRB_VEC(struct prb_memory_sample) samples;
	bool native; /**< with C frames */
	bool full;   /**< there were more than are kept */
};

/** A function, a line of it, or a whole stack. */
struct prb_memory_site {
	uint32_t stack; /**< the stack, or a stack that ends in that line */
	double bytes, blocks, alive_bytes, alive_blocks;
	uint64_t samples;
};
struct prb_memory_site_list {
	PRB_VEC(struct prb_memory_site) list;
};

/** Blocks that were allocated in the last tenth of the time are not called a leak. */
#define PRB_MEMORY_TAIL 0.1

/** Samples, and keeps the rows of memory_allocations. Ctrl-C ends it early. */
struct prb_error *prb_memory_sites_take(struct prb_memory *memory,
					const struct prb_memory_settings *s,
					struct prb_memory_sites *ret) PRB_MUST_CHECK;
void prb_memory_sites_deinit(struct prb_memory_sites *sites);

/* native.c */
struct prb_site_natives;
/** Borrows all. @p py: the Python that is sampled. */
struct prb_error *prb_site_natives_create(const struct prb_memory *memory,
					  const struct prb_python *py,
					  struct prb_recording *recording,
					  struct prb_site_natives **ret) PRB_MUST_CHECK;
void prb_site_natives_destroy(struct prb_site_natives *natives);
/**
 * The stack of a sample that has C frames, called from @p root. @p python: the tree's frames for
 * those of its frames that are no way into C.
 */
struct prb_error *prb_site_natives_stack(struct prb_site_natives *natives,
					 const struct prb_sites_sample *sample,
					 const uint32_t *python, uint32_t root,
					 uint32_t *ret) PRB_MUST_CHECK;
/** Names the C frames of all samples, until @p give_up says that it is enough; those of the
 * interpreter itself are left out. */
struct prb_error *prb_site_natives_name(struct prb_site_natives *natives,
					struct prb_memory_sites *sites,
					bool (*give_up)(void *context)) PRB_MUST_CHECK;
/** Of a frame's two words: Python called C there. */
static inline bool prb_site_is_shim(const uint64_t words[2])
{
	return !words[0] && words[1];
}

/* sum.c */
/** By line of the innermost frames, and of the Python frames that called C; the most bytes first.
 */
struct prb_error *prb_memory_sites_lines(const struct prb_memory_sites *sites,
					 struct prb_memory_site_list *ret) PRB_MUST_CHECK;
/** The stack of the Python function that called the C function which @p stack ends in; 0: it ends
 * in none, or none called it. */
uint32_t prb_memory_python_caller(const struct prb_tree *tree, uint32_t stack);
/** By stack; @p leaks: only of what leaks, the most bytes that are alive first. */
struct prb_error *prb_memory_sites_stacks(const struct prb_memory_sites *sites, bool leaks,
					  struct prb_memory_site_list *ret) PRB_MUST_CHECK;
/** How many bytes, and blocks, a sample stands for. */
double prb_memory_sample_bytes(const struct prb_memory_sites *sites,
			       const struct prb_memory_sample *sample);
/** Lines for prb_sites_keep_rows(). */
struct prb_error *prb_memory_sites_rows(const struct prb_memory_sites *sites,
					struct prb_str *ret) PRB_MUST_CHECK;

/* show.c */
struct prb_error *prb_memory_sites_text(const struct prb_memory *memory,
					const struct prb_memory_sites *sites, int rows,
					struct prb_str *s) PRB_MUST_CHECK;
struct prb_error *prb_memory_sites_json(const struct prb_memory *memory,
					const struct prb_memory_sites *sites, int rows,
					struct prb_str *s) PRB_MUST_CHECK;

/* graph.c */
/** PRB_ERROR_USAGE if there is no format for such a name. */
struct prb_error *prb_memory_sites_check_output(const char *path) PRB_MUST_CHECK;
struct prb_error *prb_memory_sites_write(struct prb_memory_sites *sites,
					 const char *path) PRB_MUST_CHECK;

#endif

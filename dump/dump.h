/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Makes a dump (dump/model/dump.h) of any target, read as exactly as can be.
 *
 * Of a live process, threads that sleep are read without being stopped, and proven not to have run
 * meanwhile; a thread on a processor is stopped for the time of one bulk copy. Everything is
 * decoded after it runs again.
 *
 * Threading: one thread at a time for one target.
 */
#ifndef PRB_DUMP_DUMP_H
#define PRB_DUMP_DUMP_H

#include "base/error.h"
#include "dump/model/dump.h"
#include "dwarf/elf/module.h"
#include "python/python.h"
#include "target/target.h"

struct prb_error *prb_dump_create(struct prb_target *target, const struct prb_dump_options *options,
				  struct prb_dump **ret) PRB_MUST_CHECK;

/**
 * The threads of any process, without stacks: what the kernel says of each. @p all_enders: look for
 * all processes that can end its wait; @p search is as in struct prb_dump_options.
 */
struct prb_error *prb_dump_create_stackless(struct prb_target *target, bool all_enders,
					    struct prb_search *search,
					    struct prb_dump **ret) PRB_MUST_CHECK;

/** The Python runtimes of a target, for a dump and for other readers. */
struct prb_dump_found {
	struct prb_modules *modules; /**< all of the target's; NULL: not looked for yet */
	struct prb_pythons pythons;  /**< the runtimes in them; empty: not looked for yet */
};

/** @p found may be all 0. */
void prb_dump_found_deinit(struct prb_dump_found *found);

/**
 * As above, sharing @p found with the caller, also after an error: what it has is not searched
 * again, and findings are stored in it. Threads and frames are read anew in any case. Nothing is
 * shared while the target is recorded, since a snapshot must hold all that its dump is made of.
 * Nothing is stored if the dump looks at a few modules only, as it does in remote targets.
 */
struct prb_error *prb_dump_create_with(struct prb_target *target,
				       const struct prb_dump_options *options,
				       struct prb_dump_found *found,
				       struct prb_dump **ret) PRB_MUST_CHECK;

#endif

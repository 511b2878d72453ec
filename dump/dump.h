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

/** Where Python is in a target: what a dump needs first, and other readers need too. */
struct prb_dump_found {
	struct prb_modules *modules; /**< all of the target's; NULL: not looked for yet */
	struct prb_pythons pythons;  /**< the runtimes in them; empty: not looked for yet */
};

/** @p found may be all 0. */
void prb_dump_found_deinit(struct prb_dump_found *found);

/** As above, sharing @p found with the caller, also after an error: what is there is not looked for
 * again, and what is looked for is left there. Threads and frames are read anew in any case. A dump
 * shares nothing while the target is recorded, since a snapshot has to hold all that it is made of.
 * It leaves nothing there if it looks at a few modules only, as it does in remote targets.
 */
struct prb_error *prb_dump_create_with(struct prb_target *target,
				       const struct prb_dump_options *options,
				       struct prb_dump_found *found,
				       struct prb_dump **ret) PRB_MUST_CHECK;

#endif

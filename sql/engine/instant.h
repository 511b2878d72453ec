/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file One statement's view of one target. Everything is cached until the statement ends, so all
 * tables of a join show the same instant, and a table that is scanned repeatedly is read once.
 *
 * Threading: belongs to the thread of its statement.
 */
#ifndef PRB_SQL_ENGINE_INSTANT_H
#define PRB_SQL_ENGINE_INSTANT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"
#include "python/python.h"
#include "dwarf/elf/module.h"
#include "target/target.h"
#include "dump/model/dump.h"
#include "values/limits.h"

struct prb_instant;

/**
 * The parts of its session that an instant uses: pointers, so that a changed setting applies at
 * once.
 */
struct prb_instant_host {
	const enum prb_dump_mode *mode;
	const struct prb_value_limits *values;
	const struct prb_repr_options *dumped; /**< limits of variables in a dump */
	const size_t *targets;		       /**< number of targets */
	void (*warn)(void *context, const char *text);
	void *context; /**< of warn() */
};

/** The needs of the statement as planned; the dump is made for them. */
struct prb_plan {
	unsigned needs;	 /**< enum prb_need */
	pid_t tid;	 /**< the thread requested last; 0: not a single one */
	bool several;	 /**< the tables do not all request the same single thread */
	bool planned;	 /**< a table requested threads */
	bool no_values;	 /**< a snapshot without values of variables is recorded */
	unsigned frames; /**< frames needed of each thread; UINT_MAX: all */
};

/** Borrows everything, but copies @p host. */
struct prb_error *prb_instant_create(struct prb_target *target, const struct prb_plan *plan,
				     const struct prb_instant_host *host,
				     struct prb_instant **ret) PRB_MUST_CHECK;
void prb_instant_destroy(struct prb_instant *instant);

struct prb_target *prb_instant_target(struct prb_instant *instant);

/** False while a snapshot without values of variables is recorded. */
bool prb_instant_values(const struct prb_instant *instant);

/** The limits of values: short by default, or as set by the user. */
struct prb_repr_options prb_instant_repr(const struct prb_instant *instant);

/** How running threads may be read. */
enum prb_dump_mode prb_instant_mode(const struct prb_instant *instant);

/** The time of the rows, seconds since the epoch. */
double prb_instant_time(const struct prb_instant *instant);

/** After the dump: an error if the only thread that the statement requests does not exist. */
struct prb_error *prb_instant_check_thread(const struct prb_instant *instant) PRB_MUST_CHECK;

/** The dump of the threads, with the parts that the plan needs. Made at the first call. */
struct prb_error *prb_instant_dump(struct prb_instant *instant,
				   const struct prb_dump **ret) PRB_MUST_CHECK;

/** Files mapped in the target, for symbols and interpreters. */
struct prb_error *prb_instant_modules(struct prb_instant *instant,
				      struct prb_modules **ret) PRB_MUST_CHECK;

/**
 * The target's Python runtimes and a view of its memory in which each page is read once. Of a live
 * process the pages are not of one instant: a caller that walks objects must validate them, and
 * report inconsistent ones.
 */
struct prb_error *prb_instant_pythons(struct prb_instant *instant, struct prb_pythons **ret,
				      struct prb_mem **ret_mem) PRB_MUST_CHECK;

/**
 * Caches a table's data until the statement ends. The first call for @p key (a unique address, such
 * as that of the table's spec) calls @p create, whose error is cached too.
 */
struct prb_error *prb_instant_memo(struct prb_instant *instant, const void *key,
				   struct prb_error *(*create)(struct prb_instant *instant,
							       void **ret),
				   void (*destroy)(void *memo), void **ret) PRB_MUST_CHECK;

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Rows of a table of all ranks of a job, for tables "global.SCHEMA.TABLE": each host runs
 * `probing cluster rows` for the columns that are used, and its rows are kept here until the
 * statement ends. The output of hosts is untrusted.
 *
 * Threading: one thread at a time.
 */
#ifndef PRB_CLUSTER_ROWS_ROWS_H
#define PRB_CLUSTER_ROWS_ROWS_H

#include <stdbool.h>

#include "base/error.h"
#include "base/str.h"
#include "cluster/reach/reach.h"
#include "sql/engine/global_tables.h"

struct prb_rows;

/** Where the ranks are. All is borrowed. */
struct prb_rows_options {
	const struct prb_reach *reach;
	const struct prb_hosts *hosts; /**< empty: this machine */
	const char *job;	       /**< or NULL */
	double deadline_s;	       /**< that each host has */
	bool strict;		       /**< a rank or host that does not answer is an error */
	bool tree;		       /**< some of the hosts ask the others: relay.h */
};

struct prb_error *prb_rows_create(const struct prb_rows_options *options,
				  struct prb_rows **ret) PRB_MUST_CHECK;
/** NULL is none. */
void prb_rows_destroy(struct prb_rows *rows);

/** A prb_global_reader, with the rows as its context. */
struct prb_error *prb_rows_read(void *rows, const struct prb_global_ask *ask,
				struct prb_scan *scan) PRB_MUST_CHECK;

/** Appends which ranks answered and which did not, and why; what each was asked, and how much they
 * answered; as lines. */
void prb_rows_receipt(const struct prb_rows *rows, struct prb_str *s);

#endif

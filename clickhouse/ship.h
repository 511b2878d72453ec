/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Sends the rows of rings and recordings to ClickHouse, from a process of ours, until a
 * signal ends it.
 *
 * **No row is lost or doubled**, whichever of the two is killed:
 *
 * - A row is identified permanently by `_ring`, a hash of the header of its ring, the host and
 *   the user; and `_row`, the number of its slot.
 * - The rows of a ring are sent in the order of their numbers, one insert after the other. So
 *   what has arrived is always a beginning of the ring, also if an insert arrived in part, and the
 *   server's highest `_row` is where to go on.
 * - That number is only believed if no insert is on its way any more. After an insert whose end
 *   is not known, ours or a killed process's, its session is fenced first (server.h).
 *
 * The same holds for samples of recordings (.profile), whose `_row` is made of chunk and place, and
 * for metrics, which are read into a ring of our own first.
 *
 * Rows that wait, because the server is away or slow, are stored in cold files (rings/cold.h)
 * before their ring drops them, within a bound.
 *
 * Threading: one thread. Ownership: options are the caller's.
 */
#ifndef PRB_CLICKHOUSE_SHIP_H
#define PRB_CLICKHOUSE_SHIP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "command/command.h"

struct prb_ship_options {
	const char *to;			 /**< address of the server and database */
	const char *password_file;	 /**< or NULL */
	const char *state;		 /**< folder, or NULL: the usual one */
	const char *host;		 /**< what this machine is called; NULL: its name */
	const char *job;		 /**< of all rows; NULL: each process's own */
	double every;			 /**< seconds between inserts into a table; 0: 2 */
	double metrics;			 /**< seconds between readings of metrics; 0: none */
	int max_size;			 /**< MiB of cold files; 0: 1024 */
	int keep_days;			 /**< rows that were sent earlier are removed; 0: never */
	bool once;			 /**< ends when what there is was sent */
	bool patient;			 /**< waits for a password that is right, too */
	const struct prb_texts *targets; /**< pids and folders of rings; none: all there are */
};

struct prb_ship_sums {
	uint64_t rows, inserts, bytes;
	uint64_t lost;	     /**< slots that their ring dropped before they could be sent */
	uint64_t unfinished; /**< slots whose writer did not finish them */
	size_t rings, refused;
};

/** Runs until SIGINT, SIGTERM or SIGHUP, which are blocked meanwhile. Remarks go to stderr. */
struct prb_error *prb_ship_run(const struct prb_ship_options *options,
			       struct prb_ship_sums *ret) PRB_MUST_CHECK;

#endif

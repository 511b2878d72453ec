/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file What a daemon that ships rows has to know after it was killed: how far each ring was sent,
 * and the session of the server that its last insert went through.
 *
 * A small file in a folder of ours, which is always replaced as a whole; and a lock file beside it,
 * which one process holds, and which has the session, so that noting it needs no room on a disk.
 * The server's rows say how far a ring was sent (ship.h). The file says so too, for rings whose
 * rows the server has dropped. It also has the job of processes that have ended.
 *
 * Threading: one thread at a time.
 */
#ifndef PRB_CLICKHOUSE_STATE_H
#define PRB_CLICKHOUSE_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"
#include "clickhouse/server.h"

/**
 * Opens @p said, which is made where it is missing, or the usual folder for what a daemon keeps:
 * $STATE_DIRECTORY, as systemd sets it, $XDG_STATE_HOME/probing or ~/.local/state/probing. Both
 * results are the caller's, also after an error.
 */
struct prb_error *prb_state_folder_open(const char *said, int *ret_fd,
					char **ret_path) PRB_MUST_CHECK;

struct prb_ship_entry {
	uint64_t ring, next; /**< number behind the last slot that was sent */
	int64_t seen;	     /**< when the ring was there last, seconds since the epoch */
	char *job;
};

struct prb_ship_state {
	char *folder, *path;
	int folder_fd, lock;
	char session[PRB_CLICKHOUSE_SESSION]; /**< "": none */
	bool changed;
	PRB_VEC(struct prb_ship_entry) list;
};

/**
 * Opens what is in @p folder, or in the usual one for NULL. Each server and database has a file of
 * its own. PRB_ERROR_FAILED if another process holds it.
 */
struct prb_error *prb_ship_state_open(const char *folder, const struct prb_clickhouse_url *url,
				      struct prb_ship_state *ret) PRB_MUST_CHECK;
void prb_ship_state_deinit(struct prb_ship_state *state);

/** The entry of a ring, or NULL; valid until the next that is added. */
struct prb_ship_entry *prb_ship_state_find(const struct prb_ship_state *state, uint64_t ring);
/** Notes how far a ring was sent. */
struct prb_error *prb_ship_state_note(struct prb_ship_state *state, uint64_t ring, uint64_t next,
				      const char *job) PRB_MUST_CHECK;

/** Writes the session, before an insert uses it, or that there is none. PRB_ERROR_FAILED. */
struct prb_error *prb_ship_state_note_session(struct prb_ship_state *state) PRB_MUST_CHECK;

/** Writes the positions if they have changed. Rings unseen for 60 days are forgotten. */
struct prb_error *prb_ship_state_save(struct prb_ship_state *state) PRB_MUST_CHECK;

#endif

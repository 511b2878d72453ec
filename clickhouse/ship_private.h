/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Shared by the parts of ship.h: finding rings, reading them, sending their rows. Internal to
 * clickhouse/.
 */
#ifndef PRB_CLICKHOUSE_SHIP_PRIVATE_H
#define PRB_CLICKHOUSE_SHIP_PRIVATE_H

#include <sys/stat.h>
#include <time.h>

#include "base/vec.h"
#include "clickhouse/schema.h"
#include "clickhouse/server.h"
#include "clickhouse/ship.h"
#include "clickhouse/state.h"
#include "rings/cold.h"
#include "rings/ring.h"
#include "rings/ring_make.h"
#include "target/target.h"
#include "target/proc/pids.h"

enum {
	PRB_SHIP_ROWS = 250000,	    /**< of an insert at most */
	PRB_SHIP_BYTES = 24 << 20,  /**< the same, about */
	PRB_SHIP_TABLES = 512,	    /**< more are refused: a process could make any number */
	PRB_SHIP_SOURCES = 1 << 14, /**< rings that are followed at once */
	PRB_SHIP_SHARE = 4,	    /**< no other user has more than such a part of these */
	PRB_SHIP_JOB = 256,	    /**< bytes of a job's name: what is behind is cut off */
};

enum prb_ship_kind {
	PRB_SHIP_RING,	    /**< of a process */
	PRB_SHIP_METRICS,   /**< a ring of ours, with what we read of processes: ship_metrics.c */
	PRB_SHIP_RECORDING, /**< a .profile: ship_recording.c */
};

/** A ring or a recording that is followed. */
struct prb_ship_source {
	enum prb_ship_kind kind;
	uint64_t id; /**< `_ring` */
	char *path;  /**< of the ring */
	int fd;	     /**< -1: only its cold files are there any more */
	dev_t device;
	ino_t inode;
	uid_t uid;
	char *job;
	struct prb_ring_header header; /**< as of its discovery */
	struct prb_ring_column columns[PRB_RING_COLUMNS];
	PRB_VEC(pid_t) holders; /**< processes that have it mapped */
	bool ended;		/**< it has no writer any more */
	bool placed;		/**< `next` is known */
	bool claimed;		/**< no other process sends it to this database: ship_claim.c */
	bool contested;		/**< another one does, and that was said */
	double claim_after;	/**< when the last insert of the other one is over */
	bool refused;		/**< its names or columns cannot be had there */

	size_t table;		  /**< index, if `has_table` */
	bool has_table, prepared; /**< `prepared`: `places` is known, too */
	struct prb_table_places places;

	uint64_t next; /**< number of the first slot that is not known to have arrived */
	uint64_t sent; /**< as above, with the slots of the present batch */
	uint64_t goal; /**< `head` when it was found: --once sends as much */
	uint64_t head; /**< slots that were reserved when it was looked at last */

	/* Reading: ship_read.c. */
	struct prb_ring *open; /**< the ring, or one of its cold files */
	uint64_t limit;	       /**< first slot of the open chunk that is not finished */
	double blocked;	       /**< since when the slot `sent` is not finished; 0: it is */
	uint64_t blocked_head; /**< `head` at that time */
	uint64_t given_up;     /**< slots before it are not waited for any more */
	struct prb_cold cold;  /**< where what waits is stored */
	uint64_t lost, unfinished;

	/* Of a recording, whose rows have the numbers CHUNK << 20 and up. */
	double next_look;
	struct timespec changed; /**< the file, when it was looked at last */
};

/** Reads metrics of processes from time to time. Starts with fds of -1. */
struct prb_ship_metrics {
	pid_t child;	/**< that reads them; 0: none */
	int from_child; /**< what it prints, or -1 */
	int64_t time;	/**< when it began, nanoseconds since the epoch */
	double next, limit;
	struct prb_str text;
	struct prb_ring_maker ring;
	uint64_t readings;
	bool made, told;
};

/** A table that rows go into. */
struct prb_ship_table {
	struct prb_clickhouse_table there;
	uid_t uid; /**< whose ring came first */
	double last_insert;
	double next_try, wait; /**< the server refused it */
};

/** A process that is followed. */
struct prb_ship_process {
	pid_t pid;
	int pidfd; /**< -1: the kernel has none */
	char *job;
	uint64_t program; /**< start time, ticks */
	double next_look, wait;
	int folder; /**< of its rings, as a place: a new ring changes its time; -1: none yet */
	struct timespec changed;
	bool ended, told;
};

struct prb_ship {
	const struct prb_ship_options *options;
	struct prb_clickhouse server;
	struct prb_ship_state state;
	char host[256];
	PRB_VEC(struct prb_ship_source *) sources;
	size_t most_sources; /**< as many as may be open */
	uid_t crowded_by;    /**< the last user reported for too many rings; or -1 */
	bool cut_short;	     /**< a ring had its time in this round */
	PRB_VEC(struct prb_ship_process) processes;
	struct prb_pids pids; /**< of all processes, when they were listed last; in order */
	PRB_VEC(struct prb_ship_table) tables;
	int waiting; /**< folder of the cold files of all rings */
	int signals; /**< signalfd */
	bool stopping;
	bool disk_failed;   /**< and it was said */
	bool bound_told;    /**< that waiting rows were dropped */
	uint64_t lost_told; /**< of sums.lost */
	double stop_since;
	bool fenced; /**< no insert of an earlier session is on its way */
	double next_fence;
	double next_left, next_list, next_full, next_prune;
	bool settled; /**< all that there is was found once */
	struct prb_str batch;
	uint64_t batch_rows;
	struct prb_ship_metrics metrics;
	double next_recordings;
	struct prb_ship_sums sums;
};

double prb_ship_every(const struct prb_ship *ship);

/** True if no other process sends this ring to the database; else that is said once. */
bool prb_ship_claim(const struct prb_ship *ship, struct prb_ship_source *source);

/** Finds processes and rings that are new: ship_find.c. */
struct prb_error *prb_ship_find(struct prb_ship *ship) PRB_MUST_CHECK;
void prb_ship_source_destroy(struct prb_ship_source *source);
void prb_ship_process_deinit(struct prb_ship_process *process);

/** Reads `head` of the ring. False if it cannot. */
bool prb_ship_look(struct prb_ship_source *source);

/** Adds rows of the source to the batch, until that is full; ship_read.c. */
struct prb_error *prb_ship_read(struct prb_ship *ship, struct prb_ship_source *source,
				uint16_t day) PRB_MUST_CHECK;
bool prb_ship_is_full(const struct prb_ship *ship);
/** Back to what is known to have arrived. */
void prb_ship_rewind(struct prb_ship_source *source);
/** Stores chunks that the ring would drop soon. */
struct prb_error *prb_ship_store(struct prb_ship *ship,
				 struct prb_ship_source *source) PRB_MUST_CHECK;
/** Removes the cold files whose rows have arrived, and the oldest if there are too many. */
struct prb_error *prb_ship_prune(struct prb_ship *ship) PRB_MUST_CHECK;
/** Follows what cold files of an earlier daemon have, whose rings are gone; ship_stored.c. */
struct prb_error *prb_ship_adopt(struct prb_ship *ship) PRB_MUST_CHECK;
/** "ID-UID": what the cold files of a ring are called by. */
char *prb_ship_stem(const struct prb_ship_source *source);
/** "STEM.NUMBER.cold"; false for other names. */
bool prb_ship_parse_cold(const char *name, const char *stem, uint64_t *number);
/** Opens the cold file and finds how far it goes; NULL in *ret if it is none of that ring. */
struct prb_error *prb_ship_open_cold(int folder, const char *name, uid_t owner,
				     const struct prb_ring_header *header, struct prb_ring **ret,
				     uint64_t *end) PRB_MUST_CHECK;
struct prb_error *prb_ship_add(struct prb_ship *ship,
			       struct prb_ship_source *source) PRB_MUST_CHECK;
struct prb_ship_source *prb_ship_new_source(void);
/** False if the user's rings, or all, are too many; says so. */
bool prb_ship_has_room(struct prb_ship *ship, uid_t uid);
struct prb_ship_source *prb_ship_find_source(const struct prb_ship *ship, const struct stat *st);
struct prb_ship_process *prb_ship_find_process(const struct prb_ship *ship, pid_t pid);
/** Everything that is known of a ring before its rows are read. */
struct prb_error *prb_ship_describe(struct prb_ship *ship, const char *path, int fd,
				    const struct stat *st,
				    struct prb_ship_source *source) PRB_MUST_CHECK;
/** The job that a process claims, NULL if none; and its rank, or -1. */
struct prb_error *prb_ship_find_job(struct prb_target *target, char **ret,
				    long *ret_rank) PRB_MUST_CHECK;
/** Says once that it is not sent. */
struct prb_error *prb_ship_refuse(struct prb_ship *ship, struct prb_ship_source *source,
				  struct prb_error *err, const char *path) PRB_MUST_CHECK;

/** Reads metrics if it is time to, and takes what was read. */
struct prb_error *prb_ship_read_metrics(struct prb_ship *ship) PRB_MUST_CHECK;
/** Follows rings of metrics that an earlier daemon has left. */
struct prb_error *prb_ship_adopt_metrics(struct prb_ship *ship) PRB_MUST_CHECK;
/** Ends the reading; the ring stays. */
void prb_ship_end_metrics(struct prb_ship *ship);
/** Removes a ring of metrics, all of which has arrived. */
void prb_ship_remove_metrics(const struct prb_ship *ship, const struct prb_ship_source *source);
/** The process that a row of metrics is of. Texts are the caller's @p job. */
void prb_ship_place_metric(const struct prb_ring_item *row, struct prb_str *job,
			   struct prb_row_place *place);

/** Follows a recording; nothing if it is known. */
struct prb_error *prb_ship_add_recording(struct prb_ship *ship, const char *path) PRB_MUST_CHECK;
/** Adds background recordings that are new, and sees which chunks of the known ones are complete.
 */
struct prb_error *prb_ship_find_recordings(struct prb_ship *ship) PRB_MUST_CHECK;
struct prb_error *prb_ship_read_recording(struct prb_ship *ship, struct prb_ship_source *source,
					  const struct prb_row_place *place) PRB_MUST_CHECK;

/** Sends what there is, as far as it is time to; *more: there is more at once. ship_send.c. */
struct prb_error *prb_ship_send(struct prb_ship *ship, bool *more) PRB_MUST_CHECK;

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rows of rings, in the order of their slots: from cold files as long as the ring has dropped
 * them, then from the ring. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/own_file.h"
#include "clickhouse/ship_private.h"

/** So long a ring is read in a round: the others, and signals, have their turn. */
static const double TURN_S = 0.2;
/** A slot that its writer does not finish for so long is given up: the writer was killed in it. */
static const double GIVE_UP_S = 10;

bool prb_ship_is_full(const struct prb_ship *ship)
{
	return ship->batch_rows >= PRB_SHIP_ROWS || ship->batch.length >= PRB_SHIP_BYTES;
}

static void end_reading(struct prb_ship_source *source)
{
	prb_ring_close(source->open);
	source->open = NULL;
}

void prb_ship_rewind(struct prb_ship_source *source)
{
	end_reading(source);
	source->sent = source->next;
}

static uint64_t chunk_of(const struct prb_ship_source *source, uint64_t slot)
{
	return slot >> source->header.chunk_shift;
}

/** Number of the oldest chunk that the ring has. */
static uint64_t oldest_chunk(const struct prb_ship_source *source)
{
	uint64_t last = source->head ? chunk_of(source, source->head - 1) : 0;

	return last >= source->header.chunks ? last - source->header.chunks + 1 : 0;
}

/**
 * The cold file with the highest number up to @p chunk, or else the lowest above; "" if none. Files
 * up to number @p after, unless it is NULL, were tried.
 */
static void choose_cold(int folder, const char *stem, uint64_t chunk, const uint64_t *after,
			char ret[NAME_MAX + 1])
{
	int copy = folder < 0 ? -1 : openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	prb_auto_closedir DIR *stream = copy < 0 ? NULL : fdopendir(copy);
	uint64_t best = 0, number;
	bool found = false;
	struct dirent *entry;

	*ret = '\0';
	while (stream && (entry = readdir(stream))) {
		if (!prb_ship_parse_cold(entry->d_name, stem, &number) ||
		    (after && number <= *after))
			continue;
		if (found && (number <= chunk ? best <= chunk && number <= best
					      : best <= chunk || number >= best))
			continue;
		best = number;
		found = true;
		snprintf(ret, NAME_MAX + 1, "%s", entry->d_name);
	}
}

/** Opens the cold file that has the slot `sent`, or what comes next; false if there is none. */
static struct prb_error *open_cold(struct prb_ship_source *source, int folder, uid_t owner,
				   const char *stem, bool *ret)
{
	uint64_t chunk = chunk_of(source, source->sent), number, end;
	char name[NAME_MAX + 1];

	*ret = false;
	choose_cold(folder, stem, chunk, NULL, name);
	while (*name) {
		prb_auto_ring struct prb_ring *ring = NULL;

		PRB_TRY(prb_ship_open_cold(folder, name, owner, &source->header, &ring, &end));
		if (ring && end > chunk) {
			source->open = prb_steal(&ring);
			*ret = true;
			return NULL;
		}
		if (!prb_ship_parse_cold(name, stem, &number))
			return NULL;
		choose_cold(folder, stem, 0, &number, name);
	}
	return NULL;
}

/** From our own folder, and from the ring's, where `probing record` may have stored some. */
static struct prb_error *open_any_cold(const struct prb_ship *ship, struct prb_ship_source *source,
				       bool *ret)
{
	prb_auto_free char *stem = prb_ship_stem(source), *folder = strdup(source->path);
	char *name = folder ? strrchr(folder, '/') : NULL;
	prb_auto_close int beside = -1;

	if (!stem || !folder)
		return prb_error_nomem();
	PRB_TRY(open_cold(source, ship->waiting, geteuid(), stem, ret));
	if (*ret || !name || source->fd < 0)
		return NULL;
	*name++ = '\0';
	if (strlen(name) > strlen(".ring"))
		name[strlen(name) - strlen(".ring")] = '\0';
	beside = prb_own_folder_open(folder, source->uid);
	return open_cold(source, beside, source->uid, name, ret);
}

static struct prb_error *open_ring(struct prb_ship_source *source)
{
	int copy = fcntl(source->fd, F_DUPFD_CLOEXEC, 0);

	if (copy < 0)
		return prb_error_os(errno, "cannot read %s again", source->path);
	PRB_TRY(prb_ring_open(copy, source->path, &source->open));
	prb_ring_skip(source->open, chunk_of(source, source->sent));
	return NULL;
}

/** Opens what has the slot `sent`; nothing if there is none yet. */
static struct prb_error *open_next(const struct prb_ship *ship, struct prb_ship_source *source)
{
	bool found = false;

	prb_ship_look(source);
	if (source->sent >= source->head)
		return NULL;
	if (source->fd < 0 || chunk_of(source, source->sent) < oldest_chunk(source))
		PRB_TRY(open_any_cold(ship, source, &found));
	if (found)
		return NULL;
	if (source->fd >= 0)
		return open_ring(source);
	source->sent = source->head;
	return NULL;
}

/** Goes to the next chunk of what is open; *ret: there is one. */
static struct prb_error *next_chunk(struct prb_ship_source *source, bool *ret)
{
	const struct prb_ring_range always = PRB_RING_ALWAYS;
	struct prb_ring *ring = source->open;

	PRB_TRY(prb_ring_next_chunk(ring, &always, ret));
	if (!*ret)
		return NULL;
	if (ring->first > source->sent) {
		/* Slots dropped before we followed the ring do not count as lost. */
		source->lost += source->sent ? ring->first - source->sent : 0;
		source->sent = ring->first;
	}
	source->limit = ring->cold ? UINT64_MAX : prb_ring_unfinished(ring, source->sent);
	return NULL;
}

/** The slot `limit` is not finished: goes past it if it never will be. */
static bool pass(struct prb_ship_source *source)
{
	const uint64_t slots = (uint64_t)source->header.chunks << source->header.chunk_shift;
	const double now = prb_clock_seconds();

	if (source->blocked <= 0) {
		source->blocked = now;
		source->blocked_head = source->head;
	}
	if (!source->ended && now - source->blocked < GIVE_UP_S &&
	    source->limit >= source->given_up && source->head - source->limit < slots / 2)
		return false;
	/* All slots reserved by then have waited as long. */
	if (now - source->blocked >= GIVE_UP_S)
		source->given_up = source->blocked_head;
	source->blocked = 0;
	source->unfinished++;
	source->sent = source->limit + 1;
	source->limit = prb_ring_unfinished(source->open, source->sent);
	return true;
}

/** Past the open chunk; false if one of its slots is waited for. */
static bool end_chunk(struct prb_ship_source *source)
{
	const struct prb_ring *ring = source->open;
	uint64_t end = PRB_MIN(ring->first + ring->slots, ring->end);

	while (source->limit < end) {
		source->sent = PRB_MAX(source->sent, source->limit);
		if (!pass(source))
			return false;
	}
	source->sent = PRB_MAX(source->sent, end);
	return true;
}

/** Rows of the open chunk; *blocked: a slot is waited for. */
static void take_rows(struct prb_ship *ship, struct prb_ship_source *source,
		      struct prb_row_place *place, bool *blocked)
{
	prb_auto_str struct prb_str job = {};
	struct prb_ring_item row;

	*blocked = false;
	while (!prb_ship_is_full(ship) && prb_ring_next_row(source->open, &row)) {
		if (row.number < source->sent)
			continue;
		while (row.number > source->limit && !*blocked)
			*blocked = !pass(source);
		if (*blocked) {
			source->sent = PRB_MAX(source->sent, source->limit);
			break;
		}
		if (source->kind == PRB_SHIP_METRICS)
			prb_ship_place_metric(&row, &job, place);
		prb_table_put_row(&ship->tables.items[source->table].there, &source->places, place,
				  source->open->columns, source->open->header.column_count, &row,
				  &ship->batch);
		source->sent = row.number + 1;
		ship->batch_rows++;
	}
	if (!*blocked && !prb_ship_is_full(ship))
		*blocked = !end_chunk(source);
	ship->batch.failed |= job.failed;
}

/**
 * A file read to its end has no more slots: it was cut. Slots that a ring has dropped meanwhile may
 * be in a cold file.
 */
static void skip_missing(struct prb_ship_source *source)
{
	const struct prb_ring *ring = source->open;

	if (ring->cold || source->sent >= ring->end)
		return;
	prb_ship_look(source);
	if (chunk_of(source, source->sent) < oldest_chunk(source))
		return;
	source->lost += ring->end - source->sent;
	source->sent = ring->end;
}

/** A damaged ring of an ended process may claim more slots than it has: none will be added. */
static void end_for_good(struct prb_ship_source *source)
{
	if (!source->ended || source->sent >= source->head)
		return;
	source->lost += source->head - source->sent;
	source->sent = source->head;
}

struct prb_error *prb_ship_read(struct prb_ship *ship, struct prb_ship_source *source, uint16_t day)
{
	const double limit = prb_clock_seconds() + TURN_S;
	bool more = true, blocked;

	while (!prb_ship_is_full(ship)) {
		struct prb_row_place place = {.job = source->job,
					      .host = ship->host,
					      .uid = source->uid,
					      .rank = (int64_t)source->header.rank - 1,
					      .ring = source->id,
					      .day = day};

		if (source->kind == PRB_SHIP_RECORDING)
			return prb_ship_read_recording(ship, source, &place);
		if (!source->open) {
			PRB_TRY(open_next(ship, source));
			if (!source->open)
				return NULL;
			PRB_TRY(next_chunk(source, &more));
		}
		if (!more) {
			/* After a cold file comes another one, or the ring. */
			more = source->open->cold;
			skip_missing(source);
			if (!more)
				end_for_good(source);
			end_reading(source);
			if (!more)
				return NULL;
			continue;
		}
		place.role = prb_ring_role(source->open);
		place.rank = (int64_t)source->open->header.rank - 1;
		take_rows(ship, source, &place, &blocked);
		if (blocked) {
			end_reading(source);
			return NULL;
		}
		if (prb_ship_is_full(ship))
			return NULL;
		source->blocked = 0;
		if (prb_clock_seconds() > limit) {
			/* The next round begins here. */
			ship->cut_short = true;
			end_reading(source);
			return NULL;
		}
		PRB_TRY(next_chunk(source, &more));
	}
	return NULL;
}

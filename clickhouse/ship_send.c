/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Inserts, and where to go on after one whose end is not known: ship.h says why no row is lost or
 * doubled. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "clickhouse/ship_private.h"
#include "command/exit.h"

enum { DAY = 86400, KEPT_BATCH = 1 << 20 };

/** A session that is asked for lives a second longer, and the server looks each second. */
static const double FENCE_EVERY = 2.5;
static const double FIRST_WAIT = 1, MOST_WAIT = 60, RETAIN_EVERY = 3600, LOCK_REST = 0.02;

double prb_ship_every(const struct prb_ship *ship)
{
	return ship->options->every > 0 ? ship->options->every : 2;
}

/** Ends the session of an insert whose end is not known. */
static struct prb_error *fence(struct prb_ship *ship)
{
	const double now = prb_clock_seconds();

	if (ship->fenced)
		return NULL;
	if (*ship->state.session) {
		if (now < ship->next_fence)
			return NULL;
		ship->next_fence = now + FENCE_EVERY;
		PRB_TRY(prb_clickhouse_fence(&ship->server, ship->state.session, &ship->fenced));
		if (!ship->fenced)
			return NULL;
		*ship->state.session = '\0';
	}
	ship->fenced = true;
	return NULL;
}

/** The name of a session is noted before an insert uses it. */
static struct prb_error *begin_session(struct prb_ship *ship)
{
	uint64_t random[2];

	if (*ship->server.session)
		return NULL;
	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return prb_error_os(errno, "no random number");
	snprintf(ship->state.session, sizeof(ship->state.session), "%016" PRIx64 "%016" PRIx64,
		 random[0], random[1]);
	PRB_TRY(prb_ship_state_note_session(&ship->state));
	return prb_clickhouse_begin(&ship->server, ship->state.session);
}

static struct prb_error *find_table(struct prb_ship *ship, const char *name, uid_t uid, size_t *ret)
{
	struct prb_ship_table *table;
	size_t count = 0;

	for (*ret = 0; *ret < ship->tables.count; ++*ret)
		if (!strcmp(ship->tables.items[*ret].there.name, name))
			return NULL;
	prb_vec_each (table, &ship->tables)
		count += table->uid == uid;
	if (uid != geteuid() && count >= PRB_SHIP_TABLES / PRB_SHIP_SHARE)
		return prb_error_create(PRB_ERROR_UNSUPPORTED, "user %u has over %d tables",
					(unsigned)uid, PRB_SHIP_TABLES / PRB_SHIP_SHARE);
	if (ship->tables.count == PRB_SHIP_TABLES)
		return prb_error_create(PRB_ERROR_UNSUPPORTED, "there are over %d tables",
					PRB_SHIP_TABLES);
	table = prb_vec_push(&ship->tables);
	if (!table)
		return prb_error_nomem();
	snprintf(table->there.name, sizeof(table->there.name), "%s", name);
	table->uid = uid;
	return NULL;
}

/** Finds its table, which is made where there is none. */
static struct prb_error *prepare(struct prb_ship *ship, struct prb_ship_source *source)
{
	char name[PRB_TABLE_NAME];

	PRB_TRY(prb_table_name(&source->header, source->kind != PRB_SHIP_RING, name));
	PRB_TRY(find_table(ship, name, source->uid, &source->table));
	source->has_table = true;
	return prb_table_prepare(&ship->server, &ship->tables.items[source->table].there,
				 &source->header, source->columns, source->kind != PRB_SHIP_RING,
				 &source->places);
}

/** Leaves out a source that the server or its own names forbid. */
static struct prb_error *refuse(struct prb_ship *ship, struct prb_ship_source *source,
				struct prb_error *err)
{
	prb_auto_str struct prb_str text = {};

	if (err->code != PRB_ERROR_UNSUPPORTED && err->code != PRB_ERROR_BAD_DATA)
		return err;
	prb_str_printf(&text, "%s is not sent: %s", source->path, err->message);
	prb_warn(prb_str_text(&text));
	prb_error_destroy(err);
	source->refused = true;
	ship->sums.refused++;
	return NULL;
}

/** Where the sources go on that are not known; what the state says, as long as the server has no
 * row of them. */
static void begin_at(const struct prb_ship *ship, struct prb_ship_source *source)
{
	const struct prb_ship_entry *entry = prb_ship_state_find(&ship->state, source->id);
	const bool made = ship->tables.items[source->table].there.made;

	source->next = entry && !made ? entry->next : 0;
}

static void take_place(struct prb_ship *ship, size_t table, uint64_t id, uint64_t last)
{
	for (size_t i = 0; i < ship->sources.count; i++) {
		struct prb_ship_source *source = ship->sources.items[i];

		if (source->id == id && source->table == table && !source->placed &&
		    !source->refused && last < INT64_MAX)
			source->next = last + 1;
	}
}

static bool is_to_place(const struct prb_ship_source *source, size_t table)
{
	return source->prepared && source->table == table && !source->placed && !source->refused;
}

/** Asks how far the rings of a table have arrived. */
static struct prb_error *place(struct prb_ship *ship, size_t table)
{
	prb_auto_str struct prb_str sql = {}, text = {};
	size_t count = 0;

	prb_str_printf(&sql, "SELECT _ring, max(_row) FROM `%s`.`%s` WHERE _ring IN (",
		       ship->server.url.database, ship->tables.items[table].there.name);
	for (size_t i = 0; i < ship->sources.count; i++) {
		struct prb_ship_source *source = ship->sources.items[i];

		if (!is_to_place(source, table))
			continue;
		begin_at(ship, source);
		prb_str_printf(&sql, "%s%" PRIu64, count++ ? ", " : "", source->id);
	}
	if (!count)
		return NULL;
	prb_str_puts(&sql, ") GROUP BY _ring FORMAT TabSeparated");
	if (sql.failed)
		return prb_error_nomem();
	PRB_TRY(prb_clickhouse_ask(&ship->server, prb_str_text(&sql), &text));
	for (const char *at = prb_str_text(&text); *at; at += strcspn(at, "\n") + 1) {
		uint64_t id, last;

		if (sscanf(at, "%" SCNu64 "\t%" SCNu64, &id, &last) == 2)
			take_place(ship, table, id, last);
		if (!strchr(at, '\n'))
			break;
	}
	for (size_t i = 0; i < ship->sources.count; i++) {
		struct prb_ship_source *source = ship->sources.items[i];

		if (!is_to_place(source, table))
			continue;
		source->placed = true;
		prb_ship_rewind(source);
	}
	return NULL;
}

/** The server does not take rows of this table now: the others go on. */
static struct prb_error *put_off(struct prb_ship *ship, struct prb_ship_table *table,
				 struct prb_error *err)
{
	const bool no_database = ship->server.code == PRB_CLICKHOUSE_UNKNOWN_DATABASE;
	prb_auto_str struct prb_str text = {};

	if (ship->options->once)
		return err;
	/* A dropped table is made again; a dropped database at the next handshake. */
	if (no_database)
		ship->server.major = 0;
	if (no_database || ship->server.code == PRB_CLICKHOUSE_UNKNOWN_TABLE)
		table->there.known = false;
	if (!table->wait) {
		prb_str_printf(&text, "%s: %s; its rows wait", table->there.name, err->message);
		prb_warn(prb_str_text(&text));
	}
	table->wait = table->wait ? PRB_MIN(2 * table->wait, MOST_WAIT) : FIRST_WAIT;
	table->next_try = prb_clock_seconds() + table->wait;
	prb_error_destroy(err);
	return NULL;
}

/** Handles an error of a ring: failures of its table, and its own, do not end the shipping. */
static struct prb_error *bear_source(struct prb_ship *ship, struct prb_ship_source *source,
				     struct prb_error *err)
{
	if (err->code == PRB_ERROR_FAILED && ship->server.code)
		return put_off(ship, &ship->tables.items[source->table], err);
	return refuse(ship, source, err);
}

static struct prb_error *place_all(struct prb_ship *ship)
{
	const double now = prb_clock_seconds();
	bool any = false;

	for (size_t i = 0; i < ship->sources.count; i++) {
		struct prb_ship_source *source = ship->sources.items[i];
		struct prb_error *err;

		if (source->placed || source->refused ||
		    (source->has_table && ship->tables.items[source->table].next_try > now))
			continue;
		if (!prb_ship_claim(ship, source)) {
			source->refused = ship->options->once;
			ship->sums.refused += source->refused;
			continue;
		}
		ship->server.code = 0;
		err = prepare(ship, source);
		source->prepared = !err;
		if (err)
			PRB_TRY(bear_source(ship, source, err));
		any = true;
	}
	for (size_t i = 0; any && i < ship->tables.count; i++) {
		struct prb_error *err = place(ship, i);

		if (err && err->code == PRB_ERROR_FAILED && ship->server.code)
			err = put_off(ship, &ship->tables.items[i], err);
		PRB_TRY(err);
	}
	return NULL;
}

/** The sent rows have arrived, or there were none. */
static struct prb_error *arrived(struct prb_ship *ship, size_t table)
{
	for (size_t i = 0; i < ship->sources.count; i++) {
		struct prb_ship_source *source = ship->sources.items[i];

		if (source->table != table || !source->placed || source->refused ||
		    source->next == source->sent)
			continue;
		source->next = source->sent;
		PRB_TRY(prb_ship_state_note(&ship->state, source->id, source->next, source->job));
	}
	return NULL;
}

/** Nothing is known of the batch: its sources are asked for again. */
static void forget(struct prb_ship *ship, size_t table, bool known)
{
	for (size_t i = 0; i < ship->sources.count; i++) {
		struct prb_ship_source *source = ship->sources.items[i];

		if (source->table != table || source->refused)
			continue;
		prb_ship_rewind(source);
		source->placed &= known;
	}
	if (known)
		return;
	ship->fenced = false;
	ship->next_fence = 0;
	*ship->server.session = '\0';
}

static struct prb_error *fill(struct prb_ship *ship, size_t table)
{
	const uint16_t day = (uint16_t)(time(NULL) / DAY);

	prb_str_truncate(&ship->batch, 0);
	ship->batch_rows = 0;
	ship->cut_short = false;
	for (size_t i = 0; i < ship->sources.count && !prb_ship_is_full(ship); i++) {
		struct prb_ship_source *source = ship->sources.items[i];
		struct prb_error *err;

		if (source->table != table || !source->placed || source->refused)
			continue;
		err = prb_ship_read(ship, source, day);
		if (err)
			PRB_TRY(refuse(ship, source, err));
	}
	return ship->batch.failed ? prb_error_nomem() : NULL;
}

/** Sends one batch of a table. */
static struct prb_error *send_batch(struct prb_ship *ship, size_t index, bool *known)
{
	prb_auto_str struct prb_str sql = {};

	*known = true;
	PRB_TRY(fill(ship, index));
	if (!ship->batch_rows)
		return arrived(ship, index);
	PRB_TRY(begin_session(ship));
	prb_table_put_insert(&ship->server, &ship->tables.items[index].there, &sql);
	if (sql.failed)
		return prb_error_nomem();
	PRB_TRY(prb_clickhouse_insert(&ship->server, prb_str_text(&sql), &ship->batch, known));
	ship->sums.rows += ship->batch_rows;
	ship->sums.bytes += ship->batch.length;
	ship->sums.inserts++;
	return arrived(ship, index);
}

static struct prb_error *send_table(struct prb_ship *ship, size_t index, bool *more)
{
	struct prb_ship_table *table = &ship->tables.items[index];
	bool known;
	struct prb_error *err = send_batch(ship, index, &known);
	const bool ended = err && !*ship->server.session && known && ship->server.code;

	table->last_insert = prb_clock_seconds();
	if (err) {
		forget(ship, index, known);
		if (err->code == PRB_ERROR_NOMEM || err->code == PRB_ERROR_PERMISSION ||
		    !ship->server.code)
			return err;
		*more = true;
		if (known && ship->server.code == PRB_CLICKHOUSE_LOCKED) {
			prb_error_destroy(err);
			table->next_try = prb_clock_seconds() + LOCK_REST;
			return NULL;
		}
		if (!ended)
			return put_off(ship, table, err);
		prb_error_destroy(err); /* the session had ended: another one */
		return NULL;
	}
	table->wait = table->next_try = 0;
	*more |= prb_ship_is_full(ship) || ship->cut_short;
	return NULL;
}

/** An insert makes a part of its own on the server: not too many. */
static bool is_due(const struct prb_ship *ship, size_t table)
{
	const struct prb_ship_table *t = &ship->tables.items[table];
	const double now = prb_clock_seconds();

	if (ship->stopping || now < t->next_try)
		return false;
	if (now >= t->last_insert + 0.9 * prb_ship_every(ship))
		return true;
	for (size_t i = 0; i < ship->sources.count; i++) {
		const struct prb_ship_source *source = ship->sources.items[i];
		const uint64_t slots = (uint64_t)source->header.chunks
				       << source->header.chunk_shift;

		if (source->table == table && !source->refused &&
		    source->head - source->next > PRB_MIN(slots / 8, PRB_SHIP_ROWS / 2))
			return true;
	}
	return false;
}

/** Removes what is too old, once an hour. */
static struct prb_error *retain(struct prb_ship *ship)
{
	const double now = prb_clock_seconds();

	if (!ship->options->keep_days || now < ship->next_prune)
		return NULL;
	ship->next_prune = now + RETAIN_EVERY;
	for (size_t i = 0; i < ship->tables.count; i++)
		if (ship->tables.items[i].there.known)
			PRB_TRY(prb_table_retain(&ship->server, &ship->tables.items[i].there,
						 ship->options->keep_days));
	return NULL;
}

struct prb_error *prb_ship_send(struct prb_ship *ship, bool *more)
{
	*more = false;
	PRB_TRY(prb_clickhouse_greet(&ship->server));
	PRB_TRY(fence(ship));
	if (!ship->fenced)
		return NULL;
	PRB_TRY(place_all(ship));
	for (size_t i = 0; i < ship->tables.count && ship->fenced; i++)
		if (is_due(ship, i))
			PRB_TRY(send_table(ship, i, more));
	PRB_TRY(retain(ship));
	if (ship->batch.capacity > KEPT_BATCH && !*more)
		prb_str_deinit(&ship->batch);
	return NULL;
}

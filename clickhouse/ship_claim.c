/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A ring is sent to a database by one process, whatever its state's folder and its user. */
#include "base/checked.h"
#include "base/clock.h"
#include "base/hash.h"
#include "clickhouse/ship_private.h"
#include "command/exit.h"
#include "rings/claim.h"

/* Seconds: an insert of a process that has ended may arrive as late (server.c). */
static const double LAST_INSERT = 120;

bool prb_ship_claim(const struct prb_ship *ship, struct prb_ship_source *source)
{
	const struct prb_clickhouse_url *url = &ship->server.url;
	const uint64_t place =
		prb_hash_text(prb_hash_text(PRB_HASH_START, url->database), url->address.host);
	prb_auto_str struct prb_str text = {};

	source->claimed |= source->kind != PRB_SHIP_RING || source->fd < 0;
	if (!source->claimed && prb_ring_is_claimed(source->fd, place))
		source->claim_after = prb_clock_seconds() + LAST_INSERT;
	if (!source->claimed && prb_clock_seconds() >= source->claim_after)
		source->claimed = prb_ring_claim(source->fd, place);
	if (source->claimed || source->contested)
		return source->claimed;
	source->contested = true;
	prb_str_printf(&text, "%s is sent to this database by another process already",
		       source->path);
	prb_warn(prb_str_text(&text));
	return false;
}

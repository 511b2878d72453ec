/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "remote/serve/limit.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/un.h>

#include "base/checked.h"

/** Slips that cost nothing. */
enum { FREE_FAILURES = 4 };
/** An address waits at most so long, and is forgotten after so long without a failure. */
static const double MAX_WAIT = 30, FORGET = 600;
/** So many wrong tokens of all together at once, and each second. */
static const double BURST = 60, RATE = 1;

static void key_of(const struct sockaddr_storage *address, uint8_t key[16])
{
	memset(key, 0, 16);
	if (address->ss_family == AF_UNIX)
		memcpy(key + 12, ((const struct sockaddr_un *)address)->sun_path, sizeof(uid_t));
	else if (address->ss_family == AF_INET6)
		memcpy(key, &((const struct sockaddr_in6 *)address)->sin6_addr, 8);
	else
		memcpy(key + 12, &((const struct sockaddr_in *)address)->sin_addr, 4);
	key[8] = address->ss_family == AF_INET6 ? 1 : address->ss_family == AF_UNIX ? 2 : 0;
}

void prb_limit_of_user(struct sockaddr_storage *address, uid_t user)
{
	struct sockaddr_un *un = (struct sockaddr_un *)address;

	memset(address, 0, sizeof(*address));
	un->sun_family = AF_UNIX;
	memcpy(un->sun_path, &user, sizeof(user));
}

static const struct prb_limit_entry *find(const struct prb_limit *limit,
					  const struct sockaddr_storage *address)
{
	uint8_t key[16];

	key_of(address, key);
	for (size_t i = 0; i < PRB_LIMIT_ADDRESSES; i++)
		if (limit->entries[i].failures && !memcmp(limit->entries[i].key, key, 16))
			return &limit->entries[i];
	return NULL;
}

static double total_at(const struct prb_limit *limit, double now)
{
	return PRB_MAX(limit->total - (now - limit->since) * RATE, 0);
}

double prb_limit_wait(const struct prb_limit *limit, const struct sockaddr_storage *address,
		      double now)
{
	const struct prb_limit_entry *entry = find(limit, address);
	double all = total_at(limit, now) - BURST;
	double own = entry ? entry->until - now : 0;

	return PRB_MAX(PRB_MAX(own, all / RATE), 0);
}

/** The entry of the address; a new one replaces one that is unused or failed longest ago. */
static struct prb_limit_entry *take(struct prb_limit *limit, const struct sockaddr_storage *address)
{
	struct prb_limit_entry *entry = (struct prb_limit_entry *)find(limit, address);

	if (entry)
		return entry;
	entry = limit->entries;
	for (size_t i = 0; i < PRB_LIMIT_ADDRESSES && entry->failures; i++)
		if (!limit->entries[i].failures || limit->entries[i].last < entry->last)
			entry = &limit->entries[i];
	*entry = (struct prb_limit_entry){};
	key_of(address, entry->key);
	return entry;
}

void prb_limit_fail(struct prb_limit *limit, const struct sockaddr_storage *address, double now)
{
	struct prb_limit_entry *entry = take(limit, address);

	limit->total = total_at(limit, now) + 1;
	limit->since = now;
	if (now - entry->last > FORGET)
		entry->failures = 0;
	entry->last = now;
	entry->failures++;
	if (entry->failures > FREE_FAILURES) {
		unsigned doublings = PRB_MIN(entry->failures - FREE_FAILURES - 1, 16u);

		entry->until = now + PRB_MIN((double)(1u << doublings), MAX_WAIT);
	}
}

void prb_limit_pass(struct prb_limit *limit, const struct sockaddr_storage *address)
{
	struct prb_limit_entry *entry = (struct prb_limit_entry *)find(limit, address);

	if (entry)
		entry->failures = 0;
}

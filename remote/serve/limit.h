/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Rate limit for wrong tokens, per address and in total.
 *
 * After some wrong ones an address has to wait, each time twice as long, up to a bound; so do all
 * addresses together that have not yet given the right one, if too many wrong ones come. Times are
 * seconds of any clock that does not go back.
 */
#ifndef PRB_REMOTE_SERVE_LIMIT_H
#define PRB_REMOTE_SERVE_LIMIT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { PRB_LIMIT_ADDRESSES = 256 };

/** An address that failed: of IPv6, its network of 64 bits; or a user of this machine. */
struct prb_limit_entry {
	uint8_t key[16];
	unsigned failures;
	double until; /**< it has to wait so long */
	double last;  /**< failed last */
};

/** Starts as {}. */
struct prb_limit {
	struct prb_limit_entry entries[PRB_LIMIT_ADDRESSES];
	double total, since; /**< wrong tokens of all, decreasing with time, as of `since` */
};

struct sockaddr_storage;

/**
 * Makes @p address mean a user of this machine: all users share the loopback address, and a user
 * who keeps giving wrong tokens must not lock out the others.
 */
void prb_limit_of_user(struct sockaddr_storage *address, uid_t user);

/** How many seconds that address has to wait before it may try; 0 if it may. */
double prb_limit_wait(const struct prb_limit *limit, const struct sockaddr_storage *address,
		      double now);

/** The address gave a wrong token. */
void prb_limit_fail(struct prb_limit *limit, const struct sockaddr_storage *address, double now);

/** The address gave the right token: its failures are forgotten. */
void prb_limit_pass(struct prb_limit *limit, const struct sockaddr_storage *address);

#endif

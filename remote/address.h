/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Parses network addresses such as HOST:PORT. */
#ifndef PRB_REMOTE_ADDRESS_H
#define PRB_REMOTE_ADDRESS_H

#include "base/error.h"

enum { PRB_HOST_MAX = 253 }; /* bytes of a host's name, DNS's limit */

struct prb_address {
	char host[PRB_HOST_MAX + 1]; /**< a name, or an address without brackets */
	int port;		     /**< 0: any that is free */
};

/**
 * Parses "HOST:PORT", "[ADDRESS]:PORT", or ":PORT", which is of 127.0.0.1; else PRB_ERROR_USAGE,
 * which quotes it. The host is not looked up.
 */
struct prb_error *prb_address_parse(const char *text, struct prb_address *ret) PRB_MUST_CHECK;

#endif

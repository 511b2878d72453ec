/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Addresses of ClickHouse servers: clickhouse://[USER@]HOST[:PORT]/DATABASE[/JOB], or
 * clickhouses:// for TLS. The HTTP interface is meant; its port is 8123, or 8443 with TLS.
 *
 * An address holds no password, because other users see command lines.
 *
 * Threading: any thread. Ownership: `job` is the struct's.
 */
#ifndef PRB_CLICKHOUSE_URL_H
#define PRB_CLICKHOUSE_URL_H

#include <stdbool.h>

#include "base/error.h"
#include "remote/address.h"

enum { PRB_CLICKHOUSE_NAME = 65 /**< bytes of a user's or database's name with its NUL */ };

struct prb_clickhouse_url {
	bool tls;
	struct prb_address address;
	char user[PRB_CLICKHOUSE_NAME];	    /**< "default" if none is given */
	char database[PRB_CLICKHOUSE_NAME]; /**< letters, digits and underscores */
	char *job;			    /**< NULL: all jobs */
};

/** True if @p text begins like such an address. */
bool prb_clickhouse_is_url(const char *text);

/** PRB_ERROR_USAGE says what is wrong with it. */
struct prb_error *prb_clickhouse_url_parse(const char *text,
					   struct prb_clickhouse_url *ret) PRB_MUST_CHECK;
void prb_clickhouse_url_deinit(struct prb_clickhouse_url *url);

/**
 * The password for the server: the first line of @p file, or $PROBING_CLICKHOUSE_PASSWORD without
 * a file, or "". *ret is the caller's.
 */
struct prb_error *prb_clickhouse_password(const char *file, char **ret) PRB_MUST_CHECK;

#endif

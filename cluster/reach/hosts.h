/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Lists of hosts as people write them: "login,node[1-4,7]". Any thread. */
#ifndef PRB_CLUSTER_REACH_HOSTS_H
#define PRB_CLUSTER_REACH_HOSTS_H

#include "base/error.h"
#include "base/vec.h"

enum { PRB_MAX_HOSTS = 16384 };

struct prb_hosts {
	PRB_VEC(char *) list; /**< owned */
};

/**
 * Appends the hosts of @p text, divided by commas; brackets hold numbers and ranges, whose leading
 * zeros stay. PRB_ERROR_USAGE for a name that is empty or begins with a dash, for brackets that
 * make no sense, and for more than 16,384 hosts.
 */
struct prb_error *prb_hosts_parse(const char *text, struct prb_hosts *ret) PRB_MUST_CHECK;
/** Leaves out hosts that were named before. */
struct prb_error *prb_hosts_unite(struct prb_hosts *hosts) PRB_MUST_CHECK;

void prb_hosts_deinit(struct prb_hosts *hosts);
#define prb_auto_hosts __attribute__((cleanup(prb_hosts_deinit)))

#endif

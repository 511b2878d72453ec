/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Asks NCCL's RAS service, which each process of NCCL 2.24 and later has on its machine, on
 * which hosts a job runs. The answer is a table of all ranks of all communicators; the format that
 * is read here is that of 2.28.7 and later.
 *
 * Whoever has the port can answer: the answer is hostile data. It names hosts, no more.
 *
 * Threading: any thread.
 */
#ifndef PRB_CLUSTER_RAS_H
#define PRB_CLUSTER_RAS_H

#include "base/error.h"
#include "cluster/hosts.h"

/** Where NCCL listens if $NCCL_RAS_ADDR does not say otherwise. */
#define PRB_RAS_ADDRESS "127.0.0.1:28028"

/** Appends each host once. PRB_ERROR_NOT_FOUND if none is named. */
struct prb_error *prb_ras_find(const char *address, struct prb_hosts *ret) PRB_MUST_CHECK;

#endif

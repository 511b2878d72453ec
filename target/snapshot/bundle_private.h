/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The names of a bundle's members, for its writer and its reader. Internal to
 * target/snapshot/.
 */
#ifndef PRB_TARGET_SNAPSHOT_BUNDLE_PRIVATE_H
#define PRB_TARGET_SNAPSHOT_BUNDLE_PRIVATE_H

#include "target/snapshot/bundle.h"

static const char bundle_first[] = "probing-bundle";
static const char bundle_format[2] = {'1', '\n'};
static const char *const bundle_prefix[] = {
	[PRB_BUNDLE_SNAPSHOT] = "rank-", [PRB_BUNDLE_LOOKS] = "looks-"};
static const char *const bundle_suffix[] = {
	[PRB_BUNDLE_SNAPSHOT] = ".snapshot", [PRB_BUNDLE_LOOKS] = ".json"};

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file What the writer and the reader of looks have in common. Internal to cluster/looks/. */
#ifndef PRB_CLUSTER_LOOKS_JSON_PRIVATE_H
#define PRB_CLUSTER_LOOKS_JSON_PRIVATE_H

#include "cluster/looks/json.h"

/** Raised when an older reader would misread what is written. */
enum { PRB_LOOKS_FORMAT = 3 };

/** In that format, threads have their frames themselves instead of numbers of the list. */
enum { PRB_LOOKS_FORMAT_FRAMES = 2 };

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file The rows of tables of rings. Internal to sql/engine/. */
#ifndef PRB_SQL_ENGINE_RING_SCAN_H
#define PRB_SQL_ENGINE_RING_SCAN_H

#include "sql/spec/table.h"

/** The scan of a struct prb_ring_table's spec: all rings of the target for that table. */
struct prb_error *prb_ring_scan(struct prb_scan *scan) PRB_MUST_CHECK;

#endif

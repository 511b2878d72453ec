/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Shared by the tables of GPUs: a call for each of them. */
#ifndef PRB_SQL_TABLES_SHARED_NVML_H
#define PRB_SQL_TABLES_SHARED_NVML_H

#include "sql/spec/table.h"
#include "target/gpu/nvml.h"

/**
 * Calls @p row for each GPU, with its row begun but for `prb_scan_row()`. GPUs that cannot be
 * opened give @p row a NULL, and the reason.
 */
struct prb_error *prb_nvml_each(struct prb_scan *scan,
				struct prb_error *(*row)(struct prb_scan *scan,
							 const struct prb_nvml *nvml,
							 unsigned index, prb_nvml_gpu gpu,
							 const char *reason)) PRB_MUST_CHECK;

#endif

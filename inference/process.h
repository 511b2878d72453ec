/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Shared by the files that read one process of a server. Internal to inference/. */
#ifndef PRB_INFERENCE_PROCESS_H
#define PRB_INFERENCE_PROCESS_H

#include "base/checked.h"
#include "inference/classes.h"
#include "inference/server.h"
#include "inference/value.h"
#include "python/repr/core/repr.h"

/** One reading of an interpreter. */
struct prb_server_reading {
	const struct prb_engines *engines;
	struct prb_server_process *process;
	const struct prb_inside *inside;
	struct prb_classes *classes; /**< of the roots */
	struct prb_engine_scope scope;

	/* The roots of all parts, in the order of the description. */
	const struct prb_engine_root *root_specs[PRB_CLASSES_MAX];
	const char *class_names[PRB_CLASSES_MAX];
	struct prb_engine_named roots[PRB_CLASSES_MAX];
	size_t root_count, found;
};

/** Finds engine and version of an interpreter; none are set if it has imported no engine. */
struct prb_error *prb_server_find_version(const struct prb_engines *engines,
					  const struct prb_inside *inside,
					  struct prb_server_process *ret) PRB_MUST_CHECK;

/** objects.c: reads queues, requests, and what else the part describes. */
struct prb_error *prb_server_read_objects(struct prb_server_reading *r) PRB_MUST_CHECK;

#endif

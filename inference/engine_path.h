/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Paths of descriptions of servers: "?core.scheduler.waiting._heap | core.scheduler.waiting".
 *
 * A path is one route, or several in the order in which they are tried. A route is a name, then
 * any number of .NAME, [NUMBER], ['TEXT'] and [$id]; or len() around one. " + " and " * " join the
 * numbers of routes, from the left. "?" in front: not every version has it.
 *
 * Threading: none of its own. Internal to inference/.
 */
#ifndef PRB_INFERENCE_ENGINE_PATH_H
#define PRB_INFERENCE_ENGINE_PATH_H

#include "inference/engine.h"

enum { PRB_ENGINE_ROUTES_MAX = 16, PRB_ENGINE_STEPS_MAX = 16 };

/** PRB_ERROR_USAGE with what is wrong; *ret is to be ended also then. */
struct prb_error *prb_engine_path_parse(const char *text,
					struct prb_engine_path *ret) PRB_MUST_CHECK;
void prb_engine_path_deinit(struct prb_engine_path *path);

#endif

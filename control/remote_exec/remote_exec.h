/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The other way to load the agent: a script that the interpreter itself runs on its main
 * thread, at its next safe point, as sys.remote_exec() has it do (PEP 768, CPython 3.14 and later).
 *
 * No thread is hijacked. All are stopped while the request is written, since the flag for it is
 * among others that they change. docs/injection.md compares both ways.
 *
 * Threading: as prb_inject().
 */
#ifndef PRB_CONTROL_REMOTE_EXEC_H
#define PRB_CONTROL_REMOTE_EXEC_H

#include "base/error.h"
#include "injector/inject.h"
#include "target/target.h"

/**
 * Loads the agent and starts it, as prb_agent_load() does. PRB_ERROR_UNSUPPORTED before 3.14, where
 * it is forbidden, and for what injection refuses; PRB_ERROR_TIMEOUT if the main thread did not
 * come to a safe point within @p timeout seconds (0: ten): the request is withdrawn then.
 */
struct prb_error *prb_remote_exec_agent(struct prb_target *t, double timeout,
					struct prb_inject_result *ret) PRB_MUST_CHECK;

#endif

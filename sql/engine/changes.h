/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Decides if a statement may change its target process; nothing else decides that.
 *
 * A session only reads unless prb_session_allow_changes() was called for it; a session over several
 * targets always only reads. All changes by SQL are checked here: tables of expressions, and SET of
 * a process's settings. guard.c refuses the changes that SQLite itself could make.
 */
#ifndef PRB_SQL_ENGINE_CHANGES_H
#define PRB_SQL_ENGINE_CHANGES_H

#include "sql/engine/session.h"

/**
 * PRB_ERROR_USAGE if the session's target may not be changed; @p what describes the change, for the
 * message. @p asked: the user requested this very change.
 */
struct prb_error *prb_changes_check(const struct prb_session *session, bool asked,
				    const char *what) PRB_MUST_CHECK;

#endif

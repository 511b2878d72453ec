/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Whether a statement may change the process that it is about: the one place that says so.
 *
 * A session only reads unless prb_session_allow_changes() was called for it, and one over several
 * targets never does anything else. All that SQL could change goes through here: expressions that
 * are tables, and SET of a process's settings. What SQLite itself could do is refused by guard.c.
 */
#ifndef PRB_SQL_ENGINE_CHANGES_H
#define PRB_SQL_ENGINE_CHANGES_H

#include "sql/engine/session.h"

/**
 * PRB_ERROR_USAGE if the session's target may not be changed; @p what says what would be done, for
 * the message. @p asked: whoever calls was asked for this change itself.
 */
struct prb_error *prb_changes_check(const struct prb_session *session, bool asked,
				    const char *what) PRB_MUST_CHECK;

#endif

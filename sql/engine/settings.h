/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The settings of a session, as data: what `SET key = value` changes, and what
 * information_schema.df_settings shows. To add one: write its two functions in settings.c.
 */
#ifndef PRB_SQL_ENGINE_SETTINGS_H
#define PRB_SQL_ENGINE_SETTINGS_H

#include "base/str.h"
#include "sql/engine/session.h"

struct prb_setting {
	const char *name; /**< NULL ends the array */
	const char *doc;  /**< one line, without full stop */
	/** Appends the present value. */
	void (*get)(const struct prb_session *session, struct prb_str *ret);
	/** PRB_ERROR_USAGE, beginning with what is expected, if @p value makes no sense. */
	struct prb_error *(*set)(struct prb_session *session, const char *value);
	bool reveals; /**< set only where a change of the target would be (changes.h) */
};

extern const struct prb_setting prb_settings[];

/**
 * Sets the one named @p key; PRB_ERROR_USAGE with the nearest names if there is none. One of the
 * process is set only if changes.h permits it; @p asked: as there.
 */
struct prb_error *prb_settings_set(struct prb_session *session, const char *key, const char *value,
				   bool asked) PRB_MUST_CHECK;

#endif

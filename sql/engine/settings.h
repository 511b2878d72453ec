/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The settings of a session, as data: `SET key = value` changes them,
 * information_schema.df_settings shows them. To add one: write its two functions in settings.c.
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
	/** PRB_ERROR_USAGE, beginning with the expected values, if @p value is invalid. */
	struct prb_error *(*set)(struct prb_session *session, const char *value);
	bool reveals; /**< can be set only where changes of the target are permitted (changes.h) */
};

extern const struct prb_setting prb_settings[];

/**
 * Sets @p key; PRB_ERROR_USAGE with the nearest names if it is unknown. A setting of the process is
 * set only if changes.h permits it; @p asked: as there.
 */
struct prb_error *prb_settings_set(struct prb_session *session, const char *key, const char *value,
				   bool asked) PRB_MUST_CHECK;

#endif

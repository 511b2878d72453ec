/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Tables that extensions of the user make (target/custom.h): `SELECT * FROM depths`.
 *
 * Their rows are asked for when a statement names the table, and live as long as statements do.
 */
#ifndef PRB_SQL_ENGINE_CUSTOM_TABLES_H
#define PRB_SQL_ENGINE_CUSTOM_TABLES_H

#include <stdbool.h>

#include "base/error.h"

struct prb_session;

/** Makes the table @p word. *ret is false if no extension has it. */
struct prb_error *prb_custom_tables_add(struct prb_session *session, const char *word,
					bool *ret) PRB_MUST_CHECK;

/** Drops all of them, unless a statement may be using one: the next names get new rows. */
void prb_custom_tables_drop(struct prb_session *session);

#endif

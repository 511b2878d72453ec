/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Dashboards: pages of queries whose rows the page draws again and again. Five come with the
 * program; others are files NAME.json in a folder that the user of the gateway names, and go before
 * those of the same name.
 *
 *     {"title": "Shop", "every": 10, "charts": [
 *         {"title": "Waits", "sql": "SELECT waits_for FROM python.threads", "show": "table"}]}
 *
 * Texts of clients and of files are checked alike, bounded, and written as they were understood:
 * nothing else of them gets into a file. The folder is ours alone (base/own_file.h).
 *
 * Threading: one thread at a time.
 */
#ifndef PRB_GATEWAY_DASHBOARDS_DASHBOARDS_H
#define PRB_GATEWAY_DASHBOARDS_DASHBOARDS_H

#include "base/error.h"
#include "base/str.h"

struct prb_dashboards {
	int folder; /**< -1: none, and nothing is saved */
};

/** Opens the folder, and makes it if it is missing. NULL: none. */
struct prb_error *prb_dashboards_open(const char *path, struct prb_dashboards *ret) PRB_MUST_CHECK;
void prb_dashboards_close(struct prb_dashboards *dashboards);

/** Appends JSON: the names and titles of all, and whether more can be saved. */
struct prb_error *prb_dashboards_list(const struct prb_dashboards *dashboards,
				      struct prb_str *ret) PRB_MUST_CHECK;
/** Appends one as JSON. PRB_ERROR_NOT_FOUND; PRB_ERROR_BAD_DATA if its file makes no sense. */
struct prb_error *prb_dashboards_get(const struct prb_dashboards *dashboards, const char *name,
				     struct prb_str *ret) PRB_MUST_CHECK;
/** Saves @p text as that one. PRB_ERROR_USAGE if it is no dashboard, or there are too many. */
struct prb_error *prb_dashboards_save(const struct prb_dashboards *dashboards, const char *name,
				      const char *text) PRB_MUST_CHECK;
/** Removes the file of one. One that comes with the program is as it was, then. */
struct prb_error *prb_dashboards_remove(const struct prb_dashboards *dashboards,
					const char *name) PRB_MUST_CHECK;

#endif

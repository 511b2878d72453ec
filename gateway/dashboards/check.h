/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file What a dashboard is. Texts are hostile: bounded and checked. Any thread. */
#ifndef PRB_GATEWAY_DASHBOARDS_CHECK_H
#define PRB_GATEWAY_DASHBOARDS_CHECK_H

#include "base/error.h"
#include "base/str.h"

/** Bytes of a dashboard, and the letters of its name. */
#define PRB_DASHBOARD_MOST 65536
#define PRB_DASHBOARD_LETTERS "abcdefghijklmnopqrstuvwxyz0123456789-"

/** Appends the dashboard that @p text is, as files have it. PRB_ERROR_USAGE says what is wrong. */
struct prb_error *prb_dashboard_check(const char *text, size_t length,
				      struct prb_str *ret) PRB_MUST_CHECK;
/** Appends the title of a dashboard that prb_dashboard_check() has accepted. */
struct prb_error *prb_dashboard_title(const struct prb_str *checked,
				      struct prb_str *ret) PRB_MUST_CHECK;

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/query.h"
struct prb_error *prb_query_prompt(struct prb_query *query)
{
	(void)query;
	return prb_error_create(PRB_ERROR_USAGE, "no query given");
}

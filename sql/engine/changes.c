/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sql/engine/changes.h"

#include "sql/engine/session_private.h"

struct prb_error *prb_changes_check(const struct prb_session *session, bool asked, const char *what)
{
	struct prb_error *err;

	if (session->targets.count > 1)
		err = prb_error_create(PRB_ERROR_USAGE, "%s: a query of several targets only reads",
				       what);
	else if (!session->allow_changes && !asked)
		err = prb_error_create(PRB_ERROR_USAGE, "%s: this query only reads", what);
	else
		return NULL;
	return prb_error_hint(err,
			      "'probing PID eval' runs code, 'probing PID config' changes "
			      "settings; 'probing PID query' does both if the SQL is typed, or "
			      "with --allow-code");
}

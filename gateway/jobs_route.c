/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What daemons of other machines report of the ranks of a job, for the daemon that judges. */
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/conflict.h"
#include "base/json.h"
#include "base/own_file.h"
#include "cluster/watch/reports.h"
#include "gateway/gateway_private.h"

struct prb_error *prb_answer_report(struct prb_request *r)
{
	const char *path = getenv(PRB_REPORTS_VARIABLE);
	prb_auto_close int folder = path && *path ? prb_own_folder_open(path, geteuid()) : -1;
	struct prb_json json = {&r->reply};
	bool wanted;

	if (folder < 0)
		return prb_error_hint(prb_conflict_create("nobody judges jobs here"),
				      "'probing node --watch-jobs --listen ADDR' does");
	struct prb_error *err =
		prb_reports_keep(folder, prb_str_text(&r->body), r->body.length, &wanted);

	r->refused = err && err->code == PRB_ERROR_USAGE;
	PRB_TRY(err);
	prb_json_open(&json, NULL, '{');
	prb_json_bool(&json, "wanted", wanted);
	prb_json_close(&json, '}');
	return NULL;
}

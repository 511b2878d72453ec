/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/commands/dump/parent.h"

#include "base/cleanup.h"
#include "base/str.h"
#include "command/exit.h"
#include "target/proc/family.h"
#include "target/proc/pids.h"
#include "target/spec/target_spec.h"

struct prb_error *prb_dump_open(const struct prb_cli *cli, struct prb_target **ret)
{
	prb_auto_pids struct prb_pids pids = {};
	prb_auto_str struct prb_str text = {};
	prb_auto_error struct prb_error *ambiguous =
		prb_spec_open_in(cli->target, &cli->places, ret);
	pid_t parent = 0;

	if (!ambiguous || ambiguous->code != PRB_ERROR_USAGE)
		return prb_steal(&ambiguous);

	/* Of another mistake there are none. */
	prb_auto_error struct prb_error *none = prb_spec_find_all(cli->target, &pids);

	if (!none && pids.list.count > 1)
		PRB_TRY(prb_family_parent(&pids, &parent));
	if (!parent)
		return prb_steal(&ambiguous);
	PRB_TRY(prb_target_open_process(parent, ret));
	prb_str_printf(&text,
		       "%zu processes match: this is %d, the parent of the others (--subprocesses "
		       "dumps all)",
		       pids.list.count, (int)parent);
	prb_warn(prb_str_text(&text));
	return NULL;
}

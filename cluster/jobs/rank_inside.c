/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cluster/jobs/rank_inside.h"

#include <string.h>

#include "base/cleanup.h"
#include "cluster/jobs/groups.h"
#include "values/environment.h"

bool prb_rank_inside_is_likely(const struct prb_process *process, struct prb_target *target)
{
	static const char ray[] = "ray::";
	prb_auto_str struct prb_str maps = {};

	if ((process->comm && !strncmp(process->comm, ray, strlen(ray))) ||
	    (process->argv.count && !strncmp(process->argv.items[0], ray, strlen(ray))))
		return true;

	prb_auto_error struct prb_error *err = prb_target_read_file(target, &maps, "maps");
	return !err && strstr(prb_str_text(&maps), "/libtorch_python.so");
}

/** True if RANK is one of them: launchers of MPI and Slurm know less. */
static bool is_ranked(const struct prb_str *variables)
{
	static const char rank[] = "RANK=";

	for (size_t at = 0; at < variables->length; at += strlen(variables->data + at) + 1)
		if (!strncmp(variables->data + at, rank, strlen(rank)))
			return true;
	return false;
}

struct prb_error *prb_rank_inside_read(struct prb_target *target, struct prb_str *ret)
{
	struct prb_groups groups = {};
	struct prb_error *err = prb_environment_inside(target, ret);

	if (!err && !is_ranked(ret))
		err = prb_groups_read(target, NULL, &groups);
	if (!err && groups.rank >= 0) {
		prb_str_printf(ret, "RANK=%ld", groups.rank);
		prb_str_putc(ret, '\0');
		prb_str_printf(ret, "WORLD_SIZE=%ld", groups.world_size);
		prb_str_putc(ret, '\0');
	}
	prb_groups_deinit(&groups);
	return err ? err : ret->failed ? prb_error_nomem() : NULL;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cluster/jobs/rank_inside.h"

#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "cluster/jobs/groups.h"
#include "cluster/jobs/interpreters.h"
#include "python/repr/core/repr.h"

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

struct variables {
	const struct prb_inside *inside;
	struct prb_str *out;
	bool ranked; /* RANK is one of them: launchers of MPI and Slurm know less */
};

static bool is_wanted(const char *name)
{
	static const char *const names[] = {
		"RANK",		"LOCAL_RANK",	"WORLD_SIZE",	"LOCAL_WORLD_SIZE",
		"GROUP_RANK",	"MASTER_ADDR",	"MASTER_PORT",	"ROLE_NAME",
		"SLURM_JOB_ID", "SLURM_PROCID", "SLURM_STEP_ID"};

	for (size_t i = 0; i < PRB_ARRAY_SIZE(names); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

/** Appends what is between the quotes of "b'…'"; false for other objects and odd characters. */
static bool put_bytes(const struct prb_inside *inside, uint64_t object, struct prb_str *out)
{
	prb_auto_str struct prb_str text = {};
	prb_auto_error struct prb_error *err =
		prb_object_repr(inside->py, inside->mem, object, NULL, &text);

	if (err || text.failed || text.length < 3 || strncmp(text.data, "b'", 2) != 0 ||
	    text.data[text.length - 1] != '\'' || memchr(text.data, '\\', text.length))
		return false;
	prb_str_append(out, text.data + 2, text.length - 3);
	return true;
}

static bool note_variable(void *context, uint64_t key, uint64_t value)
{
	struct variables *v = context;
	prb_auto_str struct prb_str name = {}, text = {};

	if (!put_bytes(v->inside, key, &name) || !is_wanted(prb_str_text(&name)) ||
	    !put_bytes(v->inside, value, &text))
		return true;
	prb_str_printf(v->out, "%s=%s", prb_str_text(&name), prb_str_text(&text));
	prb_str_putc(v->out, '\0');
	v->ranked |= !strcmp(name.data, "RANK");
	return true;
}

static struct prb_error *read_variables(void *context, const struct prb_inside *inside)
{
	struct variables *v = context;
	uint64_t data;

	v->inside = inside;
	PRB_TRY(prb_inside_find(inside, "sys.modules['os'].environ._data", &data));
	return data ? prb_object_dict_each(inside->py, inside->mem, data, note_variable, v) : NULL;
}

struct prb_error *prb_rank_inside_read(struct prb_target *target, struct prb_str *ret)
{
	struct variables v = {.out = ret};
	struct prb_groups groups = {};
	struct prb_error *err = prb_inside_each(target, NULL, read_variables, &v);

	if (!err && !v.ranked)
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

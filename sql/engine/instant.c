/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sql/engine/instant.h"

#include <limits.h>
#include <stdlib.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/vec.h"
#include "target/mem/view.h"
#include "dump/dump.h"
#include "dump/idle.h"
#include "sql/spec/table.h"

struct memo {
	const void *key;
	void *value;
	void (*destroy)(void *value);
	struct prb_error *err;
};

struct prb_instant {
	struct prb_instant_host host;
	struct prb_target *target;
	const struct prb_plan *plan;
	double time;
	struct prb_dump *dump;
	struct prb_error *no_thread; /**< the only thread requested does not exist */
	struct prb_dump_found found; /**< shared with the dump */
	struct prb_view *view;
	PRB_VEC(struct memo) memos;
};

struct prb_error *prb_instant_create(struct prb_target *target, const struct prb_plan *plan,
				     const struct prb_instant_host *host, struct prb_instant **ret)
{
	struct prb_instant *instant = calloc(1, sizeof(*instant));

	if (!instant)
		return prb_error_nomem();
	instant->host = *host;
	instant->target = target;
	instant->plan = plan;
	instant->time = target->live ? prb_clock_calendar_seconds() : target->time;
	*ret = instant;
	return NULL;
}

void prb_instant_destroy(struct prb_instant *instant)
{
	struct memo *memo;

	if (!instant)
		return;
	prb_vec_each (memo, &instant->memos) {
		if (memo->value && memo->destroy)
			memo->destroy(memo->value);
		prb_error_destroy(memo->err);
	}
	prb_vec_free(&instant->memos);
	if (instant->view)
		prb_target_note_pages(instant->target, 0, instant->view);
	prb_dump_found_deinit(&instant->found);
	prb_view_destroy(instant->view);
	prb_dump_destroy(instant->dump);
	prb_error_destroy(instant->no_thread);
	free(instant);
}

struct prb_target *prb_instant_target(struct prb_instant *instant)
{
	return instant->target;
}

bool prb_instant_values(const struct prb_instant *instant)
{
	return !instant->plan->no_values;
}

enum prb_dump_mode prb_instant_mode(const struct prb_instant *instant)
{
	return *instant->host.mode;
}

struct prb_repr_options prb_instant_repr(const struct prb_instant *instant)
{
	return prb_value_options(instant->host.values,
				 &(struct prb_repr_options){.max_objects = 1, .marked = true});
}

double prb_instant_time(const struct prb_instant *instant)
{
	return instant->time;
}

static struct prb_error *make_dump(struct prb_instant *instant)
{
	const struct prb_plan *plan = instant->plan;
	struct prb_dump_options options = {
		.mode = *instant->host.mode,
		.locals = plan->needs & PRB_NEED_LOCALS,
		.values = prb_value_limited(instant->host.values) ? instant->host.dumped : NULL,
		.no_values = !(plan->needs & PRB_NEED_VALUES),
		.native = plan->needs & PRB_NEED_NATIVE,
		.native_all = plan->needs & PRB_NEED_NATIVE_ALL,
		.source = plan->needs & PRB_NEED_SOURCE,
		.no_waits = !(plan->needs & PRB_NEED_WAITS),
		.no_modules =
			prb_target_is_remote(instant->target) && !(plan->needs & PRB_NEED_MODULES),
		.no_command = !(plan->needs & PRB_NEED_COMMAND),
	};

	/* Nonblocking reads compare outermost frames, so they need all frames. */
	if (options.mode != PRB_DUMP_NONBLOCKING && !options.native && plan->frames != UINT_MAX)
		options.max_frames = plan->frames;
	if (!plan->several && plan->tid)
		options.tid = plan->tid;
	else if (!(plan->needs & PRB_NEED_THREADS))
		options.main_only = true;
	struct prb_error *err =
		prb_dump_create_with(instant->target, &options, &instant->found, &instant->dump);
	/*
	 * A missing thread has no row; it is an error only for a table that takes the thread as an
	 * argument.
	 */
	if (!options.tid || !err || err->code != PRB_ERROR_NO_PROCESS)
		return err;
	instant->no_thread = err;
	options.tid = 0;
	return prb_dump_create_with(instant->target, &options, &instant->found, &instant->dump);
}

struct prb_error *prb_instant_dump(struct prb_instant *instant, const struct prb_dump **ret)
{
	char **warning;

	if (!instant->dump) {
		PRB_TRY(make_dump(instant));
		if (instant->plan->needs & PRB_NEED_IDLE)
			PRB_TRY(prb_idle_fill(instant->target, instant->dump, NULL));
		prb_vec_each (warning, &instant->dump->warnings)
			instant->host.warn(instant->host.context, *warning);
	}
	*ret = instant->dump;
	return NULL;
}

struct prb_error *prb_instant_check_thread(const struct prb_instant *instant)
{
	const struct prb_error *err = instant->no_thread;

	/* With several targets the thread may belong to another one. */
	if (!err || *instant->host.targets > 1)
		return NULL;
	return prb_error_copy(err);
}

struct prb_error *prb_instant_modules(struct prb_instant *instant, struct prb_modules **ret)
{
	if (!instant->found.modules)
		PRB_TRY(prb_modules_create(instant->target, &instant->found.modules));
	*ret = instant->found.modules;
	return NULL;
}

struct prb_error *prb_instant_pythons(struct prb_instant *instant, struct prb_pythons **ret,
				      struct prb_mem **ret_mem)
{
	struct prb_modules *modules;

	if (!instant->view)
		PRB_TRY(prb_view_create(instant->target->mem, &instant->view));
	if (!instant->found.pythons.list.count) {
		PRB_TRY(prb_instant_modules(instant, &modules));
		PRB_TRY(prb_pythons_find(modules, instant->view, &instant->found.pythons));
	}
	*ret = &instant->found.pythons;
	*ret_mem = prb_view_mem(instant->view);
	return NULL;
}

struct prb_error *prb_instant_memo(struct prb_instant *instant, const void *key,
				   struct prb_error *(*create)(struct prb_instant *instant,
							       void **ret),
				   void (*destroy)(void *memo), void **ret)
{
	struct memo *memo;
	struct prb_error *err;
	void *value = NULL;

	prb_vec_each (memo, &instant->memos) {
		if (memo->key == key) {
			*ret = memo->value;
			return prb_error_copy(memo->err);
		}
	}
	err = create(instant, &value);
	memo = prb_vec_push(&instant->memos);
	if (!memo) {
		if (value && destroy)
			destroy(value);
		prb_error_destroy(err);
		return prb_error_nomem();
	}
	*memo = (struct memo){.key = key, .value = value, .destroy = destroy, .err = err};
	*ret = value;
	return prb_error_copy(err);
}

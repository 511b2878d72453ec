/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile/recording/wait_sums.h"
#include "sql/tables/shared/recordings.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "sql/engine/instant.h"
#include "target/recorded/recorded.h"

static struct prb_error *no_recording(const struct prb_target *target)
{
	struct prb_error *err =
		prb_error_create(PRB_ERROR_UNSUPPORTED,
				 "tables of the schema profile are of recordings, and this is a %s",
				 prb_target_kind_name(target->kind));

	return target->moves
		       ? prb_error_hint(err, "profile('5s') records five seconds of it; 'probing "
					     "PID perf -o run.profile' makes a recording")
		       : err;
}

static struct prb_error *create(struct prb_instant *instant, void **ret)
{
	const struct prb_target *target = prb_instant_target(instant);
	const char *path = prb_recorded_path(target);
	struct prb_load *load;

	if (!path)
		return no_recording(target);
	PRB_TRY(prb_load_open(path, &load));
	*ret = load;
	return NULL;
}

static void destroy(void *memo)
{
	prb_load_destroy(memo);
}

struct prb_error *prb_scan_recording(struct prb_scan *scan, struct prb_load **ret)
{
	static const char key;
	void *memo;

	PRB_TRY(prb_instant_memo(scan->instant, &key, create, destroy, &memo));
	*ret = memo;
	return NULL;
}

static struct prb_error *create_runs(struct prb_instant *instant, void **ret)
{
	const struct prb_target *target = prb_instant_target(instant);
	const char *path = prb_recorded_path(target);
	struct prb_recording *recording;

	if (!path)
		return no_recording(target);
	PRB_TRY(prb_profile_load(path, false, &recording));
	*ret = recording;
	return NULL;
}

static void destroy_runs(void *memo)
{
	prb_recording_destroy(memo);
}

struct prb_error *prb_scan_recording_runs(struct prb_scan *scan, const struct prb_recording **ret)
{
	static const char key;
	void *memo;

	PRB_TRY(prb_instant_memo(scan->instant, &key, create_runs, destroy_runs, &memo));
	*ret = memo;
	return NULL;
}

static struct prb_error *add_report(const struct prb_report *report, enum prb_weight weight,
				    struct prb_number_map *numbers, struct prb_recorded_rows *ret)
{
	const struct prb_report_row *row;

	prb_vec_each (row, &report->rows) {
		uint64_t key = (uint64_t)row->function << 32 | (uint32_t)row->line;
		struct prb_recorded_row *into;
		size_t number = ret->list.count;

		if (!prb_number_map_get(numbers, key, &number)) {
			into = prb_vec_push(&ret->list);
			if (!into || !prb_number_map_put(numbers, key, number))
				return prb_error_nomem();
			into->function = row->function;
			into->line = row->line;
		}
		into = &ret->list.items[number];
		into->self[weight] = row->self;
		into->total[weight] = row->total;
		if (weight == PRB_WEIGHT_WALL)
			into->samples = row->samples;
	}
	return NULL;
}

struct prb_error *prb_recorded_rows_make(const struct prb_recording *recording, bool lines,
					 struct prb_recorded_rows *ret)
{
	struct prb_number_map numbers = {};
	struct prb_error *err = NULL;

	for (unsigned i = 0; i < PRB_WEIGHTS && !err; i++) {
		const struct prb_profile_choice choice = {(enum prb_weight)i, lines, NULL};
		struct prb_report report;

		err = prb_report_make(recording, &choice, &report);
		if (err)
			break;
		err = add_report(&report, choice.weight, &numbers, ret);
		prb_report_deinit(&report);
	}
	prb_number_map_deinit(&numbers);
	return err;
}

void prb_put_recorded_wait(struct prb_scan *scan, unsigned gil, unsigned waits,
			   const struct prb_recording *recording, const struct prb_run *run)
{
	prb_auto_str struct prb_str text = {};

	if (run->gil)
		prb_put_static(scan, gil, "holds");
	else if (run->wait_kind == PRB_WAIT_GIL)
		prb_put_static(scan, gil, "waits");
	if (!run->wait)
		return;
	prb_wait_text(recording, run->wait, &text);
	prb_put_text(scan, waits, text.failed ? NULL : prb_str_text(&text));
}

const char *prb_recorded_func(const struct prb_tree_function *function)
{
	const char *dot = strrchr(function->name, '.');

	return function->kind == PRB_FUNCTION_PYTHON && dot && dot[1] ? dot + 1 : function->name;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A recording that is made while the statement runs. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "profile/sampler/sampler.h"
#include "sql/engine/instant.h"
#include "sql/engine/session.h"
#include "sql/functions/functions_time.h"
#include "sql/tables/shared/recordings.h"
#include "target/recorded/recorded.h"

enum {
	TID,
	THREAD,
	SECOND,
	STATE,
	KIND,
	FUNC,
	QUALNAME,
	FILE_NAME,
	LINE,
	CPU,
	WALL,
	QUEUE,
	GIL,
	WAITS,
	SAMPLES,
	DURATION,
	RATE,
};

static const struct prb_column columns[] = {
	[TID] = {"tid", PRB_COLUMN_INTEGER, "Thread id"},
	[THREAD] = {"thread", PRB_COLUMN_TEXT, "Name of the thread: Python's, or the kernel's"},
	[SECOND] = {"second", PRB_COLUMN_REAL, "When it began, from the start on", "s"},
	[STATE] = {"state", PRB_COLUMN_TEXT,
		   "What it did: on a processor, waits for a processor, asleep, asleep in the "
		   "kernel, stopped"},
	[KIND] = {"kind", PRB_COLUMN_TEXT,
		  "python, native, or note for what is no function: <not in Python>"},
	[FUNC] = {"func", PRB_COLUMN_TEXT, "Name of the innermost function"},
	[QUALNAME] = {"qualname", PRB_COLUMN_TEXT, "Its qualified name: Class.method"},
	[FILE_NAME] = {"file", PRB_COLUMN_TEXT, "Its source file"},
	[LINE] = {"lineno", PRB_COLUMN_INTEGER, "Line that ran"},
	[CPU] = {"cpu_ms", PRB_COLUMN_REAL, "How long the thread had a processor", "ms"},
	[WALL] = {"wall_ms", PRB_COLUMN_REAL, "How much time passed", "ms"},
	[QUEUE] = {"runqueue_ms", PRB_COLUMN_REAL, "How long it waited for a processor", "ms"},
	[GIL] = {"gil", PRB_COLUMN_TEXT,
		 "Whether it holds the GIL, or waits for it: holds, waits, or NULL"},
	[WAITS] = {"waits_for", PRB_COLUMN_TEXT,
		   "What it waited for, and who held that, if it is known"},
	[SAMPLES] = {"samples", PRB_COLUMN_INTEGER,
		     "How many in a row found the same stack in the same state"},
	[DURATION] = {"duration", PRB_COLUMN_TEXT, "First argument: how long, as 5 or '500ms'",
		      .flags = PRB_COLUMN_KEY | PRB_COLUMN_HIDDEN},
	[RATE] = {"rate", PRB_COLUMN_INTEGER,
		  "Second argument: how often a second; 100 if not given",
		  .flags = PRB_COLUMN_KEY | PRB_COLUMN_HIDDEN},
	{},
};

enum { DEFAULT_RATE = 100, HIGHEST_RATE = 10000 };

/* Made by the first scan of a statement, for all of them. */
struct made {
	struct prb_recording *recording;
	char *duration; /* as it was written */
	double seconds;
	int64_t rate;
};

static struct prb_error *create(struct prb_instant *instant, void **ret)
{
	(void)instant;
	*ret = calloc(1, sizeof(struct made));
	return *ret ? NULL : prb_error_nomem();
}

static void destroy(void *memo)
{
	struct made *made = memo;

	prb_recording_destroy(made->recording);
	free(made->duration);
	free(made);
}

static struct prb_error *no_duration(void)
{
	return prb_error_hint(
		prb_error_create(PRB_ERROR_USAGE, "profile() needs to know how long to record"),
		"for example profile('5s'), or profile('5s', 1000) with a thousand "
		"samples a second");
}

static struct prb_error *read_arguments(struct prb_scan *scan, struct made *ret)
{
	int64_t whole;
	const char *text;

	ret->rate = DEFAULT_RATE;
	if (prb_scan_key_integer(scan, DURATION, &whole)) {
		ret->duration = prb_format("%lld", (long long)whole);
		ret->seconds = (double)whole;
	} else if (prb_scan_key_text(scan, DURATION, &text)) {
		ret->duration = strdup(text);
		PRB_TRY(prb_interval_parse(text, strlen(text), &ret->seconds));
	} else {
		return no_duration();
	}
	if (!ret->duration)
		return prb_error_nomem();
	if (!(ret->seconds > 0))
		return no_duration();
	if (prb_scan_key_integer(scan, RATE, &ret->rate) &&
	    (ret->rate < 1 || ret->rate > HIGHEST_RATE))
		return prb_error_create(PRB_ERROR_USAGE, "the rate of profile() is 1 to %d",
					HIGHEST_RATE);
	return NULL;
}

static bool has_to_end(void *session)
{
	struct prb_error *err = prb_session_check(session);

	prb_error_destroy(err);
	return err;
}

static struct prb_error *record(struct prb_scan *scan, struct made *made)
{
	const struct prb_profile_options options = {
		.seconds = made->seconds,
		.rate = (double)made->rate,
		.cancelled = has_to_end,
		.context = scan->session,
	};

	if (prb_recorded_path(prb_instant_target(scan->instant)))
		return prb_error_hint(prb_error_create(PRB_ERROR_UNSUPPORTED,
						       "profile() records a process, and this is "
						       "a recording of one"),
				      "profile.samples has what was recorded");
	PRB_TRY(prb_profile_record(prb_instant_target(scan->instant), &options, &made->recording));
	return prb_session_check(scan->session);
}

/* All scans of a statement are of one recording: it is not made for each row of a join. */
static struct prb_error *get(struct prb_scan *scan, const struct made **ret)
{
	static const char key;
	struct made *made, asked = {};
	void *memo;
	struct prb_error *err = read_arguments(scan, &asked);

	if (!err)
		err = prb_instant_memo(scan->instant, &key, create, destroy, &memo);
	if (err) {
		free(asked.duration);
		return err;
	}
	*ret = made = memo;
	if (!made->recording) {
		free(made->duration);
		*made = asked;
		return record(scan, made);
	}
	if (made->seconds != asked.seconds || made->rate != asked.rate)
		err = prb_error_create(PRB_ERROR_USAGE,
				       "a statement records once: profile() with other arguments "
				       "has to be one of its own");
	free(asked.duration);
	return err;
}

static void put(struct prb_scan *scan, const struct made *made, const struct prb_run *run)
{
	const struct prb_recording *r = made->recording;
	const struct prb_profile_thread *thread = &r->threads.items[run->thread];
	const struct prb_tree_function *f = prb_tree_function_of(r->tree, run->stack);
	int32_t line = r->tree->frames.items[r->tree->stacks.items[run->stack].frame].line;

	prb_put_integer(scan, TID, thread->tid);
	prb_put_static(scan, THREAD, thread->name ? thread->name : thread->os_name);
	prb_put_real(scan, SECOND, (double)run->begin / 1e9);
	prb_put_static(scan, STATE, prb_run_state_name(run->state));
	prb_put_static(scan, KIND, prb_function_kind_name(f->kind));
	prb_put_static(scan, FUNC, prb_recorded_func(f));
	prb_put_static(scan, QUALNAME, f->name);
	prb_put_static(scan, FILE_NAME, f->file);
	if (f->file && line > 0)
		prb_put_integer(scan, LINE, line);
	prb_put_real(scan, CPU, prb_milliseconds(run->cpu));
	prb_put_real(scan, WALL, prb_milliseconds(run->wall));
	prb_put_recorded_wait(scan, GIL, WAITS, r, run);
	prb_put_real(scan, QUEUE, prb_milliseconds(run->queue));
	prb_put_integer(scan, SAMPLES, run->samples);
	prb_put_static(scan, DURATION, made->duration);
	prb_put_integer(scan, RATE, made->rate);
}

static struct prb_error *scan(struct prb_scan *scan)
{
	const struct made *made;

	PRB_TRY(get(scan, &made));
	for (; scan->position < made->recording->runs.count; scan->position++) {
		if (prb_scan_full(scan)) {
			scan->more = true;
			return NULL;
		}
		PRB_TRY(prb_scan_row(scan));
		put(scan, made, &made->recording->runs.items[scan->position]);
	}
	return NULL;
}

const struct prb_table prb_table_profile = {
	.schema = "main",
	.name = "profile",
	.doc = "Records the target, as profile('5s') or profile('5s', 1000): where its time goes",
	.columns = columns,
	.flags = PRB_TABLE_COSTLY,
	.rows = 1000,
	.scan = scan,
};

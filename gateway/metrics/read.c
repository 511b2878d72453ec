/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The samples of one process. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "gateway/metrics/metrics.h"
#include "target/proc/text.h"
#include "values/heap/gc.h"
#include "values/interpreters.h"

const struct prb_metric prb_metric_families[] = {
	{"up", "gauge", NULL, "1 if the process could be read"},
	{"threads", "gauge", "state", "Python threads by what they do"},
	{"gil_waiters", "gauge", NULL, "Threads that wait for the GIL"},
	{"gil_held", "gauge", NULL, "1 if a thread holds the GIL"},
	{"gil_wait_ratio", "gauge", NULL,
	 "Share that waits, of the threads that hold the GIL or wait for it"},
	{"main_thread_idle_seconds", "gauge", NULL, "How long the main thread has been asleep"},
	{"lock_waiters", "gauge", NULL, "Threads that wait for a lock whose owner is known"},
	{"inference_requests", "gauge", "queue", "Requests of an inference server by queue"},
	{"inference_oldest_request_seconds", "gauge", NULL, "Age of its oldest request"},
	{"inference_recently_admitted_requests", "gauge", NULL,
	 "Requests that run and came in the last minute; without those that have ended"},
	{"inference_kv_free_blocks", "gauge", NULL, "Blocks of its KV cache that are free"},
	{"cpu_seconds_total", "counter", "mode", "Processor time of the process",
	 "process.cpu.time", "cpu.mode", "s"},
	{"resident_memory_bytes", "gauge", NULL, "Memory of the process in RAM",
	 "process.memory.usage", NULL, "By"},
	{"swap_bytes", "gauge", NULL, "Memory of the process that was swapped out"},
	{"open_fds", "gauge", NULL, "Open descriptors", "process.unix.file_descriptor.count", NULL,
	 "{file_descriptor}"},
	{"start_time_seconds", "gauge", NULL, "When the process was started, since the epoch"},
	{"step", "gauge", NULL, "Number of the last training step"},
	{"step_duration_seconds", "gauge", NULL, "How long the last training step took"},
	{"gc_collections_total", "counter", "generation", "Runs of the garbage collector",
	 "cpython.gc.collections", "cpython.gc.generation", "{collection}"},
	{"gc_uncollectable_total", "counter", "generation", "Objects that it could not free",
	 "cpython.gc.uncollectable_objects", "cpython.gc.generation", "{object}"},
	{},
};

/* Rows: the metric, the value of its label, its value. NULL: there is none. */
static const char SERVER_SQL[] =
	"SELECT 'inference_requests', name, count FROM inference.queues "
	"UNION ALL SELECT 'inference_oldest_request_seconds', NULL, max(age) "
	"FROM inference.requests "
	"UNION ALL SELECT 'inference_recently_admitted_requests', NULL, (SELECT count(*) "
	"FROM inference.requests WHERE queue = 'running' AND age < 60) FROM inference.queues "
	"WHERE name = 'running' AND count IS NOT NULL "
	"UNION ALL SELECT 'inference_kv_free_blocks', NULL, free FROM inference.kv";

/* Where steps are recorded; the first one counts that has a row of the last minutes. */
static const char STEP_TABLES[] =
	"SELECT table_schema, NULL, 1 FROM information_schema.tables "
	"WHERE (table_schema = 'python' AND table_name = 'torch_step_timing') "
	"OR (table_schema = 'main' AND table_name = 'training_logs')";
static const struct {
	const char *schema, *sql;
} STEPS[] = {
#define STEP_SQL(schema, name)                                                              \
	{                                                                                   \
		schema, "WITH last AS (SELECT step, duration FROM " schema "." name         \
			" WHERE timestamp > now() - 600 ORDER BY timestamp DESC LIMIT 1) "  \
			"SELECT 'step', NULL, step FROM last UNION ALL "                    \
			"SELECT 'step_duration_seconds', NULL, duration / 1000.0 FROM last" \
	}
	STEP_SQL("python", "torch_step_timing"),
	STEP_SQL("main", "training_logs"),
#undef STEP_SQL
};

struct reading {
	struct prb_metrics_one *one;
	bool failed;			 /* memory ran out */
	bool has[PRB_ARRAY_SIZE(STEPS)]; /* the tables that there are */
};

static void put(struct reading *r, const char *name, const char *label, double value)
{
	const struct prb_metric *family = prb_metric_families;

	while (family->name && strcmp(family->name, name) != 0)
		family++;
	if (!family->name)
		return;
	struct prb_metric_sample *sample = prb_vec_push(&r->one->samples);

	if (!sample) {
		r->failed = true;
		return;
	}
	*sample = (struct prb_metric_sample){family, "", value};
	snprintf(sample->label, sizeof(sample->label), "%s", label ? label : "");
}

static void put_states(struct reading *r, const struct prb_dump *dump)
{
	const struct prb_dump_thread *thread, *other;

	prb_vec_each (thread, &dump->threads) {
		unsigned count = 0;
		bool told = false;

		prb_vec_each (other, &dump->threads) {
			bool same = !strcmp(other->state, thread->state);

			told |= same && other < thread;
			count += same;
		}
		if (!told)
			put(r, "threads", thread->state, count);
	}
}

static void put_threads(struct reading *r, const struct prb_dump *dump)
{
	unsigned wait = 0, hold = 0, locked = 0;
	const struct prb_dump_thread *thread, *main = NULL;

	put_states(r, dump);
	prb_vec_each (thread, &dump->threads) {
		wait += thread->gil && !strcmp(thread->gil, "waits");
		hold += thread->gil && !strcmp(thread->gil, "holds");
		locked += thread->waits_for && strstr(thread->waits_for, "held by");
		if (thread->tid == dump->main_tid)
			main = thread;
	}
	put(r, "gil_waiters", NULL, wait);
	put(r, "gil_held", NULL, hold);
	put(r, "gil_wait_ratio", NULL, wait ? (double)wait / (wait + hold) : 0);
	if (main && !strcmp(main->state, "running"))
		put(r, "main_thread_idle_seconds", NULL, 0);
	else if (main && main->idle_seconds >= 0)
		put(r, "main_thread_idle_seconds", NULL, main->idle_seconds);
	put(r, "lock_waiters", NULL, locked);
}

static void put_times(struct reading *r, struct prb_target *target)
{
	prb_auto_str struct prb_str text = {};
	const double ticks = (double)sysconf(_SC_CLK_TCK);
	int64_t numbers[PRB_STAT_NUMBERS];

	prb_error_destroy(prb_target_read_file(target, &text, "stat"));
	if (!prb_stat_numbers(prb_str_text(&text), numbers))
		return;
	put(r, "cpu_seconds_total", "user", (double)numbers[PRB_STAT_USER] / ticks);
	put(r, "cpu_seconds_total", "system", (double)numbers[PRB_STAT_SYSTEM] / ticks);
	if (r->one->start > 0)
		put(r, "start_time_seconds", NULL, r->one->start);
}

static void put_memory(struct reading *r, struct prb_target *target)
{
	static const char *const FIELDS[][2] = {{"resident_memory_bytes", "VmRSS"},
						{"swap_bytes", "VmSwap"}};
	prb_auto_str struct prb_str text = {};

	prb_error_destroy(prb_target_read_file(target, &text, "status"));
	for (size_t i = 0; i < PRB_ARRAY_SIZE(FIELDS); i++) {
		const char *field = prb_text_field(prb_str_text(&text), FIELDS[i][1]);

		if (field)
			put(r, FIELDS[i][0], NULL, 1024 * strtod(field, NULL));
	}
}

static void put_files(struct reading *r, struct prb_target *target)
{
	prb_auto_str struct prb_str names = {};
	prb_auto_error struct prb_error *err = prb_target_list(target, &names, "fd");
	unsigned count = 0;

	for (const char *s = prb_str_text(&names); *s; s++)
		count += *s == '\n';
	if (!err)
		put(r, "open_fds", NULL, count);
}

static struct prb_error *put_collector(void *context, const struct prb_inside *inside)
{
	struct reading *r = context;
	char label[8];
	struct prb_gc gc;

	PRB_TRY(prb_gc_read(inside->py, inside->mem, inside->interp, &gc));
	for (unsigned g = 0; g < PRB_GC_GENERATIONS; g++) {
		snprintf(label, sizeof(label), "%u", g);
		if (gc.generations[g].collections >= 0)
			put(r, "gc_collections_total", label,
			    (double)gc.generations[g].collections);
		if (gc.generations[g].uncollectable >= 0)
			put(r, "gc_uncollectable_total", label,
			    (double)gc.generations[g].uncollectable);
	}
	return NULL;
}

static int take_row(void *context, struct probing_statement *row)
{
	if (probing_value_kind(row, 2) != PROBING_NULL)
		put(context, probing_value_text(row, 0, NULL), probing_value_text(row, 1, NULL),
		    probing_value_real(row, 2));
	return 0;
}

static int take_table(void *context, struct probing_statement *row)
{
	struct reading *r = context;

	for (size_t i = 0; i < PRB_ARRAY_SIZE(STEPS); i++)
		r->has[i] |= !strcmp(STEPS[i].schema, probing_value_text(row, 0, NULL));
	return 0;
}

static struct probing_error *query_steps(struct reading *r, struct probing *session)
{
	size_t before = r->one->samples.count;
	struct probing_error *err = probing_query(session, STEP_TABLES, take_table, r);

	for (size_t i = 0; i < PRB_ARRAY_SIZE(STEPS) && !err; i++) {
		if (r->has[i])
			err = probing_query(session, STEPS[i].sql, take_row, r);
		if (r->one->samples.count > before)
			break;
	}
	return err;
}

static struct probing_error *open_session(struct prb_metrics_one *one)
{
	char target[16];
	struct probing_error *err;

	if (one->session)
		return NULL;
	snprintf(target, sizeof(target), "%d", (int)one->process.pid);
	err = probing_create(&one->session);
	if (!err)
		err = probing_open(one->session, target, NULL);
	return err ? err : probing_set(one->session, "probing.query.timeout", "5");
}

/** What few processes have, by SQL; an error leaves out what the statement gave before it. */
static void query(struct reading *r, bool server, bool steps)
{
	size_t before = r->one->samples.count;
	struct probing_error *err = open_session(r->one);

	if (!err && server)
		err = probing_query(r->one->session, SERVER_SQL, take_row, r);
	if (!err && steps)
		err = query_steps(r, r->one->session);
	if (!err)
		return;
	r->one->samples.count = before;
	probing_error_destroy(err);
	probing_destroy(r->one->session);
	r->one->session = NULL;
}

static struct prb_error *read_samples(struct reading *r, const struct prb_metrics_reading *reading)
{
	put_threads(r, reading->dump);
	put_times(r, reading->target);
	put_memory(r, reading->target);
	put_files(r, reading->target);
	PRB_TRY(prb_inside_each(reading->target, reading->pythons, put_collector, r));
	if (reading->server || reading->steps)
		query(r, reading->server, reading->steps);
	return NULL;
}

struct prb_error *prb_metrics_read(struct prb_metrics_one *one,
				   const struct prb_metrics_reading *reading)
{
	prb_auto_target struct prb_target *own = NULL;
	struct prb_metrics_reading whole = *reading;
	struct reading r = {.one = one};

	/* One of more processes than may stay open. */
	if (whole.dump && !whole.target)
		PRB_TRY(prb_error_tolerate(prb_target_open_process(one->process.pid, &own), NULL));
	if (own)
		whole.target = own;
	one->samples.count = 0;
	PRB_TRY(prb_metric_process_read(whole.process, whole.target, &one->process));
	put(&r, "up", NULL, whole.dump ? 1 : 0);
	if (whole.dump && whole.target)
		PRB_TRY(read_samples(&r, &whole));
	return r.failed ? prb_error_nomem() : NULL;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/metrics/metrics.h"

#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "base/vec.h"
#include "lib/probing.h"
#include "target/proc/process.h"
#include "target/spec/target_spec.h"
#include "target/target.h"

static const struct prb_metric FAMILIES[] = {
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
};
enum { FAMILY_COUNT = sizeof(FAMILIES) / sizeof(*FAMILIES) };

/** Rows: the metric, the value of its label, its value. NULL: there is none. */
static const char SQL[] =
	"SELECT 'threads', state, count(*) FROM python.threads GROUP BY state "
	"UNION ALL SELECT 'gil_waiters', NULL, count(*) FROM python.threads WHERE gil = 'waits' "
	"UNION ALL SELECT 'gil_held', NULL, count(*) FROM python.threads WHERE gil = 'holds' "
	"UNION ALL SELECT 'gil_wait_ratio', NULL, coalesce(avg(gil = 'waits'), 0) "
	"FROM python.threads WHERE gil IS NOT NULL "
	"UNION ALL SELECT 'lock_waiters', NULL, count(*) FROM python.threads "
	"WHERE waits_for LIKE '%held by%' "
	"UNION ALL SELECT 'main_thread_idle_seconds', NULL, CASE state WHEN 'running' THEN 0 "
	"ELSE idle_seconds END FROM python.threads WHERE main "
	"UNION ALL SELECT 'inference_requests', name, count FROM inference.queues "
	"UNION ALL SELECT 'inference_oldest_request_seconds', NULL, max(age) "
	"FROM inference.requests "
	"UNION ALL SELECT 'inference_kv_free_blocks', NULL, free FROM inference.kv "
	"UNION ALL SELECT 'cpu_seconds_total', 'user', user_seconds FROM process.info "
	"UNION ALL SELECT 'cpu_seconds_total', 'system', system_seconds FROM process.info "
	"UNION ALL SELECT 'resident_memory_bytes', NULL, rss FROM process.info "
	"UNION ALL SELECT 'swap_bytes', NULL, swap FROM process.info "
	"UNION ALL SELECT 'open_fds', NULL, fds FROM process.info "
	"UNION ALL SELECT 'start_time_seconds', NULL, start_time FROM process.info "
	"UNION ALL SELECT 'gc_collections_total', generation, collections FROM python.gc "
	"WHERE interpreter = 0 "
	"UNION ALL SELECT 'gc_uncollectable_total', generation, uncollectable FROM python.gc "
	"WHERE interpreter = 0";

/* Where steps are recorded; the first one counts that has a row of the last minutes. */
static const struct {
	const char *has, *sql;
} STEPS[] = {
#define STEP_SQL(schema, name)                                                              \
	{                                                                                   \
		"SELECT 1 FROM information_schema.tables WHERE table_schema = '" schema     \
		"' AND table_name = '" name "'",                                            \
			"WITH last AS (SELECT step, duration FROM " schema "." name         \
			" WHERE timestamp > now() - 600 ORDER BY timestamp DESC LIMIT 1) "  \
			"SELECT 'step', NULL, step FROM last UNION ALL "                    \
			"SELECT 'step_duration_seconds', NULL, duration / 1000.0 FROM last" \
	}
	STEP_SQL("python", "torch_step_timing"),
	STEP_SQL("main", "training_logs"),
#undef STEP_SQL
};

struct collection {
	struct prb_metrics *metrics;
	struct prb_metric_process *process; /* whose rows come */
};

static void put(struct collection *c, const char *name, const char *label, double value)
{
	struct prb_metric_sample *sample = NULL;

	for (size_t i = 0; i < FAMILY_COUNT; i++) {
		if (strcmp(FAMILIES[i].name, name) != 0)
			continue;
		sample = prb_vec_push(&c->metrics->samples);
		if (!sample)
			return;
		*sample = (struct prb_metric_sample){&FAMILIES[i], c->process->pid,
						     c->process->rank, "", value};
		snprintf(sample->label, sizeof(sample->label), "%s", label ? label : "");
		return;
	}
}

static int take_row(void *context, struct probing_statement *row)
{
	if (probing_value_kind(row, 2) != PROBING_NULL)
		put(context, probing_value_text(row, 0, NULL), probing_value_text(row, 1, NULL),
		    probing_value_real(row, 2));
	return 0;
}

static int note_row(void *context, struct probing_statement *row)
{
	(void)row;
	*(bool *)context = true;
	return 0;
}

static struct probing_error *collect_steps(struct collection *c, struct probing *session)
{
	size_t before = c->metrics->samples.count;
	struct probing_error *err = NULL;

	for (size_t i = 0; i < PRB_ARRAY_SIZE(STEPS) && !err; i++) {
		bool has = false;

		err = probing_query(session, STEPS[i].has, note_row, &has);
		if (!err && has)
			err = probing_query(session, STEPS[i].sql, take_row, c);
		if (c->metrics->samples.count > before)
			break;
	}
	return err;
}

static int take_rank(void *context, struct probing_statement *row)
{
	struct collection *c = context;

	if (probing_value_kind(row, 0) == PROBING_INTEGER)
		c->process->rank = (long)probing_value_integer(row, 0);
	return 0;
}

static void destroy_session(struct probing **session)
{
	probing_destroy(*session);
}

/** One process; that it cannot be read is a sample too. */
static void collect(struct collection *c, const char *target, pid_t pid)
{
	__attribute__((cleanup(destroy_session))) struct probing *session = NULL;
	struct probing_error *err = probing_create(&session);
	size_t before = c->metrics->samples.count;

	c->process = prb_vec_push(&c->metrics->processes);
	if (!c->process) {
		probing_error_destroy(err);
		return;
	}
	prb_error_destroy(prb_metric_process_read(pid, c->process));
	if (!err)
		err = probing_open(session, target, NULL);
	if (!err)
		err = probing_set(session, "probing.query.timeout", "5");
	/* Its environment may be in its memory alone. */
	if (!err && c->process->rank < 0)
		err = probing_query(session, "SELECT rank FROM process.info", take_rank, c);
	if (!err)
		err = probing_query(session, SQL, take_row, c);
	if (!err)
		err = collect_steps(c, session);
	/* A part of the samples would be taken for the whole. */
	if (err)
		c->metrics->samples.count = before;
	put(c, "up", NULL, err ? 0 : 1);
	probing_error_destroy(err);
}

/** *ret is 0 if the text names no running process. */
static struct prb_error *find_pid(const char *text, pid_t *ret)
{
	prb_auto_target struct prb_target *target = NULL;

	PRB_TRY(prb_spec_open(text, NULL, &target));
	*ret = target->live ? target->pid : 0;
	return NULL;
}

static struct prb_error *collect_named(struct collection *c, const struct prb_texts *targets)
{
	for (size_t i = 0; i < targets->count; i++) {
		pid_t pid;

		PRB_TRY(find_pid(targets->items[i], &pid));
		if (!pid)
			return prb_error_create(PRB_ERROR_USAGE,
						"metrics are of processes, and '%.100s' is none",
						targets->items[i]);
		collect(c, targets->items[i], pid);
	}
	return NULL;
}

static struct prb_error *collect_all(struct collection *c)
{
	struct prb_python_processes all = {};
	struct prb_python_process *p;
	char target[16];

	PRB_TRY(prb_process_list(&all));
	prb_vec_each (p, &all.list) {
		snprintf(target, sizeof(target), "%d", (int)p->process.pid);
		collect(c, target, p->process.pid);
	}
	prb_python_processes_deinit(&all);
	return NULL;
}

static void put_sample(struct prb_str *s, const struct prb_metric_sample *sample)
{
	prb_str_printf(s, "probing_%s{pid=\"%d\"", sample->metric->name, (int)sample->pid);
	if (sample->rank >= 0)
		prb_str_printf(s, ",rank=\"%ld\"", sample->rank);
	if (sample->metric->label)
		prb_str_printf(s, ",%s=\"%s\"", sample->metric->label, sample->label);
	prb_str_printf(s, "} %.15g\n", sample->value);
}

static void put_head(struct prb_str *s, const char *name, const char *type, const char *help)
{
	prb_str_printf(s, "# HELP probing_%s %s\n# TYPE probing_%s %s\n", name, help, name, type);
}

struct prb_error *prb_metrics_read(const struct prb_texts *targets, struct prb_metrics *ret)
{
	struct collection c = {.metrics = ret};

	return targets->count ? collect_named(&c, targets) : collect_all(&c);
}

void prb_metrics_deinit(struct prb_metrics *metrics)
{
	struct prb_metric_process *process;

	prb_vec_free(&metrics->samples);
	prb_vec_each (process, &metrics->processes)
		prb_metric_process_deinit(process);
	prb_vec_free(&metrics->processes);
}

const struct prb_metric_process *prb_metrics_process(const struct prb_metrics *metrics, pid_t pid)
{
	const struct prb_metric_process *process;

	prb_vec_each (process, &metrics->processes)
		if (process->pid == pid)
			return process;
	return NULL;
}

static void put_label(struct prb_str *s, const char *name, const char *value)
{
	if (!value)
		return;
	prb_str_printf(s, ",%s=\"", name);
	for (; *value; value++) {
		if (*value == '"' || *value == '\\')
			prb_str_putc(s, '\\');
		prb_str_putc(s, *value);
	}
	prb_str_putc(s, '"');
}

static void put_info(struct prb_str *s, const struct prb_metric_process *process)
{
	prb_str_printf(s, "probing_process_info{pid=\"%d\"", (int)process->pid);
	if (process->rank >= 0)
		prb_str_printf(s, ",rank=\"%ld\"", process->rank);
	put_label(s, "user", process->user);
	put_label(s, "script", process->script);
	put_label(s, "job", process->job);
	prb_str_puts(s, "} 1\n");
}

struct prb_error *prb_metrics_collect(const struct prb_texts *targets, struct prb_str *ret)
{
	struct prb_metrics metrics = {};
	double start = prb_clock_seconds();
	struct prb_error *err = prb_metrics_read(targets, &metrics);
	struct prb_metric_sample *sample;
	struct prb_metric_process *process;

	for (size_t i = 0; !err && i < FAMILY_COUNT; i++) {
		put_head(ret, FAMILIES[i].name, FAMILIES[i].type, FAMILIES[i].help);
		prb_vec_each (sample, &metrics.samples)
			if (sample->metric == &FAMILIES[i])
				put_sample(ret, sample);
	}
	put_head(ret, "process_info", "gauge", "1, with what the process is called");
	prb_vec_each (process, &metrics.processes)
		put_info(ret, process);
	prb_metrics_deinit(&metrics);
	put_head(ret, "build_info", "gauge", "1, with the version of probing");
	prb_str_puts(ret, "probing_build_info{version=\"" PRB_VERSION "\"} 1\n");
	put_head(ret, "collect_duration_seconds", "gauge",
		 "How long it took to read all processes");
	prb_str_printf(ret, "probing_collect_duration_seconds %.6f\n", prb_clock_seconds() - start);
	return err;
}

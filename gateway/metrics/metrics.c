/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/metrics/metrics.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

/** Sessions that stay open: each has some descriptors. */
enum { MOST_OPEN = 64 };

static void one_destroy(struct prb_metrics_one *one)
{
	prb_vec_free(&one->samples);
	prb_metric_process_deinit(&one->process);
	probing_destroy(one->session);
	free(one);
}

void prb_metrics_deinit(struct prb_metrics *metrics)
{
	for (size_t i = 0; i < metrics->list.count; i++)
		one_destroy(metrics->list.items[i]);
	prb_vec_free(&metrics->list);
	*metrics = (struct prb_metrics){};
}

void prb_metrics_begin(struct prb_metrics *metrics)
{
	for (size_t i = 0; i < metrics->list.count; i++)
		metrics->list.items[i]->seen = false;
}

static struct prb_metrics_one *find(struct prb_metrics *metrics, const struct prb_process *process)
{
	struct prb_metrics_one *one, **place;

	/* Of a process whose pid is used again, the end of the round forgets what is left. */
	for (size_t i = 0; i < metrics->list.count; i++) {
		one = metrics->list.items[i];
		if (one->process.pid == process->pid && one->start_ticks == process->start_ticks)
			return one;
	}
	one = calloc(1, sizeof(*one));
	place = one ? prb_vec_push(&metrics->list) : NULL;
	if (!place) {
		free(one);
		return NULL;
	}
	one->process.pid = process->pid;
	one->process.rank = -1;
	one->start_ticks = process->start_ticks;
	one->start = process->start_time;
	one->read = -1;
	*place = one;
	return one;
}

struct prb_error *prb_metrics_add(struct prb_metrics *metrics,
				  const struct prb_metrics_reading *reading)
{
	struct prb_metrics_one *one = find(metrics, reading->process);

	if (!one)
		return prb_error_nomem();
	one->seen = true;
	if (one->read == reading->read && reading->dump)
		return NULL;
	one->read = reading->read;
	return prb_metrics_read(one, reading);
}

void prb_metrics_end(struct prb_metrics *metrics)
{
	size_t kept = 0, open = 0;

	for (size_t i = 0; i < metrics->list.count; i++) {
		struct prb_metrics_one *one = metrics->list.items[i];

		if (!one->seen) {
			one_destroy(one);
			continue;
		}
		if (one->session && ++open > MOST_OPEN) {
			probing_destroy(one->session);
			one->session = NULL;
		}
		metrics->list.items[kept++] = one;
	}
	metrics->list.count = kept;
}

double prb_metrics_value(const struct prb_metrics_one *one, const struct prb_metric_sample *sample,
			 double now)
{
	bool sleeps =
		sample->value > 0 && !strcmp(sample->metric->name, "main_thread_idle_seconds");

	return sleeps ? sample->value + now - one->read : sample->value;
}

static void put_process(struct prb_str *s, const struct prb_metrics_one *one)
{
	prb_str_printf(s, "{pid=\"%d\"", (int)one->process.pid);
	if (one->process.rank >= 0)
		prb_str_printf(s, ",rank=\"%ld\"", one->process.rank);
}

static void put_samples(struct prb_str *s, const struct prb_metrics_one *one,
			const struct prb_metric *family, double now)
{
	const struct prb_metric_sample *sample;

	prb_vec_each (sample, &one->samples) {
		if (sample->metric != family)
			continue;
		prb_str_printf(s, "probing_%s", family->name);
		put_process(s, one);
		if (family->label)
			prb_str_printf(s, ",%s=\"%s\"", family->label, sample->label);
		prb_str_printf(s, "} %.15g\n", prb_metrics_value(one, sample, now));
	}
}

static void put_head(struct prb_str *s, const char *name, const char *type, const char *help)
{
	prb_str_printf(s, "# HELP probing_%s %s\n# TYPE probing_%s %s\n", name, help, name, type);
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

static void put_info(struct prb_str *s, const struct prb_metrics_one *one)
{
	prb_str_puts(s, "probing_process_info");
	put_process(s, one);
	put_label(s, "user", one->process.user);
	put_label(s, "script", one->process.script);
	put_label(s, "job", one->process.job);
	prb_str_puts(s, "} 1\n");
}

void prb_metrics_text(const struct prb_metrics *metrics, double seconds, struct prb_str *ret)
{
	struct prb_metrics_one *const *one;
	double now = prb_clock_seconds();

	for (const struct prb_metric *family = prb_metric_families; family->name; family++) {
		put_head(ret, family->name, family->type, family->help);
		prb_vec_each (one, &metrics->list)
			put_samples(ret, *one, family, now);
	}
	put_head(ret, "process_info", "gauge", "1, with what the process is called");
	prb_vec_each (one, &metrics->list)
		put_info(ret, *one);
	put_head(ret, "build_info", "gauge", "1, with the version of probing");
	prb_str_puts(ret, "probing_build_info{version=\"" PRB_VERSION "\"} 1\n");
	put_head(ret, "collect_duration_seconds", "gauge",
		 "How long it took to read all processes");
	prb_str_printf(ret, "probing_collect_duration_seconds %.6f\n", seconds);
}

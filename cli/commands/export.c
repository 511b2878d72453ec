/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `probing export`: metrics, spans and recordings for monitoring. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/new_file.h"
#include "base/text.h"
#include "cli/commands/cluster/watch_jobs.h"
#include "cli/commands/overview/overview.h"
#include "command/command.h"
#include "command/exit.h"
#include "command/interrupt.h"
#include "command/output.h"
#include "gateway/metrics/metrics.h"
#include "gateway/metrics/otlp.h"
#include "gateway/metrics/post.h"
#include "profile/formats/otlp.h"
#include "profile/store/load/load.h"
#include "target/recorded/recorded.h"

struct export_settings {
	const char *file, *endpoint;
	double every;
	bool each_line;
};

enum { MAX_JOBS = 1 << 20 /* bytes of metrics of jobs */ };

static const char FINDING_HEAD[] =
	"# HELP probing_finding " PRB_FINDING_HELP "\n# TYPE probing_finding gauge\n";

static const char DEFAULT_ENDPOINT[] = "http://127.0.0.1:4318";

/** Without --every, spans are sent that ended in so many seconds. */
static const double ONCE_SECONDS = 60;
/** A row may be seen so long after its time; a span that ended later is sent the next time. */
static const double LATE_SECONDS = 0.2;

/** A file that is there whole or not at all, for a collector that is another user. */
static struct prb_error *write_file(const char *path, const struct prb_str *text)
{
	prb_auto_new_file struct prb_new_file file = PRB_NO_FILE;

	PRB_TRY(prb_new_file_open(&file, path));
	if (write(file.fd, prb_str_text(text), text->length) != (ssize_t)text->length ||
	    fchmod(file.fd, 0644))
		return prb_error_os(errno, "cannot write %.200s", path);
	return prb_new_file_finish(&file);
}

/** What is read, and judged, again and again. */
struct watch {
	struct prb_overview *overview;
	struct prb_overview_jobs jobs;
	struct prb_metrics metrics;
	struct prb_ranking ranking;
	double seconds; /* that the last look took */
};

static void watch_deinit(struct watch *w)
{
	prb_ranking_deinit(&w->ranking);
	prb_metrics_deinit(&w->metrics);
	prb_overview_jobs_deinit(&w->jobs);
	prb_overview_destroy(w->overview);
}
#define prb_auto_watch __attribute__((cleanup(watch_deinit)))

static struct prb_error *watch_begin(const struct prb_cli *cli, const struct prb_texts *targets,
				     struct watch *w)
{
	PRB_TRY(prb_overview_create(targets, &cli->places, &w->overview));
	PRB_TRY(prb_overview_list(w->overview));
	for (size_t i = 0; i < prb_overview_count(w->overview); i++) {
		const struct prb_overview_row *row = prb_overview_row(w->overview, i);

		if (row->file)
			return prb_error_create(PRB_ERROR_USAGE,
						"metrics are of processes, and '%.100s' is none",
						row->file);
	}
	return NULL;
}

static struct prb_error *add_metrics(struct watch *w)
{
	prb_metrics_begin(&w->metrics);
	for (size_t i = 0; i < prb_overview_count(w->overview); i++) {
		const struct prb_overview_row *row = prb_overview_row(w->overview, i);
		bool readable = row->dump && !row->ended && !row->error;

		PRB_TRY(prb_metrics_add(&w->metrics, &(struct prb_metrics_reading){
							     .process = &row->info.process,
							     .target = row->target,
							     .dump = readable ? row->dump : NULL,
							     .pythons = &row->found.pythons,
							     .read = row->read,
							     .server = row->server,
							     .steps = row->step >= 0}));
	}
	prb_metrics_end(&w->metrics);
	return NULL;
}

/** Processes that did not run since the last look are neither read nor judged again. */
static struct prb_error *watch_look(struct watch *w)
{
	double began = prb_clock_seconds();

	PRB_TRY(prb_overview_pass(w->overview));
	PRB_TRY(prb_overview_jobs_find(&w->jobs, w->overview));
	PRB_TRY(prb_overview_jobs_judge(&w->jobs, w->overview));
	prb_ranking_deinit(&w->ranking);
	w->ranking = (struct prb_ranking){};
	PRB_TRY(prb_overview_rank(w->overview, &w->jobs, &w->ranking));
	PRB_TRY(add_metrics(w));
	w->seconds = prb_clock_seconds() - began;
	return NULL;
}

/** Appends what a daemon that watches jobs has written, if it serves these metrics. */
static struct prb_error *put_jobs(struct prb_str *ret)
{
	const char *path = getenv(PRB_WATCH_JOBS_VARIABLE);
	prb_auto_close int fd = -1;
	char chunk[4096];
	ssize_t got;

	if (!path || !*path)
		return NULL;
	prb_auto_error struct prb_error *err = prb_file_open(-1, path, &fd);
	if (err)
		return err->code == PRB_ERROR_NOMEM ? prb_steal(&err) : NULL;
	for (size_t all = 0; all < MAX_JOBS && (got = read(fd, chunk, sizeof(chunk))) > 0;
	     all += (size_t)got)
		prb_str_append(ret, chunk, (size_t)got);
	return NULL;
}

/** A sample may be there once only. */
static bool is_repeated(const struct prb_ranking *ranking, size_t index)
{
	const struct prb_ranked *one = &ranking->list.items[index];

	for (size_t i = 0; i < index; i++) {
		const struct prb_ranked *other = &ranking->list.items[i];

		if (other->pid == one->pid && prb_finding_is_alike(other->finding, one->finding))
			return true;
	}
	return false;
}

/** Nothing in a label is the process's own choice. */
static void put_findings(const struct prb_ranking *ranking, struct prb_str *ret)
{
	prb_str_puts(ret, FINDING_HEAD);
	for (size_t i = 0; i < ranking->list.count; i++) {
		const struct prb_ranked *one = &ranking->list.items[i];

		if (one->pid && !is_repeated(ranking, i))
			prb_str_printf(
				ret,
				"probing_finding{pid=\"%d\",rule=\"%s\",confidence=\"%s\"} 1\n",
				(int)one->pid, one->finding->rule,
				prb_confidence_name(one->finding->confidence));
	}
}

static struct prb_error *make_text(struct watch *w, struct prb_str *ret)
{
	PRB_TRY(watch_look(w));
	prb_metrics_text(&w->metrics, w->seconds, ret);
	put_findings(&w->ranking, ret);
	PRB_TRY(put_jobs(ret));
	return ret->failed ? prb_error_nomem() : NULL;
}

/** Prints them for each line of stdin. */
static struct prb_error *answer_lines(struct watch *w)
{
	char line[16];

	while (fgets(line, sizeof(line), stdin)) {
		prb_auto_str struct prb_str text = {};

		PRB_TRY(make_text(w, &text));
		prb_str_puts(&text, "# EOF\n");
		PRB_TRY(prb_output(&text));
		PRB_TRY(prb_output_flush());
	}
	return NULL;
}

static struct prb_error *export_prometheus(const struct prb_cli *cli,
					   const struct prb_texts *targets,
					   const struct export_settings *s)
{
	prb_auto_str struct prb_str text = {};
	prb_auto_watch struct watch w = {};

	PRB_TRY(watch_begin(cli, targets, &w));
	if (s->each_line)
		return answer_lines(&w);
	PRB_TRY(make_text(&w, &text));
	return s->file ? write_file(s->file, &text) : prb_output(&text);
}

/** @p path: "v1/metrics", … */
static struct prb_error *post(const char *endpoint, const char *path, const struct prb_str *body)
{
	prb_auto_str struct prb_str answer = {};
	size_t length = strlen(endpoint);

	while (length && endpoint[length - 1] == '/')
		length--;
	prb_auto_free char *url = prb_format("%.*s/%s", (int)length, endpoint, path);
	if (!url)
		return prb_error_nomem();
	if (!body->length)
		return NULL;
	PRB_TRY(prb_post(url, "application/x-protobuf", getenv("OTEL_EXPORTER_OTLP_HEADERS"), body,
			 &answer));
	if (answer.length)
		prb_warn("the receiver has taken only a part, or has a remark: see its log");
	return NULL;
}

static const char *endpoint_of(const struct export_settings *s)
{
	const char *said = s->endpoint ? s->endpoint : getenv("OTEL_EXPORTER_OTLP_ENDPOINT");

	return said && *said ? said : DEFAULT_ENDPOINT;
}

static struct prb_error *collect_process(struct watch *w, const struct prb_metrics_one *one,
					 const struct prb_otlp_time *time, struct prb_otlp *ret)
{
	struct prb_otlp_findings findings = {};
	struct prb_error *err = NULL;

	for (size_t i = 0; i < w->ranking.list.count && !err; i++) {
		const struct prb_ranked *ranked = &w->ranking.list.items[i];
		const struct prb_finding **place;

		if (ranked->pid != one->process.pid || is_repeated(&w->ranking, i))
			continue;
		place = prb_vec_push(&findings.list);
		if (place)
			*place = ranked->finding;
		else
			err = prb_error_nomem();
	}
	if (!err)
		err = prb_otlp_put_process(one, &findings, time, ret);
	prb_vec_free(&findings.list);
	return err;
}

/** Sends what there is; *since becomes the end of the time whose spans were sent. */
static struct prb_error *send_once(struct watch *w, const char *endpoint, double *since)
{
	const struct prb_otlp_time time = {*since, prb_clock_calendar_seconds() - LATE_SECONDS};
	__attribute__((cleanup(prb_otlp_deinit))) struct prb_otlp otlp = {};
	prb_auto_str struct prb_str text = {};

	PRB_TRY(watch_look(w));
	for (size_t i = 0; i < w->metrics.list.count; i++)
		PRB_TRY(collect_process(w, w->metrics.list.items[i], &time, &otlp));
	PRB_TRY(post(endpoint, "v1/metrics", &otlp.metrics));
	PRB_TRY(post(endpoint, "v1/traces", &otlp.traces));
	*since = time.until;
	prb_str_printf(&text, "%zu samples and %zu spans were sent to %s\n", otlp.samples,
		       otlp.spans, endpoint);
	PRB_TRY(prb_output(&text));
	return prb_output_flush();
}

/** Takes the recordings out of @p targets. */
static void take_recordings(struct prb_texts *targets, struct prb_texts *ret)
{
	size_t left = 0;

	for (size_t i = 0; i < targets->count; i++) {
		const char *target = targets->items[i];

		if (prb_recorded_probe(target))
			ret->items[ret->count++] = target;
		else
			targets->items[left++] = target;
	}
	targets->count = left;
}

static struct prb_error *send_recording(const char *path, const char *endpoint)
{
	const struct prb_profile_choice choice = {.weight = PRB_WEIGHT_CPU};
	prb_auto_recording struct prb_recording *recording = NULL;
	prb_auto_str struct prb_str body = {}, text = {};

	PRB_TRY(prb_profile_load(path, false, &recording));
	PRB_TRY(prb_otlp_put_profiles(&body, recording, &choice));
	PRB_TRY(post(endpoint, "v1development/profiles", &body));
	prb_text_escape(&text, path);
	prb_str_printf(&text, " was sent to %s\n", endpoint);
	return prb_output(&text);
}

static void rest(double seconds)
{
	const struct timespec time = {.tv_sec = (time_t)seconds,
				      .tv_nsec = (long)(fmod(seconds, 1) * 1e9)};

	if (!prb_interrupted())
		nanosleep(&time, NULL);
}

static struct prb_error *send_processes(const struct prb_cli *cli, const struct prb_texts *targets,
					const struct export_settings *s)
{
	double since = prb_clock_calendar_seconds() - (s->every > 0 ? s->every : ONCE_SECONDS);
	prb_auto_watch struct watch w = {};

	PRB_TRY(watch_begin(cli, targets, &w));
	if (s->every <= 0)
		return send_once(&w, endpoint_of(s), &since);
	prb_interrupt_catch(NULL);
	while (!prb_interrupted()) {
		struct prb_error *err = send_once(&w, endpoint_of(s), &since);

		/* A receiver that is away for a while gets the spans later. */
		if (err)
			prb_warn(err->message);
		prb_error_destroy(err);
		rest(s->every);
	}
	return NULL;
}

static struct prb_error *export_otlp(const struct prb_cli *cli, struct prb_texts *targets,
				     const struct export_settings *s)
{
	struct prb_texts recordings = {};

	take_recordings(targets, &recordings);
	if (recordings.count && s->every > 0)
		return prb_error_create(PRB_ERROR_USAGE,
					"--every is for processes, and %.200s is a recording",
					recordings.items[0]);
	for (size_t i = 0; i < recordings.count; i++)
		PRB_TRY(send_recording(recordings.items[i], endpoint_of(s)));
	return recordings.count && !targets->count ? prb_output_flush()
						   : send_processes(cli, targets, s);
}

static struct prb_error *run(const struct prb_cli *cli, const void *settings)
{
	const struct export_settings *s = settings;
	struct prb_texts targets = cli->targets;
	const char *format = cli->argument_count ? cli->arguments[0] : "";
	bool otlp = !strcmp(format, "otlp");

	if (!otlp && strcmp(format, "prometheus") != 0)
		return prb_error_hint(prb_error_create(PRB_ERROR_USAGE, "the format to export is "
									"'prometheus' or 'otlp'"),
				      "for example 'probing export prometheus'");
	if (s->each_line && (otlp || s->file))
		return prb_error_create(PRB_ERROR_USAGE,
					"--each-line is for prometheus, without --textfile");
	if (otlp && s->file)
		return prb_error_create(PRB_ERROR_USAGE, "--textfile is for prometheus");
	if (!otlp && (s->endpoint || s->every > 0))
		return prb_error_create(PRB_ERROR_USAGE, "--endpoint and --every are for otlp");
	for (size_t i = 1; i < cli->argument_count && targets.count < PRB_MAX_TEXTS; i++)
		targets.items[targets.count++] = cli->arguments[i];
	return otlp ? export_otlp(cli, &targets, s) : export_prometheus(cli, &targets, s);
}

const struct prb_command prb_command_export = {
	.rank = 88,
	.name = "export",
	.summary = "Give metrics, spans and profiles to Prometheus or OpenTelemetry",
	.description =
		"Metrics are threads by state, waiters for the GIL and locks, processor time, "
		"memory, "
		"the garbage collector's runs and what 'probing why' finds, for each process: "
		"those that are named, or all that may be read. prometheus prints them; --textfile "
		"writes a file for "
		"node_exporter; 'probing serve' has the same at /metrics.\n\n"
		"otlp sends them to an OpenTelemetry receiver, with the spans that programs have "
		"recorded by probing.span(), as Protocol Buffers over HTTP: those that ended in "
		"the "
		"last minute, or with --every all from then on. Of a recording (FILE.profile) it "
		"sends the profile.",
	.options =
		(const struct prb_option[]){
			{"textfile", 0, PRB_OPTION_TEXT, "FILE",
			 "prometheus: write FILE, which is there whole or not at all",
			 PRB_COMPLETE_FILE, offsetof(struct export_settings, file)},
			{"endpoint", 'e', PRB_OPTION_TEXT, "URL",
			 "otlp: send to URL/v1/metrics and the like [http://127.0.0.1:4318]",
			 PRB_COMPLETE_NOTHING, offsetof(struct export_settings, endpoint)},
			{"each-line", 0, PRB_OPTION_FLAG, NULL,
			 "prometheus: once for each line on stdin, ended by '# EOF'",
			 PRB_COMPLETE_NOTHING, offsetof(struct export_settings, each_line)},
			{"every", 0, PRB_OPTION_SECONDS, "TIME", "otlp: send again and again",
			 PRB_COMPLETE_NOTHING, offsetof(struct export_settings, every)},
			{},
		},
	.settings_size = sizeof(struct export_settings),
	.target_use = PRB_TARGET_ANY,
	.only_processes = true,
	.argument = "prometheus|otlp [TARGET…]",
	.max_arguments = PRB_MAX_TEXTS,
	.complete = PRB_COMPLETE_TARGET,
	.examples =
		(const struct prb_example[]){
			{"probing export prometheus", "All processes"},
			{"probing export prometheus train.py --textfile probing.prom",
			 "One, for node_exporter"},
			{"probing export otlp train.py --every 10s",
			 "To a collector on this machine"},
			{"probing export otlp run.profile", "A recording, as a profile"},
			{},
		},
	.run = run,
};

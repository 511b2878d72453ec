/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/commands/cluster/watch_jobs_private.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/new_file.h"
#include "base/own_file.h"
#include "base/str.h"
#include "base/text.h"
#include "clickhouse/state.h"
#include "cluster/jobs/job.h"
#include "cluster/looks/vigil.h"
#include "cluster/watch/incident.h"
#include "command/exit.h"
#include "gateway/metrics/post.h"

enum {
	MOST_SAVED = 10,  /* bundles that are kept */
	MOST_RANKS = 256, /* of a job on this machine; larger ones are not watched */
	LOOKS_PER_LIMIT = 6,
};

/* Seconds. */
static const double MOST_REST = 10, HANG = 60;

static void end(struct prb_watched *w)
{
	prb_vigil_deinit(&w->vigil);
	prb_incident_deinit(&w->incident);
}

static void watching_deinit(struct prb_watching *w)
{
	struct prb_watched *one;

	prb_vec_each (one, &w->list)
		end(one);
	prb_vec_free(&w->list);
	prb_jobs_deinit(&w->jobs);
	prb_reported_deinit(&w->reported);
	prb_close_guard(&w->reports);
	prb_close_guard(&w->saved);
	prb_close_guard(&w->folder);
	free(w->path);
}

static bool same_job(const struct prb_job *a, const struct prb_job *b)
{
	if (strcmp(a->name, b->name) != 0 || a->uid != b->uid || a->ranks.count != b->ranks.count)
		return false;
	for (size_t i = 0; i < a->ranks.count; i++)
		if (a->ranks.items[i].pid != b->ranks.items[i].pid)
			return false;
	return true;
}

void prb_watching_say(const char *job, const char *what)
{
	prb_auto_str struct prb_str text = {};

	prb_str_puts(&text, "job ");
	prb_text_escape(&text, job);
	prb_str_puts(&text, what);
	prb_warn(prb_str_text(&text));
}

/** Lists the jobs anew: one whose ranks are others is a new one, and one without ranks is over. */
static struct prb_error *find_jobs(struct prb_watching *w)
{
	prb_auto_jobs struct prb_jobs now = {};
	struct prb_job *job;
	struct prb_watched *one;
	size_t kept = 0;

	PRB_TRY(prb_jobs_find(&now));
	prb_vec_each (one, &w->list)
		one->there = false;
	prb_vec_each (job, &now.list) {
		struct prb_watched *found = NULL;

		if (job->ranks.count > MOST_RANKS)
			continue;
		prb_vec_each (one, &w->list)
			if (!one->there && same_job(one->job, job))
				found = one;
		if (!found) {
			found = prb_vec_push(&w->list);
			if (!found)
				return prb_error_nomem();
			found->slow = -1;
			PRB_TRY(prb_vigil_init(job, w->options->hang, &found->vigil));
		}
		found->job = job;
		found->there = true;
		found->vigil.job = job;
	}
	for (size_t i = 0; i < w->list.count; i++) {
		one = &w->list.items[i];
		w->changed |= !one->there && (one->hung || one->slow >= 0);
		if (one->there) {
			w->list.items[kept++] = *one;
			continue;
		}
		if (one->reports)
			prb_watching_report_end(w, one);
		end(one);
	}
	w->list.count = kept;

	const struct prb_jobs before = w->jobs;
	w->jobs = now;
	now = before;
	return NULL;
}

static int by_name(const void *a, const void *b)
{
	const char *const *x = a, *const *y = b;

	return strcmp(*x, *y);
}

/** Removes the oldest bundles, whose names begin with their time. */
static struct prb_error *make_room(const struct prb_watching *w)
{
	PRB_VEC(char *) names = {};
	struct prb_error *err = NULL;
	const struct dirent *entry;
	int fd = dup(w->saved);
	DIR *list = fd < 0 ? NULL : fdopendir(fd);

	if (!list)
		return prb_error_os(errno, "cannot read the folder of saved jobs");
	rewinddir(list);
	while (!err && (entry = readdir(list))) {
		char **name = strncmp(entry->d_name, "hang-", 5) ? NULL : prb_vec_push(&names);

		if (name && !(*name = strdup(entry->d_name)))
			err = prb_error_nomem();
	}
	closedir(list);
	if (names.count)
		qsort(names.items, names.count, sizeof(*names.items), by_name);
	for (size_t i = 0; i < names.count; i++) {
		if (!err && i + MOST_SAVED <= names.count)
			unlinkat(w->saved, names.items[i], 0);
		free(names.items[i]);
	}
	prb_vec_free(&names);
	return err;
}

struct prb_error *prb_watching_name_bundle(const struct prb_watching *w, const char *job,
					   char **ret)
{
	PRB_TRY(make_room(w));
	*ret = prb_format("%s/jobs/hang-%lld-%s.probing", w->path, (long long)time(NULL), job);
	return *ret ? NULL : prb_error_nomem();
}

/** Posts the verdict. What is wrong with the answer is said, and not where it was posted to: the
 * address may be secret. */
static struct prb_error *post(const struct prb_watching *w, const struct prb_incident *incident,
			      double waited, const char *saved)
{
	prb_auto_str struct prb_str body = {}, answer = {};

	prb_incident_put(incident, w->host, waited, saved, &body);
	if (body.failed)
		return prb_error_nomem();
	prb_auto_error struct prb_error *err =
		prb_post(w->options->webhook, "application/json", NULL, &body, &answer);
	if (err && err->code == PRB_ERROR_NOMEM)
		return prb_steal(&err);
	if (err)
		prb_warn("the verdict could not be posted to the webhook");
	return NULL;
}

struct prb_error *prb_watching_tell(const struct prb_watching *w, const char *job,
				    const struct prb_incident *incident, double waited,
				    const char *saved)
{
	prb_auto_str struct prb_str text = {};

	prb_str_puts(&text, " has hung for ");
	prb_text_duration(&text, waited);
	prb_str_printf(&text, ": %s: ", incident->verdict);
	prb_text_escape(&text, incident->sentence);
	prb_str_printf(&text, "; confidence %s; saved in ", incident->confidence);
	prb_text_escape(&text, saved);
	prb_watching_say(job, prb_str_text(&text));
	return w->options->webhook ? post(w, incident, waited, saved) : NULL;
}

/** Judges it here, or on all machines if it has ranks elsewhere. */
static struct prb_error *ask(const struct prb_watching *w, struct prb_watched *one,
			     const char *save)
{
	const bool far = w->options->hosts && !one->job->complete;
	prb_auto_free char *pid = prb_format("%d", (int)prb_job_first_pid(one->job));

	if (!pid)
		return prb_error_nomem();
	return prb_incident_judge(far ? one->job->name : pid, far ? w->options->hosts : NULL, save,
				  &one->incident);
}

/** Judges a job that is suspicious, and reports it if it hangs. */
static struct prb_error *judge(struct prb_watching *w, struct prb_watched *one, double waited)
{
	prb_auto_free char *save = NULL;
	char pid[PRB_WATCHING_NAME];

	snprintf(pid, sizeof(pid), "%d", (int)prb_job_first_pid(one->job));
	PRB_TRY(prb_watching_name_bundle(w, pid, &save));
	prb_incident_deinit(&one->incident);
	prb_auto_error struct prb_error *err = ask(w, one, save);
	if (err && err->code == PRB_ERROR_NOMEM)
		return prb_steal(&err);
	if (err)
		prb_watching_say(one->job->name,
				 ": its ranks have waited for long, but it cannot be judged");
	if (err || !prb_incident_hangs(&one->incident, prb_vigil_waits(&one->vigil))) {
		unlink(save);
		prb_vigil_forget(&one->vigil);
		return NULL;
	}
	one->hung = w->changed = true;
	return prb_watching_tell(w, one->job->name, &one->incident, waited, save);
}

/** A rank that waits less than the others do may keep them: `slow` looks closer. */
static struct prb_error *find_slow(struct prb_watching *w, struct prb_watched *one)
{
	prb_auto_free char *sentence = NULL;
	const bool ended = one->vigil.looks >= PRB_VIGIL_WINDOW;
	const long index = prb_vigil_slow(&one->vigil), before = one->slow;

	if (!ended)
		return NULL;
	one->slow = -1;
	if (index >= 0) {
		prb_auto_error struct prb_error *err =
			prb_incident_find_slow(prb_job_first_pid(one->job), &sentence, &one->slow);

		if (err && err->code == PRB_ERROR_NOMEM)
			return prb_steal(&err);
	}
	w->changed |= one->slow != before;
	if (one->slow < 0 || one->slow == before || !sentence)
		return NULL;

	prb_auto_str struct prb_str text = {};
	prb_str_puts(&text, ": ");
	prb_str_puts(&text, sentence);
	prb_watching_say(one->job->name, prb_str_text(&text));
	return NULL;
}

static struct prb_error *look(struct prb_watching *w, struct prb_watched *one)
{
	bool gone, elsewhere = false;
	double waited;

	PRB_TRY(prb_vigil_look(&one->vigil, &gone));
	if (one->hung && (gone || prb_vigil_moves(&one->vigil))) {
		one->hung = false;
		w->changed = true;
		prb_watching_say(one->job->name, gone ? " has ended" : " goes on again");
		prb_vigil_forget(&one->vigil);
	}
	if (!gone && !one->hung)
		PRB_TRY(prb_watching_report(w, one, &elsewhere));
	if (one->hung || gone || elsewhere)
		return NULL;
	if (prb_vigil_is_suspicious(&one->vigil, &waited))
		return judge(w, one, waited);
	return find_slow(w, one);
}

static void put_hung(struct prb_str *s, const char *job, const struct prb_incident *incident)
{
	const size_t count = PRB_MAX(incident->ranks.list.count, (size_t)1);

	for (size_t i = 0; i < count; i++) {
		prb_str_puts(s, "probing_job_hung{job=");
		prb_incident_put_label(s, job);
		if (incident->ranks.list.count)
			prb_str_printf(s, ",rank=\"%ld\"", incident->ranks.list.items[i]);
		else
			prb_str_puts(s, ",rank=\"\"");
		prb_str_puts(s, ",verdict=");
		prb_incident_put_label(s, incident->verdict);
		prb_str_puts(s, "} 1\n");
	}
}

/** Replaces the file of metrics; it is there whole or not at all. */
static struct prb_error *write_metrics(struct prb_watching *w)
{
	prb_auto_new_file struct prb_new_file file = PRB_NO_FILE;
	prb_auto_str struct prb_str text = {};
	const struct prb_reported *reported;
	const struct prb_watched *one;

	prb_str_puts(&text, "# HELP probing_job_hung 1 for each rank that keeps a job which makes "
			    "no progress\n# TYPE probing_job_hung gauge\n");
	prb_vec_each (one, &w->list)
		if (one->hung)
			put_hung(&text, one->job->name, &one->incident);
	prb_vec_each (reported, &w->reported.list)
		if (reported->hung)
			put_hung(&text, reported->job, &reported->incident);
	prb_str_puts(&text, "# HELP probing_job_slow 1 for a rank that the others wait for at most "
			    "looks\n# TYPE probing_job_slow gauge\n");
	prb_vec_each (one, &w->list) {
		if (one->slow < 0)
			continue;
		prb_str_puts(&text, "probing_job_slow{job=");
		prb_incident_put_label(&text, one->job->name);
		prb_str_printf(&text, ",rank=\"%ld\"} 1\n", one->slow);
	}
	if (text.failed)
		return prb_error_nomem();
	PRB_TRY(prb_new_file_open_in(&file, w->folder, PRB_WATCH_JOBS_METRICS));
	if (write(file.fd, text.data, text.length) != (ssize_t)text.length)
		return prb_error_os(errno, "cannot write the metrics of jobs");
	w->changed = false;
	return prb_new_file_place(&file);
}

static struct prb_error *watch(struct prb_watching *w)
{
	w->hang = w->options->hang > 0 ? w->options->hang : HANG;
	w->rest = PRB_MIN(w->hang / LOOKS_PER_LIMIT, MOST_REST);
	for (;;) {
		PRB_TRY(find_jobs(w));
		for (size_t i = 0; i < w->list.count; i++)
			PRB_TRY(look(w, &w->list.items[i]));
		if (w->reports >= 0)
			PRB_TRY(prb_watching_judge_reported(w));
		if (w->changed)
			PRB_TRY(write_metrics(w));
		poll(NULL, 0, (int)(w->rest * 1000));
	}
}

struct prb_error *prb_watch_jobs_run(const struct prb_watch_jobs_options *options)
{
	__attribute__((cleanup(watching_deinit))) struct prb_watching w = {
		.options = options, .folder = -1, .saved = -1, .reports = -1, .changed = true};

	PRB_TRY(prb_state_folder_open(options->state, &w.folder, &w.path));
	w.saved = prb_own_folder_in(w.folder, "jobs", 0700);
	if (w.saved < 0)
		return prb_error_os(errno, "cannot use %s/jobs", w.path);
	if (options->judges) {
		w.reports = prb_own_folder_in(w.folder, PRB_REPORTS_FOLDER, 0700);
		if (w.reports < 0)
			return prb_error_os(errno, "cannot use %s/" PRB_REPORTS_FOLDER, w.path);
	}
	if (options->host)
		snprintf(w.host, sizeof(w.host), "%s", options->host);
	else if (gethostname(w.host, sizeof(w.host) - 1))
		return prb_error_os(errno, "cannot read the name of this machine");
	return watch(&w);
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Jobs of several machines: what a daemon reports of its ranks, and how the daemon that all report
 * to judges them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/new_file.h"
#include "base/str.h"
#include "base/text.h"
#include "cli/commands/cluster/watch_jobs_private.h"
#include "cluster/looks/json.h"
#include "command/exit.h"
#include "remote/http.h"
#include "remote/token.h"

/* A job whose ranks moved within so many rests moves; it is reported once in so many. A host is
 * silent after six. */
enum { MOVES_RESTS = 2, RARELY = 3 };

enum { MOST_ANSWER = 4096 };

/* Seconds for a report; and until an address is tried again that gave no answer. */
static const double TIMEOUT = 20, RETRY = 60;

static struct prb_error *keep(void *context, const char *data, size_t length)
{
	struct prb_str *answer = context;

	if (answer->length + length > MOST_ANSWER)
		return prb_error_create(PRB_ERROR_BAD_DATA, "the answer is too long");
	prb_str_append(answer, data, length);
	return NULL;
}

/** Posts a report; @p http has the address of the gateway. */
static struct prb_error *post(struct prb_http *http, const struct prb_str *report,
			      const char *token, bool *wanted)
{
	prb_auto_str struct prb_str answer = {};
	prb_auto_free char *bearer = prb_format("Bearer %s", token);
	const struct prb_http_request request = {.body = report->data,
						 .length = report->length,
						 .sink = keep,
						 .context = &answer,
						 .timeout_s = TIMEOUT};
	struct prb_http_outcome outcome = {};
	struct prb_error *err;

	if (!bearer)
		return prb_error_nomem();
	PRB_TRY(prb_http_add_header(http, "Authorization", bearer));
	PRB_TRY(prb_http_add_header(http, "Content-Type", "application/json"));
	PRB_TRY(prb_http_add_header(http, "Expect", ""));
	err = prb_http_send(http, &request, &outcome);
	prb_str_deinit(&outcome.error);
	if (err)
		return err;
	if (outcome.end != PRB_HTTP_DONE)
		return prb_error_create(
			PRB_ERROR_FAILED, "%s",
			outcome.status == 401	? "the token is not that of the daemon "
						  "that judges"
			: outcome.status == 409 ? "the daemon there judges no jobs: it needs "
						  "--watch-jobs and --listen"
						: "the daemon that judges refuses reports");
	*wanted = prb_report_is_wanted(&answer);
	return NULL;
}

/** Sends a report to the daemon that judges; *wanted: it asks for stacks. */
static struct prb_error *send(const struct prb_watching *w, const struct prb_str *report,
			      bool *wanted)
{
	const char *to = w->options->report;
	prb_auto_free char *url = NULL;
	struct prb_token token;
	struct prb_http *http;
	struct prb_error *err;
	size_t length;

	*wanted = false;
	if (!to)
		return prb_reports_keep(w->reports, prb_str_text(report), report->length, wanted);
	for (length = strlen(to); length && to[length - 1] == '/';)
		length--;
	url = prb_format("%.*s/v1/jobs", (int)length, to);
	if (!url)
		return prb_error_nomem();
	PRB_TRY(prb_token_find(w->options->token_file, &token));
	PRB_TRY(prb_http_create(url, &http));
	err = post(http, report, token.text, wanted);
	prb_http_destroy(http);
	return err;
}

/** As above; *sent is false if there is no answer, which is said once. */
static struct prb_error *try_to_send(struct prb_watching *w, const struct prb_str *report,
				     bool *sent, bool *wanted)
{
	*sent = false;
	if (report->failed)
		return prb_error_nomem();
	if (w->unreachable && prb_clock_seconds() < w->next_report)
		return NULL;

	prb_auto_error struct prb_error *err = send(w, report, wanted);

	if (err && err->code == PRB_ERROR_NOMEM)
		return prb_steal(&err);
	*sent = !err;
	if (err && !w->unreachable) {
		prb_auto_str struct prb_str text = {};

		prb_str_printf(&text, "jobs are judged here alone: %s", err->message);
		prb_warn(prb_str_text(&text));
	}
	if (err)
		w->next_report = prb_clock_seconds() + RETRY;
	w->unreachable = err;
	return NULL;
}

/** Looks at the ranks closely, saves them, and sends what was seen. */
static struct prb_error *send_look(struct prb_watching *w, const struct prb_watched *one,
				   bool *sent)
{
	prb_auto_str struct prb_str look = {}, named = {};
	prb_auto_free char *path = NULL;
	char pid[PRB_WATCHING_NAME];
	bool wanted;

	*sent = false;
	snprintf(pid, sizeof(pid), "%d", (int)prb_job_first_pid(one->job));
	PRB_TRY(prb_watching_name_bundle(w, pid, &path));
	prb_auto_error struct prb_error *err =
		prb_incident_look(prb_job_first_pid(one->job), path, &look);

	if (err && err->code == PRB_ERROR_NOMEM)
		return prb_steal(&err);
	if (err)
		return NULL;
	prb_looks_name(&named, w->host, prb_str_text(&look), look.length);
	return try_to_send(w, &named, sent, &wanted);
}

/** True if another daemon judges the job, or ranks of it are reported to this one. */
static bool is_reported(struct prb_watching *w, const struct prb_job *job)
{
	if (job->complete || prb_job_is_of_one_machine(job->name))
		return false;
	return w->options->report ||
	       (w->reports >= 0 && prb_reported_find(&w->reported, job->name, job->uid));
}

struct prb_error *prb_watching_report(struct prb_watching *w, struct prb_watched *one,
				      bool *elsewhere)
{
	prb_auto_str struct prb_str pulse = {};
	const double now = prb_clock_seconds();
	double still, waited;
	bool wanted, sent;

	*elsewhere = false;
	if (!is_reported(w, one->job))
		return NULL;
	*elsewhere = one->reports;
	if (one->reports && now < one->next_pulse)
		return NULL;
	prb_vigil_rests(&one->vigil, &still, &waited);
	one->next_pulse = now + (still < MOVES_RESTS * w->rest ? RARELY : 1) * w->rest;
	prb_report_put_pulse(&pulse, &one->vigil, w->host, false);
	PRB_TRY(try_to_send(w, &pulse, &sent, &wanted));
	if (sent && wanted)
		PRB_TRY(send_look(w, one, &sent));
	*elsewhere = one->reports = sent;
	return NULL;
}

void prb_watching_report_end(struct prb_watching *w, const struct prb_watched *one)
{
	prb_auto_str struct prb_str pulse = {};
	bool wanted, sent;

	prb_report_put_pulse(&pulse, &one->vigil, w->host, true);
	prb_error_destroy(try_to_send(w, &pulse, &sent, &wanted));
}

/** Judges what the hosts have sent, and reports the job if it hangs. */
static struct prb_error *judge(struct prb_watching *w, struct prb_reported *job, double waited,
			       double now)
{
	prb_auto_new_file struct prb_new_file file = PRB_NO_FILE;
	prb_auto_free char *path = NULL;

	PRB_TRY(prb_watching_name_bundle(w, job->key, &path));
	PRB_TRY(prb_new_file_open(&file, path));
	PRB_TRY(prb_reported_save(job, w->reports, w->hang, now, file.fd));
	PRB_TRY(prb_new_file_finish(&file));
	prb_incident_deinit(&job->incident);
	prb_auto_error struct prb_error *err = prb_incident_judge(path, NULL, NULL, &job->incident);

	if (err && err->code == PRB_ERROR_NOMEM)
		return prb_steal(&err);
	if (err)
		prb_watching_say(job->job, ": its ranks have waited for long, but what was "
					   "reported cannot be judged");
	if (err || !prb_incident_hangs(&job->incident, prb_reported_waits(job))) {
		unlink(path);
		return NULL;
	}
	job->hung = w->changed = true;
	return prb_watching_tell(w, job->job, &job->incident, waited, path);
}

/** One job: asks for looks, waits for them, and judges. */
static struct prb_error *tend(struct prb_watching *w, struct prb_reported *job, double now)
{
	const bool runs = prb_reported_runs(job, w->hang, now);
	double waited;

	if (job->hung && (!runs || prb_reported_moves(job, w->hang, MOVES_RESTS * w->rest, now))) {
		job->hung = false;
		w->changed = true;
		job->not_before = now + w->hang;
		prb_watching_say(job->job, runs ? " goes on again" : " has ended");
	}
	if (!runs || job->hung)
		return NULL;
	if (!prb_reported_is_suspicious(job, w->hang, now, &waited)) {
		if (job->asked > 0)
			prb_reports_want_no_more(w->reports, job->key);
		job->asked = 0;
		return NULL;
	}
	if (!(job->asked > 0)) {
		if (now < job->not_before)
			return NULL;
		job->asked = now;
		return prb_reports_want(w->reports, job->key);
	}
	if (!prb_reported_is_seen(job, w->reports, w->hang, now) && now - job->asked < w->hang)
		return NULL;
	prb_reports_want_no_more(w->reports, job->key);
	job->asked = 0;
	job->not_before = now + w->hang;
	return judge(w, job, waited, now);
}

struct prb_error *prb_watching_judge_reported(struct prb_watching *w)
{
	const double now = prb_clock_seconds();
	struct prb_reported *job;

	PRB_TRY(prb_reported_read(&w->reported, w->reports, now));
	prb_vec_each (job, &w->reported.list)
		PRB_TRY(tend(w, job, now));
	return NULL;
}

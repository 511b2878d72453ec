/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The distributed jobs among the processes, and whether they hang. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/text.h"
#include "cli/commands/overview/overview.h"
#include "cluster/watch/incident.h"
#include "judge/limits.h"

/* Seconds between two searches for jobs, and between two verdicts on one. */
static const double FIND_EVERY = 10, JUDGE_EVERY = 60;

/** Has no find(): it is asked about jobs, not about processes. */
static const struct prb_rule RULE = {
	.rank = 5,
	.name = "hung_job",
	.kind = PRB_FINDING_JOB,
	.proves = "ranks of a distributed job wait for one of them",
};

void prb_overview_jobs_deinit(struct prb_overview_jobs *jobs)
{
	struct prb_overview_job *one;

	prb_vec_each (one, &jobs->list) {
		prb_findings_deinit(&one->findings);
		prb_vec_free(&one->gone);
	}
	prb_vec_free(&jobs->list);
	prb_jobs_deinit(&jobs->found);
}

/** Changes when processes start or end. */
static uint64_t state_of(const struct prb_overview *overview)
{
	uint64_t state = PRB_HASH_START;

	for (size_t i = 0; i < prb_overview_count(overview); i++) {
		const struct prb_overview_row *row = prb_overview_row(overview, i);

		const uint64_t parts[] = {(uint64_t)row->info.process.pid, row->pulse.start_ticks,
					  row->ended};

		state = prb_hash_bytes(state, parts, sizeof(parts));
	}
	return state;
}

/** True if all ranks here are rows; *some: one is. */
static bool is_whole(const struct prb_overview *overview, const struct prb_job *job, bool *some)
{
	const struct prb_rank *rank;
	bool whole = true;

	*some = false;
	prb_vec_each (rank, &job->ranks) {
		bool here = rank->pid && prb_overview_row_of(overview, rank->pid);

		*some |= here;
		whole &= here || !rank->pid;
	}
	return whole;
}

static bool same_job(const struct prb_job *a, const struct prb_job *b)
{
	return !strcmp(a->name, b->name) && a->uid == b->uid && a->network == b->network;
}

static bool has_rank(const struct prb_job *job, long number)
{
	const struct prb_rank *rank;

	prb_vec_each (rank, &job->ranks)
		if (rank->pid && rank->rank == number)
			return true;
	return false;
}

static bool is_gone(const struct prb_overview_job *one, long number)
{
	const struct prb_overview_gone *gone;

	prb_vec_each (gone, &one->gone)
		if (gone->rank == number)
			return true;
	return false;
}

/** Adds ranks that were in @p before and have ended to the missing ones, and removes from these
 * what has started again. */
static struct prb_error *note_gone(struct prb_overview_job *one, const struct prb_job *before)
{
	const struct prb_rank *rank;
	size_t kept = 0;

	for (size_t i = 0; i < one->gone.count; i++)
		if (!has_rank(one->job, one->gone.items[i].rank))
			one->gone.items[kept++] = one->gone.items[i];
	one->gone.count = kept;
	prb_vec_each (rank, &before->ranks) {
		struct prb_overview_gone *place;

		if (!rank->pid || has_rank(one->job, rank->rank) || is_gone(one, rank->rank))
			continue;
		place = prb_vec_push(&one->gone);
		if (!place)
			return prb_error_nomem();
		*place = (struct prb_overview_gone){rank->rank, prb_clock_calendar_seconds()};
	}
	return NULL;
}

/** What is known of a job stays known when it is found again. */
static struct prb_error *take(struct prb_overview_jobs *jobs, struct prb_overview_jobs *before,
			      struct prb_job *job, bool whole)
{
	struct prb_overview_job *place = prb_vec_push(&jobs->list), *old;
	const struct prb_job *then = NULL;

	if (!place)
		return prb_error_nomem();
	*place = (struct prb_overview_job){.blamed = -1};
	prb_vec_each (old, &before->list) {
		if (!old->job || !same_job(old->job, job))
			continue;
		*place = *old;
		then = old->job;
		*old = (struct prb_overview_job){};
		break;
	}
	place->job = job;
	place->whole = whole;
	return then ? note_gone(place, then) : NULL;
}

struct prb_error *prb_overview_jobs_find(struct prb_overview_jobs *jobs,
					 const struct prb_overview *overview)
{
	double now = prb_overview_time(overview);
	uint64_t state = state_of(overview);
	struct prb_overview_jobs before = *jobs;
	struct prb_error *err;
	struct prb_job *job;
	bool some;

	if (jobs->looked > 0 && (state == jobs->state || now < jobs->looked + FIND_EVERY))
		return NULL;
	*jobs = (struct prb_overview_jobs){.looked = now, .state = state};
	err = prb_jobs_find(&jobs->found);
	if (!err)
		prb_vec_each (job, &jobs->found.list) {
			bool whole = is_whole(overview, job, &some);

			if (some && !err)
				err = take(jobs, &before, job, whole);
		}
	prb_overview_jobs_deinit(&before);
	return err;
}

/** True if a rank that should be here is not, while others are. */
static bool is_missing_some(const struct prb_overview_job *one)
{
	const struct prb_rank *rank;
	bool missing = one->gone.count, some = false;

	prb_vec_each (rank, &one->job->ranks) {
		missing |= !rank->pid;
		some |= rank->pid != 0;
	}
	return missing && some;
}

/** How long the rank has waited that waits longest; negative: none does. */
static double waited(const struct prb_overview_job *one, const struct prb_overview *overview)
{
	double longest = -1;
	const struct prb_rank *rank;

	prb_vec_each (rank, &one->job->ranks) {
		const struct prb_overview_row *row =
			rank->pid ? prb_overview_row_of(overview, rank->pid) : NULL;
		double idle =
			row && row->main.state && !strcmp(row->main.state, "idle") &&
					row->main.idle_seconds >= 0
				? row->main.idle_seconds + prb_overview_time(overview) - row->read
				: -1;

		longest = PRB_MAX(longest, idle);
	}
	return longest;
}

static enum prb_confidence confidence_of(const char *name)
{
	return !strcmp(name, "high")	 ? PRB_CONFIDENCE_HIGH
	       : !strcmp(name, "medium") ? PRB_CONFIDENCE_MEDIUM
					 : PRB_CONFIDENCE_LOW;
}

static struct prb_error *put_evidence(struct prb_finding *f, const char *lines)
{
	for (const char *at = lines, *end; *at; at = end + (*end == '\n')) {
		prb_auto_str struct prb_str part = {};
		struct prb_str *line;

		end = strchrnul(at, '\n');
		if (end == at)
			continue;
		prb_str_append(&part, at, (size_t)(end - at));
		PRB_TRY(prb_finding_line(f, 0, &line));
		prb_text_escape(line, prb_str_text(&part));
	}
	return NULL;
}

static struct prb_error *put_finding(struct prb_overview_job *one,
				     const struct prb_incident *incident, double lasted)
{
	const struct prb_rank *rank;
	struct prb_finding *f;

	PRB_TRY(prb_finding_add(&RULE, &one->findings, &f));
	f->confidence = confidence_of(incident->confidence);
	f->lasted = lasted;
	prb_str_printf(&f->brief, "job: %s", incident->verdict);
	prb_str_puts(&f->sentence, "job ");
	prb_text_escape(&f->sentence, one->job->name);
	/* Ranks that have ended may leave others that go on. */
	one->hangs = lasted > 0 && strcmp(incident->verdict, "left") != 0;
	if (one->hangs) {
		prb_str_puts(&f->sentence, " has hung for ");
		prb_text_duration(&f->sentence, lasted);
	}
	prb_str_puts(&f->sentence, ": ");
	prb_text_escape(&f->sentence, incident->sentence);
	PRB_TRY(put_evidence(f, incident->evidence));
	prb_text_escape(&f->rests_on, incident->rests_on);
	prb_text_escape(&f->wrong_if, incident->wrong_if);
	prb_text_escape(&f->next, incident->next);
	prb_vec_each (rank, &one->job->ranks)
		if (rank->pid)
			PRB_TRY(prb_finding_pid(f, rank->pid));
	one->blamed = incident->ranks.list.count ? incident->ranks.list.items[0] : -1;
	return NULL;
}

/** Ranks that were there and are not any more, of a job that moves on. */
static struct prb_error *put_gone(struct prb_overview_job *one)
{
	const struct prb_overview_gone *gone;
	const struct prb_rank *rank;
	struct prb_finding *f;

	if (!one->gone.count)
		return NULL;
	PRB_TRY(prb_finding_add(&RULE, &one->findings, &f));
	f->confidence = PRB_CONFIDENCE_MEDIUM;
	prb_str_puts(&f->brief, "ranks of the job have ended");
	prb_str_puts(&f->sentence, "job ");
	prb_text_escape(&f->sentence, one->job->name);
	prb_str_printf(&f->sentence, ": rank%s", one->gone.count > 1 ? "s" : "");
	prb_vec_each (gone, &one->gone)
		prb_str_printf(&f->sentence, "%s %ld", gone == one->gone.items ? "" : ",",
			       gone->rank);
	prb_str_printf(&f->sentence, " ha%s ended, and the others go on",
		       one->gone.count > 1 ? "ve" : "s");
	prb_str_puts(&f->rests_on, "looks at the processes of the job, one after the other");
	prb_str_puts(&f->wrong_if, "the job is made to go on without them");
	prb_vec_each (rank, &one->job->ranks)
		if (rank->pid)
			PRB_TRY(prb_finding_pid(f, rank->pid));
	return NULL;
}

static struct prb_error *judge(struct prb_overview_job *one, double lasted)
{
	prb_auto_incident struct prb_incident incident = {};
	prb_auto_free char *pid = prb_format("%d", (int)prb_job_first_pid(one->job));

	if (!pid)
		return prb_error_nomem();
	prb_findings_deinit(&one->findings);
	one->findings = (struct prb_findings){};
	one->blamed = -1;
	one->hangs = false;

	prb_auto_error struct prb_error *err = prb_incident_judge(pid, NULL, NULL, &incident);

	if (err)
		return err->code == PRB_ERROR_NOMEM ? prb_steal(&err) : NULL;
	/* What is unknown is no verdict: the ranks may wait for something outside of the job. */
	if (!strcmp(incident.verdict, "moves") || !strcmp(incident.verdict, "unknown"))
		return put_gone(one);
	return put_finding(one, &incident, lasted);
}

static void note_rows(const struct prb_overview_job *one, const struct prb_overview *overview)
{
	const struct prb_rank *rank;

	prb_vec_each (rank, &one->job->ranks) {
		struct prb_overview_row *row =
			rank->pid ? prb_overview_row_of(overview, rank->pid) : NULL;

		if (row)
			row->hangs = one->findings.list.count;
	}
}

struct prb_error *prb_overview_jobs_judge(struct prb_overview_jobs *jobs,
					  const struct prb_overview *overview)
{
	double now = prb_overview_time(overview);
	struct prb_overview_job *one;

	prb_vec_each (one, &jobs->list) {
		double lasted = one->whole ? waited(one, overview) : -1;
		bool is_long = lasted >= prb_limit(PRB_LIMIT_JOB) && lasted >= 0;

		if (!one->whole || (!is_long && !is_missing_some(one))) {
			prb_findings_deinit(&one->findings);
			one->findings = (struct prb_findings){};
			one->hangs = false;
			one->judged = 0;
		} else if (!(one->judged > 0) || now > one->judged + JUDGE_EVERY) {
			one->judged = now;
			PRB_TRY(judge(one, is_long ? lasted : 0));
		}
		note_rows(one, overview);
	}
	return NULL;
}

const struct prb_overview_job *prb_overview_job_of(const struct prb_overview_jobs *jobs,
						   const struct prb_overview_row *row)
{
	const struct prb_overview_job *one;
	const struct prb_rank *rank;

	prb_vec_each (one, &jobs->list)
		prb_vec_each (rank, &one->job->ranks)
			if (rank->pid && !row->file && rank->pid == row->info.process.pid)
				return one;
	return NULL;
}

const struct prb_overview_row *prb_overview_job_row(const struct prb_overview_job *job,
						    const struct prb_overview *overview)
{
	const struct prb_overview_row *any = NULL;
	const struct prb_rank *rank;

	prb_vec_each (rank, &job->job->ranks) {
		const struct prb_overview_row *row =
			rank->pid ? prb_overview_row_of(overview, rank->pid) : NULL;

		if (row && rank->rank == job->blamed)
			return row;
		any = any ? any : row;
	}
	return any;
}

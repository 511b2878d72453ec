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
#include "cluster/looks/end.h"
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

/** Nothing hangs, and the others may do without it. */
static const struct prb_rule ENDED = {
	.rank = 6,
	.name = "ended_rank",
	.kind = PRB_FINDING_JOB,
	.proves = "a rank of a distributed job has ended, and the others go on",
};

void prb_overview_jobs_deinit(struct prb_overview_jobs *jobs)
{
	struct prb_overview_job *one;

	prb_vec_each (one, &jobs->list) {
		prb_findings_deinit(&one->findings);
		prb_vec_free(&one->gone);
		prb_incident_ends_deinit(&one->ends);
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

/** Notes how the process of a rank has ended, if its parent has not reaped it yet. */
static struct prb_error *note_end(struct prb_overview_job *one, const struct prb_rank *rank)
{
	prb_auto_str struct prb_str how = {};
	struct prb_incident_end *place;

	prb_end_put(&how, rank->pid, 0);
	if (!how.length)
		return NULL;
	place = prb_vec_push(&one->ends.list);
	if (!place)
		return prb_error_nomem();
	*place = (struct prb_incident_end){.rank = rank->rank, .known = true};
	return prb_str_copy(prb_str_text(&how), &place->how);
}

/** Adds ranks that were in @p before and have ended to the missing ones, and removes from these
 * what has started again. */
static struct prb_error *note_gone(struct prb_overview_job *one, const struct prb_job *before)
{
	const struct prb_rank *rank;
	struct prb_incident_end *end;
	size_t kept = 0;

	prb_vec_each (end, &one->ends.list)
		end->known &= !has_rank(one->job, end->rank);
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
		PRB_TRY(note_end(one, rank));
		one->judged = 0; /* its parent may soon have reaped it */
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

/** "job 127.0.0.1:29500": its variables are torchrun's, and it need not have torch. */
static void put_job(struct prb_str *s, const struct prb_job *job)
{
	static const char torch[] = "torch ";
	bool named = !strncmp(job->name, torch, strlen(torch));

	prb_str_puts(s, "job ");
	prb_text_escape(s, job->name + (named ? strlen(torch) : 0));
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
	put_job(&f->sentence, one->job);
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

/** ": ranks 1, 3 have ended, and the others go on" */
static void put_ranks(struct prb_str *s, const struct prb_overview_job *one)
{
	const struct prb_overview_gone *gone;
	bool several = one->gone.count > 1;

	prb_str_puts(s, several ? ": ranks" : ": rank");
	prb_vec_each (gone, &one->gone)
		prb_str_printf(s, "%s %ld", gone == one->gone.items ? "" : ",", gone->rank);
	prb_str_printf(s, " ha%s ended, and the others go on", several ? "ve" : "s");
}

/** How ranks have ended, "; rank 1 has ended: …", if one of them did so by a failure; or "". */
static const char *failed(const char *sentence)
{
	static const char begins[] = "; rank ", well[] = "exited with status 0";
	const char *ends = strstr(sentence, begins), *at = ends;

	for (; at; at = strstr(at + 1, begins)) {
		const char *good = strstr(at, well), *next = strstr(at + 1, begins);

		if (!good || (next && good > next))
			return ends;
	}
	return "";
}

/** Ranks that were there and are not any more, of a job that moves on. */
static struct prb_error *put_gone(struct prb_overview_job *one, const struct prb_incident *incident)
{
	const char *how = failed(incident->sentence);
	const struct prb_rank *rank;
	struct prb_finding *f;

	if (!one->gone.count && !*how)
		return NULL;
	PRB_TRY(prb_finding_add(&ENDED, &one->findings, &f));
	f->confidence = PRB_CONFIDENCE_MEDIUM;
	prb_str_puts(&f->brief, "ranks of the job have ended");
	put_job(&f->sentence, one->job);
	if (!one->gone.count) {
		prb_str_puts(&f->sentence, ": ");
		prb_text_escape(&f->sentence, how + strlen("; "));
		prb_str_puts(&f->sentence, ", and the others go on");
	} else {
		put_ranks(&f->sentence, one);
		prb_text_escape(&f->sentence, how);
	}
	prb_str_puts(&f->rests_on, "looks at the processes of the job, one after the other");
	prb_str_puts(&f->wrong_if, "the job is made to go on without them");
	prb_vec_each (rank, &one->job->ranks)
		if (rank->pid)
			PRB_TRY(prb_finding_pid(f, rank->pid));
	return NULL;
}

static struct prb_incident_end *end_of(const struct prb_incident_ends *ends, long rank)
{
	struct prb_incident_end *one;

	prb_vec_each (one, &ends->list)
		if (one->rank == rank)
			return one;
	return NULL;
}

const char *prb_overview_job_end(const struct prb_overview_job *job, long rank)
{
	const struct prb_incident_end *end = end_of(&job->ends, rank);

	return end && !has_rank(job->job, rank) ? end->how : NULL;
}

/** Takes how ranks have ended; a status that was seen stays known when the kernel has no more. */
static struct prb_error *take_ends(struct prb_overview_job *one, struct prb_incident_ends *ends)
{
	struct prb_incident_end *now, *before;

	prb_vec_each (now, &ends->list) {
		before = end_of(&one->ends, now->rank);
		if (before && before->known && !now->known)
			continue;
		if (before) {
			free(before->how);
		} else {
			before = prb_vec_push(&one->ends.list);
			if (!before)
				return prb_error_nomem();
		}
		*before = *now;
		now->how = NULL;
	}
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
	PRB_TRY(take_ends(one, &incident.ends));
	/* What is unknown is no verdict: the ranks may wait for something outside of the job. */
	if (!strcmp(incident.verdict, "moves") || !strcmp(incident.verdict, "unknown"))
		return put_gone(one, &incident);
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

/** True if it seems to hang; *lasted: for how long, 0 if ranks are missing only. */
static bool is_suspect(const struct prb_overview_job *one, const struct prb_overview *overview,
		       double *lasted)
{
	double longest = one->whole ? waited(one, overview) : -1;
	bool is_long = longest >= prb_limit(PRB_LIMIT_JOB) && longest >= 0;

	*lasted = is_long ? longest : 0;
	return one->whole && (is_long || is_missing_some(one));
}

bool prb_overview_jobs_wait(const struct prb_overview_jobs *jobs,
			    const struct prb_overview *overview)
{
	const struct prb_overview_job *one;
	double lasted;

	prb_vec_each (one, &jobs->list)
		if (!(one->judged > 0) && is_suspect(one, overview, &lasted))
			return true;
	return false;
}

struct prb_error *prb_overview_jobs_judge(struct prb_overview_jobs *jobs,
					  const struct prb_overview *overview)
{
	double now = prb_overview_time(overview);
	struct prb_overview_job *one;

	prb_vec_each (one, &jobs->list) {
		double lasted;

		if (!is_suspect(one, overview, &lasted)) {
			prb_findings_deinit(&one->findings);
			one->findings = (struct prb_findings){};
			one->hangs = false;
			one->judged = 0;
		} else if (!(one->judged > 0) || now > one->judged + JUDGE_EVERY) {
			one->judged = now;
			PRB_TRY(judge(one, lasted));
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

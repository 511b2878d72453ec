/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Asks other machines, each of which judges its own processes. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cli/commands/why/why.h"
#include "cluster/jobs/job.h"
#include "cluster/reach/judged.h"
#include "command/exit.h"
#include "command/words.h"

bool prb_why_has_slurm(const char *number)
{
	prb_auto_jobs struct prb_jobs jobs = {};
	const struct prb_job *job;

	prb_error_destroy(prb_jobs_find(&jobs));
	prb_vec_each (job, &jobs.list)
		if (job->slurm && !strcmp(job->slurm, number))
			return true;
	return false;
}

static struct prb_error *add_silent(struct prb_why *why, const char *host, const char *reason)
{
	struct prb_str name = {}, text = {};
	struct prb_why_silent *place = prb_vec_push(&why->silent);

	if (!place)
		return prb_error_nomem();
	prb_text_escape(&name, host);
	prb_text_escape(&text, reason);
	*place = (struct prb_why_silent){prb_str_take(&name), prb_str_take(&text)};
	return place->host && place->why ? NULL : prb_error_nomem();
}

/** Pods that do not run are part of the answer. */
static struct prb_error *add_pods(const struct prb_reach *reach, struct prb_why *why)
{
	const struct prb_pod *pod;

	prb_vec_each (pod, &reach->other_pods.list) {
		prb_auto_free char *name = prb_format("pod %s", pod->name);
		prb_auto_str struct prb_str text = {};

		if (pod->runs) {
			prb_pod_put(pod, &text);
			prb_warn(prb_str_text(&text));
			continue;
		}

		if (!name)
			return prb_error_nomem();
		PRB_TRY(add_silent(why, name, pod->why));
	}
	return NULL;
}

/** A command that is to be run at the host. */
static void lead(const struct prb_reach *reach, const char *host, struct prb_finding *f)
{
	struct prb_str next = {};

	if (!f->next.length)
		return;
	prb_reach_put_way(reach, host, &next);
	prb_str_puts(&next, prb_str_text(&f->next));
	prb_str_deinit(&f->next);
	f->next = next;
}

static struct prb_error *add_one(const struct prb_reach *reach, const char *host,
				 struct prb_judged *judged, struct prb_why *why)
{
	struct prb_finding *const *finding;
	struct prb_why_one *one;
	struct prb_str words = {};

	prb_text_escape(&words, host);
	prb_str_printf(&words, ":%d", (int)judged->pid);
	PRB_TRY(prb_why_add(why, prb_str_take(&words), &one));
	PRB_TRY(prb_str_copy(host, &one->host));
	one->process.pid = judged->pid;
	one->command = prb_steal(&judged->command);
	one->doing = prb_steal(&judged->doing);
	one->unreadable = prb_steal(&judged->unreadable);
	one->findings = judged->findings;
	judged->findings = (struct prb_findings){};
	prb_vec_each (finding, &one->findings.list)
		lead(reach, host, *finding);
	return NULL;
}

static struct prb_error *take(const struct prb_reach *reach, const struct prb_answer *answer,
			      struct prb_why *why)
{
	struct prb_judged_list judged = {};
	struct prb_judged *one;
	struct prb_error *err = answer->error ? NULL : prb_judged_read(&answer->out, &judged);

	if (answer->error) {
		err = add_silent(why, answer->host, answer->error);
	} else if (err && err->code == PRB_ERROR_BAD_DATA) {
		struct prb_error *other = add_silent(why, answer->host, err->message);

		prb_error_destroy(err);
		err = other;
	} else {
		prb_vec_each (one, &judged.list)
			if (!err)
				err = add_one(reach, answer->host, one, why);
	}
	prb_judged_deinit(&judged);
	return err;
}

static struct prb_error *add_words(const struct prb_reach *reach, const struct prb_texts *targets,
				   double look, struct prb_words *ret)
{
	PRB_TRY(prb_words_add(ret, "why"));
	PRB_TRY(prb_words_add(ret, "--json"));
	if (look > 0)
		PRB_TRY(prb_words_add(ret, "--look=%.0fms", look * 1000));
	if (targets->count)
		PRB_TRY(prb_words_add(ret, "--"));
	for (size_t i = 0; i < targets->count; i++)
		PRB_TRY(prb_words_add(ret, "%s", targets->items[i]));
	/* A node may have other jobs, too. */
	return reach->slurm && !targets->count ? prb_words_add(ret, "slurm:%s", reach->slurm)
					       : NULL;
}

static struct prb_error *ask(const struct prb_reach *reach, const struct prb_texts *targets,
			     double timeout, const struct prb_hosts *hosts, struct prb_why *why)
{
	prb_auto_answers struct prb_answers answers = {};
	prb_auto_words struct prb_words words = {};
	const struct prb_answer *answered;
	char *const *host;
	char **list;

	PRB_TRY(add_words(reach, targets, why->look, &words));
	PRB_TRY(prb_words_end(&words, &list));
	prb_vec_each (host, &hosts->list) {
		struct prb_answer *answer;

		if (reach->hosts && prb_reach_is_served(*host))
			return prb_error_create(PRB_ERROR_USAGE,
						"'%.200s' is a served process: give it as TARGET",
						*host);
		answer = prb_answers_add(&answers, *host);
		if (!answer)
			return prb_error_nomem();
		answer->judges = true;
		PRB_TRY(prb_reach_ask(reach, answer, (const char *const *)list));
	}
	PRB_TRY(prb_gather(&answers,
			   &(struct prb_gather_options){.deadline_s = timeout + why->look}));
	prb_vec_each (answered, &answers.list)
		PRB_TRY(take(reach, answered, why));
	return NULL;
}

struct prb_error *prb_why_far(struct prb_reach *reach, const struct prb_texts *targets,
			      double timeout, struct prb_why *ret)
{
	prb_auto_hosts struct prb_hosts hosts = {};
	struct prb_error *err = prb_reach_find(reach, &hosts), *other = add_pods(reach, ret);

	ret->far = true;
	if (other) {
		prb_error_destroy(err);
		return other;
	}
	/* Where none runs, why they do not is the answer. */
	if (err && ret->silent.count && prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		return NULL;
	PRB_TRY(err);
	return ask(reach, targets, timeout, &hosts, ret);
}

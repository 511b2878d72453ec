/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "judge/finding.h"

#include <stdlib.h>
#include <string.h>

static void finding_destroy(struct prb_finding *finding)
{
	struct prb_finding_line *line;

	if (!finding)
		return;
	prb_vec_each (line, &finding->evidence)
		prb_str_deinit(&line->text);
	prb_vec_free(&finding->evidence);
	prb_str_deinit(&finding->brief);
	prb_str_deinit(&finding->sentence);
	prb_str_deinit(&finding->rests_on);
	prb_str_deinit(&finding->wrong_if);
	prb_str_deinit(&finding->next);
	prb_vec_free(&finding->tids);
	prb_vec_free(&finding->pids);
	free(finding);
}

void prb_findings_deinit(struct prb_findings *findings)
{
	struct prb_finding **finding;

	prb_vec_each (finding, &findings->list)
		finding_destroy(*finding);
	prb_vec_free(&findings->list);
}

bool prb_finding_is_alike(const struct prb_finding *a, const struct prb_finding *b)
{
	return !strcmp(a->rule, b->rule) && a->confidence == b->confidence;
}

bool prb_findings_is_repeated(const struct prb_findings *findings, size_t number)
{
	const struct prb_finding *finding = findings->list.items[number];

	for (size_t i = 0; i < number; i++)
		if (prb_finding_is_alike(findings->list.items[i], finding))
			return true;
	return false;
}

struct prb_error *prb_finding_line(struct prb_finding *finding, pid_t tid, struct prb_str **ret)
{
	struct prb_finding_line *line = prb_vec_push(&finding->evidence);

	if (!line)
		return prb_error_nomem();
	line->tid = tid;
	*ret = &line->text;
	return NULL;
}

struct prb_error *prb_finding_tid(struct prb_finding *finding, pid_t tid)
{
	pid_t *place = tid ? prb_vec_push(&finding->tids) : NULL;

	if (tid && !place)
		return prb_error_nomem();
	if (place)
		*place = tid;
	return NULL;
}

struct prb_error *prb_finding_pid(struct prb_finding *finding, pid_t pid)
{
	pid_t *place = prb_vec_push(&finding->pids);

	if (!place)
		return prb_error_nomem();
	*place = pid;
	return NULL;
}

const char *prb_confidence_name(enum prb_confidence confidence)
{
	static const char *const names[] = {[PRB_CONFIDENCE_LOW] = "low",
					    [PRB_CONFIDENCE_MEDIUM] = "medium",
					    [PRB_CONFIDENCE_HIGH] = "high"};

	return names[confidence];
}

const char *prb_finding_kind_name(enum prb_finding_kind kind)
{
	static const char *const names[] = {[PRB_FINDING_NOTHING] = "nothing",
					    [PRB_FINDING_DEADLOCK] = "deadlock",
					    [PRB_FINDING_ORPHAN] = "orphan",
					    [PRB_FINDING_STOPPED] = "stopped",
					    [PRB_FINDING_LOCKS] = "locks",
					    [PRB_FINDING_GIL] = "gil",
					    [PRB_FINDING_DEVICE] = "device",
					    [PRB_FINDING_MEMORY] = "memory",
					    [PRB_FINDING_PROCESSOR] = "processor",
					    [PRB_FINDING_CHILDREN] = "children",
					    [PRB_FINDING_ENDED] = "ended",
					    [PRB_FINDING_UNKNOWN] = "unknown",
					    [PRB_FINDING_STILL] = "still",
					    [PRB_FINDING_CUSTOM] = "custom",
					    [PRB_FINDING_NAN] = "nan",
					    [PRB_FINDING_SERVER] = "server",
					    [PRB_FINDING_ROOM] = "room",
					    [PRB_FINDING_LOOP] = "loop",
					    [PRB_FINDING_LEAK] = "leak",
					    [PRB_FINDING_JOB] = "job",
					    [PRB_FINDING_PEER] = "peer",
					    [PRB_FINDING_STEPS] = "steps"};

	return names[kind];
}

bool prb_findings_explain(const struct prb_findings *findings)
{
	enum { EXPLAINS = 70 }; /* ranks below */
	struct prb_finding *const *finding;

	prb_vec_each (finding, &findings->list)
		if ((*finding)->rank < EXPLAINS)
			return true;
	return false;
}

bool prb_findings_have(const struct prb_findings *findings, const char *rule)
{
	struct prb_finding *const *finding;

	prb_vec_each (finding, &findings->list)
		if (!strcmp((*finding)->rule, rule))
			return true;
	return false;
}

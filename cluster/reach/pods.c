/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cluster/reach/pods.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"

enum { MOST_PODS = PRB_MAX_HOSTS, MOST_NAME = 253, MOST_WHY = 200 };

void prb_pods_deinit(struct prb_pods *pods)
{
	struct prb_pod *pod;

	prb_vec_each (pod, &pods->list) {
		free(pod->name);
		free(pod->why);
	}
	prb_vec_free(&pods->list);
}

static const char POD[] = "pod/";
static const char *const kinds[][2] = {{"pytorchjob/", "training.kubeflow.org/job-name"},
				       {"jobset/", "jobset.sigs.k8s.io/jobset-name"},
				       {"rayjob/", "ray.io/cluster"},
				       {"raycluster/", "ray.io/cluster"},
				       {"vcjob/", "volcano.sh/job-name"},
				       {"job/", "batch.kubernetes.io/job-name"}};

/** The label of the kind that @p said begins with, and the name behind it; NULL: it has none. */
static const char *label_of(const char *said, const char **name)
{
	for (size_t i = 0; i < PRB_ARRAY_SIZE(kinds) && !strchr(said, '='); i++) {
		*name = said + strlen(kinds[i][0]);
		if (!strncmp(said, kinds[i][0], strlen(kinds[i][0])))
			return kinds[i][1];
	}
	return NULL;
}

void prb_pods_selector(struct prb_str *s, const char *said)
{
	const char *name, *label = label_of(said, &name);

	if (label)
		prb_str_printf(s, "%s=%s", label, name);
	else
		prb_str_puts(s, said);
}

const char *prb_pods_one(const char *said)
{
	const char *name = said + strlen(POD);

	return !strncmp(said, POD, strlen(POD)) && *name && *name != '-' ? name : NULL;
}

bool prb_pods_is_name(const char *said)
{
	const char *name;

	return prb_pods_one(said) || (label_of(said, &name) && *name);
}

void prb_pod_put(const struct prb_pod *pod, struct prb_str *s)
{
	prb_str_puts(s, "pod ");
	prb_text_escape(s, pod->name);
	prb_str_puts(s, pod->runs ? " " : ": ");
	prb_text_escape(s, pod->why);
}

static const char *text_of(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

/** Appends ": OOMKilled, exit code 137" of a container that has ended; false if none is said. */
static bool put_terminated(struct prb_str *s, const json_t *state)
{
	const json_t *ended = json_object_get(state, "terminated");
	const json_t *code = json_object_get(ended, "exitCode");
	const char *reason = text_of(ended, "reason");

	if (!ended)
		return false;
	prb_str_printf(s, ": %.100s", reason ? reason : "terminated");
	if (json_is_integer(code))
		prb_str_printf(s, ", exit code %lld", (long long)json_integer_value(code));
	return true;
}

/** Appends why the containers of a pod do not run, or with @p before, did not run before. */
static bool put_containers(struct prb_str *s, const json_t *status, bool before)
{
	const json_t *list = json_object_get(status, "containerStatuses"), *one;
	size_t i;

	json_array_foreach((json_t *)list, i, one)
	{
		const json_t *state = json_object_get(one, before ? "lastState" : "state");
		const char *waits = text_of(json_object_get(state, "waiting"), "reason");

		if (put_terminated(s, state))
			return true;
		if (waits && !before) {
			prb_str_printf(s, ": %.100s", waits);
			return true;
		}
	}
	return false;
}

/** Appends why a pod is not scheduled: ": Unschedulable". */
static void put_conditions(struct prb_str *s, const json_t *status)
{
	const json_t *list = json_object_get(status, "conditions"), *one;
	size_t i;

	json_array_foreach((json_t *)list, i, one)
	{
		const char *is = text_of(one, "status"), *reason = text_of(one, "reason");

		if (is && !strcmp(is, "False") && reason) {
			prb_str_printf(s, ": %.100s", reason);
			return;
		}
	}
}

/** What is known of a pod that does not run, or has not run all the time. */
static struct prb_error *add_other(const char *name, const char *phase, const json_t *status,
				   struct prb_pods *others)
{
	const char *reason = text_of(status, "reason");
	const bool runs = !strcmp(phase, "Running");
	prb_auto_str struct prb_str why = {};
	struct prb_pod *pod;

	prb_str_puts(&why, runs ? "runs again, after" : phase);
	if (runs && !put_containers(&why, status, true))
		return NULL;
	if (!runs && reason)
		prb_str_printf(&why, ": %.100s", reason);
	else if (!runs && !put_containers(&why, status, false))
		put_conditions(&why, status);
	if (why.length > MOST_WHY)
		prb_str_truncate(&why, MOST_WHY);
	pod = prb_vec_push(&others->list);
	if (!pod)
		return prb_error_nomem();
	pod->runs = runs;
	PRB_TRY(prb_str_copy(name, &pod->name));
	pod->why = prb_str_take(&why);
	return pod->why ? NULL : prb_error_nomem();
}

static struct prb_error *add(const json_t *item, struct prb_hosts *running, struct prb_pods *others)
{
	const char *name = text_of(json_object_get(item, "metadata"), "name");
	const json_t *status = json_object_get(item, "status");
	const char *phase = text_of(status, "phase");

	if (!name || !*name || *name == '-' || strlen(name) > MOST_NAME)
		return NULL;
	if (phase && !strcmp(phase, "Running")) {
		char **place = prb_vec_push(&running->list);

		if (!place || !(*place = strdup(name)))
			return prb_error_nomem();
	}
	return add_other(name, phase ? phase : "Unknown", status, others);
}

struct prb_error *prb_pods_parse(const struct prb_str *text, struct prb_hosts *running,
				 struct prb_pods *others)
{
	json_t *answer = json_loadb(text->data ? text->data : "", text->length,
				    JSON_REJECT_DUPLICATES, NULL);
	const json_t *items = json_object_get(answer, "items"), *item;
	struct prb_error *err = NULL;
	size_t i;

	if (!json_is_array(items))
		err = prb_error_create(PRB_ERROR_BAD_DATA, "kubectl lists no pods");
	json_array_foreach((json_t *)items, i, item)
	{
		if (!err && i < MOST_PODS)
			err = add(item, running, others);
	}
	json_decref(answer);
	return err;
}

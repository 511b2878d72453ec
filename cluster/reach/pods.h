/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The pods of a job in Kubernetes, from what `kubectl get pods --output=json` prints: those
 * that run, and why the others do not. The answer is untrusted.
 *
 * Threading: any thread.
 */
#ifndef PRB_CLUSTER_REACH_PODS_H
#define PRB_CLUSTER_REACH_PODS_H

#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"
#include "cluster/reach/hosts.h"

/** A pod that does not run, or did not. Both texts are owned. */
struct prb_pod {
	char *name, *why; /**< "Failed: OOMKilled, exit code 137" */
	bool runs;	  /**< it runs again */
};

struct prb_pods {
	PRB_VEC(struct prb_pod) list;
};
void prb_pods_deinit(struct prb_pods *pods);

/**
 * Appends the selector that @p said means: itself, or the labels of "pytorchjob/NAME",
 * "jobset/NAME", "rayjob/NAME", "raycluster/NAME", "vcjob/NAME" (Volcano) or "job/NAME".
 */
void prb_pods_selector(struct prb_str *s, const char *said);

/** True if @p said names one of these, or a pod by "pod/NAME", which prb_pods_selector() does not
 * take. */
bool prb_pods_is_name(const char *said);
/** The name in "pod/NAME"; NULL if it is none. */
const char *prb_pods_one(const char *said);

/** Appends "pod trainer-1: Failed: OOMKilled, exit code 137", escaped. */
void prb_pod_put(const struct prb_pod *pod, struct prb_str *s);

/** Appends the pods that run to @p running, and all others to @p others. PRB_ERROR_BAD_DATA. */
struct prb_error *prb_pods_parse(const struct prb_str *text, struct prb_hosts *running,
				 struct prb_pods *others) PRB_MUST_CHECK;

#endif

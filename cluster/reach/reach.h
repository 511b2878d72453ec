/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Where the other machines of a job are, and how probing is run on them: through ssh, as a
 * step of a Slurm job, or in the pods of Kubernetes. A host "node1:9922" is a process that is
 * served there (remote/serve/serve.h): one rank.
 *
 * ssh, srun, squeue and kubectl are the user's own, with their configuration and rights; they ask
 * for nothing. A machine without probing can be given a copy for the time of one command: it is
 * sent through the same channel, lies in a new folder of mode 0700, and is removed when it ends.
 *
 * Threading: one thread at a time.
 */
#ifndef PRB_CLUSTER_REACH_REACH_H
#define PRB_CLUSTER_REACH_REACH_H

#include "base/error.h"
#include "cluster/reach/gather.h"
#include "cluster/reach/hosts.h"
#include "cluster/reach/pods.h"
#include "cluster/reach/ras.h"

/** As the user says it; at most one of the first five is set. */
struct prb_reach {
	const char *hosts;	/**< "node[01-16]", through ssh */
	const char *host_file;	/**< one or more of them on each line, "#" begins a comment */
	const char *slurm;	/**< number of a Slurm job */
	const char *kubernetes; /**< label selector of its pods, or "pytorchjob/NAME", "pod/NAME" */
	const char *ras;	/**< address of NCCL's RAS service, which knows the hosts */
	const char *space;	/**< Kubernetes: the namespace, or NULL */
	const char *container;	/**< Kubernetes: the container of each pod, or NULL */
	const char *bring;	/**< a program that needs no libraries, to be run there; or NULL */
	int bring_fd;		/**< it, open; -1 without */
	struct prb_ras *ras_said;   /**< what RAS said when the hosts were found; owned, or NULL */
	struct prb_pods other_pods; /**< pods that do not run, or did not for a while; owned */
};

/** True if other machines are asked. */
bool prb_reach_is_far(const struct prb_reach *reach);

/** True if that host is the address of a served process. */
bool prb_reach_is_served(const char *host);

/** PRB_ERROR_USAGE if what the user said makes no sense. */
struct prb_error *prb_reach_check(const struct prb_reach *reach) PRB_MUST_CHECK;

/** Finds the hosts, nodes or pods. Sets `bring_fd`, `ras_said` and `other_pods`, for
 * prb_reach_close(). */
struct prb_error *prb_reach_find(struct prb_reach *reach, struct prb_hosts *ret) PRB_MUST_CHECK;
void prb_reach_close(struct prb_reach *reach);

/** Gives @p answer the words that run "probing WORDS…" at its host. @p words ends with NULL. */
struct prb_error *prb_reach_ask(const struct prb_reach *reach, struct prb_answer *answer,
				const char *const *words) PRB_MUST_CHECK;

/** Appends the options that name the same machines: " --hosts=node[01-16]". */
void prb_reach_put_options(const struct prb_reach *reach, struct prb_str *s);

/** Appends the words before a command of @p host: "kubectl exec trainer-1 -- ". Not for served
 * processes. */
void prb_reach_put_way(const struct prb_reach *reach, const char *host, struct prb_str *s);

/** Appends the command line that dumps process @p pid of @p host with its variables. */
void prb_reach_suggest(const struct prb_reach *reach, const char *host, int pid, struct prb_str *s);

#endif

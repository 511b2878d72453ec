/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Shared by the parts of `probing cluster`. */
#ifndef PRB_CLI_COMMANDS_CLUSTER_CLUSTER_H
#define PRB_CLI_COMMANDS_CLUSTER_CLUSTER_H

#include <stdbool.h>

#include "base/error.h"
#include "base/json.h"
#include "base/vec.h"
#include "cli/commands/cluster/reach_options.h"
#include "cluster/reach/gather.h"
#include "cluster/reach/hosts.h"
#include "cluster/jobs/job.h"
#include "cluster/looks/seen.h"
#include "cluster/reach/reach.h"
#include "cluster/looks/json.h"
#include "command/command.h"

enum { PRB_CLUSTER_LOOKS = 5 };

struct prb_verdict;

struct prb_cluster_settings {
	bool json, all, native, redact, strict;
	double interval, timeout, duration;
	const char *save, *output;
	const char *to, *password_file, *state; /**< of 'ship' */
	double every, metrics;
	bool once;
	double hang; /**< of 'watch' */
	PRB_REACH_MEMBERS;
};

/** A host that gave no answer, why, and how long it was given. The texts are owned. */
struct prb_unanswered {
	char *host, *error;
	double waited; /**< seconds */
};

/** One run of the command. */
struct prb_cluster {
	const struct prb_cluster_settings *settings;
	const struct prb_cli *cli;
	bool processes;	    /**< the job is a program with its workers, without ranks */
	bool paces;	    /**< many looks are wanted, for their pace */
	const char *bundle; /**< the job is read from there; NULL: it runs */
	struct prb_jobs jobs;
	struct prb_job *job; /**< of `jobs`, or `merged`; NULL: none is chosen */
	struct prb_job merged;
	struct prb_reach reach;
	struct prb_hosts hosts;
	PRB_VEC(struct prb_unanswered) unanswered; /**< of them */
	struct prb_round rounds[PRB_CLUSTER_LOOKS];
	struct prb_round *last; /**< the last round, in which everything is read */
	size_t saved;		/**< snapshots */
};

/** "cluster dump" of the bundle that is the target of @p cli; @p all: of all threads. */
struct prb_error *prb_cluster_dump_bundle(const struct prb_cli *cli, bool all,
					  bool json) PRB_MUST_CHECK;

/* Actions: show.c, hang.c, query.c, … */
struct prb_error *prb_cluster_nodes(struct prb_cluster *c) PRB_MUST_CHECK;
struct prb_error *prb_cluster_dump(struct prb_cluster *c) PRB_MUST_CHECK;
struct prb_error *prb_cluster_hang(struct prb_cluster *c) PRB_MUST_CHECK;
/** Waits until the job hangs, and prints the verdict; returns silently when its ranks end. */
struct prb_error *prb_cluster_watch(struct prb_cluster *c) PRB_MUST_CHECK;
struct prb_error *prb_cluster_slow(struct prb_cluster *c) PRB_MUST_CHECK;
struct prb_error *prb_cluster_perf(struct prb_cluster *c) PRB_MUST_CHECK;
struct prb_error *prb_cluster_sample(struct prb_cluster *c) PRB_MUST_CHECK;
/** 'perf' of the ranks of @p job, or of the only one, on other machines. */
struct prb_error *prb_cluster_perf_far(struct prb_cluster *c, const char *job) PRB_MUST_CHECK;
struct prb_error *prb_cluster_query(struct prb_cluster *c) PRB_MUST_CHECK;
struct prb_error *prb_cluster_rows(struct prb_cluster *c) PRB_MUST_CHECK;
/** Returns after a signal to end, or, with --once, when everything was sent. */
struct prb_error *prb_cluster_ship(struct prb_cluster *c) PRB_MUST_CHECK;

/** Runs the statement if it names global tables, over all ranks of @p job; *global: it does. */
struct prb_error *prb_cluster_query_global(struct prb_cluster *c, const char *job,
					   bool *global) PRB_MUST_CHECK;

/** The verdict on the looks at c->job; printed with its exit code by the second. */
struct prb_error *prb_cluster_judge(struct prb_cluster *c, struct prb_verdict *ret) PRB_MUST_CHECK;
struct prb_error *prb_cluster_tell(const struct prb_cluster *c,
				   const struct prb_verdict *verdict) PRB_MUST_CHECK;

/** Appends the member "unanswered": the hosts that gave no answer, why, and how long they had. */
void prb_cluster_put_unanswered(struct prb_json *json, const struct prb_cluster *c);

/* Reading the job: read.c. */

/** Looks @p count times at the ranks of c->job, on this machine, and saves them if asked to. */
struct prb_error *prb_cluster_look(struct prb_cluster *c, size_t count) PRB_MUST_CHECK;

/** Prints a bundle of no rank. */
struct prb_error *prb_cluster_save_nothing(const struct prb_job *none,
					   const struct prb_round *round) PRB_MUST_CHECK;

/** Seconds that each host has for its answer. */
double prb_cluster_timeout(const struct prb_cluster *c);

/** Looks at the ranks of c->job for some seconds, and notes their pace. */
struct prb_error *prb_cluster_pace(struct prb_cluster *c) PRB_MUST_CHECK;

/** How long 'slow' looks, and how long the others do. */
double prb_cluster_span(const struct prb_cluster *c);

/** Has each host look at its ranks, and makes one job of them. Hosts without answer are named. */
struct prb_error *prb_cluster_gather(struct prb_cluster *c, const char *job) PRB_MUST_CHECK;

/**
 * Has each of c->hosts run @p words, and hands the answers to the handler of @p options, whose
 * deadline is set here. The answers are in their order; with @p spools, each is a file.
 */
struct prb_error *prb_cluster_ask(struct prb_cluster *c, struct prb_words *words, bool spools,
				  struct prb_gather_options options,
				  struct prb_answers *answers) PRB_MUST_CHECK;

/** Appends the job to the words for a host, if the user has named one. */
struct prb_error *prb_cluster_add_job(const struct prb_cluster *c, const char *job,
				      struct prb_words *words) PRB_MUST_CHECK;

/** Warns of each host without an answer, and appends it to c->unanswered; PRB_ERROR_FAILED if none
 * has answered. */
struct prb_error *prb_cluster_warn(struct prb_cluster *c,
				   const struct prb_answers *answers) PRB_MUST_CHECK;

/** Warns of ranks that two processes claim to be. */
void prb_cluster_warn_of_doubles(const struct prb_job *job);

/** Reads the job of the bundle @p path. */
struct prb_error *prb_cluster_load(struct prb_cluster *c, const char *path) PRB_MUST_CHECK;

#endif

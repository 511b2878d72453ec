/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where `probing cluster` has a job from: this machine, hosts, or a bundle. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/commands/cluster/cluster.h"
#include "command/exit.h"
#include "cluster/looks/end.h"
#include "cluster/looks/movement.h"
#include "cluster/looks/look.h"
#include "cluster/looks/flight_ask.h"
#include "cluster/looks/pace.h"
#include "cluster/reach/reach.h"
#include "cluster/reach/relay.h"
#include "cluster/reach/save.h"
#include "cluster/looks/why.h"
#include "cluster/looks/json.h"
#include "target/snapshot/bundle.h"
#include "base/cleanup.h"
#include "base/new_file.h"
#include "base/str.h"
#include "base/text.h"

enum {
	LOOKS = PRB_CLUSTER_LOOKS,
	MOST_WATCHED = 128, /* ranks that are kept open from one look to the next */
};

/*
 * A longer interval distinguishes a slow rank from a stuck one more reliably. Looks in between see
 * ranks that run in a loop and come to the same place again.
 */
static const double INTERVAL = 1.0;

/* Seconds that each host has for its answer, besides the time of looking; and for snapshots. */
static const double TIMEOUT = 20, TIMEOUT_SAVE = 120;

/* How long 'slow' looks. */
static const double DURATION = 10;

static double interval_of(const struct prb_cluster *c)
{
	return c->settings->interval > 0 ? c->settings->interval : INTERVAL;
}

double prb_cluster_timeout(const struct prb_cluster *c)
{
	if (c->settings->timeout > 0)
		return c->settings->timeout;
	return c->settings->save ? TIMEOUT_SAVE : TIMEOUT;
}

static double duration_of(const struct prb_cluster *c)
{
	return c->settings->duration > 0 ? c->settings->duration : DURATION;
}

double prb_cluster_span(const struct prb_cluster *c)
{
	return c->paces ? duration_of(c) : interval_of(c);
}

static void put_place(struct prb_str *s, pid_t pid, const char *host)
{
	prb_str_printf(s, "process %d", (int)pid);
	if (!host)
		return;
	prb_str_puts(s, " of ");
	prb_text_escape(s, host);
}

void prb_cluster_warn_of_doubles(const struct prb_job *job)
{
	const struct prb_rank *rank, *first = NULL;
	prb_auto_str struct prb_str text = {};
	size_t count = 0;

	prb_vec_each (rank, &job->ranks) {
		first = first || !rank->other ? first : rank;
		count += rank->other != 0;
	}
	if (!first)
		return;
	prb_str_printf(&text, "rank %ld is taken to be ", first->rank);
	put_place(&text, first->pid, first->host);
	prb_str_puts(&text, ", but ");
	put_place(&text, first->other, first->other_host);
	prb_str_puts(&text, " has the same job and rank in its environment");
	if (count > 1)
		prb_str_printf(&text, "; %zu more ranks are claimed twice", count - 1);
	prb_warn(prb_str_text(&text));
}

struct prb_error *prb_cluster_pace(struct prb_cluster *c)
{
	PRB_TRY(prb_round_make(c->job, false, false, NULL, c->last));
	return prb_pace_take(c->job, duration_of(c), true, c->last);
}

static struct prb_error *look_on(struct prb_cluster *c, size_t count, struct prb_watch *watches)
{
	double rest_s = interval_of(c) / (LOOKS - 1);
	const struct timespec rest = {(time_t)rest_s,
				      (long)((rest_s - (double)(time_t)rest_s) * 1e9)};

	for (size_t i = LOOKS - count; i < LOOKS; i++) {
		if (i > LOOKS - count && nanosleep(&rest, NULL))
			return prb_error_create(PRB_ERROR_CANCELLED, "interrupted");
		PRB_TRY(prb_round_make(c->job, c->settings->native, i == LOOKS - 1, watches,
				       &c->rounds[i]));
		if (count == LOOKS && (i == 0 || i == LOOKS - 1))
			PRB_TRY(prb_round_ask_recorders(&c->rounds[i], watches,
							i ? &c->rounds[0] : NULL));
	}
	if (count == LOOKS)
		prb_movement_note(c->rounds, LOOKS);
	PRB_TRY(prb_end_note(c->job, c->last));
	return prb_why_note(c->last);
}

static struct prb_error *look(struct prb_cluster *c, size_t count)
{
	size_t ranks = c->job->ranks.count;
	prb_auto_free struct prb_watch *watches = NULL;
	struct prb_error *err;

	/* Each takes some descriptors. */
	if (ranks <= MOST_WATCHED) {
		watches = calloc(ranks + 1, sizeof(*watches));
		if (!watches)
			return prb_error_nomem();
	}
	err = look_on(c, count, watches);
	for (size_t i = 0; watches && i < ranks; i++)
		prb_watch_deinit(&watches[i]);
	return err;
}

/** Snapshots come first: a hanging job may be killed at any moment. */
static struct prb_error *look_and_save(struct prb_cluster *c, int fd)
{
	prb_auto_answers struct prb_answers snapshots = {};

	PRB_TRY(prb_save_snapshots(c->job, c->settings->redact, prb_cluster_timeout(c), prb_warn,
				   &snapshots));
	PRB_TRY(look(c, LOOKS));
	return prb_save_write(fd, c->job, c->last, &snapshots, c->settings->redact, &c->saved);
}

struct prb_error *prb_cluster_look(struct prb_cluster *c, size_t count)
{
	prb_auto_new_file struct prb_new_file file = PRB_NO_FILE;

	if (!c->settings->save)
		return look(c, count);
	if (!strcmp(c->settings->save, "-"))
		return look_and_save(c, STDOUT_FILENO);
	PRB_TRY(prb_new_file_open(&file, c->settings->save));
	PRB_TRY(look_and_save(c, file.fd));
	return prb_new_file_finish(&file);
}

struct prb_error *prb_cluster_save_nothing(const struct prb_job *none,
					   const struct prb_round *round)
{
	const struct prb_answers snapshots = {};
	size_t count = 0;

	return prb_save_write(STDOUT_FILENO, none, round, &snapshots, false, &count);
}

/** Takes in the answers of hosts as they come. */
struct intake {
	struct prb_looks *looks;
	int fd; /**< where a bundle is written to; -1: none */
	long number;
	size_t saved;
};

/** Keeps in the bundle that a host is silent: who reads it has to know that its ranks may run. */
static struct prb_error *save_silent(struct intake *in, const struct prb_answer *answer)
{
	prb_auto_str struct prb_str text = {};

	prb_looks_write_silent(&text, "", 0, answer->host, answer->error, NULL, 0);
	return text.failed ? prb_error_nomem()
			   : prb_bundle_add_text(in->fd, PRB_BUNDLE_LOOKS, in->number++, text.data,
						 text.length);
}

static struct prb_error *take(void *context, struct prb_answer *answer)
{
	struct intake *in = context;

	if (answer->error) {
		prb_looks_lack(in->looks);
		if (in->fd >= 0)
			PRB_TRY(save_silent(in, answer));
	} else if (in->fd >= 0) {
		PRB_TRY(prb_save_copy(in->fd, in->number++, answer, in->looks, &in->saved,
				      &answer->error));
	} else {
		PRB_TRY(prb_looks_add(in->looks, answer->host, answer->out.data, answer->out.length,
				      &answer->error));
	}
	prb_str_deinit(&answer->out);
	/* Of thousands of hosts. */
	if (answer->spool >= 0)
		close(prb_steal_fd(&answer->spool));
	return NULL;
}

static struct prb_error *nobody_answered(const struct prb_cluster *c, size_t count)
{
	struct prb_error *err =
		count == 1
			? prb_error_create(PRB_ERROR_FAILED, "the only host did not answer")
			: prb_error_create(PRB_ERROR_FAILED, "none of %zu hosts answered", count);

	return prb_error_hint(err, c->reach.slurm || c->reach.kubernetes
					   ? "probing has to be installed there; --bring sends one"
					   : "'ssh HOST probing --version' has to work without a "
					     "password or a question; --bring sends a probing");
}

/** Warns of a host that gave no answer, and notes it. @p waited: seconds; -1: unknown. */
static struct prb_error *note_unanswered(struct prb_cluster *c, const char *host, const char *why,
					 double waited)
{
	struct prb_unanswered *place = prb_vec_push(&c->unanswered);
	prb_auto_str struct prb_str text = {};

	if (!place)
		return prb_error_nomem();
	*place = (struct prb_unanswered){.waited = waited};
	prb_text_escape(&text, host);
	prb_str_puts(&text, ": ");
	prb_text_escape(&text, why);
	prb_warn(prb_str_text(&text));
	PRB_TRY(prb_str_copy(host, &place->host));
	return prb_str_copy(why, &place->error);
}

struct prb_error *prb_cluster_warn(struct prb_cluster *c, const struct prb_answers *answers)
{
	const struct prb_answer *answer;
	size_t count = 0;

	prb_vec_each (answer, &answers->list) {
		if (!answer->error)
			continue;
		count++;
		PRB_TRY(note_unanswered(c, answer->host, answer->error, answer->waited));
	}
	return count == answers->list.count ? nobody_answered(c, count) : NULL;
}

struct prb_error *prb_cluster_add_job(const struct prb_cluster *c, const char *job,
				      struct prb_words *words)
{
	if (!job && c->settings->slurm)
		return prb_words_add(words, "slurm:%s", c->settings->slurm);
	return job ? prb_words_add(words, "%s", job) : NULL;
}

/** Appends the words of a look as a host runs it. */
static struct prb_error *add_words(const struct prb_cluster *c, const char *job,
				   struct prb_words *ret)
{
	const struct prb_cluster_settings *s = c->settings;

	PRB_TRY(prb_words_add(ret, "cluster"));
	PRB_TRY(prb_words_add(ret, "look"));
	PRB_TRY(prb_words_add(ret, "--interval=%.0fms", interval_of(c) * 1000));
	if (c->paces)
		PRB_TRY(prb_words_add(ret, "--duration=%.0fms", duration_of(c) * 1000));
	if (s->native)
		PRB_TRY(prb_words_add(ret, "--native"));
	if (s->all)
		PRB_TRY(prb_words_add(ret, "--all"));
	if (s->save)
		PRB_TRY(prb_words_add(ret, "--save=-"));
	if (s->redact)
		PRB_TRY(prb_words_add(ret, "--redact"));
	return prb_cluster_add_job(c, job, ret);
}

struct prb_error *prb_cluster_ask(struct prb_cluster *c, struct prb_words *words, bool spools,
				  struct prb_gather_options options, struct prb_answers *answers)
{
	char *const *host;
	char **list;

	PRB_TRY(prb_words_end(words, &list));
	prb_vec_each (host, &c->hosts.list) {
		struct prb_answer *answer = prb_answers_add(answers, *host);

		if (!answer)
			return prb_error_nomem();
		answer->spools = spools;
		PRB_TRY(prb_reach_ask(&c->reach, answer, (const char *const *)list));
	}
	options.deadline_s = prb_cluster_span(c) + prb_cluster_timeout(c);
	return c->settings->tree
		       ? prb_relay_gather(&c->reach, (const char *const *)list, answers, &options)
		       : prb_gather(answers, &options);
}

/** Warns of pods that do not run, and notes why: ranks that nobody has are in one of them. */
static struct prb_error *note_pods(struct prb_cluster *c, struct prb_looks *looks)
{
	prb_auto_str struct prb_str all = {};
	const struct prb_pod *pod;

	prb_vec_each (pod, &c->reach.other_pods.list) {
		prb_auto_str struct prb_str text = {};
		struct prb_unanswered *place = pod->runs ? NULL : prb_vec_push(&c->unanswered);

		prb_pod_put(pod, &text);
		prb_warn(prb_str_text(&text));
		if (pod->runs)
			continue;
		if (!place)
			return prb_error_nomem();
		*place = (struct prb_unanswered){};
		PRB_TRY(prb_str_copy(pod->name, &place->host));
		PRB_TRY(prb_str_copy(pod->why, &place->error));
		prb_str_printf(&all, "%spod %s is %s", all.length ? ", " : "", pod->name, pod->why);
	}
	return all.length ? prb_looks_note_end(looks, prb_str_text(&all)) : NULL;
}

static struct prb_error *gather(struct prb_cluster *c, const char *job, struct intake *in)
{
	const struct prb_gather_options options = {.handler = take, .context = in};
	prb_auto_answers struct prb_answers answers = {};
	prb_auto_words struct prb_words words = {};
	struct prb_error *err, *warned;

	PRB_TRY(add_words(c, job, &words));
	PRB_TRY(prb_reach_find(&c->reach, &c->hosts));
	PRB_TRY(note_pods(c, in->looks));
	if (in->fd >= 0)
		PRB_TRY(prb_bundle_begin(in->fd));
	err = prb_cluster_ask(c, &words, c->settings->save, options, &answers);
	if (!err && in->fd >= 0)
		err = prb_bundle_end(in->fd);
	warned = prb_cluster_warn(c, &answers);
	if (err)
		prb_error_destroy(warned);
	else
		err = warned;
	c->job = &c->merged;
	c->saved = in->saved;
	if (!err)
		err = prb_looks_finish(in->looks, c->reach.slurm || c->reach.ras, &c->merged,
				       c->last);
	if (!err)
		prb_cluster_warn_of_doubles(&c->merged);
	return err;
}

struct prb_error *prb_cluster_gather(struct prb_cluster *c, const char *job)
{
	prb_auto_new_file struct prb_new_file file = PRB_NO_FILE;
	struct intake in = {.fd = -1};
	struct prb_error *err;

	if (c->settings->save) {
		PRB_TRY(prb_new_file_open(&file, c->settings->save));
		in.fd = file.fd;
	}
	err = prb_looks_create(&in.looks);
	if (!err)
		err = gather(c, job, &in);
	prb_looks_destroy(in.looks);
	return err || !c->settings->save ? err : prb_new_file_finish(&file);
}

struct prb_error *prb_cluster_load(struct prb_cluster *c, const char *path)
{
	struct prb_looks *looks = NULL;
	struct prb_error *err = prb_looks_create(&looks);

	c->bundle = path;
	const struct prb_silent *silent;

	if (!err)
		err = prb_save_load(path, looks);
	if (!err)
		prb_vec_each (silent, &prb_looks_silent(looks)->list)
			if (!err)
				err = note_unanswered(c, silent->host, silent->why, -1);
	if (!err)
		err = prb_looks_finish(looks, false, &c->merged, c->last);
	prb_looks_destroy(looks);
	c->job = &c->merged;
	return err;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `probing cluster perf`: one profile of all ranks. Each host samples its own, and sends a
 * recording. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/commands/cluster/cluster.h"
#include "command/exit.h"
#include "command/output.h"
#include "cli/commands/perf/gathered.h"
#include "cli/commands/perf/show/performance.h"
#include "cli/commands/perf/record/processes.h"
#include "cli/commands/perf/record/record.h"
#include "profile/store/load/load.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/new_file.h"
#include "base/str.h"
#include "base/text.h"

enum { MOST_HOSTS = 512 }; /* each has a file open until all have answered */

/** The ranks that have a process. */
struct running {
	PRB_VEC(pid_t) pids;
	PRB_VEC(char *) names;
};

static void running_deinit(struct running *running)
{
	char **name;

	prb_vec_each (name, &running->names)
		free(*name);
	prb_vec_free(&running->names);
	prb_vec_free(&running->pids);
}
#define auto_running __attribute__((cleanup(running_deinit)))

static struct prb_error *add(struct running *running, const struct prb_rank *rank)
{
	pid_t *pid = prb_vec_push(&running->pids);
	char **name = prb_vec_push(&running->names);

	if (!pid || !name)
		return prb_error_nomem();
	*pid = rank->pid;
	*name = prb_format("rank %ld", rank->rank);
	return *name ? NULL : prb_error_nomem();
}

static struct prb_error *find_running(const struct prb_job *job, struct running *ret)
{
	const struct prb_rank *rank;

	prb_vec_each (rank, &job->ranks)
		if (rank->pid)
			PRB_TRY(add(ret, rank));
	return NULL;
}

static struct prb_performance_settings settings_of(const struct prb_cluster *c)
{
	return (struct prb_performance_settings){
		.record = {.duration = c->settings->duration, .cc = c->settings->native},
		.out = {.path = c->settings->output, .json = c->settings->json}};
}

struct prb_error *prb_cluster_perf(struct prb_cluster *c)
{
	struct prb_performance_settings settings = settings_of(c);
	auto_running struct running running = {};

	if (c->bundle)
		return prb_error_create(PRB_ERROR_USAGE, "a profile is of a job that runs");
	PRB_TRY(find_running(c->job, &running));

	const struct prb_performance_several several = {running.pids.items, running.names.items,
							running.pids.count};
	settings.record.several = &several;
	return prb_performance_run(c->cli, &settings, NULL);
}

/* On each host. */

static struct prb_error *send_file(int fd)
{
	char chunk[64 << 10];
	ssize_t got;

	while ((got = read(fd, chunk, sizeof(chunk))) > 0)
		PRB_TRY(prb_output_bytes(chunk, (size_t)got));
	return got < 0 ? prb_error_os(errno, "cannot read the recording") : prb_output_flush();
}

static struct prb_error *record_to(const struct prb_cluster *c, const struct running *running,
				   const char *path)
{
	__attribute__((cleanup(
		prb_performance_targets_deinit))) struct prb_performance_targets targets = {};
	prb_auto_recording struct prb_recording *without_runs = NULL;
	const struct prb_performance_several several = {running->pids.items, running->names.items,
							running->pids.count};
	struct prb_performance_settings settings = settings_of(c);

	settings.record.several = &several;
	settings.out.path = path;
	PRB_TRY(prb_performance_open(c->cli, &settings, &targets));
	return prb_performance_keep(&targets, &settings, NULL, &without_runs);
}

/** Prints the recording of the ranks of this machine; nothing if there are none. */
struct prb_error *prb_cluster_sample(struct prb_cluster *c)
{
	const char *base = getenv("TMPDIR");
	prb_auto_free char *folder =
		prb_format("%s/probing-ranks-XXXXXX", base && *base ? base : "/tmp");
	auto_running struct running running = {};
	prb_auto_free char *path = NULL;
	prb_auto_close int fd = -1;
	struct prb_error *err;

	if (c->job)
		PRB_TRY(find_running(c->job, &running));
	if (!running.pids.count)
		return NULL;
	if (!folder)
		return prb_error_nomem();
	PRB_TRY(prb_new_file_check_way(folder));
	/* New, and of mode 0700. */
	if (!mkdtemp(folder))
		return prb_error_os(errno, "cannot make %s", folder);
	path = prb_format("%s/ranks.profile", folder);
	err = path ? record_to(c, &running, path) : prb_error_nomem();
	if (!err) {
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			err = prb_error_os(errno, "cannot open %s", path);
	}
	/* Before sending: the receiver may disconnect. */
	if (path)
		unlink(path);
	rmdir(folder);
	return err ? err : send_file(fd);
}

/* On the machine that asks the hosts. */

static struct prb_error *add_words(const struct prb_cluster *c, const char *job,
				   struct prb_words *ret)
{
	const struct prb_cluster_settings *s = c->settings;

	PRB_TRY(prb_words_add(ret, "cluster"));
	PRB_TRY(prb_words_add(ret, "sample"));
	PRB_TRY(prb_words_add(ret, "--duration=%.0fms", prb_cluster_span(c) * 1000));
	if (s->native)
		PRB_TRY(prb_words_add(ret, "--native"));
	return prb_cluster_add_job(c, job, ret);
}

/** The recordings of the hosts, in the order of the answers. */
struct parts {
	PRB_VEC(struct prb_recording *) list; /* NULL: nothing */
	const struct prb_answers *answers;
};

static void parts_deinit(struct parts *parts)
{
	struct prb_recording **part;

	prb_vec_each (part, &parts->list)
		prb_recording_destroy(*part);
	prb_vec_free(&parts->list);
}

static struct prb_error *take(void *context, struct prb_answer *answer)
{
	struct parts *parts = context;
	struct prb_recording **place = &parts->list.items[answer - parts->answers->list.items];
	struct prb_error *err = NULL;

	if (!answer->error && answer->spooled)
		err = prb_profile_load_copy(answer->spool, place);
	if (answer->spool >= 0)
		close(prb_steal_fd(&answer->spool));
	if (!err || err->code == PRB_ERROR_NOMEM)
		return err;
	answer->error = prb_format("its recording cannot be read: %s", err->message);
	prb_error_destroy(err);
	return answer->error ? NULL : prb_error_nomem();
}

static struct prb_error *ask(struct prb_cluster *c, const char *job, struct prb_answers *answers,
			     struct parts *parts)
{
	prb_auto_words struct prb_words words = {};

	PRB_TRY(add_words(c, job, &words));
	for (size_t i = 0; i < c->hosts.list.count; i++) {
		struct prb_recording **part = prb_vec_push(&parts->list);

		if (!part)
			return prb_error_nomem();
		*part = NULL;
	}
	parts->answers = answers;
	return prb_cluster_ask(c, &words, true,
			       (struct prb_gather_options){.handler = take, .context = parts},
			       answers);
}

/** Seconds by which it began after @p asked; -1 if its clock is not ours. */
static double began_after(const struct prb_recording *part, double asked, double timeout)
{
	double later = part->started - asked;

	/* It was asked then, and began before its time was over. Clocks are never quite the same.
	 */
	return later >= -timeout && later <= timeout ? later + timeout : -1;
}

static void warn_of(const char *host, const char *what)
{
	prb_auto_str struct prb_str text = {};

	prb_text_escape(&text, host);
	prb_str_puts(&text, ": ");
	prb_text_escape(&text, what);
	prb_warn(prb_str_text(&text));
}

static struct prb_error *add_part(struct prb_gathered *gathered, const struct prb_recording *part,
				  const char *host, double later)
{
	prb_auto_free char *suffix = prb_format(" (%s)", host);
	struct prb_error *err;

	if (!suffix)
		return prb_error_nomem();
	if (later < 0)
		warn_of(host, "its clock is not that of this machine: its samples are shown from "
			      "the beginning on");
	err = prb_gathered_add(gathered, part, suffix, (int64_t)(fmax(later, 0) * 1e9));
	if (!err || err->code != PRB_ERROR_BAD_DATA)
		return err;
	warn_of(host, err->message);
	prb_error_destroy(err);
	return NULL;
}

static struct prb_error *put_together(const struct prb_cluster *c, const struct parts *parts,
				      double asked, struct prb_gathered *gathered)
{
	const double timeout = prb_cluster_timeout(c);
	struct prb_recording *const *part;
	double first = INFINITY;

	prb_vec_each (part, &parts->list) {
		double later = *part ? began_after(*part, asked, timeout) : -1;

		first = later >= 0 ? fmin(first, later) : first;
	}
	first = isinf(first) ? timeout : first;
	gathered->all->started = asked + first - timeout;
	for (size_t i = 0; i < parts->list.count; i++) {
		const struct prb_recording *one = parts->list.items[i];
		double later = one ? began_after(one, asked, timeout) : -1;

		if (one)
			PRB_TRY(add_part(gathered, one, parts->answers->list.items[i].host,
					 later < 0 ? -1 : later - first));
	}
	prb_gathered_settle(gathered);
	return NULL;
}

static struct prb_error *show(const struct prb_cluster *c, const struct parts *parts, double asked)
{
	const struct prb_performance_settings settings = settings_of(c);
	struct prb_gathered gathered = {};
	struct prb_error *err;

	PRB_TRY(prb_recording_create(&gathered.all));
	err = put_together(c, parts, asked, &gathered);
	if (!err && !gathered.all->pid)
		err = prb_error_hint(
			prb_error_create(PRB_ERROR_NOT_FOUND, "no host has a rank of the job"),
			"'probing cluster nodes' with the same options lists them");
	if (!err)
		err = prb_performance_show(&gathered.all, &settings);
	prb_recording_destroy(gathered.all);
	return err;
}

static struct prb_error *check_hosts(const struct prb_cluster *c)
{
	char *const *host;

	if (c->hosts.list.count > MOST_HOSTS)
		return prb_error_create(PRB_ERROR_USAGE,
					"'perf' takes the profiles of %d hosts at most",
					MOST_HOSTS);
	prb_vec_each (host, &c->hosts.list)
		if (c->reach.hosts && prb_reach_is_served(*host))
			return prb_error_hint(
				prb_error_create(PRB_ERROR_USAGE,
						 "'%s' is a served process, which sends no "
						 "recording to 'cluster perf'",
						 *host),
				"'probing %s perf' samples that one", *host);
	return NULL;
}

struct prb_error *prb_cluster_perf_far(struct prb_cluster *c, const char *job)
{
	const struct prb_performance_settings settings = settings_of(c);
	__attribute__((cleanup(parts_deinit))) struct parts parts = {};
	prb_auto_answers struct prb_answers answers = {};
	double now;

	c->paces = true;
	PRB_TRY(prb_performance_check(&settings));
	PRB_TRY(prb_reach_find(&c->reach, &c->hosts));
	PRB_TRY(check_hosts(c));
	now = prb_clock_calendar_seconds();
	PRB_TRY(ask(c, job, &answers, &parts));
	PRB_TRY(prb_cluster_warn(c, &answers));
	return show(c, &parts, now);
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cluster/watch/reported.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/own_file.h"
#include "base/str.h"
#include "base/text.h"
#include "cluster/looks/json.h"
#include "target/snapshot/bundle.h"

enum {
	MOST_FILE = 1 << 20, /* what the gateway takes */
	MOST_RANKS = 1 << 16,
	KEY = 16, /* letters of a hash */
};

/* Seconds after which a file is of a job that is over. */
static const double OLD = 3600;

static const char PULSE[] = PRB_REPORT_PULSE, LOOK[] = PRB_REPORT_LOOK;

static void reporter_deinit(struct prb_reporter *host)
{
	free(host->host);
	prb_vec_free(&host->ranks.list);
}

static void job_deinit(struct prb_reported *job)
{
	struct prb_reporter *host;

	prb_vec_each (host, &job->hosts)
		reporter_deinit(host);
	prb_vec_free(&job->hosts);
	prb_incident_deinit(&job->incident);
	free(job->job);
}

void prb_reported_deinit(struct prb_reported_list *jobs)
{
	struct prb_reported *job;

	prb_vec_each (job, &jobs->list)
		job_deinit(job);
	prb_vec_free(&jobs->list);
}

/** Reads a file of the folder; *found is false if there is none, or it is too long. */
static struct prb_error *read_file(int folder, const char *name, const char *ending,
				   struct prb_str *ret, struct timespec *written, bool *found)
{
	prb_auto_free char *path = prb_format("%s%s", name, ending);
	char chunk[65536];
	struct stat st;
	uint64_t size;
	ssize_t got;

	*found = false;
	if (!path)
		return prb_error_nomem();
	prb_auto_close int fd = prb_own_file_open(folder, path, O_RDONLY, geteuid(), &size);

	if (fd < 0 || fstat(fd, &st) || size > MOST_FILE)
		return NULL;
	*written = st.st_mtim;
	while (ret->length <= MOST_FILE && (got = read(fd, chunk, sizeof(chunk))) > 0)
		prb_str_append(ret, chunk, (size_t)got);
	*found = ret->length <= MOST_FILE;
	return ret->failed ? prb_error_nomem() : NULL;
}

static double seconds_of(const json_t *document, const char *key)
{
	const double value = json_number_value(json_object_get(document, key));

	return value > 0 ? value : 0;
}

static struct prb_error *take_ranks(const json_t *document, struct prb_reporter *host)
{
	json_t *ranks = json_object_get(document, "ranks"), *rank;
	size_t i;

	host->ended = true;
	host->ranks.list.count = 0;
	json_array_foreach(ranks, i, rank)
	{
		const json_t *number = json_object_get(rank, "rank");
		long *place;

		host->ended &= json_is_true(json_object_get(rank, "gone"));
		if (i >= MOST_RANKS || !json_is_integer(number))
			continue;
		place = prb_vec_push(&host->ranks.list);
		if (!place)
			return prb_error_nomem();
		*place = (long)json_integer_value(number);
	}
	return NULL;
}

static struct prb_error *take_pulse(const json_t *document, struct prb_reported *job,
				    struct prb_reporter *host)
{
	const json_t *world = json_object_get(document, "world_size");

	host->still = seconds_of(document, "still");
	host->waited = seconds_of(document, "waited");
	host->limit = seconds_of(document, "limit");
	host->waits = json_is_true(json_object_get(document, "waits"));
	job->world_size = json_is_integer(world) ? (long)json_integer_value(world) : -1;
	free(prb_steal(&host->host));
	PRB_TRY(prb_str_copy(json_string_value(json_object_get(document, "host")), &host->host));
	return take_ranks(document, host);
}

static struct prb_reported *find_key(struct prb_reported_list *jobs, const char *name)
{
	struct prb_reported *job;

	prb_vec_each (job, &jobs->list)
		if (!strncmp(job->key, name, KEY))
			return job;
	return NULL;
}

struct prb_reported *prb_reported_find(struct prb_reported_list *jobs, const char *job, uid_t uid)
{
	char key[PRB_REPORT_NAME];

	prb_report_job(job, uid, key);
	return find_key(jobs, key);
}

/** The job and host of a file, which are added if they are new. */
static struct prb_error *find_place(struct prb_reported_list *jobs, const char *name,
				    const json_t *document, struct prb_reported **ret_job,
				    struct prb_reporter **ret)
{
	struct prb_reported *job = find_key(jobs, name);
	struct prb_reporter *host;

	*ret = NULL;
	if (!job) {
		job = prb_vec_push(&jobs->list);
		if (!job)
			return prb_error_nomem();
		*job = (struct prb_reported){
			.uid = (uid_t)json_integer_value(json_object_get(document, "uid"))};
		snprintf(job->key, sizeof(job->key), "%.*s", KEY, name);
		PRB_TRY(prb_str_copy(json_string_value(json_object_get(document, "job")),
				     &job->job));
	}
	*ret_job = job;
	prb_vec_each (host, &job->hosts)
		if (!strcmp(host->name, name))
			*ret = host;
	if (*ret)
		return NULL;
	*ret = prb_vec_push(&job->hosts);
	if (!*ret)
		return prb_error_nomem();
	**ret = (struct prb_reporter){};
	snprintf((*ret)->name, sizeof((*ret)->name), "%s", name);
	return NULL;
}

static struct prb_reporter *find_reporter(struct prb_reported_list *jobs, const char *name)
{
	const struct prb_reported *job = find_key(jobs, name);
	struct prb_reporter *host;

	if (job)
		prb_vec_each (host, &job->hosts)
			if (!strcmp(host->name, name))
				return host;
	return NULL;
}

/** True if the file has not changed since it was last read. */
static bool is_known(struct prb_reported_list *jobs, const char *name, const struct stat *st)
{
	struct prb_reporter *host = find_reporter(jobs, name);

	if (!host)
		return false;
	host->there = true;
	return host->written.tv_sec == st->st_mtim.tv_sec &&
	       host->written.tv_nsec == st->st_mtim.tv_nsec;
}

static struct prb_error *read_pulse(struct prb_reported_list *jobs, int folder, const char *name,
				    double now)
{
	prb_auto_str struct prb_str text = {};
	struct prb_reported *job;
	struct prb_reporter *host;
	struct timespec written;
	json_t *document;
	bool found;

	PRB_TRY(read_file(folder, name, PULSE, &text, &written, &found));
	document = found ? json_loadb(prb_str_text(&text), text.length, 0, NULL) : NULL;
	/* The gateway has checked what it keeps. */
	if (!json_is_string(json_object_get(document, "host")) ||
	    !json_is_string(json_object_get(document, "job"))) {
		json_decref(document);
		return NULL;
	}
	struct prb_error *err = find_place(jobs, name, document, &job, &host);

	if (!err)
		err = take_pulse(document, job, host);
	json_decref(document);
	if (err)
		return err;
	host->written = written;
	host->seen = now;
	host->there = true;
	return NULL;
}

/** Reads a file of the folder, if it is a pulse that is new. */
static struct prb_error *look_at_file(struct prb_reported_list *jobs, int folder, const char *file,
				      double now)
{
	const size_t length = strlen(file), end = sizeof(PULSE) - 1;
	char name[PRB_REPORT_NAME];
	struct stat st;

	if (*file == '.' || fstatat(folder, file, &st, AT_SYMLINK_NOFOLLOW))
		return NULL;
	if (difftime(time(NULL), st.st_mtime) > OLD) {
		unlinkat(folder, file, 0);
		return NULL;
	}
	if (length <= end || length - end >= sizeof(name) || strcmp(file + length - end, PULSE))
		return NULL;
	snprintf(name, sizeof(name), "%.*s", (int)(length - end), file);
	return is_known(jobs, name, &st) ? NULL : read_pulse(jobs, folder, name, now);
}

/** Forgets hosts without a file, and jobs without a host. */
static void forget(struct prb_reported_list *jobs, int folder)
{
	size_t kept = 0;

	for (size_t i = 0; i < jobs->list.count; i++) {
		struct prb_reported *job = &jobs->list.items[i];
		size_t hosts = 0;

		for (size_t n = 0; n < job->hosts.count; n++) {
			if (job->hosts.items[n].there)
				job->hosts.items[hosts++] = job->hosts.items[n];
			else
				reporter_deinit(&job->hosts.items[n]);
		}
		job->hosts.count = hosts;
		if (hosts) {
			jobs->list.items[kept++] = *job;
			continue;
		}
		prb_reports_want_no_more(folder, job->key);
		job_deinit(job);
	}
	jobs->list.count = kept;
}

struct prb_error *prb_reported_read(struct prb_reported_list *jobs, int folder, double now)
{
	prb_auto_closedir DIR *list = prb_reports_list(folder);
	struct prb_error *err = NULL;
	const struct dirent *entry;
	struct prb_reported *job;
	struct prb_reporter *host;

	if (!list)
		return prb_error_os(errno, "cannot read the folder of reports");
	prb_vec_each (job, &jobs->list)
		prb_vec_each (host, &job->hosts)
			host->there = false;
	while (!err && (entry = readdir(list)))
		err = look_at_file(jobs, folder, entry->d_name, now);
	if (!err)
		forget(jobs, folder);
	return err;
}

static bool is_silent(const struct prb_reporter *host, double patience, double now)
{
	return now - host->seen > patience && !host->ended;
}

/** Its ranks run, as it has said a moment ago. */
static bool counts(const struct prb_reporter *host, double patience, double now)
{
	return !host->ended && !is_silent(host, patience, now);
}

bool prb_reported_runs(const struct prb_reported *job, double patience, double now)
{
	const struct prb_reporter *host;

	prb_vec_each (host, &job->hosts)
		if (counts(host, patience, now))
			return true;
	return false;
}

bool prb_reported_is_suspicious(const struct prb_reported *job, double patience, double now,
				double *waited)
{
	double still = -1, limit = 0;
	const struct prb_reporter *host;

	*waited = 0;
	prb_vec_each (host, &job->hosts) {
		if (!counts(host, patience, now))
			continue;
		still = still < 0 ? host->still : PRB_MIN(still, host->still);
		*waited = PRB_MAX(*waited, host->waited);
		limit = PRB_MAX(limit, host->limit);
	}
	return still >= 0 && prb_vigil_is_too_long(still, *waited, limit);
}

bool prb_reported_waits(const struct prb_reported *job)
{
	const struct prb_reporter *host;

	prb_vec_each (host, &job->hosts)
		if (host->waits && !host->ended)
			return true;
	return false;
}

bool prb_reported_moves(const struct prb_reported *job, double patience, double rest, double now)
{
	const struct prb_reporter *host;

	prb_vec_each (host, &job->hosts)
		if (counts(host, patience, now) && host->still < rest)
			return true;
	return false;
}

static bool has_look(const struct prb_reporter *host, int folder)
{
	char name[PRB_REPORT_NAME + sizeof(LOOK)];

	snprintf(name, sizeof(name), "%s%s", host->name, LOOK);
	return !faccessat(folder, name, F_OK, AT_SYMLINK_NOFOLLOW);
}

bool prb_reported_is_seen(const struct prb_reported *job, int folder, double patience, double now)
{
	const struct prb_reporter *host;

	prb_vec_each (host, &job->hosts)
		if (counts(host, patience, now) && !has_look(host, folder))
			return false;
	return true;
}

/** *why: what is wrong with a look, or NULL; for the caller to free. */
static struct prb_error *check_look(const struct prb_str *text, char **why)
{
	struct prb_looks *looks = NULL;
	struct prb_error *err = prb_looks_create(&looks);

	*why = NULL;
	if (!err)
		err = prb_looks_add(looks, NULL, prb_str_text(text), text->length, why);
	prb_looks_destroy(looks);
	return err;
}

/** Appends to @p s what a host has seen of its ranks, or why that is unknown. */
static struct prb_error *put_host(const struct prb_reported *job, const struct prb_reporter *host,
				  int folder, double patience, double now, struct prb_str *s)
{
	const bool silent = is_silent(host, patience, now);
	prb_auto_free char *why = NULL;
	prb_auto_str struct prb_str said = {};
	struct timespec written;
	bool found = false;

	/* Of ranks that have ended there is no look: the pulse says so. */
	if (!silent)
		PRB_TRY(read_file(folder, host->name, host->ended ? PULSE : LOOK, s, &written,
				  &found));
	if (found)
		PRB_TRY(check_look(s, &why));
	if (found && !why)
		return NULL;
	prb_str_truncate(s, 0);
	if (!why) {
		prb_text_escape(&said, host->host);
		prb_str_puts(&said, " has not reported for ");
		prb_text_duration(&said, now - (silent ? host->seen : job->asked));
	}
	prb_looks_write_silent(s, job->job, job->uid, host->host, why ? why : prb_str_text(&said),
			       host->ranks.list.items, host->ranks.list.count);
	return s->failed || said.failed ? prb_error_nomem() : NULL;
}

/** True if hosts that have never reported must have the rest of the ranks. */
static bool lacks(const struct prb_reported *job)
{
	const struct prb_reporter *host;
	size_t count = 0;

	prb_vec_each (host, &job->hosts)
		count += host->ranks.list.count;
	return job->world_size > 0 && count < (size_t)job->world_size;
}

struct prb_error *prb_reported_save(const struct prb_reported *job, int folder, double patience,
				    double now, int fd)
{
	const struct prb_reporter *host;
	prb_auto_str struct prb_str rest = {};
	long number = 0;

	PRB_TRY(prb_bundle_begin(fd));
	prb_vec_each (host, &job->hosts) {
		prb_auto_str struct prb_str text = {};

		PRB_TRY(put_host(job, host, folder, patience, now, &text));
		PRB_TRY(prb_bundle_add_text(fd, PRB_BUNDLE_LOOKS, number++, text.data,
					    text.length));
	}
	if (lacks(job)) {
		prb_looks_write_silent(&rest, job->job, job->uid, "other hosts",
				       "no daemon has reported their ranks", NULL, 0);
		if (rest.failed)
			return prb_error_nomem();
		PRB_TRY(prb_bundle_add_text(fd, PRB_BUNDLE_LOOKS, number, rest.data, rest.length));
	}
	return prb_bundle_end(fd);
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cluster/watch/reports.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/conflict.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/new_file.h"
#include "base/room.h"
#include "cluster/looks/json.h"

enum {
	MOST_FILES = 8192,	/* two for each host and job */
	MOST_PULSE = 256 << 10, /* bytes: 1 KiB for each of the ranks that are watched */
	MOST_NAME = 1024,	/* of a job or host */
	LEAST_ROOM = 64 << 20,	/* that stays on the disk */
};

static const char WANTED[] = ".wanted", PULSE[] = PRB_REPORT_PULSE, LOOK[] = PRB_REPORT_LOOK;

void prb_report_job(const char *job, uid_t uid, char ret[PRB_REPORT_NAME])
{
	uint64_t hash = prb_hash_text(PRB_HASH_START, job);

	hash = prb_hash_bytes(hash, &uid, sizeof(uid));
	snprintf(ret, PRB_REPORT_NAME, "%016llx", (unsigned long long)hash);
}

/** A report, as far as it has to be read to keep it. */
struct report {
	const char *host, *job;
	uid_t uid;
	bool pulse;
};

static bool is_name(const char *text)
{
	return text && *text && strlen(text) < MOST_NAME;
}

static bool read_report(const json_t *document, size_t length, struct report *ret)
{
	const json_t *uid = json_object_get(document, "uid");

	ret->host = json_string_value(json_object_get(document, "host"));
	ret->job = json_string_value(json_object_get(document, "job"));
	ret->uid = (uid_t)json_integer_value(uid);
	ret->pulse = json_is_number(json_object_get(document, "still"));
	return is_name(ret->host) && is_name(ret->job) && json_is_integer(uid) &&
	       json_is_array(json_object_get(document, "ranks")) &&
	       (!ret->pulse || length <= MOST_PULSE);
}

static bool exists(int folder, const char *name)
{
	return !faccessat(folder, name, F_OK, AT_SYMLINK_NOFOLLOW);
}

DIR *prb_reports_list(int folder)
{
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = fd < 0 ? NULL : fdopendir(fd);

	if (!list && fd >= 0)
		close(fd);
	return list;
}

static size_t count_files(int folder)
{
	prb_auto_closedir DIR *list = prb_reports_list(folder);
	size_t count = 0;

	while (list && readdir(list))
		count++;
	return count;
}

static struct prb_error *write_file(int folder, const char *name, const char *text, size_t length)
{
	prb_auto_new_file struct prb_new_file file = PRB_NO_FILE;

	PRB_TRY(prb_new_file_open_in(&file, folder, name));
	for (size_t at = 0; at < length;) {
		ssize_t written = write(file.fd, text + at, length - at);

		if (written < 0 && errno != EINTR)
			return prb_error_os(errno, "cannot keep a report");
		at += written > 0 ? (size_t)written : 0;
	}
	return prb_new_file_place(&file);
}

/** The name of a file of the job: its hash and an ending. */
static void name_file(char ret[PRB_REPORT_NAME], const char *job, const char *ending)
{
	snprintf(ret, PRB_REPORT_NAME, "%.40s%s", job, ending);
}

static struct prb_error *keep(int folder, const struct report *report, const char *text,
			      size_t length, bool *wanted)
{
	char job[PRB_REPORT_NAME], place[PRB_REPORT_NAME], asked[PRB_REPORT_NAME],
		pulse[PRB_REPORT_NAME], look[PRB_REPORT_NAME];

	prb_report_job(report->job, report->uid, job);
	snprintf(place, sizeof(place), "%.16s-%016llx", job,
		 (unsigned long long)prb_hash_text(PRB_HASH_START, report->host));
	name_file(asked, job, WANTED);
	name_file(pulse, place, PULSE);
	name_file(look, place, LOOK);
	*wanted = exists(folder, asked);
	/* It comes too late: the job moves again, or was judged. */
	if (!report->pulse && !*wanted)
		return NULL;
	const char *name = report->pulse ? pulse : look;

	if (prb_room(folder) < LEAST_ROOM ||
	    (!exists(folder, name) && count_files(folder) > MOST_FILES))
		return prb_conflict_create("there is no room for more reports");
	PRB_TRY(write_file(folder, name, text, length));
	*wanted = *wanted && !exists(folder, look);
	return NULL;
}

struct prb_error *prb_reports_keep(int folder, const char *text, size_t length, bool *wanted)
{
	json_t *document = json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL);
	struct report report;
	struct prb_error *err;

	*wanted = false;
	err = read_report(document, length, &report)
		      ? keep(folder, &report, text, length, wanted)
		      : prb_error_create(PRB_ERROR_USAGE, "that is no report of a job's ranks");
	json_decref(document);
	return err;
}

bool prb_report_is_wanted(const struct prb_str *answer)
{
	json_t *said = json_loadb(prb_str_text(answer), answer->length, 0, NULL);
	const bool wanted = json_is_true(json_object_get(said, "wanted"));

	json_decref(said);
	return wanted;
}

struct prb_error *prb_reports_want(int folder, const char *job)
{
	prb_auto_closedir DIR *list = prb_reports_list(folder);
	char name[PRB_REPORT_NAME];
	const struct dirent *entry;

	if (!list)
		return prb_error_os(errno, "cannot read the folder of reports");
	while ((entry = readdir(list))) {
		const char *end = strrchr(entry->d_name, '.');

		if (end && !strcmp(end, LOOK) && !strncmp(entry->d_name, job, strlen(job)))
			unlinkat(folder, entry->d_name, 0);
	}
	name_file(name, job, WANTED);
	return write_file(folder, name, "", 0);
}

void prb_reports_want_no_more(int folder, const char *job)
{
	char name[PRB_REPORT_NAME];

	name_file(name, job, WANTED);
	unlinkat(folder, name, 0);
}

static struct prb_error *put_ranks(struct prb_str *s, const struct prb_job *job, bool ended)
{
	struct prb_round round = {};
	struct prb_error *err = NULL;
	const struct prb_rank *rank;

	prb_vec_each (rank, &job->ranks) {
		struct prb_seen *seen = prb_vec_push(&round.list);

		if (!seen)
			err = prb_error_nomem();
		else
			*seen = (struct prb_seen){.rank = rank,
						  .gone = ended || !rank->pid,
						  .movement = PRB_UNKNOWN,
						  .ran_ns = -1};
	}
	if (!err)
		prb_looks_write(job, &round, false, true, s);
	prb_vec_free(&round.list);
	return err;
}

void prb_report_put_pulse(struct prb_str *s, const struct prb_vigil *vigil, const char *host,
			  bool ended)
{
	prb_auto_str struct prb_str ranks = {};
	prb_auto_error struct prb_error *err = put_ranks(&ranks, vigil->job, ended);
	double still, waited;

	prb_vigil_rests(vigil, &still, &waited);
	prb_str_printf(s, "{\"still\":%.3f,\"waited\":%.3f,\"limit\":%.3f,\"waits\":%s,", still,
		       waited, prb_vigil_limit(vigil), prb_vigil_waits(vigil) ? "true" : "false");
	prb_str_puts(s, "\"host\":");
	prb_json_quote(s, host, strlen(host));
	prb_str_putc(s, ',');
	if (ranks.length)
		prb_str_append(s, ranks.data + 1, ranks.length - 1);
	s->failed |= err || ranks.failed;
}

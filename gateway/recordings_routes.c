/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Requests about recordings. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/conflict.h"
#include "base/json.h"
#include "gateway/gateway_private.h"
#include "rings/known.h"

/* The page of a flame graph brings a policy of its own, which lets nothing run but its own script.
 * It gets no origin, so that it can ask us for nothing. */
static const char PAGE_POLICY[] = "sandbox allow-scripts allow-downloads; frame-ancestors 'self'";

static const struct format {
	const char *name, *ending, *media;
} FORMATS[] = {
	{"html", ".html", "text/html; charset=utf-8"},
	{"svg", ".svg", "image/svg+xml"},
	{"collapsed", ".collapsed", "text/plain; charset=utf-8"},
	{"speedscope", ".speedscope.json", "application/json"},
	{"pprof", ".pb.gz", "application/octet-stream"},
	{"trace", ".trace.json", "application/json"},
	{"gecko", ".gecko.json", "application/json"},
	{"otlp", ".otlp", "application/x-protobuf"},
};

static const double FOR_GOOD = 365 * 86400;

static struct prb_error *record_words(struct prb_request *r, double duration)
{
	PRB_TRY(prb_served_words(&r->gateway->served, r->id, &r->words));
	PRB_TRY(prb_words_add(&r->words, "performance"));
	PRB_TRY(prb_param(r, "keep") ? prb_param_word(r, "keep", "ring")
				     : prb_words_add(&r->words, "--duration=%.3fs", duration));
	PRB_TRY(prb_param_word(r, "rate", "rate"));
	PRB_TRY(prb_param_word(r, "mode", "mode"));
	if (prb_param_flag(r, "native"))
		return prb_words_add(&r->words, "--cc");
	return NULL;
}

/** Makes the content of a file the answer. */
static struct prb_error *answer_file(struct prb_request *r, const char *path, bool may_link)
{
	prb_auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | (may_link ? 0 : O_NOFOLLOW));
	char chunk[16 << 10];
	ssize_t got;

	if (fd < 0)
		return prb_error_os(errno, "cannot read what was recorded");
	prb_str_truncate(&r->reply, 0);
	while ((got = read(fd, chunk, sizeof(chunk))) > 0 &&
	       r->reply.length < PRB_GATEWAY_MAX_ANSWER)
		prb_str_append(&r->reply, chunk, (size_t)got);
	if (got)
		return prb_error_create(PRB_ERROR_FAILED, "the file has over %d MiB",
					PRB_GATEWAY_MAX_ANSWER >> 20);
	return NULL;
}

/** Gives the file that the command has written, and removes it. */
static struct prb_error *take_file(struct prb_request *r)
{
	struct prb_error *err = answer_file(r, prb_str_text(&r->input), false);

	unlink(prb_str_text(&r->input));
	return err;
}

/** Has the command write into a file of ours, which is the answer then. */
static struct prb_error *through_file(struct prb_request *r, const struct format *format)
{
	prb_auto_free char *file = prb_recordings_file(&r->gateway->recordings, format->ending);

	if (!file)
		return prb_error_nomem();
	prb_str_puts(&r->input, file);
	r->finish = take_file;
	r->media = format->media;
	if (!strcmp(format->name, "html"))
		r->policy = PAGE_POLICY;
	PRB_TRY(prb_words_add(&r->words, "--output=%s", file));
	prb_request_start(r);
	return NULL;
}

/** The flame graph that was asked for at an alias, once it was recorded. */
static struct prb_error *record_at_once(struct prb_request *r, double duration)
{
	PRB_TRY(prb_recordings_prepare(&r->gateway->recordings));
	PRB_TRY(record_words(r, duration));
	r->limit = duration + 30;
	return through_file(r, &FORMATS[0]);
}

struct prb_error *prb_answer_record(struct prb_request *r)
{
	struct prb_json json = {&r->reply};
	struct prb_profile_made *made;
	const char *text = prb_param(r, "duration");
	/* What keeps the end of it runs until it is stopped. */
	double duration = prb_param(r, "keep") ? FOR_GOOD : text ? atof(text) : 10;

	if (r->route->alias)
		return record_at_once(r, duration);
	PRB_TRY(record_words(r, duration));
	PRB_TRY(prb_recordings_start(&r->gateway->recordings, r->id,
				     prb_served_pid(&r->gateway->served, r->id), duration,
				     r->gateway->now, &r->words, &made));
	prb_recordings_put(made, NULL, &json);
	r->status = 201;
	return NULL;
}

struct prb_error *prb_answer_recordings(struct prb_request *r)
{
	const struct prb_recordings *recordings = &r->gateway->recordings;
	struct prb_json json = {&r->reply};

	prb_json_open(&json, NULL, '{');
	prb_json_open(&json, "profiles", '[');
	for (size_t i = 0; i < recordings->list.count; i++)
		prb_recordings_put(recordings->list.items[i], NULL, &json);
	prb_served_put_recordings(&r->gateway->served, &json);
	prb_json_close(&json, ']');
	prb_json_close(&json, '}');
	return NULL;
}

static struct prb_error *no_recording(const char *id)
{
	return prb_error_hint(
		prb_error_create(PRB_ERROR_NOT_FOUND, "there is no recording '%.20s'", id),
		"/v1/profiles lists them");
}

/** Finds a recording that was made here. */
static struct prb_error *find(struct prb_request *r, struct prb_profile_made **ret)
{
	*ret = prb_recordings_find(&r->gateway->recordings, r->name);
	return *ret ? NULL : no_recording(r->name);
}

/** A recording that can be shown: one that was made here, or a file that is served. */
struct source {
	const char *path;
	bool named;   /**< by our user: its path may be a link */
	bool running; /**< it is being made */
};

static struct prb_error *find_source(struct prb_request *r, const char *id, struct source *ret)
{
	const struct prb_profile_made *made = prb_recordings_find(&r->gateway->recordings, id);
	const char *file = prb_served_recording(&r->gateway->served, id);

	if (!made && !file)
		return no_recording(id);
	*ret = (struct source){made ? made->path : file, !made, made && made->child.pid};
	return NULL;
}

/** The file itself. */
static struct prb_error *answer_source(struct prb_request *r, const struct source *source)
{
	if (source->running)
		return prb_error_hint(prb_conflict_create("the recording is being made"),
				      "stop it first; other formats can be had now");
	r->file = prb_format("%s.profile", r->name);
	return answer_file(r, source->path, source->named);
}

struct prb_error *prb_answer_recording(struct prb_request *r)
{
	const char *format = prb_param(r, "format"), *before = prb_param(r, "before");
	struct source source, other;

	PRB_TRY(find_source(r, r->name, &source));
	if (before && (!format || strcmp(format, "html") != 0))
		return prb_error_create(PRB_ERROR_USAGE, "'before' is for the format html");
	if (before)
		PRB_TRY(find_source(r, before, &other));
	if (!format || !strcmp(format, "profile"))
		return answer_source(r, &source);
	for (size_t i = 0; i < sizeof(FORMATS) / sizeof(*FORMATS); i++) {
		if (strcmp(FORMATS[i].name, format) != 0)
			continue;
		PRB_TRY(prb_recordings_prepare(&r->gateway->recordings));
		PRB_TRY(prb_words_add(&r->words, "--target=%s", source.path));
		PRB_TRY(prb_words_add(&r->words, "performance"));
		if (before)
			PRB_TRY(prb_words_add(&r->words, "--diff=%s", other.path));
		if (strcmp(format, "html") != 0)
			r->file = prb_format("%s%s", r->name, FORMATS[i].ending);
		return through_file(r, &FORMATS[i]);
	}
	return prb_error_create(PRB_ERROR_USAGE, "there is no format '%.20s'", format);
}

/** Who keeps the last minutes of the process. */
struct prb_error *prb_answer_recorders(struct prb_request *r)
{
	prb_auto_known_list struct prb_known_list known = {};
	const struct prb_known_recording *one;
	struct prb_json json = {&r->reply};
	pid_t pid;

	PRB_TRY(prb_served_check(&r->gateway->served, r->id));
	pid = prb_served_pid(&r->gateway->served, r->id);
	if (pid) {
		prb_auto_error struct prb_error *err = prb_known_find(pid, &known);

		if (err && err->code != PRB_ERROR_NOT_FOUND)
			return prb_steal(&err);
	}
	prb_json_open(&json, NULL, '{');
	prb_json_open(&json, "recorders", '[');
	prb_vec_each (one, &known.list) {
		prb_json_open(&json, NULL, '{');
		prb_json_integer(&json, "pid", one->recorder);
		prb_json_bool(&json, "running", one->running);
		prb_json_close(&json, '}');
	}
	prb_json_close(&json, ']');
	prb_json_close(&json, '}');
	return NULL;
}

/** What a recorder keeps of the process: one that was started here by `keep`, or by the user. */
struct prb_error *prb_answer_recent(struct prb_request *r)
{
	const char *last = prb_param(r, "last");

	PRB_TRY(prb_recordings_prepare(&r->gateway->recordings));
	PRB_TRY(prb_served_words(&r->gateway->served, r->id, &r->words));
	PRB_TRY(prb_words_add(&r->words, "performance"));
	PRB_TRY(prb_words_add(&r->words, "--last=%ss", last ? last : "600"));
	return through_file(r, &FORMATS[0]);
}

struct prb_error *prb_answer_recording_stop(struct prb_request *r)
{
	struct prb_json json = {&r->reply};
	struct prb_profile_made *made;

	PRB_TRY(find(r, &made));
	prb_recordings_stop(made);
	prb_recordings_put(made, NULL, &json);
	return NULL;
}

struct prb_error *prb_answer_recording_name(struct prb_request *r)
{
	const char *name = prb_param(r, "name"), *note = prb_param(r, "note");
	struct prb_json json = {&r->reply};
	struct prb_profile_made *made;

	PRB_TRY(find(r, &made));
	if (name)
		PRB_TRY(prb_str_copy(*name ? name : NULL, &made->name));
	if (note)
		PRB_TRY(prb_str_copy(*note ? note : NULL, &made->note));
	prb_recordings_put(made, NULL, &json);
	return NULL;
}

struct prb_error *prb_answer_recording_delete(struct prb_request *r)
{
	struct prb_profile_made *made;

	PRB_TRY(find(r, &made));
	prb_recordings_remove(&r->gateway->recordings, made);
	prb_str_puts(&r->reply, "{}\n");
	return NULL;
}

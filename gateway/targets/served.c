/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/targets/served.h"

#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "target/recorded/recorded.h"
#include "target/snapshot/bundle.h"
#include "target/spec/target_spec.h"
#include "target/target.h"

void prb_served_deinit(struct prb_served *served)
{
	struct prb_served_target *t;

	prb_vec_each (t, &served->named) {
		if (t->pidfd >= 0)
			close(t->pidfd);
		free(t->name);
		free(t->bundle);
	}
	prb_vec_free(&served->named);
}

static struct prb_error *add(struct prb_served *served, const char *text)
{
	struct prb_served_target *place;
	prb_auto_target struct prb_target *target = NULL;

	PRB_TRY(prb_spec_open_in(text, &served->places, &target));
	pid_t pid = target->live ? target->pid : 0;
	bool recording = prb_recorded_path(target);
	place = prb_vec_push(&served->named);
	if (!place)
		return prb_error_nomem();
	place->pidfd = -1;
	if (!pid) {
		/* Its number among files: the id of a file stays the same when processes end. */
		snprintf(place->id, sizeof(place->id), "f%zu", ++served->files);
		place->recording = recording;
		/* Children are started in the same folder. */
		return prb_str_copy(text, &place->name);
	}
	place->pid = pid;
	place->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (place->pidfd < 0)
		return prb_error_os(errno, "cannot watch process %d", (int)pid);
	prb_instance_print(pid, prb_instance_start(pid), place->id);
	return prb_str_copy(place->id, &place->name);
}

/** Each rank that is saved in a bundle is a target. */
static struct prb_error *add_bundle(struct prb_served *served, const char *path)
{
	enum { MOST = 4096 };
	prb_auto_bundle struct prb_bundle bundle = PRB_NO_BUNDLE;
	const struct prb_bundle_member *member;
	size_t count = 0;

	PRB_TRY(prb_bundle_open(path, &bundle));
	prb_vec_each (member, &bundle.members)
		count += member->kind == PRB_BUNDLE_SNAPSHOT;
	if (!count)
		return prb_error_create(PRB_ERROR_NOT_FOUND, "%s has no snapshot", path);
	if (count > MOST)
		return prb_error_hint(
			prb_error_create(PRB_ERROR_USAGE, "%s has snapshots of %zu ranks", path,
					 count),
			"no more than %d are served: name some, as '%s/0'", MOST, path);
	prb_vec_each (member, &bundle.members) {
		prb_auto_free char *name = prb_format("%s/%ld", path, member->number);

		if (!name)
			return prb_error_nomem();
		if (member->kind != PRB_BUNDLE_SNAPSHOT)
			continue;
		PRB_TRY(add(served, name));
		PRB_TRY(prb_str_copy(path, &served->named.items[served->named.count - 1].bundle));
	}
	return NULL;
}

struct prb_error *prb_served_init(struct prb_served *served, const struct prb_texts *targets,
				  const struct prb_core_places *places)
{
	if (places)
		served->places = *places;
	if (!targets->count)
		PRB_TRY(prb_spec_refuse_places("a process", &served->places));
	for (size_t i = 0; i < targets->count; i++)
		PRB_TRY(prb_bundle_probe(targets->items[i]) ? add_bundle(served, targets->items[i])
							    : add(served, targets->items[i]));
	return NULL;
}

static bool has_ended(const struct prb_served_target *t)
{
	struct pollfd process = {.fd = t->pidfd, .events = POLLIN};

	return t->pidfd >= 0 && poll(&process, 1, 0) > 0;
}

static bool is_pid(const char *id)
{
	size_t length = strspn(id, "0123456789");

	return length && length < 10 && !id[length] && id[0] != '0';
}

static bool is_process(const char *id)
{
	uint64_t start;
	pid_t pid;

	return is_pid(id) || prb_instance_parse(id, &pid, &start);
}

/** True if a client means this one: a pid alone is enough. */
static bool is_meant(const struct prb_served_target *t, const char *id)
{
	return !strcmp(t->id, id) || (t->pid && is_pid(id) && atoi(id) == t->pid);
}

static struct prb_error *no_target(const char *id)
{
	return prb_error_hint(
		prb_error_create(PRB_ERROR_NO_PROCESS, "no target '%.20s' is served here", id),
		"/v1/targets lists them");
}

static struct prb_error *find(const struct prb_served *served, const char *id,
			      const struct prb_served_target **ret)
{
	if (!*id && served->named.count == 1)
		id = served->named.items[0].id;
	if (!*id)
		return prb_error_hint(prb_error_create(PRB_ERROR_USAGE, "no target is given"),
				      "say which process is meant: pid=PID");
	for (size_t i = 0; i < served->named.count; i++) {
		*ret = &served->named.items[i];
		if (!is_meant(*ret, id))
			continue;
		if (has_ended(*ret))
			return prb_error_create(PRB_ERROR_NO_PROCESS, "process %d has ended",
						(int)(*ret)->pid);
		return NULL;
	}
	*ret = NULL;
	return served->named.count || !is_process(id) ? no_target(id) : NULL;
}

void prb_served_settle(const struct prb_served *served, char id[PRB_INSTANCE_SIZE])
{
	const struct prb_served_target *target = NULL;
	prb_auto_error struct prb_error *err = *id ? find(served, id, &target) : NULL;

	if (target)
		snprintf(id, PRB_INSTANCE_SIZE, "%s", target->id);
	else if (!err && is_pid(id))
		prb_instance_print((pid_t)atoi(id), prb_instance_start((pid_t)atoi(id)), id);
}

/** Where the files of core files are. */
static struct prb_error *add_places(const struct prb_served *served, struct prb_words *words)
{
	const struct {
		const char *name, *value;
	} options[] = {{"exe", served->places.exe},
		       {"sysroot", served->places.sysroot},
		       {"library-path", served->places.library_path}};

	for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++)
		if (options[i].value)
			PRB_TRY(prb_words_add(words, "--%s=%s", options[i].name, options[i].value));
	return NULL;
}

struct prb_error *prb_served_words(const struct prb_served *served, const char *id,
				   struct prb_words *words)
{
	const struct prb_served_target *target;

	PRB_TRY(find(served, id, &target));
	PRB_TRY(prb_words_add(words, "--target=%s", target ? target->name : id));
	return add_places(served, words);
}

struct prb_error *prb_served_word(const struct prb_served *served, const char *id,
				  struct prb_words *words)
{
	const struct prb_served_target *target;

	PRB_TRY(find(served, id, &target));
	return prb_words_add(words, "%s", target ? target->name : id);
}

struct prb_error *prb_served_words_all(const struct prb_served *served, struct prb_words *words)
{
	size_t there = 0;

	if (!served->named.count)
		return prb_words_add(words, "--all");
	for (size_t i = 0; i < served->named.count; i++) {
		if (has_ended(&served->named.items[i]))
			continue;
		there++;
		PRB_TRY(prb_words_add(words, "--target=%s", served->named.items[i].name));
	}
	if (!there)
		return prb_error_create(PRB_ERROR_NO_PROCESS, "all processes that were served have "
							      "ended");
	return add_places(served, words);
}

struct prb_error *prb_served_words_processes(const struct prb_served *served,
					     struct prb_words *words)
{
	const struct prb_served_target *t;
	size_t there = 0;

	prb_vec_each (t, &served->named) {
		if (!t->pid || has_ended(t))
			continue;
		there++;
		PRB_TRY(prb_words_add(words, "--target=%s", t->name));
	}
	return there || !served->named.count
		       ? NULL
		       : prb_error_create(PRB_ERROR_NO_PROCESS, "no process that runs is served");
}

/** Chooses, where no target is: any process, or else a rank of the only bundle. */
static struct prb_error *choose_job(const struct prb_served *served,
				    const struct prb_served_target **ret)
{
	const struct prb_served_target *rank = NULL, *t;

	prb_vec_each (t, &served->named) {
		if (t->pid) {
			*ret = NULL;
			return NULL;
		}
		if (!t->bundle)
			continue;
		if (rank && strcmp(rank->bundle, t->bundle) != 0)
			return prb_error_hint(
				prb_error_create(PRB_ERROR_USAGE, "several jobs are served here"),
				"choose one by a rank: target=%s or target=%s", rank->id, t->id);
		rank = t;
	}
	*ret = rank;
	return rank ? NULL
		    : prb_error_create(PRB_ERROR_NOT_FOUND, "no rank of a job is served here");
}

struct prb_error *prb_served_words_merge(struct prb_words *words, const char *action,
					 const char *const *flags)
{
	PRB_TRY(prb_words_add(words, "cluster"));
	PRB_TRY(prb_words_add(words, "%s", action));
	PRB_TRY(prb_words_add(words, "--json"));
	return prb_words_add_ours(words, flags);
}

/** Appends the words before JOB. */
static struct prb_error *add_job_action(const struct prb_served *served, bool bundle,
					const char *const *flags, struct prb_words *words)
{
	bool some = served->named.count && !bundle;

	for (size_t i = 0; some && i < served->named.count; i++) {
		const struct prb_served_target *t = &served->named.items[i];

		if (!t->pid || has_ended(t))
			continue;
		PRB_TRY(prb_words_add(words, "--target=%s", t->name));
	}
	if (some && !words->list.count)
		return prb_error_create(PRB_ERROR_NO_PROCESS, "all processes that were served have "
							      "ended");
	PRB_TRY(prb_served_words_merge(words, some ? "served" : "dump", flags));
	return prb_words_add(words, "--");
}

struct prb_error *prb_served_words_job(const struct prb_served *served, const char *id,
				       const char *const *flags, struct prb_words *words)
{
	const struct prb_served_target *target = NULL;

	if (*id)
		PRB_TRY(find(served, id, &target));
	else if (served->named.count)
		PRB_TRY(choose_job(served, &target));
	if (target && !target->pid && !target->bundle)
		return prb_error_create(PRB_ERROR_NOT_FOUND, "target '%s' is no rank of a job", id);
	PRB_TRY(add_job_action(served, target && target->bundle, flags, words));
	if (target && target->bundle)
		return prb_words_add(words, "%s", target->bundle);
	return *id ? prb_words_add(words, "%d", (int)prb_served_pid(served, id)) : NULL;
}

struct prb_error *prb_served_check(const struct prb_served *served, const char *id)
{
	const struct prb_served_target *target;
	uint64_t start;
	pid_t pid;

	PRB_TRY(find(served, id, &target));
	if (target || !prb_instance_parse(id, &pid, &start))
		return NULL;
	return prb_instance_check(pid, start);
}

pid_t prb_served_pid(const struct prb_served *served, const char *id)
{
	const struct prb_served_target *target = NULL;
	prb_auto_error struct prb_error *err = find(served, id, &target);

	if (err)
		return 0;
	return target ? target->pid : (pid_t)atoi(id);
}

/** The same process in what `list` has printed. Another one may have its pid by now. */
static json_t *listed(json_t *list, const struct prb_served_target *t)
{
	json_t *item, *id;
	size_t i;

	json_array_foreach(list, i, item)
	{
		id = json_object_get(item, "id");
		if (json_is_string(id) && !strcmp(json_string_value(id), t->id))
			return json_incref(item);
	}
	return NULL;
}

/** Describes a named target. */
static json_t *describe(const struct prb_served_target *t, json_t *list)
{
	json_t *item = t->pid ? listed(list, t) : NULL;

	if (!item && t->pid)
		item = json_pack("{s:i}", "pid", (int)t->pid);
	if (!item)
		item = json_pack("{s:s}", "file", t->name);
	if (!item)
		return NULL;
	json_object_set_new(item, "id", json_string(t->id));
	json_object_set_new(item, "kind", json_string(t->pid ? "process" : "file"));
	json_object_set_new(item, "ended", json_boolean(has_ended(t)));
	return item;
}

static json_t *describe_all(const struct prb_served *served, json_t *list)
{
	json_t *targets = json_array(), *item;
	size_t i;

	for (i = 0; i < served->named.count; i++)
		json_array_append_new(targets, describe(&served->named.items[i], list));
	if (served->named.count)
		return targets;
	json_array_foreach(list, i, item)
	{
		json_object_set_new(item, "kind", json_string("process"));
		json_object_set_new(item, "ended", json_false());
		json_array_append(targets, item);
	}
	return targets;
}

struct prb_error *prb_served_list(const struct prb_served *served, struct prb_str *text)
{
	json_t *list = json_loadb(prb_str_text(text), text->length, JSON_ALLOW_NUL, NULL);
	json_t *answer = list ? json_pack("{s:o}", "targets", describe_all(served, list)) : NULL;
	char *dumped = answer ? json_dumps(answer, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;

	prb_str_truncate(text, 0);
	if (dumped)
		prb_str_puts(text, dumped);
	free(dumped);
	json_decref(answer);
	json_decref(list);
	return text->length ? NULL
			    : prb_error_create(PRB_ERROR_BAD_DATA,
					       "the list of processes cannot be understood");
}

/** With the fields of all others, so that clients need no checks. */
static json_t *describe_ended(const struct prb_served_target *t)
{
	static const char *const UNKNOWN[] = {
		"file", "version",    "rank",	     "unreadable", "threads",	 "cpu_seconds",
		"rss",	"swap",	      "cpu_percent", "limit",	   "limit_used", "main",
		"step", "gil_holder", "ppid",	     "user",	   "job"};
	json_t *item = json_pack("{s:s, s:s, s:i, s:b, s:[], s:i, s:[s]}", "id", t->id, "kind",
				 "process", "pid", (int)t->pid, "ended", 1, "argv", "gil_waiters",
				 0, "troubles", "has ended");

	for (size_t i = 0; i < PRB_ARRAY_SIZE(UNKNOWN); i++)
		json_object_set_new(item, UNKNOWN[i], json_null());
	return item;
}

static void add_ended(const struct prb_served *served, json_t *targets)
{
	for (size_t i = 0; i < served->named.count; i++) {
		const struct prb_served_target *t = &served->named.items[i];
		json_t *item = t->pid && has_ended(t) ? listed(targets, t) : NULL;

		if (!item && t->pid && has_ended(t))
			json_array_append_new(targets, describe_ended(t));
		json_decref(item);
	}
}

struct prb_error *prb_served_overview(const struct prb_served *served, struct prb_str *text)
{
	if (!served->named.count)
		return NULL;
	json_t *look = json_loadb(prb_str_text(text), text->length, JSON_ALLOW_NUL, NULL);
	json_t *targets = json_object_get(look, "targets");
	char *dumped = NULL;

	if (json_is_array(targets)) {
		add_ended(served, targets);
		dumped = json_dumps(look, JSON_COMPACT | JSON_ENSURE_ASCII);
	}
	prb_str_truncate(text, 0);
	if (dumped)
		prb_str_puts(text, dumped);
	free(dumped);
	json_decref(look);
	return text->length
		       ? NULL
		       : prb_error_create(PRB_ERROR_BAD_DATA, "the overview cannot be understood");
}

const char *prb_served_recording(const struct prb_served *served, const char *id)
{
	for (size_t i = 0; i < served->named.count; i++)
		if (served->named.items[i].recording && !strcmp(served->named.items[i].id, id))
			return served->named.items[i].name;
	return NULL;
}

void prb_served_put_recordings(const struct prb_served *served, struct prb_json *json)
{
	for (size_t i = 0; i < served->named.count; i++) {
		const struct prb_served_target *t = &served->named.items[i];

		if (!t->recording)
			continue;
		prb_json_open(json, NULL, '{');
		prb_json_text(json, "id", t->id);
		prb_json_text(json, "target", t->id);
		prb_json_text(json, "file", t->name);
		prb_json_null(json, "name");
		prb_json_null(json, "note");
		prb_json_null(json, "started");
		prb_json_null(json, "duration");
		prb_json_text(json, "state", "finished");
		prb_json_bool(json, "stopped", false);
		prb_json_null(json, "error");
		prb_json_close(json, '}');
	}
}

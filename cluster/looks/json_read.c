/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/pool.h"
#include "base/text.h"
#include "cluster/looks/call.h"
#include "cluster/looks/flight.h"
#include "cluster/looks/look.h"
#include "cluster/looks/pace_spots.h"
#include "cluster/looks/json_private.h"

enum {
	MAX_RANKS = 1 << 20,
	MAX_NUMBER = 1 << 22,  /* of a rank; a process of no job has its pid */
	MAX_THREADS = 1 << 16, /* of a rank */
	MAX_LOOKS = 1 << 30,   /* at a rank, counted */
	MAX_FRAMES = 1 << 16,  /* of a thread */
	MAX_LISTED = 1 << 20,  /* frames of a document */
};

/** A rank, as reported by a host. */
struct told {
	struct prb_rank rank;
	struct prb_seen seen;
	size_t order; /**< of arrival */
	bool claimed; /**< its snapshot is kept */
};

struct prb_looks {
	PRB_VEC(struct told) list;
	char *job;
	struct prb_pool *pool; /**< texts of the dumps, names of hosts */
	long world_size;
	uid_t uid;
	double span;
	PRB_VEC(struct prb_dump_frame) frames; /**< of the document that is being read */
	size_t before_last; /**< items of the list before the last host was added */
	bool master_only;   /**< so far, only a rank 0 that calls itself by a loopback address */
	bool lacking;	    /**< a host has not answered */
	char *end;	    /**< why ranks are nowhere, or NULL */
	struct prb_silents silent;
};

static void told_deinit(struct told *told)
{
	free(told->rank.command);
	free(told->rank.role);
	prb_seen_deinit(&told->seen);
}

struct prb_error *prb_looks_create(struct prb_looks **ret)
{
	struct prb_looks *looks = calloc(1, sizeof(*looks));

	if (!looks)
		return prb_error_nomem();
	looks->world_size = -1;
	*ret = looks;
	return prb_pool_create(&looks->pool);
}

void prb_looks_destroy(struct prb_looks *looks)
{
	struct prb_silent *silent;
	struct told *told;

	if (!looks)
		return;
	prb_vec_each (told, &looks->list)
		told_deinit(told);
	prb_vec_free(&looks->list);
	prb_vec_free(&looks->frames);
	prb_pool_destroy(looks->pool);
	free(looks->job);
	free(looks->end);
	prb_vec_each (silent, &looks->silent.list) {
		free(silent->host);
		free(silent->why);
	}
	prb_vec_free(&looks->silent.list);
	free(looks);
}

struct prb_error *prb_looks_note_end(struct prb_looks *looks, const char *why)
{
	free(prb_steal(&looks->end));
	return prb_str_copy(why, &looks->end);
}

const struct prb_silents *prb_looks_silent(const struct prb_looks *looks)
{
	return &looks->silent;
}

void prb_looks_lack(struct prb_looks *looks)
{
	looks->lacking = true;
}

static const char *text_of(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

static long integer_of(const json_t *object, const char *key, long otherwise)
{
	const json_t *value = json_object_get(object, key);

	return json_is_integer(value) ? (long)json_integer_value(value) : otherwise;
}

/** True if the document is what prb_looks_write() writes; @p named: with the name of its host. */
static bool is_valid(const json_t *document, bool named)
{
	const json_t *ranks = json_object_get(document, "ranks"), *rank;
	size_t i;

	long format = integer_of(document, "format", 0);

	if (format < PRB_LOOKS_FORMAT_FRAMES || format > PRB_LOOKS_FORMAT ||
	    !text_of(document, "job") || !json_is_array(ranks) ||
	    json_array_size(ranks) > MAX_RANKS || (!named && json_object_get(document, "host")))
		return false;
	json_array_foreach((json_t *)ranks, i, rank)
	{
		long number = integer_of(rank, "rank", -1);

		if (number < 0 || number > MAX_NUMBER || integer_of(rank, "pid", -1) < 0)
			return false;
	}
	return true;
}

/** Escaped, as command lines of this machine are. */
static struct prb_error *read_command(const json_t *rank, char **ret)
{
	prb_auto_str struct prb_str text = {};
	const char *command = text_of(rank, "command");

	prb_text_escape(&text, command ? command : "");
	*ret = prb_str_take(&text);
	return *ret ? NULL : prb_error_nomem();
}

static struct prb_error *share(struct prb_pool *pool, const json_t *object, const char *key,
			       const char **ret)
{
	const char *text = text_of(object, key);

	*ret = NULL;
	return text ? prb_pool_share(pool, text, ret) : NULL;
}

static struct prb_error *read_frame(struct prb_pool *pool, const json_t *value,
				    struct prb_dump_frame *frame)
{
	long kind = integer_of(value, "kind", PRB_FRAME_PYTHON);

	frame->kind = kind == PRB_FRAME_NATIVE || kind == PRB_FRAME_INLINE
			      ? (enum prb_frame_kind)kind
			      : PRB_FRAME_PYTHON;
	frame->line = (int32_t)integer_of(value, "line", -1);
	frame->ip = (uint64_t)integer_of(value, "ip", 0);
	PRB_TRY(share(pool, value, "func", &frame->func));
	PRB_TRY(share(pool, value, "qualname", &frame->qualname));
	PRB_TRY(share(pool, value, "module", &frame->module));
	return share(pool, value, "file", &frame->file);
}

/** A frame of a thread: its number in the document's list, or the frame itself. */
static struct prb_error *take_frame(struct prb_looks *looks, const json_t *value,
				    struct prb_dump_frame *frame)
{
	json_int_t number = json_is_integer(value) ? json_integer_value(value) : -1;

	if (!json_is_integer(value))
		return read_frame(looks->pool, value, frame);
	if (number < 0 || (size_t)number >= looks->frames.count)
		return prb_error_create(PRB_ERROR_BAD_DATA, "a frame that is not in the list");
	*frame = looks->frames.items[number];
	return NULL;
}

/** Reads the list of frames, which threads have by their numbers. */
static struct prb_error *read_frames(struct prb_looks *looks, const json_t *list)
{
	const json_t *value;
	size_t i;

	looks->frames.count = 0;
	if (json_array_size(list) > MAX_LISTED)
		return prb_error_create(PRB_ERROR_BAD_DATA, "a list of over %d frames", MAX_LISTED);
	json_array_foreach((json_t *)list, i, value)
	{
		struct prb_dump_frame *place = prb_vec_push(&looks->frames);

		if (!place)
			return prb_error_nomem();
		*place = (struct prb_dump_frame){};
		PRB_TRY(read_frame(looks->pool, value, place));
	}
	return NULL;
}

static struct prb_error *read_thread(struct prb_looks *looks, const json_t *value,
				     struct prb_dump_thread *thread)
{
	struct prb_pool *pool = looks->pool;
	json_t *frames = json_object_get(value, "frames"), *frame;
	const json_t *idle = json_object_get(value, "idle");
	size_t i;

	thread->tid = (pid_t)integer_of(value, "tid", 0);
	thread->idle_seconds = json_is_number(idle) ? json_number_value(idle) : -1;
	PRB_TRY(prb_str_copy(text_of(value, "name"), &thread->name));
	PRB_TRY(prb_str_copy(text_of(value, "os_name"), &thread->os_name));
	PRB_TRY(prb_str_copy(text_of(value, "waits_for"), &thread->waits_for));
	PRB_TRY(prb_str_copy(text_of(value, "error"), &thread->error));
	PRB_TRY(prb_str_copy(text_of(value, "in_c"), &thread->in_c));
	PRB_TRY(share(pool, value, "gil", &thread->gil));
	PRB_TRY(share(pool, value, "state", &thread->state));
	if (!thread->state)
		thread->state = "unknown";
	if (json_array_size(frames) > MAX_FRAMES)
		return prb_error_create(PRB_ERROR_BAD_DATA, "a stack of over %d frames",
					MAX_FRAMES);
	json_array_foreach(frames, i, frame)
	{
		struct prb_dump_frame *place = prb_vec_push(&thread->frames);

		if (!place)
			return prb_error_nomem();
		PRB_TRY(take_frame(looks, frame, place));
	}
	return NULL;
}

static struct prb_error *read_dump(struct prb_looks *looks, const json_t *look,
				   struct prb_seen *seen)
{
	json_t *threads = json_object_get(look, "threads"), *value;
	pid_t main_tid = (pid_t)integer_of(look, "main", 0);
	size_t i;

	if (!json_array_size(threads) || json_array_size(threads) > MAX_THREADS)
		return NULL;
	seen->dump = calloc(1, sizeof(*seen->dump));
	if (!seen->dump)
		return prb_error_nomem();
	seen->dump->main_tid = main_tid;
	json_array_foreach(threads, i, value)
	{
		struct prb_dump_thread *thread = prb_vec_push(&seen->dump->threads);

		if (!thread)
			return prb_error_nomem();
		PRB_TRY(read_thread(looks, value, thread));
	}
	prb_seen_find(seen);
	return NULL;
}

static struct prb_error *read_pace(const json_t *value, struct prb_seen *seen)
{
	json_t *spots = json_object_get(value, "spots"), *count;
	long looks = integer_of(value, "looks", 0), waiting = integer_of(value, "waiting", 0);
	const char *name;

	if (!json_is_object(spots) || looks < 0 || looks > MAX_LOOKS || waiting < 0 ||
	    waiting > looks || json_object_size(spots) > PRB_MAX_SPOTS)
		return NULL;
	seen->pace = calloc(1, sizeof(*seen->pace));
	if (!seen->pace)
		return prb_error_nomem();
	seen->pace->looks = looks;
	seen->pace->waiting = waiting;
	seen->pace->seconds = json_number_value(json_object_get(value, "seconds"));
	seen->pace->steps = integer_of(value, "steps", -1);
	if (!(seen->pace->seconds > 0) || seen->pace->steps < 0)
		seen->pace->steps = -1;
	json_object_foreach(spots, name, count)
	{
		long times = json_is_integer(count) ? (long)json_integer_value(count) : 0;

		if (times > 0 && times <= looks)
			PRB_TRY(prb_pace_count(seen->pace, name, times));
	}
	return NULL;
}

static struct prb_error *read_call(const json_t *value, struct prb_seen *seen)
{
	long peer = integer_of(value, "peer", -1);

	if (!json_is_object(value))
		return NULL;
	seen->call = calloc(1, sizeof(*seen->call));
	if (!seen->call)
		return prb_error_nomem();
	seen->call->peer = peer >= 0 && peer <= MAX_RANKS ? peer : -1;
	seen->call->tag = integer_of(value, "tag", -1);
	seen->call->known = json_is_true(json_object_get(value, "known"));
	PRB_TRY(prb_str_copy(text_of(value, "group"), &seen->call->group));
	PRB_TRY(prb_str_copy(text_of(value, "members"), &seen->call->members));
	return prb_str_copy(text_of(value, "data"), &seen->call->data);
}

static enum prb_movement movement_of(const json_t *value)
{
	long number = integer_of(value, "movement", PRB_UNKNOWN);

	return number >= PRB_STILL && number <= PRB_UNKNOWN ? (enum prb_movement)number
							    : PRB_UNKNOWN;
}

static struct prb_error *read_seen(struct prb_looks *looks, const json_t *value,
				   struct prb_seen *seen)
{
	const char *state = text_of(value, "state"), *before = text_of(value, "state_before");

	seen->ran_ns = -1;
	seen->gone = json_is_true(json_object_get(value, "gone"));
	seen->state = state ? *state : 0;
	seen->state_before = before ? *before : 0;
	seen->movement = movement_of(value);
	seen->polls = json_is_true(json_object_get(value, "polls"));
	seen->entered = json_is_true(json_object_get(value, "entered"));
	PRB_TRY(prb_str_copy(text_of(value, "error"), &seen->error));
	PRB_TRY(prb_str_copy(text_of(value, "worker"), &seen->worker));
	PRB_TRY(prb_str_copy(text_of(value, "cycle"), &seen->cycle));
	PRB_TRY(prb_str_copy(text_of(value, "holder"), &seen->holder));
	PRB_TRY(prb_str_copy(text_of(value, "chain"), &seen->chain));
	seen->keeper = (pid_t)integer_of(value, "keeper", 0);
	seen->holds = json_is_true(json_object_get(value, "holds"));
	seen->guessed = json_is_true(json_object_get(value, "guessed"));
	PRB_TRY(prb_str_copy(text_of(value, "end"), &seen->end));
	PRB_TRY(prb_str_copy(text_of(value, "end_log"), &seen->end_log));
	seen->end_known = json_is_true(json_object_get(value, "end_known"));
	PRB_TRY(read_pace(value, seen));
	PRB_TRY(read_call(json_object_get(value, "call"), seen));
	PRB_TRY(prb_flight_take(json_object_get(value, "flight"), &seen->flight));
	PRB_TRY(prb_str_copy(text_of(value, "no_flight"), &seen->no_flight));
	return read_dump(looks, value, seen);
}

static struct prb_error *add_rank(struct prb_looks *looks, const char *host, const json_t *value)
{
	struct told *told = prb_vec_push(&looks->list);

	if (!told)
		return prb_error_nomem();
	told->order = looks->list.count;
	told->rank = (struct prb_rank){.rank = integer_of(value, "rank", -1),
				       .local_rank = integer_of(value, "local_rank", -1),
				       .pid = (pid_t)integer_of(value, "pid", 0),
				       .host = host};
	PRB_TRY(read_command(value, &told->rank.command));
	PRB_TRY(prb_str_copy(text_of(value, "role"), &told->rank.role));
	return read_seen(looks, value, &told->seen);
}

/**
 * True if the document has rank 0 alone of several, which calls its own machine "localhost", as in
 * a PyTorchJob of Kubernetes: the other ranks call that machine by its name.
 */
static bool is_master_only(const json_t *document, const char *job)
{
	json_t *ranks = json_object_get(document, "ranks"), *rank;
	bool only = true;
	size_t i;

	json_array_foreach(ranks, i, rank) only &=
		integer_of(rank, "rank", -1) == 0 || integer_of(rank, "pid", 0) == 0;
	return only && integer_of(document, "world_size", -1) > 1 && prb_job_is_of_one_machine(job);
}

static bool same_port(const char *a, const char *b)
{
	const char *x = strrchr(a, ':'), *y = strrchr(b, ':');

	return x && y && !strcmp(x, y);
}

static struct prb_error *name_job(struct prb_looks *looks, const json_t *document, const char *job)
{
	const bool master_only = is_master_only(document, job), first = !looks->job;
	bool same = first || !strcmp(looks->job, job);

	if (!same && looks->master_only != master_only && same_port(looks->job, job) &&
	    looks->world_size == integer_of(document, "world_size", -1)) {
		same = true;
		if (looks->master_only)
			free(prb_steal(&looks->job));
	}
	if (!same)
		return prb_error_hint(prb_error_create(PRB_ERROR_USAGE,
						       "the hosts have ranks of different jobs: "
						       "'%.200s' and '%.200s'",
						       looks->job, job),
				      "name one: probing cluster hang JOB --hosts …");
	looks->master_only = first ? master_only : looks->master_only && master_only;
	return looks->job ? NULL : prb_str_copy(job, &looks->job);
}

/** A host that has given no answer to whoever wrote the document. */
static struct prb_error *note_silent(struct prb_looks *looks, const char *host, const char *why)
{
	struct prb_silent *place = prb_vec_push(&looks->silent.list);

	if (!place)
		return prb_error_nomem();
	*place = (struct prb_silent){};
	looks->lacking = true;
	PRB_TRY(prb_str_copy(host ? host : "", &place->host));
	return prb_str_copy(why, &place->why);
}

static struct prb_error *add_document(struct prb_looks *looks, const char *host,
				      const json_t *document)
{
	json_t *ranks = json_object_get(document, "ranks"), *rank;
	const json_t *span = json_object_get(document, "span");
	const char *job = text_of(document, "job"), *silent = text_of(document, "error");
	size_t i;

	if (silent)
		PRB_TRY(note_silent(looks, host ? host : text_of(document, "host"), silent));
	if (!json_array_size(ranks))
		return NULL;
	PRB_TRY(name_job(looks, document, job));
	looks->uid = (uid_t)integer_of(document, "uid", 0);
	looks->world_size = PRB_MAX(looks->world_size, integer_of(document, "world_size", -1));
	looks->span = json_is_number(span) ? json_number_value(span) : looks->span;
	if (host || text_of(document, "host"))
		PRB_TRY(prb_pool_share(looks->pool, host ? host : text_of(document, "host"),
				       &host));
	PRB_TRY(read_frames(looks, json_object_get(document, "frames")));
	json_array_foreach(ranks, i, rank) PRB_TRY(add_rank(looks, host, rank));
	return NULL;
}

struct prb_error *prb_looks_add(struct prb_looks *looks, const char *host, const char *text,
				size_t length, char **why)
{
	size_t known = looks->list.count;
	struct prb_error *err = NULL;
	json_error_t problem;
	json_t *document;

	*why = NULL;
	looks->before_last = known;
	document = json_loadb(text ? text : "", length, JSON_REJECT_DUPLICATES, &problem);
	if (document && is_valid(document, !host))
		err = add_document(looks, host, document);
	else
		*why = strdup("its answer cannot be understood: another version?");
	json_decref(document);
	if (err && err->code == PRB_ERROR_BAD_DATA) {
		while (looks->list.count > known)
			told_deinit(&looks->list.items[--looks->list.count]);
		*why = strdup(err->message);
		prb_error_destroy(err);
		err = NULL;
	}
	looks->lacking |= *why != NULL;
	return err;
}

bool prb_looks_claim(struct prb_looks *looks, long rank)
{
	struct told *told;
	bool last = false;

	prb_vec_each (told, &looks->list) {
		if (told->rank.rank != rank || !told->rank.pid)
			continue;
		if (told->claimed)
			return false;
		if (told >= looks->list.items + looks->before_last)
			last = told->claimed = true;
	}
	return last;
}

static int by_rank(const void *a, const void *b)
{
	const struct told *x = a, *y = b;

	if (x->rank.rank != y->rank.rank)
		return x->rank.rank < y->rank.rank ? -1 : 1;
	/* A host that has the process comes before one that only misses it. */
	if (!x->rank.pid != !y->rank.pid)
		return x->rank.pid ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/** Two hosts have a process of that rank. A loopback address is of one host alone. */
static struct prb_error *note_double(const struct prb_looks *looks, struct prb_rank *kept,
				     const struct prb_rank *rank)
{
	/* Two names of one machine. */
	if (!rank->pid || (rank->pid == kept->pid && !strcmp(rank->command, kept->command)))
		return NULL;
	if (prb_job_is_of_one_machine(looks->job) && kept->host && rank->host)
		return prb_error_hint(prb_error_create(PRB_ERROR_USAGE,
						       "%.200s and %.200s have each a job '%.200s'",
						       kept->host, rank->host, looks->job),
				      "its address is that of one machine: ask one of them");
	kept->other = rank->pid;
	kept->other_host = rank->host;
	return NULL;
}

/** Leaves out ranks that another host has, too. */
static struct prb_error *drop_doubles(struct prb_looks *looks)
{
	size_t kept = 0;
	struct prb_error *err = NULL;

	for (size_t i = 0; i < looks->list.count; i++) {
		struct told *told = &looks->list.items[i];
		struct told *before = kept ? &looks->list.items[kept - 1] : NULL;

		if (!before || before->rank.rank != told->rank.rank) {
			looks->list.items[kept++] = *told;
			continue;
		}
		if (!err)
			err = note_double(looks, &before->rank, &told->rank);
		told_deinit(told);
	}
	looks->list.count = kept;
	return err;
}

/** Adds the ranks up to the job's size that no host has. */
/**
 * Ranks that no host has reported. A host reports the ranks that it has lost, if the launcher says
 * how many it must have.
 */
static struct prb_error *add_missing(struct prb_looks *looks, bool everywhere)
{
	const bool ended = looks->end && !looks->lacking;
	size_t known = looks->list.count, at = 0;

	for (long n = 0; n < PRB_MIN(looks->world_size, MAX_RANKS); n++) {
		struct told *told;

		while (at < known && looks->list.items[at].rank.rank < n)
			at++;
		if (at < known && looks->list.items[at].rank.rank == n)
			continue;
		told = prb_vec_push(&looks->list);
		if (!told)
			return prb_error_nomem();
		told->rank = (struct prb_rank){.rank = n, .local_rank = -1};
		told->seen = (struct prb_seen){.ran_ns = -1,
					       .gone = !looks->lacking,
					       .unasked = !looks->lacking && !everywhere && !ended,
					       .end_known = ended,
					       .movement = PRB_UNKNOWN};
		if (ended)
			PRB_TRY(prb_str_copy(looks->end, &told->seen.end));
		else if (looks->lacking || !everywhere)
			PRB_TRY(prb_str_copy(looks->lacking ? "no host that answered has it"
							    : "no host that was asked has it",
					     &told->seen.error));
	}
	qsort(looks->list.items, looks->list.count, sizeof(*looks->list.items), by_rank);
	return NULL;
}

/** The ranks first: what was seen of them points there. */
static struct prb_error *hand_over(struct prb_looks *looks, struct prb_job *job,
				   struct prb_round *round)
{
	if (!prb_vec_reserve(&job->ranks, looks->list.count) ||
	    !prb_vec_reserve(&round->list, looks->list.count))
		return prb_error_nomem();
	for (size_t i = 0; i < looks->list.count; i++) {
		job->ranks.items[i] = looks->list.items[i].rank;
		round->list.items[i] = looks->list.items[i].seen;
		round->list.items[i].rank = &job->ranks.items[i];
	}
	job->ranks.count = round->list.count = looks->list.count;
	looks->list.count = 0;
	round->pool = prb_steal(&looks->pool);
	round->span = looks->span;
	job->name = prb_steal(&looks->job);
	job->uid = looks->uid;
	job->world_size = looks->world_size;
	job->complete = job->world_size > 0 && !looks->lacking;
	return NULL;
}

struct prb_error *prb_looks_finish(struct prb_looks *looks, bool everywhere, struct prb_job *job,
				   struct prb_round *round)
{
	if (!looks->list.count)
		return prb_error_hint(
			prb_error_create(PRB_ERROR_NOT_FOUND, "no host has a rank of the job"),
			"its ranks may have ended, or be another user's; JOB, if given, is a part "
			"of its name");
	qsort(looks->list.items, looks->list.count, sizeof(*looks->list.items), by_rank);
	PRB_TRY(drop_doubles(looks));
	PRB_TRY(add_missing(looks, everywhere));
	return hand_over(looks, job, round);
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/pool.h"
#include "base/text.h"
#include "cluster/wire.h"

enum {
	MAX_RANKS = 1 << 20,
	MAX_THREADS = 1 << 16, /* of a rank */
	MAX_FRAMES = 1 << 16,  /* of a thread */
};

/** A rank as a host told of it. */
struct told {
	struct prb_answer *answer;
	json_t *value; /**< borrowed from the document; NULL: no host has this rank */
	struct prb_rank rank;
};

struct merger {
	PRB_VEC(json_t *) documents; /**< one for each answer; NULL where there is none */
	PRB_VEC(struct told) list;
	const char *job; /**< borrowed */
	size_t count;	 /**< looks */
	bool incomplete; /**< a host has not answered */
};

static void merger_deinit(struct merger *m)
{
	json_t **document;
	struct told *told;

	prb_vec_each (told, &m->list)
		free(told->rank.command);
	prb_vec_each (document, &m->documents)
		json_decref(*document);
	prb_vec_free(&m->documents);
	prb_vec_free(&m->list);
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

/** True if the document is what prb_looks_write() writes, with @p count looks at each rank. */
static bool is_valid(const json_t *document, size_t count)
{
	const json_t *ranks = json_object_get(document, "ranks"), *rank;
	size_t i;

	if (!text_of(document, "job") || !json_is_array(ranks) ||
	    json_array_size(json_object_get(document, "times")) != count ||
	    json_array_size(ranks) > MAX_RANKS)
		return false;
	json_array_foreach((json_t *)ranks, i, rank)
	{
		long number = integer_of(rank, "rank", -1);

		if (number < 0 || number > MAX_RANKS ||
		    json_array_size(json_object_get(rank, "looks")) != count)
			return false;
	}
	return true;
}

static struct prb_error *parse(struct merger *m, struct prb_answer *answer)
{
	json_t **place = prb_vec_push(&m->documents);
	json_error_t problem;

	if (!place)
		return prb_error_nomem();
	if (!answer->error)
		*place = json_loadb(answer->out.data ? answer->out.data : "", answer->out.length, 0,
				    &problem);
	if (*place && !is_valid(*place, m->count)) {
		json_decref(*place);
		*place = NULL;
	}
	if (!*place && !answer->error &&
	    !(answer->error = strdup("its answer cannot be understood: another version?")))
		return prb_error_nomem();
	m->incomplete |= !*place;
	return NULL;
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

static struct prb_error *add_ranks(struct merger *m, struct prb_answer *answer,
				   const json_t *document)
{
	const char *job = text_of(document, "job");
	json_t *ranks = json_object_get(document, "ranks"), *rank;
	size_t i;

	if (!json_array_size(ranks))
		return NULL;
	if (m->job && strcmp(m->job, job) != 0)
		return prb_error_hint(prb_error_create(PRB_ERROR_USAGE,
						       "the hosts have ranks of different jobs: "
						       "'%.200s' and '%.200s'",
						       m->job, job),
				      "name one: probing cluster hang JOB --hosts …");
	m->job = job;
	json_array_foreach(ranks, i, rank)
	{
		struct told *told = prb_vec_push(&m->list);

		if (!told)
			return prb_error_nomem();
		*told = (struct told){.answer = answer,
				      .value = rank,
				      .rank = {.rank = integer_of(rank, "rank", -1),
					       .local_rank = integer_of(rank, "local_rank", -1),
					       .pid = (pid_t)integer_of(rank, "pid", 0),
					       .host = answer->host}};
		PRB_TRY(read_command(rank, &told->rank.command));
	}
	return NULL;
}

static int by_rank(const void *a, const void *b)
{
	const struct told *x = a, *y = b;

	if (x->rank.rank != y->rank.rank)
		return x->rank.rank < y->rank.rank ? -1 : 1;
	/* A host that has the process comes before one that only misses it. */
	return (x->rank.pid == 0) - (y->rank.pid == 0);
}

static void drop_doubles(struct merger *m)
{
	size_t kept = 0;

	for (size_t i = 0; i < m->list.count; i++) {
		if (kept && m->list.items[kept - 1].rank.rank == m->list.items[i].rank.rank) {
			free(m->list.items[i].rank.command);
			continue;
		}
		m->list.items[kept++] = m->list.items[i];
	}
	m->list.count = kept;
}

/** Adds the ranks up to the job's size that no host has. */
static struct prb_error *add_missing(struct merger *m, long world_size)
{
	size_t known = m->list.count, at = 0;

	for (long n = 0; n < PRB_MIN(world_size, MAX_RANKS); n++) {
		struct told *told;

		while (at < known && m->list.items[at].rank.rank < n)
			at++;
		if (at < known && m->list.items[at].rank.rank == n)
			continue;
		told = prb_vec_push(&m->list);
		if (!told)
			return prb_error_nomem();
		told->rank = (struct prb_rank){.rank = n, .local_rank = -1};
	}
	if (m->list.count)
		qsort(m->list.items, m->list.count, sizeof(*m->list.items), by_rank);
	return NULL;
}

static struct prb_error *share(struct prb_dump *dump, const json_t *object, const char *key,
			       const char **ret)
{
	const char *text = text_of(object, key);

	*ret = NULL;
	return text ? prb_pool_share(dump->pool, text, ret) : NULL;
}

static struct prb_error *read_frame(struct prb_dump *dump, const json_t *value,
				    struct prb_dump_frame *frame)
{
	long kind = integer_of(value, "kind", PRB_FRAME_PYTHON);

	frame->kind = kind == PRB_FRAME_NATIVE || kind == PRB_FRAME_INLINE
			      ? (enum prb_frame_kind)kind
			      : PRB_FRAME_PYTHON;
	frame->line = (int32_t)integer_of(value, "line", -1);
	frame->ip = (uint64_t)integer_of(value, "ip", 0);
	PRB_TRY(share(dump, value, "func", &frame->func));
	PRB_TRY(share(dump, value, "qualname", &frame->qualname));
	PRB_TRY(share(dump, value, "module", &frame->module));
	return share(dump, value, "file", &frame->file);
}

static struct prb_error *read_thread(struct prb_dump *dump, const json_t *value,
				     struct prb_dump_thread *thread)
{
	json_t *frames = json_object_get(value, "frames"), *frame;
	const json_t *idle = json_object_get(value, "idle");
	size_t i;

	thread->tid = (pid_t)integer_of(value, "tid", 0);
	thread->idle_seconds = json_is_number(idle) ? json_number_value(idle) : -1;
	PRB_TRY(prb_str_copy(text_of(value, "name"), &thread->name));
	PRB_TRY(prb_str_copy(text_of(value, "os_name"), &thread->os_name));
	PRB_TRY(prb_str_copy(text_of(value, "waits_for"), &thread->waits_for));
	PRB_TRY(prb_str_copy(text_of(value, "error"), &thread->error));
	PRB_TRY(share(dump, value, "gil", &thread->gil));
	PRB_TRY(share(dump, value, "state", &thread->state));
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
		PRB_TRY(read_frame(dump, frame, place));
	}
	return NULL;
}

static struct prb_error *read_dump(const json_t *look, struct prb_seen *seen)
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
	PRB_TRY(prb_pool_create(&seen->dump->pool));
	json_array_foreach(threads, i, value)
	{
		struct prb_dump_thread *thread = prb_vec_push(&seen->dump->threads);

		if (!thread)
			return prb_error_nomem();
		PRB_TRY(read_thread(seen->dump, value, thread));
	}
	prb_seen_find(seen);
	return NULL;
}

static struct prb_error *read_look(const struct merger *m, const struct told *told, size_t n,
				   struct prb_seen *seen)
{
	const json_t *look = json_array_get(json_object_get(told->value, "looks"), n);
	const char *state = text_of(look, "state");

	seen->ran_ns = -1;
	if (!told->value) {
		seen->gone = !m->incomplete;
		return m->incomplete ? prb_str_copy("no host that answered has it", &seen->error)
				     : NULL;
	}
	seen->gone = json_is_true(json_object_get(look, "gone"));
	seen->state = state ? *state : 0;
	seen->ran_ns = integer_of(look, "ran_ns", -1);
	PRB_TRY(prb_str_copy(text_of(look, "error"), &seen->error));
	PRB_TRY(prb_str_copy(text_of(look, "worker"), &seen->worker));
	return read_dump(look, seen);
}

/** The time of a look is the same for all hosts as far as it matters: their lengths are. */
static double time_of(const struct merger *m, size_t n)
{
	json_t *const *document;

	prb_vec_each (document, &m->documents)
		if (*document)
			return json_number_value(
				json_array_get(json_object_get(*document, "times"), n));
	return 0;
}

static struct prb_error *fill(struct merger *m, struct prb_job *job, struct prb_round *rounds)
{
	struct told *told;

	prb_vec_each (told, &m->list) {
		struct prb_rank *rank = prb_vec_push(&job->ranks);

		if (!rank)
			return prb_error_nomem();
		*rank = told->rank;
		told->rank.command = NULL;
	}
	for (size_t n = 0; n < m->count; n++) {
		rounds[n].seconds = time_of(m, n);
		for (size_t i = 0; i < m->list.count; i++) {
			struct prb_seen *seen = prb_vec_push(&rounds[n].list);

			if (!seen)
				return prb_error_nomem();
			seen->rank = &job->ranks.items[i];
			PRB_TRY(read_look(m, &m->list.items[i], n, seen));
		}
	}
	return NULL;
}

static struct prb_error *merge(struct merger *m, struct prb_answers *answers, struct prb_job *job,
			       struct prb_round *rounds)
{
	struct prb_answer *answer;

	job->world_size = -1;
	prb_vec_each (answer, &answers->list)
		PRB_TRY(parse(m, answer));
	for (size_t i = 0; i < m->documents.count; i++) {
		if (!m->documents.items[i])
			continue;
		PRB_TRY(add_ranks(m, &answers->list.items[i], m->documents.items[i]));
		job->world_size = PRB_MAX(job->world_size,
					  integer_of(m->documents.items[i], "world_size", -1));
	}
	if (!m->list.count)
		return prb_error_create(PRB_ERROR_NOT_FOUND, "no host has a rank of the job");
	PRB_TRY(prb_str_copy(m->job, &job->name));
	qsort(m->list.items, m->list.count, sizeof(*m->list.items), by_rank);
	drop_doubles(m);
	PRB_TRY(add_missing(m, job->world_size));
	job->complete = job->world_size > 0 && !m->incomplete;
	return fill(m, job, rounds);
}

struct prb_error *prb_looks_merge(struct prb_answers *answers, struct prb_job *job,
				  struct prb_round *rounds, size_t count)
{
	__attribute__((cleanup(merger_deinit))) struct merger m = {.count = count};

	return merge(&m, answers, job, rounds);
}

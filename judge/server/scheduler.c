/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A scheduler whose requests do not go on: by its workers, or since none can be admitted. */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "judge/server/private.h"

enum { MOST_LINES = 8 };

/** What its requests do. */
struct load {
	size_t waiting, running, held, transfer, grammar, done, sessions;
	size_t keeping;				    /* of the waiting ones: that have blocks */
	double oldest, oldest_waiting, oldest_held; /* seconds; -1: none, or not known */
	const struct prb_server_request *head;	    /* the first that waits */
	const char *held_state;
};

/** How long no token was made; 0: nothing notes it. */
static double silence(const struct prb_server_looks *looks)
{
	double silent = prb_server_silent(looks);

	return silent >= 0 ? silent : 0;
}

/** A step may take longer than the time between two looks: without times of tokens it is a guess.
 */
static enum prb_confidence confidence(const struct prb_server_looks *looks)
{
	return silence(looks) >= prb_limit(PRB_LIMIT_REQUEST) ? PRB_CONFIDENCE_MEDIUM
							      : PRB_CONFIDENCE_LOW;
}

static void note_age(double age, double *oldest)
{
	if (age > *oldest)
		*oldest = age;
}

static struct load weigh(const struct prb_server_looks *looks, const struct prb_server_process *s)
{
	struct load load = {.oldest = -1, .oldest_waiting = -1, .oldest_held = -1};
	const struct prb_engine_part *part = s->part;
	const struct prb_server_request *request;

	prb_vec_each (request, &s->requests) {
		double age = prb_server_age(looks, request);
		bool transfer = prb_server_is_in(request, part->transfer_states.items,
						 part->transfer_states.count);
		bool grammar = prb_server_is_in(request, part->grammar_states.items,
						part->grammar_states.count);
		bool runs = (request->queue && !strcmp(request->queue, "running")) ||
			    (request->state && !strcmp(request->state, "RUNNING"));

		if (prb_server_is_done(request, part)) {
			load.done++;
			continue;
		}
		if (prb_server_is_in(request, part->client_states.items,
				     part->client_states.count)) {
			load.sessions++;
			continue;
		}
		note_age(age, &load.oldest);
		load.transfer += transfer;
		load.grammar += grammar;
		load.running += runs;
		if (transfer || grammar) {
			load.held++;
			load.held_state = request->state ? request->state : request->queue;
			note_age(age, &load.oldest_held);
		} else if (!runs) {
			load.head = load.head ? load.head : request;
			load.waiting++;
			load.keeping += request->blocks > 0;
			note_age(age, &load.oldest_waiting);
		}
	}
	return load;
}

/** Appends " and has not read 10 messages of the ring in shared memory", if it has not. */
static struct prb_error *put_unread(const struct prb_server_verdict *v,
				    const struct prb_server_process *s,
				    const struct prb_server_process *worker)
{
	struct prb_str *text = &v->finding->sentence;
	int64_t unread;

	/* All objects of both are searched: not for a suspicion. */
	if (!v->looks->twice)
		return NULL;
	PRB_TRY(prb_server_unread(s, worker, &unread));
	if (unread <= 0)
		return NULL;
	prb_str_puts(text, " and has not read ");
	prb_server_put_count(text, (size_t)unread, "message");
	prb_str_puts(text, " of the ring in shared memory");
	return NULL;
}

/** How old requests may be before what this process does is a reason for it. */
static double patience(const struct prb_server_process *p)
{
	return prb_limit(p->activity == PRB_ENGINE_LOAD ? PRB_LIMIT_LOADING : PRB_LIMIT_REQUEST);
}

/** The sentence about the worker that does not answer; @p idle of @p count wait for work. */
static struct prb_error *put_late(struct prb_server_verdict *v, const struct prb_server_process *s,
				  const struct prb_server_process *late, size_t idle, size_t count)
{
	struct prb_str *text = &v->finding->sentence;

	prb_server_put(text, late);
	prb_str_puts(text, v->finding->confidence == PRB_CONFIDENCE_LOW ? " has not answered yet"
									: " does not answer");
	PRB_TRY(put_unread(v, s, late));
	prb_str_puts(text, ": it is ");
	prb_server_put_doing(text, late);
	if (v->looks->twice)
		prb_server_put_spinning(text, late);
	prb_str_puts(text, "; ");
	prb_server_put(text, s);
	prb_str_puts(text, " waits for it");
	if (idle)
		prb_str_printf(text, ", and %zu of %zu workers wait for work", idle, count);
	prb_str_puts(&v->finding->wrong_if,
		     "a step takes that long; where a GPU kernel spins, the Python frame is its "
		     "victim");
	return NULL;
}

/** The scheduler waits for an answer: the worker that does not give it, or all of them have. */
static struct prb_error *judge_reply(struct prb_server_verdict *v,
				     const struct prb_server_process *s, const struct load *load)
{
	const struct prb_server_process *worker = NULL, *late = NULL;
	size_t count = 0, idle = 0, unknown = 0;
	enum prb_confidence sure = confidence(v->looks);
	struct prb_str *text;

	while ((worker = prb_server_next(&v->looks->now, PRB_ENGINE_WORKER, worker))) {
		if (!prb_server_serves(&v->looks->now, worker, s))
			continue;
		count++;
		idle += worker->activity == PRB_ENGINE_IDLE;
		unknown += worker->activity == PRB_ENGINE_UNKNOWN || worker->unreadable;
		if ((worker->activity == PRB_ENGINE_STEP || worker->activity == PRB_ENGINE_LOAD) &&
		    (!late || idle == count - 1))
			late = worker;
	}
	if (s->activity != PRB_ENGINE_REPLY || !count || unknown ||
	    load->oldest < patience(late ? late : s))
		return NULL;
	/* Workers on other machines are not seen: then one of those may be meant. */
	if (!late && s->workers.count != count)
		return NULL;
	PRB_TRY(prb_server_found(v, sure,
				 !late			      ? "a reply was lost"
				 : sure == PRB_CONFIDENCE_LOW ? "a worker is in a step"
							      : "a worker does not answer"));
	v->finding->lasted = silence(v->looks);
	text = &v->finding->sentence;
	if (late) {
		PRB_TRY(put_late(v, s, late, idle, count));
	} else {
		prb_str_puts(text, "a reply was lost: ");
		prb_server_put(text, s);
		prb_str_printf(text, " waits for its workers, and all %zu wait for work", count);
	}
	prb_str_puts(text, "; the oldest request is ");
	prb_text_duration(text, load->oldest);
	prb_str_puts(text, " old");
	PRB_TRY(prb_server_evidence(v, s));
	while ((worker = prb_server_next(&v->looks->now, PRB_ENGINE_WORKER, worker)))
		if (prb_server_serves(&v->looks->now, worker, s) &&
		    v->finding->evidence.count < MOST_LINES)
			PRB_TRY(prb_server_evidence(v, worker));
	return NULL;
}

/** Blocks that the first waiting request needs for its prompt; -1: not known. */
static int64_t blocks_needed(const struct prb_server_process *s, const struct load *load)
{
	int64_t size = s->kv[PRB_KV_BLOCK_SIZE],
		tokens = load->head ? load->head->prompt_tokens : 0;

	return size > 0 && tokens > 0 && tokens < INT64_MAX - size ? (tokens + size - 1) / size
								   : -1;
}

/** If the configuration lets no running request be interrupted for a waiting one. */
static void put_preemption(struct prb_str *text, const struct prb_server_process *s)
{
	if (!s->preempts)
		prb_str_puts(text, "; preemption is off");
}

static void put_holder(struct prb_str *text, size_t count, const char *what, const char *where,
		       const char **before)
{
	if (!count)
		return;
	prb_str_puts(text, *before);
	prb_server_put_count(text, count, what);
	if (where)
		prb_str_printf(text, " %s", where);
	*before = " and ";
}

/** Appends ", held by 4 running requests and 1 request in …": who has the blocks. */
static void put_holders(struct prb_str *text, const struct load *load)
{
	prb_auto_str struct prb_str state = {};
	const char *before = ", held by ";

	if (load->held)
		prb_str_printf(&state, "in %s", load->held_state);
	put_holder(text, load->running, "running request", NULL, &before);
	put_holder(text, load->held, "request", prb_str_text(&state), &before);
	put_holder(text, load->keeping, "waiting request", NULL, &before);
	put_holder(text, load->sessions, "session", "whose client is silent", &before);
	put_holder(text, load->done, "ended request", "whose blocks wait for a transfer", &before);
}

/** A prompt that not even an empty cache can hold: it waits forever, and all behind it. */
static struct prb_error *judge_too_long(struct prb_server_verdict *v,
					const struct prb_server_process *s, const struct load *load)
{
	int64_t total = s->kv[PRB_KV_TOTAL], needed = blocks_needed(s, load);
	struct prb_str *text;

	/* vLLM keeps one block for itself. */
	if (!load->waiting || load->running || total <= 0 || needed < total ||
	    load->oldest_waiting < prb_limit(PRB_LIMIT_REQUEST))
		return NULL;
	PRB_TRY(prb_server_found(v, PRB_CONFIDENCE_MEDIUM, "a prompt does not fit the KV cache"));
	text = &v->finding->sentence;
	prb_str_puts(text, "nothing is admitted to ");
	prb_server_put(text, s);
	prb_str_printf(text,
		       ": the first waiting request needs %lld blocks for its %lld tokens, and the "
		       "KV cache has only %lld",
		       (long long)needed, (long long)load->head->prompt_tokens, (long long)total);
	if (load->waiting > 1)
		prb_str_printf(text, "; %zu wait behind it", load->waiting - 1);
	prb_str_puts(text, ", for up to ");
	prb_text_duration(text, load->oldest_waiting);
	prb_str_puts(&v->finding->wrong_if, "the layers of the model keep only a part of a prompt");
	return prb_server_evidence(v, s);
}

/** Where nothing runs, and no transfer is young, nobody is about to give blocks back. */
static enum prb_confidence kv_confidence(const struct prb_server_verdict *v,
					 const struct load *load)
{
	bool transfers = load->held && load->oldest_held < prb_limit(PRB_LIMIT_TRANSFER);

	return load->running || load->done || transfers ? confidence(v->looks)
							: PRB_CONFIDENCE_MEDIUM;
}

static struct prb_error *judge_kv(struct prb_server_verdict *v, const struct prb_server_process *s,
				  const struct load *load)
{
	int64_t free = s->kv[PRB_KV_FREE], needed = blocks_needed(s, load);
	struct prb_str *text;

	if (!load->waiting || load->oldest_waiting < prb_limit(PRB_LIMIT_REQUEST) || free < 0 ||
	    (s->limit >= 0 && load->running >= (size_t)s->limit))
		return NULL;
	/* A prefix in the cache needs no blocks: how many the first one needs is then not known. */
	if (free && (s->kv[PRB_KV_CACHED] || free >= needed))
		return NULL;
	PRB_TRY(prb_server_found(v, kv_confidence(v, load), "the KV cache is exhausted"));
	v->finding->lasted = silence(v->looks);
	text = &v->finding->sentence;
	prb_str_puts(text, "no request can be admitted to ");
	prb_server_put(text, s);
	prb_str_printf(text, ": %lld of %lld %s of the KV cache are free", (long long)free,
		       (long long)s->kv[PRB_KV_TOTAL], s->part->unit ? s->part->unit : "blocks");
	if (free)
		prb_str_printf(text, ", the first needs %lld", (long long)needed);
	put_holders(text, load);
	prb_str_puts(text, "; ");
	prb_server_put_count(text, load->waiting, "request");
	prb_str_puts(text, load->waiting == 1 ? " has waited for " : " have waited for up to ");
	prb_text_duration(text, load->oldest_waiting);
	put_preemption(text, s);
	prb_str_puts(&v->finding->wrong_if, "a running request ends in a moment");
	return prb_server_evidence(v, s);
}

/** Requests in a state that something outside of the scheduler has to end. */
static struct prb_error *judge_held(struct prb_server_verdict *v,
				    const struct prb_server_process *s, const struct load *load)
{
	bool full = s->limit > 0 && load->running + load->held >= (size_t)s->limit && load->waiting;
	struct prb_str *text;

	if (!load->held || load->running || load->oldest_held < prb_limit(PRB_LIMIT_TRANSFER))
		return NULL;
	PRB_TRY(prb_server_found(v, PRB_CONFIDENCE_MEDIUM,
				 full		  ? "all slots are held by requests that cannot run"
				 : load->transfer ? "KV transfers do not end"
						  : "grammars are not compiled"));
	v->finding->lasted = load->oldest_held;
	text = &v->finding->sentence;
	if (full)
		prb_str_printf(text, "nothing is admitted to ");
	else
		prb_str_puts(text, "nothing runs in ");
	prb_server_put(text, s);
	prb_str_puts(text, ": ");
	if (full)
		prb_str_printf(text, "%zu of %lld slots are held by ", load->held,
			       (long long)s->limit);
	prb_server_put_count(text, load->held, "request");
	prb_str_printf(text, " in %s for up to ", load->held_state);
	prb_text_duration(text, load->oldest_held);
	if (load->waiting) {
		prb_str_puts(text, ", and ");
		prb_server_put_count(text, load->waiting, "request");
		prb_str_puts(text, load->waiting == 1 ? " waits behind" : " wait behind");
	}
	prb_str_puts(&v->finding->wrong_if, load->transfer
						    ? "the other side of the transfer is only slow"
						    : "a grammar takes that long to compile");
	return prb_server_evidence(v, s);
}

/** All slots are taken by requests that run, and none of them goes on. */
static struct prb_error *judge_slots(struct prb_server_verdict *v,
				     const struct prb_server_process *s, const struct load *load)
{
	double silent = prb_server_silent(v->looks);
	struct prb_str *text;

	if (!load->waiting || load->oldest_waiting < prb_limit(PRB_LIMIT_REQUEST) ||
	    s->limit <= 0 || load->running < (size_t)s->limit)
		return NULL;
	PRB_TRY(prb_server_found(v, confidence(v->looks), "no running request goes on"));
	v->finding->lasted = silence(v->looks);
	text = &v->finding->sentence;
	prb_str_puts(text, "nothing is admitted to ");
	prb_server_put(text, s);
	prb_str_printf(text, ": %zu of %lld slots are held by running requests that do not go on",
		       load->running, (long long)s->limit);
	if (silent >= 0) {
		prb_str_puts(text, ", whose last token is ");
		prb_text_duration(text, silent);
		prb_str_puts(text, " old");
	}
	prb_str_puts(text, "; ");
	prb_server_put_count(text, load->waiting, "request");
	prb_str_puts(text, load->waiting == 1 ? " waits" : " wait");
	put_preemption(text, s);
	prb_str_puts(&v->finding->wrong_if, "a step takes that long");
	return prb_server_evidence(v, s);
}

/** The process that schedules runs the model, too, and does not get to the end of a step. */
static struct prb_error *judge_step(struct prb_server_verdict *v,
				    const struct prb_server_process *s, const struct load *load)
{
	double silent = prb_server_silent(v->looks);
	enum prb_confidence sure = confidence(v->looks);
	struct prb_str *text;

	if ((s->activity != PRB_ENGINE_STEP && s->activity != PRB_ENGINE_LOAD) ||
	    load->oldest < patience(s))
		return NULL;
	/* Its steps have nothing to do. */
	if (load->held && !load->running && !load->waiting)
		return NULL;
	PRB_TRY(prb_server_found(v, sure,
				 sure == PRB_CONFIDENCE_LOW ? "a step has not ended yet"
							    : "a step does not end"));
	v->finding->lasted = silence(v->looks);
	text = &v->finding->sentence;
	prb_server_put(text, s);
	prb_str_puts(text, sure == PRB_CONFIDENCE_LOW
				   ? " has not ended a step yet: it is "
				   : " does not get to the end of a step: it is ");
	prb_server_put_doing(text, s);
	if (v->looks->twice)
		prb_server_put_spinning(text, s);
	if (silent >= 0) {
		prb_str_puts(text, "; no token was made for ");
		prb_text_duration(text, silent);
	}
	prb_str_puts(text, "; ");
	prb_server_put_count(text, load->running + load->waiting + load->held, "request");
	prb_str_puts(text, " wait, the oldest for ");
	prb_text_duration(text, load->oldest);
	prb_str_puts(&v->finding->wrong_if, "a step takes that long; where a GPU kernel spins, the "
					    "Python frame is its victim");
	return prb_server_evidence(v, s);
}

struct prb_error *prb_server_judge_scheduler(struct prb_server_verdict *v,
					     const struct prb_server_process *s)
{
	const struct prb_server_process *worker = NULL;
	struct load load = weigh(v->looks, s);
	size_t waiting = load.running + load.waiting + load.held;

	/* Somebody has paused it: that nothing goes on is what they want. */
	if (!s->requests.count || s->paused > 0)
		return NULL;
	PRB_TRY(prb_server_judge_compiling(v, s, waiting));
	while (!v->finding && (worker = prb_server_next(&v->looks->now, PRB_ENGINE_WORKER, worker)))
		if (prb_server_serves(&v->looks->now, worker, s))
			PRB_TRY(prb_server_judge_compiling(v, worker, waiting));
	if (!v->finding)
		PRB_TRY(judge_reply(v, s, &load));
	if (!v->finding)
		PRB_TRY(judge_too_long(v, s, &load));
	if (!v->finding)
		PRB_TRY(judge_kv(v, s, &load));
	if (!v->finding)
		PRB_TRY(judge_held(v, s, &load));
	if (!v->finding)
		PRB_TRY(judge_step(v, s, &load));
	return v->finding ? NULL : judge_slots(v, s, &load);
}

/** Others run: a guess, for only these requests may be long. */
static struct prb_error *tell_some(struct prb_server_verdict *v, const struct prb_server_process *s,
				   const struct load *load)
{
	struct prb_str *text;

	PRB_TRY(prb_server_found(v, PRB_CONFIDENCE_LOW, "some requests cannot run"));
	v->finding->lasted = load->oldest_held;
	text = &v->finding->sentence;
	prb_server_put_count(text, load->held, "request");
	prb_str_puts(text, " of ");
	prb_server_put(text, s);
	prb_str_puts(text, load->held == 1 ? " has been" : " have been");
	prb_str_printf(text, " in %s for up to ", load->held_state);
	prb_text_duration(text, load->oldest_held);
	prb_str_puts(text, ", while ");
	prb_server_put_count(text, load->running, "other");
	prb_str_puts(text, load->running == 1 ? " runs" : " run");
	prb_str_puts(&v->finding->wrong_if, "what they wait for takes that long");
	return prb_server_evidence(v, s);
}

struct prb_error *prb_server_judge_some(struct prb_server_verdict *v)
{
	const struct prb_server_process *s = NULL;

	while (!v->finding && (s = prb_server_next(&v->looks->now, PRB_ENGINE_SCHEDULER, s))) {
		struct load load = weigh(v->looks, s);

		if (load.held && load.running && s->paused <= 0 &&
		    load.oldest_held >= prb_limit(PRB_LIMIT_TRANSFER))
			PRB_TRY(tell_some(v, s, &load));
	}
	return NULL;
}

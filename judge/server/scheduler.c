/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A scheduler whose requests do not go on: what they wait for. Its steps are in step.c. */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "judge/server/private.h"

double prb_server_silence(const struct prb_server_looks *looks)
{
	double silent = prb_server_silent(looks);

	return silent >= 0 ? silent : 0;
}

enum prb_confidence prb_server_confidence(const struct prb_server_looks *looks)
{
	return prb_server_silence(looks) >= prb_limit(PRB_LIMIT_REQUEST) ? PRB_CONFIDENCE_MEDIUM
									 : PRB_CONFIDENCE_LOW;
}

static void note_age(double age, double *oldest)
{
	if (age > *oldest)
		*oldest = age;
}

static struct prb_server_load weigh(const struct prb_server_looks *looks,
				    const struct prb_server_process *s)
{
	struct prb_server_load load = {.oldest = -1, .oldest_waiting = -1, .oldest_held = -1};
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
		if (age > load.oldest)
			load.eldest = request;
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

/** Blocks that the first waiting request needs for its prompt; -1: not known. */
static int64_t blocks_needed(const struct prb_server_process *s, const struct prb_server_load *load)
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
static void put_holders(struct prb_str *text, const struct prb_server_load *load)
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
					const struct prb_server_process *s,
					const struct prb_server_load *load)
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
					 const struct prb_server_load *load)
{
	bool transfers = load->held && load->oldest_held < prb_limit(PRB_LIMIT_TRANSFER);

	return load->running || load->done || transfers ? prb_server_confidence(v->looks)
							: PRB_CONFIDENCE_MEDIUM;
}

static struct prb_error *judge_kv(struct prb_server_verdict *v, const struct prb_server_process *s,
				  const struct prb_server_load *load)
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
	v->finding->lasted = prb_server_silence(v->looks);
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
				    const struct prb_server_process *s,
				    const struct prb_server_load *load)
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
				     const struct prb_server_process *s,
				     const struct prb_server_load *load)
{
	double silent = prb_server_silent(v->looks);
	struct prb_str *text;

	if (!load->waiting || load->oldest_waiting < prb_limit(PRB_LIMIT_REQUEST) ||
	    s->limit <= 0 || load->running < (size_t)s->limit)
		return NULL;
	PRB_TRY(prb_server_found(v, prb_server_confidence(v->looks), "no running request goes on"));
	v->finding->lasted = prb_server_silence(v->looks);
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

/** Somebody has paused it: that nothing goes on is what they want. */
static bool has_work(const struct prb_server_process *s)
{
	return s->requests.count && s->paused <= 0;
}

static struct prb_error *judge(struct prb_server_verdict *v, const struct prb_server_process *s)
{
	struct prb_server_load load = weigh(v->looks, s);

	PRB_TRY(prb_server_judge_reply(v, s, &load));
	/* Nothing can be admitted before the step has ended. */
	if (!v->finding && prb_server_is_in_one_step(v->looks, s, &load))
		PRB_TRY(prb_server_judge_step(v, s, &load));
	if (!v->finding)
		PRB_TRY(judge_too_long(v, s, &load));
	if (!v->finding)
		PRB_TRY(judge_kv(v, s, &load));
	if (!v->finding)
		PRB_TRY(judge_held(v, s, &load));
	if (!v->finding)
		PRB_TRY(prb_server_judge_step(v, s, &load));
	return v->finding ? NULL : judge_slots(v, s, &load);
}

/** A compiler below the scheduler, or below one of its workers. */
static struct prb_error *judge_compilers(struct prb_server_verdict *v,
					 const struct prb_server_process *s)
{
	const struct prb_server_process *worker = NULL;
	struct prb_server_load load = weigh(v->looks, s);
	size_t waiting = load.running + load.waiting + load.held;

	PRB_TRY(prb_server_judge_compiling(v, s, waiting));
	while (!v->finding && (worker = prb_server_next(&v->looks->now, PRB_ENGINE_WORKER, worker)))
		if (prb_server_serves(&v->looks->now, worker, s))
			PRB_TRY(prb_server_judge_compiling(v, worker, waiting));
	return NULL;
}

struct prb_error *prb_server_judge_schedulers(struct prb_server_verdict *v)
{
	static struct prb_error *(*const judges[])(
		struct prb_server_verdict *, const struct prb_server_process *) = {judge_compilers,
										   judge};
	const struct prb_server_process *s = NULL;

	/* A rank that compiles keeps the others: these are judged when none does. */
	for (size_t i = 0; i < PRB_ARRAY_SIZE(judges); i++, s = NULL)
		while (!v->finding &&
		       (s = prb_server_next(&v->looks->now, PRB_ENGINE_SCHEDULER, s)))
			if (has_work(s))
				PRB_TRY(judges[i](v, s));
	return NULL;
}

/** Others run: a guess, for only these requests may be long. */
static struct prb_error *tell_some(struct prb_server_verdict *v, const struct prb_server_process *s,
				   const struct prb_server_load *load)
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
		struct prb_server_load load = weigh(v->looks, s);

		if (load.held && load.running && s->paused <= 0 &&
		    load.oldest_held >= prb_limit(PRB_LIMIT_TRANSFER))
			PRB_TRY(tell_some(v, s, &load));
	}
	return NULL;
}

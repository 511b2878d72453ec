/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A scheduler whose requests do not go on: by its workers, or since none can be admitted. */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "judge/server/private.h"
#include "target/proc/process.h"
#include "target/proc/text.h"

static const double LONG = 10; /* seconds; requests wait for less on a busy server */
enum { MOST_LINES = 8 };

/** What its requests do. */
struct load {
	size_t waiting, running, held, transfer, grammar;
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
	return silence(looks) >= LONG ? PRB_CONFIDENCE_MEDIUM : PRB_CONFIDENCE_LOW;
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
			note_age(age, &load.oldest_waiting);
		}
	}
	return load;
}

/** True if the numbers of processes that it knows are ours. */
static bool counts_as_we_do(const struct prb_server_process *s)
{
	prb_auto_str struct prb_str status = {};
	prb_auto_error struct prb_error *err = prb_target_read_file(s->target, &status, "status");
	const char *numbers = err ? NULL : prb_text_field(prb_str_text(&status), "NSpid");
	char *end;

	return numbers && strtol(numbers, &end, 10) == s->pid && (*end == '\n' || !*end);
}

static bool has_ended(pid_t pid)
{
	struct prb_process process = {};
	prb_auto_error struct prb_error *err = prb_process_describe(pid, &process);
	bool ended = err ? err->code == PRB_ERROR_NO_PROCESS : process.kind == PRB_PROCESS_ZOMBIE;

	prb_process_deinit(&process);
	return ended;
}

static struct prb_error *judge_ended(struct prb_server_verdict *v,
				     const struct prb_server_process *s, const struct load *load)
{
	const struct prb_server_process *worker = NULL;
	size_t ended = 0;
	const pid_t *pid;
	struct prb_str *text;

	if (!counts_as_we_do(s))
		return NULL;
	prb_vec_each (pid, &s->workers)
		ended += has_ended(*pid);
	if (!ended)
		return NULL;
	PRB_TRY(prb_server_found(v, PRB_CONFIDENCE_HIGH, "a worker has ended"));
	v->finding->lasted = load->oldest;
	text = &v->finding->sentence;
	prb_str_printf(text, "%zu of %zu workers of ", ended, s->workers.count);
	prb_server_put(text, s);
	prb_str_puts(text, ended == 1 ? " has ended:" : " have ended:");
	prb_vec_each (pid, &s->workers)
		if (has_ended(*pid))
			prb_str_printf(text, " %d", (int)*pid);
	prb_str_puts(text, "; ");
	prb_server_put_count(text, load->running + load->waiting + load->held, "request");
	prb_str_puts(text, " wait");
	PRB_TRY(prb_server_evidence(v, s));
	while ((worker = prb_server_next(&v->looks->now, PRB_ENGINE_WORKER, worker)))
		if (prb_server_serves(&v->looks->now, worker, s))
			PRB_TRY(prb_server_evidence(v, worker));
	prb_str_puts(&v->finding->wrong_if, "the engine replaces its workers by itself");
	return NULL;
}

static bool is_compiler(const char *comm)
{
	static const char *const names[] = {"nvcc",	 "cicc",  "ptxas", "cudafe++",
					    "fatbinary", "ninja", "hipcc", "clang",
					    "cc1plus",	 "c++",	  "g++"};

	for (size_t i = 0; comm && i < PRB_ARRAY_SIZE(names); i++)
		if (!strcmp(comm, names[i]))
			return true;
	return false;
}

/** The compiler that a process, or a helper below it, has run for the longest time. */
static const struct prb_server_helper *find_compiler(const struct prb_server *server, pid_t pid,
						     unsigned depth)
{
	const struct prb_server_helper *helper, *found = NULL;

	prb_vec_each (helper, &server->helpers) {
		const struct prb_server_helper *below = NULL;

		if (helper->ppid != pid)
			continue;
		if (is_compiler(helper->comm))
			below = helper;
		else if (depth < 4)
			below = find_compiler(server, helper->pid, depth + 1);
		if (below && (!found || below->started < found->started))
			found = below;
	}
	return found;
}

static struct prb_error *judge_compiling(struct prb_server_verdict *v,
					 const struct prb_server_process *p,
					 const struct load *load)
{
	const struct prb_server_helper *compiler = find_compiler(&v->looks->now, p->pid, 0);
	struct prb_str *text;
	double age;

	if (!compiler)
		return NULL;
	age = v->looks->time - compiler->started;
	if (age < 1)
		return NULL;
	PRB_TRY(prb_server_found(v, PRB_CONFIDENCE_HIGH, "compiles a kernel"));
	v->finding->lasted = age;
	text = &v->finding->sentence;
	prb_server_put(text, p);
	prb_str_puts(text, " has been compiling for ");
	prb_text_duration(text, age);
	prb_str_puts(text, " with ");
	prb_text_escape(text, compiler->comm);
	prb_str_printf(text, " (pid %d), ", (int)compiler->pid);
	prb_server_put_doing(text, p);
	prb_str_puts(text, "; ");
	prb_server_put_count(text, load->running + load->waiting + load->held, "request");
	prb_str_puts(text, " wait");
	PRB_TRY(prb_server_evidence(v, p));
	prb_str_puts(&v->finding->wrong_if, "the compiler ends in a moment");
	return NULL;
}

/** Appends " and has not read 10 messages of the ring in shared memory", if it has not. */
static struct prb_error *put_unread(struct prb_str *text, const struct prb_server_process *s,
				    const struct prb_server_process *worker)
{
	int64_t unread;

	PRB_TRY(prb_server_unread(s, worker, &unread));
	if (unread <= 0)
		return NULL;
	prb_str_puts(text, " and has not read ");
	prb_server_put_count(text, (size_t)unread, "message");
	prb_str_puts(text, " of the ring in shared memory");
	return NULL;
}

/** The scheduler waits for an answer: the worker that does not give it, or all of them have. */
static struct prb_error *judge_reply(struct prb_server_verdict *v,
				     const struct prb_server_process *s, const struct load *load)
{
	const struct prb_server_process *worker = NULL, *late = NULL;
	size_t count = 0, idle = 0, unknown = 0;
	struct prb_str *text;

	while ((worker = prb_server_next(&v->looks->now, PRB_ENGINE_WORKER, worker))) {
		if (!prb_server_serves(&v->looks->now, worker, s))
			continue;
		count++;
		idle += worker->activity == PRB_ENGINE_IDLE;
		unknown += worker->activity == PRB_ENGINE_UNKNOWN || worker->unreadable;
		if (worker->activity == PRB_ENGINE_STEP && (!late || idle == count - 1))
			late = worker;
	}
	if (s->activity != PRB_ENGINE_REPLY || !count || unknown || load->oldest < LONG)
		return NULL;
	/* Workers on other machines are not seen: then one of those may be meant. */
	if (!late && s->workers.count != count)
		return NULL;
	PRB_TRY(prb_server_found(v, confidence(v->looks),
				 late ? "a worker does not answer" : "a reply was lost"));
	v->finding->lasted = silence(v->looks);
	text = &v->finding->sentence;
	if (late) {
		prb_server_put(text, late);
		prb_str_puts(text, " does not answer");
		PRB_TRY(put_unread(text, s, late));
		prb_str_puts(text, ": it is ");
		prb_server_put_doing(text, late);
		prb_str_puts(text, "; ");
		prb_server_put(text, s);
		prb_str_puts(text, " waits for it");
		if (idle)
			prb_str_printf(text, ", and %zu of %zu workers wait for work", idle, count);
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
	if (late)
		prb_str_puts(
			&v->finding->wrong_if,
			"a step takes that long; where a GPU kernel spins, the Python frame is "
			"its victim");
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

static struct prb_error *judge_kv(struct prb_server_verdict *v, const struct prb_server_process *s,
				  const struct load *load)
{
	int64_t free = s->kv[PRB_KV_FREE], needed = blocks_needed(s, load);
	struct prb_str *text;

	if (!load->waiting || load->oldest_waiting < LONG || free < 0 ||
	    (s->limit >= 0 && load->running >= (size_t)s->limit))
		return NULL;
	/* A prefix in the cache needs no blocks: how many the first one needs is then not known. */
	if (free && (s->kv[PRB_KV_CACHED] || free >= needed))
		return NULL;
	PRB_TRY(prb_server_found(v, confidence(v->looks), "the KV cache is exhausted"));
	v->finding->lasted = silence(v->looks);
	text = &v->finding->sentence;
	prb_str_puts(text, "no request can be admitted to ");
	prb_server_put(text, s);
	prb_str_printf(text, ": %lld of %lld blocks of the KV cache are free", (long long)free,
		       (long long)s->kv[PRB_KV_TOTAL]);
	if (free)
		prb_str_printf(text, ", the first needs %lld", (long long)needed);
	prb_str_puts(text, ", held by ");
	prb_server_put_count(text, load->running, "running request");
	if (load->held)
		prb_str_printf(text, " and %zu in %s", load->held, load->held_state);
	prb_str_puts(text, "; ");
	prb_server_put_count(text, load->waiting, "request");
	prb_str_puts(text, load->waiting == 1 ? " has waited for " : " have waited for up to ");
	prb_text_duration(text, load->oldest_waiting);
	prb_str_puts(&v->finding->wrong_if, "a running request ends in a moment");
	return prb_server_evidence(v, s);
}

/** Requests in a state that something outside of the scheduler has to end. */
static struct prb_error *judge_held(struct prb_server_verdict *v,
				    const struct prb_server_process *s, const struct load *load)
{
	bool full = s->limit > 0 && load->running + load->held >= (size_t)s->limit && load->waiting;
	struct prb_str *text;

	if (!load->held || load->running || load->oldest_held < LONG)
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

	if (!load->waiting || load->oldest_waiting < LONG || s->limit <= 0 ||
	    load->running < (size_t)s->limit)
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
	prb_str_puts(&v->finding->wrong_if, "a step takes that long");
	return prb_server_evidence(v, s);
}

struct prb_error *prb_server_judge_scheduler(struct prb_server_verdict *v,
					     const struct prb_server_process *s)
{
	const struct prb_server_process *worker = NULL;
	struct load load = weigh(v->looks, s);

	if (!s->requests.count)
		return NULL;
	PRB_TRY(judge_ended(v, s, &load));
	if (!v->finding)
		PRB_TRY(judge_compiling(v, s, &load));
	while (!v->finding && (worker = prb_server_next(&v->looks->now, PRB_ENGINE_WORKER, worker)))
		if (prb_server_serves(&v->looks->now, worker, s))
			PRB_TRY(judge_compiling(v, worker, &load));
	if (!v->finding)
		PRB_TRY(judge_reply(v, s, &load));
	if (!v->finding)
		PRB_TRY(judge_kv(v, s, &load));
	if (!v->finding)
		PRB_TRY(judge_held(v, s, &load));
	return v->finding ? NULL : judge_slots(v, s, &load);
}

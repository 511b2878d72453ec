/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Requests that only the frontends have, or only the schedulers; and what a frontend's loop does.
 */
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/text.h"
#include "judge/server/private.h"

/** Adds the ids of a role's requests, by their hashes: a chance of one in 2^40 that two of many are
 * taken for one. *whole becomes false if some may be missing. */
static struct prb_error *collect(const struct prb_server *server, enum prb_engine_role role,
				 struct prb_number_map *ids, bool *whole)
{
	const struct prb_server_process *p = NULL;
	const struct prb_server_request *request;

	while ((p = prb_server_next(server, role, p))) {
		*whole = *whole && !p->cut && !p->missing && p->dump;
		prb_vec_each (request, &p->requests)
			if (request->id &&
			    !prb_number_map_put(ids, prb_hash_text(PRB_HASH_START, request->id), 1))
				return prb_error_nomem();
	}
	return NULL;
}

/** The requests of one role that were in no process of the other at both looks. */
struct strays {
	const struct prb_server_process *owner; /* of the first */
	size_t count, started;			/* started: that have tokens */
	double oldest;
};

static void count_strays(const struct prb_server_looks *looks, enum prb_engine_role role,
			 const struct prb_number_map *others, struct strays *ret)
{
	const struct prb_server_process *p = NULL;
	const struct prb_server_request *request;
	size_t there;

	ret->oldest = -1;
	while ((p = prb_server_next(&looks->now, role, p)))
		prb_vec_each (request, &p->requests) {
			double age = prb_server_age(looks, request);

			if (!request->id || age < prb_limit(PRB_LIMIT_REQUEST) ||
			    prb_server_is_done(request, p->part) ||
			    prb_number_map_get(others, prb_hash_text(PRB_HASH_START, request->id),
					       &there))
				continue;
			ret->owner = ret->owner ? ret->owner : p;
			ret->count++;
			ret->started += request->output_tokens > 0;
			ret->oldest = PRB_MAX(ret->oldest, age);
		}
}

/** A function of asyncio that runs the loop; loops in C have only the outermost in Python. */
static bool is_loop(const struct prb_dump_frame *frame)
{
	static const char runners[] = "/asyncio/runners.py";
	size_t length = frame->file ? strlen(frame->file) : 0, end = strlen(runners);

	if (frame->kind != PRB_FRAME_PYTHON || !frame->func)
		return false;
	if (!strcmp(frame->func, "_run_once") || !strcmp(frame->func, "run_until_complete"))
		return true;
	return length > end && !strcmp(frame->file + length - end, runners);
}

/** What the thread of an event loop does that is not waiting for events; NULL: it waits. */
static const struct prb_dump_thread *blocked_loop(const struct prb_server_process *p)
{
	const struct prb_dump_thread *main = prb_server_main(p);
	const struct prb_dump_frame *frame, *inner = NULL;
	bool loop = false;

	if (!main)
		return NULL;
	prb_vec_each (frame, &main->frames) {
		inner = inner || frame->kind != PRB_FRAME_PYTHON ? inner : frame;
		loop = loop || is_loop(frame);
	}
	if (!loop || !inner || !inner->func)
		return NULL;
	/* The wait for the GIL follows that for events. */
	if (prb_thread_waits_for_gil(main))
		return main;
	return is_loop(inner) || !strcmp(inner->func, "select") || !strcmp(inner->func, "poll")
		       ? NULL
		       : main;
}

static struct prb_error *judge_loop(struct prb_server_verdict *v,
				    const struct prb_server_process *p)
{
	const struct prb_dump_thread *main = blocked_loop(p), *holder = NULL, *thread;
	struct prb_str *text;
	bool waits;

	/* One that starts waits for its engine in the loop. */
	if (!main || !p->requests.count)
		return NULL;
	waits = prb_thread_waits_for_gil(main);
	if (!waits && main->idle_seconds < prb_limit(PRB_LIMIT_LOOP))
		return NULL;
	prb_vec_each (thread, &p->dump->threads)
		if (prb_thread_holds_gil(thread))
			holder = thread;
	PRB_TRY(prb_server_found(v, waits ? PRB_CONFIDENCE_MEDIUM : PRB_CONFIDENCE_HIGH,
				 waits ? "the event loop waits for the GIL"
				       : "the event loop is blocked"));
	v->finding->lasted = waits ? 0 : main->idle_seconds;
	text = &v->finding->sentence;
	prb_str_puts(text, "the event loop of ");
	prb_server_put(text, p);
	if (waits) {
		prb_str_puts(text, " waits for the GIL");
		if (holder) {
			prb_str_puts(text, ", which thread ");
			prb_case_put_thread(text, holder);
			prb_str_puts(text, " holds in ");
			(void)prb_case_put_place(text, holder);
		}
	} else {
		prb_str_puts(text, " has been blocked for ");
		prb_text_duration(text, main->idle_seconds);
		prb_str_puts(text, " by ");
		(void)prb_case_put_place(text, main);
	}
	prb_str_printf(text, "; it has %zu request%s", p->requests.count,
		       p->requests.count == 1 ? "" : "s");
	prb_str_puts(&v->finding->wrong_if,
		     waits ? "the next look finds the loop waiting for events"
			   : "the call ends in a moment");
	return prb_server_evidence(v, p);
}

/** Appends which socket between both processes has messages; *ret: there is one. */
static struct prb_error *put_messages(struct prb_str *text, const struct strays *strays,
				      const struct prb_server_process *scheduler, bool *ret)
{
	const struct prb_server_process *sends = strays->started ? scheduler : strays->owner;
	const struct prb_server_process *receives = strays->started ? strays->owner : scheduler;
	size_t before = text->length;

	prb_str_puts(text, ": ");
	PRB_TRY(prb_server_put_messages(text, receives, true, ret));
	if (!*ret)
		PRB_TRY(prb_server_put_messages(text, sends, false, ret));
	if (!*ret)
		prb_str_truncate(text, before);
	return NULL;
}

static bool is_reader(const struct prb_server_process *p, const struct prb_dump_thread *thread)
{
	const struct prb_dump_frame *frame;
	char *const *name;

	prb_vec_each (frame, &thread->frames)
		prb_vec_each (name, &p->part->readers)
			if (prb_server_is_place(frame, *name))
				return true;
	return false;
}

/** True if it waits for messages: innermost in Python is a function of pyzmq. */
static bool waits_for_messages(const struct prb_dump_thread *thread)
{
	const struct prb_dump_frame *frame;

	prb_vec_each (frame, &thread->frames)
		if (frame->kind == PRB_FRAME_PYTHON)
			return frame->file && strstr(frame->file, "/zmq/");
	return false;
}

/** Appends what keeps the thread that takes requests from the sockets; *ret: something does. */
static void put_reader(struct prb_str *text, const struct prb_server_looks *looks,
		       const struct prb_server_process *scheduler, bool *ret)
{
	const struct prb_server_process *before = prb_server_find(&looks->before, scheduler->pid);
	const struct prb_case other = {.target = scheduler->target, .dump = scheduler->dump};
	const struct prb_dump_thread *thread, *earlier;

	if (!before || !before->dump || !scheduler->dump)
		return;
	prb_vec_each (thread, &scheduler->dump->threads) {
		if (*ret || !is_reader(scheduler, thread) || waits_for_messages(thread))
			continue;
		prb_vec_each (earlier, &before->dump->threads)
			if (earlier->tid == thread->tid && !waits_for_messages(earlier))
				*ret = true;
		if (!*ret)
			continue;
		prb_str_puts(text, ": thread ");
		prb_case_put_thread(text, thread);
		prb_str_puts(text, ", which takes them from the sockets, is ");
		prb_case_put_doing(text, &other, thread);
	}
}

/** What follows from where the requests are, and from what the detokenizer does. */
static void put_reason(struct prb_str *text, const struct strays *strays,
		       const struct prb_server_process *detokenizer)
{
	if (detokenizer && detokenizer->activity == PRB_ENGINE_STEP) {
		prb_str_puts(text, ": their outputs wait for ");
		prb_server_put(text, detokenizer);
		prb_str_puts(text, ", which is ");
		prb_server_put_doing(text, detokenizer);
	} else if (strays->started) {
		prb_str_puts(text,
			     ": the scheduler has ended them, and the outputs have not arrived");
	} else {
		prb_str_puts(text, ": they did not get there, or no output has come back");
	}
}

/* "16 requests of API server (411) are no longer in engine core (430)" */
static void put_where(struct prb_str *text, const struct strays *strays, const char *where,
		      const struct prb_server_process *in)
{
	prb_server_put_count(text, strays->count, "request");
	prb_str_puts(text, " of ");
	prb_server_put(text, strays->owner);
	prb_str_puts(text, strays->count == 1 ? " is" : " are");
	prb_str_puts(text, where);
	prb_server_put(text, in);
}

static struct prb_error *tell_strays(struct prb_server_verdict *v, const struct strays *strays)
{
	const struct prb_server_process *scheduler =
		prb_server_next(&v->looks->now, PRB_ENGINE_SCHEDULER, NULL);
	const struct prb_server_process *detokenizer =
		prb_server_next(&v->looks->now, PRB_ENGINE_DETOKENIZER, NULL);
	bool told = false;
	struct prb_str *text;

	PRB_TRY(prb_server_found(v, PRB_CONFIDENCE_MEDIUM,
				 strays->started ? "outputs do not reach the clients"
						 : "requests are stuck before the scheduler"));
	v->finding->lasted = strays->oldest;
	text = &v->finding->sentence;
	put_where(text, strays, " not in ", scheduler);
	if (scheduler->activity == PRB_ENGINE_IDLE)
		prb_str_puts(text, ", which waits for work");
	if (!strays->started)
		put_reader(text, v->looks, scheduler, &told);
	if (!told && (!detokenizer || detokenizer->activity != PRB_ENGINE_STEP))
		PRB_TRY(put_messages(text, strays, scheduler, &told));
	if (!told)
		put_reason(text, strays, detokenizer);
	prb_str_puts(text, "; the oldest is ");
	prb_text_duration(text, strays->oldest);
	prb_str_puts(text, " old");
	PRB_TRY(prb_server_evidence(v, strays->owner));
	PRB_TRY(prb_server_evidence(v, scheduler));
	return detokenizer ? prb_server_evidence(v, detokenizer) : NULL;
}

static struct prb_error *tell_gone(struct prb_server_verdict *v, const struct strays *strays)
{
	const struct prb_server_process *frontend =
		prb_server_next(&v->looks->now, PRB_ENGINE_FRONTEND, NULL);
	struct prb_str *text;

	PRB_TRY(prb_server_found(v, PRB_CONFIDENCE_MEDIUM,
				 "requests run for clients that are gone"));
	text = &v->finding->sentence;
	put_where(text, strays, " no longer in ", frontend);
	prb_str_puts(text, ": the clients are gone, and the oldest is ");
	prb_text_duration(text, strays->oldest);
	prb_str_puts(text, " old");
	prb_str_puts(&v->finding->wrong_if, "they came by a frontend on another machine");
	PRB_TRY(prb_server_evidence(v, strays->owner));
	return prb_server_evidence(v, frontend);
}

/** True if a frontend sends requests to schedulers that are not among these processes. */
static bool sends_elsewhere(const struct prb_server *server)
{
	const struct prb_server_process *p = NULL;
	int64_t schedulers = 0;

	while ((p = prb_server_next(server, PRB_ENGINE_SCHEDULER, p)))
		schedulers++;
	while ((p = prb_server_next(server, PRB_ENGINE_FRONTEND, p)))
		if (p->peers > schedulers)
			return true;
	return false;
}

/** The ids of both looks: a request may have ended while one look was taken. */
static struct prb_error *collect_both(const struct prb_server_looks *looks,
				      enum prb_engine_role role, struct prb_number_map *ids,
				      bool *whole)
{
	*whole = *whole && prb_server_next(&looks->now, role, NULL);
	if (looks->twice)
		PRB_TRY(collect(&looks->before, role, ids, whole));
	return collect(&looks->now, role, ids, whole);
}

static struct prb_error *compare(struct prb_server_verdict *v, struct prb_number_map *ours,
				 struct prb_number_map *theirs)
{
	struct strays strays = {}, gone = {};
	bool whole = true;

	PRB_TRY(collect_both(v->looks, PRB_ENGINE_FRONTEND, ours, &whole));
	PRB_TRY(collect_both(v->looks, PRB_ENGINE_SCHEDULER, theirs, &whole));
	if (!whole)
		return NULL;
	count_strays(v->looks, PRB_ENGINE_FRONTEND, theirs, &strays);
	if (strays.count && sends_elsewhere(&v->looks->now))
		return NULL;
	if (strays.count)
		return tell_strays(v, &strays);
	count_strays(v->looks, PRB_ENGINE_SCHEDULER, ours, &gone);
	return gone.count ? tell_gone(v, &gone) : NULL;
}

struct prb_error *prb_server_judge_frontends(struct prb_server_verdict *v)
{
	const struct prb_server_process *p = NULL;
	struct prb_number_map ours = {}, theirs = {};
	struct prb_error *err = NULL;

	while (!v->finding && (p = prb_server_next(&v->looks->now, PRB_ENGINE_FRONTEND, p)))
		PRB_TRY(judge_loop(v, p));
	if (!v->finding)
		err = compare(v, &ours, &theirs);
	prb_number_map_deinit(&ours);
	prb_number_map_deinit(&theirs);
	PRB_TRY(err);
	return v->finding ? NULL : prb_server_judge_untaken(v);
}

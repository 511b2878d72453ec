/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Workers that serve requests with the program's own code, in an event loop: Ray Serve's replicas.
 */
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "judge/server/private.h"

static bool is_loop(const struct prb_server_process *p, const struct prb_dump_frame *frame)
{
	char *const *name;

	prb_vec_each (name, &p->part->loops)
		if (prb_server_is_place(frame, *name))
			return true;
	return false;
}

/** The thread of its event loop, while it sleeps in code of the program; NULL: it does not. */
static const struct prb_dump_thread *blocked_loop(const struct prb_server_process *p)
{
	const struct prb_dump_thread *thread;
	const struct prb_dump_frame *frame, *inner;

	prb_vec_each (thread, &p->dump->threads) {
		inner = NULL;
		prb_vec_each (frame, &thread->frames) {
			if (frame->kind != PRB_FRAME_PYTHON)
				continue;
			inner = inner ? inner : frame;
			if (is_loop(p, frame) && inner != frame && inner->func &&
			    strcmp(inner->func, "select") != 0 && !prb_thread_waits_for_gil(thread))
				return thread;
		}
	}
	return NULL;
}

/** The oldest request that waits in a router; negative: there is none. */
static double oldest_waiting(const struct prb_server_looks *looks, size_t *count,
			     const struct prb_server_process **ret)
{
	const struct prb_server_process *p = NULL;
	const struct prb_server_request *request;
	double oldest = -1;

	*count = 0;
	while ((p = prb_server_next(&looks->now, PRB_ENGINE_FRONTEND, p)))
		prb_vec_each (request, &p->requests) {
			double age = prb_server_age(looks, request);

			if (!request->queue || strcmp(request->queue, "waiting") != 0)
				continue;
			++*count;
			if (age > oldest) {
				oldest = age;
				*ret = p;
			}
		}
	return oldest;
}

static struct prb_error *judge_loop(struct prb_server_verdict *v,
				    const struct prb_server_process *p)
{
	const struct prb_dump_thread *thread = p->dump ? blocked_loop(p) : NULL;
	int64_t running = prb_server_queued(p, "running"), held = prb_server_queued(p, "waiting");
	const struct prb_server_process *unused;
	struct prb_str *text;
	size_t waiting;

	if (!thread || running < 1 || thread->idle_seconds < prb_limit(PRB_LIMIT_REQUEST))
		return NULL;
	/* A call that serves one request blocks nobody, as long as there is no other one. */
	(void)oldest_waiting(v->looks, &waiting, &unused);
	if (running == 1 && held <= 0 && !waiting)
		return NULL;
	PRB_TRY(prb_server_found(v, PRB_CONFIDENCE_MEDIUM, "the event loop is blocked"));
	v->finding->lasted = thread->idle_seconds;
	text = &v->finding->sentence;
	prb_str_puts(text, "the event loop of ");
	prb_server_put(text, p);
	prb_str_puts(text, " has been blocked for ");
	prb_text_duration(text, thread->idle_seconds);
	prb_str_puts(text, " by ");
	(void)prb_case_put_place(text, thread);
	prb_str_puts(text, "; it has ");
	prb_server_put_count(text, (size_t)running, "request");
	if (waiting) {
		prb_str_puts(text, ", and ");
		prb_server_put_count(text, waiting, "other");
		prb_str_puts(text, waiting == 1 ? " waits" : " wait");
	}
	prb_str_puts(&v->finding->wrong_if, "the call ends in a moment");
	return prb_server_evidence(v, p);
}

static void put_waiting(struct prb_str *text, const struct prb_server_process *router,
			size_t waiting)
{
	prb_server_put_count(text, waiting, "request");
	prb_str_puts(text, " of ");
	prb_server_put(text, router);
	prb_str_puts(text, waiting == 1 ? " waits" : " wait");
}

static void put_oldest(struct prb_server_verdict *v, double oldest)
{
	struct prb_str *text = &v->finding->sentence;

	v->finding->lasted = oldest;
	prb_str_puts(text, "; the oldest is ");
	prb_text_duration(text, oldest);
	prb_str_puts(text, " old");
}

/** One that starts may load a model for minutes: until then a guess. */
static struct prb_error *judge_none(struct prb_server_verdict *v)
{
	const struct prb_server_process *router = NULL;
	size_t waiting;
	double oldest = oldest_waiting(v->looks, &waiting, &router);
	struct prb_str *text;

	if (!router || oldest < prb_limit(PRB_LIMIT_REQUEST) || router->peers)
		return NULL;
	PRB_TRY(prb_server_found(v,
				 oldest < prb_limit(PRB_LIMIT_LOADING) ? PRB_CONFIDENCE_LOW
								       : PRB_CONFIDENCE_MEDIUM,
				 "no replica takes requests"));
	text = &v->finding->sentence;
	put_waiting(text, router, waiting);
	prb_str_puts(text, " for a replica, of which there is none");
	put_oldest(v, oldest);
	prb_str_puts(&v->finding->wrong_if, "a replica is starting");
	return prb_server_evidence(v, router);
}

/** Nothing says whether the requests in the slots are only long: a guess. */
static struct prb_error *judge_slots(struct prb_server_verdict *v)
{
	const struct prb_server_process *p = NULL, *router = NULL;
	int64_t slots = 0;
	struct prb_str *text;
	size_t waiting;
	double oldest = oldest_waiting(v->looks, &waiting, &router);

	if (!router || oldest < prb_limit(PRB_LIMIT_TRANSFER))
		return NULL;
	while ((p = prb_server_next(&v->looks->now, PRB_ENGINE_WORKER, p))) {
		int64_t running = prb_server_queued(p, "running");

		if (!p->part->loops.count)
			continue;
		if (p->limit <= 0 || running < p->limit)
			return NULL;
		slots += running;
	}
	if (!slots)
		return NULL;
	PRB_TRY(prb_server_found(v, PRB_CONFIDENCE_LOW, "all slots are taken"));
	text = &v->finding->sentence;
	put_waiting(text, router, waiting);
	prb_str_printf(text, " for a slot: all %lld are taken", (long long)slots);
	put_oldest(v, oldest);
	prb_str_puts(&v->finding->wrong_if, "the requests in the slots are only long");
	return prb_server_evidence(v, router);
}

struct prb_error *prb_server_judge_replicas(struct prb_server_verdict *v)
{
	const struct prb_server_process *p = NULL;

	while (!v->finding && (p = prb_server_next(&v->looks->now, PRB_ENGINE_WORKER, p)))
		if (p->part->loops.count)
			PRB_TRY(judge_loop(v, p));
	if (!v->finding)
		PRB_TRY(judge_none(v));
	return v->finding ? NULL : judge_slots(v);
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Processes of a server that have ended, by its own record of them or as zombies. */
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "judge/server/private.h"
#include "target/proc/process.h"

/** The part that a zombie was, by what is left of its title; NULL: none. */
static const struct prb_engine_part *zombie_part(const struct prb_server_process *parent,
						 const struct prb_server_helper *helper)
{
	return helper->ended && helper->ppid == parent->pid
		       ? prb_engine_by_comm(parent->engine, helper->comm)
		       : NULL;
}

static bool is_recorded(const struct prb_server_process *p, pid_t pid)
{
	const pid_t *at;

	prb_vec_each (at, &p->workers)
		if (*at == pid)
			return true;
	return false;
}

/** Appends " 4242 (engine core)" for each that has ended; returns how many. */
static size_t put_ended(struct prb_str *text, const struct prb_server *server,
			const struct prb_server_process *p)
{
	const bool ours = prb_target_sees_our_pids(p->target) == 1;
	const struct prb_server_helper *helper;
	const pid_t *pid;
	size_t count = 0;

	prb_vec_each (helper, &server->helpers) {
		const struct prb_engine_part *part = zombie_part(p, helper);

		if (!part)
			continue;
		prb_str_printf(text, "%s%d (", count++ ? ", " : " ", (int)helper->pid);
		prb_text_escape(text, part->name);
		prb_str_putc(text, ')');
	}
	prb_vec_each (pid, &p->workers) {
		bool listed = false;

		prb_vec_each (helper, &server->helpers)
			listed = listed || (helper->pid == *pid && zombie_part(p, helper));
		if (ours && !listed && prb_process_has_ended(*pid))
			prb_str_printf(text, "%s%d", count++ ? ", " : " ", (int)*pid);
	}
	return count;
}

/** How many processes it has started; 0: not known. */
static size_t count_started(const struct prb_server *server, const struct prb_server_process *p)
{
	const struct prb_server_helper *helper;
	size_t count = p->workers.count;

	prb_vec_each (helper, &server->helpers)
		if (count && zombie_part(p, helper) && !is_recorded(p, helper->pid))
			count++;
	return count;
}

static void put_sentence(struct prb_server_verdict *v, const struct prb_server_process *p,
			 size_t ended, const struct prb_str *list)
{
	struct prb_str *text = &v->finding->sentence;
	size_t started = count_started(&v->looks->now, p);
	bool schedules = p->part->role == PRB_ENGINE_SCHEDULER;

	prb_str_printf(text, "%zu of ", ended);
	if (started)
		prb_str_printf(text, "%zu ", started);
	else
		prb_str_puts(text, "the ");
	prb_str_puts(text, schedules ? "workers of " : "child processes of ");
	prb_server_put(text, p);
	prb_str_puts(text, ended == 1 ? " has ended:" : " have ended:");
	prb_str_puts(text, prb_str_text(list));
	if (!p->requests.count)
		return;
	prb_str_puts(text, "; ");
	prb_server_put_count(text, p->requests.count, "request");
	prb_str_puts(text, p->requests.count == 1 ? " waits" : " wait");
}

static struct prb_error *judge(struct prb_server_verdict *v, const struct prb_server_process *p)
{
	const struct prb_server_process *worker = NULL;
	const struct prb_server_request *request;
	prb_auto_str struct prb_str list = {};
	size_t ended = put_ended(&list, &v->looks->now, p);

	if (!ended)
		return NULL;
	PRB_TRY(prb_server_found(v, PRB_CONFIDENCE_HIGH, "a process of the server has ended"));
	prb_vec_each (request, &p->requests) {
		double age = prb_server_age(v->looks, request);

		v->finding->lasted = age > v->finding->lasted ? age : v->finding->lasted;
	}
	put_sentence(v, p, ended, &list);
	PRB_TRY(prb_server_evidence(v, p));
	while (p->part->role == PRB_ENGINE_SCHEDULER &&
	       (worker = prb_server_next(&v->looks->now, PRB_ENGINE_WORKER, worker)))
		if (prb_server_serves(&v->looks->now, worker, p))
			PRB_TRY(prb_server_evidence(v, worker));
	prb_str_puts(&v->finding->wrong_if,
		     "the server is being shut down, or replaces them by itself");
	return NULL;
}

struct prb_error *prb_server_judge_ended(struct prb_server_verdict *v)
{
	static const enum prb_engine_role ROLES[] = {PRB_ENGINE_SCHEDULER, PRB_ENGINE_FRONTEND};
	const struct prb_server_process *p = NULL;

	for (size_t i = 0; i < PRB_ARRAY_SIZE(ROLES); i++, p = NULL)
		while (!v->finding && (p = prb_server_next(&v->looks->now, ROLES[i], p)))
			PRB_TRY(judge(v, p));
	return NULL;
}
